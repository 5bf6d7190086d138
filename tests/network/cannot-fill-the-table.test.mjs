// The number of connections of a tenant is bounded; other tenants and the host keep theirs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Internet, poll, WEB, WEB2 } from '../lib/internet.mjs';

const MAX = 20;
let net;
let d;
let a;
let b;
before(async () => {
  net = await new Internet().open();
  d = await net.daemon({ args: ['--connections-max', String(MAX), '--pool', '0'] });
  [a, b] = [await d.sandbox(), await d.sandbox()];
});
after(async () => {
  await d?.stop();
  await net?.close();
});

const tracked = async () => Number(await net.sh(net.host, 'cat', '/proc/sys/net/netfilter/nf_conntrack_count'));
const hold = (s, to) => d.process(s.id, ['python3', '-c', `
import socket, time
held = []
for i in range(60):
    try: held.append(socket.create_connection(('${to}', 80), 0.05))
    except OSError: pass
print('held', len(held), flush=True)
import sys; sys.stdin.read()`], { stdin: true });

test('connections over the bound are not made, and others have their own', async () => {
  const before = await tracked();
  const p = await hold(a, WEB);
  const P = `/v1/sandboxes/${a.id}/processes/${p.id}`;
  await d.post(`${P}/wait`, { for: 'log', text: 'held', timeout_ms: 30_000 });
  const n = Number(/held (\d+)/.exec((await d.get(`${P}/logs`)).chunks.map((c) => c.data).join(''))[1]);
  assert.ok(n > 0 && n <= MAX, `${n} connections`);
  assert.ok((await tracked()) - before <= MAX + 5);
  assert.equal((await d.exec(b.id, `curl -s -m 3 -o /dev/null -w %{http_code} http://${WEB}/`)).stdout, '200');
  await d.post(`${P}/kill`, { grace_ms: 0 });
});

test('when connections end there is room again', async () => {
  await poll('room again', async () => (await d.exec(a.id, `curl -s -m 1 -o /dev/null -w %{http_code} http://${WEB}/`)).stdout === '200');
});

test('a flood of packets to many ports does not fill the table', async () => {
  const before = await tracked();
  await d.exec(b.id, ['python3', '-c', `
import socket
for i in range(3000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try: s.sendto(b'x', ('${WEB2}', 20000 + i))
    except OSError: pass
    s.close()`], { timeout_ms: 20_000 });
  assert.ok((await tracked()) - before <= MAX + 5, `${await tracked()} tracked`);
  assert.equal((await net.sh(net.host, 'curl', '-s', '-m', '3', '-o', '/dev/null', '-w', '%{http_code}', `http://${WEB}/`)), '200');
});

test('DNS queries count against the limit', async () => {
  const before = await tracked();
  await d.exec(b.id, ['python3', '-c', `
import socket
for i in range(500):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x' * 20, ('169.254.1.1', 53)); s.close()`], { timeout_ms: 20_000 });
  assert.ok((await tracked()) - before <= MAX + 5, `${await tracked()} tracked`);
});

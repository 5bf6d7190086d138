// An address is given to one sandbox after another. Connections that the
// host still tracks of the last one do not reach the next.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HOST_OUT, Internet, poll, WEB, WEB2 } from '../lib/internet.mjs';

const MAX = 20;
const PORT = 40_000;
let net;
let d;
before(async () => {
  net = await new Internet().open();
  d = await net.daemon({ args: ['--connections-max', String(MAX), '--pool', '0'] });
});
after(async () => {
  await d?.stop();
  await net?.close();
});

const address = async (id) => (await d.get(`/v1/sandboxes/${id}/network`)).address;
const python = async (id, text) => {
  const r = await d.exec(id, ['python3', '-c', `import socket, sys\n${text}`], { timeout_ms: 20_000 });
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};

/** Ends that sandbox, and makes others until one has its address: the lowest that is free is given. */
async function successor(id) {
  const was = await address(id);
  await d.del(`/v1/sandboxes/${id}`);
  return poll('the address is given again', async () => {
    const s = await d.sandbox();
    return (await address(s.id)) === was ? s : null;
  });
}

test('packets for a deleted sandbox do not reach the next one with its address', async () => {
  const a = await d.sandbox();
  await python(a.id, `
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', ${PORT}))
s.sendto(b'hello', ('${WEB}', 7777))`);
  const b = await successor(a.id);
  const p = await d.process(b.id, ['python3', '-c', `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', ${PORT})); s.setblocking(False)
print('bound', flush=True); input()
# an answer that came the same way, later
e = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); e.sendto(b'echo', ('${WEB}', 9999)); e.recv(100)
try: print('heard', s.recv(100))
except BlockingIOError: print('heard nothing')`], { stdin: true });
  const P = `/v1/sandboxes/${b.id}/processes/${p.id}`;
  await d.post(`${P}/wait`, { for: 'log', text: 'bound', timeout_ms: 10_000 });
  await net.sh(net.world, 'python3', '-c', `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('${WEB}', 7777))
s.sendto(b'for the last one', ('${HOST_OUT}', ${PORT}))`);
  await d.call('POST', `${P}/stdin`, '\n');
  await d.post(`${P}/wait`, { timeout_ms: 10_000 });
  assert.equal((await d.get(`${P}/logs`)).chunks.map((c) => c.data).join(''), 'bound\nheard nothing\n');
});

test('the next has all its connections, whatever the last one left open', async () => {
  const a = await d.sandbox();
  await python(a.id, `
for i in range(200):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('${WEB2}', 20000 + i))`);
  const b = await successor(a.id);
  assert.equal((await d.exec(b.id, `curl -s -m 3 -o /dev/null -w %{http_code} http://${WEB}/`)).stdout, '200');
});

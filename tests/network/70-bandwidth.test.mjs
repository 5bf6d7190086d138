// A sandbox with a bandwidth limit sends and receives no faster, whatever it does; others do.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Internet, WEB } from '../lib/internet.mjs';

const RATE = 8 << 20; // bytes per second: 32 MiB take four seconds
const BYTES = 32 << 20;
let net;
let d;
before(async () => {
  net = await new Internet().open();
  d = await net.daemon();
});
after(async () => {
  await d?.stop();
  await net?.close();
});

const down = `curl -s -m 60 -o /dev/null -w '%{size_download} %{time_total}' http://${WEB}/bytes`;
const up = `head -c ${BYTES} /dev/zero | curl -s -m 60 -o /dev/null -w '%{size_upload} %{time_total}' -H 'Expect:' -T - http://${WEB}/`;

async function timed(id, command) {
  const r = await d.exec(id, command, { timeout_ms: 90_000 });
  const [bytes, seconds] = r.stdout.split(' ').map(Number);
  assert.ok(bytes >= BYTES, r.stdout + r.stderr);
  return seconds;
}

for (const [way, command] of [['receives', down], ['sends', up]])
  test(`a sandbox ${way} no faster than its limit`, async () => {
    const s = await d.sandbox({ limits: { bandwidth: RATE } });
    assert.equal(s.limits.bandwidth, RATE);
    // the first 400 KiB may go at once; headers of packets count too
    assert.ok(await timed(s.id, command) >= (BYTES - (1 << 20)) / RATE, 'it took as long as it must');
    await d.del(`/v1/sandboxes/${s.id}`);
  });

test('root inside cannot lift it', async () => {
  const s = await d.sandbox({ limits: { bandwidth: RATE } });
  const r = await d.exec(s.id, ['python3', '-c', `
import socket, struct
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
body = struct.pack("BxxxiIII", 0, socket.if_nametoindex("eth0"), 0, 0xffffffff, 0)
s.send(struct.pack("IHHII", 16 + len(body), 37, 5, 1, 0) + body)  # RTM_DELQDISC, with an answer
print(struct.unpack("i", s.recv(1000)[16:20])[0])`], { user: 'root' });
  assert.equal(r.stdout, '-1\n', r.stderr);
  assert.ok(await timed(s.id, up) >= (BYTES - (1 << 20)) / RATE);
  await d.del(`/v1/sandboxes/${s.id}`);
});

test('one without a limit is not held up, and the limit outlives a stop', async () => {
  const [free, bound] = [await d.sandbox(), await d.sandbox({ limits: { bandwidth: RATE } })];
  assert.equal(free.limits.bandwidth, 0);
  const [a, b] = await Promise.all([timed(free.id, down), timed(bound.id, down)]);
  assert.ok(a < b, `${a} s without a limit, ${b} s with one`);
  await d.post(`/v1/sandboxes/${bound.id}/pause`, { memory: false });
  await d.post(`/v1/sandboxes/${bound.id}/resume`);
  assert.equal((await d.get(`/v1/sandboxes/${bound.id}`)).limits.bandwidth, RATE);
  assert.ok(await timed(bound.id, up) >= (BYTES - (1 << 20)) / RATE);
});

test('the server says that it can limit bandwidth', async () => {
  const { text } = await d.call('GET', '/metrics');
  assert.match(text, /^cove_bandwidth_limits 1$/m);
  assert.match(text, /^cove_disk_io_limits [01]$/m);
});

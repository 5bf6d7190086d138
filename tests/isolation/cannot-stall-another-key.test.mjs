// A tenant decides how long closing one of its files takes: the last fd of a removed file frees its
// extents one by one. The front closes such fds, and another key's requests do not wait for that.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';
import { rawServer, serveInside } from '../lib/ports.mjs';

const FILES = 24;
let d, other;
before(async () => {
  d = await startDaemon({ args: ['--pool', '0', '--disk-reserve', '256M'] });
  other = (await d.post('/v1/keys', { name: 'other' })).key;
});
after(() => d?.stop());

// A file of many extents from one block: each clone doubles it.
const MAKE = `
import fcntl, os, struct, sys
block = 65536
for i in range(${FILES}):
    f = os.open("/workspace/f%d" % i, os.O_RDWR | os.O_CREAT)
    os.write(f, os.urandom(block)); os.fsync(f)
    n = block
    for _ in range(13):
        fcntl.ioctl(f, 0x4020940d, struct.pack("qQQQ", f, 0, n, n))
        n *= 2
print("made", n)`;

/** Files inside that are removed and that the front still has open. */
function removed() {
  const pid = d.frontPid();
  return fs.readdirSync(`/proc/${pid}/fd`).filter((fd) => {
    try {
      return /\/f\d+ \(deleted\)$/.test(fs.readlinkSync(`/proc/${pid}/fd/${fd}`));
    } catch {
      return false;
    }
  }).length;
}

async function download(id, name) {
  const s = net.connect(d.port, '127.0.0.1');
  await once(s, 'connect');
  s.write(`GET /v1/sandboxes/${id}/files?path=${encodeURIComponent(name)} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${other}\r\n\r\n`);
  await once(s, 'readable'); // and reads no more: the front holds the file
  return s;
}

test('another key is served while the front closes files of many extents', async () => {
  const a = await d.api('POST', '/v1/sandboxes', {}, { key: other });
  const inA = (argv) => d.api('POST', `/v1/sandboxes/${a.id}/exec`, { argv, timeout_ms: 60_000 }, { key: other });
  const b = await d.sandbox();
  await serveInside(d, b.id, 8000, rawServer(8000, `
read_head(c)
c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')`), { key: other });
  const ask = () => d.call('GET', '/', undefined, { key: null, headers: { host: `8000-${b.id}.localhost:${d.port}` } });
  assert.equal((await ask()).text, 'ok');
  const made = await inA(['python3', '-c', MAKE]);
  assert.match(made.stdout, /made/, made.stderr);
  const open = await Promise.all(Array.from({ length: FILES }, (_, i) => download(a.id, `/workspace/f${i}`)));
  assert.equal((await inA(['sh', '-c', 'rm /workspace/f*'])).exit_code, 0);
  assert.equal(removed(), FILES);
  for (const s of open) s.destroy();
  await poll('the front has begun to close them', () => removed() < FILES);
  const began = Date.now();
  assert.equal((await ask()).text, 'ok');
  const left = removed();
  const took = Date.now() - began;
  await poll('all are closed', () => removed() === 0, { deadline: 60_000 });
  assert.ok(left > FILES / 3, `it did not wait for them: ${left} were left after ${took} ms, and all were closed after ${Date.now() - began}`);
});

test('another key\'s create does not wait for all that one key has under way', async (t) => {
  const e = await startDaemon({ args: ['--pool', '0', '--memory', '16M', '--disk', '16M', '--pids', '64'] });
  t.after(() => e.stop());
  const [loud, quiet] = [await e.post('/v1/keys', {}), await e.post('/v1/keys', {})];
  const make = (key) => e.api('POST', '/v1/sandboxes', {}, { key });
  const MOST = 150;
  let done = 0;
  const all = Array.from({ length: MOST }, () => make(loud.key).then(() => done++));
  await Promise.race(all);
  const before = done;
  await make(quiet.key);
  assert.ok(done - before < MOST / 2, `${done - before} of ${MOST - before} creates of the other key came first`);
  await Promise.all(all);
  assert.equal(done, MOST, 'those that waited are made as well');
});

// Files on a disk that is full: no half-written file is visible, and the daemon keeps running.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import zlib from 'node:zlib';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';

const MiB = 1 << 20;
let d, s;
before(async () => {
  d = await startDaemon({});
  s = await d.post('/v1/sandboxes', { limits: { disk: 32 * MiB } });
});
after(() => d?.stop());

const url = (path, o = {}, what = '') => `/v1/sandboxes/${s.id}/files${what}?${Object.entries({ path, ...o }).map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join('&')}`;
const put = (path, body, o, headers) => d.call('PUT', url(path, o), Buffer.from(body), { headers });
const read = (path) => d.call('GET', url(path));
const sh = async (command, opts) => {
  const r = await d.exec(s.id, command, opts);
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};
const full = async (what) => {
  const a = await what;
  assert.deepEqual([a.status, a.json?.error?.code], [507, 'disk_full'], a.text);
};

test('an upload larger than the disk is refused and keeps the old file', async () => {
  const old = crypto.randomBytes(300_000);
  await put('f', old);
  await full(put('f', Buffer.alloc(40 * MiB, 1)));
  await full(put('f', Buffer.alloc(40 * MiB, 1), { atomic: 1 }));
  await full(put('f', Buffer.alloc(40 * MiB, 1), { append: 1 }));
  await full(put('new', Buffer.alloc(40 * MiB, 1)));
  await full(put('f', zlib.gzipSync(Buffer.alloc(64 * MiB)), {}, { 'content-encoding': 'gzip' }));
  assert.ok((await read('f')).bytes.equals(old));
  assert.equal(await sh('ls -A /workspace'), 'f\n');
});

test('an append that does not fit keeps the old contents', async () => {
  for (const size of [200_000, 3 * MiB + 1]) {
    const old = Buffer.alloc(size, 'o');
    await put('log', old);
    await full(put('log', Buffer.alloc(18 * MiB, 'n'), { append: 1 }));
    assert.ok((await read('log')).bytes.equals(old));
    assert.equal((await put('log', Buffer.alloc(4 * MiB, 'n'), { append: 1 })).json.size, size + 4 * MiB);
    await sh('rm log');
  }
});

test('a write on a full disk succeeds or is 507 and keeps the old content', async () => {
  const small = Buffer.from('small and old');
  const some = crypto.randomBytes(50_000);
  const large = crypto.randomBytes(3 * MiB);
  await put('small', small);
  await put('some', some);
  await put('large', large);
  // until not even one block is left
  await sh(`python3 -c "
import os
f = open('/workspace/fill', 'ab', buffering=0)
for size in [1 << 20, 1 << 16, 4096]:
    try:
        while True: f.write(b'x' * size); os.fsync(f.fileno())
    except OSError: pass
"`);
  const answers = [];
  for (const [path, body] of [['small', 'n'.repeat(60_000)], ['some', crypto.randomBytes(60_000)], ['some', crypto.randomBytes(50_000)], ['large', crypto.randomBytes(4 * MiB)], ['large', crypto.randomBytes(2 * MiB)], ['fresh', crypto.randomBytes(64_000)], ['fresh-large', crypto.randomBytes(MiB)]]) {
    for (const o of [{}, { append: 1 }, { atomic: 1 }]) {
      const a = await put(path, body, o);
      answers.push(a.status);
      if (a.status === 507) {
        const now = await read(path);
        const was = { small, some, large }[path];
        if (was === undefined) assert.equal(now.status, 404, `${path} ${JSON.stringify(o)}`);
        else assert.ok(now.bytes.equals(was), `${path} ${JSON.stringify(o)} is what it was`);
      } else {
        assert.equal(a.status, 200, a.text); // metadata had room for a little more
        const now = await read(path);
        assert.ok(o.append ? now.bytes.subarray(-body.length).equals(Buffer.from(body)) : now.bytes.equals(Buffer.from(body)));
        break;
      }
    }
  }
  assert.ok(answers.includes(507), `something did not fit: ${answers}`);
  await full(d.call('POST', url('large', { to: '/dev/shm/../../workspace/deep/x/y', parents: 1 }, '/copy')).then(async (a) => (a.status === 200 ? full(put('another', Buffer.alloc(MiB))).then(() => ({ status: 507, json: { error: { code: 'disk_full' } } })) : a)));
});

test('room again: everything works again', async () => {
  await sh('rm -f /workspace/fill; sync');
  assert.equal((await put('after', crypto.randomBytes(MiB))).status, 200);
  assert.equal((await d.call('GET', '/health')).status, 200);
});

// Damaged and missing files: one bad record costs one sandbox, a bad database is
// said clearly and touches nothing.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { initsOf, recordsOf, settled } from '../lib/chaos.mjs';
import { BASE, BIN, poll, run, startDaemon } from '../lib/cove.mjs';
import { isAlive } from '../lib/host.mjs';

const S = '/v1/sandboxes';
let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const file = (...names) => path.join(d.dir, ...names);

/** Bytes of a file, changed where they lie. */
function rewrite(f, at, change) {
  const fd = fs.openSync(f, 'r+');
  const bytes = Buffer.alloc(576);
  const n = fs.readSync(fd, bytes, 0, bytes.length, at);
  change(bytes);
  fs.writeSync(fd, bytes, 0, n, at);
  fs.closeSync(fd);
}

/** How each damage looks to the next keeper: not a record. */
const damages = {
  'one bit': (f, at) => rewrite(f, at, (bytes) => (bytes[100] ^= 1)),
  'half a record': (f, at) => rewrite(f, at, (bytes) => bytes.fill(0, 100)),
  'a record without a name': (f, at) => rewrite(f, at, (bytes) => bytes.fill(0xff, 16, 48)),
  'no record': (f, at) => rewrite(f, at, (bytes) => bytes.fill(0)),
};

for (const [what, damage] of Object.entries(damages)) {
  test(`${what}: that sandbox ends whole, the others live on`, async () => {
    const [bad, good] = [await d.sandbox(), await d.sandbox()];
    const init = initsOf(d.dir).get(bad.id);
    await d.process(bad.id, ['sleep', '1000']);
    await d.kill9('both');
    damage(file('records'), recordsOf(d.dir).get(bad.id));
    await d.restart();
    await poll('nothing of it runs', () => !isAlive(init));
    assert.deepEqual(await d.get(`${S}/${good.id}`), good);
    assert.equal((await d.exec(good.id, ['echo', 'fine'])).stdout, 'fine\n');
    const now = await d.get(`${S}/${bad.id}`);
    assert.equal(now.state, 'stopped');
    assert.ok(now.reason.length > 0);
    const again = await d.call('POST', `${S}/${bad.id}/resume`);
    assert.ok(again.status >= 400 && again.status < 500, again.text);
    for (const s of [bad, good]) await d.del(`${S}/${s.id}`);
    assert.deepEqual((await settled(d)).all, []);
  });
}

test('a damaged record of a snapshot costs that snapshot, and not what stands on it', async () => {
  const a = await d.sandbox();
  await d.exec(a.id, 'echo kept > /workspace/f');
  const [bad, good] = [await d.post(`${S}/${a.id}/snapshots`), await d.post(`${S}/${a.id}/snapshots`)];
  const b = await d.sandbox({ snapshot: bad.id });
  await d.kill9('both');
  damages['one bit'](file('snapshots', bad.id), 0);
  await d.restart();
  assert.deepEqual((await d.get('/v1/snapshots')).snapshots, [good]);
  await d.fails(404, 'not_found', 'POST', S, { snapshot: bad.id });
  assert.equal((await d.exec(b.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
  const c = await d.sandbox({ snapshot: good.id });
  assert.equal((await d.exec(c.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
  for (const s of [a, b, c]) await d.del(`${S}/${s.id}`);
  await d.del(`/v1/snapshots/${good.id}`);
  await settled(d);
});

test('what cannot be recorded is not done, and can be asked for again', async (t) => {
  const writable = async (yes) => (await run('chattr', [yes ? '-i' : '+i', file('records')])).status === 0;
  const s = await d.sandbox();
  await d.process(s.id, ['sleep', '1000'], { id: 'job' });
  await settled(d); // the pool has nothing to record meanwhile
  if (!(await writable(false))) return t.skip('no immutable files here');
  try {
    await d.fails(500, 'internal', 'POST', `${S}/${s.id}/pause`, { memory: false });
    assert.equal((await d.get(`${S}/${s.id}/processes/job`)).state, 'running');
    await writable(true);
    assert.equal((await d.post(`${S}/${s.id}/pause`, { memory: false })).state, 'stopped');
    assert.equal((await d.post(`${S}/${s.id}/resume`)).state, 'running');
    await writable(false);
    await d.fails(500, 'internal', 'DELETE', `${S}/${s.id}`);
  } finally {
    await writable(true);
  }
  await d.del(`${S}/${s.id}`);
  await settled(d);
});

test('names in the state directory that are nobody\'s do not keep it from being served', async () => {
  await d.kill9('both');
  fs.writeFileSync(file('run', 'stray'), '');
  fs.appendFileSync(file('records'), 'not a record');
  await d.restart();
  await settled(d);
});

test('with a damaged tag it is not served: its sandboxes would not be found', async () => {
  const s = await d.sandbox();
  await d.end();
  const tag = fs.readFileSync(file('tag'));
  for (const bytes of [tag.subarray(1), Buffer.alloc(tag.length, 'X')]) {
    fs.writeFileSync(file('tag'), bytes);
    const r = await run(BIN, ['serve', '--listen', '127.0.0.1:0', '--state', d.dir, '--base', BASE, '--network', 'none'], { deadline: 15_000 });
    assert.match(r.stderr, /tag is damaged/);
  }
  fs.writeFileSync(file('tag'), tag);
  await d.restart();
  assert.deepEqual((await d.get(S)).sandboxes, [s]);
  await d.del(`${S}/${s.id}`);
});

test('without its database the daemon knows no sandbox, and so none is left', async () => {
  await d.sandbox();
  await d.kill9('both');
  for (const name of fs.readdirSync(file('front'))) fs.unlinkSync(file('front', name));
  await d.restart();
  assert.deepEqual((await settled(d)).all, []);
  const s = await d.sandbox();
  await d.del(`${S}/${s.id}`);
});

test('a damaged database is a clear error at the start, not a daemon that tries for ever', async () => {
  const s = await d.sandbox();
  const init = initsOf(d.dir).get(s.id);
  await d.end(); // so that everything is in the one file
  const whole = fs.readFileSync(file('front', 'cove.db'));
  const broken = {
    'cut in the middle': whole.subarray(0, Math.floor(whole.length / 2) + 100),
    'cut in its first page': whole.subarray(0, 1000),
    'something else': Buffer.alloc(whole.length, 'not a database '),
    'bits in its tables': Buffer.from(whole).fill(0xff, 4096),
  };
  for (const [what, bytes] of Object.entries(broken)) {
    fs.writeFileSync(file('front', 'cove.db'), bytes);
    const r = await run(BIN, ['serve', '--listen', '127.0.0.1:0', '--state', d.dir, '--base', BASE, '--pool', '2', '--network', 'none'], { deadline: 15_000 });
    assert.ok(r.status > 0, `${what}: status ${r.status} ${r.signal}`);
    assert.match(r.stderr, /database: /, what);
    assert.match(r.stderr.trim().split('\n').at(-1), /^cove serve: /, what);
    assert.deepEqual([...initsOf(d.dir)], [[s.id, init]], `${what}: the sandbox is untouched`);
  }
  fs.writeFileSync(file('front', 'cove.db'), whole);
  await d.restart();
  assert.deepEqual((await d.get(S)).sandboxes, [s]);
  assert.equal((await d.exec(s.id, ['echo', 'fine'])).stdout, 'fine\n');
  await d.del(`${S}/${s.id}`);
  await settled(d);
});

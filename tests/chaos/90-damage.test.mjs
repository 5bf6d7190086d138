// Damaged and missing files: a bad record puts one sandbox into quarantine and destroys nothing, a bad
// database is reported and nothing is changed.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { initsOf, recordsOf, settled } from '../lib/chaos.mjs';
import { BASE, BIN, poll, run, startDaemon } from '../lib/cove.mjs';
import { isAlive } from '../lib/host.mjs';
import { tar } from '../lib/image.mjs';

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

/** Makes the sum of a record right again (src/keeper/life/sealed.c). */
function seal(r) {
  r.writeBigUInt64LE(0n, 16);
  let h = 14695981039346656037n;
  for (const byte of r.subarray(0, 24 + r.readUInt32LE(8))) h = BigInt.asUintN(64, (h ^ BigInt(byte)) * 1099511628211n);
  r.writeBigUInt64LE(h, 16);
}

/** A snapshot whose record says that a client knows of it, in both copies: that follows the answer. */
async function take(on, sandbox) {
  const snap = await on.post(`${S}/${sandbox}/snapshots`);
  const told = (name) => {
    const bytes = fs.readFileSync(path.join(on.dir, 'snapshots', name));
    return (bytes.readUInt32LE(bytes.length - 20) & 4) !== 0; // flags, before two u64
  };
  await poll('its record says so', () => told(snap.id) && told(`.copy-${snap.id}`));
  return snap;
}

/** Ways to damage a record; each looks different to the next keeper. */
const damages = {
  'one bit': (f, at) => rewrite(f, at, (bytes) => (bytes[100] ^= 1)),
  'half a record': (f, at) => rewrite(f, at, (bytes) => bytes.fill(0, 100)),
  'a record without its head': (f, at) => rewrite(f, at, (bytes) => bytes.fill(0, 0, 24)),
  'a record without a name': (f, at) => rewrite(f, at, (bytes) => bytes.fill(0xff, 24, 60)),
  'a record of zeros': (f, at) => rewrite(f, at, (bytes) => bytes.fill(0)),
};

const doctor = async () => (await d.cli(['doctor', '--state', d.dir])).stdout;

for (const [what, damage] of Object.entries(damages)) {
  test(`${what} puts a sandbox into quarantine, and recover makes it run again`, async () => {
    const [bad, good] = [await d.sandbox(), await d.sandbox()];
    const init = initsOf(d.dir).get(bad.id);
    await d.exec(bad.id, 'echo kept > /workspace/f');
    const p = await d.process(bad.id, ['sleep', '1000']);
    await d.kill9('both');
    damage(file('sandboxes'), recordsOf(d.dir).get(bad.id));
    await d.restart();
    assert.deepEqual(await d.get(`${S}/${good.id}`), good);
    assert.equal((await d.exec(good.id, ['echo', 'fine'])).stdout, 'fine\n');
    const now = await d.get(`${S}/${bad.id}`);
    assert.equal(now.state, 'damaged');
    assert.ok(now.reason.length > 0);
    assert.ok(isAlive(init), 'its processes run on');
    for (const [method, url, body] of [['POST', 'exec', { argv: ['true'] }], ['POST', 'resume', {}], ['POST', 'pause', {}], ['POST', 'timeout', { timeout_ms: 1000 }], ['POST', 'snapshots', {}]]) {
      const e = await d.fails(409, 'conflict', method, `${S}/${bad.id}/${url}`, body);
      assert.match(e.message, /damaged .*; recover it .* or delete it/, url);
    }
    assert.match(await doctor(), new RegExp(`DAMAGED .*${bad.id}: .*\n.*cove sandbox recover ${bad.id}`));

    const back = await d.cli(['sandbox', 'recover', bad.id]);
    assert.equal(back.status, 0, back.stderr);
    const { changed_at: _, ...rest } = await d.get(`${S}/${bad.id}`);
    const { changed_at: __, ...before } = bad;
    assert.deepEqual(rest, before);
    assert.equal((await d.get(`${S}/${bad.id}/processes/${p.id}`)).state, 'running');
    assert.equal((await d.exec(bad.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
    assert.doesNotMatch(await doctor(), /DAMAGED .*[a-z0-9]{20}:/);
    await d.kill9('both');
    await d.restart();
    assert.equal((await d.get(`${S}/${bad.id}`)).state, 'running');
    for (const s of [bad, good]) await d.del(`${S}/${s.id}`);
    assert.deepEqual((await settled(d)).all, []);
  });
}

test('a stopped sandbox whose record is damaged keeps its files', async () => {
  const s = await d.sandbox();
  await d.exec(s.id, 'echo kept > /workspace/f');
  await d.post(`${S}/${s.id}/pause`, { memory: false });
  await d.kill9('both');
  damages['a record of zeros'](file('sandboxes'), recordsOf(d.dir).get(s.id));
  await d.restart();
  assert.equal((await d.get(`${S}/${s.id}`)).state, 'damaged');
  await d.kill9('both'); // a second start changes nothing
  await d.restart();
  assert.equal((await d.get(`${S}/${s.id}`)).state, 'damaged');
  assert.equal((await d.post(`${S}/${s.id}/recover`)).state, 'stopped');
  await d.fails(409, 'conflict', 'POST', `${S}/${s.id}/recover`);
  assert.equal((await d.post(`${S}/${s.id}/resume`)).state, 'running');
  assert.equal((await d.exec(s.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
  await d.del(`${S}/${s.id}`);
  await settled(d);
});

test('the timeout of a damaged sandbox does not delete it, also right after its recovery', async () => {
  const s = await d.sandbox({ timeout_ms: 3_600_000 });
  await d.post(`${S}/${s.id}/timeout`, { timeout_ms: 300 });
  await d.kill9('both');
  damages['one bit'](file('sandboxes'), recordsOf(d.dir).get(s.id));
  await poll('its time is over', () => Date.now() > Date.parse(s.created_at) + 1000);
  await d.restart();
  assert.equal((await d.get(`${S}/${s.id}`)).state, 'damaged');
  const back = await d.post(`${S}/${s.id}/recover`);
  assert.equal(back.state, 'running');
  assert.ok(Date.parse(back.ends_at) > Date.now() + 3_000_000, back.ends_at);
  await d.del(`${S}/${s.id}`);
  await settled(d);
});

test('deleting a damaged sandbox leaves nothing', async () => {
  const [up, down] = [await d.sandbox(), await d.sandbox()];
  await d.post(`${S}/${down.id}/pause`, { memory: false });
  const init = initsOf(d.dir).get(up.id);
  await d.kill9('both');
  for (const s of [up, down]) damages['one bit'](file('sandboxes'), recordsOf(d.dir).get(s.id));
  await d.restart();
  assert.equal((await d.cli(['sandbox', 'delete', up.id, down.id])).status, 0);
  await poll('its init is gone', () => !isAlive(init));
  assert.deepEqual((await settled(d)).all, []);
  assert.deepEqual(fs.readdirSync(file('damaged')).filter((n) => !n.startsWith('record-')), []);
});

test('without DIR/run a running sandbox is damaged, not running with every call refused', async () => {
  const s = await d.sandbox();
  await d.exec(s.id, 'echo kept > /workspace/f');
  await d.kill9('both');
  fs.rmSync(file('run'), { recursive: true });
  await d.restart();
  const now = await d.get(`${S}/${s.id}`);
  assert.equal(now.state, 'damaged');
  assert.match(now.reason, /socket/);
  assert.equal((await d.post(`${S}/${s.id}/recover`)).state, 'stopped');
  assert.equal((await d.post(`${S}/${s.id}/resume`)).state, 'running');
  assert.equal((await d.exec(s.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
  await d.del(`${S}/${s.id}`);
  await settled(d);
});

test('`stop --all` ends the processes of a damaged sandbox and keeps its files', async () => {
  const s = await d.sandbox();
  await d.exec(s.id, 'echo kept > /workspace/f');
  const init = initsOf(d.dir).get(s.id);
  await d.kill9('both');
  damages['one bit'](file('sandboxes'), recordsOf(d.dir).get(s.id));
  assert.equal((await run(BIN, ['stop', '--all', '--state', d.dir])).status, 0);
  assert.ok(!isAlive(init));
  await d.restart();
  assert.equal((await d.get(`${S}/${s.id}`)).state, 'damaged');
  assert.equal((await d.post(`${S}/${s.id}/recover`)).state, 'stopped');
  assert.equal((await d.post(`${S}/${s.id}/resume`)).state, 'running');
  assert.equal((await d.exec(s.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
  await d.del(`${S}/${s.id}`);
  await settled(d);
});

test('a record of a newer release refuses the start without changes', async () => {
  const s = await d.sandbox();
  const init = initsOf(d.dir).get(s.id);
  await d.end();
  const whole = fs.readFileSync(file('sandboxes'));
  for (const change of [(r) => r.writeUInt32LE(99, 4), (r) => r.write('taken', r.indexOf('given'))]) {
    const at = recordsOf(d.dir).get(s.id);
    const bytes = Buffer.from(whole);
    change(bytes.subarray(at, at + 2048));
    seal(bytes.subarray(at, at + 2048));
    fs.writeFileSync(file('sandboxes'), bytes);
    const r = await run(BIN, ['serve', '--listen', '127.0.0.1:0', '--state', d.dir, '--base', BASE, '--network', 'none'], { deadline: 15_000 });
    assert.ok(r.status > 0);
    assert.match(r.stderr, /newer release of Cove/);
    assert.deepEqual([...initsOf(d.dir)], [[s.id, init]]);
    assert.deepEqual(fs.readFileSync(file('sandboxes')), bytes);
  }
  fs.writeFileSync(file('sandboxes'), whole);
  await d.restart();
  assert.deepEqual((await d.get(S)).sandboxes, [s]);
  await d.del(`${S}/${s.id}`);
  await settled(d);
});

test('one damaged copy of a snapshot\'s record is mended from the other', async () => {
  const a = await d.sandbox();
  await d.exec(a.id, 'echo kept > /workspace/f');
  const snap = await take(d, a.id);
  await d.kill9('both');
  const whole = fs.readFileSync(file('snapshots', snap.id));
  damages['one bit'](file('snapshots', snap.id), 0);
  await d.restart();
  assert.deepEqual((await d.get('/v1/snapshots')).snapshots, [snap]);
  assert.deepEqual(fs.readFileSync(file('snapshots', snap.id)), whole);
  const b = await d.sandbox({ snapshot: snap.id });
  assert.equal((await d.exec(b.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
  for (const s of [a, b]) await d.del(`${S}/${s.id}`);
  await d.del(`/v1/snapshots/${snap.id}`);
  await settled(d);
});

test('a damaged second copy of a record is repaired', async () => {
  const t = await onTemplate('twice');
  const snap = await take(d, t.s.id);
  const files = [['snapshots', snap.id], ['images', 'versions', t.version], ['images', 'names', 'twice']];
  const copy = (names) => file(...names.slice(0, -1), `.copy-${names.at(-1)}`);
  await d.kill9('both');
  for (const names of files) damages['one bit'](copy(names), 0), fs.appendFileSync(copy(names), '?');
  await d.restart();
  for (const names of files) assert.deepEqual(fs.readFileSync(copy(names)), fs.readFileSync(file(...names)));
  await d.kill9('both');
  for (const names of files) fs.writeFileSync(file(...names), '?');
  await d.restart();
  assert.deepEqual((await d.get('/v1/snapshots')).snapshots, [snap]);
  const again = [await d.sandbox({ template: 'twice' }), await d.sandbox({ snapshot: snap.id })];
  for (const s of again) assert.equal(await t.mark(s.id), 'twice');
  for (const s of [t.s, ...again]) await d.del(`${S}/${s.id}`);
  await d.del(`/v1/snapshots/${snap.id}`);
  await d.call('DELETE', '/v1/templates/twice');
  await settled(d);
});

test('a snapshot without a record is kept if it has a row, else removed', async () => {
  const a = await d.sandbox();
  await d.exec(a.id, 'echo kept > /workspace/f');
  const [lost, found] = [await take(d, a.id), await take(d, a.id)];
  await d.kill9('both');
  const whole = fs.readFileSync(file('snapshots', lost.id));
  for (const name of [lost.id, `.copy-${lost.id}`, found.id]) fs.unlinkSync(file('snapshots', name));
  await d.restart();
  assert.deepEqual((await d.get('/v1/snapshots')).snapshots, [found, { ...lost, damaged: true }]);
  await d.kill9('both');
  fs.writeFileSync(file('snapshots', lost.id), whole);
  await d.restart();
  const b = await d.sandbox({ snapshot: lost.id });
  assert.equal((await d.exec(b.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
  for (const s of [a, b]) await d.del(`${S}/${s.id}`);
  for (const s of [lost, found]) await d.del(`/v1/snapshots/${s.id}`);
  await settled(d);
});

test('a snapshot with both records damaged is kept, and sandboxes on it run', async () => {
  const a = await d.sandbox();
  await d.exec(a.id, 'echo kept > /workspace/f');
  const [bad, good] = [await take(d, a.id), await take(d, a.id)];
  const b = await d.sandbox({ snapshot: bad.id });
  await d.kill9('both');
  for (const name of [bad.id, `.copy-${bad.id}`]) damages['one bit'](file('snapshots', name), 0);
  await d.restart();
  assert.deepEqual((await d.get('/v1/snapshots')).snapshots, [good, { ...bad, damaged: true }]);
  assert.match((await d.fails(409, 'conflict', 'POST', S, { snapshot: bad.id })).message, /damaged/);
  assert.match(await doctor(), new RegExp(`DAMAGED .*snapshot-${bad.id}`));
  assert.equal((await d.exec(b.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
  const c = await d.sandbox({ snapshot: good.id });
  assert.equal((await d.exec(c.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
  for (const s of [a, b, c]) await d.del(`${S}/${s.id}`);
  for (const s of [bad, good]) await d.del(`/v1/snapshots/${s.id}`);
  await settled(d);
  assert.deepEqual(fs.readdirSync(file('snapshots')), []);
});

test('layers kept for a damaged sandbox are removed with it', async () => {
  const a = await d.sandbox();
  const [bad, good] = [await take(d, a.id), await take(d, a.id)];
  const b = await d.sandbox({ snapshot: bad.id });
  await d.kill9('both');
  for (const name of [bad.id, `.copy-${bad.id}`]) damages['one bit'](file('snapshots', name), 0);
  await d.restart();
  for (const s of [bad, good]) await d.del(`/v1/snapshots/${s.id}`);
  await settled(d);
  assert.equal(fs.readdirSync(file('snapshots')).includes(good.id), true, 'the damaged one may stand on it');
  await d.del(`${S}/${b.id}`);
  await poll('no snapshot is left', () => fs.readdirSync(file('snapshots')).length === 0);

  const last = await take(d, a.id);
  fs.writeFileSync(`/proc/${d.keeperPid()}/root${d.dir}/disk/${a.id}/record`, '?');
  await d.kill9('both');
  damages['one bit'](file('sandboxes'), recordsOf(d.dir).get(a.id));
  await d.restart();
  await d.fails(409, 'conflict', 'POST', `${S}/${a.id}/recover`); // nothing says what it stands on
  await d.del(`/v1/snapshots/${last.id}`);
  await settled(d);
  assert.equal(fs.readdirSync(file('snapshots')).includes(last.id), true);
  await d.del(`${S}/${a.id}`);
  await poll('no snapshot is left', () => fs.readdirSync(file('snapshots')).length === 0);
  await settled(d);
});

/** A template of one layer with one file, and a sandbox on it that is stopped. */
async function onTemplate(name) {
  const a = await d.call('PUT', `/v1/templates/${name}`, tar([{ name: 'etc/mark', data: name }, { name: 'tmp/', mode: 0o1777 }]), { headers: { 'content-type': 'application/x-tar' } });
  assert.ok(a.status < 300, a.text);
  const s = await d.sandbox({ template: name });
  return { s, version: (await d.get(`/v1/templates/${name}`)).id, mark: async (id) => (await d.call('GET', `${S}/${id}/files?path=/etc/mark`)).text };
}

test('one damaged copy of a template\'s files is mended from the other', async () => {
  const t = await onTemplate('mended');
  await d.kill9('both');
  damages['one bit'](file('images', 'versions', t.version), 0);
  fs.writeFileSync(file('images', 'names', 'mended'), 'x'.repeat(20));
  await d.restart();
  const again = await d.sandbox({ template: 'mended' });
  assert.equal(await t.mark(again.id), 'mended');
  for (const s of [t.s, again]) await d.del(`${S}/${s.id}`);
  await d.del('/v1/templates/mended');
  await settled(d);
});

test('a template with both records damaged is kept, and sandboxes on it run', async () => {
  const t = await onTemplate('lost');
  await d.kill9('both');
  const whole = fs.readFileSync(file('images', 'versions', t.version));
  for (const name of [t.version, `.copy-${t.version}`]) damages['one bit'](file('images', 'versions', name), 0);
  await d.restart();
  assert.equal((await d.get('/v1/templates')).templates.find((x) => x.name === 'lost').state, 'damaged');
  assert.match((await d.fails(409, 'conflict', 'POST', S, { template: 'lost' })).message, /damaged/);
  assert.match(await doctor(), new RegExp(`DAMAGED .*template-${t.version}`));
  assert.equal(await t.mark(t.s.id), 'lost');
  await d.kill9('both'); // its layers were not swept: with the file back all is as it was
  fs.writeFileSync(file('images', 'versions', t.version), whole);
  await d.restart();
  const again = await d.sandbox({ template: 'lost' });
  assert.equal(await t.mark(again.id), 'lost');
  for (const s of [t.s, again]) await d.del(`${S}/${s.id}`);
  await d.del('/v1/templates/lost');
  await settled(d);
});

test('a damaged name of a template does not cost its layers', async () => {
  const t = await onTemplate('named');
  await d.del(`${S}/${t.s.id}`);
  await settled(d);
  await d.kill9('both');
  for (const name of ['named', '.copy-named']) fs.writeFileSync(file('images', 'names', name), '?');
  await d.restart();
  await d.fails(404, 'not_found', 'POST', S, { template: 'named' });
  await d.kill9('both');
  fs.writeFileSync(file('images', 'names', 'named'), t.version);
  await d.restart();
  const again = await d.sandbox({ template: 'named' });
  assert.equal(await t.mark(again.id), 'named');
  await d.del(`${S}/${again.id}`);
  await d.kill9('both');
  for (const name of ['named', '.copy-named']) fs.writeFileSync(file('images', 'names', name), '?');
  await d.restart();
  assert.match(await doctor(), /template-name-named/);
  await d.del('/v1/templates/named'); // deciding that it is lost lets its layers go
  assert.doesNotMatch(await doctor(), /template-name-named/);
  assert.ok(!fs.readdirSync(file('images', 'names')).some((n) => n.endsWith('named')));
  await poll('its version is gone', () => !fs.existsSync(file('images', 'versions', t.version)));
  await settled(d);
});

test('a state directory without its lock file is refused with instructions', async () => {
  await d.end();
  fs.renameSync(file('lock'), file('lock.aside'));
  const r = await run(BIN, ['serve', '--listen', '127.0.0.1:0', '--state', d.dir, '--base', BASE, '--network', 'none'], { deadline: 15_000 });
  assert.notEqual(r.status, 0);
  assert.match(r.stderr, /lock is missing; .*touch /);
  fs.renameSync(file('lock.aside'), file('lock'));
  await d.restart();
});

test('a running sandbox whose record says stopped is ended and not booted twice', async () => {
  const s = await d.sandbox();
  await d.exec(s.id, 'echo kept > /workspace/f');
  await d.post(`${S}/${s.id}/pause`, { memory: false });
  await settled(d);
  const stopped = fs.readFileSync(file('sandboxes'));
  await d.post(`${S}/${s.id}/resume`);
  const init = initsOf(d.dir).get(s.id);
  await settled(d);
  await d.kill9('both');
  const now = fs.readFileSync(file('sandboxes'));
  const at = recordsOf(d.dir).get(s.id);
  stopped.copy(now, at, at, at + 2048); // its record is older than what runs
  fs.writeFileSync(file('sandboxes'), now);
  await d.restart();
  await poll('it has ended', () => !isAlive(init));
  assert.equal((await d.get(`${S}/${s.id}`)).state, 'stopped');
  assert.equal((await d.post(`${S}/${s.id}/resume`)).state, 'running');
  assert.equal((await d.exec(s.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
  await d.del(`${S}/${s.id}`);
  await settled(d);
});

test('an operation whose record cannot be written fails and can be repeated', async (t) => {
  const writable = async (yes) => (await run('chattr', [yes ? '-i' : '+i', file('sandboxes')])).status === 0;
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

test('unknown names in the state directory do not prevent the start', async () => {
  await d.kill9('both');
  fs.writeFileSync(file('run', 'stray'), '');
  fs.appendFileSync(file('sandboxes'), 'not a record');
  await d.restart();
  await settled(d);
});

test('a damaged tag is repaired from its copy; without both the start is refused', async () => {
  const s = await d.sandbox();
  const init = initsOf(d.dir).get(s.id);
  await d.end();
  const tag = fs.readFileSync(file('tag'));
  const copies = ['tag', '.copy-tag'];
  const damage = { missing: fs.unlinkSync, empty: (f) => fs.writeFileSync(f, ''), short: (f) => fs.writeFileSync(f, tag.subarray(1)), nonsense: (f) => fs.writeFileSync(f, 'X'.repeat(tag.length)) };
  for (const [how, change] of Object.entries(damage)) {
    for (const name of copies) {
      change(file(name));
      await d.restart();
      assert.deepEqual(initsOf(d.dir).get(s.id), init, `${name} is ${how}`);
      assert.deepEqual((await d.get(S)).sandboxes, [s]);
      await d.end();
      for (const c of copies) assert.deepEqual(fs.readFileSync(file(c)), tag);
    }
    for (const name of copies) change(file(name));
    const r = await run(BIN, ['serve', '--listen', '127.0.0.1:0', '--state', d.dir, '--base', BASE, '--network', 'none'], { deadline: 15_000 });
    assert.match(r.stderr, /tag is damaged or missing, and so is its copy/, how);
    for (const name of copies) fs.writeFileSync(file(name), tag);
  }
  const other = String(tag).replace(/^./, (c) => (c === 'b' ? 'c' : 'b')); // one bit, and a tag as good as any
  fs.writeFileSync(file('tag'), other);
  const r = await run(BIN, ['serve', '--listen', '127.0.0.1:0', '--state', d.dir, '--base', BASE, '--network', 'none'], { deadline: 15_000 });
  assert.match(r.stderr, new RegExp(`tag says ${other} and its copy, .copy-tag, says ${tag}`));
  fs.writeFileSync(file('tag'), tag);
  await d.restart();
  assert.deepEqual((await d.get(S)).sandboxes, [s]);
  await d.del(`${S}/${s.id}`);
  await settled(d);
});

test('a lost database refuses the start until the loss is accepted', async () => {
  const [up, down] = [await d.sandbox({ metadata: { a: 'b' } }), await d.sandbox()];
  await d.exec(up.id, 'echo kept > /workspace/f');
  const job = await d.process(up.id, ['sleep', '1000']);
  await d.post(`${S}/${down.id}/pause`, { memory: false });
  const snap = await take(d, up.id);
  const inits = initsOf(d.dir);
  await d.kill9('both');
  const aside = fs.mkdtempSync('/tmp/cove-db-');
  for (const name of fs.readdirSync(file('front'))) if (name.startsWith('cove.db')) fs.renameSync(file('front', name), path.join(aside, name));
  for (let i = 0; i < 2; i++) { // nor is it after another try
    const r = await run(BIN, ['serve', '--listen', '127.0.0.1:0', '--state', d.dir, '--base', BASE, '--pool', '2', '--network', 'none'], { deadline: 15_000 });
    assert.ok(r.status > 0);
    assert.match(r.stderr, /it is new, but 3 sandboxes and snapshots exist.*--accept lost-database/);
    for (const [id, pid] of initsOf(d.dir)) assert.equal(inits.get(id), pid);
  }
  d.args = ['--accept', 'lost-database'];
  await d.restart();
  const found = Object.fromEntries((await d.get(S)).sandboxes.map((s) => [s.id, s]));
  assert.deepEqual(Object.keys(found).sort(), [up.id, down.id].sort());
  assert.deepEqual([found[up.id].state, found[down.id].state], ['running', 'stopped']);
  assert.deepEqual(found[up.id].limits, up.limits);
  assert.deepEqual(found[up.id].metadata, {});
  assert.equal((await d.get(`${S}/${up.id}/processes/${job.id}`)).state, 'running');
  assert.deepEqual((await d.get('/v1/snapshots')).snapshots.map((s) => s.id), [snap.id]);
  const again = await d.sandbox({ snapshot: snap.id });
  assert.equal((await d.exec(again.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
  assert.equal((await d.post(`${S}/${down.id}/resume`)).state, 'running');

  await d.kill9('both'); // the database that was lost is found again
  for (const name of fs.readdirSync(file('front'))) if (name.startsWith('cove.db')) fs.unlinkSync(file('front', name));
  for (const name of fs.readdirSync(aside)) fs.renameSync(path.join(aside, name), file('front', name));
  fs.rmdirSync(aside);
  d.args = [];
  await d.restart();
  assert.deepEqual((await d.get(`${S}/${up.id}`)).metadata, { a: 'b' });
  // that one was made since: the old database does not know it, but a client was told of it
  for (const s of [up, down, again]) await d.del(`${S}/${s.id}`);
  await d.del(`/v1/snapshots/${snap.id}`);
  assert.deepEqual((await settled(d)).all, []);
});

test('rows lost in SQLite destroy no sandbox and no snapshot that a client was told of', async (t) => {
  const e = await startDaemon(); // its log holds nothing but this
  t.after(() => e.stop());
  const at = (name) => path.join(e.dir, 'front', name);
  const wal = at('cove.db-wal');
  const a = await e.sandbox();
  const end = fs.statSync(wal).size;
  const backup = fs.readdirSync(path.join(e.dir, 'front')).filter((n) => n.startsWith('cove.db')).map((n) => [n, fs.readFileSync(at(n))]);
  const b = await e.sandbox();
  await e.exec(b.id, 'echo kept > /workspace/f');
  const snap = await take(e, b.id);
  const gone = await e.sandbox();
  await e.del(`${S}/${gone.id}`);
  await settled(e);
  const inits = initsOf(e.dir);
  const lose = {
    'a byte of the log': () => rewrite(wal, end, (bytes) => (bytes[100] ^= 1)),
    'an older database': () => backup.forEach(([n, bytes]) => fs.writeFileSync(at(n), bytes)),
  };
  for (const [what, change] of Object.entries(lose)) {
    await e.kill9('both');
    change();
    await e.restart();
    const found = (await e.get(S)).sandboxes;
    assert.deepEqual(found.map((s) => s.id).sort(), [a.id, b.id].sort(), what);
    assert.ok(found.every((s) => s.state === 'running'), what);
    for (const id of [a.id, b.id]) assert.equal(initsOf(e.dir).get(id), inits.get(id), what);
    assert.deepEqual((await e.get('/v1/snapshots')).snapshots.map((s) => s.id), [snap.id], what);
    assert.equal((await e.exec(b.id, ['cat', '/workspace/f'])).stdout, 'kept\n', what);
  }
  for (const s of [a, b]) await e.del(`${S}/${s.id}`);
  await e.del(`/v1/snapshots/${snap.id}`);
  assert.deepEqual((await settled(e)).all, []);
});

test('a damaged database is a clear error at the start, not a daemon that tries without end', async () => {
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

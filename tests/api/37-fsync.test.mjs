// fsync in a sandbox: durable, or relaxed by choice. What a failure of the host does is in
// tests/chaos/30-reboot.test.mjs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';
import { initsOf } from '../lib/chaos.mjs';

const S = '/v1/sandboxes';
const WRITE = `python3 -c "import os; f = os.open('/workspace/file', os.O_WRONLY | os.O_CREAT); os.write(f, b'kept'); os.fsync(f)"`;

let d;
before(async () => (d = await startDaemon()));
after(() => d?.stop());

const isRelaxed = async (id) => /^overlay \/ .*\bvolatile\b/m.test((await d.exec(id, ['sed', 's/^[^ ]*/overlay/', '/proc/mounts'])).stdout);
const content = async (id) => (await d.exec(id, ['cat', '/workspace/file'])).stdout;
const halt = (id) => d.post(`${S}/${id}/pause`, { memory: false });

test('a sandbox is durable unless it or the server says otherwise', async () => {
  const plain = await d.sandbox();
  const relaxed = await d.sandbox({ fsync: 'relaxed' });
  assert.deepEqual([plain.fsync, plain.writes_lost_at, await isRelaxed(plain.id)], ['durable', null, false]);
  assert.deepEqual([relaxed.fsync, relaxed.writes_lost_at, await isRelaxed(relaxed.id)], ['relaxed', null, true]);
  await d.fails(400, 'invalid', 'POST', S, { fsync: 'sometimes' });
  for (const s of [plain, relaxed]) await d.del(`${S}/${s.id}`);
});

test('a relaxed sandbox that is stopped boots again, as often as it is asked to, with its files', async () => {
  const { id } = await d.sandbox({ fsync: 'relaxed' });
  await d.exec(id, WRITE);
  for (let i = 0; i < 3; i++) {
    await halt(id);
    const s = await d.post(`${S}/${id}/resume`);
    assert.deepEqual([s.state, s.fsync, s.writes_lost_at, await isRelaxed(id), await content(id)], ['running', 'relaxed', null, true, 'kept']);
  }
  await d.del(`${S}/${id}`);
});

test('a relaxed sandbox loses nothing when keeper, front and its init are killed at once', async () => {
  const { id } = await d.sandbox({ fsync: 'relaxed' });
  await d.exec(id, WRITE);
  const init = initsOf(d.dir).get(id);
  await d.kill9('both');
  process.kill(init, 'SIGKILL');
  await d.restart();
  await poll('it boots', () => d.post(`${S}/${id}/resume`));
  assert.equal(await content(id), 'kept');
  assert.equal((await d.get(`${S}/${id}`)).writes_lost_at, null, 'the host has not failed');
  await d.del(`${S}/${id}`);
});

test('an update counts from the next boot', async () => {
  const { id } = await d.sandbox();
  assert.equal((await d.api('PATCH', `${S}/${id}`, { fsync: 'relaxed' })).fsync, 'relaxed');
  assert.equal(await isRelaxed(id), false);
  await halt(id);
  await d.post(`${S}/${id}/resume`);
  assert.equal(await isRelaxed(id), true);
  await d.cli(['update', '--fsync', 'durable', id]);
  await d.fails(400, 'invalid', 'PATCH', `${S}/${id}`, { fsync: '' });
  await halt(id);
  await d.post(`${S}/${id}/resume`);
  assert.deepEqual([(await d.get(`${S}/${id}`)).fsync, await isRelaxed(id)], ['durable', false]);
  await d.del(`${S}/${id}`);
});

test('snapshots, forks and archives of a relaxed sandbox have everything that it wrote', async () => {
  const { id } = await d.sandbox({ fsync: 'relaxed' });
  await d.exec(id, WRITE);
  const snap = await d.post(`${S}/${id}/snapshots`);
  await d.exec(id, 'printf later > /workspace/file');
  const [{ sandbox: fork }] = (await d.post(`${S}/${id}/fork`, { count: 1 })).forks;
  const copy = await d.sandbox({ snapshot: snap.id });
  assert.deepEqual([fork.fsync, await isRelaxed(fork.id), await content(fork.id)], ['relaxed', true, 'later']);
  assert.deepEqual([copy.fsync, await isRelaxed(copy.id), await content(copy.id)], ['durable', false, 'kept']);
  const tar = await d.call('GET', `${S}/${id}/archive?path=/workspace`);
  assert.ok(tar.bytes.includes('later'));
  for (const s of [id, fork.id, copy.id]) await d.del(`${S}/${s}`);
  await d.del(`/v1/snapshots/${snap.id}`);
});

test('cove stop --all writes out what relaxed sandboxes wrote, and they boot afterwards', async () => {
  const id = (await d.cli(['create', '--fsync', 'relaxed'])).stdout.trim();
  await d.exec(id, WRITE);
  assert.equal((await d.cli(['stop', '--all', '--state', d.dir])).status, 0);
  await d.exited;
  await d.restart();
  assert.equal((await d.get(`${S}/${id}`)).reason, 'cove stop --all');
  await d.post(`${S}/${id}/resume`);
  assert.deepEqual([await content(id), (await d.get(`${S}/${id}`)).writes_lost_at], ['kept', null]);
  await d.del(`${S}/${id}`);
});

test('the setting fsync is the default of sandboxes that do not choose, and is checked before anything is made', async () => {
  const other = await startDaemon({ args: ['--fsync', 'relaxed'] });
  try {
    const a = await other.sandbox();
    const b = await other.sandbox({ fsync: 'durable' });
    assert.deepEqual([a.fsync, b.fsync], ['relaxed', 'durable']);
    for (const s of [a, b]) await other.del(`${S}/${s.id}`);
  } finally {
    await other.stop();
  }
  const dir = fs.mkdtempSync('/tmp/cove-fsync-');
  try {
    const r = await d.cli(['serve', '--state', `${dir}/state`, '--listen', '127.0.0.1:0', '--fsync', 'never']);
    assert.match(r.stderr, /fsync: 'never' is neither durable nor relaxed/);
    assert.equal(fs.existsSync(`${dir}/state`), false);
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
});

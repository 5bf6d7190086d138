// What an admin key sees and does with the sandboxes of other keys, and what becomes of those of a revoked key.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';

let d, theirs, box;
before(async () => {
  d = await startDaemon();
  theirs = await d.post('/v1/keys', { name: 'theirs' });
  box = await d.post('/v1/sandboxes', { name: 'work', log_output: true }, { key: theirs.key });
  await d.post(`/v1/sandboxes/${box.id}/exec`, { command: 'echo secret > note; echo hello' }, { key: theirs.key });
});
after(() => d.stop());

const as = (key = theirs.id) => ({ headers: { 'cove-as': key } });
const state = async (id) => (await d.get(`/v1/sandboxes/${id}`)).state;

test('an admin lists the sandboxes of all keys, and sees whose they are', async () => {
  const mine = await d.sandbox();
  assert.ok(!(await d.get('/v1/sandboxes')).sandboxes.some((s) => s.id === box.id));
  const all = (await d.get('/v1/sandboxes?all_keys=true')).sandboxes;
  assert.equal(all.find((s) => s.id === box.id).key, theirs.id);
  assert.equal(all.find((s) => s.id === mine.id).key, 'root');
  const r = await d.cli(['list', '--all-keys']);
  assert.match(r.stdout, new RegExp(`${box.id} +${theirs.id} +work +running`));
  // page by page
  const first = await d.get('/v1/sandboxes?all_keys=true&limit=1');
  const second = await d.get(`/v1/sandboxes?all_keys=true&limit=1&cursor=${first.next_cursor}`);
  assert.notEqual(first.sandboxes[0].id, second.sandboxes[0].id);
  await d.del(`/v1/sandboxes/${mine.id}`);
});

test('an admin inspects them, and reads their metrics and logs', async () => {
  assert.equal((await d.get(`/v1/sandboxes/${box.id}`)).key, theirs.id);
  await poll('it is measured', async () => (await d.get(`/v1/usage?all_keys=true&sandbox=${box.id}`)).sandboxes[0]?.key === theirs.id);
  assert.ok((await d.get(`/v1/sandboxes/${box.id}/metrics`)).points);
  await poll('its log is there', async () => JSON.stringify(await d.get(`/v1/sandboxes/${box.id}/logs`)).includes('hello'));
  const text = async (q) => (await d.call('GET', `/metrics${q}`)).text;
  await poll('it is in the metrics of all keys', async () => (await text('?all_keys=true')).includes(`cove_sandbox_memory_bytes{sandbox="${box.id}"}`));
  assert.ok(!(await text('')).includes(box.id));
});

test('no other key sees or does any of it', async () => {
  const { key } = await d.post('/v1/keys', {});
  for (const url of ['/v1/sandboxes?all_keys=true', '/v1/usage?all_keys=true', '/metrics?all_keys=true'])
    await d.fails(403, 'denied', 'GET', url, undefined, { key });
  await d.fails(403, 'denied', 'GET', '/v1/sandboxes', undefined, { key, ...as() });
  await d.fails(403, 'denied', 'GET', '/v1/sandboxes', undefined, { key: theirs.key, ...as('root') });
  for (const [method, url] of [['GET', ''], ['DELETE', ''], ['POST', '/pause'], ['GET', '/logs'], ['GET', '/metrics']])
    await d.fails(404, 'not_found', method, `/v1/sandboxes/${box.id}${url}`, undefined, { key });
});

test('an admin does not see the contents of a sandbox without saying for whom', async () => {
  const P = `/v1/sandboxes/${box.id}`;
  const closed = [
    ['POST', `${P}/exec`, { command: 'true' }], ['POST', `${P}/processes`, { argv: ['true'] }], ['GET', `${P}/processes`], ['GET', `${P}/processes/p1/logs`],
    ['GET', `${P}/files?path=note`], ['GET', `${P}/files/list?path=/`], ['GET', `${P}/archive?path=/workspace`], ['POST', `${P}/terminals`, {}],
    ['POST', `${P}/sessions`, {}], ['POST', `${P}/snapshots`, {}], ['POST', `${P}/fork`, {}], ['PATCH', P, { name: 'x' }], ['POST', `${P}/resume`, {}],
    ['PUT', `${P}/network`, {}], ['POST', `${P}/timeout`, { timeout_ms: 1 }],
  ];
  for (const [method, url, body] of closed) assert.equal((await d.call(method, url, body)).status, 404, `${method} ${url}`);
  await d.fails(404, 'not_found', 'GET', '/v1/sandboxes/work'); // nor by a name, which is within its key
});

test('with --as an admin acts for the key, and the key sees that in its events and in the log', async () => {
  const events = await d.sse('/v1/events', { key: theirs.key });
  const r = await d.cli(['exec', '--as', theirs.id, 'work', '--', 'cat', 'note']);
  assert.equal(r.stdout, 'secret\n', r.stderr);
  for await (const ev of events) {
    if (ev.event !== 'sandbox.admin') continue;
    const { sandbox, data } = typeof ev.data === 'string' ? JSON.parse(ev.data) : ev.data;
    assert.deepEqual([sandbox, data], [box.id, { by: 'root', call: 'startProcess' }]);
    break;
  }
  events.close();
  await poll('it is in the log', async () =>
    (await d.get(`/v1/sandboxes/${box.id}/logs?search=admin`, { key: theirs.key })).entries.some((l) => /sandbox admin: by=root call=/.test(l.message)));
  assert.match(d.log, new RegExp(`admin key root acts for key ${theirs.id}: `));
  assert.equal((await d.get('/v1/sandboxes', as())).sandboxes.length, 1);
  await d.fails(404, 'not_found', 'GET', '/v1/sandboxes', undefined, as('nosuchkey'));
  await d.fails(404, 'not_found', 'GET', '/v1/sandboxes', undefined, as('x'.repeat(400)));
});

test('looking at a list or at metrics is not audited, a read of the log is', async () => {
  const count = async () => (await d.get(`/v1/sandboxes/${box.id}/logs?search=admin&limit=1000`, { key: theirs.key })).entries.length;
  const was = await count();
  await d.get(`/v1/sandboxes/${box.id}`);
  await d.get('/v1/sandboxes?all_keys=true');
  await d.get(`/v1/sandboxes/${box.id}/metrics`);
  await d.get(`/v1/sandboxes/${box.id}/logs`);
  assert.equal(await count(), was + 1);
});

test('an admin stops and deletes the sandbox of another key, running or paused', async () => {
  for (const paused of [false, true]) {
    const s = await d.post('/v1/sandboxes', {}, { key: theirs.key });
    if (paused) await d.post(`/v1/sandboxes/${s.id}/pause`, {}, { key: theirs.key });
    assert.equal((await d.post(`/v1/sandboxes/${s.id}/pause`, { memory: false })).state, 'stopped');
    await d.del(`/v1/sandboxes/${s.id}`);
    await d.fails(404, 'not_found', 'GET', `/v1/sandboxes/${s.id}`, undefined, { key: theirs.key });
  }
});

/** A key with a running, a paused and a stopped sandbox. */
async function threeOf() {
  const { id, key } = await d.post('/v1/keys', {});
  const boxes = [];
  for (let i = 0; i < 3; i++) boxes.push((await d.post('/v1/sandboxes', {}, { key })).id);
  await d.post(`/v1/sandboxes/${boxes[1]}/pause`, {}, { key });
  await d.post(`/v1/sandboxes/${boxes[2]}/pause`, { memory: false }, { key });
  return { id, key, boxes };
}

test('no sandbox of a revoked key runs on unseen: kept ones are listed, and an admin still acts for the key', async () => {
  const { id, boxes } = await threeOf();
  const r = await d.cli(['key', 'revoke', id]);
  assert.match(r.stdout, /^revoked; 3 sandboxes kept \(/, r.stderr);
  assert.deepEqual((await d.get('/v1/sandboxes?all_keys=true')).sandboxes.filter((s) => s.key === id).map((s) => s.id), boxes);
  assert.deepEqual((await d.get('/v1/sandboxes', as(id))).sandboxes.map((s) => s.id), boxes);
  assert.deepEqual(await Promise.all(boxes.map(state)), ['running', 'paused', 'stopped']);
  assert.equal((await d.post(`/v1/sandboxes/${boxes[0]}/exec`, { command: 'echo on' }, as(id))).stdout, 'on\n');
  // a revoked key is found by what it left
  assert.deepEqual(await d.del(`/v1/keys/${id}?sandboxes=stop`), { id, sandboxes: 'stopped', count: 2, left: true });
  assert.deepEqual(await Promise.all(boxes.map(state)), ['stopped', 'stopped', 'stopped']);
  assert.deepEqual(await d.del(`/v1/keys/${id}?sandboxes=delete`), { id, sandboxes: 'deleted', count: 3, left: false });
  await d.fails(404, 'not_found', 'GET', '/v1/sandboxes', undefined, as(id));
});

test('revoking says what became of how many sandboxes', async () => {
  const stop = await threeOf();
  assert.match((await d.cli(['key', 'revoke', '--sandboxes', 'stop', stop.id])).stdout, /^revoked; 2 sandboxes stopped/);
  assert.deepEqual(await Promise.all(stop.boxes.map(state)), ['stopped', 'stopped', 'stopped']);
  const gone = await threeOf();
  assert.deepEqual(JSON.parse((await d.cli(['key', 'revoke', '--json', '--delete-sandboxes', gone.id])).stdout), { id: gone.id, sandboxes: 'deleted', count: 3, left: false });
  for (const id of gone.boxes) await d.fails(404, 'not_found', 'GET', `/v1/sandboxes/${id}`);
  const { id } = await d.post('/v1/keys', {});
  await d.fails(400, 'invalid', 'DELETE', `/v1/keys/${id}?sandboxes=burn`);
  assert.deepEqual(await d.del(`/v1/keys/${id}`), { id, sandboxes: 'kept', count: 0, left: false });
});

test('a create under way when its key is revoked leaves no sandbox', async () => {
  const { id, key } = await d.post('/v1/keys', {});
  const creates = Array.from({ length: 12 }, () => d.call('POST', '/v1/sandboxes', { limits: { nofile: 1024 } }, { key }).catch(() => {}));
  const left = async () => (await d.get('/v1/sandboxes?all_keys=true')).sandboxes.filter((s) => s.key === id);
  await poll('one is made', async () => (await left()).length > 0);
  await d.del(`/v1/keys/${id}?sandboxes=delete`);
  assert.deepEqual(await left(), []);
  await Promise.all(creates);
  assert.deepEqual(await left(), []);
});

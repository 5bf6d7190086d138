// A key has quotas: it cannot take what the others need, not by asking for large limits, not by many
// requests at the same moment, not by a restart of the front in between.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';
import { tar } from '../lib/image.mjs';

const MiB = 2 ** 20;
const GiB = 2 ** 30;
const S = '/v1/sandboxes';
const SMALL = { limits: { cpu_milli: 100, memory: 64 * MiB, disk: 64 * MiB, pids: 64 } };

let d;
before(async () => {
  d = await startDaemon({ args: ['--quota-snapshots', '1', '--memory-max', '2G', '--cpu-max', '4000', '--pids-max', '2000', '--disk-max', '20G'] });
});
after(() => d?.stop());

const keyWith = async (quotas) => {
  const made = await d.post('/v1/keys', { quotas });
  const as = { key: made.key };
  const use = async () => Object.fromEntries((await d.get('/v1/keys/self', as)).quotas.map((q) => [q.name, q.used]));
  return { ...made, as, use };
};
const create = (k, more = {}) => d.call('POST', S, { ...SMALL, ...more }, k.as);
const removeAll = async (k) => {
  for (const s of (await d.get(S, k.as)).sandboxes) await d.del(`${S}/${s.id}`, k.as);
};

test('no client is given more than the ceilings of one sandbox', async () => {
  const k = await keyWith({ memory: 0, cpu: 0, disk: 0 });
  for (const [name, value] of [['memory', 2 ** 45], ['pids', 4194304], ['disk', 2 ** 50], ['cpu_milli', 1024000]]) {
    const e = await d.fails(400, 'invalid', 'POST', S, { limits: { [name]: value } }, k.as);
    assert.match(e.message, new RegExp(`^limits: ${name}: .*-max\\)$`));
  }
  const s = (await create(k)).json;
  await d.fails(400, 'invalid', 'PATCH', `${S}/${s.id}`, { limits: { memory: 3 * GiB } }, k.as);
  assert.equal((await d.api('PATCH', `${S}/${s.id}`, { limits: { memory: 2 * GiB } }, k.as)).limits.memory, 2 * GiB);
  await removeAll(k);
});

test('many creates at the same moment do not exceed the number of sandboxes, and a restart keeps the count', async () => {
  const k = await keyWith({ sandboxes: 3 });
  const answers = await Promise.all(Array.from({ length: 12 }, () => create(k)));
  assert.deepEqual(answers.map((a) => a.status).sort(), [201, 201, 201, ...Array(9).fill(429)]);
  const refused = answers.find((a) => a.status === 429);
  assert.equal(refused.json.error.code, 'limit');
  assert.match(refused.json.error.message, /quota sandboxes of this key: 3 of 3/);
  assert.ok(Number(refused.headers['retry-after']) >= 1);
  await d.kill9('front');
  await d.back();
  assert.equal((await k.use()).sandboxes, 3);
  assert.equal((await create(k)).status, 429);
  await d.del(`${S}/${answers.find((a) => a.status === 201).json.id}`, k.as);
  assert.equal((await create(k)).status, 201);
  assert.equal((await d.sandbox(SMALL)).state, 'running', 'another key is not concerned');
  await removeAll(k);
  assert.equal((await k.use()).sandboxes, 0);
});

test('running sandboxes do not exceed memory and cpu: not by create, update, resume or a command that wakes', async () => {
  const k = await keyWith({ memory: 160 * MiB, cpu: 200 });
  const [a, b] = [(await create(k)).json, (await create(k, { auto_resume: true })).json];
  assert.deepEqual([(await k.use()).memory, (await k.use()).cpu], [128 * MiB, 200]);
  assert.match((await create(k)).json.error.message, /quota memory/);
  assert.match((await create(k, { limits: { ...SMALL.limits, memory: 16 * MiB } })).json.error.message, /quota cpu/);
  // two updates that each fit, but not together
  const both = await Promise.all([a, b].map((s) => d.call('PATCH', `${S}/${s.id}`, { limits: { memory: 96 * MiB } }, k.as)));
  assert.deepEqual(both.map((r) => r.status).sort(), [200, 429]);
  assert.equal((await k.use()).memory, 160 * MiB);
  const grown = both.findIndex((r) => r.status === 200);
  await d.api('PATCH', `${S}/${[a, b][grown].id}`, { limits: { memory: 64 * MiB } }, k.as);
  // a paused sandbox keeps its memory and gives its cpu back; a stopped one gives back both
  await d.post(`${S}/${b.id}/pause`, {}, k.as);
  assert.deepEqual([(await k.use()).memory, (await k.use()).cpu], [128 * MiB, 100]);
  const c = await d.post(S, { limits: { ...SMALL.limits, memory: 16 * MiB } }, k.as);
  await d.fails(429, 'limit', 'POST', `${S}/${b.id}/exec`, { argv: ['true'] }, k.as);
  await d.fails(429, 'limit', 'POST', `${S}/${b.id}/resume`, {}, k.as);
  await d.post(`${S}/${c.id}/pause`, { memory: false }, k.as);
  assert.deepEqual([(await k.use()).memory, (await k.use()).cpu], [128 * MiB, 100]);
  assert.equal((await d.post(`${S}/${b.id}/exec`, { argv: ['true'] }, k.as)).exit_code, 0);
  await d.fails(429, 'limit', 'POST', `${S}/${c.id}/resume`, {}, k.as);
  await removeAll(k);
});

test('disk limits, snapshots and forks count', async () => {
  const k = await keyWith({ disk: 200 * MiB, sandboxes: 3 });
  const a = (await create(k)).json;
  const forks = await d.post(`${S}/${a.id}/fork`, { count: 4 }, k.as);
  assert.equal((await d.get(S, k.as)).sandboxes.length, 3, JSON.stringify(forks));
  assert.match((await create(k)).json.error.message, /quota/);
  const both = await Promise.all([1, 2].map(() => d.call('POST', `${S}/${a.id}/snapshots`, {}, k.as)));
  assert.deepEqual(both.map((r) => r.status).sort(), [201, 429], 'the setting quota-snapshots');
  assert.match(both.find((r) => r.status === 429).json.error.message, /quota snapshots/);
  await d.del(`/v1/snapshots/${both.find((r) => r.status === 201).json.id}`, k.as);
  assert.equal((await k.use()).snapshots, 0);
  await removeAll(k);
  assert.deepEqual((await k.use()).disk, 0);
});

test('each plane answers in its own shape', async () => {
  const k = await keyWith({ sandboxes: 1 });
  await create(k);
  const e2b = await d.call('POST', '/sandboxes', { templateID: 'base' }, { key: null, headers: { 'x-api-key': k.key } });
  assert.equal(e2b.status, 429);
  assert.deepEqual([e2b.json.code, typeof e2b.json.message], [429, 'string']);
  const cloudflare = await d.call('GET', '/v1/sandbox/abcdefgh/file/workspace/x', undefined, k.as);
  assert.equal(cloudflare.status, 503, cloudflare.text);
  assert.deepEqual(cloudflare.json.code, 'capacity_exceeded');
  await removeAll(k);
});

test('quotas are changed and shown; only an admin changes them', async () => {
  const k = await keyWith({ sandboxes: 1 });
  await d.fails(403, 'denied', 'PATCH', `/v1/keys/${k.id}`, { quotas: { sandboxes: 9 } }, k.as);
  await d.fails(403, 'denied', 'GET', `/v1/keys/${k.id}`, undefined, k.as);
  const row = (key) => key.quotas.find((q) => q.name === 'sandboxes');
  assert.deepEqual(row(await d.get('/v1/keys/self', k.as)), { name: 'sandboxes', limit: 1, used: 0, own: true });
  assert.deepEqual(row(await d.api('PATCH', `/v1/keys/${k.id}`, { quotas: { sandboxes: 2 } })), { name: 'sandboxes', limit: 2, used: 0, own: true });
  await d.kill9('front');
  await d.back();
  assert.equal(row(await d.get(`/v1/keys/${k.id}`)).limit, 2);
  assert.deepEqual(row(await d.api('PATCH', `/v1/keys/${k.id}`, { quotas: { sandboxes: null } })), { name: 'sandboxes', limit: 200, used: 0, own: false });
  for (const quotas of [{ nothing: 1 }, { sandboxes: -1 }, { sandboxes: '3' }, { sandboxes: 2 ** 40 }]) {
    await d.fails(400, 'invalid', 'PATCH', `/v1/keys/${k.id}`, { quotas });
    await d.fails(400, 'invalid', 'POST', '/v1/keys', { quotas });
  }
  await d.fails(404, 'not_found', 'PATCH', '/v1/keys/nobody', { quotas: {} });
  assert.ok((await d.get('/v1/keys/self')).quotas.every((q) => q.limit === 0), 'the first key has no quotas');
  // the command line
  const made = (await d.cli(['key', 'create', '--quota', 'sandboxes=7', '--quota', 'memory=3G'])).stdout.trim();
  const mine = await d.cli(['key', 'show'], { env: { COVE_API_KEY: made } });
  assert.match(mine.stdout, /^sandboxes +0 +7 +this key$/m);
  assert.match(mine.stdout, /^memory +0 +3221225472 +this key$/m);
  assert.match(mine.stdout, /^cpu +0 +400000 +default$/m);
  assert.match((await d.cli(['key', 'update', k.id, '--quota', 'sandboxes=5'])).stdout, /^sandboxes +0 +5 +this key$/m);
  assert.match((await d.cli(['key', 'update', k.id, '--quota', 'sandboxes=default'])).stdout, /^sandboxes +0 +200 +default$/m);
  assert.equal((await d.cli(['key', 'update', k.id, '--quota', 'sandbox=5'])).status, 200);
  assert.equal((await d.cli(['key', 'update', k.id])).status, 200);
  assert.match((await d.cli(['key', 'show', 'root'])).stdout, /^sandboxes +\d+ +none +default$/m);
});

test('templates count to the key that added them', async () => {
  const { key } = await d.post('/v1/keys', { admin: true, quotas: { templates: 1 } });
  const image = tar([{ name: 'etc/' }, { name: 'etc/x', data: 'x' }]);
  const add = (name) => d.call('PUT', `/v1/templates/${name}`, image, { key });
  const both = await Promise.all([add('one'), add('two')]);
  assert.deepEqual(both.map((r) => r.status < 300), both[0].status < 300 ? [true, false] : [false, true], both.map((r) => r.text).join());
  const refused = both.find((r) => r.status === 429);
  assert.match(refused.json.error.message, /quota templates/);
  const mine = both[0].status < 300 ? 'one' : 'two';
  assert.ok((await add(mine)).status < 300, 'replacing an own one is no more');
  await d.kill9('front');
  await d.back();
  assert.equal((await add('three')).status, 429);
  await d.del(`/v1/templates/${mine}`, { key });
  assert.ok((await add('three')).status < 300);
});

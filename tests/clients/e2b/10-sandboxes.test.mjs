// The control plane as the SDK speaks it: create, list, inspect, kill, time.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll } from '../../lib/cove.mjs';
import { raw, startE2b } from './lib.mjs';

let d, sdk, Sandbox;
before(async () => {
  ({ d, sdk } = await startE2b());
  ({ Sandbox } = sdk);
});
after(() => d.stop());

async function all(paginator) {
  const found = [];
  while (paginator.hasNext) found.push(...(await paginator.nextItems()));
  return found;
}

test('a sandbox is created, shows its info, and is gone after a kill', async () => {
  const sbx = await Sandbox.create({ metadata: { who: 'me' }, envs: { A: '1' } });
  assert.match(sbx.sandboxId, /^[a-z0-9]{20,32}$/);
  assert.equal(sbx.sandboxDomain, `localhost:${d.port}`);
  assert.equal(sbx.getHost(3000), `3000-${sbx.sandboxId}.localhost:${d.port}`);
  const info = await sbx.getInfo();
  assert.equal(info.sandboxId, sbx.sandboxId);
  assert.equal(info.templateId, 'base');
  assert.equal(info.state, 'running');
  assert.deepEqual(info.metadata, { who: 'me' });
  assert.ok(info.cpuCount >= 1 && info.memoryMB >= 16);
  assert.deepEqual(info.lifecycle, { onTimeout: 'kill', autoResume: false });
  const lasts = info.endAt - info.startedAt;
  assert.ok(lasts > 299_000 && lasts <= 300_100, `${lasts} ms`);
  assert.equal(await sbx.kill(), true);
  assert.equal(await sbx.kill(), false);
  await assert.rejects(sbx.getInfo(), sdk.SandboxNotFoundError);
});

test('getInfo is stable and does not change the sandbox', async () => {
  const sbx = await Sandbox.create();
  assert.deepEqual(await sbx.getInfo(), await sbx.getInfo());
  await sbx.kill();
});

test('setTimeout lengthens and shortens; connect only lengthens', async () => {
  const sbx = await Sandbox.create({ timeoutMs: 100_000 });
  const end = async () => (await sbx.getInfo()).endAt.getTime() - Date.now();
  await sbx.setTimeout(500_000);
  assert.ok((await end()) > 490_000);
  await Sandbox.connect(sbx.sandboxId, { timeoutMs: 50_000 });
  assert.ok((await end()) > 490_000);
  await Sandbox.connect(sbx.sandboxId, { timeoutMs: 900_000 });
  assert.ok((await end()) > 890_000);
  await sbx.setTimeout(20_000);
  const left = await end();
  assert.ok(left > 10_000 && left <= 20_000, `${left}`);
  await sbx.kill();
});

test('no cap on the lifetime: thirty days are thirty days', async () => {
  const sbx = await Sandbox.create({ timeoutMs: 30 * 86_400_000 });
  assert.ok((await sbx.getInfo()).endAt - Date.now() > 29 * 86_400_000);
  await sbx.kill();
});

test('a sandbox ends when its time is over, and a timeout of 0 is at once', async () => {
  const sbx = await Sandbox.create({ timeoutMs: 60_000 });
  await sbx.setTimeout(0);
  await poll('it is gone', async () => (await raw(d, 'GET', `/sandboxes/${sbx.sandboxId}`)).status === 404);
});

test('refreshes extend, at least 15 s, and never shorten', async () => {
  const sbx = await Sandbox.create({ timeoutMs: 5_000 });
  const url = `/sandboxes/${sbx.sandboxId}/refreshes`;
  assert.equal((await raw(d, 'POST', url)).status, 204);
  const left = async () => (await sbx.getInfo()).endAt - Date.now();
  assert.ok((await left()) > 14_000);
  assert.equal((await raw(d, 'POST', url, { duration: 100 })).status, 204);
  assert.ok((await left()) > 99_000);
  assert.equal((await raw(d, 'POST', url, { duration: 1 })).status, 204);
  assert.ok((await left()) > 98_000);
  await sbx.kill();
});

test('lists: newest first, filters, pages, and metadata that must be encoded thrice', async () => {
  const tag = `a b&c=d/é+%20`;
  const made = [];
  for (let i = 0; i < 3; i++) made.push(await Sandbox.create({ metadata: { 'k ey': tag, n: String(i) } }));
  const other = await Sandbox.create({ metadata: { 'k ey': 'other' } });
  const ids = made.map((s) => s.sandboxId);

  const found = await all(Sandbox.list({ query: { metadata: { 'k ey': tag } } }));
  assert.deepEqual(found.map((s) => s.sandboxId), [...ids].reverse());
  assert.deepEqual(found[0].metadata, { 'k ey': tag, n: '2' });
  assert.deepEqual((await all(Sandbox.list({ query: { metadata: { 'k ey': tag, n: '1' } } }))).map((s) => s.sandboxId), [ids[1]]);

  const pages = Sandbox.list({ limit: 2, query: { metadata: { 'k ey': tag } } });
  assert.deepEqual((await pages.nextItems()).map((s) => s.sandboxId), [ids[2], ids[1]]);
  assert.equal(pages.hasNext, true);
  assert.deepEqual((await pages.nextItems()).map((s) => s.sandboxId), [ids[0]]);
  assert.equal(pages.hasNext, false);

  const oldest = await all(Sandbox.list({ order: 'asc', limit: 1, query: { metadata: { 'k ey': tag } } }));
  assert.deepEqual(oldest.map((s) => s.sandboxId), ids);
  assert.equal((await all(Sandbox.list({ query: { state: ['paused'] } }))).length, 0);
  assert.ok((await all(Sandbox.list({ query: { state: ['running', 'paused'] } }))).length >= 4);

  const { startedAt } = await made[1].getInfo();
  const since = (await all(Sandbox.list({ query: { startedAfter: startedAt, metadata: { 'k ey': tag } } }))).map((s) => s.sandboxId);
  assert.ok(since.includes(ids[1]) && since.includes(ids[2]) && !since.includes(ids[0]), 'inclusive');
  assert.equal((await all(Sandbox.list({ query: { template: 'nothing' } }))).length, 0);
  assert.ok((await all(Sandbox.list({ query: { template: 'base' } }))).length >= 4);
  assert.ok((await raw(d, 'GET', '/sandboxes')).json.length >= 4, 'the first generation');
  await Promise.all([...made, other].map((s) => s.kill()));
});

test('every answer about a sandbox carries a domain and a token that opens only it', async () => {
  const made = await raw(d, 'POST', '/v2/sandboxes', { templateID: 'base' });
  assert.equal(made.status, 201);
  assert.deepEqual(Object.keys(made.json).sort(), ['alias', 'clientID', 'domain', 'envdAccessToken', 'envdVersion', 'sandboxID', 'templateID']);
  const { sandboxID, envdAccessToken } = made.json;
  const detail = (await raw(d, 'GET', `/sandboxes/${sandboxID}`)).json;
  const again = await raw(d, 'POST', `/v2/sandboxes/${sandboxID}/connect`, {});
  assert.equal(again.status, 200);
  for (const a of [detail, again.json]) {
    assert.equal(a.envdAccessToken, envdAccessToken);
    assert.equal(a.domain, `localhost:${d.port}`);
  }
  // the first generation: only who asks for it gets a token
  const open = (await raw(d, 'POST', '/sandboxes', { templateID: 'base' })).json;
  assert.equal(open.envdAccessToken, undefined);
  const secure = (await raw(d, 'POST', '/sandboxes', { templateID: 'base', secure: true })).json;
  assert.match(secure.envdAccessToken, /^cvb_[\w-]+\.[\w-]{43}$/);
  // ids of old clients end with the client's id
  assert.equal((await raw(d, 'GET', `/sandboxes/${sandboxID}-${made.json.clientID}`)).status, 200);
  for (const id of [sandboxID, open.sandboxID, secure.sandboxID]) assert.equal((await raw(d, 'DELETE', `/sandboxes/${id}`)).status, 204);
});

test('errors have E2B\'s format, with the status in the body', async () => {
  const here = `/sandboxes/${(await raw(d, 'POST', '/v2/sandboxes', { templateID: 'base' })).json.sandboxID}`;
  const cases = [
    [401, 'GET', '/v2/sandboxes', undefined, { key: 'e2b_nothing' }, /key/],
    [401, 'GET', '/v2/sandboxes', undefined, { key: null }, /key/],
    [400, 'POST', '/v2/sandboxes', {}, {}, /templateID/],
    [400, 'POST', '/v2/sandboxes', { templateID: 7 }, {}, /templateID/],
    [400, 'POST', '/v2/sandboxes', { templateID: 'base', timeout: 0 }, {}, /^Timeout must be greater than 0$/],
    [400, 'POST', '/v2/sandboxes', { templateID: 'base', timeout: -5 }, {}, /^Timeout must be greater than 0$/],
    [400, 'POST', '/v2/sandboxes', { templateID: 'base', metadata: { a: 1 } }, {}, /metadata/],
    [400, 'POST', '/v2/sandboxes', { templateID: 'base', autoPauseMemory: false }, {}, /autoPause/],
    [400, 'POST', '/v2/sandboxes', { templateID: 'base', autoPause: true, autoPauseMemory: false, autoResume: { enabled: true } }, {}, /autoResume/],
    [400, 'POST', '/v2/sandboxes', '{"templateID":', { headers: { 'content-type': 'application/json' } }, /./],
    [404, 'POST', '/v2/sandboxes', { templateID: 'no-such' }, {}, /no-such/],
    [404, 'GET', '/sandboxes/nothing', undefined, {}, /^sandbox "nothing" not found$/],
    [404, 'DELETE', '/sandboxes/nothing', undefined, {}, /not found/],
    [404, 'POST', '/sandboxes/nothing/timeout', { timeout: 5 }, {}, /not found/],
    [404, 'POST', '/sandboxes/nothing/timeout', {}, {}, /not found/], // before its body is read
    [400, 'POST', `${here}/timeout`, {}, {}, /timeout/],
    [404, 'POST', '/v2/sandboxes/nothing/connect', {}, {}, /not found/],
    [400, 'POST', `${here}/connect`, {}, {}, /timeout/],
    [400, 'GET', '/v2/sandboxes?state=sleeping', undefined, {}, /state/],
    [400, 'GET', '/v2/sandboxes?limit=0', undefined, {}, /limit/],
    [400, 'GET', '/v2/sandboxes?nextToken=x', undefined, {}, /cursor/],
    [400, 'GET', '/v2/sandboxes?startedAfter=yesterday', undefined, {}, /startedAfter/],
    [400, 'GET', '/v2/sandboxes?metadata=a', undefined, {}, /metadata/],
    [501, 'POST', '/v2/sandboxes', { templateID: 'base', volumeMounts: [{ name: 'v', path: '/v' }] }, {}, /volumes/],
    [501, 'GET', '/volumes', undefined, {}, /not supported/],
    [404, 'GET', '/v2/nothing', undefined, {}, /./],
    [405, 'PATCH', '/v2/sandboxes', undefined, {}, /./],
  ];
  for (const [status, method, url, body, opts, message] of cases) {
    const a = await raw(d, method, url, body, opts);
    assert.equal(a.status, status, `${method} ${url} ${JSON.stringify(body)}: ${a.text}`);
    assert.equal(a.json.code, status);
    assert.match(a.json.message, message);
  }
  assert.equal((await raw(d, 'DELETE', here)).status, 204);
  await assert.rejects(Sandbox.create('no-such'), (e) => e instanceof sdk.SandboxError && /404/.test(e.message));
  await assert.rejects(Sandbox.create({ apiKey: 'e2b_00' }), sdk.AuthenticationError);
  await assert.rejects(Sandbox.connect('nothing'), sdk.SandboxNotFoundError);
  assert.equal((await all(Sandbox.list())).length, 0, 'nothing was half made');
});

test('fields of a later client are ignored', async () => {
  const made = await raw(d, 'POST', '/v2/sandboxes', { templateID: 'base:default', somethingNew: { a: [1] }, mcp: {} });
  assert.equal(made.status, 201, made.text);
  const all = await raw(d, 'GET', '/v2/sandboxes?later=1');
  assert.deepEqual([all.json.length, all.headers['x-total-running']], [1, '1']);
  await Sandbox.kill(made.json.sandboxID);
});

test('each key sees only its own', async () => {
  const { key } = await d.post('/v1/keys', { name: 'other' });
  const sbx = await Sandbox.create();
  assert.equal((await all(Sandbox.list({ apiKey: key }))).length, 0);
  const other = await raw(d, 'GET', '/v2/sandboxes', undefined, { headers: { 'x-api-key': key } });
  assert.deepEqual([other.status, other.headers['x-total-running']], [200, '0']);
  await assert.rejects(Sandbox.connect(sbx.sandboxId, { apiKey: key }), sdk.SandboxNotFoundError);
  assert.equal(await Sandbox.kill(sbx.sandboxId, { apiKey: key }), false);
  await sbx.kill();
});

test('forty concurrent creates make forty sandboxes, listed in pages', async () => {
  const made = await Promise.all(Array.from({ length: 40 }, () => Sandbox.create()));
  assert.equal(new Set(made.map((s) => s.sandboxId)).size, 40);
  assert.equal((await all(Sandbox.list({ limit: 7 }))).length, 40);
  assert.ok((await Promise.all(made.map((s) => s.kill()))).every(Boolean));
});

test('the templates of the server are listed, and others do not exist', async () => {
  assert.equal(await sdk.Template.exists('base'), true);
  assert.equal(await sdk.Template.exists('no-such'), false);
  const [base] = (await raw(d, 'GET', '/templates')).json;
  assert.equal(base.templateID, 'base');
  assert.deepEqual(base.aliases, ['base']);
});

test('acknowledged creates survive a kill of the front', async () => {
  const sbx = await Sandbox.create({ metadata: { kept: 'yes' }, timeoutMs: 600_000 });
  const before = await sbx.getInfo();
  await d.kill9('front');
  await d.back();
  assert.deepEqual(await Sandbox.getInfo(sbx.sandboxId), before);
  const token = (await raw(d, 'GET', `/sandboxes/${sbx.sandboxId}`)).json.envdAccessToken;
  assert.match(token, /^cvb_/);
  await sbx.kill();
});

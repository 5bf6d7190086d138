// A client that knows every id and name of another key: each route of the API's own document
// answers 404. So new routes are tested without a change here.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { poll, startDaemon, within } from '../lib/cove.mjs';
import { dockerSave, tar } from '../lib/image.mjs';

let d, other, names, e2b;
before(async () => {
  d = await startDaemon({});
  other = (await d.post('/v1/keys', { name: 'other' })).key;
  const { id } = await d.sandbox();
  const at = `/v1/sandboxes/${id}`;
  const { id: pid } = await d.process(id, ['sleep', '1000']);
  const { id: sid } = await d.post(`${at}/sessions`, { id: 'mine' });
  const { id: tid } = await d.post(`${at}/terminals`, { id: 'theirs' });
  const { id: watch } = await d.post(`${at}/watches`, { path: '/workspace' });
  const { id: snapshot } = await d.post(`${at}/snapshots`, { name: 'kept' });
  const cid = (await d.post(`${at}/sessions/mine/exec`, { command: 'true' })).id;
  names = { id, pid, sid, tid, watch, snapshot, cid };
  e2b = (await d.call('POST', '/sandboxes', { templateID: 'base' }, { headers: { 'x-api-key': d.key } })).json;
});
after(() => d?.stop());

const WORDS = { path: '/workspace/x', to: '/workspace/y', command: 'id', argv: ['id'], text: 'x', mode: '0644', owner: 'root', signal: 'TERM', for: 'exit', cols: 80, rows: 24, timeout_ms: 60_000, keep_ms: 1000, memory: true, count: 1, target: 'x', attributes: {}, port: 80, data: 'eA==' };
const WS = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' };
const ALSO = new Set(['path', 'command', 'for', 'signal', 'text', 'mode']); // one of several has to be said
const TEAM = new Set(['template', 'name']); // of templates, which are everybody's

function* operations(doc) {
  for (const [path, methods] of Object.entries(doc.paths)) {
    for (const [method, op] of Object.entries(methods)) yield { path, method: method.toUpperCase(), op };
  }
}

const resolve = (doc, schema) => (schema?.$ref ? schema.$ref.split('/').slice(1).reduce((o, k) => o[k], doc) : schema);

/** What the operation cannot do without, in words that mean something. */
function fill(doc, { path, op }) {
  const query = new URLSearchParams();
  for (const p of op.parameters ?? []) if (p.in === 'query' && (p.required || ALSO.has(p.name))) query.set(p.name, WORDS[p.name] ?? '1');
  const url = path.replace(/\{(\w+)(\.\.\.)?\}/g, (_, n) => names[n] ?? 'x') + (query.size > 0 ? `?${query}` : '');
  const schema = resolve(doc, op.requestBody?.content?.['application/json']?.schema);
  if (!schema) return { url, body: op.requestBody ? Buffer.from('x') : undefined };
  const wanted = [...(schema.required ?? []), ...Object.keys(schema.properties ?? {}).filter((n) => ALSO.has(n))];
  return { url, body: Object.fromEntries(wanted.map((n) => [n, WORDS[n] ?? 'x'])) };
}

/** Without the number of the request; an id may end like one. */
const nameless = (text) => text.replace(/"request_id":"r\d+"/, '');

test('every route of the API is 404 for objects of another key', async () => {
  const doc = await d.get('/v1/openapi.json');
  const tried = [];
  for (const o of operations(doc)) {
    const params = [...o.path.matchAll(/\{(\w+)/g)].map((m) => m[1]);
    if (params.length === 0 || params.some((p) => TEAM.has(p)) || !/^\/v1\/(sandboxes|snapshots)\//.test(o.path)) continue;
    const { url, body } = fill(doc, o);
    const a = await d.call(o.method, url, body, { key: other, headers: /connect$/.test(o.path) ? WS : {} });
    assert.equal(a.status, 404, `${o.method} ${url} ${JSON.stringify(body)}: ${a.status} ${a.text.slice(0, 300)}`);
    const none = await d.call(o.method, url.replace(names.id, 'x'.repeat(20)).replace(names.snapshot, 'x'.repeat(20)), body, { key: other, headers: /connect$/.test(o.path) ? WS : {} });
    assert.equal(nameless(none.text).replaceAll('x'.repeat(20), ''), nameless(a.text).replaceAll(names.id, '').replaceAll(names.snapshot, ''), `${o.method} ${o.path}: as of one that never was`);
    tried.push(`${o.method} ${o.path}`);
  }
  assert.ok(tried.length > 45, `${tried.length} routes`);
  const s = await d.get(`/v1/sandboxes/${names.id}`);
  assert.equal(s.state, 'running', 'and nothing of it happened');
  assert.equal((await d.get(`/v1/sandboxes/${names.id}/processes/${names.pid}`)).state, 'running');
  assert.equal((await d.exec(names.id, 'ls /workspace')).stdout, '');
});

test('lists, events and counters show nothing of another key', async () => {
  const events = await d.sse('/v1/events', { key: other, headers: { 'last-event-id': '0' } });
  for (const url of ['/v1/sandboxes', '/v1/snapshots', '/sandboxes', '/v2/sandboxes', '/snapshots', '/metrics']) {
    const a = await d.call('GET', url, undefined, { key: other, headers: { 'x-api-key': other } });
    assert.equal(a.status, 200, a.text);
    for (const id of [names.id, names.snapshot, e2b.sandboxID, names.pid]) assert.ok(!a.text.includes(id), `${url} shows ${id}`);
  }
  const mine = await d.post('/v1/sandboxes', {}, { key: other });
  for await (const ev of events) {
    if (ev.event !== 'truncated') assert.equal(ev.data.sandbox, mine.id);
    if (ev.event === 'sandbox.created') break;
  }
  events.close();
});

test('snapshots and sandboxes of another key cannot be used, by id or name', async () => {
  for (const what of [names.snapshot, 'kept']) {
    await d.fails(404, 'not_found', 'POST', '/v1/sandboxes', { snapshot: what }, { key: other });
    assert.ok([404, 400].includes((await d.call('POST', '/v1/sandboxes', { template: what }, { key: other })).status));
    assert.equal((await d.call('POST', '/sandboxes', { templateID: what }, { headers: { 'x-api-key': other }, key: null })).status, 404);
  }
});

test('E2B\'s control plane is 404 for objects of another key', async () => {
  const id = e2b.sandboxID;
  const calls = [['GET', ''], ['DELETE', ''], ['POST', '/connect', { timeout: 60 }], ['POST', '/refreshes', { duration: 60 }], ['POST', '/timeout', { timeout: 60 }], ['POST', '/pause', {}], ['POST', '/resume', { timeout: 60 }], ['POST', '/snapshots', {}], ['POST', '/fork', { count: 1 }], ['PUT', '/network', {}], ['GET', '/metrics'], ['GET', '/logs']];
  for (const [method, path, body] of calls) {
    const a = await d.call(method, `/sandboxes/${id}${path}`, body, { key: null, headers: { 'x-api-key': other } });
    assert.ok([404, 405, 501].includes(a.status), `${method} ${path}: ${a.status} ${a.text}`);
  }
  assert.equal((await d.call('DELETE', `/templates/${names.snapshot}`, undefined, { key: null, headers: { 'x-api-key': other } })).status, 404);
});

test('a token opens its own sandbox, for its own kind of call', async () => {
  const make = async (body) => (await d.call('POST', '/sandboxes', { templateID: 'base', ...body }, { key: null, headers: { 'x-api-key': other } })).json;
  const [a, b] = [await make({ secure: true, network: { allowPublicTraffic: false } }), await make({ secure: true })];
  const list = (id, token) => d.call('POST', '/process.Process/List', {}, { key: null, headers: { host: `49983-${id}.localhost`, ...(token ? { 'x-access-token': token } : {}) } });
  assert.equal((await list(a.sandboxID, a.envdAccessToken)).status, 200);
  for (const token of [b.envdAccessToken, a.trafficAccessToken, other, d.key, '', a.envdAccessToken.slice(1), `${a.envdAccessToken}0`]) assert.equal((await list(a.sandboxID, token)).status, 401, token);
  // the host names the sandbox, whatever the headers say
  const sly = await d.call('POST', '/process.Process/List', {}, { key: null, headers: { host: `49983-${a.sandboxID}.localhost`, 'e2b-sandbox-id': b.sandboxID, 'e2b-sandbox-port': '49983', 'x-access-token': b.envdAccessToken } });
  assert.equal(sly.status, 401);
});

test('only an admin sees or makes keys, settings and templates', async () => {
  for (const [method, url, body] of [['GET', '/v1/keys'], ['POST', '/v1/keys', { name: 'x' }], ['DELETE', '/v1/keys/root'], ['GET', '/v1/config'], ['PUT', '/v1/templates/x', Buffer.from('x')], ['DELETE', '/v1/templates/base'], ['POST', '/v1/templates/base/alias', { alias: 'x' }], ['POST', '/v1/templates/x/build', {}], ['POST', '/v1/templates/base/refresh', {}]]) {
    await d.fails(403, 'denied', method, url, body, { key: other });
  }
});

test('a name of the Cloudflare plane means the key\'s own sandbox', async () => {
  const put = await d.call('PUT', '/v1/sandbox/samename/file/workspace/secret', Buffer.from('s'), {});
  assert.equal(put.status, 200, put.text);
  assert.equal((await d.call('GET', '/v1/sandbox/samename/running', undefined, { key: other })).json.running, false);
  assert.notEqual((await d.call('GET', '/v1/sandbox/samename/file/workspace/secret', undefined, { key: other })).status, 200);
  assert.equal((await d.call('DELETE', '/v1/sandbox/samename', undefined, { key: other })).status, 204);
  assert.equal((await d.call('GET', '/v1/sandbox/samename/file/workspace/secret', undefined, {})).text, 's');
});

test('an import shares no layer with imports of other keys', async () => {
  const image = dockerSave([tar([{ name: 'f', data: 'x' }])]);
  const dir = path.join(d.dir, 'images/versions');
  const add = async (make) => {
    const before = new Set(fs.readdirSync(dir));
    await make();
    return fs.readdirSync(dir).find((n) => !n.startsWith('.') && !before.has(n));
  };
  const snapshot = (key) => add(() => d.api('POST', '/v1/snapshots/import', image, { key }));
  const versions = [await snapshot(other), await add(() => d.api('PUT', '/v1/templates/one', image)), await snapshot(other), await snapshot(d.key)];
  for (const v of versions) {
    // a version's file names the imports that its layers came with
    const text = fs.readFileSync(path.join(dir, v), 'latin1');
    for (const from of versions) assert.equal(text.includes(from), from === v, `${v} stands on ${from}`);
  }
  const two = await add(() => d.api('PUT', '/v1/templates/two', image));
  assert.ok(fs.readFileSync(path.join(dir, two), 'latin1').includes(versions[1]), 'templates do share');
});

test('slow imports leave room for other keys and the operator', async () => {
  const slow = async (key) => {
    const c = net.connect(d.port, '127.0.0.1');
    const seen = { text: '' };
    c.on('data', (b) => (seen.text += b)).on('error', () => {});
    c.write(`POST /v1/snapshots/import HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n`);
    await poll('it is told', () => /^HTTP\/1.1 \d+/.test(seen.text));
    return { status: Number(seen.text.slice(9, 12)), end: () => c.destroy() };
  };
  const held = [await slow(other), await slow(other)];
  assert.deepEqual(held.map((h) => h.status), [100, 100]);
  await d.fails(503, 'unavailable', 'POST', '/v1/snapshots/import', Buffer.from('x'), { key: other });
  held.push(await slow(d.key));
  assert.equal(held[2].status, 100);
  await d.fails(503, 'unavailable', 'POST', '/v1/snapshots/import', Buffer.from('x'));
  await d.api('PUT', '/v1/templates/mine', dockerSave([tar([{ name: 'f', data: 'y' }])]));
  for (const h of held) h.end();
  await poll('there is room again', async () => (await d.call('POST', '/v1/snapshots/import', Buffer.from('x'), { key: other })).status === 400);
});

test('exports that are not read leave room for other keys', async () => {
  const image = dockerSave([tar([{ name: 'f', data: crypto.randomBytes(24 << 20) }])]);
  const bring = async (key) => (await d.api('POST', '/v1/snapshots/import', image, { key })).id;
  const kept = { [other]: await bring(other), [d.key]: await bring(d.key) };
  const unread = async (key) => {
    const c = net.connect(d.port, '127.0.0.1');
    c.on('error', () => {}).write(`GET /v1/snapshots/${kept[key]}/export HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`);
    const head = await within(20_000, 'an answer', new Promise((resolve) => c.once('data', (b) => resolve(String(b)))));
    c.pause();
    return { status: Number(head.slice(9, 12)), end: () => c.destroy() };
  };
  const held = [await unread(other), await unread(other), await unread(other), await unread(d.key)];
  for (const h of held) h.end();
  assert.deepEqual(held.map((h) => h.status), [200, 200, 503, 200]);
  await poll('there is room again', async () => {
    const h = await unread(other);
    h.end();
    return h.status === 200;
  });
});

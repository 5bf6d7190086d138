// Health, authentication, and the form of errors.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';
import { statusOf } from '../lib/host.mjs';

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

test('serve prints its URL and the variables for clients', () => {
  assert.match(d.output, /ready/);
  assert.ok(d.output.includes(d.url));
  assert.ok(d.output.includes(`export COVE_URL=${d.url} COVE_API_KEY=`));
  assert.ok(!d.output.includes(d.key), 'a terminal is no place for a key');
});

test('health is answered without a key', async () => {
  const a = await d.call('GET', '/health', undefined, { key: null });
  assert.equal(a.status, 200);
  assert.deepEqual(a.json, { ok: true });
});

test('whether sandboxes can be made is answered without a key', async () => {
  const a = await d.call('GET', '/ready', undefined, { key: null });
  assert.equal(a.status, 200, a.text);
  assert.deepEqual(a.json, { ok: true, reserve: 'enough' });
});

test('HEAD is answered like GET, without a body', async () => {
  const a = await d.call('HEAD', '/health', undefined, { key: null });
  assert.equal(a.status, 200);
  assert.equal(a.bytes.length, 0);
});

test('every other route needs a key', async () => {
  for (const url of ['/v1/sandboxes', '/v1/templates', '/v1/events', '/v1/openapi.json', '/metrics'])
    await d.fails(401, 'unauthorized', 'GET', url, undefined, { key: null });
  await d.fails(401, 'unauthorized', 'POST', '/v1/sandboxes', {}, { key: null });
});

test('a 401 says how to do better', async () => {
  const a = await d.call('GET', '/v1/sandboxes', undefined, { key: null });
  assert.match(a.headers['www-authenticate'], /^Bearer/);
});

test('an unknown key is refused, however similar', async () => {
  const last = d.key.at(-1) === 'a' ? 'b' : 'a';
  for (const key of ['x', 'cove_', d.key.slice(0, -1), d.key.slice(0, -1) + last, d.key + 'a', d.key.toUpperCase(), 'ü'.repeat(9)].map((k) => encodeURI(k)))
    await d.fails(401, 'unauthorized', 'GET', '/v1/sandboxes', undefined, { key });
});

test('the key is taken as a bearer token and as X-API-Key', async () => {
  assert.equal((await d.call('GET', '/v1/sandboxes')).status, 200);
  assert.equal((await d.call('GET', '/v1/sandboxes', undefined, { key: null, headers: { 'x-api-key': d.key } })).status, 200);
});

test('an unknown path is 404, a known one with another method is 405 and says which are allowed', async () => {
  await d.fails(404, 'not_found', 'GET', '/v1/nothing');
  await d.fails(405, 'method', 'PATCH', '/v1/sandboxes');
  const a = await d.call('PATCH', '/v1/sandboxes');
  assert.match(a.headers.allow, /GET/);
  assert.match(a.headers.allow, /POST/);
});

test('every answer carries a request id, each its own', async () => {
  const a = await d.call('GET', '/v1/sandboxes');
  const b = await d.call('GET', '/v1/nothing');
  assert.ok(a.headers['x-request-id']);
  assert.equal(b.headers['x-request-id'], b.json.error.request_id);
  assert.notEqual(a.headers['x-request-id'], b.headers['x-request-id']);
});

test('a body that is not JSON, has unknown fields, wrong types or a key twice says where', async () => {
  const json = { 'content-type': 'application/json' };
  await d.fails(400, 'invalid', 'POST', '/v1/sandboxes', '{"template":', { headers: json });
  assert.match((await d.fails(400, 'invalid', 'POST', '/v1/sandboxes', { tempalte: 'base' })).message, /tempalte/);
  assert.match((await d.fails(400, 'invalid', 'POST', '/v1/sandboxes', { template: 7 })).message, /template/);
  await d.fails(400, 'invalid', 'POST', '/v1/sandboxes', '{"template":"base","template":"base"}', { headers: json });
  await d.fails(400, 'invalid', 'POST', '/v1/sandboxes', '[]', { headers: json });
});

test('a body over the maximum is refused and the daemon keeps running', async () => {
  const e = await d.call('POST', '/v1/sandboxes', { metadata: { a: 'x'.repeat(4 << 20) } }).catch((err) => err);
  if (e instanceof Error) assert.match(e.code ?? '', /ECONNRESET|EPIPE/);
  else assert.equal(e.status, 413);
  assert.equal((await d.call('GET', '/health')).status, 200);
});

test('metrics are text for Prometheus', async () => {
  await d.get('/v1/sandboxes');
  const a = await d.call('GET', '/metrics');
  assert.equal(a.status, 200);
  assert.match(a.headers['content-type'], /^text\/plain/);
  assert.match(a.text, /^# TYPE cove_\w+ \w+$/m);
  for (const line of a.text.trim().split('\n'))
    assert.match(line, /^(# (HELP|TYPE) .+|[a-zA-Z_:][\w:]*(\{[^}]*\})? -?[0-9.eE+-]+)$/);
});

test('only root can read the key file and the state directory', () => {
  const key = fs.statSync(path.join(d.dir, 'api-key'));
  assert.equal(key.mode & 0o777, 0o600);
  assert.equal(key.uid, 0);
  assert.equal(fs.statSync(d.dir).mode & 0o777, 0o711);
  assert.equal(fs.statSync(path.join(d.dir, 'front')).mode & 0o777, 0o700);
});

test('the front has no privileges', () => {
  const s = statusOf(d.frontPid());
  assert.notEqual(s.Uid.split(/\s+/)[0], '0');
  for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) assert.match(s[set], /^0+$/, set);
  assert.equal(s.NoNewPrivs, '1');
});

test('the key is in no log and on no command line', async () => {
  assert.ok(!d.log.includes(d.key));
  for (const pid of [d.keeperPid(), d.frontPid()]) {
    assert.ok(!fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(d.key));
    assert.ok(!fs.readFileSync(`/proc/${pid}/environ`, 'utf8').includes(d.key));
  }
});

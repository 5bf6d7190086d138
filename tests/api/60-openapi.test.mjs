// The OpenAPI document matches the server.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { ROOT_DIR, startDaemon } from '../lib/cove.mjs';

let d;
let doc;
before(async () => {
  d = await startDaemon();
  doc = await d.get('/v1/openapi.json');
});
after(() => d?.stop());

/** The rows of the surfaces, read from their sources. */
function routesInSource() {
  const found = new Set();
  for (const plane of ['native', 'cloudflare']) {
    const dir = path.join(ROOT_DIR, 'src/front/planes', plane);
    const texts = fs.readdirSync(dir, { recursive: true }).filter((f) => /\.[ch]$/.test(f)).map((f) => fs.readFileSync(path.join(dir, f), 'utf8'));
    const namesIn = (text) => Object.fromEntries([...text.matchAll(/^#define (\w+) "([^"]*)"/gm)].map((m) => [m[1], m[2]]));
    const shared = Object.assign({}, ...texts.map(namesIn));
    for (const text of texts) {
      const names = { ...shared, ...namesIn(text) };
      for (const m of text.matchAll(/\{\{\s*"([A-Z]+)",\s*((?:\w+|"[^"]*")(?:\s*"[^"]*")*)\s*\}/g)) {
        const route = m[2].replace(/\b[A-Z]\w*\b(?=\s|$)/g, (n) => `"${names[n] ?? n}"`).replace(/"\s*"/g, '').replace(/"/g, '');
        found.add(`${m[1]} ${route.replace('...}', '}')}`);
      }
    }
  }
  return found;
}

function routesInDocument() {
  const found = new Set();
  for (const [route, methods] of Object.entries(doc.paths)) for (const method of Object.keys(methods)) found.add(`${method.toUpperCase()} ${route}`);
  return found;
}

test('it is OpenAPI 3.1.0', () => {
  assert.equal(doc.openapi, '3.1.0');
  assert.equal(doc.info.title, 'Cove');
});

test('the document has exactly the routes of the server', () => {
  const source = routesInSource();
  assert.ok(source.size > 15, [...source].join('\n'));
  assert.deepEqual([...routesInDocument()].sort(), [...source].sort());
});

test('every reference leads somewhere', () => {
  const walk = (at, v) => {
    if (v === null || typeof v !== 'object') return;
    if (typeof v.$ref === 'string') {
      const target = v.$ref.slice(2).split('/').reduce((o, k) => o?.[k], doc);
      assert.ok(target, `${at}: ${v.$ref}`);
    }
    for (const [k, inner] of Object.entries(v)) walk(`${at}/${k}`, inner);
  };
  walk('', doc);
});

test('every operation has an id of its own, a summary, a success and an error', () => {
  const ids = new Set();
  for (const [route, methods] of Object.entries(doc.paths)) {
    for (const [method, op] of Object.entries(methods)) {
      const at = `${method} ${route}`;
      assert.ok(op.operationId && !ids.has(op.operationId), at);
      ids.add(op.operationId);
      assert.ok(op.summary.length > 5, at);
      assert.ok(Object.keys(op.responses).some((s) => /^(2|101)/.test(s)), at);
      assert.ok(op.responses.default, at);
      const wanted = [...route.matchAll(/\{(\w+)\}/g)].map((m) => m[1]);
      assert.deepEqual(op.parameters.filter((p) => p.in === 'path').map((p) => p.name), wanted, at);
    }
  }
});

test('every documented route exists', async () => {
  const s = await d.sandbox();
  await d.exec(s.id, 'git init -q . && git -c user.name=a -c user.email=a commit -q --allow-empty -m x');
  const p = await d.process(s.id, ['sleep', '1000'], { id: 'here' });
  const t = await d.post(`/v1/sandboxes/${s.id}/terminals`);
  const snapshot = (await d.post(`/v1/sandboxes/${s.id}/snapshots`)).id;
  const sessions = `/v1/sandboxes/${s.id}/sessions`;
  const shell = await d.post(sessions, {});
  const ran = await d.post(`${sessions}/${shell.id}/exec`, { command: 'true' });
  const fill = { id: s.id, pid: p.id, tid: t.id, sid: shell.id, cid: ran.id, name: 'base', snapshot, key: 'root' };
  for (const route of routesInDocument()) {
    const [method, url] = route.split(' ');
    if (/events|refresh|export/.test(url) || method === 'DELETE') continue; // a stream without end, one of gigabytes, and two with consequences
    // an id is a name for the Cloudflare plane, if it can be one, and then nothing is there: one that never can
    const words = url.startsWith('/v1/sandbox/') ? { ...fill, id: '0'.repeat(20) } : fill;
    const a = await d.call(method, url.replace(/\{(\w+)\}/g, (_, n) => words[n]), method === 'POST' ? { bogus: 1 } : undefined);
    assert.ok(![404, 405, 500, 501].includes(a.status), `${route}: ${a.status} ${a.text.slice(0, 200)}`);
  }
  await d.del(`/v1/sandboxes/${s.id}`);
});

/** Just enough of JSON Schema for the shapes we write. */
function check(schema, value, at) {
  if (schema.$ref) return check(schema.$ref.slice(2).split('/').reduce((o, k) => o[k], doc), value, at);
  if (schema.oneOf) {
    const errors = [];
    for (const s of schema.oneOf) {
      try {
        return check(s, value, at);
      } catch (e) {
        errors.push(e.message);
      }
    }
    return assert.fail(`${at}: none of ${errors.join('; ')}`);
  }
  const types = [].concat(schema.type ?? []);
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value;
  if (types.length > 0) assert.ok(types.includes(type) || (type === 'integer' && types.includes('number')), `${at}: ${type} is not ${types}`);
  if (type === 'object') {
    for (const name of schema.required ?? []) assert.ok(name in value, `${at}.${name} is missing`);
    for (const [k, v] of Object.entries(value)) {
      if (schema.properties?.[k]) check(schema.properties[k], v, `${at}.${k}`);
      else if (schema.additionalProperties && typeof schema.additionalProperties === 'object') check(schema.additionalProperties, v, `${at}.${k}`);
      else if (schema.properties) assert.fail(`${at}.${k} is not documented`);
    }
  }
  if (type === 'array' && schema.items) value.forEach((v, i) => check(schema.items, v, `${at}[${i}]`));
  return undefined;
}

function answerOf(method, route, status = '200') {
  return doc.paths[route][method].responses[status].content['application/json'].schema;
}

test('answers have the shape the document promises', async () => {
  const s = await d.sandbox({ metadata: { a: 'b' }, env: { X: 'y' }, timeout_ms: 600_000 });
  const at = `/v1/sandboxes/${s.id}`;
  check(answerOf('post', '/v1/sandboxes', '201'), s, 'create');
  const S = '/v1/sandboxes/{id}/sessions';
  const shell = await d.post(`${at}/sessions`, {});
  check(answerOf('post', S, '201'), shell, 'session');
  check(answerOf('post', `${S}/{sid}/exec`), await d.post(`${at}/sessions/${shell.id}/exec`, { command: 'echo x', id: 'c' }), 'session exec');
  check(answerOf('get', `${S}/{sid}/commands`), await d.get(`${at}/sessions/${shell.id}/commands`), 'commands');
  check(answerOf('get', `${S}/{sid}/commands/{cid}/output`), await d.get(`${at}/sessions/${shell.id}/commands/c/output`), 'output');
  check(answerOf('get', S), await d.get(`${at}/sessions`), 'sessions');
  check(answerOf('get', '/v1/sandboxes'), await d.get('/v1/sandboxes'), 'list');
  check(answerOf('get', '/v1/sandboxes/{id}'), await d.get(at), 'get');
  check(answerOf('post', '/v1/sandboxes/{id}/exec'), await d.exec(s.id, 'printf "\\377"; kill -9 $$'), 'exec');
  check(answerOf('post', '/v1/sandboxes/{id}/exec'), await d.exec(s.id, 'seq 10000', { max_output: 100 }), 'exec');
  const p = await d.process(s.id, 'echo x; printf "\\377"; exit 2', { id: 'p' });
  check(answerOf('post', '/v1/sandboxes/{id}/processes', '201'), p, 'start');
  check(answerOf('post', '/v1/sandboxes/{id}/processes/{pid}/wait'), await d.post(`${at}/processes/p/wait`), 'wait');
  check(answerOf('get', '/v1/sandboxes/{id}/processes'), await d.get(`${at}/processes`), 'processes');
  check(answerOf('get', '/v1/sandboxes/{id}/processes/{pid}'), await d.get(`${at}/processes/p`), 'process');
  check(answerOf('get', '/v1/sandboxes/{id}/processes/{pid}/logs'), await d.get(`${at}/processes/p/logs`), 'logs');
  check(answerOf('get', '/v1/templates'), await d.get('/v1/templates'), 'templates');
  check(answerOf('get', '/v1/config'), await d.get('/v1/config'), 'config');
  check(doc.components.responses.Error.content['application/json'].schema, (await d.call('GET', `${at}/processes/no`)).json, 'error');
  await d.del(at);
});

test('every code an error may have is in the document and in docs/errors.md', () => {
  const codes = doc.components.schemas.Error.properties.error.properties.code.enum;
  const text = fs.readFileSync(path.join(ROOT_DIR, 'docs/errors.md'), 'utf8');
  for (const code of codes) assert.ok(text.includes(`\`${code}\``), code);
});

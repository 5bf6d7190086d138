// API keys: made, listed, revoked; each sees only its own sandboxes.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';
import { rawConnection } from '../lib/ports.mjs';

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d.stop());

test('a key is shown once, in a form that every client of E2B accepts, and stored hashed', async () => {
  const made = await d.post('/v1/keys', { name: 'ci' });
  assert.match(made.key, /^e2b_[0-9a-f]{40}$/);
  assert.equal(made.name, 'ci');
  assert.equal(made.admin, false);
  const { keys } = await d.get('/v1/keys');
  const row = keys.find((k) => k.id === made.id);
  assert.deepEqual({ ...row, created_at: undefined }, { id: made.id, name: 'ci', admin: false, created_at: undefined, sandboxes: 0, revoked: false });
  assert.ok(!JSON.stringify(keys).includes(made.key));
  for (const file of fs.readdirSync(path.join(d.dir, 'front')))
    assert.ok(!fs.readFileSync(path.join(d.dir, 'front', file)).includes(made.key.slice(4)), file);
  assert.equal((await d.get('/v1/sandboxes', { key: made.key })).sandboxes.length, 0);
});

test('the first key has the same form', () => {
  assert.match(d.key, /^e2b_[0-9a-f]{40}$/);
});

test('a key sees only its own sandboxes, and only an admin manages keys', async () => {
  const [a, b] = [await d.post('/v1/keys', { name: 'a' }), await d.post('/v1/keys', { name: 'b', admin: true })];
  const sandbox = await d.post('/v1/sandboxes', {}, { key: a.key });
  const { key: c } = await d.post('/v1/keys', { name: 'c' });
  await d.fails(404, 'not_found', 'GET', `/v1/sandboxes/${sandbox.id}`, undefined, { key: c });
  // an admin sees that it is there (17-admin), and nothing inside
  for (const key of [b.key, d.key]) {
    await d.fails(404, 'not_found', 'GET', `/v1/sandboxes/${sandbox.id}/processes`, undefined, { key });
    assert.equal((await d.get('/v1/sandboxes', { key })).sandboxes.length, 0);
  }
  await d.fails(403, 'denied', 'GET', '/v1/keys', undefined, { key: a.key });
  await d.fails(403, 'denied', 'POST', '/v1/keys', {}, { key: a.key });
  const seen = (await d.get('/v1/keys', { key: b.key })).keys;
  assert.equal(seen.find((k) => k.id === a.id).sandboxes, 1);
  await d.del(`/v1/sandboxes/${sandbox.id}`, { key: a.key });
});

test('a revoked key is refused, also after a restart; an admin finds and deletes its sandboxes', async () => {
  const made = await d.post('/v1/keys');
  const sandbox = await d.post('/v1/sandboxes', {}, { key: made.key });
  await d.del(`/v1/keys/${made.id}`);
  await d.fails(401, 'unauthorized', 'GET', '/v1/sandboxes', undefined, { key: made.key });
  await d.kill9('front');
  await d.back();
  await d.fails(401, 'unauthorized', 'GET', '/v1/sandboxes', undefined, { key: made.key });
  const left = (await d.get('/v1/keys')).keys.find((k) => k.id === made.id);
  assert.deepEqual(left, { id: made.id, name: '', admin: false, created_at: null, sandboxes: 1, revoked: true });
  await d.fails(404, 'not_found', 'DELETE', `/v1/keys/${made.id}`);
  await d.del(`/v1/keys/${made.id}?delete_sandboxes=true`);
  assert.ok(!(await d.get('/v1/keys')).keys.some((k) => k.id === made.id));
  await d.fails(404, 'not_found', 'DELETE', `/v1/keys/${made.id}?delete_sandboxes=true`);
  assert.ok(sandbox.id);
});

test('revoking a key closes its open connections', async () => {
  const { id, key } = await d.post('/v1/keys', { name: 'leaver' });
  const box = await d.post('/v1/sandboxes', {}, { key });
  await d.post(`/v1/sandboxes/${box.id}/terminals`, { id: 't' }, { key });
  const head = (path, more = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n${more}\r\n`;
  const theirs = [
    await rawConnection(d, head('/v1/events')),
    await rawConnection(d, head(`/v1/sandboxes/${box.id}/terminals/t/connect`, 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n')),
    await rawConnection(d, head('/v1/sandboxes')),
  ];
  for (const c of theirs) await c.until('it is in', (text) => /^HTTP\/1.1 (200|101)/.test(text));
  const ours = await rawConnection(d, `GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${d.key}\r\n\r\n`);
  await ours.until('so are we', (text) => /^HTTP\/1.1 200/.test(text));
  await d.del(`/v1/keys/${id}?delete_sandboxes=true`);
  for (const c of theirs) await poll('it is out', () => c.ended);
  assert.equal(ours.ended, false);
  ours.socket.destroy();
});

test('invalid key requests are refused with a reason', async () => {
  assert.match((await d.fails(409, 'conflict', 'DELETE', '/v1/keys/root')).message, /api-key/);
  await d.fails(400, 'invalid', 'POST', '/v1/keys', { name: 'n'.repeat(65) });
  await d.fails(400, 'invalid', 'POST', '/v1/keys', { name: 7 });
  await d.fails(404, 'not_found', 'DELETE', '/v1/keys/nobody');
});

test('`cove key` creates, lists and revokes keys', async () => {
  const made = await d.cli(['key', 'create', '--name', 'typed', '--admin']);
  assert.match(made.stdout, /^e2b_[0-9a-f]{40}\n$/);
  assert.equal((await d.cli(['list'], { env: { COVE_API_KEY: made.stdout.trim() } })).status, 0);
  const [row] = (await d.cli(['key', 'list'])).stdout.split('\n').filter((l) => l.includes('typed'));
  assert.match(row, /admin/);
  const id = row.split(/\s+/)[0];
  assert.equal((await d.cli(['key', 'revoke', id])).status, 0);
  assert.equal((await d.cli(['key', 'revoke', id])).status, 202);
  assert.equal((await d.cli(['list'], { env: { COVE_API_KEY: made.stdout.trim() } })).status, 213);
  assert.equal((await d.cli(['key', 'revoke'])).status, 200);
});

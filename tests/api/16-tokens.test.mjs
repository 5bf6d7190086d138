// Tokens: what opens one sandbox. Rotated, ended with their key, and kept over an upgrade.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';

const SECRET = Buffer.alloc(32, 's'); // of release 0.1.0: a file of 32 bytes
let d;
before(async () => {
  d = await startDaemon();
});
after(() => d.stop());

const DATA_PORT = '49983';

/** The status of a call of E2B's data plane. */
async function opened(id, token, url = '/envs') {
  const headers = { 'e2b-sandbox-id': id, 'e2b-sandbox-port': DATA_PORT, ...(token ? { 'x-access-token': token } : {}) };
  return (await d.call('GET', url, undefined, { key: null, headers })).status;
}

const box = async (key) => d.post('/sandboxes', { templateID: 'base', secure: true }, { headers: { 'x-api-key': key ?? d.key }, key: null });

function signed(file, token) {
  const sum = crypto.createHash('sha256').update(`${file}:read::${token}`).digest('base64').replace(/=+$/, '');
  return `/files?path=${encodeURIComponent(file)}&signature=${encodeURIComponent(`v1_${sum}`)}`;
}

test('a token names its kind, its key and its sandbox, and opens no other sandbox', async () => {
  const [a, b] = [await box(), await box()];
  const [claims] = a.envdAccessToken.replace(/^cvb_/, '').split('.');
  assert.deepEqual(JSON.parse(Buffer.from(claims, 'base64url')), { kind: 'sandbox', key: 'root', sub: a.sandboxID });
  assert.equal(await opened(a.sandboxID, a.envdAccessToken), 200);
  assert.equal(await opened(b.sandboxID, a.envdAccessToken), 401);
  assert.equal(await opened(a.sandboxID), 401);
});

test('after a rotation earlier tokens and signatures are valid for the grace time, also after a restart', async () => {
  const a = await box();
  const was = (await d.get('/v1/tokens')).secrets.length;
  await d.post(`/v1/sandboxes/${a.sandboxID}/exec`, { command: 'echo hi > /tmp/f' });
  const r = await d.cli(['token', 'rotate', '--grace', '1h']);
  assert.equal(r.status, 0, r.stderr);
  await d.kill9('front');
  await d.back();
  const { secrets } = await d.get('/v1/tokens');
  assert.equal(secrets.length, was + 1);
  assert.equal(secrets[0].retires_at, null);
  assert.ok(Date.parse(secrets[1].retires_at) - Date.now() > 3500_000);
  const now = (await d.get(`/sandboxes/${a.sandboxID}`, { headers: { 'x-api-key': d.key } })).envdAccessToken;
  assert.notEqual(now, a.envdAccessToken);
  for (const token of [a.envdAccessToken, now]) {
    assert.equal(await opened(a.sandboxID, token), 200);
    assert.equal(await opened(a.sandboxID, undefined, signed('/tmp/f', token)), 200);
  }
});

test('after a rotation without grace no earlier token and no signature opens a sandbox', async () => {
  const a = await box();
  const url = signed('/tmp', a.envdAccessToken);
  assert.equal(await opened(a.sandboxID, undefined, url), 400); // it is a directory: it was opened
  assert.equal((await d.post('/v1/tokens/rotate', { grace_ms: 0 })).secrets.length, 1);
  assert.equal(await opened(a.sandboxID, a.envdAccessToken), 401);
  assert.equal(await opened(a.sandboxID, undefined, url), 401);
});

test('a key that is no admin cannot rotate tokens', async () => {
  const { key } = await d.post('/v1/keys', {});
  await d.fails(403, 'denied', 'POST', '/v1/tokens/rotate', {}, { key });
  await d.fails(403, 'denied', 'GET', '/v1/tokens', undefined, { key });
});

test('the tokens of a revoked key open nothing', async () => {
  const { id, key } = await d.post('/v1/keys', {});
  const a = await box(key);
  const url = signed('/tmp', a.envdAccessToken);
  assert.equal(await opened(a.sandboxID, a.envdAccessToken), 200);
  await d.del(`/v1/keys/${id}`);
  assert.equal(await opened(a.sandboxID, a.envdAccessToken), 401);
  assert.equal(await opened(a.sandboxID, undefined, url), 401);
  await d.del(`/v1/keys/${id}?delete_sandboxes=true`);
});

test('tokens that release 0.1.0 handed out are valid until its secret is rotated out', async () => {
  const a = await box();
  await d.end();
  fs.rmSync(path.join(d.dir, 'front/tokens'));
  fs.writeFileSync(path.join(d.dir, 'front/secret'), SECRET, { mode: 0o600 });
  const { uid, gid } = fs.statSync(path.join(d.dir, 'front'));
  fs.chownSync(path.join(d.dir, 'front/secret'), uid, gid);
  await d.restart();
  const token = crypto.createHmac('sha256', SECRET).update(`envd:${a.sandboxID}`).digest('hex');
  assert.equal(await opened(a.sandboxID, token), 200);
  assert.equal(await opened(a.sandboxID, undefined, signed('/tmp', token)), 400);
  assert.ok(!fs.existsSync(path.join(d.dir, 'front/secret')));
  await d.post('/v1/tokens/rotate', { grace_ms: 3600_000 });
  assert.equal(await opened(a.sandboxID, token), 200);
  await d.post('/v1/tokens/rotate', { grace_ms: 0 });
  assert.equal(await opened(a.sandboxID, token), 401);
});

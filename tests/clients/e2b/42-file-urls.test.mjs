// Signed and unsigned URLs of files, and access to the data plane.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { raw, startE2b } from './lib.mjs';

let d, sdk, sbx, others;
before(async () => {
  ({ d, sdk } = await startE2b());
  others = await Promise.all([sdk.Sandbox.create(), sdk.Sandbox.create()]);
  sbx = await sdk.Sandbox.create();
  for (const [i, s] of [...others, sbx].entries()) await s.files.write('same.txt', `of ${i}`);
});
after(() => d.stop());

const at = (s) => ({ 'e2b-sandbox-id': s.sandboxId, 'e2b-sandbox-port': '49983' });
const form = (text) => {
  const f = new FormData();
  f.append('file', new Blob([text]), 'whatever');
  return f;
};

test('a signed URL downloads, of the right sandbox among many, without its id', async () => {
  const url = await sbx.downloadUrl('same.txt');
  assert.match(url, /^http:.*\/files\?path=same.txt&signature=v1_/);
  const a = await fetch(url);
  assert.equal(a.status, 200);
  assert.equal(await a.text(), 'of 2');
  assert.equal(await (await fetch(await others[0].downloadUrl('same.txt'))).text(), 'of 0');
  assert.equal(await (await fetch(await sbx.downloadUrl('/home/user/same.txt', { user: 'root' }))).text(), 'of 2');
  assert.equal((await fetch(url, { headers: { range: 'bytes=0-1' } })).status, 206);
  const head = await fetch(url, { method: 'HEAD' });
  assert.equal(head.headers.get('content-length'), '4');
});

test('a signed URL uploads', async () => {
  for (const user of [undefined, 'root']) {
    const url = await sbx.uploadUrl('up.txt', { user, useSignatureExpiration: 60 });
    const a = await fetch(url, { method: 'POST', body: form('uploaded') });
    assert.equal(a.status, 200);
    assert.equal((await a.json())[0].path, user ? '/root/up.txt' : '/home/user/up.txt');
    assert.equal(await sbx.files.read('up.txt', { user }), 'uploaded');
  }
  const anywhere = await sbx.uploadUrl(); // the form says where
  const f = new FormData();
  f.append('file', new Blob(['1']), 'by-form.txt');
  assert.equal((await fetch(anywhere, { method: 'POST', body: f })).status, 200);
  assert.equal(await sbx.files.read('by-form.txt'), '1');
});

test('a signature is valid for one path, one user, one operation and until it expires', async () => {
  const url = new URL(await sbx.downloadUrl('same.txt', { useSignatureExpiration: 60 }));
  const changed = async (name, value) => {
    const u = new URL(url);
    if (value === undefined) u.searchParams.delete(name);
    else u.searchParams.set(name, value);
    const a = await fetch(u, { headers: at(sbx) });
    return [a.status, (await a.json()).message];
  };
  assert.equal((await fetch(url)).status, 200);
  assert.deepEqual(await changed('path', 'up.txt'), [401, 'invalid signature']);
  assert.deepEqual(await changed('username', 'root'), [401, 'invalid signature']);
  assert.deepEqual(await changed('signature_expiration', '99999999999'), [401, 'invalid signature']);
  assert.deepEqual(await changed('signature_expiration', undefined), [401, 'invalid signature']);
  assert.deepEqual(await changed('signature', 'v1_nonsense'), [401, 'invalid signature']);
  assert.deepEqual(await changed('signature', undefined), [401, 'missing signature query parameter']);
  const write = await fetch(url, { method: 'POST', body: form('x'), headers: at(sbx) });
  assert.deepEqual([write.status, (await write.json()).code], [401, 401]);
  const old = await sbx.downloadUrl('same.txt', { useSignatureExpiration: -10 });
  for (const headers of [{}, at(sbx)]) {
    const a = await fetch(old, { headers });
    assert.equal(a.status, 401);
    assert.equal((await a.json()).message, 'signature is already expired');
  }
});

test('a signed URL of a deleted or unknown sandbox is 502', async () => {
  const gone = await sdk.Sandbox.create();
  await gone.files.write('a', 'x');
  const url = await gone.downloadUrl('a');
  assert.equal((await fetch(url)).status, 200);
  await gone.kill();
  for (const u of [url, `${d.url}/files?path=a`, `${d.url}/files?path=a&signature=v1_${'A'.repeat(43)}`]) {
    const a = await fetch(u);
    assert.equal(a.status, 502);
    assert.equal((await a.json()).code, 502);
  }
});

test('a valid signature wakes a sandbox with auto_resume, an expired one does not', async () => {
  const asleep = await sdk.Sandbox.create({ lifecycle: { onTimeout: 'pause', autoResume: true } });
  await asleep.files.write('a', 'dreams');
  await asleep.pause();
  const state = async () => (await sdk.Sandbox.getInfo(asleep.sandboxId)).state;
  const old = await asleep.downloadUrl('a', { useSignatureExpiration: -10 });
  for (const headers of [{}, at(asleep)]) assert.equal((await fetch(old, { headers })).status, 502);
  assert.equal(await state(), 'paused');
  assert.equal(await (await fetch(await asleep.downloadUrl('a'))).text(), 'dreams');
  assert.equal(await state(), 'running');
  await asleep.pause();
  assert.equal((await fetch(await asleep.uploadUrl('a'), { method: 'POST', body: form('awake') })).status, 200);
  assert.equal(await asleep.files.read('a'), 'awake');
  await asleep.kill();
});

test('the token opens its own sandbox only', async () => {
  const get = async (headers, url = '/files?path=same.txt') => (await d.call('GET', url, undefined, { key: null, headers: { ...at(sbx), ...headers } })).status;
  assert.equal(await get({ 'x-access-token': sbx.envdAccessToken }), 200);
  assert.equal(await get({ 'x-access-token': others[0].envdAccessToken }), 401);
  assert.equal(await get({ 'x-access-token': '' }), 401);
  assert.equal(await get({}), 401);
  assert.equal(await get({ 'x-api-key': d.key }), 401);
  assert.equal(await get({}, '/health'), 204);
  for (const method of ['Stat', 'ListDir', 'MakeDir', 'Move', 'Remove']) {
    const a = await d.call('POST', `/filesystem.Filesystem/${method}`, { path: '/' }, { key: null, headers: at(sbx) });
    assert.equal(a.status, 401, method);
    assert.equal(a.json.code, 'unauthenticated');
  }
  const stranger = new sdk.Sandbox({ ...sbx.connectionConfig, sandboxId: sbx.sandboxId, envdVersion: '0.6.13', envdAccessToken: others[0].envdAccessToken });
  await assert.rejects(stranger.files.list('/'), sdk.AuthenticationError);
  await assert.rejects(stranger.files.read('same.txt'), sdk.AuthenticationError);
});

test('a sandbox without a token is read and written by plain URLs', async () => {
  const made = await raw(d, 'POST', '/sandboxes', { templateID: 'base', secure: false, timeout: 60 });
  assert.equal(made.status, 201);
  assert.equal(made.json.envdAccessToken, undefined);
  const open = await sdk.Sandbox.connect(made.json.sandboxID);
  await open.files.write('o', 'open');
  assert.equal(await open.files.read('o'), 'open');
  assert.equal(await (await fetch(await open.downloadUrl('o'), { headers: at(open) })).text(), 'open');
  assert.equal((await fetch(await open.uploadUrl('o'), { method: 'POST', body: form('up'), headers: at(open) })).status, 200);
  assert.equal(await open.files.read('o'), 'up');
  await assert.rejects(open.downloadUrl('o', { useSignatureExpiration: 10 }), sdk.InvalidArgumentError);
  await open.kill();
});

test('a URL by host needs no header', async () => {
  const url = new URL(await sbx.downloadUrl('same.txt'));
  const a = await d.call('GET', `${url.pathname}${url.search}`, undefined, { key: null, headers: { host: `49983-${sbx.sandboxId}.localhost:${d.port}` } });
  assert.equal(a.status, 200, a.text);
  assert.equal(a.text, 'of 2');
});

test('parts are put together', async () => {
  const compose = (body) => d.call('POST', '/files/compose', body, { key: null, headers: { ...at(sbx), 'x-access-token': sbx.envdAccessToken } });
  await sbx.files.write([{ path: 'p1', data: 'a' }, { path: 'p2', data: 'b' }, { path: '/tmp/p3', data: 'c' }]);
  const a = await compose({ source_paths: ['p1', 'p2', '/tmp/p3'], destination: 'made/whole' });
  assert.equal(a.status, 200, a.text);
  assert.deepEqual(a.json, { path: '/home/user/made/whole', name: 'whole', type: 'file' });
  assert.equal(await sbx.files.read('made/whole'), 'abc');
  for (const p of ['p1', 'p2', '/tmp/p3']) await assert.rejects(sbx.files.read(p), sdk.FileNotFoundError);
  await sbx.files.write('p4', 'd');
  assert.equal((await compose({ source_paths: ['made/whole', 'p4'], destination: 'made/whole' })).status, 200);
  assert.equal(await sbx.files.read('made/whole'), 'abcd');
  const missing = await compose({ source_paths: ['made/whole', 'p5'], destination: 'other' });
  assert.equal(missing.status, 404, missing.text);
  assert.equal(await sbx.files.read('made/whole'), 'abcd');
  assert.equal((await compose({ source_paths: [], destination: 'x' })).status, 400);
  assert.equal((await compose({ source_paths: ['/tmp'], destination: 'x' })).status, 400);
  assert.equal((await compose({ source_paths: Array(101).fill('p'), destination: 'x' })).status, 400);
});

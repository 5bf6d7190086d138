// Archives of workspaces in a bucket, kept by a server of npm that speaks S3's protocol, with a proxy
// before it that fails on demand. (It accepts any signature; tests/unit/test_sign.c has those.)
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../../lib/cove.mjs';

const S3rver = createRequire(import.meta.url)('s3rver');
const W = '/v1/workspaces';

let dir, s3, proxy, port, fault, seen;
let d;

/** Passes requests on, or fails as `fault` says: a function of the request that returns what to do. */
function makeProxy(to) {
  return http.createServer((req, res) => {
    const what = fault?.(req) ?? 'pass';
    seen.push(`${req.method} ${req.url}`);
    if (what === 'cut') return req.socket.destroy();
    if (typeof what === 'object') return what.then(() => pass(req, res, 'pass'));
    return pass(req, res, what);
  });
  function pass(req, res, what) {
    if (what === '503') { req.resume(); res.writeHead(503); return res.end('<Error><Code>SlowDown</Code><Message>later</Message></Error>'); }
    const up = http.request({ host: '127.0.0.1', port: to, method: req.method, path: req.url, headers: req.headers }, (a) => {
      res.writeHead(what === 'part' && a.statusCode === 200 ? 206 : a.statusCode, a.headers);
      if (what !== 'flip') return a.pipe(res);
      a.on('data', (p) => { p[p.length >> 1] ^= 1; res.write(p); });
      a.on('end', () => res.end());
    });
    up.on('error', () => res.destroy());
    req.pipe(up);
  }
}

before(async () => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-s3-'));
  fs.chmodSync(dir, 0o755);
  s3 = new S3rver({ port: 0, address: '127.0.0.1', silent: true, directory: path.join(dir, 'data'), configureBuckets: [{ name: 'cove' }] });
  const { port: to } = await s3.run();
  seen = [];
  proxy = makeProxy(to).listen(0, '127.0.0.1');
  await new Promise((r) => proxy.once('listening', r));
  port = proxy.address().port;
  fs.writeFileSync(path.join(dir, 'keys'), '[default]\naws_access_key_id = S3RVER\naws_secret_access_key = S3RVER\n');
  d = await serve();
});
after(async () => {
  await d?.stop();
  proxy?.close();
  proxy?.closeAllConnections();
  s3?.httpServer.closeAllConnections();
  await s3?.close();
  fs.rmSync(dir, { recursive: true });
});

const serve = (keys = 'keys') => startDaemon({ args: ['--archives', 's3://cove/of/tests', '--archives-endpoint', `http://127.0.0.1:${port}`, '--archives-credentials', path.join(dir, keys)] });
const ok = (a, status = 200) => { assert.equal(a.status, status, a.text); return a.json; };
const sh = async (name, command) => ok(await d.call('POST', `${W}/${name}/exec`, { command })).stdout;
const cold = (name) => poll(`${name} is cold`, async () => (await d.get(`${W}/${name}`)).state === 'cold', { deadline: 60_000 });
/** No workspace has a sandbox, or is archived. */
const allCold = () => poll('all are cold', async () => (await d.get(W)).workspaces.every((w) => w.state === 'cold'), { deadline: 60_000 });
const make = async (name) => ok(await d.call('PUT', `${W}/${name}`, { grace_ms: 100, archive_ms: 1 }), 201);

test('a workspace is archived in the bucket and comes back from it', async () => {
  await make('one');
  await sh('one', 'head -c 5000000 /dev/urandom >~/f; sha256sum ~/f >~/sum');
  await cold('one');
  assert.ok(seen.some((s) => /^PUT \/cove\/of\/tests\/[a-z0-9]+\/manifests\/[0-9a-f]{64}$/.test(s)), seen.join('\n'));
  assert.match(await sh('one', 'sha256sum -c ~/sum'), /: OK/);
});

test('answers of 503 and cut connections are tried again', async () => {
  let n = 0;
  await make('two');
  await sh('two', 'echo text >~/f');
  fault = () => ['503', 'pass', 'cut', 'pass'][n++ % 4];
  await cold('two');
  assert.equal(await sh('two', 'cat ~/f'), 'text\n');
  fault = undefined;
  assert.ok(n > 4);
});

test('a store that is away leaves the sandbox, and is used when it is back', async () => {
  await make('three');
  await sh('three', 'echo kept >~/f');
  fault = () => 'cut';
  const w = await poll('the reason is shown', async () => { const x = await d.get(`${W}/three`); return x.reason && x; }, { deadline: 30_000 });
  assert.match(w.reason, /store of archives http:\/\/127\.0\.0\.1:\d+ cannot be reached/);
  assert.equal((await d.get(`/v1/sandboxes/${w.sandbox}`)).state, 'paused');
  fault = undefined;
  await cold('three');
  assert.equal(await sh('three', 'cat ~/f'), 'kept\n');
});

test('a byte that changed on its way is found, and the restore leaves nothing', async () => {
  await make('four');
  await sh('four', 'head -c 100000 /dev/urandom >~/f; sha256sum ~/f >~/sum');
  await allCold();
  fault = (req) => (req.method === 'GET' && /\/chunks\//.test(req.url) ? 'flip' : 'pass');
  const a = await d.call('POST', `${W}/four/exec`, { argv: ['true'] });
  assert.ok(a.status >= 500, a.text);
  await poll('what it made is gone', async () => (await d.get('/v1/sandboxes')).sandboxes.length === 0);
  fault = undefined;
  assert.match(await sh('four', 'sha256sum -c ~/sum'), /: OK/);
});

test('an answer that is a part of a blob is refused as such', async () => {
  fault = (req) => (req.method === 'GET' && /\/chunks\//.test(req.url) ? 'part' : 'pass');
  await make('part');
  await sh('part', 'echo text >~/f');
  const w = await poll('the reason is shown', async () => { const x = await d.get(`${W}/part`); return x.reason && x; }, { deadline: 30_000 });
  assert.match(w.reason, /answered GET of bucket cove with 206/);
  fault = undefined;
  ok(await d.call('DELETE', `${W}/part`), 204);
});

test('an archive that took long never replaces a later one', async () => {
  await allCold();
  let release, held = 0, manifests = 0;
  const gate = new Promise((r) => { release = r; });
  fault = (req) => {
    if (req.method !== 'PUT' || !/\/manifests\//.test(req.url)) return 'pass';
    manifests++;
    return held++ === 0 ? gate : 'pass';
  };
  await make('late');
  await sh('late', 'echo old >~/f');
  await poll('its first archive is nearly there', () => held > 0, { deadline: 30_000 });
  await sh('late', 'echo new >~/f');
  const t = Date.now();
  await poll('some sweeps have passed, or a second archive was made', async () => Date.now() - t > 4000 || (await d.get(`${W}/late`)).state === 'cold');
  assert.equal(manifests, 1, 'no archive begins while one is under way');
  const first = seen.length;
  release();
  await poll('it is cold', async () => (await d.get(`${W}/late`)).state === 'cold' && seen.length > first, { deadline: 60_000 });
  fault = undefined;
  assert.equal(await sh('late', 'cat ~/f'), 'new\n');
  ok(await d.call('DELETE', `${W}/late`), 204);
});

test('an archive that ends after its workspace was deleted is deleted', async () => {
  await allCold();
  let release, held = 0;
  const gate = new Promise((r) => { release = r; });
  fault = (req) => (req.method === 'PUT' && /\/manifests\//.test(req.url) && held++ === 0 ? gate : 'pass');
  await make('orphan');
  await sh('orphan', 'echo x >~/f');
  await poll('its archive is nearly there', () => held > 0, { deadline: 30_000 });
  await sh('orphan', 'true');
  ok(await d.call('DELETE', `${W}/orphan`), 204);
  release();
  fault = undefined;
});

test('an endpoint with a password is refused, and the password is not shown', async () => {
  const own = d;
  d = await startDaemon({ args: ['--archives', 's3://cove/of/tests', '--archives-endpoint', 'http://me:hushhush@127.0.0.1:1', '--archives-credentials', path.join(dir, 'keys')] });
  await make('pw');
  await sh('pw', 'true');
  const w = await poll('the reason is shown', async () => { const x = await d.get(`${W}/pw`); return x.reason && x; }, { deadline: 30_000 });
  assert.match(w.reason, /archives-endpoint: expected .* without a path, a user or a password/);
  assert.doesNotMatch(w.reason, /hush/);
  await d.stop();
  d = own;
});

test('a deleted workspace leaves nothing in the bucket', async () => {
  for (const name of ['one', 'two', 'three', 'four']) ok(await d.call('DELETE', `${W}/${name}`), 204);
  const objects = () => fs.readdirSync(path.join(dir, 'data'), { recursive: true }).filter((f) => /[0-9a-f]{64}/.test(f));
  await poll('its objects are collected', () => objects().length === 0, { deadline: 10_000 });
});

test('wrong keys are said, with the setting to look at', async () => {
  fs.writeFileSync(path.join(dir, 'wrong'), 'aws_access_key_id=NOBODY\naws_secret_access_key=S3RVER\n');
  const own = d;
  d = await serve('wrong');
  await make('five');
  await sh('five', 'true');
  const w = await poll('the reason is shown', async () => { const x = await d.get(`${W}/five`); return x.reason && x; }, { deadline: 30_000 });
  assert.match(w.reason, /403 \w+.*see the setting archives-credentials/);
  await d.stop();
  d = own;
});

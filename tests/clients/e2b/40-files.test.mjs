// The bytes of files as the SDK reads and writes them.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { SANITIZED, poll } from '../../lib/cove.mjs';
import { startE2b } from './lib.mjs';

const MB = 1 << 20;
let d, sdk, sbx, id;
before(async () => {
  ({ d, sdk } = await startE2b());
  sbx = await sdk.Sandbox.create();
  id = sbx.sandboxId;
});
after(() => d.stop());

const sh = async (command, opts) => (await d.exec(id, command, opts)).stdout;
const streamOf = (bytes) => new Blob([bytes]).stream();
async function collect(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}

/** A request to the data plane, without the SDK. */
function envd(method, url, { body, headers = {}, token = sbx.envdAccessToken, sandbox = id } = {}) {
  return d.call(method, url, body, {
    key: null,
    headers: {
      ...(sandbox ? { 'e2b-sandbox-id': sandbox, 'e2b-sandbox-port': '49983' } : {}),
      ...(token ? { 'x-access-token': token } : {}),
      ...headers,
    },
  });
}

test('a file is written into directories that are made, and belongs to the user', async () => {
  const info = await sbx.files.write('a/b/c.txt', 'hello');
  assert.deepEqual(info, { path: '/home/user/a/b/c.txt', name: 'c.txt', type: 'file', metadata: undefined });
  assert.equal(await sbx.files.read('a/b/c.txt'), 'hello');
  assert.equal(await sbx.files.read('~/a/b/c.txt'), 'hello');
  assert.equal(await sbx.files.read('/home/user/a/b/c.txt'), 'hello');
  assert.equal(await sh('stat -c "%U:%G %a" ~/a ~/a/b ~/a/b/c.txt'), 'user:user 755\nuser:user 755\nuser:user 644\n');
});

test('the answer to an upload has no other fields', async () => {
  const form = new FormData();
  form.append('file', new Blob(['x']), 'ignored.txt');
  const a = await fetch(`${d.url}/files?path=/tmp//up/../up.txt`, {
    method: 'POST',
    body: form,
    headers: { 'e2b-sandbox-id': id, 'e2b-sandbox-port': '49983', 'x-access-token': sbx.envdAccessToken },
  });
  assert.equal(a.status, 200);
  assert.deepEqual(await a.json(), [{ path: '/tmp/up.txt', name: 'up.txt', type: 'file' }]);
});

test('file calls have root\'s power, and new files belong to the user', async () => {
  await sbx.files.write('/opt/app/x', 'mine');
  assert.equal(await sh('stat -c %U /opt/app /opt/app/x'), 'user\nuser\n');
  await sh('umask 077; echo secret > /root/secret', { user: 'root' });
  assert.equal(await sbx.files.read('/root/secret'), 'secret\n');
  await sbx.files.write('/root/secret', 'changed');
  assert.equal(await sh('stat -c "%U %a" /root/secret; cat /root/secret', { user: 'root' }), 'root 600\nchanged');
  await sbx.files.write('as-root', 'r', { user: 'root' });
  assert.equal(await sh('stat -c %U /root/as-root', { user: 'root' }), 'root\n');
});

test('read returns text, bytes, a blob or a stream, also of an empty file', async () => {
  const bytes = randomBytes(300_000);
  await sbx.files.write('bytes', bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  assert.deepEqual(Buffer.from(await sbx.files.read('bytes', { format: 'bytes' })), bytes);
  assert.deepEqual(Buffer.from(await (await sbx.files.read('bytes', { format: 'blob' })).arrayBuffer()), bytes);
  assert.deepEqual(await collect(await sbx.files.read('bytes', { format: 'stream' })), bytes);
  assert.deepEqual(Buffer.from(await sbx.files.read('bytes', { format: 'bytes', gzip: true })), bytes);
  await sbx.files.write('empty', '');
  assert.equal(await sbx.files.read('empty'), '');
  assert.equal((await sbx.files.read('empty', { format: 'bytes' })).length, 0);
  assert.equal((await sbx.files.read('empty', { format: 'blob' })).size, 0);
  assert.equal((await collect(await sbx.files.read('empty', { format: 'stream' }))).length, 0);
});

test('write takes a string, a buffer, a blob or a stream and replaces the file in place', async () => {
  await sbx.files.write('w', 'a much longer text than what comes');
  const before = await sh('stat -c %i ~/w; ln ~/w ~/w-link');
  for (const data of ['text', new TextEncoder().encode('text').buffer, new Blob(['text']), streamOf('text')]) {
    await sbx.files.write('w', data);
    assert.equal(await sbx.files.read('w-link'), 'text');
    await sbx.files.write('w', 'a much longer text than what comes');
  }
  assert.equal(await sh('stat -c %i ~/w'), before);
  const big = randomBytes(3 * MB);
  await sbx.files.write('w', new Blob([big]));
  assert.equal(await sh('stat -c %i ~/w'), before);
  assert.deepEqual(Buffer.from(await sbx.files.read('w-link', { format: 'bytes' })), big);
});

test('a large file in a home directory belongs to that user', async () => {
  const big = Buffer.alloc(MB, 'x');
  const info = await sbx.files.write('large/file', new Blob([big]), { useOctetStream: true });
  assert.equal(info.path, '/home/user/large/file');
  assert.equal(await sh('stat -c "%U %s %a" ~/large ~/large/file | tail -1'), `user ${MB} 644\n`);
  assert.equal((await sbx.files.read('~/large/file')).length, MB);
});

test('gzip uploads work, and an invalid one is refused without a write', async () => {
  await sbx.files.write('z', 'squeezed', { gzip: true });
  assert.equal(await sbx.files.read('z'), 'squeezed');
  const big = Buffer.alloc(2 * MB, 'repeat');
  await sbx.files.write('z', new Blob([big]), { gzip: true });
  assert.deepEqual(Buffer.from(await sbx.files.read('z', { format: 'bytes' })), big);
  const all = await sbx.files.write([{ path: 'z1', data: '1' }, { path: 'z2', data: '2' }], { gzip: true });
  assert.deepEqual(all.map((f) => f.path), ['/home/user/z1', '/home/user/z2']);
  const a = await envd('POST', '/files?path=z3', {
    body: Buffer.from('plain'),
    headers: { 'content-type': 'application/octet-stream', 'content-encoding': 'gzip' },
  });
  assert.equal(a.status, 400, a.text);
  assert.equal(a.json.code, 400);
  assert.equal((await envd('GET', '/files?path=z3')).status, 404);
});

test('one form uploads several files, also with slashes and quotes in their names', async () => {
  const names = ['m/1.txt', 'm/deep/2.txt', '/tmp/m3.txt', 'm/quo"te', 'm/späce é.txt', 'm/back\\slash', 'm/line\nend'];
  const infos = await sbx.files.write(names.map((path, i) => ({ path, data: `${i}` })));
  assert.deepEqual(infos.map((f) => f.path), names.map((n) => (n[0] === '/' ? n : `/home/user/${n}`)));
  for (const [i, path] of names.entries()) assert.equal(await sbx.files.read(path), `${i}`);
  assert.deepEqual(await sbx.files.write([]), []);
  assert.deepEqual((await sbx.files.writeFiles([{ path: 'one', data: '1' }])).map((f) => f.name), ['one']);
});

test('one form uploads five hundred files', async () => {
  const files = Array.from({ length: 500 }, (_, i) => ({ path: `many/${i % 10}/${i}`, data: `${i}` }));
  assert.equal((await sbx.files.write(files)).length, 500);
  assert.equal(await sh('find ~/many -type f | wc -l; cat ~/many/7/417'), '500\n417');
});

test('metadata is kept with a file, and each upload replaces all of it', async () => {
  const info = await sbx.files.write('meta', 'x', { metadata: { Author: 'me', 'x-y': 'a b=c' } });
  assert.deepEqual(info.metadata, { author: 'me', 'x-y': 'a b=c' });
  assert.deepEqual((await sbx.files.getInfo('meta')).metadata, { author: 'me', 'x-y': 'a b=c' });
  await sbx.files.write('meta', 'y', { metadata: { other: '' } });
  assert.deepEqual((await sbx.files.getInfo('meta')).metadata, { other: '' });
  await sbx.files.write('meta', 'z');
  assert.equal((await sbx.files.getInfo('meta')).metadata, undefined);
  await sbx.files.write('meta-large', new Blob([Buffer.alloc(MB)]), { metadata: { size: 'large' }, useOctetStream: true });
  assert.deepEqual((await sbx.files.getInfo('meta-large')).metadata, { size: 'large' });
  await sbx.files.write('meta-large', new Blob([Buffer.alloc(MB)]), { gzip: true });
  assert.equal((await sbx.files.getInfo('meta-large')).metadata, undefined);
});

test('metadata has limits', async () => {
  const post = (headers) => envd('POST', '/files?path=limits', {
    body: Buffer.from('x'),
    headers: { 'content-type': 'application/octet-stream', ...headers },
  });
  assert.equal((await post({ [`x-metadata-${'n'.repeat(246)}`]: 'v' })).status, 200);
  assert.equal((await post({ [`x-metadata-${'n'.repeat(247)}`]: 'v' })).status, 400);
  assert.equal((await post({ 'x-metadata-n': 'v'.repeat(4000) })).status, 200);
  assert.equal((await post({ 'x-metadata-n': 'v'.repeat(4096) })).status, 400);
  assert.equal((await post({ 'x-metadata-': 'v' })).status, 400);
  assert.equal((await post({ 'x-metadata-n': 'é' })).status, 400);
});

test('downloads take ranges and conditions', async () => {
  await sbx.files.write('range', '0123456789');
  const get = (headers) => envd('GET', '/files?path=range', { headers });
  const all = await get();
  assert.equal(all.headers['content-length'], '10');
  assert.match(all.headers['content-disposition'], /^inline/);
  const part = await get({ range: 'bytes=2-4' });
  assert.equal(part.status, 206);
  assert.equal(part.text, '234');
  assert.equal(part.headers['content-range'], 'bytes 2-4/10');
  assert.equal((await get({ range: 'bytes=-3' })).text, '789');
  assert.equal((await get({ range: 'bytes=99-' })).status, 416);
  assert.equal((await get({ 'if-none-match': all.headers.etag })).status, 304);
});

test('files without a size of their own are sent until they end', async () => {
  assert.match(await sbx.files.read('/proc/version'), /^Linux version/);
  assert.match(await sbx.files.read('/proc/self/status'), /^Name:/);
  assert.equal((await sbx.files.read('/proc/meminfo', { format: 'bytes' })).length > 100, true);
});

test('reading a missing file or a directory fails with the SDK\'s error', async () => {
  await assert.rejects(sbx.files.read('missing'), sdk.FileNotFoundError);
  await assert.rejects(sbx.files.read('missing', { format: 'stream' }), sdk.FileNotFoundError);
  await assert.rejects(sbx.files.read('/tmp'), (e) => e instanceof sdk.SandboxError && /directory/.test(e.message));
  await assert.rejects(sbx.files.read('x', { user: 'nobody-here' }),
    (e) => e instanceof sdk.AuthenticationError && /invalid username: 'nobody-here'/.test(e.message));
  await sh('mkfifo ~/pipe');
  await assert.rejects(sbx.files.read('pipe'), (e) => e instanceof sdk.SandboxError && /pipe/.test(e.message));
  assert.equal((await envd('GET', '/files?path=~root/x')).status, 400);
  assert.equal((await envd('GET', '/files?path=a%00b')).status, 400);
  assert.equal((await envd('GET', `/files?path=/${'x'.repeat(4096)}`)).status, 400);
  assert.equal((await envd('GET', `/files?path=/${'x'.repeat(300)}`)).status, 400);
});

test('writing to an invalid path fails with the SDK\'s error', async () => {
  await sbx.files.write('plain', 'x');
  await assert.rejects(sbx.files.write('plain/below', 'x'), sdk.SandboxError);
  await assert.rejects(sbx.files.write('/tmp', 'x'), sdk.SandboxError);
  await assert.rejects(sbx.files.write('x', 'x', { user: 'nobody-here' }), sdk.AuthenticationError);
  await assert.rejects(sbx.files.write('x', new Blob([Buffer.alloc(MB)]), { user: 'nobody-here' }), sdk.AuthenticationError);
  const post = (headers, body = 'x', url = '/files') => envd('POST', url, { body: Buffer.from(body), headers });
  assert.equal((await post({ 'content-type': 'application/octet-stream' })).json.message, 'path: required with application/octet-stream');
  assert.equal((await post({ 'content-type': 'text/plain' }, 'x', '/files?path=x')).status, 400);
  assert.equal((await post({}, 'x', '/files?path=x')).status, 400);
  assert.equal((await post({ 'content-type': 'multipart/form-data' })).status, 400);
  const form = (text) => post({ 'content-type': 'multipart/form-data; boundary=B' }, text);
  const part = (name) => `--B\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\nx\r\n`;
  assert.match((await form(`${part('twice')}${part('twice')}--B--`)).json.message, /same path/);
  assert.equal((await form(`${part('whole')}${part('broken').slice(0, -2)}`)).status, 400);
  assert.equal(await sh('ls ~/whole ~/broken 2>&1 | grep -c broken'), '1\n');
  assert.equal((await form('--B\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n--B--')).status, 400);
  const other = '--B\r\nContent-Disposition: form-data; name="other"\r\n\r\nx\r\n';
  assert.deepEqual((await form(`${other.repeat(10_000)}--B--`)).json, []);
  assert.match((await form(`${other.repeat(10_001)}--B--`)).json.message, /too many parts/);
});

test('a full disk is reported and leaves no file', async () => {
  const small = await d.sandbox({ limits: { disk: 64 * MB } });
  const info = await d.call('GET', `/sandboxes/${small.id}`, undefined, { key: null, headers: { 'x-api-key': d.key } });
  const a = await envd('POST', '/files?path=/home/user/big', {
    sandbox: small.id,
    token: info.json.envdAccessToken,
    body: randomBytes(100 * MB),
    headers: { 'content-type': 'application/octet-stream' },
  });
  assert.equal(a.status, 507, a.text);
  assert.equal(a.json.code, 507);
  assert.equal((await d.exec(small.id, 'ls ~')).stdout, '');
  await d.del(`/v1/sandboxes/${small.id}`);
});

test('a refused large stream gets its error while it is still sending', async () => {
  for (let i = 0; i < 20; i++) {
    let left = 40;
    const pull = (c) => (left-- > 0 ? c.enqueue(Buffer.alloc(MB)) : c.close());
    await assert.rejects(sbx.files.write('/tmp', new ReadableStream({ pull }), { useOctetStream: i % 2 === 0 }), sdk.InvalidArgumentError);
  }
});

test('a client that dies during an upload leaves no file', async () => {
  for (const type of ['application/octet-stream', 'multipart/form-data; boundary=B']) {
    const req = http.request(`${d.url}/files?path=/home/user/half`, {
      method: 'POST',
      headers: { 'e2b-sandbox-id': id, 'e2b-sandbox-port': '49983', 'x-access-token': sbx.envdAccessToken, 'content-type': type },
    });
    req.on('error', () => {});
    req.write('--B\r\nContent-Disposition: form-data; name="file"; filename="half"\r\n\r\n');
    req.write(Buffer.alloc(4 * MB));
    await poll('the helper has some of it', async () => (await sh('ps -eo comm')).includes('cove-helper'));
    req.destroy();
    await poll('the helper is gone', async () => !(await sh('ps -eo comm')).includes('cove-helper'));
    assert.equal((await envd('GET', '/files?path=half')).status, 404);
  }
});

test('the process that writes a file cannot be addressed as a command', async () => {
  const headers = { 'e2b-sandbox-id': id, 'e2b-sandbox-port': '49983', 'x-access-token': sbx.envdAccessToken, 'content-type': 'application/octet-stream' };
  const req = http.request(`${d.url}/files?path=whole`, { method: 'POST', headers });
  const answer = new Promise((resolve, reject) => req.on('response', resolve).on('error', reject));
  req.write(Buffer.alloc(2 * MB));
  const helper = async () => Number((await sh('pgrep -x cove-helper || true')).trim());
  const pid = await poll('the helper runs', helper);
  for (const [method, more] of [['CloseStdin', {}], ['SendInput', { input: { stdin: 'eA==' } }], ['SendSignal', { signal: 'SIGNAL_SIGKILL' }]]) {
    const a = await envd('POST', `/process.Process/${method}`, { body: { process: { pid }, ...more } });
    assert.equal(a.json.code, 'not_found', `${method}: ${a.text}`);
  }
  req.end(Buffer.alloc(2 * MB));
  assert.equal((await answer).resume().statusCode, 200);
  assert.equal((await sbx.files.getInfo('whole')).size, 4 * MB);
});

const rss = (pid) => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024;

test('a file of 300 MB passes through without being held', async () => {
  const total = 300 * MB;
  const piece = randomBytes(MB);
  let left = total;
  let highest = 0;
  const front = d.frontPid();
  const source = new ReadableStream({
    pull(c) {
      highest = Math.max(highest, rss(front));
      if (left === 0) return c.close();
      left -= piece.length;
      c.enqueue(new Uint8Array(piece));
    },
  });
  const start = rss(front);
  await sbx.files.write('huge', source, { requestTimeoutMs: 0 });
  let size = 0;
  for await (const part of await sbx.files.read('huge', { format: 'stream', requestTimeoutMs: 0 })) {
    size += part.length;
    highest = Math.max(highest, rss(front));
  }
  assert.equal(size, total);
  assert.ok(highest - start < (SANITIZED ? 200 : 24) * MB, `the front grew by ${((highest - start) / MB).toFixed(1)} MB`);
  assert.equal(await sh('stat -c %s ~/huge; rm ~/huge'), `${total}\n`);
});

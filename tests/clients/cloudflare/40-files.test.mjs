// The workspace over plain HTTP: files out and in, persist and hydrate.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { after, before, test } from 'node:test';
import { Cloudflare } from '../../lib/cloudflare.mjs';
import { startDaemon } from '../../lib/cove.mjs';

let d;
let b;

before(async () => {
  d = await startDaemon({ args: ['--disk', '256M'] });
  b = new Cloudflare(d);
});
after(() => d?.stop());

const put = async (path, bytes, box = b) => {
  const a = await box.call('PUT', `/file/${path}`, bytes, { headers: { 'content-type': 'application/octet-stream' } });
  assert.equal(a.status, 200, a.text);
  assert.deepEqual(a.json, { ok: true });
};
const get = async (path, box = b) => {
  const a = await box.call('GET', `/file/${path}`);
  assert.equal(a.status, 200, a.text);
  assert.equal(a.headers['content-type'], 'application/octet-stream');
  return a.bytes;
};
const persist = async (query = '', box = b) => {
  const a = await box.call('POST', `/persist${query}`);
  assert.equal(a.status, 200, a.text);
  return a.bytes;
};
const hydrate = async (bytes, box) => {
  const a = await box.call('POST', '/hydrate', bytes);
  assert.equal(a.status, 200, a.text);
  assert.deepEqual(a.json, { ok: true });
};

test('a written file is read back byte for byte and belongs to root', async () => {
  const bytes = crypto.randomBytes(70_000);
  await put('workspace/new/dir/f.bin', bytes);
  assert.deepEqual(await get('workspace/new/dir/f.bin'), bytes);
  await put('workspace/new/dir/f.bin', Buffer.from('shorter'));
  assert.equal(String(await get('workspace/new/dir/f.bin')), 'shorter');
  await put('workspace/empty', Buffer.alloc(0));
  assert.equal((await get('workspace/empty')).length, 0);
  assert.equal((await b.sh('stat -c "%U %a %s" new/dir/f.bin empty; stat -c %U new')).stdout, 'root 644 7\nroot 644 0\nroot\n');
});

test('the first use may be a file', async () => {
  const fresh = new Cloudflare(d);
  await put('workspace/x', Buffer.from('y'), fresh);
  assert.equal(String(await get('workspace/x', fresh)), 'y');
  await fresh.delete();
});

test('large files are written and read', async () => {
  const bytes = crypto.randomBytes(40 << 20); // the reference ends at 32 MiB
  await put('workspace/large', bytes);
  assert.ok((await get('workspace/large')).equals(bytes));
  await b.sh('rm large');
});

test('a path is percent-decoded, resolved, and must stay in /workspace', async () => {
  await put('workspace/a%20b/%C3%A9%3Fx%25', Buffer.from('1'));
  assert.equal((await b.sh('cat "a b/é?x%"')).stdout, '1');
  await put('workspace%2Fslash%2Ff', Buffer.from('2'));
  assert.equal(String(await get('workspace/./slash//x/../f')), '2');
  assert.equal(String(await get('tmp/../workspace/slash/f')), '2');
  for (const path of ['etc/passwd', 'workspace/%2e%2e/etc/passwd', 'workspace%2F..%2Fetc/passwd', '%2e%2e%2Fetc/passwd', 'workspaces/x', '/']) {
    await b.fails(403, 'invalid_request', 'GET', `/file/${path}`);
    await b.fails(403, 'invalid_request', 'PUT', `/file/${path}`, Buffer.from('x'));
  }
  await b.fails(400, 'invalid_request', 'GET', '/file/');
  await b.fails(400, 'invalid_request', 'GET', '/file/workspace/%00');
  await b.fails(400, 'invalid_request', 'GET', '/file/workspace/%zz');
  await b.fails(400, 'invalid_request', 'GET', `/file/workspace/${'x'.repeat(4097)}`);
});

test('only the scratch files of the Agents SDK may be written outside /workspace', async () => {
  await put('tmp/openai-agents-x1', Buffer.from('scratch'));
  assert.equal((await b.sh('cat /tmp/openai-agents-x1')).stdout, 'scratch');
  await b.fails(403, 'invalid_request', 'GET', '/file/tmp/openai-agents-x1');
  for (const path of ['tmp/x', 'tmp/openai-agents-x/y', 'tmp/openai-agents-..%2Fpasswd']) await b.fails(403, 'invalid_request', 'PUT', `/file/${path}`, Buffer.from('x'));
});

test('a missing file is 404 before any body', async () => {
  await b.fails(404, 'workspace_read_not_found', 'GET', '/file/workspace/none');
  await b.fails(404, 'workspace_read_not_found', 'GET', '/file/workspace/none/deeper');
});

test('a directory or device is a typed error', async () => {
  await b.sh('mkdir -p dir; mkfifo -m 666 fifo; ln -s /nowhere dangling; ln -s loop loop');
  for (const path of ['dir', 'fifo', 'loop']) await b.fails(502, 'exec_transport_error', 'GET', `/file/workspace/${path}`);
  await b.fails(404, 'workspace_read_not_found', 'GET', '/file/workspace/dangling');
  for (const path of ['dir', 'fifo', 'empty/x']) await b.fails(502, 'workspace_archive_write_error', 'PUT', `/file/workspace/${path}`, Buffer.from('x'));
  await b.sh('rm -r dir fifo dangling loop');
});

test('a full disk is reported and the old file is kept', async () => {
  await put('workspace/kept', Buffer.from('old'));
  await b.fails(502, 'workspace_archive_write_error', 'PUT', '/file/workspace/kept', crypto.randomBytes(300 << 20), { timeout: 120_000 });
  assert.equal(String(await get('workspace/kept')), 'old');
  await put('workspace/small', Buffer.from('fits'));
});

test('a session id is looked at', async () => {
  await b.fails(400, 'invalid_request', 'GET', '/file/workspace/kept', undefined, { headers: { 'session-id': 'a b' } });
  await b.fails(400, 'invalid_request', 'PUT', '/file/workspace/kept', Buffer.from('x'), { headers: { 'session-id': 'a..b' } });
  assert.equal((await b.call('GET', '/file/workspace/kept', undefined, { headers: { 'session-id': 'ok-1' } })).status, 200);
});

test('persist and hydrate carry a workspace into another sandbox', async () => {
  await b.sh(`rm -rf /workspace/*; mkdir -p src/deep; echo code >src/deep/f; chmod 751 src; ln -s deep/f src/l; ln src/deep/f hard
    chown user:user src/deep; touch -d 2001-02-03T04:05:06Z old; printf '#!/bin/sh\\n' >run; chmod 755 run
    mkfifo fifo; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("sock")'; mkdir -p node_modules/x; echo big >node_modules/x/y
    mkdir -p "$(printf 'l%.0s' $(seq 90))/$(printf 'm%.0s' $(seq 120))"; echo long >l*/m*/f; ln -s "$(printf 't%.0s' $(seq 150))" longlink`);
  const to = new Cloudflare(d);
  await to.sh('echo stays >other; echo replaced >run');
  await hydrate(await persist(), to);
  const list = 'cd /workspace; find . -mindepth 1 ! -name other -printf "%P %y %m %u %l\\n" | sort; cat src/deep/f hard l*/m*/f; stat -c %Y old; cat other';
  const [was, is] = [(await b.sh('echo stays >other; rm fifo sock;' + list)).stdout, (await to.sh(list)).stdout];
  assert.equal(is, was);
  assert.ok(is.includes('stays'));
  await to.delete();
});

test('excludes are patterns of paths, as tar has them, with all below them', async () => {
  await b.sh('rm -rf /workspace/*; mkdir -p a/b c "x*y"; touch a/b/1 a/2 a/b/m.pyc c/a "x*y/3" xzy keep');
  const names = async (query) => {
    const to = new Cloudflare(d);
    await hydrate(await persist(query), to);
    const out = (await to.sh('find . -mindepth 1 -printf "%P\\n" | sort')).stdout.trim().split('\n');
    await to.delete();
    return out;
  };
  assert.deepEqual(await names('?excludes=a/b,./c,x*y'), ['a', 'a/2', 'keep']);
  assert.deepEqual(await names('?excludes=*.pyc,a/2,c,x*'), ['a', 'a/b', 'a/b/1', 'keep']);
  assert.deepEqual(await names('?excludes=a/*,c,x*y'), ['a', 'keep']);
  assert.deepEqual(await names('?excludes=a,,'), ['c', 'c/a', 'keep', 'x*y', 'x*y/3', 'xzy']);
  await b.fails(400, 'invalid_request', 'POST', '/persist?excludes=a,../b');
  await b.fails(400, 'invalid_request', 'POST', `/persist?excludes=${Array(1001).fill('x').join(',')}`);
});

test('an invalid archive, or one that leads outside, is refused', async () => {
  await b.fails(400, 'invalid_request', 'POST', '/hydrate');
  await b.fails(400, 'invalid_request', 'POST', '/hydrate', Buffer.alloc(0));
  await b.fails(502, 'workspace_archive_write_error', 'POST', '/hydrate', Buffer.from('this is no tar at all, and long enough to be sure of that'));
  const evil = await b.sh('cd /tmp; mkdir -p e; echo pwn >e/f; tar -C e --transform s,f,../../tmp/pwned, -cPf - f | base64 -w0');
  await b.fails(502, 'workspace_archive_write_error', 'POST', '/hydrate', Buffer.from(evil.stdout, 'base64'));
  assert.equal((await b.sh('ls /tmp/pwned')).exit, 2);
});

test('an archive of more than 32 MiB is persisted and hydrated', async () => {
  await b.sh('rm -rf /workspace/*; head -c 40M /dev/urandom >big; sha256sum big >sum');
  const to = new Cloudflare(d);
  await hydrate(await persist(), to);
  assert.equal((await to.sh('sha256sum -c sum')).stdout, 'big: OK\n');
  await to.delete();
});

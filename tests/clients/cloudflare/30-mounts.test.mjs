// Mounts of volumes and directories that the operator listed.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Cloudflare } from '../../lib/cloudflare.mjs';
import { run, startDaemon } from '../../lib/cove.mjs';

let d;
let dir;
let b;

before(async () => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-share-'));
  fs.chmodSync(dir, 0o755);
  fs.writeFileSync(path.join(dir, 'public'), 'for all\n');
  fs.writeFileSync(path.join(dir, 'private'), 'secret\n', { mode: 0o600 });
  d = await startDaemon({ args: ['--mounts', `data,share=${dir}`, '--disk', '64M'] });
  b = new Cloudflare(d);
});
after(async () => {
  await d?.stop();
  fs.rmSync(dir, { recursive: true, force: true });
});

const mount = async (box, binding, mountPath, options = {}) => {
  const a = await box.call('POST', '/mount', { binding, mountPath, options });
  assert.equal(a.status, 200, a.text);
  assert.deepEqual(a.json, { ok: true });
};

test('a volume is shared by sandboxes, outlives them, and belongs to root inside', async () => {
  const other = new Cloudflare(d);
  await mount(b, 'data', '/mnt/data');
  await b.sh('echo one >/mnt/data/f; chown user /mnt/data/f; mkdir -m 777 /mnt/data/open');
  await mount(other, 'data', '/workspace/deep/er/../data');
  assert.equal((await other.sh('cat deep/data/f; stat -c %U deep/data/f; echo two >>deep/data/f')).stdout, 'one\nuser\n');
  assert.equal((await b.sh('cat /mnt/data/f')).stdout, 'one\ntwo\n');
  assert.equal((await b.sh('su user -c "touch /mnt/data/open/mine && stat -c %U /mnt/data/open/mine"')).stdout, 'user\n');
  await other.delete();
  const third = new Cloudflare(d);
  await mount(third, 'data', '/mnt/data', { readOnly: true });
  assert.equal((await third.sh('cat /mnt/data/f')).stdout, 'one\ntwo\n');
  assert.match((await third.sh('echo three >/mnt/data/f')).stderr, /Read-only/);
  await third.delete();
});

test('persist omits mounts in the workspace, and hydrate leaves them mounted', async () => {
  const x = new Cloudflare(d);
  await mount(x, 'data', '/workspace/data');
  await x.sh('echo mine >own; echo theirs >data/theirs');
  const { bytes: tar } = await x.call('POST', '/persist');
  await x.sh('rm own');
  assert.equal((await x.call('POST', '/hydrate', tar)).status, 200);
  assert.equal((await x.sh('cat own data/theirs')).stdout, 'mine\ntheirs\n');
  const plain = new Cloudflare(d);
  assert.equal((await plain.call('POST', '/hydrate', tar)).status, 200);
  assert.equal((await plain.sh('find . -mindepth 1 | sort')).stdout, './data\n./own\n');
  for (const box of [x, plain]) await box.delete();
});

test('a write to a read-only mount is not reported as an invalid request', async () => {
  const x = new Cloudflare(d);
  await mount(x, 'data', '/workspace/data', { readOnly: true });
  assert.match(await x.fails(502, 'workspace_archive_write_error', 'PUT', '/file/workspace/data/new', Buffer.from('x')), /Read-only/);
  await x.fails(403, 'invalid_request', 'PUT', '/file/etc/new', Buffer.from('x'));
  await x.delete();
});

test('a directory of the host is read-only and shows only world-readable files', async () => {
  await mount(b, 'share', '/mnt/share');
  const r = await b.sh('cat /mnt/share/public; cat /mnt/share/private; echo x >/mnt/share/new');
  assert.equal(r.stdout, 'for all\n');
  assert.match(r.stderr, /Permission denied/);
  assert.match(r.stderr, /Read-only file system/);
  assert.deepEqual(fs.readdirSync(dir).sort(), ['private', 'public']);
});

test('a socket or a pipe in a directory of the host is not for sandboxes', async () => {
  const heard = [];
  const server = net.createServer((c) => heard.push(c.end('hello'))).listen(path.join(dir, 'socket'));
  await once(server, 'listening');
  fs.chmodSync(path.join(dir, 'socket'), 0o777);
  assert.equal((await run('mkfifo', ['-m', '666', path.join(dir, 'pipe')])).status, 0);
  const pipe = fs.openSync(path.join(dir, 'pipe'), fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  const box = new Cloudflare(d);
  await mount(box, 'share', '/mnt/share');
  for (const user of ['root', 'user']) {
    const r = await box.sh(`su ${user} -c 'echo x >/mnt/share/pipe; python3 -c "import socket; socket.socket(socket.AF_UNIX).connect(\\"/mnt/share/socket\\")"; cat /mnt/share/public; stat -c %U /mnt/share/public'`);
    assert.match(r.stderr, /pipe: Permission denied/);
    assert.match(r.stderr, /PermissionError/);
    assert.equal(r.stdout, 'for all\nnobody\n');
  }
  assert.deepEqual([heard.length, fs.readSync(pipe, Buffer.alloc(10))], [0, 0]);
  fs.closeSync(pipe);
  server.close();
  fs.rmSync(path.join(dir, 'pipe'));
  await box.delete();
});

test('unmount removes the mount and its directory', async () => {
  await mount(b, 'data', '/workspace/vol');
  assert.equal((await b.call('POST', '/unmount', { mountPath: '/workspace/vol/' })).status, 200);
  assert.equal((await b.sh('ls -d /workspace/vol')).exit, 2);
  await b.sh('mkdir vol2; touch vol2/mine');
  await mount(b, 'data', '/workspace/vol2');
  assert.equal((await b.call('POST', '/unmount', { mountPath: '/workspace/vol2' })).status, 200);
  assert.equal((await b.sh('ls vol2')).stdout, 'mine\n');
});

test('a volume has the limit of a disk', async () => {
  const r = await b.sh('head -c 100M /dev/zero >/mnt/data/big; rm /mnt/data/big');
  assert.match(r.stderr, /quota exceeded|No space/);
  assert.equal((await b.sh('echo fits >/mnt/data/f && cat /mnt/data/f')).stdout, 'fits\n');
});

test('no program and no device of a volume has power', async () => {
  const r = await b.sh('cp /bin/id /mnt/data/id; chmod 4755 /mnt/data/id; su user -c "/mnt/data/id -u"; grep " /mnt/data " /proc/mounts');
  assert.match(r.stdout, /^1000$/m);
  assert.match(r.stdout, /nosuid,nodev/);
});

test('no path of the host is shown', async () => {
  const r = await b.sh('cat /proc/self/mountinfo | grep /mnt/data; cat /proc/mounts');
  assert.ok(!r.stdout.includes(d.dir), r.stdout);
});

test('a mount point must be on the sandbox\'s own disk', async () => {
  await b.sh('ln -s /proc/sys l1; ln -s /dev l2; ln -s / l3; ln -s /mnt/data l4');
  for (const mountPath of ['/proc', '/sys', '/dev', '/dev/shm', '/proc/sys', '/workspace/l1', '/workspace/l2/shm', '/workspace/l3', '/workspace/l4', '/mnt/data', '/proc/self/root/workspace']) {
    await b.fails(502, 'mount_error', 'POST', '/mount', { binding: 'data', mountPath, options: {} });
  }
  assert.equal((await b.sh('grep -c " /proc/sys \\| /dev/shm " /proc/mounts')).exit, 0);
});

test('only mounts of the bridge can be unmounted, never masks', async () => {
  const before = (await b.sh('cut -d" " -f2 /proc/mounts | sort')).stdout;
  for (const mountPath of ['/proc', '/sys', '/dev', '/dev/pts', '/proc/kcore', '/proc/sys', '/workspace', '/etc', '/nowhere', '/workspace/l1']) {
    await b.fails(502, 'unmount_error', 'POST', '/unmount', { mountPath });
  }
  assert.equal((await b.sh('cut -d" " -f2 /proc/mounts | sort')).stdout, before);
});

test('a mount that the operator did not list, or a remote bucket, is a typed error', async () => {
  assert.match(await b.fails(502, 'mount_error', 'POST', '/mount', { binding: 'other', mountPath: '/mnt/x', options: {} }), /operator/);
  await b.fails(502, 'mount_error', 'POST', '/mount', { binding: '../data', mountPath: '/mnt/x', options: {} });
  await b.fails(502, 'mount_error', 'POST', '/mount', { binding: 'x'.repeat(100), mountPath: '/mnt/x', options: {} });
  assert.match(await b.fails(502, 'mount_error', 'POST', '/mount', { bucket: 'b', mountPath: '/mnt/x', options: { endpoint: 'https://x.r2.cloudflarestorage.com', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } } }), /mounts no buckets/);
});

test('every type is checked as Cloudflare does', async () => {
  const good = { binding: 'data', mountPath: '/mnt/x', options: {} };
  for (const [bad, text] of [
    [{ bucket: '' }, /bucket must be a non-empty string/],
    [{ bucket: 5 }, /bucket must be a non-empty string/],
    [{ mountPath: '' }, /mountPath must be a non-empty string/],
    [{ mountPath: 1 }, /mountPath must be a non-empty string/],
    [{ mountPath: 'mnt' }, /absolute/],
    [{ mountPath: '/' }, /root/],
    [{ mountPath: '/a/..' }, /root/],
    [{ options: [] }, /options must be an object/],
    [{ options: undefined }, /options must be an object/],
    [{ binding: '' }, /binding/],
    [{ binding: 7 }, /binding/],
    [{ binding: undefined }, /binding must be a non-empty string for R2/],
    [{ binding: undefined, options: { endpoint: 'https://x' } }, /bucket must be/],
    [{ options: { endpoint: 5 } }, /options.endpoint/],
    [{ options: { endpoint: 'https://x' } }, /not both/],
    [{ options: { s3fsOptions: ['a', 1] } }, /s3fsOptions/],
    [{ options: { readOnly: 'yes' } }, /readOnly/],
    [{ options: { prefix: 1 } }, /prefix/],
    [{ options: { credentialProxy: 1 } }, /credentialProxy/],
    [{ options: { credentials: { accessKeyId: 'x' } } }, /secretAccessKey/],
  ]) assert.match(await b.fails(400, 'invalid_request', 'POST', '/mount', { ...good, ...bad }), text);
  for (const mountPath of [undefined, '', 5, 'x', '/', '/x/..']) await b.fails(400, 'invalid_request', 'POST', '/unmount', { mountPath });
});

test('a sandbox takes a bounded number of mounts', async () => {
  const many = new Cloudflare(d);
  for (let i = 0; i < 16; i++) await mount(many, 'data', `/mnt/m${i}`);
  await many.fails(503, 'capacity_exceeded', 'POST', '/mount', { binding: 'data', mountPath: '/mnt/m16', options: {} });
  assert.equal((await many.call('POST', '/unmount', { mountPath: '/mnt/m3' })).status, 200);
  await mount(many, 'data', '/mnt/m16');
  await many.delete();
});

test('a volume and its mounts outlive the daemon\'s death', async () => {
  await b.sh('echo still >/mnt/data/f');
  await d.kill9('both');
  await d.restart();
  assert.equal((await b.sh('cat /mnt/data/f')).stdout, 'still\n');
  assert.equal((await b.call('POST', '/unmount', { mountPath: '/mnt/data' })).status, 200);
  await mount(b, 'data', '/mnt/again');
  assert.equal((await b.sh('cat /mnt/again/f')).stdout, 'still\n');
});

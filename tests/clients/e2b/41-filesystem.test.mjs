// Directories and metadata of files through the SDK.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dockerSave, tar } from '../../lib/image.mjs';
import { startE2b } from './lib.mjs';

let d, sdk, sbx, id;
before(async () => {
  ({ d, sdk } = await startE2b());
  sbx = await sdk.Sandbox.create();
  id = sbx.sandboxId;
});
after(() => d.stop());

const sh = async (command, opts) => (await d.exec(id, command, opts)).stdout;
const paths = (entries) => entries.map((e) => e.path);

/** A call of the RPC without the SDK. */
async function rpc(method, body, headers = {}) {
  return d.call('POST', `/filesystem.Filesystem/${method}`, body, {
    key: null,
    headers: { 'e2b-sandbox-id': id, 'e2b-sandbox-port': '49983', 'x-access-token': sbx.envdAccessToken, ...headers },
  });
}

test('getInfo of a file, with all that is known', async () => {
  const start = Date.now();
  await sbx.files.write('info.txt', 'four');
  const info = await sbx.files.getInfo('info.txt');
  assert.ok(Math.abs(info.modifiedTime.getTime() - start) < 5000);
  delete info.modifiedTime;
  assert.deepEqual(info, {
    name: 'info.txt',
    type: 'file',
    path: '/home/user/info.txt',
    size: 4,
    mode: 0o644,
    permissions: '-rw-r--r--',
    owner: 'user',
    group: 'user',
    symlinkTarget: undefined,
    metadata: undefined,
  });
});

test('getInfo works for directories, the root and files of another user', async () => {
  await sbx.files.makeDir('dir');
  const dir = await sbx.files.getInfo('dir/');
  assert.deepEqual([dir.type, dir.path, dir.name, dir.permissions], ['dir', '/home/user/dir', 'dir', 'drwxr-xr-x']);
  assert.ok(dir.size > 0);
  const root = await sbx.files.getInfo('/');
  assert.deepEqual([root.type, root.path, root.name, root.owner], ['dir', '/', '/', 'root']);
  await sh('umask 077; mkdir -p /root/private; echo 1 > /root/private/f; chown 4242:4343 /root/private/f', { user: 'root' });
  const other = await sbx.files.getInfo('/root/private/f');
  assert.deepEqual([other.owner, other.group, other.permissions], ['4242', '4343', '-rw-------']);
  assert.equal((await sbx.files.getInfo('')).path, '/home/user');
  assert.equal((await sbx.files.getInfo('~')).path, '/home/user');
  assert.equal((await sbx.files.getInfo('~', { user: 'root' })).path, '/root');
  assert.equal((await sbx.files.getInfo('/proc/self')).type !== undefined, true);
  assert.equal((await sbx.files.getInfo('/dev/null')).type, undefined);
});

test('getInfo of a link shows its target', async () => {
  await sbx.files.write('links/file', 'x');
  await sh('cd ~/links && chmod 640 file && ln -s file l && ln -s l l2 && ln -s /tmp up && ln -s nowhere broken');
  const link = await sbx.files.getInfo('links/l2');
  assert.deepEqual([link.type, link.mode, link.permissions, link.symlinkTarget, link.name],
    ['file', 0o640, 'Lrwxrwxrwx', '/home/user/links/file', 'l2']);
  const up = await sbx.files.getInfo('links/up');
  assert.deepEqual([up.type, up.symlinkTarget], ['dir', '/tmp']);
  const broken = await sbx.files.getInfo('links/broken');
  assert.deepEqual([broken.type, broken.symlinkTarget], [undefined, '/home/user/links/broken']);
  assert.deepEqual((await sbx.files.list('links')).map((e) => [e.name, e.type, e.symlinkTarget]), [
    ['file', 'file', undefined],
    ['l', 'file', '/home/user/links/file'],
    ['l2', 'file', '/home/user/links/file'],
    ['up', 'dir', '/tmp'],
  ]); // the SDK leaves out what has no type
});

test('exists tells whether a path is there, and refuses invalid ones', async () => {
  await sbx.files.write('there', '');
  assert.equal(await sbx.files.exists('there'), true);
  assert.equal(await sbx.files.exists('/home/user'), true);
  assert.equal(await sbx.files.exists('not-there'), false);
  await assert.rejects(sbx.files.exists('there/below'), sdk.InvalidArgumentError);
  await sh('ln -s nowhere ~/dangling');
  assert.equal(await sbx.files.exists('dangling'), true);
  await assert.rejects(sbx.files.exists('x', { user: 'nobody-here' }),
    (e) => e instanceof sdk.AuthenticationError && /invalid username: 'nobody-here'/.test(e.message));
});

test('list returns entries in order, as deep as asked', async () => {
  await sh('mkdir -p ~/tree/subdir1/deep/er ~/tree/subdir2 ~/tree/sub && cd ~/tree && touch file1 .hidden subdir1/a subdir1/deep/b subdir2/c sub/d');
  const base = '/home/user/tree';
  const under = async (depth) => paths(await sbx.files.list('tree', { depth })).map((p) => p.slice(base.length + 1));
  assert.deepEqual(await under(), ['.hidden', 'file1', 'sub', 'subdir1', 'subdir2']);
  assert.deepEqual(await under(2), ['.hidden', 'file1', 'sub', 'sub/d', 'subdir1', 'subdir1/a', 'subdir1/deep', 'subdir2', 'subdir2/c']);
  assert.deepEqual(await under(9), ['.hidden', 'file1', 'sub', 'sub/d', 'subdir1', 'subdir1/a', 'subdir1/deep',
    'subdir1/deep/b', 'subdir1/deep/er', 'subdir2', 'subdir2/c']);
  assert.deepEqual((await rpc('ListDir', { path: 'tree', depth: 0 })).json.entries.length, 5);
  assert.deepEqual(await sbx.files.list('tree/subdir1/deep/er'), []);
  await assert.rejects(sbx.files.list('tree', { depth: 0 }), sdk.InvalidArgumentError);
});

test('list: through a link to a directory, under the name that was asked for', async () => {
  await sh('ln -s tree ~/alias; ln -s ../file1 ~/tree/subdir1/link');
  assert.deepEqual(paths(await sbx.files.list('alias/subdir1')), ['/home/user/alias/subdir1/a', '/home/user/alias/subdir1/deep', '/home/user/alias/subdir1/link']);
  assert.ok((await sbx.files.list('alias', { depth: 3 })).length > 8);
});

test('a path is shown as it is meant, whatever dots and slashes name it', async () => {
  await sh('mkdir -p ~/dots/sub && touch ~/dots/sub/f && ln -s sub ~/dots/link');
  for (const path of ['./dots/sub', 'dots/./sub/.', 'dots//sub', 'dots/sub/', '~/dots/sub', 'dots/link/../sub', '../user/dots/sub', '/home/./user//dots/sub']) {
    assert.deepEqual(paths(await sbx.files.list(path)), ['/home/user/dots/sub/f'], path);
    const info = await sbx.files.getInfo(path);
    assert.deepEqual([info.path, info.name], ['/home/user/dots/sub', 'sub'], path);
  }
  assert.ok(paths(await sbx.files.list('.')).includes('/home/user/dots'));
  assert.equal((await sbx.files.getInfo('.')).name, 'user');
  assert.equal((await sbx.files.rename('./dots/sub/f', 'dots/x/../g')).path, '/home/user/dots/g');
  assert.equal(await sbx.files.exists('dots/x'), false);
});

test('list of a file or a missing path fails', async () => {
  await assert.rejects(sbx.files.list('tree/file1'), sdk.InvalidArgumentError);
  await assert.rejects(sbx.files.list('nowhere-at-all'), sdk.FileNotFoundError);
  await assert.rejects(sbx.files.list('~root'), sdk.InvalidArgumentError);
  await assert.rejects(sbx.files.list('/', { user: 'nobody-here' }), sdk.AuthenticationError);
});

test('list returns twenty thousand entries with their metadata', async () => {
  await sh('mkdir ~/lots && cd ~/lots && seq -f "file-%.0f" 1 20000 | xargs touch');
  await sbx.files.write('lots/file-7', 'x', { metadata: { lucky: 'yes' } });
  const all = await sbx.files.list('lots');
  assert.equal(all.length, 20000);
  assert.deepEqual(all.find((e) => e.name === 'file-7').metadata, { lucky: 'yes' });
  assert.equal(all.filter((e) => e.metadata).length, 1);
  await sbx.files.remove('lots');
  assert.equal(await sbx.files.exists('lots'), false);
});

test('makeDir makes missing parents, owned by the user, and says false for an existing one', async () => {
  assert.equal(await sbx.files.makeDir('made/deep/er'), true);
  assert.equal(await sbx.files.makeDir('made/deep/er'), false);
  assert.equal(await sbx.files.makeDir('made'), false);
  assert.equal(await sbx.files.makeDir('/app'), true);
  assert.equal(await sh('stat -c "%U:%G %a" ~/made ~/made/deep ~/made/deep/er /app'), 'user:user 755\n'.repeat(4));
  assert.equal(await sbx.files.makeDir('mine', { user: 'root' }), true);
  assert.equal(await sh('stat -c %U /root/mine', { user: 'root' }), 'root\n');
  await sbx.files.write('a-file', '');
  await assert.rejects(sbx.files.makeDir('a-file'), sdk.InvalidArgumentError);
  await assert.rejects(sbx.files.makeDir('a-file/below'), sdk.InvalidArgumentError);
  assert.equal((await rpc('MakeDir', { path: 'shown' })).json.entry.path, '/home/user/shown');
});

test('rename: files and directories, into directories that are made', async () => {
  await sbx.files.write('r/old', 'content');
  const moved = await sbx.files.rename('r/old', 'r2/sub/new');
  assert.deepEqual([moved.path, moved.name, moved.type, moved.size], ['/home/user/r2/sub/new', 'new', 'file', 7]);
  assert.equal(await sbx.files.read('r2/sub/new'), 'content');
  assert.equal(await sbx.files.exists('r/old'), false);
  assert.equal((await sbx.files.rename('r2', '/tmp/r3')).type, 'dir');
  assert.equal(await sbx.files.read('/tmp/r3/sub/new'), 'content');
  await sbx.files.write('over', 'old');
  await sbx.files.rename('/tmp/r3/sub/new', 'over');
  assert.equal(await sbx.files.read('over'), 'content');
  await assert.rejects(sbx.files.rename('missing', 'x'), sdk.FileNotFoundError);
  await assert.rejects(sbx.files.rename('over', 'over/below'), sdk.SandboxError);
  assert.equal(await sh('mkdir -p ~/mv/inside && echo made'), 'made\n');
  await assert.rejects(sbx.files.rename('mv', 'mv/inside/mv'), sdk.SandboxError);
});

test('remove deletes files, trees and links but not their targets', async () => {
  await sh('mkdir -p ~/rm/a/b && touch ~/rm/a/b/c ~/kept && ln -s ~/kept ~/rm/link && ln -s ~/kept ~/lone');
  await sbx.files.remove('lone');
  await sbx.files.remove('rm');
  assert.equal(await sh('ls -d ~/rm ~/lone ~/kept 2>/dev/null'), '/home/user/kept\n');
  await sbx.files.remove('rm');
  await sbx.files.remove('never/was');
  await sh('umask 077; mkdir -p /root/rm/x', { user: 'root' });
  await sbx.files.remove('/root/rm');
  assert.equal(await sbx.files.exists('/root/rm'), false);
});

test('calls of the RPC by hand have the codes and statuses of E2B', async () => {
  const missing = await rpc('Stat', { path: '/missing' });
  assert.equal(missing.status, 404);
  assert.equal(missing.json.code, 'not_found');
  assert.match(missing.json.message, /missing/);
  assert.equal(missing.headers['content-type'], 'application/json');
  assert.equal((await rpc('MakeDir', { path: '/tmp' })).status, 409);
  assert.equal((await rpc('MakeDir', { path: '/tmp' })).json.code, 'already_exists');
  assert.equal((await rpc('Stat', { path: '~root' })).json.code, 'invalid_argument');
  assert.equal((await rpc('Stat', { path: 5 })).json.code, 'invalid_argument');
  assert.equal((await rpc('Stat', Buffer.from('{nonsense'))).status, 400);
  assert.equal((await rpc('Nothing', {})).status, 404);
  assert.deepEqual((await rpc('Remove', { path: '/tmp/none', unknown: 1 })).json, {});
  const who = await rpc('Stat', { path: '/' }, { authorization: `Basic ${Buffer.from('ghost:').toString('base64')}` });
  assert.deepEqual([who.status, who.json], [401, { code: 'unauthenticated', message: "invalid username: 'ghost'" }]);
  const entry = (await rpc('Stat', { path: '/tmp' })).json.entry;
  assert.equal(typeof entry.size, 'string');
  assert.equal(entry.type, 'FILE_TYPE_DIRECTORY');
  assert.equal(entry.permissions, 'dtrwxrwxrwx');
  assert.match(entry.modifiedTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.(\d{3}|\d{6}|\d{9}))?Z$/);
});

test('names of 255 bytes, with shell characters or invalid UTF-8 work', async () => {
  await sh(`mkdir ~/odd && cd ~/odd && touch -- $'\\xff\\xfe' 'a b' '-rf' $'new\\nline' '"quoted"' "$(printf 'n%.0s' {1..255})"`);
  const all = await sbx.files.list('odd');
  assert.equal(all.length, 6);
  for (const name of ['a b', '-rf', 'new\nline', '"quoted"', 'n'.repeat(255)]) {
    assert.ok(all.some((e) => e.name === name), name);
    assert.equal(await sbx.files.exists(`odd/${name}`), true);
  }
  await sbx.files.remove('odd');
  assert.equal(await sbx.files.exists('odd'), false);
});

test('files in an image without passwd and group belong to root', async () => {
  await d.api('PUT', '/v1/templates/bare', dockerSave([tar([{ name: 'data/' }])]));
  const bare = await sdk.Sandbox.create('bare');
  await bare.files.write('small', 'x');
  await bare.files.write('large', new Blob([Buffer.alloc(3 << 20)]));
  assert.equal(await bare.files.makeDir('/data/dir'), true);
  assert.deepEqual((await bare.files.list('')).map((e) => [e.path, e.size]), [['/root/large', 3 << 20], ['/root/small', 1]]);
  assert.equal((await bare.files.getInfo('/data/dir')).owner, '0');
  assert.equal(await bare.files.exists('/data', { user: 'root' }), true);
  await assert.rejects(bare.files.exists('/data', { user: 'nobody-here' }), sdk.AuthenticationError);
  await bare.kill();
});

test('fifty concurrent sequences of file calls do not mix', async () => {
  await Promise.all(Array.from({ length: 50 }, async (_, i) => {
    await sbx.files.makeDir(`par/${i}`);
    await sbx.files.write(`par/${i}/f`, `${i}`);
    assert.equal(await sbx.files.read(`par/${i}/f`), `${i}`);
    await sbx.files.rename(`par/${i}/f`, `par/${i}/g`);
    assert.deepEqual((await sbx.files.list(`par/${i}`)).map((e) => e.name), ['g']);
    await sbx.files.remove(`par/${i}`);
  }));
  assert.deepEqual(await sbx.files.list('par'), []);
});

test('calls to a deleted sandbox fail with the SDK\'s error', async () => {
  const gone = await sdk.Sandbox.create();
  await gone.kill();
  const a = await d.call('POST', '/filesystem.Filesystem/Stat', { path: '/' }, {
    key: null,
    headers: { 'e2b-sandbox-id': gone.sandboxId, 'e2b-sandbox-port': '49983', 'x-access-token': gone.envdAccessToken },
  });
  assert.equal(a.status, 502);
  assert.deepEqual(a.json, { sandboxId: gone.sandboxId, message: 'The sandbox was not found', code: 502 });
  await assert.rejects(gone.files.list('/'), sdk.SandboxError);
  await assert.rejects(gone.files.read('x'), sdk.SandboxError);
});

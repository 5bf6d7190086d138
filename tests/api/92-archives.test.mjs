// Directories as archives, out of a sandbox and into one.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { poll, SANITIZED, startDaemon } from '../lib/cove.mjs';
import { gzip, tar, zstd } from '../lib/image.mjs';

let d, s;
before(async () => {
  d = await startDaemon({});
  s = await d.sandbox({ limits: { disk: 64 << 20 } });
});
after(() => d?.stop());

const url = (query) => `/v1/sandboxes/${s.id}/archive?${new URLSearchParams(query)}`;
const get = (query) => d.call('GET', url(query));
const put = (query, body) => d.api('PUT', url(query), body);
const sh = async (command, user) => {
  const r = await d.exec(s.id, command, { user });
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};
/** Name to type and size, as the host's tar reads it. */
const list = (bytes, ...flags) => {
  const r = spawnSync('tar', ['--numeric-owner', ...flags, '-tvf', '-'], { input: bytes, maxBuffer: 1 << 28 });
  assert.equal(r.status, 0, String(r.stderr));
  return String(r.stdout).trim().split('\n').map((l) => l.replace(/^(\S)\S+ +\S+ +(\d+) \S+ \S+ /, '$1 $2 ')).sort();
};

test('a directory comes as tar, tar.gz and tar.zst', async () => {
  await sh('mkdir -p t/sub "t/a b" && echo hello > t/sub/f && printf x > "t/a b/x" && ln -s sub/f t/l && ln t/sub/f t/hard && mkfifo t/fifo && chmod 750 t/sub && chmod 4755 "t/a b/x"');
  const want = ['- 1 ./a b/x', '- 6 ./hard', '- 6 ./sub/f', 'd 0 ./', 'd 0 ./a b/', 'd 0 ./sub/', 'l 0 ./l -> sub/f'];
  for (const [format, type, flag] of [['tar', 'application/x-tar', '--no-xattrs'], ['tar.gz', 'application/gzip', '-z'], ['tar.zst', 'application/zstd', '--zstd']]) {
    const a = await get({ path: 't', format });
    assert.equal(a.status, 200, a.text);
    assert.equal(a.headers['content-type'], type);
    assert.equal(a.headers['content-disposition'], `attachment; filename="t.${format}"`);
    assert.deepEqual(list(a.bytes, flag), want);
  }
});

test('excludes are names at any depth, or paths from the top, with all that is below', async () => {
  await sh('mkdir -p e/keep/build e/build e/x/node_modules/y && touch e/keep/build/f e/build/f e/x/node_modules/y/z e/x/a.pyc e/b.pyc e/c.py');
  const q = new URLSearchParams([['path', 'e'], ['exclude', './build'], ['exclude', 'node_modules'], ['exclude', '*.pyc']]);
  const a = await d.call('GET', `/v1/sandboxes/${s.id}/archive?${q}`);
  assert.deepEqual(list(a.bytes).map((l) => l.split(' ')[2]), ['./c.py', './keep/build/f', './', './keep/', './keep/build/', './x/']);
});

test('names that are long, not ASCII or not UTF-8 come back as they went', async () => {
  await d.exec(s.id, ['python3', '-c', `
import os
os.makedirs("n/" + "L" * 200); open("n/" + "L" * 200 + "/" + "M" * 250, "w").write("x")
open(b"n/\\xff\\xfe", "w").write("bin"); open("n/\\u00fc\\n", "w").write("u")
os.symlink("T" * 300, "n/l")
os.setxattr(b"n/\\xff\\xfe", "user.mine", b"v")`]);
  const a = await get({ path: 'n', format: 'tar.zst' });
  const r = await put({ path: 'n2', parents: 1, links: 'inside' }, a.bytes);
  assert.equal(r.entries, 6);
  assert.equal(await sh('diff --no-dereference -r n n2 && readlink n2/l | wc -c && python3 -c \'import os; print(os.getxattr(b"n2/\\xff\\xfe", "user.mine"))\''), "301\nb'v'\n");
});

test('an invalid path of an archive is an error before any byte', async () => {
  await sh('mkdir -p /root/secret && chmod 700 /root/secret', 'root');
  await sh('touch plain');
  await d.fails(404, 'not_found', 'GET', url({ path: '/workspace/none' }));
  await d.fails(400, 'invalid', 'GET', url({ path: '/workspace/plain' }));
  await d.fails(403, 'denied', 'GET', url({ path: '/root/secret' }));
  await d.fails(400, 'invalid', 'GET', url({ path: 't', format: 'zip' }));
  await d.fails(400, 'invalid', 'GET', url({}));
  await d.fails(400, 'invalid', 'GET', url({ path: `/${'x/'.repeat(2100)}` }));
  await d.fails(400, 'invalid', 'GET', `/v1/sandboxes/${s.id}/archive?path=a%00b`);
  await d.fails(404, 'not_found', 'GET', `/v1/sandboxes/${'a'.repeat(20)}/archive?path=t`);
  await d.fails(404, 'not_found', 'PUT', url({ path: '/workspace/none' }), tar([]));
  await d.fails(403, 'denied', 'PUT', url({ path: '/root/secret' }), tar([]));
  await d.fails(403, 'denied', 'PUT', url({ path: '/etc', atomic: 1 }), tar([{ name: 'x', data: 'x' }]));
  await d.fails(400, 'invalid', 'PUT', url({ path: '/workspace', links: 'some' }), tar([]));
  assert.equal((await get({ path: '/root/secret', user: 'root' })).status, 200);
  assert.equal((await get({ path: '~' })).status, 200);
});

test('a file that may not be read is an error, or left out on request', async () => {
  await sh('mkdir -p r && echo x > r/mine');
  await sh('echo x > /workspace/r/secret && chmod 600 /workspace/r/secret', 'root');
  const e = await d.fails(403, 'denied', 'GET', url({ path: 'r' }));
  assert.match(e.message, /r?secret/);
  assert.deepEqual(list((await get({ path: 'r', skip_unreadable: 1 })).bytes), ['- 2 ./mine', 'd 0 ./']);
});

test('a failure in the middle cuts the connection', async () => {
  await sh('mkdir -p m && head -c 3000000 /dev/urandom > m/a');
  await sh('mkdir /workspace/m/z && chmod 700 /workspace/m/z', 'root');
  await assert.rejects(get({ path: 'm' }), /aborted|ECONNRESET|socket hang up/);
});

test('an archive omits mounts below, which cannot block it', async () => {
  const a = await d.call('GET', url({ path: '/', user: 'root', exclude: 'usr' }), undefined, { timeout: 60_000 });
  assert.equal(a.status, 200, a.text);
  const names = list(a.bytes).map((l) => l.replace(/^. \d+ /, ''));
  assert.ok(names.includes('./proc/') && names.includes('./dev/'));
  assert.equal(names.filter((n) => /^\.\/(proc|sys|dev)\/./.test(n)).length, 0);
});

test('a reader that stops blocks the helper, and one that disconnects ends it', async () => {
  await sh('mkdir -p big && head -c 30000000 /dev/zero > big/f');
  const rss = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${d.frontPid()}/status`, 'utf8'))[1]);
  const before = rss();
  const res = await new Promise((resolve, reject) => {
    http.get(d.url + url({ path: 'big' }), { headers: { authorization: `Bearer ${d.key}` } }, resolve).on('error', reject);
  });
  const helpers = async () => Number((await d.exec(s.id, 'pgrep -c cove-helper')).stdout);
  assert.equal(await helpers(), 1);
  if (!SANITIZED) assert.ok(rss() - before < 8000, `the front grew from ${before} to ${rss()} kB`);
  res.destroy();
  await poll('the helper is gone', async () => (await helpers()) === 0);
  await sh('rm -r big');
});

test('an archive is unpacked, whatever it is compressed with', async () => {
  const entries = [{ name: './', mode: 0o700 }, { name: 'd/', mode: 0o555, mtime: 1_600_000_000 }, { name: 'd/f', data: 'hello', mode: 0o640, mtime: 1_500_000_000, uid: 0 }, { name: 'd/h', type: 'hard', link: 'd/f' }, { name: 'l', type: 'symlink', link: 'd/f' }, { name: 'p', type: 'fifo' }];
  for (const [i, pack] of [(b) => b, gzip, zstd].entries()) {
    const r = await put({ path: `u${i}`, parents: 1 }, pack(tar(entries)));
    assert.deepEqual(r, { entries: 6, bytes: 5, skipped: 1 });
    const got = await sh(`cd u${i}; stat -c '%A %U %Y %n' d d/f; cat l; [ d/f -ef d/h ] && echo same; ls -A`);
    assert.equal(got, 'dr-xr-xr-x user 1600000000 d\n-rw-r----- user 1500000000 d/f\nhellosame\nd\nl\n');
  }
});

test('laid over: directories stay, files are replaced, other files are left alone', async () => {
  await sh('mkdir -p o/d && chmod 711 o/d && echo old > o/d/f && echo other > o/d/g && ln -s g o/d/link');
  await put({ path: 'o' }, tar([{ name: 'd/', mode: 0o700 }, { name: 'd/f', data: 'new' }, { name: 'd/link', data: 'file' }]));
  assert.equal(await sh('cd o/d; stat -c %a .; cat f g link; ls -A'), '711\nnewother\nfilef\ng\nlink\n');
  const e = await d.fails(409, 'conflict', 'PUT', url({ path: 'o' }), tar([{ name: 'd', data: 'x' }]));
  assert.match(e.message, /both a directory and something else/);
});

test('an archive unpacks to the same tree, including attributes of read-only files', async () => {
  await sh(`mkdir -p attr/d; echo x > attr/f; python3 -c "
import os
for n in 'attr/f', 'attr/d': os.setxattr(n, 'user.k', b'v')"; chmod 444 attr/f; chmod 555 attr/d`);
  const { bytes } = await get({ path: 'attr' });
  for (const o of [{}, { atomic: 1 }]) {
    await put({ path: 'attr2', parents: 1, ...o }, bytes);
    assert.equal(await sh('cd attr2; stat -c "%a %n" d f; python3 -c "import os; print(os.getxattr(\'f\', \'user.k\'), os.getxattr(\'d\', \'user.k\'))"'), "555 d\n444 f\nb'v' b'v'\n");
  }
});

test('owners as the archive says are root\'s to ask for', async () => {
  const bytes = tar([{ name: 'f', data: 'x', uid: 7, gid: 8, mode: 0o4755 }]);
  await put({ path: '/workspace/own', parents: 1, user: 'root', owners: 1 }, bytes);
  assert.equal(await sh('stat -c "%u:%g %a" own/f'), '7:8 4755\n');
  await put({ path: '/workspace/own2', parents: 1, user: 'root' }, bytes);
  assert.equal(await sh('stat -c "%u:%g %a" own2/f'), '0:0 755\n');
  await d.fails(403, 'denied', 'PUT', url({ path: 'own3', parents: 1, owners: 1 }), bytes);
});

test('an atomic unpack replaces the directory completely or not at all', async () => {
  await sh('mkdir -p at/dir && echo old > at/dir/f');
  const r = await put({ path: 'at/dir', atomic: 1 }, tar([{ name: 'g', data: 'new' }]));
  assert.deepEqual(r, { entries: 1, bytes: 3, skipped: 0 });
  assert.equal(await sh('ls -A at at/dir'), 'at:\ndir\n\nat/dir:\ng\n');
  await d.fails(400, 'invalid', 'PUT', url({ path: 'at/dir', atomic: 1 }), tar([{ name: 'x', data: 'y' }, { name: '../z', data: 'x' }]));
  await d.fails(400, 'invalid', 'PUT', url({ path: 'at/dir', atomic: 1 }), tar([{ name: 'x', data: 'y' }], { end: false }));
  await d.fails(400, 'invalid', 'PUT', url({ path: 'at/dir', atomic: 1 }), Buffer.from('no archive at all'));
  await d.fails(400, 'invalid', 'PUT', url({ path: '/', atomic: 1 }), tar([]));
  assert.equal(await sh('ls -A at at/dir'), 'at:\ndir\n\nat/dir:\ng\n');
  await put({ path: 'at/new/er', atomic: 1, parents: 1 }, gzip(tar([{ name: './', mode: 0o700 }, { name: 'g', data: 'new' }])));
  assert.equal(await sh('stat -c %a at/new/er; ls -A at/new/er'), '700\ng\n');
  await sh('mkdir /workspace/at/dir/roots && touch /workspace/at/dir/roots/x', 'root');
  const left = await put({ path: 'at/dir', atomic: 1 }, tar([]));
  assert.match(left.left, /^at\/\.cove-[a-z0-9]{16}$/);
});

test('a full disk is 507, and an atomic unpack leaves nothing then', async () => {
  await sh('mkdir -p full && echo kept > full/f');
  const bomb = gzip(tar([{ name: 'zeros', data: Buffer.alloc(100 << 20) }]));
  await d.fails(507, 'disk_full', 'PUT', url({ path: 'full', atomic: 1 }), bomb);
  assert.equal(await sh('ls -A full; cat full/f; ls -dA .cove* 2>/dev/null | wc -l'), 'f\nkept\n0\n');
  await d.fails(507, 'disk_full', 'PUT', url({ path: 'full' }), bomb);
  assert.equal(await sh('ls -A full; dd if=/dev/zero of=room bs=1M count=8 2>/dev/null && rm room'), 'f\n');
});

test('an atomic unpack leaves nothing when its client disconnects', async () => {
  await sh('mkdir -p dies && echo kept > dies/f');
  // up to a border between two entries, after which there are only zeros: it looks whole
  const bytes = tar([{ name: 'a', data: Buffer.alloc(200_000) }, { name: 'b', data: 'b' }]).subarray(0, 512 + 200_192);
  for (const atomic of [1, 0]) {
    const req = http.request(d.url + url({ path: 'dies', atomic }), { method: 'PUT', headers: { authorization: `Bearer ${d.key}`, 'content-length': 1 << 20 } });
    req.on('error', () => {});
    req.write(bytes);
    await poll('it is being unpacked', async () => (await d.exec(s.id, 'ls -A . dies | grep -x "a\\|.cove.*"')).exit_code === 0);
    req.destroy();
    await poll('the helper is gone', async () => (await d.exec(s.id, 'pgrep cove-helper')).exit_code === 1);
    if (atomic) assert.equal(await sh('ls -A dies; ls -dA .cove* 2>/dev/null | wc -l'), 'f\n0\n');
  }
});

test('an atomic unpack leaves nothing when the front is killed', async () => {
  await sh('mkdir -p killed && echo kept > killed/f');
  const req = http.request(d.url + url({ path: 'killed', atomic: 1 }), { method: 'PUT', headers: { authorization: `Bearer ${d.key}`, 'content-length': 1 << 20 } });
  req.on('error', () => {});
  req.write(tar([{ name: 'a', data: Buffer.alloc(200_000) }], { end: false }));
  await poll('it is being unpacked', async () => (await d.exec(s.id, 'ls -dA .cove*/a')).exit_code === 0);
  await d.kill9('front');
  await d.back();
  await poll('the helper is gone', async () => (await d.exec(s.id, 'pgrep cove-helper')).exit_code === 1);
  assert.equal(await sh('ls -A killed; ls -dA .cove* 2>/dev/null | wc -l'), 'f\n0\n');
});

test('helpers are in no list of processes and in no event', async () => {
  const all = await d.get(`/v1/sandboxes/${s.id}/processes`);
  assert.deepEqual(all.processes, []);
});

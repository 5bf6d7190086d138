// Templates from images. The archives are made by the tests.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';
import { processes } from '../lib/host.mjs';
import { dockerSave, gzip, ociLayout, staticProbe, tar, zstd } from '../lib/image.mjs';

let d;
let probe;
before(async () => {
  probe = { name: 'p', data: staticProbe(), mode: 0o755 };
  d = await startDaemon();
});
after(() => d?.stop());

const add = (name, bytes, opts) => d.api('PUT', `/v1/templates/${name}`, bytes, opts);
const refused = (bytes, code = 'invalid', status = 400) => d.fails(status, code, 'PUT', '/v1/templates/refused', bytes);
const on = (template, opts = {}) => d.sandbox({ template, ...opts });
const p = async (id, ...args) => {
  const r = await d.exec(id, ['/p', ...args]);
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};
const lines = (text) => text.split('\n').filter((l) => l !== '');
const storesOf = () => fs.readdirSync(path.join(`/proc/${d.keeperPid()}/root`, d.dir, 'disk')).filter((n) => n.startsWith('.image-'));
const layersOf = (store) => fs.readdirSync(path.join(`/proc/${d.keeperPid()}/root`, d.dir, 'disk', store, 'root/layers'));

test('a rootfs tar becomes a template, and a sandbox starts from it', async () => {
  const t = await add('tiny', tar([probe, { name: 'etc/' }, { name: 'etc/hello', data: 'hello\n', mode: 0o600, uid: 7, gid: 8 }]));
  assert.equal(t.name, 'tiny');
  assert.equal(t.format, 'rootfs');
  assert.equal(t.layers, 1);
  assert.equal(t.files, 2);
  assert.equal(t.state, 'ready');
  const { id, template } = await on('tiny');
  assert.equal(template, 'tiny');
  assert.equal(await p(id, 'cat', '/etc/hello'), 'hello\n');
  assert.match(await p(id, 'stat', '/etc/hello'), /^100600 7:8 6 1 /);
  assert.deepEqual(lines(await p(id, 'ls', '/')), ['dev', 'etc', 'p', 'proc', 'sys']);
  await d.del(`/v1/sandboxes/${id}`);
});

for (const name of ['proc', 'sys', 'dev'])
  test(`a template in which /${name} is a link or a file says so, and is no failure of the server`, async () => {
    for (const [what, entry] of [['a link', { name, type: 'symlink', link: 'etc' }], ['a file', { name, data: 'x' }]]) {
      await add('odd', tar([probe, { name: 'etc/' }, entry]));
      const e = await d.fails(409, 'conflict', 'POST', '/v1/sandboxes', { template: 'odd' });
      assert.match(e.message, new RegExp(`/${name} is ${what} instead of a directory`));
    }
    const snap = await d.post('/v1/snapshots/import', tar([probe, { name, type: 'symlink', link: '/' }]));
    const e = await d.fails(409, 'conflict', 'POST', '/v1/sandboxes', { snapshot: snap.id });
    assert.match(e.message, new RegExp(`/${name} is a link`));
  });

test('a template keeps owners, modes, links, times and attributes of its archive', async () => {
  await add('kept', tar([
    probe,
    { name: './a/b/' , mode: 0o2750, uid: 12, gid: 34 },
    { name: './a/b/suid', data: 'x', mode: 0o4755 },
    { name: 'hard', type: 'hard', link: 'a/b/suid' },
    { name: 'sym', type: 'symlink', link: '/etc/../../../somewhere' },
    { name: 'fifo', type: 'fifo', mode: 0o640 },
    { name: `long/${'n'.repeat(200)}/${'m'.repeat(200)}`, data: 'deep' },
    { name: 'grün.txt', data: 'utf-8' },
    { name: 'attr', data: 'x', pax: { 'SCHILY.xattr.user.note': 'kept', 'SCHILY.xattr.trusted.overlay.opaque': 'y' } },
  ]));
  const { id } = await on('kept');
  assert.match(await p(id, 'stat', '/a/b'), /^42750 12:34 /);
  assert.match(await p(id, 'stat', '/a/b/suid'), /^104755 0:0 1 2 /);
  assert.match(await p(id, 'stat', '/hard'), /^104755 0:0 1 2 /);
  assert.match(await p(id, 'stat', '/sym'), /\/etc\/\.\.\/\.\.\/\.\.\/somewhere\n$/);
  assert.match(await p(id, 'stat', '/fifo'), /^10640 /);
  assert.equal(await p(id, 'cat', `/long/${'n'.repeat(200)}/${'m'.repeat(200)}`), 'deep');
  assert.equal(await p(id, 'cat', '/grün.txt'), 'utf-8');
  assert.equal(await p(id, 'xattr', '/attr', 'user.note'), 'kept');
});

test('gzip and zstd are detected by their magic bytes', async () => {
  const plain = tar([probe, { name: 'how', data: 'packed' }]);
  for (const [name, pack] of [['gz', gzip], ['zst', zstd]]) {
    await add(name, pack(plain));
    const { id } = await on(name);
    assert.equal(await p(id, 'cat', '/how'), 'packed');
  }
  // two members in sequence are one file to gzip, and so to us
  const cut = 1000;
  await add('gz2', Buffer.concat([gzip(plain.subarray(0, cut)), gzip(plain.subarray(cut))]));
});

const LAYERS = () => [
  tar([
    probe,
    { name: 'etc/', mode: 0o711, uid: 5 }, { name: 'etc/gone', data: '1' }, { name: 'etc/stays', data: '1' },
    { name: 'data/' }, { name: 'data/old1', data: '1' }, { name: 'data/sub/' }, { name: 'data/sub/old2', data: '1' },
    { name: 'opt/' }, { name: 'opt/dir/' }, { name: 'opt/dir/x', data: '1' },
    { name: 'file-then-dir', data: '1' }, { name: 'dir-then-file/' }, { name: 'dir-then-file/x', data: '1' },
  ]),
  tar([
    { name: 'etc/.wh.gone' }, { name: 'etc/new', data: '2' }, // no entry for etc/ itself
    { name: 'data/' }, { name: 'data/.wh..wh..opq' }, { name: 'data/fresh', data: '2' },
    { name: 'data/sub/' }, { name: 'data/sub/new2', data: '2' },
    { name: '.wh.opt' },
    { name: 'file-then-dir/' }, { name: 'file-then-dir/y', data: '2' },
    { name: 'dir-then-file', data: '2' },
  ]),
  tar([
    { name: 'data/third', data: '3' },
    { name: 'opt/' }, { name: 'opt/back', data: '3' },
    { name: '.wh.never-there' },
  ]),
];

async function checkMerged(id) {
  assert.deepEqual(lines(await p(id, 'ls', '/etc')), ['new', 'stays']);
  assert.match(await p(id, 'stat', '/etc'), /^40711 5:0 /);
  assert.deepEqual(lines(await p(id, 'ls', '/data')), ['fresh', 'sub', 'third']);
  assert.deepEqual(lines(await p(id, 'ls', '/data/sub')), ['new2']);
  assert.deepEqual(lines(await p(id, 'ls', '/opt')), ['back']);
  assert.deepEqual(lines(await p(id, 'ls', '/file-then-dir')), ['y']);
  assert.equal(await p(id, 'cat', '/dir-then-file'), '2');
  assert.deepEqual(lines(await p(id, 'ls', '/')), ['data', 'dev', 'dir-then-file', 'etc', 'file-then-dir', 'opt', 'p', 'proc', 'sys']);
  // what is removed above can be made again, and nothing of below shows through
  await p(id, 'write', '/etc/gone', 'anew');
  assert.equal(await p(id, 'cat', '/etc/gone'), 'anew');
  await p(id, 'rm', '/etc/stays');
  assert.deepEqual(lines(await p(id, 'ls', '/etc')), ['gone', 'new']);
}

test('an archive of docker save becomes a template, with layers, whiteouts and opaque directories', async () => {
  const t = await add('docker', dockerSave(LAYERS()));
  assert.equal(t.format, 'docker');
  assert.equal(t.layers, 3);
  await checkMerged((await on('docker')).id);
});

test('an OCI layout becomes a template, with gzip or zstd layers and an index in the index', async () => {
  assert.equal((await add('oci', ociLayout(LAYERS()))).format, 'oci');
  await checkMerged((await on('oci')).id);
  await add('oci-zst', zstd(ociLayout(LAYERS(), { pack: zstd, mediaType: 'application/vnd.oci.image.layer.v1.tar+zstd', nested: true })));
  await checkMerged((await on('oci-zst')).id);
});

test('layers that templates share are stored once', async () => {
  const before = storesOf().length;
  const [a, b, c] = LAYERS();
  const other = tar([{ name: 'only-here', data: 'x' }]);
  await add('shares', dockerSave([a, b, other]));
  assert.equal(storesOf().length, before + 1);
  const { id } = await on('shares');
  assert.equal(await p(id, 'cat', '/only-here'), 'x');
  const t = await d.get('/v1/templates/shares');
  assert.equal(t.layers, 3);
  await poll('only the new layer is in its store', () => {
    const l = layersOf(`.image-${t.id}`);
    return l.length === 1 && l[0] === '2';
  });
  // the same layer over other ones is another layer
  await add('other-order', dockerSave([a, c]));
  assert.deepEqual(lines(await p((await on('other-order')).id, 'ls', '/opt')), ['back', 'dir']);
});

test('user, workdir and env of the image are where commands start', async () => {
  const layer = tar([probe, { name: 'app/' }, { name: 'etc/passwd', data: 'svc:x:33:44::/home/svc:/nope\n' }]);
  const config = { Env: ['PATH=/usr/bin', 'FROM_IMAGE=yes', 'BOTH=image'], User: 'svc:svc', WorkingDir: '/app', Entrypoint: ['/p'], Cmd: ['env'] };
  const t = await add('configured', ociLayout([layer], { config }));
  assert.deepEqual(t.image, { env: config.Env, user: 'svc:svc', workdir: '/app', entrypoint: ['/p'], cmd: ['env'] });
  const { id } = await on('configured', { env: { BOTH: 'sandbox' } });
  assert.equal(await p(id, 'pwd'), '/app\n');
  assert.equal(await p(id, 'id'), '33:44\n');
  const env = lines(await p(id, 'env'));
  for (const want of ['PATH=/usr/bin', 'FROM_IMAGE=yes', 'BOTH=sandbox', 'HOME=/home/svc', 'USER=svc']) assert.ok(env.includes(want), want);
  const r = await d.exec(id, ['/p', 'pwd'], { cwd: '/', user: '0' });
  assert.equal(r.stdout, '/\n');
  // and they are still there when another front is, or the sandbox was stopped
  await d.kill9('front');
  await d.back();
  assert.equal(await p(id, 'pwd'), '/app\n');
});

test('calls in an image without bash, passwd or libc say what is missing', async () => {
  await add('bare', tar([probe]));
  const { id } = await on('bare');
  assert.equal((await d.exec(id, ['/p', 'id'])).stdout, '0:0\n');
  const e = await d.fails(422, 'cannot_start', 'POST', `/v1/sandboxes/${id}/exec`, { command: 'true' });
  assert.match(JSON.stringify(e), /template has no bash/);
  const u = await d.fails(422, 'cannot_start', 'POST', `/v1/sandboxes/${id}/exec`, { argv: ['/p', 'id'], user: 'user' });
  assert.match(JSON.stringify(u), /passwd|user/);
});

test('a name that is taken means the new one; sandboxes keep the old', async () => {
  await add('twice', tar([probe, { name: 'v', data: '1' }]));
  const old = (await on('twice')).id;
  await add('twice', tar([probe, { name: 'v', data: '2' }]));
  assert.equal(await p((await on('twice')).id, 'cat', '/v'), '2');
  assert.equal(await p(old, 'cat', '/v'), '1');
});

test('a template is deleted with its last name', async () => {
  await add('one', tar([probe, { name: 'alias', data: 'me' }]));
  const two = await d.post('/v1/templates/one/alias', { alias: 'two' });
  const one = await d.get('/v1/templates/one');
  assert.equal(two.name, 'two');
  assert.equal(two.id, one.id);
  const { id } = await on('two');
  await d.del('/v1/templates/one');
  await d.fails(404, 'not_found', 'GET', '/v1/templates/one');
  const e = await d.fails(409, 'conflict', 'DELETE', '/v1/templates/two');
  assert.match(JSON.stringify(e), /in use by 1 sandbox/);
  await d.del(`/v1/sandboxes/${id}`);
  await d.del('/v1/templates/two');
  await poll('its disk is gone', () => !storesOf().includes(`.image-${one.id}`));
  await d.fails(404, 'not_found', 'POST', '/v1/sandboxes', { template: 'two' });
  await d.fails(404, 'not_found', 'DELETE', '/v1/templates/two');
  await d.fails(404, 'not_found', 'POST', '/v1/templates/nowhere/alias', { alias: 'x' });
  await add('x1', tar([probe]));
  await add('x2', tar([probe, { name: 'y' }]));
  await d.fails(409, 'conflict', 'POST', '/v1/templates/x1/alias', { alias: 'x2' });
});

test('reserved and invalid template names are refused before the body is read', async () => {
  await d.fails(409, 'conflict', 'PUT', '/v1/templates/base', tar([probe]));
  await d.fails(409, 'conflict', 'DELETE', '/v1/templates/base');
  for (const name of ['.hidden', 'a%2Fb', 'a%20b', '-x', 'x'.repeat(64)]) await d.fails(400, 'invalid', 'PUT', `/v1/templates/${name}`, tar([probe]));
  await d.fails(400, 'invalid', 'POST', '/v1/templates/tiny/alias', { alias: '../x' });
});

test('an archive that is not an image is refused with a reason and leaves nothing', async () => {
  const stores = storesOf().length;
  const layer = tar([probe]);
  const two = [layer, tar([{ name: 'x', data: 'x' }])];
  const says = async (bytes, pattern, code, status) => assert.match(JSON.stringify(await refused(bytes, code, status)), pattern);
  await says(Buffer.from(''), /empty/);
  await says(Buffer.from('not a tar'), /not a tar archive/);
  await says(gzip(layer).subarray(0, 300), /ends too early/);
  await says(zstd(layer).subarray(0, 300), /ends too early/);
  await says(layer.subarray(0, layer.length - 600), /ends too early|damaged/);
  await says(tar([probe], { end: false }), /end mark is missing/);
  const bad = (f, edit) => ({ ...f, ...edit(f) });
  const swap = (name, data) => (f) => bad(f, () => ({ [Object.keys(f).find((k) => k.includes(name))]: data }));
  await says(dockerSave(two, { change: swap('layer1', tar([{ name: 'x', data: 'y' }])) }), /diff id/);
  await says(dockerSave(two, { change: swap('.json', Buffer.from('{}')) }), /digest/);
  await says(dockerSave(two, { change: (f) => { delete f['layer0/layer.tar']; return f; } }), /not in the archive/);
  await says(ociLayout(two, { change: (f) => { for (const k in f) if (k.startsWith('blobs') && f[k].length > 5000) f[k] = gzip(tar([{ name: 'z' }])); return f; } }), /digest/);
  await says(ociLayout(two, { mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip+encrypted' }), /media type/);
  await says(dockerSave(two, { extra: { architecture: 'arm64' } }), /arm64/);
  await says(dockerSave(two, { extra: { rootfs: { diff_ids: ['sha256:nonsense'] } } }), /diff_ids/);
  await says(dockerSave(two, { config: { Env: ['NOTHING'] } }), /NAME=value/);
  await says(dockerSave(two, { config: { Env: 'x' } }), /Env/);
  await says(dockerSave(two, { config: { WorkingDir: 'relative' } }), /absolute/);
  await says(dockerSave(Array(129).fill(tar([]))), /129 layers/, 'too_large', 413);
  await says(dockerSave(two, { config: { Env: Array.from({ length: 200 }, (_, i) => `V${i}=${'x'.repeat(400)}`) } }), /bytes/, 'too_large', 413);
  await d.fails(404, 'not_found', 'GET', '/v1/templates/refused');
  await poll('no disk is left', () => storesOf().length === stores);
});

test('128 layers are a template', async () => {
  const layers = Array.from({ length: 128 }, (_, i) => tar(i === 0 ? [probe] : [{ name: `f${i}`, data: `${i}` }]));
  assert.equal((await add('deep', dockerSave(layers))).layers, 128);
  const { id } = await on('deep');
  assert.equal(await p(id, 'cat', '/f127'), '127');
  assert.equal(lines(await p(id, 'ls', '/')).length, 128 + 3);
});

test('progress comes as events, after the body', async () => {
  const big = tar([probe, ...Array.from({ length: 3000 }, (_, i) => ({ name: `f/${i}`, data: 'x'.repeat(100) }))]);
  const r = await d.call('PUT', '/v1/templates/watched', big, { headers: { accept: 'text/event-stream' } });
  assert.equal(r.status, 200);
  if (/event-stream/.test(r.headers['content-type'])) assert.match(r.text, /event: done\n/);
  else assert.equal(r.json.name, 'watched');
});

test('a single large file is reported on while it is read and while it is unpacked', async () => {
  const layer = tar([probe, { name: 'large', data: Buffer.alloc(40 << 20, 7) }]);
  for (const [bytes, texts] of [[layer, ['reading the archive', 'unpacking']], [dockerSave([layer]), ['reading the archive', 'unpacking layer 1 of 1']]]) {
    const r = await d.call('PUT', '/v1/templates/watched', bytes, { headers: { accept: 'text/event-stream' } });
    const said = [...r.text.matchAll(/^event: progress\ndata: (.*)$/gm)].map((m) => JSON.parse(m[1]));
    for (const text of texts)
      assert.ok(said.some((p) => p.text === text && p.done > 0 && p.done <= p.total && p.total > 40 << 20), `${text}: ${r.text}`);
  }
});

test('a client that leaves halfway leaves nothing', async () => {
  const stores = storesOf().length;
  const net = await import('node:net');
  const s = net.connect(d.port, '127.0.0.1');
  s.on('error', () => {});
  s.write(`PUT /v1/templates/halfway HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${d.key}\r\nContent-Length: 100000000\r\n\r\n`);
  s.write(tar([probe]));
  await poll('the helper reads it', () => processes().some((x) => x.comm === 'cove-helper'));
  s.destroy();
  await d.fails(404, 'not_found', 'GET', '/v1/templates/halfway');
  await poll('no disk is left', () => storesOf().length === stores);
});

test('an image takes no more disk than it may: the default of a sandbox, or what --disk says', async () => {
  const small = await startDaemon({ args: ['--disk', '32M', '--disk-max', '64M'] });
  const put = (how) => `/v1/templates/bomb${how}`;
  try {
    const of = (mib) => gzip(tar([probe, { name: 'zeros', data: Buffer.alloc(mib << 20, 1) }]));
    const bomb = of(200);
    assert.ok(bomb.length < 1 << 20);
    for (const how of ['', `?disk=${48 << 20}`]) {
      const e = await small.fails(413, 'too_large', 'PUT', put(how), bomb);
      assert.match(e.message, /does not fit .*--disk.*: the disk is full/);
    }
    const e = await small.fails(400, 'invalid', 'PUT', put(`?disk=${65 << 20}`), bomb);
    assert.match(e.message, /disk-max/);
    await small.fails(400, 'invalid', 'PUT', put('?disk=1'), bomb);
    await small.fails(413, 'too_large', 'PUT', '/v1/templates/fits', of(50));
    await small.api('PUT', `/v1/templates/fits?disk=${60 << 20}`, of(50)); // more than a sandbox gets by default
    await small.sandbox({ template: 'fits' });
  } finally {
    await small.stop();
  }
});

test('an import needs little more disk than the image, however it is packed', async () => {
  const layer = tar([probe, ...Array.from({ length: 150 }, (_, i) => ({ name: `f${i}`, data: crypto.randomBytes(1 << 20) }))]);
  for (const bytes of [layer, zstd(layer), dockerSave([layer]), ociLayout([layer])])
    await d.api('PUT', `/v1/templates/large?disk=${165 << 20}`, bytes);
  await d.fails(413, 'too_large', 'PUT', `/v1/templates/large?disk=${150 << 20}`, layer);
  await d.del('/v1/templates/large');
});

test('equal layers of an image are stored once in its archive, and all of them are unpacked', async () => {
  const gone = tar([{ name: '.wh.f' }]);
  const layers = [tar([probe]), tar([{ name: 'f', data: 'again' }]), gone, tar([{ name: 'f', data: 'again' }])];
  await add('same-oci', ociLayout(layers));
  await add('same-docker', dockerSave(layers, { links: { 'layer3/layer.tar': '../layer1/layer.tar' } }));
  for (const template of ['same-oci', 'same-docker']) {
    const { id } = await on(template);
    assert.equal(await p(id, 'cat', '/f'), 'again');
  }
});

test('everything is there after a restart of the daemon', async () => {
  const before = (await d.get('/v1/templates')).templates;
  const { id } = await on('docker');
  await d.end();
  await d.restart();
  assert.deepEqual((await d.get('/v1/templates')).templates.map((t) => [t.name, t.id]).sort(), before.map((t) => [t.name, t.id]).sort());
  assert.deepEqual(lines(await p(id, 'ls', '/data/sub')), ['new2']);
  await checkMerged((await on('docker')).id);
});

test('the CLI adds a file, a directory and stdin, and shows, aliases and deletes', async () => {
  const dir = fs.mkdtempSync(path.join(d.dir, '..', 'cove-tpl-'));
  try {
    fs.mkdirSync(path.join(dir, 'r/deep', 'x'.repeat(120), 'y'.repeat(120)), { recursive: true });
    fs.writeFileSync(path.join(dir, 'r/p'), staticProbe(), { mode: 0o755 });
    fs.chmodSync(path.join(dir, 'r/p'), 0o4755);
    fs.writeFileSync(path.join(dir, 'r/deep', 'x'.repeat(120), 'y'.repeat(120), 'grün'), 'here');
    fs.linkSync(path.join(dir, 'r/p'), path.join(dir, 'r/q'));
    fs.symlinkSync('/nowhere', path.join(dir, 'r/l'));
    fs.writeFileSync(path.join(dir, 'r/big'), Buffer.alloc(3_000_001, 'b'));
    execFileSync('mknod', [path.join(dir, 'r/null'), 'c', '1', '3']);
    const fromDir = await d.cli(['template', 'add', 'cli-dir', path.join(dir, 'r'), '--json']);
    assert.equal(fromDir.status, 0, fromDir.stderr);
    assert.equal(JSON.parse(fromDir.stdout).name, 'cli-dir');
    assert.match(fromDir.stderr, /1 devices or sockets were left out/);
    const { id } = await on('cli-dir');
    assert.match(await p(id, 'stat', '/q'), /^104755 0:0 \d+ 2 /);
    assert.match(await p(id, 'stat', '/l'), /\/nowhere/);
    assert.match(await p(id, 'stat', '/big'), /^100644 0:0 3000001 /);
    assert.equal(await p(id, 'cat', `/deep/${'x'.repeat(120)}/${'y'.repeat(120)}/grün`), 'here');

    fs.writeFileSync(path.join(dir, 'i.tar.gz'), gzip(dockerSave(LAYERS())));
    assert.equal((await d.cli(['template', 'add', 'cli-file', path.join(dir, 'i.tar.gz')])).status, 0);
    await checkMerged((await on('cli-file')).id);
    assert.equal((await d.cli(['template', 'add', 'cli-stdin', '-'], { input: tar([probe]) })).status, 0);

    const list = await d.cli(['template', 'list']);
    for (const name of ['base', 'cli-dir', 'cli-file', 'cli-stdin']) assert.match(list.stdout, new RegExp(`^${name} `, 'm'));
    assert.equal(JSON.parse((await d.cli(['template', 'show', 'cli-file'])).stdout).layers, 3);
    assert.equal((await d.cli(['template', 'alias', 'cli-stdin', 'cli-alias'])).status, 0);
    assert.equal((await d.cli(['template', 'delete', 'cli-stdin'])).status, 0);
    assert.equal((await d.cli(['template', 'delete', 'cli-alias'])).status, 0);
    const busy = await d.cli(['template', 'delete', 'cli-dir']);
    assert.equal(busy.status, 211);
    assert.match(busy.stderr, /in use by 1 sandbox/);
    const bad = await d.cli(['template', 'add', 'cli-bad', '/etc/passwd']);
    assert.equal(bad.status, 200);
    assert.match(bad.stderr, /not a tar archive/);
    assert.equal((await d.cli(['template', 'add', 'x'])).status, 200);
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
});

test('template build reports missing tools and refuses invalid arguments', async () => {
  const url = '/v1/templates/built/build';
  const e = await d.fails(501, 'unsupported', 'POST', url, { debootstrap: { suite: 'bookworm', packages: ['curl'] } });
  assert.match(JSON.stringify(e), /no debootstrap|no network/);
  for (const debootstrap of [
    { suite: '$(reboot)' }, { suite: '--help' }, { suite: 'bookworm', mirror: 'gopher://x' }, { suite: 'bookworm', mirror: 'http://x/;id' },
    { suite: 'bookworm', packages: ['a b'] }, { suite: 'bookworm', packages: ['-x'] }, { suite: 'bookworm', packages: ['a,b'] }, {}, { suite: 'x', more: 1 },
  ]) await d.fails(400, 'invalid', 'POST', url, { debootstrap });
  const cli = await d.cli(['template', 'build', 'built', '--debootstrap', 'bookworm', '--packages', 'curl,git']);
  assert.equal(cli.status, 205);
  assert.match(cli.stderr, /no debootstrap|no network/);
  await poll('its sandbox is gone', async () => (await d.get('/v1/sandboxes')).sandboxes.every((s) => s.template !== 'base'));
});

test('completion knows every command and its options, in every shell', async () => {
  const bash = (await d.cli(['completion', 'bash'])).stdout;
  const zsh = (await d.cli(['completion', 'zsh'])).stdout;
  const help = (await d.cli(['help'])).stdout;
  const commands = [...help.matchAll(/^ {2}(\S+) {2,}\S/gm)].map((m) => m[1]);
  assert.ok(commands.includes('template') && commands.includes('completion'));
  for (const c of commands) {
    assert.match(bash, new RegExp(`\\b${c}\\b`));
    assert.match(zsh, new RegExp(`'${c}:`));
  }
  const ask = (...words) => execFileSync('bash', ['-c', `${bash}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cove; printf '%s\\n' "\${COMPREPLY[@]}"`, 'x', 'cove', ...words]).toString().trim().split('\n');
  assert.deepEqual(ask('temp'), ['template']);
  assert.deepEqual(ask('template', 'a'), ['add', 'alias']);
  assert.deepEqual(ask('template', 'add', '--j'), ['--json']);
  assert.ok(ask('serve', '--li').includes('--listen'));
  assert.equal((await d.cli(['completion', 'tcsh'])).status, 200);
});

// A template's archive is untrusted: it cannot write outside its own layer, leave anything,
// or use more than a sandbox's limits.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';
import { dockerSave, gzip, ociLayout, staticProbe, tar } from '../lib/image.mjs';

let d;
let probe;
let clean;
const inventory = () => {
  const disk = path.join(`/proc/${d.keeperPid()}/root`, d.dir, 'disk');
  return {
    images: fs.readdirSync(disk).filter((n) => n.startsWith('.image-')).sort(),
    versions: fs.readdirSync(path.join(d.dir, 'images/versions')).sort(),
    names: fs.readdirSync(path.join(d.dir, 'images/names')).sort(),
  };
};
before(async () => {
  probe = { name: 'p', data: staticProbe(), mode: 0o755 };
  d = await startDaemon();
  await d.api('PUT', '/v1/templates/good', tar([probe]));
  clean = inventory();
});
after(() => d?.stop());

/** In every format: as a rootfs, and as the second layer of an image. */
async function refused(entries, pattern, { code = 'invalid', status = 400 } = {}) {
  const bad = tar(entries);
  for (const bytes of [bad, gzip(bad), dockerSave([tar([probe]), bad]), ociLayout([tar([probe]), bad])]) {
    const e = await d.fails(status, code, 'PUT', '/v1/templates/hostile', bytes);
    assert.match(JSON.stringify(e), pattern);
  }
  await d.fails(404, 'not_found', 'GET', '/v1/templates/hostile');
  await poll('nothing is left', () => {
    assert.deepEqual(inventory(), clean);
    return true;
  });
}

test('an image archive cannot name a path that leads out', async () => {
  for (const name of ['../x', 'a/../../x', '..', 'a/..', './../x', 'a/b/../c']) await refused([{ name, data: 'x', type: 'file' }], /leads out of the root/);
  for (const name of ['/etc/cron.d/x', '//x']) await refused([{ name, data: 'x' }], /absolute/);
});

test('an image archive cannot write through a symbolic link', async () => {
  await refused([{ name: 'out', type: 'symlink', link: '/' }, { name: 'out/x', data: 'x' }], /is a link or a file/);
  await refused([{ name: 'out', type: 'symlink', link: '../../..' }, { name: 'out/dir/' }], /is a link or a file/);
  await refused([{ name: 'a/' }, { name: 'a/b', type: 'symlink', link: '/proc/1/root' }, { name: 'a/b/c/d', data: 'x' }], /is a link or a file/);
  await refused([{ name: 'f', data: 'x' }, { name: 'f/x', data: 'x' }], /is a link or a file/);
});

test('a link that is replaced by a file is replaced, not followed', async () => {
  await d.api('PUT', '/v1/templates/replaced', tar([probe, { name: 'l', type: 'symlink', link: '/p' }, { name: 'l', data: 'mine' }]));
  const { id } = await d.sandbox({ template: 'replaced' });
  assert.equal((await d.exec(id, ['/p', 'cat', '/l'])).stdout, 'mine');
  assert.equal((await d.exec(id, ['/p', 'id'])).exit_code, 0);
  await d.del(`/v1/sandboxes/${id}`);
  await d.del('/v1/templates/replaced');
  await poll('nothing is left', () => inventory().images.length === clean.images.length);
});

test('an image archive cannot make hard links to files outside', async () => {
  for (const link of ['/etc/shadow', '../../etc/shadow', 'etc/shadow', 'a/../../x']) await refused([{ name: 'x', type: 'hard', link }], /absolute|leads out|not a file of this archive/);
  await refused([{ name: 'dir/' }, { name: 'x', type: 'hard', link: 'dir' }], /not a file of this archive/);
  await refused([{ name: 'l', type: 'symlink', link: '/etc' }, { name: 'x', type: 'hard', link: 'l/passwd' }], /not a file of this archive/);
  await refused([{ name: 'x', data: '1' }, { name: 'x', type: 'hard', link: 'x' }], /hard link to itself/);
});

test('an image archive cannot bring device nodes or whiteouts of the overlay', async () => {
  await refused([{ name: 'dev/sda', type: 'block', major: 8, minor: 0 }], /device node/);
  await refused([{ name: 'kmem', type: 'char', major: 1, minor: 2 }], /device node/);
  await refused([{ name: 'p', type: 'char', major: 0, minor: 0 }], /device node/);
});

test('an image archive cannot have names or depths without a bound', async () => {
  await refused([{ name: 'n'.repeat(256), data: 'x' }], /longer than 255/);
  await refused([{ name: `${'d/'.repeat(300)}x`, data: 'x' }], /too deep/);
  await refused([{ name: `${'long-name/'.repeat(500)}x`, data: 'x' }], /too long or too deep/);
});

test('a path cannot be a directory and a file in one image archive', async () => {
  await refused([{ name: 'x/' }, { name: 'x', type: 'file', data: '1' }], /both a directory and something else/);
  await refused([{ name: 'x', data: '1' }, { name: 'x/' }], /both a directory and something else/);
});

test('files of an image archive cannot belong to ids that a sandbox does not have', async () => {
  await refused([{ name: 'x', data: '1', uid: 70000 }], /id in a sandbox is 65535/);
  await refused([{ name: 'x', data: '1', uid: 4294967295 }], /id in a sandbox is 65535/);
});

test('a whiteout of an image archive cannot remove files outside its directory', async () => {
  const bad = (name) => dockerSave([tar([probe]), tar([{ name }])]);
  for (const name of ['.wh.', '.wh..', '.wh...', 'a/.wh...']) {
    const e = await d.fails(400, 'invalid', 'PUT', '/v1/templates/hostile', bad(name));
    assert.match(JSON.stringify(e), /is a removal without/);
  }
});

test('an image archive with a malformed manifest or doubled members is refused', async () => {
  const two = [tar([probe]), tar([{ name: 'x', data: 'x' }])];
  const cases = [
    [dockerSave(two, { change: (f) => ({ ...f, 'manifest.json': Buffer.from(f['manifest.json'].toString().replace('layer0/layer.tar', '../../../etc/passwd')) }) }), /leads out/],
    [dockerSave(two, { change: (f) => ({ ...f, 'manifest.json': Buffer.from(f['manifest.json'].toString().replace('layer0/layer.tar', '/etc/passwd')) }) }), /absolute/],
    [dockerSave(two, { change: (f) => ({ ...f, 'manifest.json': Buffer.alloc(5 << 20, 32) }) }), /larger than/],
    [dockerSave(two, { change: (f) => ({ ...f, 'manifest.json': Buffer.from('['.repeat(5000)) }) }), /manifest.json/],
    [dockerSave(two, { change: (f) => ({ ...f, 'manifest.json': Buffer.from('[{"Config":1,"Config":2}]') }) }), /manifest.json/],
    [Buffer.concat([dockerSave(two).subarray(0, -1024), dockerSave(two)]), /twice/],
    [tar([{ name: 'manifest.json', type: 'symlink', link: '/etc/passwd' }]), /absolute/],
    [tar([{ name: 'manifest.json', type: 'symlink', link: 'manifest.json' }]), /not in the archive/],
  ];
  for (const [bytes, pattern] of cases) {
    const answer = await d.call('PUT', '/v1/templates/hostile', bytes);
    assert.ok([400, 413].includes(answer.status), answer.text);
    assert.match(answer.text, pattern);
  }
  await poll('nothing is left', () => {
    assert.deepEqual(inventory(), clean);
    return true;
  });
});

test('an archive bomb ends at the disk of its sandbox and does not fill the host', async () => {
  const small = await startDaemon({ args: ['--disk', '48M'] });
  try {
    const zeros = Buffer.alloc(96 << 20, 7);
    const bomb = gzip(tar([{ name: 'big', data: zeros }]));
    for (const bytes of [bomb, gzip(bomb.length > 0 ? dockerSave([tar([{ name: 'big', data: zeros }])], { pack: gzip }) : bomb)]) {
      const e = await small.fails(413, 'too_large', 'PUT', '/v1/templates/bomb', bytes);
      assert.match(JSON.stringify(e), /disk is full/);
    }
    await small.api('PUT', '/v1/templates/after', tar([probe]));
  } finally {
    await small.stop();
  }
});

test('a setuid program of an image is root of the sandbox only', async () => {
  await d.api('PUT', '/v1/templates/suid', tar([{ ...probe, mode: 0o6755 }, { name: 'etc/passwd', data: 'u:x:7:7::/:/p\n' }]));
  const { id } = await d.sandbox({ template: 'suid' });
  const map = fs.readFileSync(`/proc/${d.keeperPid()}/uid_map`, 'utf8');
  assert.ok(map.length > 0);
  const r = await d.exec(id, ['/p', 'cat', '/proc/self/uid_map'], { user: 'u' });
  assert.doesNotMatch(r.stdout, /^\s+0\s+0\s/);
});

test('the template added before all attacks is unchanged', async () => {
  const { id } = await d.sandbox({ template: 'good' });
  assert.equal((await d.exec(id, ['/p', 'id'])).stdout, '0:0\n');
});

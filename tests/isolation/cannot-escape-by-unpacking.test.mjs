// An archive and the directory it is unpacked into are untrusted: nothing outside the
// directory is made or changed.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';
import { tar } from '../lib/image.mjs';

let d, s;
before(async () => {
  d = await startDaemon({});
  s = await d.sandbox();
  await sh('mkdir -p /workspace/in /workspace/out && echo safe > /workspace/out/f');
});
after(() => d?.stop());

const sh = async (command, user) => {
  const r = await d.exec(s.id, command, { user });
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};
const url = (query) => `/v1/sandboxes/${s.id}/archive?${new URLSearchParams({ path: '/workspace/in', ...query })}`;
async function refused(entries, pattern, { status = 400, code = 'invalid', ...query } = {}) {
  for (const atomic of [0, 1]) {
    const e = await d.fails(status, code, 'PUT', url({ atomic, ...query }), tar(entries));
    assert.match(e.message, pattern);
  }
  assert.equal(await sh('cd /workspace; ls -A . out; cat out/f; find in -mindepth 1 -delete'), '.:\nin\nout\n\nout:\nf\nsafe\n');
}

test('an archive cannot name files outside the directory', async () => {
  for (const name of ['../out/f', 'a/../../out/f', '..', './../x']) await refused([{ name, data: 'x', type: 'file' }], /leads out/);
  for (const name of ['/workspace/out/f', '//x']) await refused([{ name, data: 'x' }], /absolute/);
});

test('an archive cannot leave a link that leads out, directly or by another link', async () => {
  for (const link of ['/etc', '/workspace/in/f', '..', '../out', 'a/../../out', './../out', '../in/../out', 'a/..', './/..']) await refused([{ name: 'l', type: 'symlink', link }], /leads out/);
  await refused([{ name: 'd/e/l', type: 'symlink', link: '../../..' }], /leads out/);
  // each of these is inside by its letters; together they are not
  await refused([{ name: 'd/e/up', type: 'symlink', link: '../..' }, { name: 'l', type: 'symlink', link: 'd/e/up/..' }], /leads out/);
  await refused([{ name: 'd/e/up', type: 'symlink', link: '../..' }, { name: 'l', type: 'hard', link: 'd/e/up' }], /hard link to the link/);
  await d.api('PUT', url(), tar([{ name: 'd/e/up', type: 'symlink', link: '../..' }, { name: 'd/e/x', type: 'symlink', link: './/../y' }]));
  await d.api('PUT', url({ links: 'any' }), tar([{ name: 'l', type: 'symlink', link: '/etc' }]));
  assert.equal(await sh('cd /workspace/in; readlink l; rm -r *'), '/etc\n');
});

test('an archive cannot write through a link in it or in the directory', async () => {
  await refused([{ name: 'd/x/' }, { name: 'd/l', type: 'symlink', link: 'x' }, { name: 'd/l/f', data: 'x' }], /is a link or a file/);
  await refused([{ name: 'o', type: 'symlink', link: '/workspace/out' }, { name: 'o/f', data: 'x' }], /is a link or a file/, { links: 'any' });
  await sh('ln -s ../out /workspace/in/there');
  await d.fails(400, 'invalid', 'PUT', url(), tar([{ name: 'there/f', data: 'x' }]));
  await d.fails(409, 'conflict', 'PUT', url(), tar([{ name: 'there/', mode: 0o700 }]));
  await d.fails(400, 'invalid', 'PUT', url(), tar([{ name: 'h', type: 'hard', link: 'there/f' }]));
  assert.equal(await sh('cat /workspace/out/f; stat -c %a /workspace/out; rm -r /workspace/in/*'), 'safe\n755\n');
});

test('an archive cannot make hard links to files outside the directory', async () => {
  for (const link of ['/workspace/out/f', '../out/f', 'a/../../out/f']) await refused([{ name: 'x', type: 'hard', link }], /absolute|leads out/);
  await refused([{ name: 'x', type: 'hard', link: 'none' }], /not a file of this archive/);
});

test('an archive cannot bring device nodes', async () => {
  await refused([{ name: 'sda', type: 'block', major: 8, minor: 0 }], /device node/, { user: 'root' });
  await refused([{ name: 'kmem', type: 'char', major: 1, minor: 2 }], /device node/, { user: 'root' });
});

test('an archive cannot have entries, names or depths without a bound', async () => {
  await refused([{ name: 'n'.repeat(256), data: 'x' }], /longer than 255/);
  await refused([{ name: `${'d/'.repeat(300)}x`, data: 'x' }], /too deep/);
});

// Root unpacks into a directory of the user's, who exchanges directories for links
// all the while: not one file may come to where the links lead.
test('a tenant who swaps directories for links cannot lead an unpack as root elsewhere', async () => {
  const racer = await d.process(s.id, ['python3', '-c', `
import os, itertools
os.chdir("/workspace/in")
print("ready", flush=True)
for i in itertools.count():
    n = "d%d" % (i % 4)
    try: os.rename(n, "moved%d" % i)
    except OSError: pass
    try: os.symlink("/workspace/out", n)
    except OSError: pass
    try: os.unlink(n)
    except OSError: pass
`]);
  await d.post(`/v1/sandboxes/${s.id}/processes/${racer.id}/wait`, { for: 'log', text: 'ready', timeout_ms: 10_000 });
  const entries = [];
  for (let i = 0; i < 400; i++) entries.push({ name: `d${i % 4}/e/f${i}`, data: 'x' }, { name: `d${i % 4}/g`, type: 'symlink', link: 'e' });
  const bytes = tar(entries);
  let refusedOnce = 0;
  for (let i = 0; i < 25; i++) {
    const a = await d.call('PUT', url({ user: 'root' }), bytes);
    assert.ok([200, 400, 404, 409].includes(a.status), a.text);
    refusedOnce += a.status !== 200;
  }
  await d.post(`/v1/sandboxes/${s.id}/processes/${racer.id}/kill`, { grace_ms: 0 });
  assert.ok(refusedOnce > 0, 'the race was run');
  assert.equal(await sh('ls -A /workspace/out; find / -xdev -name "f[0-9]*" -newer /workspace/out/f -path "*/e/*" 2>/dev/null | grep -v ^/workspace/in | wc -l'), 'f\n0\n');
});

test('an archive packed as the user has no files that only root may read', async () => {
  await sh('mkdir -m 700 /root/s && echo secret > /root/s/f && mkdir /workspace/mix && cp -r /root/s /workspace/mix', 'root');
  await d.fails(403, 'denied', 'GET', `/v1/sandboxes/${s.id}/archive?path=/root/s`);
  await d.fails(403, 'denied', 'GET', `/v1/sandboxes/${s.id}/archive?path=/workspace/mix`);
  const a = await d.call('GET', `/v1/sandboxes/${s.id}/archive?path=/workspace/mix&skip_unreadable=1`);
  assert.ok(!a.bytes.includes('secret'));
});

// No path, link, race or trick of a tenant makes the file API touch what the caller, as that user
// inside, could not: not the host's files, not another user's, not init's.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { startDaemon, within } from '../lib/cove.mjs';

const CANARY = path.join(os.tmpdir(), `cove-canary-files-${process.pid}`);
const TEXT = 'canary of the host\n';
const SECRET = 'only root inside may read this\n';
let d, id;
before(async () => {
  fs.writeFileSync(CANARY, TEXT, { mode: 0o666 });
  d = await startDaemon({});
  id = (await d.sandbox()).id;
  await root(`printf '${SECRET.trim()}\\n' > /root/secret; chmod 600 /root/secret; mkdir -p /victim/in; echo kept > /victim/in/file; chmod 777 /workspace`);
});
after(async () => {
  fs.rmSync(CANARY, { force: true });
  await d?.stop();
});

const sh = async (command, opts) => {
  const r = await d.exec(id, command, { timeout_ms: 60_000, ...opts });
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};
const root = (command) => sh(command, { user: 'root' });
const url = (what, o) => `/v1/sandboxes/${id}/files${what}?${Object.entries(o).map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join('&')}`;
const get = (p, o = {}) => d.call('GET', url('', { path: p, ...o }));
const put = (p, body, o = {}) => d.call('PUT', url('', { path: p, ...o }), Buffer.from(body));

test('files of the host are not reached by symlinks, dots, /proc/self/root and magic links', async () => {
  const up = '../'.repeat(40);
  await root(`cd /tmp; ln -s ${up}${CANARY} up; ln -s /proc/self/root${CANARY} magic; ln -s /proc/1/root${CANARY} init; ln -s /proc/self/cwd/${up}${CANARY} cwd
for i in 0 3 4 5 6 7 8 9 10; do ln -s /proc/1/fd/$i fd$i; ln -s /proc/self/fd/$i self$i; done`);
  const paths = [CANARY, `/${up}${CANARY}`, '/tmp/up', '/tmp/magic', '/tmp/init', '/tmp/cwd', `/proc/self/root/../..${CANARY}`, `/proc/1/root${CANARY}`, `/proc/1/cwd/${up}${CANARY}`, `/dev/shm/../..${CANARY}`];
  for (const p of paths)
    for (const user of ['user', 'root']) {
      const a = await get(p, { user });
      assert.ok(a.status >= 400 && a.status < 500, `${p}: ${a.status} ${a.text}`);
      await put(p, 'overwritten', { user });
      await put(p, Buffer.alloc(100_000, 'o'), { user });
      await d.call('DELETE', url('', { path: p, user, recursive: 1 }));
      await root(`rm -f ${CANARY}`); // a link that leads nowhere inside is written through: there is one now, inside
    }
  assert.equal(fs.readFileSync(CANARY, 'utf8'), TEXT);
});

test("init's memory, fds and program are not reached as any user", async () => {
  for (const user of ['user', 'root']) {
    for (const p of ['/proc/1/mem', '/proc/1/environ', '/proc/1/maps', '/proc/1/exe', '/proc/1/root/etc/shadow', ...[0, 3, 4, 5, 6, 7, 8, 9].map((n) => `/proc/1/fd/${n}`), ...[3, 4, 5, 6, 7, 8].map((n) => `/tmp/fd${n}`)]) {
      const a = await get(p, { user });
      assert.ok(a.status >= 400 && a.status < 500, `${p} as ${user}: ${a.status}`);
      const w = await put(p, 'x', { user });
      assert.ok(w.status >= 400 && w.status < 500, `${p} as ${user}: ${w.status}`);
    }
    // what is called self is the helper: a process of that user's, with none of init's fds
    assert.match((await get('/proc/self/status', { user })).text, /^Name:\tcove-helper\n/);
    assert.match((await get('/proc/self/status', { user })).text, user === 'root' ? /\nUid:\t0\t/ : /\nUid:\t[1-9]\d*\t/);
  }
});

test('a path with NUL or over 4,096 bytes is refused', async () => {
  for (const p of ['%00', '/etc/passwd%00.txt', '%2fworkspace%2f%00%2f..%2f..']) assert.equal((await d.call('GET', `/v1/sandboxes/${id}/files?path=${p}`)).status, 400);
  for (const p of ['/' + 'a'.repeat(4096), '/' + '../'.repeat(1400), '/' + 'x/'.repeat(3000), 'y'.repeat(10_000)]) {
    for (const [method, what] of [['GET', ''], ['PUT', ''], ['DELETE', ''], ['GET', '/stat'], ['GET', '/list'], ['POST', '/mkdir']])
      assert.equal((await d.call(method, url(what, { path: p }), method === 'PUT' ? Buffer.from('x') : undefined)).status, 400, `${method} ${what}`);
  }
});

test("file calls cannot do what the user they run as may not do", async () => {
  await sh('ln -sf /root/secret /workspace/ln; ln -sf /root /workspace/lnd');
  for (const p of ['/root/secret', '/workspace/ln', '/workspace/lnd/secret', '/proc/self/root/root/secret']) {
    for (const what of ['', '/stat']) if (what === '' || p !== '/workspace/ln') assert.equal((await d.call('GET', url(what, { path: p }))).status, 403, p);
    assert.equal((await put(p, 'mine')).status, 403, p);
    assert.equal((await put(p, Buffer.alloc(70_000))).status, 403, p);
    assert.equal((await put(p, 'mine', { atomic: 1 })).status, 403, p);
  }
  assert.equal((await d.call('GET', url('/list', { path: '/root' }))).status, 403);
  assert.equal((await d.call('POST', url('/copy', { path: '/root/secret', to: '/workspace/stolen' }))).status, 403);
  assert.equal((await d.call('POST', url('/move', { path: '/root/secret', to: '/workspace/stolen' }))).status, 403);
  assert.equal((await d.call('POST', url('/chmod', { path: '/root/secret', mode: '0666' }))).status, 403);
  assert.equal((await d.call('POST', url('/search', { path: '/root', text: 'only root' }))).status, 403);
  assert.equal(await root('cat /root/secret; stat -c %a /root/secret'), `${SECRET}600\n`);
});

// Swaps two names for as long as it lives, as fast as the kernel lets it.
const swapper = async (a, b) =>
  d.process(id, ['python3', '-c', `
import ctypes
libc = ctypes.CDLL(None)
while True: libc.renameat2(-100, b"${a}", -100, b"${b}", 2)`]);

test('a file swapped for a link to a secret in a race does not show the secret', { timeout: 60_000 }, async () => {
  await sh(`cd /workspace; echo mine > swap; head -c 200000 /dev/zero > bigswap; ln -sf /root/secret alt; ln -sf /root/secret bigalt`);
  const p = [await swapper('/workspace/swap', '/workspace/alt'), await swapper('/workspace/bigswap', '/workspace/bigalt')];
  const seen = new Set();
  const end = Date.now() + 3000;
  while (Date.now() < end) {
    const answers = await Promise.all([get('swap'), get('bigswap'), put('swap', 'mine\n'), put('bigswap', Buffer.alloc(200_000)), d.call('POST', url('/copy', { path: 'swap', to: 'copied', overwrite: 1 }))]);
    for (const a of answers) {
      seen.add(a.status);
      assert.ok(!a.text.includes('only root'), 'the secret came out');
    }
  }
  for (const { id: pid } of p) await d.del(`/v1/sandboxes/${id}/processes/${pid}`).catch(() => {});
  await sh('pkill python3 || true');
  assert.ok(seen.has(200) && seen.has(403), `both were met: ${[...seen]}`);
  assert.equal(await root('cat /root/secret'), SECRET);
});

test('a directory swapped for a link in a race does not lead root out of the tree', { timeout: 60_000 }, async () => {
  await sh('mkdir -p /workspace/tree/d; ln -s /victim /workspace/other');
  await swapper('/workspace/tree/d', '/workspace/other');
  const end = Date.now() + 4000;
  let n = 0;
  while (Date.now() < end) {
    await d.exec(id, 'mkdir -p /workspace/tree/d/in; touch /workspace/tree/d/in/mine 2>/dev/null; true');
    const l = await d.call('GET', url('/list', { path: 'tree', depth: 9, user: 'root' }));
    if (l.status === 200) assert.ok(!l.json.files.some((f) => f.path.endsWith('in/file')), 'walked through the link');
    const s = await d.call('POST', url('/search', { path: 'tree', text: 'kept', user: 'root' }));
    if (s.status === 200) assert.equal(s.json.count, 0, 'searched through the link');
    await d.call('POST', url('/chown', { path: 'tree', owner: 'user', recursive: 1, user: 'root' }));
    await d.call('POST', url('/chmod', { path: 'tree', mode: '0777', recursive: 1, user: 'root' }));
    await d.call('DELETE', url('', { path: 'tree/d', recursive: 1, user: 'root' }));
    n++;
  }
  await sh('pkill python3 || true');
  assert.ok(n > 3, `${n} rounds`);
  assert.equal(await root('cat /victim/in/file; stat -c "%U %a" /victim/in/file /victim/in'), 'kept\nroot 644\nroot 755\n');
});

test('pipes, devices, leases and endless files do not make the front or init wait', async () => {
  await sh('cd /workspace; mkfifo wait; mkdir slow; mkfifo slow/p; head -c 100000 /dev/zero > leased; echo x > small');
  await d.process(id, ['python3', '-c', `
import fcntl, signal, time
signal.signal(signal.SIGIO, lambda *a: None)
for name in ["leased", "small"]:
    f = open("/workspace/" + name, "r+"); fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK); globals()[name] = f
open("/workspace/ready", "w").close()
time.sleep(1000)`], { id: 'lease' });
  await sh('until [ -e /workspace/ready ]; do sleep 0.01; done');
  const calls = ['wait', '/dev/zero', '/dev/random', '/dev/tty', '/dev/ptmx', '/dev/stdin', '/proc/1/mem', '/proc/kmsg'].flatMap((p) => [() => get(p), () => put(p, 'x'), () => put(p, Buffer.alloc(80_000))]);
  calls.push(() => get('leased'), () => get('small'), () => put('small', 'y'), () => put('leased', 'y'), () => d.call('POST', url('/search', { path: 'slow', text: 'x' })), () => d.call('POST', url('/copy', { path: 'slow', to: 'slow2' })));
  for (const call of calls) {
    const a = await within(5000, String(call), call());
    assert.ok(a.status < 500, a.text);
    await within(2000, 'init answers', d.exec(id, ['true']));
  }
  assert.equal((await get('leased')).status, 409);
  assert.equal((await get('small')).status, 409);
});

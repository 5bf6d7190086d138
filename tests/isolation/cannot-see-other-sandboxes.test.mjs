// Two sandboxes of one daemon share nothing observable.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { attack, Attacks, initOf, insideOf, logOf, refused } from '../lib/attack.mjs';
import { startDaemon } from '../lib/cove.mjs';
import { statusOf } from '../lib/host.mjs';

const attacks = new Attacks();
const MARK = 'mark-of-the-first';
let d;
let a;
let b;
let p;
before(async () => {
  await attacks.compile('ipc', 'calls');
  d = await startDaemon({ args: ['--pool', '2'] });
  [a, b] = await Promise.all([d.sandbox({ env: { MINE: MARK } }), d.sandbox()]);
  await Promise.all([attacks.put(d, a.id, 'ipc'), attacks.put(d, b.id, 'ipc')]);
  p = await d.process(a.id, ['/tmp/ipc', 'leave', MARK], { user: 'root', stdin: true });
  await d.post(`/v1/sandboxes/${a.id}/processes/${p.id}/wait`, { for: 'log', text: 'left ok' });
});
after(async () => {
  attacks.clean();
  await d?.stop();
});

const inB = (command, opts = {}) => d.exec(b.id, command, { user: 'root', timeout_ms: 60_000, ...opts });

test('sockets, ports, queues, shared memory and files of another sandbox are not found', async () => {
  const gone = { abstract: 'ECONNREFUSED', tcp: 'ECONNREFUSED', shm: 'ENOENT', msg: 'ENOENT', sem: 'ENOENT', mq: 'ENOENT', 'posix shm': 'ENOENT', file: 'ENOENT' };
  for (const user of ['root', 'user']) refused(await attack(d, b.id, 'ipc', ['find', MARK], { user }), gone);
  // the same search where the marks are: it does find them
  refused(await attack(d, a.id, 'ipc', ['find', MARK]), Object.fromEntries(Object.keys(gone).map((n) => [n, 'ok'])));
});

test('a sandbox does not see processes of another', async () => {
  const there = await d.exec(a.id, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "', { user: 'root' });
  assert.ok(there.stdout.includes(MARK));
  const here = await inB('cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr "\\0" " "; ls -d /proc/[0-9]* | wc -l');
  assert.ok(!here.stdout.includes(MARK));
  for (const q of insideOf(d, a.id)) assert.equal((await inB(['kill', '-0', String(q.pid)])).exit_code, 1, `pid ${q.pid} of the host`);
});

test('a sandbox does not see files of another, of any user', async () => {
  await d.exec(a.id, 'for f in /tmp /var/tmp /dev/shm /home/user /workspace /root /etc /run /opt /usr/lib; do echo x >$f/MARKED; done', { user: 'root' });
  assert.equal((await d.exec(a.id, 'find / -xdev -name MARKED 2>/dev/null | wc -l', { user: 'root' })).stdout, '9\n');
  assert.equal((await inB('find / /dev/shm -xdev -name MARKED 2>/dev/null')).stdout, '');
});

test('no uid of a sandbox is a uid of another or of the host', async () => {
  const ids = [a, b].map((s) => Number(statusOf(initOf(d, s.id).pid).Uid.split(/\s+/)[0]));
  assert.notEqual(ids[0], ids[1]);
  for (const n of ids) assert.ok(n >= 0x70000000 && n % 65536 === 0, `${n}`);
  assert.ok(Math.abs(ids[0] - ids[1]) >= 65536);
});

test('sandboxes share no namespace', async () => {
  const kinds = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'time', 'user', 'uts'];
  const script = kinds.map((k) => `readlink /proc/self/ns/${k}`).join(';');
  const [x, y] = await Promise.all([a, b].map(async (s) => (await d.exec(s.id, script, { user: 'root' })).stdout.trim().split('\n')));
  assert.equal(x.length, kinds.length);
  for (const [i, k] of kinds.entries()) assert.notEqual(x[i], y[i], k);
});

test('a sandbox does not see terminals of another', async () => {
  const holder = await d.process(a.id, ['python3', '-c', 'import os,sys\nm,s=os.openpty()\nprint(os.ttyname(s),flush=True)\nsys.stdin.read()'], { stdin: true });
  await d.post(`/v1/sandboxes/${a.id}/processes/${holder.id}/wait`, { for: 'log', text: '/dev/pts/' });
  assert.equal((await inB('ls /dev/pts')).stdout, 'ptmx\n');
});

// Watches every device, holds a lock on one, and says at the end which were used by whom it could see.
const LURK = `
import ctypes, fcntl, os, struct, sys
names = ('null', 'zero', 'full', 'random', 'urandom', 'tty')
libc = ctypes.CDLL(None)
spy = libc.inotify_init1(os.O_NONBLOCK)
watched = {libc.inotify_add_watch(spy, b'/dev/' + n.encode(), 0xfff): n for n in names}
held = os.open('/dev/full', os.O_RDONLY)
fcntl.flock(held, fcntl.LOCK_EX)
os.read(spy, 65536)
print('lurking', flush=True)
sys.stdin.readline()
os.close(os.open('/dev/zero', os.O_RDONLY))
seen, at, used = os.read(spy, 65536), 0, set()
while at < len(seen):
    wd, _, _, length = struct.unpack_from('iIII', seen, at)
    used.add(watched[wd])
    at += 16 + length
print('used:', *sorted(used), flush=True)
`;

test('a sandbox does not see by watches and locks how another uses its devices', async () => {
  const P = `/v1/sandboxes/${b.id}/processes`;
  const lurker = await d.process(b.id, ['python3', '-c', LURK], { user: 'root', stdin: true });
  await d.post(`${P}/${lurker.id}/wait`, { for: 'log', text: 'lurking' });
  const busy = await d.exec(a.id, 'flock -n /dev/full echo free; head -c 9 /dev/urandom >/dev/null; head -c 9 /dev/random /dev/zero >/dev/null', { user: 'root' });
  assert.match(busy.stdout, /^free$/m, 'no other sandbox has a lock');
  await d.call('POST', `${P}/${lurker.id}/stdin`, '\n');
  await d.post(`${P}/${lurker.id}/wait`);
  assert.equal(await logOf(d, b.id, lurker.id), 'lurking\nused: zero\n', 'its own use only');
});

test('boot ids differ, and are the sandbox\'s own', async () => {
  const ids = await Promise.all([a, b].map(async (s) => (await d.exec(s.id, 'cat /proc/sys/kernel/random/boot_id')).stdout.trim()));
  assert.deepEqual(ids, [a.boot_id, b.boot_id]);
  assert.notEqual(ids[0], ids[1]);
});

test('a new sandbox finds nothing of a deleted one', async () => {
  const first = await d.sandbox();
  await d.exec(first.id, 'echo x >/workspace/BEFORE; echo x >/dev/shm/BEFORE; rm -rf /opt; chmod 777 / /root; chown user /; setfattr -n user.evil -v x /; touch -d 2001-01-01 /; echo evil:x:0:0::/:/bin/sh >>/etc/passwd', { user: 'root' });
  await d.del(`/v1/sandboxes/${first.id}`);
  // the first have the pool's disks; the disk of the deleted one is used again for one of the later
  const made = [];
  for (let round = 0; round < 4; round++) made.push(...await Promise.all([1, 2, 3, 4].map(() => d.sandbox())));
  for (const s of made) {
    const r = await d.exec(s.id, 'find /workspace /dev/shm -name BEFORE; grep evil /etc/passwd; stat -c "%a %u" /root /; getfattr -d / 2>/dev/null; test -d /opt && echo whole', { user: 'root' });
    assert.equal(r.stdout, '700 0\n755 0\nwhole\n');
    await d.del(`/v1/sandboxes/${s.id}`);
  }
});

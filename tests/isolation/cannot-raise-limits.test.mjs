// The requested limits hold, and root inside cannot raise them; a process over them ends,
// not the sandbox.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { attack, Attacks, cgroupWith, initOf, insideOf, refused } from '../lib/attack.mjs';
import { startDaemon } from '../lib/cove.mjs';

const MiB = 1 << 20;
const LIMITS = { cpu_milli: 300, memory: 64 * MiB, pids: 48, disk: 64 * MiB, nofile: 200 };
const attacks = new Attacks();
let d;
let id;
let other;
let init;
before(async () => {
  await attacks.compile('hog');
  d = await startDaemon({ args: ['--pool', '2'] });
  [{ id }, { id: other }] = await Promise.all([d.sandbox({ limits: LIMITS }), d.sandbox()]);
  await Promise.all([attacks.put(d, id, 'hog'), attacks.put(d, other, 'hog')]);
  init = initOf(d, id).pid;
});
after(async () => {
  attacks.clean();
  await d?.stop();
});

const root = (command, opts = {}) => d.exec(id, command, { user: 'root', timeout_ms: 60_000, ...opts });

async function alive() {
  assert.equal(initOf(d, id)?.pid, init, 'the same init');
  assert.equal((await root('echo alive')).stdout, 'alive\n');
  assert.equal((await d.exec(other, 'echo alive')).stdout, 'alive\n');
}

const number = (...files) => fs.readFileSync(cgroupWith(d, id, ...files), 'utf8').trim();

test('the kernel has the requested limits', () => {
  const cpu = number('cpu.max', 'cpu.cfs_quota_us').split(' ');
  const period = cpu[1] ?? number('cpu.cfs_period_us');
  assert.equal(Number(cpu[0]) / Number(period), 0.3);
  assert.equal(number('memory.max', 'memory.limit_in_bytes'), String(LIMITS.memory));
  assert.equal(number('pids.max'), '48');
});

test('every process of a sandbox is in its groups', async () => {
  const p = await d.process(id, ['sleep', '1000'], { user: 'root' });
  for (const q of insideOf(d, id)) {
    const lines = q.cgroup.trim().split('\n');
    for (const controller of ['cpu', 'memory', 'pids']) {
      const line = lines.find((l) => l.split(':')[1].split(',').includes(controller)) ?? lines.find((l) => l.startsWith('0::'));
      assert.ok(line.includes(`/${id}`), `${q.title}: ${line}`);
    }
  }
  await d.post(`/v1/sandboxes/${id}/processes/${p.id}/kill`, { grace_ms: 0 });
});

test('beyond the memory limit only the process that uses most is killed', async () => {
  for (const user of ['root', 'user']) {
    const r = await root(['/tmp/hog', 'memory'], { user });
    assert.equal(r.stdout, 'began ok\n');
    assert.equal(r.signal, 'SIGKILL');
    assert.equal(r.timed_out, false);
    await alive();
  }
  const kept = await d.process(id, ['sleep', '1000']);
  assert.equal((await root('python3 -c "x = b\'x\' * (256 << 20)"; echo $?')).stdout, '137\n');
  assert.equal((await d.get(`/v1/sandboxes/${id}/processes/${kept.id}`)).state, 'running');
  await d.post(`/v1/sandboxes/${id}/processes/${kept.id}/kill`, { grace_ms: 0 });
  // files in memory count as well
  const shm = await root('head -c 200M /dev/zero >/dev/shm/x; echo $?; rm -f /dev/shm/x; echo after');
  assert.match(shm.stdout, /^[1-9]\d*\nafter\n$/);
  await alive();
});

test('a fork bomb stays within its limit and can be deleted', async () => {
  const s = await d.sandbox({ limits: { pids: 48 } });
  await attacks.put(d, s.id, 'hog');
  const p = await d.process(s.id, ['/tmp/hog', 'bomb'], { user: 'root' });
  await d.post(`/v1/sandboxes/${s.id}/processes/${p.id}/wait`, { for: 'log', text: 'began ok' });
  assert.ok(insideOf(d, s.id).length <= 48);
  await alive();
  await d.del(`/v1/sandboxes/${s.id}`);
  assert.deepEqual(insideOf(d, s.id), []);
});

test('all sandboxes together leave process ids to the host', () => {
  const all = Number(fs.readFileSync(path.join(path.dirname(cgroupWith(d, id, 'pids.max')), '../pids.max'), 'utf8'));
  for (const name of ['pid_max', 'threads-max'])
    assert.ok(all > 0 && all <= Number(fs.readFileSync(`/proc/sys/kernel/${name}`, 'utf8')) * 0.75, `${all} of ${name}`);
});

test('a write beyond the disk limit fails in its sandbox only', async () => {
  const r = await root('dd if=/dev/urandom of=/workspace/big bs=1M count=200 conv=fsync 2>&1; stat -c %s /workspace/big');
  assert.match(r.stdout, /No space left on device|Disk quota exceeded/);
  assert.ok(Number(r.stdout.trim().split('\n').pop()) <= LIMITS.disk);
  // not as another user, in another directory, or as many small files either
  const more = await root('i=0; while [ $i -lt 3000 ]; do head -c 65536 /dev/urandom >/var/tmp/f$i || break; i=$((i+1)); done 2>/dev/null; sync; du -sm --total /workspace /var/tmp | tail -1 | cut -f1', { user: 'user' });
  assert.ok(Number(more.stdout) * MiB <= LIMITS.disk * 1.05, more.stdout);
  assert.equal((await d.exec(other, 'head -c 100M /dev/zero >/workspace/x && sync && rm /workspace/x')).exit_code, 0);
  await root('rm -f /workspace/big /var/tmp/f*; sync');
  assert.equal((await root('head -c 1M /dev/zero >/workspace/x')).exit_code, 0, 'what was removed is free again');
  await alive();
});

test('no process has more open files than the limit', async () => {
  for (const user of ['root', 'user']) refused(await attack(d, id, 'hog', ['files'], { user }), { end: 'EMFILE', files: '200' });
});

test('root raises no limit of its own', async () => {
  const got = await attack(d, id, 'hog', ['raise']);
  assert.equal(Object.keys(got).length, 14);
  refused(got, Object.fromEntries(Object.keys(got).map((n) => [n, 'EPERM'])));
  const r = await root('ulimit -n 4096 2>&1; sudo -u user bash -c "ulimit -Hn 4096" 2>&1; ulimit -Hn');
  assert.match(r.stdout, /not permitted(.|\n)*not permitted(.|\n)*\n200\n$/);
});

test('root changes no cgroup: all are read-only, and none can be mounted', async () => {
  const r = await root(`
    mkdir -p /tmp/cg; mount -t cgroup2 none /tmp/cg; mount -t cgroup -o memory none /tmp/cg
    for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/unified/cgroup.procs /proc/self/cgroup /proc/1/cgroup; do echo 0 >$f; done
    find /sys/fs/cgroup -type f | while read f; do
      [ -c $f ] || (echo 0 >>$f) 2>/dev/null && [ ! -c $f ] && echo written $f
    done
    find /sys/fs/cgroup -type f | python3 -c '
import fcntl, sys
for f in map(str.strip, sys.stdin):
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
        try: fcntl.fcntl(open(f), fcntl.F_SETLEASE, kind)
        except OSError: continue
        print("leased", f)'
    find /sys/fs/cgroup -type d | while read d; do mkdir $d/x 2>/dev/null && echo made $d/x; done
    for m in $(awk '/cgroup/ {print $2}' /proc/self/mounts) /sys/fs; do mount -o remount,rw $m || umount $m || touch $m/x; done 2>/dev/null
    find /sys/fs/cgroup/run /sys/fs/cgroup/unified/run -mindepth 1 2>/dev/null
    grep cgroup /proc/self/mounts | grep -v ' ro,' ; grep -c cgroup /proc/self/mounts
    echo end`, { timeout_ms: 60_000 });
  assert.match(r.stdout, /^[1-9]\nend\n$/);
  assert.equal(number('memory.max', 'memory.limit_in_bytes'), String(LIMITS.memory));
  assert.equal(number('pids.max'), '48');
});

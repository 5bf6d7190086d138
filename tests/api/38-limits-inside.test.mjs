// What programs inside see of the limits of their sandbox: /proc, /sys/fs/cgroup, and what the kernel is asked.
import assert from 'node:assert/strict';
import os from 'node:os';
import { after, before, test } from 'node:test';
import { BIN, poll, startDaemon } from '../lib/cove.mjs';
import { Pane } from '../lib/pane.mjs';

const S = '/v1/sandboxes';
const MiB = 2 ** 20;
const HOST_CPUS = os.availableParallelism();
let d, s;
let began; // no sandbox is older
before(async () => {
  began = Date.now();
  d = await startDaemon({});
  s = await d.sandbox({ limits: { cpu_milli: 1000, memory: 512 * MiB } });
});
after(() => d?.stop());

const sh = async (command, opts = {}) => {
  const r = await d.exec(opts.id ?? s.id, command, { timeout_ms: 60_000, ...opts, id: undefined });
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};
const python = (text, opts) => sh(['python3', '-c', text], opts);
const update = (id, limits) => d.api('PATCH', `${S}/${id}`, { limits });
const ASK = `
import os
meminfo = dict(l.split()[:2] for l in open("/proc/meminfo"))
cpus = sum(l.startswith("processor") for l in open("/proc/cpuinfo"))
stat = sum(l.startswith("cpu") for l in open("/proc/stat")) - 1
memory = [int(meminfo["MemTotal:"]) * 1024, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")]
for f in ("memory/memory.limit_in_bytes", "memory.max", "unified/memory.max"):
    try: memory.append(int(open("/sys/fs/cgroup/" + f).read()))
    except FileNotFoundError: pass
print(sorted(set(memory)), len(memory), sorted({len(os.sched_getaffinity(0)), os.cpu_count(), cpus, stat}))`;

test('every way to ask for memory and processors gives the limits', async () => {
  for (const user of ['root', 'user']) assert.equal(await python(ASK, { user }), `[${512 * MiB}] 3 [1]\n`);
  assert.equal(await sh('nproc'), '1\n');
  assert.match(await sh('free -b'), new RegExp(`^Mem: +${512 * MiB} `, 'm'));
});

test('node chooses its heap and threads by the limits', async (t) => {
  if ((await d.exec(s.id, 'command -v node')).exit_code !== 0) return t.skip('the template has no node');
  const [memory, cpus, parallel, constrained, heap] = JSON.parse(await sh(['node', '-p', `
    const os = require('os');
    JSON.stringify([os.totalmem(), os.cpus().length, os.availableParallelism(), process.constrainedMemory(), require('v8').getHeapStatistics().heap_size_limit])`]));
  assert.deepEqual([memory, cpus, parallel, constrained], [512 * MiB, 1, 1, 512 * MiB]);
  assert.ok(heap < 512 * MiB, `heap of ${heap}`);
});

test('a change of limits is seen, by a running program too', async () => {
  const b = await d.sandbox({ limits: { cpu_milli: 500, memory: 256 * MiB } });
  const p = await d.process(b.id, ['python3', '-uc', `import sys\nfor line in sys.stdin: exec(\'\'\'${ASK}\'\'\')`], { stdin: true });
  const says = (text) => poll(`it says ${text}`, async () => {
    await d.call('POST', `${S}/${b.id}/processes/${p.id}/stdin`, '\n');
    return (await d.get(`${S}/${b.id}/processes/${p.id}/logs`)).chunks.map((c) => c.data).join('').endsWith(`${text}\n`);
  });
  await says(`[${256 * MiB}] 3 [1]`);
  await update(b.id, { cpu_milli: 2000, memory: 384 * MiB });
  await says(`[${384 * MiB}] 3 [${Math.min(2, HOST_CPUS)}]`);
  await update(b.id, { cpu_milli: 1000, memory: 192 * MiB });
  await says(`[${192 * MiB}] 3 [1]`);
  await d.del(`${S}/${b.id}`);
});

test('memory in use shows in free, and goes down again', async () => {
  await python(`
import time
def used():
    m = dict(l.split()[:2] for l in open("/proc/meminfo"))
    return int(m["MemTotal:"]) - int(m["MemAvailable:"])
def until(holds):
    end = time.time() + 30
    while not holds(used()):
        assert time.time() < end, used()
        time.sleep(0.01)
before = used()
x = b"x" * (100 << 20)
until(lambda now: now > before + (90 << 10))
del x
until(lambda now: now < before + (10 << 10))`);
});

test('processor time and load are the sandbox\'s own', async () => {
  const [before, busy, after, load] = (await sh(`
    stat() { awk '/^cpu / {print $2 + $4}' /proc/stat; }
    stat
    python3 -c '
import time
end = time.process_time() + 1
while time.process_time() < end: pass
print(100)'
    stat; cut -d" " -f1 /proc/loadavg`)).trim().split('\n').map(Number);
  assert.ok(after - before >= 0.9 * busy && after - before < 10 * busy, `${before} to ${after}`);
  assert.ok(load > 0 && load <= 1, `load ${load}`);
  const other = await d.sandbox();
  assert.match(await sh('cat /proc/loadavg', { id: other.id }), /^0\.00 0\.00 0\.00 1\//);
  await d.del(`${S}/${other.id}`);
});

test('uptime, boot time and the start times of processes count from the birth of the sandbox', async () => {
  const [up, booted, age, sysinfo, clock] = (await python(`
import ctypes, os, time
print(open("/proc/uptime").read().split()[0])
print(next(l for l in open("/proc/stat") if l.startswith("btime")).split()[1])
ticks = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
print(time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
longs = (ctypes.c_long * 64)()
ctypes.CDLL(None).sysinfo(longs)
print(longs[0])
print(time.clock_gettime(time.CLOCK_BOOTTIME))`)).trim().split('\n').map(Number);
  const oldest = (Date.now() - began) / 1000 + 1;
  for (const n of [up, sysinfo, clock]) assert.ok(n >= 0 && n <= oldest, `${n} of ${oldest} s`);
  assert.ok(booted * 1000 >= began - 2000 && booted * 1000 <= Date.now(), `${booted}`);
  assert.ok(age >= 0 && age < 10, `this process is ${age} s old`);
});

test('a file that stays open is read again with new values', async () => {
  await python(`
import os, time
fd = os.open("/proc/uptime", os.O_RDONLY)
def up(): return float(os.pread(fd, 64, 0).split()[0])
first, end = up(), time.time() + 30
while up() == first:
    assert time.time() < end
    time.sleep(0.05)`);
});

test('an affinity that a program sets is the one it gets', async () => {
  const both = await d.sandbox({ limits: { cpu_milli: 1500 } });
  const got = await python(`
import os
all = os.sched_getaffinity(0)
for cpu in all:
    os.sched_setaffinity(0, {cpu})
    assert os.sched_getaffinity(0) == {cpu}
try: os.sched_getaffinity(99999)
except ProcessLookupError: print(len(all))`, { id: both.id });
  assert.equal(Number(got), Math.min(2, HOST_CPUS));
  await d.del(`${S}/${both.id}`);
});

test('readers go on after a pause, a snapshot and a restart of the daemon', async () => {
  const b = await d.sandbox({ limits: { memory: 256 * MiB } });
  const p = await d.process(b.id, ['python3', '-uc', `
import sys, threading
def read():
    while True:
        with open("/proc/meminfo") as f: assert f.readline().split()[1] == "${256 << 10}"
for _ in range(4): threading.Thread(target=read, daemon=True).start()
for line in sys.stdin:
    for _ in range(100): open("/proc/stat").close()
    print("read", line)`], { stdin: true });
  const reads = async (mark) => {
    await d.call('POST', `${S}/${b.id}/processes/${p.id}/stdin`, `${mark}\n`);
    await d.post(`${S}/${b.id}/processes/${p.id}/wait`, { for: 'log', text: `read ${mark}` });
  };
  await reads('first');
  for (let i = 0; i < 3; i++) {
    await d.post(`${S}/${b.id}/pause`);
    await d.post(`${S}/${b.id}/resume`);
    await reads(`resumed-${i}`);
  }
  const snap = await d.post(`${S}/${b.id}/snapshots`);
  await reads('snapshot');
  await d.kill9('both');
  await d.restart();
  await reads('restart');
  const c = await d.sandbox({ snapshot: snap.id, limits: { memory: 128 * MiB } });
  assert.match(await sh('free -b', { id: c.id }), new RegExp(`^Mem: +${128 * MiB} `, 'm'));
  assert.equal((await d.exec(b.id, 'true')).exit_code, 0, 'no reader stopped init');
  await Promise.all([d.del(`${S}/${b.id}`), d.del(`${S}/${c.id}`)]);
  await d.del(`/v1/snapshots/${snap.id}`);
});

test('root inside cannot write the files, uncover them, or make others wait for them', async () => {
  const got = await python(`
import ctypes, fcntl, os, signal
libc = ctypes.CDLL(None, use_errno=True)
files = ["/proc/" + n for n in ("meminfo", "cpuinfo", "stat", "loadavg", "uptime")] + ["/sys/devices/system/cpu/online"]
held = [os.open(f, os.O_RDONLY) for f in files]
for f, fd in zip(files, held):
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_TRUNC):
        try: os.close(os.open(f, flags)); print("opened", f)
        except OSError: pass
    for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
        try: fcntl.fcntl(fd, fcntl.F_SETLEASE, kind); print("leased", f)
        except OSError: pass
    for call in (lambda: os.chmod(f, 0o666), lambda: os.unlink(f), lambda: os.truncate(f, 0), lambda: os.fchmod(fd, 0o666)):
        try: call(); print("changed", f)
        except OSError: pass
    if libc.umount2(f.encode(), 2) == 0: print("unmounted", f)
for _ in range(10000): os.kill(1, signal.SIGIO)
print(open("/proc/meminfo").readline().split()[1])`, { user: 'root' });
  assert.equal(got, `${512 << 10}\n`);
  assert.equal(await python(ASK), `[${512 * MiB}] 3 [1]\n`);
});

test('init never waits for a file that it answers itself, whatever name leads to it', async () => {
  const b = await d.sandbox();
  const ask = async (want, ...args) => {
    const r = await d.call(...args, { timeout: 20_000 });
    assert.ok(want.includes(r.status), `${args}: ${r.status} ${r.text}`);
  };
  const names = ['/etc/passwd', '/etc/group', '/etc/resolv.conf', '/workspace/link'];
  await sh(`for f in ${names.join(' ')}; do ln -sf /proc/meminfo $f; done; printf "#!/proc/stat\\n" >/workspace/script; chmod 755 /workspace/script`, { id: b.id, user: 'root' });
  for (const argv of [['/proc/meminfo'], ['/workspace/link'], ['/workspace/script'], ['true']])
    for (const user of ['root', '1000:1000']) await ask([argv[0] === 'true' ? 200 : 422], 'POST', `${S}/${b.id}/exec`, { argv, user });
  for (const path of names) await ask([200], 'GET', `${S}/${b.id}/files?path=${path}&user=root`, undefined);
  await ask([400, 403, 409], 'PUT', `${S}/${b.id}/files?path=/workspace/link&user=root`, 'x');
  const started = Date.now();
  assert.equal((await d.exec(b.id, ['cat', '/workspace/link'], { user: '0:0' })).exit_code, 0);
  assert.ok(Date.now() - started < 10_000);
  await d.del(`${S}/${b.id}`);
});

test('an OOM kill is said in words by exec, run, a terminal, ps and logs', async () => {
  const b = await d.sandbox({ name: 'small', limits: { memory: 64 * MiB } });
  const hog = ['python3', '-c', 'x = bytearray(300 << 20)'];
  const words = (who) => `cove: ${who} was killed: sandbox small reached its memory limit; \`cove update --memory SIZE small\` raises it\n`;
  const killed = await d.cli(['exec', 'small', '--', ...hog]);
  assert.deepEqual([killed.status, killed.stderr], [137, words('the command')]);
  // npm, make or a script: it fails because its child was killed
  const parent = ['sh', '-c', `python3 -c '${hog[2]}' 2>/dev/null || exit 2`];
  const failed = await d.cli(['exec', 'small', '--', ...parent]);
  assert.deepEqual([failed.status, failed.stderr], [2, words('the command failed after another process')]);
  const calm = await d.cli(['exec', 'small', '--', 'false']);
  assert.deepEqual([calm.status, calm.stderr], [1, '']);
  const run = await d.cli(['run', '--memory', '64M', '--', ...hog]);
  assert.match(run.stderr, /^cove: the command was killed: sandbox \S+ reached its memory limit/);
  const pane = new Pane(`${BIN} exec -t small ${hog[0]} -c '${hog[2]}'; echo "status=$?"`, { env: d.cliEnv(), cols: 200 });
  try {
    await pane.shows(/cove: the command was killed: sandbox \S+ reached its memory limit[^]*status=137/);
  } finally {
    pane.close();
  }
  for (const argv of [hog, parent]) {
    const p = await d.process(b.id, argv);
    await d.post(`${S}/${b.id}/processes/${p.id}/wait`);
  }
  const ps = await d.cli(['ps', 'small']);
  assert.match(ps.stdout, /  out of memory  .*\n(.*\n)*.*  exit 2, out of memory  /);
  await poll('the log has both', async () => {
    const { stdout } = await d.cli(['logs', 'small']);
    return /was killed: the sandbox reached its memory limit: python3/.test(stdout) && /exited with status 2 after another process was killed: the sandbox reached its memory limit: sh/.test(stdout);
  });
  await d.post(`${S}/${b.id}/sessions`, { id: 'shell' });
  const inSession = await d.cli(['session', 'exec', 'small', 'shell', '--', `python3 -c '${hog[2]}'`]);
  assert.equal(inSession.status, 137);
  assert.match(inSession.stderr, /the command failed after another process was killed: sandbox/);
  await d.del(`${S}/${b.id}`);
});

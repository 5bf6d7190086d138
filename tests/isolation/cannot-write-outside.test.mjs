// What root inside writes, removes or changes stays in its own sandbox: the
// template, the host's files below it and the host's kernel do not change.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BASE, poll, startDaemon } from '../lib/cove.mjs';

let d;
let id;
before(async () => {
  d = await startDaemon({ args: ['--pool', '0'] });
  id = (await d.sandbox()).id;
});
after(() => d?.stop());

const root = (command, opts = {}) => d.exec(id, command, { user: 'root', timeout_ms: 60_000, ...opts });

/** What a write could change. Not the times of reading and linking: others do that, too. */
function state(file) {
  const s = fs.lstatSync(file, { bigint: true });
  return {
    ino: s.ino, mode: s.mode, uid: s.uid, gid: s.gid, size: s.size, mtime: s.mtimeNs,
    hash: createHash('sha256').update(fs.readFileSync(file)).digest('hex'),
  };
}

/** The file of the template as the host's root sees it. */
function inTemplate(file) {
  const found = [];
  const look = (dir, depth) => {
    if (fs.existsSync(path.join(dir, file))) found.push(path.join(dir, file));
    else if (depth > 0) for (const e of fs.readdirSync(dir, { withFileTypes: true })) if (e.isDirectory()) look(path.join(dir, e.name), depth - 1);
  };
  look(BASE, 3);
  assert.ok(found.length > 0, `${file} is in the template`);
  return found;
}

test('overwriting a file of the template changes only the sandbox', async () => {
  const file = '/usr/bin/true';
  const watched = [file, ...inTemplate(file)];
  const before = watched.map(state);
  const r = await root(`
    exec 3<>${file} || exit 9; printf EVIL >&3; exec 3>&-
    head -c 4 ${file}; echo
    chmod 6777 ${file}; chown 1000:1000 ${file}; touch -d 2001-01-01 ${file}
    setfattr -n user.evil -v x ${file} 2>/dev/null || python3 -c 'import os; os.setxattr("${file}", "user.evil", b"x")'
    truncate -s 100000 ${file}; ln ${file} /root/link; echo more >>/root/link # (/tmp is sticky: fs.protected_regular)
    stat -c '%a %u %s' ${file}`);
  assert.equal(r.stdout, 'EVIL\n777 1000 100005\n', r.stderr);
  assert.deepEqual(watched.map(state), before);
  const other = await d.sandbox();
  assert.equal((await d.exec(other.id, ['/usr/bin/true'])).exit_code, 0, 'another sandbox has the file as it was');
});

test('writing to a private mapping of a template\'s file changes only the mapping', async () => {
  const file = '/usr/bin/env';
  const watched = [file, ...inTemplate(file)];
  const before = watched.map(state);
  await root(['python3', '-c', `
import mmap, os, fcntl
fd = os.open("${file}", os.O_RDONLY)
m = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
m[0:4] = b"EVIL"
fcntl.flock(fd, fcntl.LOCK_EX)
os.read(fd, 100)
`]);
  assert.deepEqual(watched.map(state), before);
});

test('rm -rf / inside does not change the template', async () => {
  const s = await d.sandbox();
  const before = inTemplate('/usr/bin/env').map(state);
  const count = fs.readdirSync('/usr/bin').length;
  await d.exec(s.id, 'rm -rf --one-file-system /usr/bin/[a-e]* /usr/share/[a-b]* /etc /home /var/lib/dpkg/alternatives; echo gone', { user: 'root', timeout_ms: 60_000 });
  assert.deepEqual(inTemplate('/usr/bin/env').map(state), before);
  assert.equal(fs.readdirSync('/usr/bin').length, count);
  const next = await d.sandbox();
  assert.equal((await d.exec(next.id, 'ls -d /usr/lib /usr/share /etc/passwd')).exit_code, 0);
});

test('no setting of the kernel is changed, and no trigger pulled', async () => {
  const names = [
    '/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/proc/sys/kernel/modprobe', '/proc/sys/kernel/panic', '/proc/sys/kernel/pid_max',
    '/proc/sys/kernel/randomize_va_space', '/proc/sys/kernel/sysrq', '/proc/sys/vm/overcommit_memory', '/proc/sys/vm/drop_caches',
    '/proc/sys/fs/file-max', '/proc/sys/fs/suid_dumpable', '/proc/sys/user/max_user_namespaces', '/proc/sys/user/max_net_namespaces',
    '/proc/sys/net/ipv4/ip_forward', '/proc/sys/net/core/somaxconn', '/proc/sysrq-trigger', '/proc/mtrr', '/proc/irq/default_smp_affinity',
    '/sys/power/state', '/sys/kernel/mm/transparent_hugepage/enabled', '/sys/kernel/uevent_helper', '/sys/devices/system/cpu/cpu1/online',
    '/sys/fs/cgroup/cgroup.procs', '/sys/kernel/profiling', '/sys/module/kernel/parameters/panic', '/proc/timer_list', '/proc/kcore',
  ];
  const read = (f) => {
    try {
      return fs.readFileSync(f, 'utf8');
    } catch {
      return undefined;
    }
  };
  const before = names.map(read);
  const r = await root(['python3', '-c', `
import errno, os, sys
for f in sys.argv[1:]:
    try:
        fd = os.open(f, os.O_WRONLY)
        os.write(fd, b"1\\n")
        print(f, "null" if os.fstat(fd).st_rdev == os.makedev(1, 3) else "ok")
    except OSError as e:
        print(f, errno.errorcode[e.errno])
print("done")
`, ...names]);
  const lines = r.stdout.trim().split('\n');
  assert.equal(lines.pop(), 'done');
  assert.equal(lines.length, names.length);
  // masked files are the null device: what is written there goes nowhere
  assert.deepEqual(lines.filter((l) => !/ (EROFS|EACCES|EPERM|ENOENT|null)$/.test(l)), []);
  // without what counts by itself
  assert.deepEqual(names.map(read).filter((_, i) => !names[i].includes('timer_list')), before.filter((_, i) => !names[i].includes('timer_list')));
});

test('core dumps go nowhere on the host', async () => {
  const before = fs.readdirSync('/').concat(fs.readdirSync(d.dir));
  const r = await root('ulimit -c unlimited; cd /tmp; python3 -c "import os; os.abort()"; echo $?; ls /tmp');
  assert.match(r.stdout, /^134\n/);
  assert.doesNotMatch(r.stdout, /core/);
  assert.deepEqual(fs.readdirSync('/').concat(fs.readdirSync(d.dir)), before);
});

// core(5): a limit of 0 does not keep the kernel from starting the program that a
// core_pattern names, on the host and as root.
test('a crash inside starts no program of the host', async () => {
  const dir = fs.mkdtempSync('/tmp/cove-core-');
  const helper = path.join(dir, 'helper');
  const pattern = fs.readFileSync('/proc/sys/kernel/core_pattern', 'utf8');
  const started = () => (fs.existsSync(`${helper}.log`) ? fs.readFileSync(`${helper}.log`, 'utf8') : '');
  fs.writeFileSync(helper, `#!/bin/sh\ncat /proc/$1/cgroup >>${helper}.log\necho "end $1" >>${helper}.log\ncat >/dev/null\n`, { mode: 0o755 });
  fs.writeFileSync('/proc/sys/kernel/core_pattern', `|${helper} %P`);
  try {
    for (const user of ['root', 'user'])
      for (const limit of [':', 'ulimit -c 0', 'ulimit -Sc 0', 'ulimit -Hc 0 -Sc 0', 'ulimit -c unlimited', 'prlimit --core=0:0 --pid $$', 'prlimit --core=0 --pid $$'])
        assert.deepEqual((await d.exec(id, `${limit} || echo refused; sh -c 'kill -SEGV $$'; echo $?`, { user })).stdout, '139\n', limit);
    // a crash of the host's, so that we know when the kernel would have started it
    const mine = spawnSync('sh', ['-c', 'kill -SEGV $$']);
    assert.equal(mine.signal, 'SIGSEGV');
    await poll('the host has its program started', () => started().includes(`end ${mine.pid}`));
    assert.ok(!started().includes(id), 'it was not started for a sandbox');
  } finally {
    fs.writeFileSync('/proc/sys/kernel/core_pattern', pattern);
    fs.rmSync(dir, { recursive: true });
  }
});

// Nothing of the host can be seen from inside: no process, file, mount, variable,
// socket, address, or path of the daemon that runs the sandbox.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { attack, Attacks, initOf, refused } from '../lib/attack.mjs';
import { BASE, poll, startDaemon, tagOf } from '../lib/cove.mjs';

const attacks = new Attacks();
const MARK = `cove-mark-${process.pid}-${Date.now()}`;
let d;
let id;
before(async () => {
  await attacks.compile('ipc');
  d = await startDaemon({ args: ['--pool', '0'], env: { COVE_TEST_SECRET: MARK } });
  id = (await d.sandbox()).id;
  await attacks.put(d, id, 'ipc');
});
after(async () => {
  attacks.clean();
  await d?.stop();
});

const root = (command, opts = {}) => d.exec(id, command, { user: 'root', timeout_ms: 60_000, max_output: 8 << 20, ...opts });

test('a tenant does not see the host\'s processes', async () => {
  const r = await root('ls /proc | grep -c "^[0-9]"; cat /proc/[0-9]*/cmdline | tr "\\0" "\\n"');
  const [count] = r.stdout.split('\n');
  assert.ok(Number(count) > 1 && Number(count) <= 6, `only its own: ${count}`);
  assert.match(r.stdout, /cove: init/);
  assert.doesNotMatch(r.stdout, /cove: front|serve|node/);
  // by number, too: the kernel answers "no such process" for each of the host's
  const host = [1, d.keeperPid(), d.frontPid(), process.pid, initOf(d, id).pid].filter((p) => p > 1000);
  assert.ok(host.length >= 3);
  const kill = await root(host.map((p) => `kill -0 ${p}; test -e /proc/${p} && echo seen ${p}`).join('\n'));
  assert.equal(kill.stdout, '');
  assert.equal(kill.stderr.match(/No such process/g)?.length, host.length, kill.stderr);
});

test('a tenant does not see the host\'s files', async () => {
  const file = path.join(os.tmpdir(), MARK);
  fs.writeFileSync(file, 'secret');
  try {
    for (const f of [file, d.dir, path.join(d.dir, 'api-key'), BASE, '/run/cove', process.execPath, import.meta.dirname ?? '/nowhere']) {
      if (f === process.execPath && f.startsWith('/usr/bin/')) continue; // the host's own package, in the template by right
      const r = await root(['stat', f]);
      assert.equal(r.exit_code, 1, `${f}: ${r.stdout}`);
      assert.match(r.stderr, /No such file/);
    }
    const found = await root(`find / -xdev -name '${MARK}*' 2>/dev/null; cat /etc/hostname; hostname`);
    assert.equal(found.stdout, 'cove\ncove\n');
  } finally {
    fs.unlinkSync(file);
  }
});

test('a tenant does not see the host\'s keys, accounts, machine id and credentials of package sources', async () => {
  const shadow = fs.readFileSync('/etc/shadow', 'utf8').split('\n').map((l) => l.split(':')[1]).filter((h) => h && h.length > 5);
  const inside = await root('cat /etc/passwd /etc/shadow /etc/machine-id /etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/auth.conf* /etc/apt/apt.conf.d/* 2>/dev/null; ls /etc/ssh /etc/ssl/private /root /home /usr/local/bin /usr/etc 2>/dev/null');
  for (const h of shadow) assert.ok(!inside.stdout.includes(h), 'a password of the host');
  const machine = fs.existsSync('/etc/machine-id') ? fs.readFileSync('/etc/machine-id', 'utf8').trim() : '';
  if (machine) assert.ok(!inside.stdout.includes(machine), 'its machine id');
  // the distribution's own sources are there by right; no proxy, no name and no password of the host's
  assert.doesNotMatch(inside.stdout, /ssh_host|Acquire|https?:\/\/[^\s/]*@/);
  const hosts = [...inside.stdout.matchAll(/https?:\/\/([^\s/]+)/g)].map((m) => m[1]);
  assert.ok(hosts.length > 0 && hosts.every((h) => h === 'deb.debian.org'), hosts.join(' '));
  assert.doesNotMatch(inside.stdout, /^cove:/m, 'the daemon\'s account');
});

test('a tenant does not see the host\'s mounts, or where a sandbox lies on its disk', async () => {
  const r = await root('cat /proc/self/mountinfo /proc/self/mounts /proc/self/mountstats');
  assert.match(r.stdout, / overlay /);
  for (const secret of [d.dir, BASE, tagOf(d.dir), id, '/dev/loop', 'btrfs', os.tmpdir() + '/', '/var/lib']) assert.ok(!r.stdout.includes(secret), `${secret} in: ${r.stdout}`);
});

// Every file of /proc and /sys that can be read at once, and where links point.
const SEARCH = `
import os, sys
words = [w.encode() for w in sys.argv[1:]]
looked = 0
skip = {'mem', 'pagemap', 'cmdline', 'kmsg', 'trace_pipe', 'kcore'}
for top in ('/sys', '/proc'):
    for at, dirs, files in os.walk(top):
        dirs[:] = [x for x in dirs if not (at == '/proc' and x.isdigit() and x not in ('1', str(os.getpid()))) and x not in ('task', 'map_files')]
        for name in files + dirs:
            path = os.path.join(at, name)
            text = b''
            try:
                if os.path.islink(path):
                    text = os.readlink(path).encode()
                elif name in files and name not in skip:
                    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                    try: text = os.read(fd, 1 << 16)
                    finally: os.close(fd)
            except OSError:
                continue
            looked += 1
            for w in words:
                if w in text: print(path, w.decode())
print(looked)
`;

test('a tenant does not see a path, tag or name of the daemon in /proc and /sys', async () => {
  const r = await root(['python3', '-c', SEARCH, d.dir, tagOf(d.dir), id, 'disk.img', MARK]);
  const [looked, ...found] = r.stdout.trim().split('\n').reverse();
  assert.ok(Number(looked) > 1000, `it looked: ${r.stdout.slice(-500)}${r.stderr.slice(-500)}`);
  assert.deepEqual(found, []);
});

test('a tenant does not see the host\'s boot line, boot id, kernel log and symbols', async () => {
  const r = await root('cat /proc/cmdline; echo; cat /proc/sys/kernel/random/boot_id; cat /proc/kallsyms | grep -v "^0* " | head -2; dmesg; cat /proc/kmsg /dev/kmsg; head -c 64 /proc/kcore');
  assert.ok(!r.stdout.includes(fs.readFileSync('/proc/cmdline', 'utf8').trim()));
  assert.ok(!r.stdout.includes(fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()));
  assert.equal(r.stdout.trim(), (await d.get(`/v1/sandboxes/${id}`)).boot_id);
});

test('a tenant does not see the environment of the daemon', async () => {
  assert.ok(fs.readFileSync(`/proc/${d.keeperPid()}/environ`, 'utf8').includes(MARK), 'the keeper has it');
  const r = await root('env; cat /proc/[0-9]*/environ | tr "\\0" "\\n"');
  assert.match(r.stdout, /^PATH=/m);
  assert.doesNotMatch(r.stdout, new RegExp(`${MARK}|COVE|KEY`));
});

test('a tenant has no fd of the daemon or of init', async () => {
  const r = await root(['python3', '-c', 'import os\nfor f in os.listdir("/proc/self/fd"):\n  try: print(f, os.readlink("/proc/self/fd/"+f))\n  except OSError: pass']);
  assert.deepEqual(r.stdout.split('\n').filter(Boolean).map((l) => l.replace(/\[\d+\]/, '')).sort(), ['0 /dev/null', '1 pipe:', '2 pipe:']);
  const p = await d.process(id, ['sh', '-c', 'ls -l /proc/$$/fd'], { stdin: true });
  await d.post(`/v1/sandboxes/${id}/processes/${p.id}/wait`);
  const { chunks } = await d.get(`/v1/sandboxes/${id}/processes/${p.id}/logs`);
  assert.equal(chunks.map((c) => c.data).join('').match(/-> /g).length, 3);
});

test('a tenant does not see the host\'s sockets, queues and shared memory', async () => {
  const mine = spawn(attacks.path('ipc'), ['leave', MARK], { stdio: ['pipe', 'pipe', 'inherit'] });
  let said = '';
  mine.stdout.on('data', (t) => (said += t));
  try {
    await poll('the host has left its marks', () => said.includes('left ok'));
    assert.doesNotMatch(said, / E/, 'each of them was made');
    for (const user of ['root', 'user'])
      refused(await attack(d, id, 'ipc', ['find', MARK], { user }), {
        abstract: 'ECONNREFUSED', tcp: 'ECONNREFUSED', shm: 'ENOENT', msg: 'ENOENT', sem: 'ENOENT', mq: 'ENOENT', 'posix shm': 'ENOENT', file: 'ENOENT',
      });
  } finally {
    mine.stdin.end();
    await new Promise((r) => mine.on('close', r));
  }
});

test('a sandbox without a network reaches no port of the daemon and no address beyond loopback', async () => {
  assert.equal((await attack(d, id, 'ipc', ['dial', '127.0.0.1', String(d.port)])).tcp, 'ECONNREFUSED');
  const addresses = Object.values(os.networkInterfaces()).flat().filter((a) => a.family === 'IPv4' && !a.internal).map((a) => a.address);
  for (const to of [...addresses, '10.0.0.1', '169.254.169.254', '1.1.1.1'])
    refused(await attack(d, id, 'ipc', ['dial', to, '80']), { tcp: 'ENETUNREACH', udp: 'ENETUNREACH' });
  const r = await root('ls /sys/class/net; tail -n +3 /proc/net/dev | wc -l; wc -l </proc/net/unix; cat /proc/net/route /proc/net/arp | wc -l');
  assert.deepEqual(r.stdout.split('\n').slice(0, 2), ['lo', '1']);
  assert.equal(r.stdout.split('\n')[2], '1', 'no unix socket but the title line');
});

test('a tenant is in no namespace of the host', async () => {
  const kinds = ['cgroup', 'ipc', 'mnt', 'net', 'pid', 'time', 'user', 'uts'];
  const r = await root(kinds.map((k) => `readlink /proc/self/ns/${k}`).join(';'));
  const inside = r.stdout.trim().split('\n');
  assert.equal(inside.length, kinds.length);
  for (const [i, k] of kinds.entries()) {
    assert.match(inside[i], new RegExp(`^${k}:\\[\\d+\\]$`));
    for (const pid of ['self', d.keeperPid(), d.frontPid()]) assert.notEqual(inside[i], fs.readlinkSync(`/proc/${pid}/ns/${k}`), k);
  }
  assert.match((await root('cat /proc/self/uid_map')).stdout, /^\s*0\s+\d{9,}\s+65536\s*$/);
});

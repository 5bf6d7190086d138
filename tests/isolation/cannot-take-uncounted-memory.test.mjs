// Memory of the kernel that no cgroup counts, and numbers of which the host has one for all: a
// sandbox gets a bounded part of each. Attacks take little more than what is allowed, since the
// machine has other users.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { attack, Attacks, logOf, refused, results } from '../lib/attack.mjs';
import { Cloudflare } from '../lib/cloudflare.mjs';
import { BIN, run, startDaemon } from '../lib/cove.mjs';

const MEMORY = 256 << 20;
const attacks = new Attacks();
let d;
let a;
before(async () => {
  await attacks.compile('kmem');
  d = await startDaemon({ args: ['--pool', '0', '--mounts', 'data', '--disk', '64M', '--disk-reserve', '128M'] });
  a = await d.sandbox({ limits: { memory: MEMORY, pids: 512 } });
  await attacks.put(d, a.id, 'kmem');
});
after(async () => {
  attacks.clean();
  await d?.stop();
});

/** Lets the sandbox take all of something; while it holds that, runs fn. */
async function holding(args, fn, user = 'root') {
  const P = `/v1/sandboxes/${a.id}/processes`;
  const p = await d.process(a.id, ['/tmp/kmem', ...args], { user, stdin: true });
  await d.post(`${P}/${p.id}/wait`, { for: 'log', text: 'full ok', timeout_ms: 60_000 });
  const got = results(`${await logOf(d, a.id, p.id)}done`);
  try {
    await fn(got);
  } finally {
    await d.post(`${P}/${p.id}/kill`, { grace_ms: 0 });
  }
}

/** Bytes that wait in connections of the sandbox to be read. */
async function waiting() {
  const r = await d.exec(a.id, ['python3', '-c', 'print(sum(int(l.split()[4].split(":")[1], 16) for l in open("/proc/net/tcp").readlines()[1:] if l.split()[3] != "0A"))']);
  assert.equal(r.exit_code, 0, r.stderr);
  return Number(r.stdout);
}

test('connections that were not accepted have a bound per sandbox', async () => {
  await holding(['unaccepted', '3'], async (got) => {
    assert.equal(got.listeners, '3');
    // 256 wait in all: an eighth of the memory, at 128 KiB each; the rest of the listeners have eight (and each one more)
    assert.ok(Number(got.connections) > 100 && Number(got.connections) <= 256 + 3 * 9, JSON.stringify(got));
    const bytes = await waiting();
    assert.ok(bytes > 4 << 20 && bytes <= MEMORY / 8 + (4 << 20), `${bytes >> 20} MiB wait, with ${MEMORY >> 20} MiB of memory`);
  });
});

test('listeners have a bound per sandbox', async () => {
  await holding(['unaccepted', '4000'], async (got) => {
    assert.equal(got.end, 'ENOBUFS');
    assert.ok(Number(got.listeners) >= 60 && Number(got.listeners) <= 64, JSON.stringify(got));
    const bytes = await waiting();
    assert.ok(bytes <= MEMORY / 8 + 64 * 9 * (128 << 10), `${bytes >> 20} MiB wait`);
  });
  refused(await attack(d, a.id, 'kmem', ['servers']), SERVERS);
});

test('netlink sockets have a bound per sandbox', async () => {
  await holding(['netlink'], async (got) => {
    assert.equal(got.end, 'ENOBUFS');
    assert.ok(Number(got.sockets) >= 16 && Number(got.sockets) <= 64, JSON.stringify(got));
    assert.ok(Number(got.bytes) <= 64 * (320 << 10), `${Number(got.bytes) >> 20} MiB wait in ${got.sockets} sockets`);
  });
});

for (const what of ['joins4', 'joins6'])
  test(`multicast groups have a bound per sandbox: ${what}`, async () => {
    await holding([what], async (got) => {
      assert.equal(got.end, 'ENOBUFS');
      assert.ok(Number(got.taken) > 900 && Number(got.taken) <= 1024, JSON.stringify(got));
    });
  });

test('compiled seccomp filters have a bound per sandbox', async () => {
  await holding(['filters'], async (got) => {
    assert.equal(got.end, 'ENOMEM');
    assert.ok(Number(got.processes) >= 10 && Number(got.processes) <= 17, JSON.stringify(got));
    const other = await d.sandbox();
    assert.equal((await d.exec(other.id, ['true'])).exit_code, 0, 'others are made');
    await d.del(`/v1/sandboxes/${other.id}`);
  });
});

test('socket options that use memory or numbers of the host are refused', async () => {
  const got = await attack(d, a.id, 'kmem', ['options']);
  assert.equal(Object.keys(got).length, 12);
  refused(got, Object.fromEntries(Object.keys(got).map((n) => [n, 'EPERM'])));
});

test('protocols that the kernel would load a module for are refused', async () => {
  for (const user of ['root', 'user'])
    refused(await attack(d, a.id, 'kmem', ['protocols'], { user }), {
      'sctp stream': 'EPROTONOSUPPORT', smc: 'EPROTONOSUPPORT', l2tp: 'EPROTONOSUPPORT',
      'sctp seqpacket': 'ESOCKTNOSUPPORT', dccp: 'ESOCKTNOSUPPORT', rdm: 'ESOCKTNOSUPPORT',
      tcp: 'ok', udp: 'ok',
    });
});

test('socketpair() refuses the families that socket() refuses', async () => {
  const { unix, ...got } = await attack(d, a.id, 'kmem', ['pairs'], { user: 'user' });
  assert.equal(unix, 'ok');
  assert.equal(Object.keys(got).length, 10);
  refused(got, Object.fromEntries(Object.keys(got).map((n) => [n, 'ENOSYS'])));
});

test('a tenant makes no subvolumes in a volume', async () => {
  const b = new Cloudflare(d);
  const m = await b.call('POST', '/mount', { binding: 'data', mountPath: '/mnt/data', options: {} });
  assert.equal(m.status, 200, m.text);
  const id = (await d.get('/v1/sandboxes')).sandboxes.find((s) => s.id !== a.id).id;
  await attacks.put(d, id, 'kmem');
  const { 'the directory': open, clone, ...got } = await attack(d, id, 'kmem', ['btrfs', '/mnt/data']);
  assert.deepEqual([open, clone], ['ok', 'ok']);
  assert.equal(Object.keys(got).length, 9);
  refused(got, Object.fromEntries(Object.keys(got).map((n) => [n, 'ENOTTY'])));
  await b.delete();
});

const sysctl = (name) => Number(fs.readFileSync(`/proc/sys/${name}`, 'utf8').split(/\s+/)[0]);

test('the numbers of which the host has one for all are large enough', async () => {
  // one default sandbox may have 1024 processes with 4096 files each, and all of them several times that
  const want = { 'fs/file-max': 1024 * 4096 * 1024, 'kernel/threads-max': 4194304, 'kernel/pid_max': 4194304, 'net/ipv4/tcp_max_orphans': 1048576 };
  for (const [name, least] of Object.entries(want)) assert.ok(sysctl(name) >= least, `${name} is ${sysctl(name)}`);
  const { stdout } = await run(BIN, ['doctor']);
  for (const name of ['pid_max', 'threads-max', 'file-max', 'tcp_max_orphans', 'bpf_jit_limit', 'pty.max']) assert.match(stdout, new RegExp(`${name.replace('.', '\\.')} \\d+`));
});

test('open files count to the memory of the sandbox that has them', async () => {
  const s = await d.sandbox({ limits: { memory: 32 << 20, pids: 64, nofile: 4096 } });
  await attacks.put(d, s.id, 'kmem');
  const before = sysctl('fs/file-nr');
  let most = 0;
  const r = d.exec(s.id, ['/tmp/kmem', 'files'], { user: 'root', timeout_ms: 30_000 }).catch(() => undefined);
  let over = false;
  r.then(() => { over = true; });
  while (!over) {
    most = Math.max(most, sysctl('fs/file-nr') - before);
    await new Promise((next) => setImmediate(next));
  }
  assert.ok(most > 1000, `it did open files: ${most}`);
  assert.ok(most < (32 << 20) / 192, `${most} open files with ${32} MiB of memory`);
  await d.del(`/v1/sandboxes/${s.id}`);
});

const SERVERS = {
  listen: 'ok', 'listen again': 'ok', connect: 'ok', accept: 'ok', 'small buffer': 'ok', is: '8192', 'large buffer': 'ok', 'is larger': 'ok',
  'short value': 'EINVAL', 'no memory': 'EFAULT', 'no fd': 'EBADF', 'no socket': 'ENOTSOCK', 'bind unix': 'ok', 'listen unix': 'ok', join: 'ok', 'join v6': 'ok',
  filter: 'ok', 'filter by prctl': 'ok',
};

test('honest servers still work, also as another user and in a thread', async () => {
  for (const user of ['root', 'user']) refused(await attack(d, a.id, 'kmem', ['servers'], { user }), SERVERS);
  const r = await d.exec(a.id, ['python3', '-c', `
import socket, threading
def work():
    s = socket.create_server(("127.0.0.1", 0))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    c = socket.create_connection(s.getsockname()); p = s.accept()[0]
    c.sendall(b"x" * 10); print(len(p.recv(100)), s.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
t = threading.Thread(target=work); t.start(); t.join()`]);
  assert.equal(r.stdout, '10 8192\n', r.stderr);
});

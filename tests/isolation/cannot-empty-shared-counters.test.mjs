// A sandbox that uses up a kernel resource uses up only its own share: other sandboxes and
// the host keep theirs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { attack, Attacks, insideOf, logOf, refused } from '../lib/attack.mjs';
import { poll, run, startDaemon } from '../lib/cove.mjs';
import { results } from '../lib/attack.mjs';

const MEMORY = 96 << 20;
const attacks = new Attacks();
let d;
let a;
let b;
before(async () => {
  await attacks.compile('hog');
  d = await startDaemon({ args: ['--pool', '0'] });
  [a, b] = await Promise.all([1, 2].map(() => d.sandbox({ limits: { memory: MEMORY, pids: 64, nofile: 2048 } })));
  await Promise.all([a, b].map((s) => attacks.put(d, s.id, 'hog')));
});
after(async () => {
  attacks.clean();
  await d?.stop();
});

const ONE = { inotify: 'ok', pty: 'ok', mq: 'ok', fork: 'ok' };

/** Lets the first sandbox take all of something; while it holds that, runs fn. */
async function holding(what, fn, user = 'root') {
  const P = `/v1/sandboxes/${a.id}/processes`;
  const p = await d.process(a.id, ['/tmp/hog', what], { user, stdin: true });
  await d.post(`${P}/${p.id}/wait`, { for: 'log', text: 'full ok', timeout_ms: 60_000 });
  const got = results(`${await logOf(d, a.id, p.id)}done`);
  try {
    await fn(got);
  } finally {
    await d.post(`${P}/${p.id}/kill`, { grace_ms: 0 });
  }
}

async function othersHaveTheirs() {
  refused(await attack(d, b.id, 'hog', ['one-of-each']), ONE);
  const host = await run(attacks.path('hog'), ['one-of-each']);
  refused(results(host.stdout), ONE);
}

const sysctl = (name) => Number(fs.readFileSync(`/proc/sys/${name}`, 'utf8').split(/\s+/)[0]);

test('a sandbox with no inotify instances left takes none of the others', async () => {
  // as root and as another: all uids of a sandbox together have one budget
  await holding('inotify', async (got) => {
    assert.equal(got.end, 'EMFILE');
    assert.ok(Number(got.taken) > 0 && Number(got.taken) <= sysctl('fs/inotify/max_user_instances'), JSON.stringify(got));
    const again = await d.exec(a.id, ['/tmp/hog', 'one-of-each'], { user: 'user' });
    assert.equal(results(again.stdout).inotify, 'EMFILE', 'its own other users have none left');
    await othersHaveTheirs();
  });
});

test('a sandbox with no terminals left takes none of the others', async () => {
  await holding('ptys', async (got) => {
    assert.equal(got.end, 'ENOSPC');
    assert.ok(Number(got.taken) > 16 && Number(got.taken) <= 256, JSON.stringify(got));
    await othersHaveTheirs();
  });
});

test('a sandbox at its limit of processes takes none of the others, and its own come back', async () => {
  await holding('forks', async (got) => {
    assert.equal(got.end, 'EAGAIN');
    assert.ok(Number(got.forks) < 64);
    assert.ok(insideOf(d, a.id).length <= 64);
    await d.fails(429, 'limit', 'POST', `/v1/sandboxes/${a.id}/exec`, { argv: ['true'] });
    await othersHaveTheirs();
  });
  assert.equal((await d.exec(a.id, ['true'])).exit_code, 0, 'and its own are back');
});

test('a sandbox with no message queues left takes none of the others', async () => {
  await holding('mq', async (got) => {
    assert.match(got.end, /ENOSPC|EMFILE|ENOMEM/);
    await othersHaveTheirs();
  });
});

test('a sandbox cannot use up the host\'s number of asynchronous requests', async () => {
  const before = sysctl('fs/aio-nr');
  await holding('aio', async (got) => {
    assert.deepEqual([got.end, got.taken], ['ENOSYS', '0']);
    assert.equal(sysctl('fs/aio-nr'), before);
  });
});

test('a sandbox cannot use up the host\'s room for compiled filters', async () => {
  for (const user of ['root', 'user']) {
    const got = await attack(d, a.id, 'hog', ['filters'], { user });
    refused(got, Object.fromEntries(['tcp', 'unix', 'netlink', 'reuseport', 'fanout'].map((n) => [n, 'EPERM'])));
  }
});

test('root in a sandbox gets no kernel keys and no file events of the whole system', async () => {
  const r = await d.exec(a.id, ['python3', '-c', `
import ctypes
c = ctypes.CDLL(None, use_errno=True)
for name, nr, args in (("add_key", 248, (b"user", b"x", b"y", 1, -2)), ("fanotify_init", 300, (0x200, 0))):
    print(name, "ok" if c.syscall(nr, *args) >= 0 else ctypes.get_errno())
print("done")`], { user: 'root' });
  assert.deepEqual(results(r.stdout), { add_key: '1', fanotify_init: '1' });
});

/** Pages that the sockets of all network namespaces hold. */
const pages = (kind) => Number(new RegExp(`^${kind}:.*\\bmem (\\d+)`, 'm').exec(fs.readFileSync('/proc/net/sockstat', 'utf8'))[1]);

/** With pure v2 what lies in sockets counts to a sandbox's memory: one that fills it may take itself down, and no other. */
async function orItEnds(attempt) {
  await attempt.catch(async (e) => {
    if (!fs.existsSync('/sys/fs/cgroup/cgroup.controllers') || e.code !== 'gone') throw e;
    await poll('it is known why', async () => /ran out of memory/.test((await d.get(`/v1/sandboxes/${a.id}`)).reason ?? ''));
    await othersHaveTheirs();
    await d.del(`/v1/sandboxes/${a.id}`);
    a = await d.sandbox({ limits: { memory: MEMORY, pids: 64, nofile: 2048 } });
    await attacks.put(d, a.id, 'hog');
  });
}

for (const [what, kind] of [['tcp', 'TCP'], ['udp', 'UDP']])
  test(`memory of ${kind} sockets stays within the limit of the sandbox`, async () => {
    const before = pages(kind);
    await orItEnds(holding(what, async (got) => {
      assert.ok(Number(got.bytes) > 1 << 20, `it did send: ${JSON.stringify(got)}`);
      const taken = (pages(kind) - before) * 4096;
      assert.ok(taken <= MEMORY * 1.25, `${taken >> 20} MiB of the kernel's, with a limit of ${MEMORY >> 20}`);
      await othersHaveTheirs();
    }));
    await poll('they are given back', () => pages(kind) - before < 1024);
  });

for (const what of ['netlink', 'raw', 'packet'])
  test(`memory of ${what} sockets, which no cgroup counts, has a bound per sandbox`, async () => {
    await holding(what, async ({ end, taken, full, ...rings }) => {
      assert.equal(end, 'ENOBUFS');
      assert.ok(Number(taken) >= 12 && Number(taken) <= 64, taken);
      refused(rings, what === 'packet' ? { 'rx ring': 'EPERM', 'tx ring': 'EPERM' } : {});
      const lookup = (id) => d.exec(id, ['python3', '-c', 'import socket\nprint(socket.if_nameindex())']);
      assert.match((await lookup(b.id)).stdout, /lo/, 'others have theirs');
      assert.notEqual((await lookup(a.id)).exit_code, 0, 'whatever kind they are of');
    });
    assert.match((await d.exec(a.id, ['python3', '-c', 'import socket\nprint(socket.if_nameindex())'])).stdout, /lo/, 'and its own are back');
  });

test('unfreed shared memory stays within its limit and does not end the sandbox', async () => {
  const s = await d.sandbox({ limits: { memory: MEMORY } });
  await attacks.put(d, s.id, 'hog');
  const r = await d.exec(s.id, ['/tmp/hog', 'shm'], { user: 'root', timeout_ms: 60_000 });
  const after = await d.exec(s.id, 'ipcs -m | grep -c 0x; echo alive', { timeout_ms: 20_000 });
  assert.match(after.stdout, /alive/, `${r.stdout}${r.stderr}${r.signal}`);
  assert.equal((await d.get(`/v1/sandboxes/${s.id}`)).boot_id, s.boot_id);
});

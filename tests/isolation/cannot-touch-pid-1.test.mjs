// Root inside does not attach to init, read it, take an fd of it, limit it, stop
// it or end it, nor a process that init is just starting.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { attack, Attacks, initOf, logOf, refused, results } from '../lib/attack.mjs';
import { startDaemon } from '../lib/cove.mjs';

const attacks = new Attacks();
let d;
let id;
let pid;
before(async () => {
  await attacks.compile('pid1', 'race', 'statfs');
  d = await startDaemon({ args: ['--pool', '0'] });
  id = (await d.sandbox()).id;
  await attacks.put(d, id, 'pid1', 'race', 'statfs');
  pid = initOf(d, id).pid;
});
after(async () => {
  attacks.clean();
  await d?.stop();
});

/** The same init as before, and it serves. */
async function alive() {
  assert.equal(initOf(d, id)?.pid, pid);
  const r = await d.exec(id, 'echo alive; cat /proc/1/stat', { timeout_ms: 10_000 });
  assert.match(r.stdout, /^alive\n1 \(cove-init\) [SR] /);
}

for (const user of ['root', 'user']) {
  test(`${user} does not trace init, read its memory or take its fds`, async () => {
    const got = await attack(d, id, 'pid1', ['trace'], { user });
    assert.equal(Object.keys(got).length, 17);
    refused(got, {
      ...Object.fromEntries(Object.keys(got).map((n) => [n, 'EPERM'])),
      process_madvise: ['EPERM', 'EACCES'],
      process_mrelease: ['EPERM', 'EINVAL'], // EINVAL: it is not dying
    });
    await alive();
  });

  test(`${user} cannot open init's files in /proc`, async () => {
    const got = await attack(d, id, 'pid1', ['files'], { user });
    assert.equal(Object.keys(got).length, 41);
    const open = Object.entries(got).filter(([, v]) => !['EACCES', 'EPERM'].includes(v));
    // coredump_filter and comm open for the owner of the entry, and refuse the write
    assert.deepEqual(open, []);
    await alive();
  });

  test(`${user} does not change init's limits`, async () => {
    const got = await attack(d, id, 'pid1', ['limits'], { user });
    refused(got, Object.fromEntries(['prlimit get', 'prlimit nofile up', ...['nofile', 'cpu', 'as', 'fsize', 'stack'].map((n) => `prlimit ${n} to 0`)].map((n) => [n, 'EPERM'])));
    await alive();
  });

  test(`${user} does not stop or end init with any signal`, async () => {
    refused(await attack(d, id, 'pid1', ['signals'], { user }), { sent: 'ok' });
    await alive();
  });
}

// init answers statfs, sysinfo and sched_getaffinity for all processes inside, in their memory
test('forged seccomp requests do not mislead, block or end init', async () => {
  for (const user of ['root', 'user']) {
    refused(await attack(d, id, 'statfs', ['lies'], { user }), {
      plain: 'ok', 'no path': 'EFAULT', 'path in the kernel': 'EFAULT', 'path over the edge': 'EFAULT', 'endless path': 'ENAMETOOLONG', 'empty path': 'ENOENT',
      'no place': 'EFAULT', 'place in the kernel': 'EFAULT', 'place over the edge': 'EFAULT', 'bad fd': 'EBADF', 'huge fd': 'EBADF',
      "init's root": 'EACCES', "init's fd": 'EACCES', 'a pipe nobody opens': 'ok', 'a pipe by its fd': user === 'root' ? 'ok' : ['ok', 'EBADF'],
      'memory: no place': 'EFAULT', 'memory: place in the kernel': 'EFAULT', 'memory: place over the edge': 'EFAULT',
      'processors: no place': 'EFAULT', 'processors: place over the edge': 'EFAULT', 'processors: no room': 'EINVAL', 'processors: odd room': 'EINVAL',
      'processors: endless room': 'ok', 'processors: of no process': 'ESRCH', 'processors: of nothing': 'ESRCH', 'processors: of init': 'ok',
    });
    refused(await attack(d, id, 'statfs', ['deaths'], { user }), { killed: 'ok' });
    await alive();
  }
});

test('a process that init is just starting is not caught', async () => {
  for (const user of ['root', 'user']) {
    const p = await d.process(id, ['/tmp/race'], { user });
    const P = `/v1/sandboxes/${id}/processes/${p.id}`;
    await d.post(`${P}/wait`, { for: 'log', text: 'ready ok' });
    for (let i = 0; i < 40; i++) {
      const all = await Promise.all(['root', 'user', 'root'].map((u) => d.exec(id, ['/bin/true'], { user: u })));
      assert.deepEqual(all.map((r) => r.exit_code), [0, 0, 0]);
    }
    await d.post(`${P}/signal`, { signal: 'TERM' });
    await d.post(`${P}/wait`);
    const got = results(await logOf(d, id, p.id));
    assert.ok(Number(got.met) > 20, `it met the processes: ${JSON.stringify(got)}`);
    assert.ok(Number(got.refused) > 0, `it came in time to be refused: ${JSON.stringify(got)}`);
    assert.equal(got.breach, '0');
  }
  await alive();
});

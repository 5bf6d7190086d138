// A session's result is as honest as its user; another user's is out of reach, and so is
// the daemon.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { initOf } from '../lib/attack.mjs';
import { poll, startDaemon, within } from '../lib/cove.mjs';
import { openSession } from '../lib/session.mjs';

let d;
let id;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox()).id;
});
after(() => d?.stop());

test('cannot open, list or change the directory of another user\'s session', async () => {
  const s = await openSession(d, id, { user: 'root', env: { HOME: '/root' } });
  const a = await d.exec(id, 'ls /dev/cove; for n in 1 2 3 4; do for f in c s 1 2; do (: < /dev/cove/$n/$f) && echo "read $n/$f"; (: > /dev/cove/$n/$f) && echo "wrote $n/$f"; done; touch /dev/cove/$n/new && echo made; mv /dev/cove/$n/s /dev/cove/$n/t && echo moved; done; mkdir /dev/cove/99 && echo dir');
  assert.equal(a.stdout, '');
  assert.equal(await s.out('echo mine'), 'mine\n');
  await s.delete();
});

test('cannot answer for another user\'s command, nor read it, nor signal its shell', async () => {
  const s = await openSession(d, id, { user: 'root' });
  const pid = (await s.get()).pid;
  const run = s.exec('secret=hidden; sleep 1; exit 5');
  await d.exec(id, `for n in 1 2 3; do echo "bash: /dev/cove/$n/-/n0.${pid}.: no" > /dev/cove/$n/s; done; kill -9 ${pid}; cat /proc/${pid}/environ; true`);
  assert.equal((await run).exit_code, 5);
  await s.delete();
});

test('can lie about its own result, once per command, and harm nobody else', async () => {
  const s = await openSession(d, id);
  const other = await openSession(d, id);
  const dir = (await s.exec("trap -p EXIT | grep -o '/dev/cove/[0-9]*' | head -n1")).stdout.trim();
  assert.match(dir, /^\/dev\/cove\/\d+$/);
  const a = await s.exec(`echo "bash: ${dir}/-/n77.1.: x" > ${dir}/s; sleep 0.2`);
  assert.equal(a.exit_code, 77);
  for (const lie of [`${dir}/-/x0.1.`, `${dir}/-/b0..\n${dir}/-/x0.1.`, `${dir}/-/b0..\n${dir}/-/x0.999999.`, `${dir}/-/b0..\n${dir}/-/n0..`, `${dir}/-/b0..`, `${dir}/-/q0.1.`, `${dir}/-/n999.1.`, 'x'.repeat(5000)]) {
    const t = await openSession(d, id);
    const mine = (await t.exec("trap -p EXIT | grep -o '/dev/cove/[0-9]*' | head -n1")).stdout.trim();
    const b = await within(10_000, lie, t.exec(`echo "${lie.replaceAll(dir, mine)}" > ${mine}/s; sleep 0.2`, { timeout_ms: 3000 }));
    assert.equal(b.session, 'ended', lie);
    assert.match((await t.get()).reason, /nonsense|lost track|nobody had asked|could not go on/);
    await t.delete();
  }
  assert.equal(await other.out('echo well'), 'well\n');
  await other.delete();
  await s.delete();
});

test('cannot make init busy or big by a flood of replies', async () => {
  const s = await openSession(d, id);
  const dir = (await s.exec("trap -p EXIT | grep -o '/dev/cove/[0-9]*' | head -n1")).stdout.trim();
  const p = await d.process(id, `exec yes "${dir}/-/n0.1." > ${dir}/s`);
  for (let i = 0; i < 20; i++) await within(10_000, 'exec', d.call('POST', `${s.url}/exec`, { command: 'true', timeout_ms: 2000 }));
  assert.equal((await within(5000, 'another', d.exec(id, 'echo served'))).stdout, 'served\n');
  await d.post(`/v1/sandboxes/${id}/processes/${p.id}/kill`, { grace_ms: 0 });
  await within(10_000, 'delete', s.delete());
});

test('cannot survive the end of its session, however it hides', async () => {
  const s = await openSession(d, id);
  await s.exec('setsid bash -c "trap \'\' TERM INT HUP; (sleep 3000 & sleep 3001) & disown" & nohup sleep 3002 > /dev/null 2>&1 & (sleep 3003 &)');
  await s.exec('while :; do (sleep 3004 &); done', { timeout_ms: 200 });
  await poll('it left some', async () => (await d.exec(id, 'pgrep -fc "^sleep 300[0-3]"')).stdout.trim() === '4');
  assert.equal((await d.exec(id, 'pgrep -fc "^sleep 3004"')).stdout.trim(), '0');
  await s.delete();
  assert.equal((await d.exec(id, 'pgrep -fc "^sleep 300"')).stdout.trim(), '0');
});

/** In a session: a process that its parent outlives takes over, by a lie, and then ends. */
const HEIR = `
import os, sys, time
dir = sys.argv[1]
r, w = os.pipe()
heir = os.fork()
if heir == 0:
    os.close(w)
    os.read(r, 1)
    os._exit(0)
def say(what):
    with open(dir + '/s', 'w') as f: f.write('bash: %s/-/%s: x\\n' % (dir, what))
if os.fork() == 0:
    say('b0..')
    say('x0.%d.' % heir)
    say('n0..')
    os._exit(0)
while not os.path.exists('/tmp/go'): time.sleep(0.01)
os.close(w)
os.waitpid(heir, 0)
with open('/tmp/heir.new', 'w') as f: f.write(str(heir))
os.rename('/tmp/heir.new', '/tmp/heir')
time.sleep(1000)
`;

for (const how of ['ends', 'is stopped']) {
  test(`cannot have a process killed that got the number of one of its own, when it ${how}`, async () => {
    await d.exec(id, 'rm -f /tmp/go /tmp/heir; cat >/tmp/heir.py', { stdin: HEIR });
    const s = await openSession(d, id);
    const dir = (await s.exec("trap -p EXIT | grep -o '/dev/cove/[0-9]*' | head -n1")).stdout.trim();
    await s.exec(`setsid python3 /tmp/heir.py ${dir} & sleep 100`);
    assert.equal((await s.get()).state, 'idle');
    await d.exec(id, 'touch /tmp/go; until [ -e /tmp/heir ]; do sleep 0.01; done');
    const pid = Number((await d.exec(id, 'cat /tmp/heir')).stdout);
    // What wrapping around all numbers would do, sooner.
    const at = ['-t', String(initOf(d, id).pid), '-p', 'sh', '-c'];
    execFileSync('nsenter', [...at, `echo ${pid - 1} > /proc/sys/kernel/ns_last_pid`]);
    const victim = await d.post(`/v1/sandboxes/${id}/processes`, { argv: ['sleep', '1000'], user: 'root' });
    assert.equal(victim.pid, pid);
    if (how === 'is stopped') {
      const run = s.exec('sleep 100').catch(() => null);
      await s.interrupt();
      await run;
    }
    await s.delete();
    assert.equal((await d.get(`/v1/sandboxes/${id}/processes/${victim.id}`)).state, 'running');
    await d.call('DELETE', `/v1/sandboxes/${id}/processes/${victim.id}`);
  });
}

// A user can forge results of its own session, but not of another user's, and cannot hurt
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

test('a user cannot open, list or change the directory of another user\'s session', async () => {
  const s = await openSession(d, id, { user: 'root', env: { HOME: '/root' } });
  const a = await d.exec(id, 'ls /dev/cove; for n in 1 2 3 4; do for f in c s 1 2; do (: < /dev/cove/$n/$f) && echo "read $n/$f"; (: > /dev/cove/$n/$f) && echo "wrote $n/$f"; done; touch /dev/cove/$n/new && echo made; mv /dev/cove/$n/s /dev/cove/$n/t && echo moved; done; mkdir /dev/cove/99 && echo dir');
  assert.equal(a.stdout, '');
  assert.equal(await s.out('echo mine'), 'mine\n');
  await s.delete();
});

test('a user cannot forge, read or signal another user\'s session command', async () => {
  const s = await openSession(d, id, { user: 'root' });
  const pid = (await s.get()).pid;
  const run = s.exec('secret=hidden; sleep 1; exit 5');
  await d.exec(id, `for n in 1 2 3; do echo n0 > /dev/cove/$n/s; done; kill -9 ${pid}; cat /proc/${pid}/environ; true`);
  assert.equal((await run).exit_code, 5);
  await s.delete();
});

test('a command can forge only its own result, once', async () => {
  const s = await openSession(d, id);
  const other = await openSession(d, id);
  const dir = (await s.exec('d=$(readlink /proc/$$/fd/701); echo "${d%/*}"')).stdout.trim();
  assert.match(dir, /^\/dev\/cove\/\d+$/);
  const a = await s.exec(`echo n77 > ${dir}/s; sleep 0.2`);
  assert.equal(a.exit_code, 77);
  for (const lie of ['r0', 'n0\nr0', 'x'.repeat(5000)]) {
    const t = await openSession(d, id);
    const mine = (await t.exec('d=$(readlink /proc/$$/fd/701); echo "${d%/*}"')).stdout.trim();
    await within(10_000, lie, t.exec(`echo "${lie}" > ${mine}/s; sleep 0.2`, { timeout_ms: 3000 }));
    const next = await within(10_000, lie, d.call('POST', `${t.url}/exec`, { command: 'sleep 0.3; echo "${lie}"', timeout_ms: 3000 }));
    if (next.status === 410) assert.match((await t.get()).reason, /malformed|had asked for/, lie);
    await t.delete();
  }
  const u = await openSession(d, id);
  const mine = (await u.exec('d=$(readlink /proc/$$/fd/701); echo "${d%/*}"')).stdout.trim();
  assert.equal((await u.exec(`echo r0 > ${mine}/s; sleep 5`, { timeout_ms: 3000 })).session, 'ended');
  assert.match((await u.get()).reason, /had asked for/);
  await u.delete();
  assert.equal(await other.out('echo well'), 'well\n');
  await other.delete();
  await s.delete();
});

test('a flood of replies does not make init busy or big', async () => {
  const s = await openSession(d, id);
  const dir = (await s.exec('d=$(readlink /proc/$$/fd/701); echo "${d%/*}"')).stdout.trim();
  const p = await d.process(id, `exec yes n0 > ${dir}/s`);
  for (let i = 0; i < 20; i++) await within(10_000, 'exec', d.call('POST', `${s.url}/exec`, { command: 'true', timeout_ms: 2000 }));
  assert.equal((await within(5000, 'another', d.exec(id, 'echo served'))).stdout, 'served\n');
  await d.post(`/v1/sandboxes/${id}/processes/${p.id}/kill`, { grace_ms: 0 });
  await within(10_000, 'delete', s.delete());
});

for (const word of ['e0', 'q0'])
  test(`a shell that repeats ${word} without end does not keep init busy`, async () => {
    const s = await openSession(d, id);
    const other = await openSession(d, id);
    const a = await within(10_000, 'the flood', s.exec(`d=$(ls -l /proc/$$/fd | grep -o "/dev/cove/.*/s"); timeout 5 yes ${word} > $d`));
    assert.equal(a.session, 'ended');
    assert.match((await s.get()).reason, /had asked for/);
    assert.equal(await other.out('echo well'), 'well\n');
    await other.delete();
    await s.delete();
  });

test('a forged announcement of an exit does not change later results', async () => {
  const s = await openSession(d, id);
  for (let i = 0; i < 3; i++) assert.equal((await s.exec('d=$(ls -l /proc/$$/fd | grep -o "/dev/cove/.*/s"); echo e0 > $d; (exit 4)')).exit_code, 4);
  assert.equal((await s.exec('exit 5')).session, 'ended');
  assert.match((await s.get()).reason, /exited with 5/);
  await s.delete();
});

test('a process cannot survive the end of its session by hiding', async () => {
  const s = await openSession(d, id);
  await s.exec('setsid bash -c "trap \'\' TERM INT HUP; (sleep 3000 & sleep 3001) & disown" & nohup sleep 3002 > /dev/null 2>&1 & (sleep 3003 &)');
  await s.exec('while :; do (sleep 3004 &); done', { timeout_ms: 200 });
  await poll('it left some', async () => (await d.exec(id, 'pgrep -fc "^sleep 300[0-3]"')).stdout.trim() === '4');
  assert.equal((await d.exec(id, 'pgrep -fc "^sleep 3004"')).stdout.trim(), '0');
  await s.delete();
  assert.equal((await d.exec(id, 'pgrep -fc "^sleep 300"')).stdout.trim(), '0');
});

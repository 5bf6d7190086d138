// Processes that hide, ignore signals or multiply: a kill, a timeout and the delete of the
// sandbox leave none of them. Seen from the host.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Attacks, initOf, insideOf } from '../lib/attack.mjs';
import { poll, startDaemon, within } from '../lib/cove.mjs';

const WAYS = ['ignoring', 'session', 'daemonized', 'left-behind', 'stopped', 'traced', 'threads', 'running-away'];
const attacks = new Attacks();
let d;
let id;
before(async () => {
  await attacks.compile('stubborn');
  d = await startDaemon({ args: ['--pool', '0'] });
  id = await fresh();
});
after(async () => {
  attacks.clean();
  await d?.stop();
});

async function fresh() {
  const s = await d.sandbox({ limits: { pids: 100 } });
  await attacks.put(d, s.id, 'stubborn');
  return s.id;
}

const others = (sandbox) => insideOf(d, sandbox).filter((p) => p.pid !== initOf(d, sandbox)?.pid).map((p) => `${p.pid} ${p.comm} ${p.state}`);

async function begin(sandbox, way, opts = {}) {
  const p = await d.process(sandbox, ['/tmp/stubborn', way], { user: 'root', ...opts });
  await d.post(`/v1/sandboxes/${sandbox}/processes/${p.id}/wait`, { for: 'log', text: 'ready' });
  assert.ok(others(sandbox).length > 0, 'it runs');
  return p;
}

for (const way of WAYS) {
  test(`a process does not survive a kill: ${way}`, async () => {
    const p = await begin(id, way);
    const r = await within(20_000, 'the kill', d.post(`/v1/sandboxes/${id}/processes/${p.id}/kill`, { grace_ms: 50 }));
    assert.ok(r, 'it is answered when all of it is dead');
    assert.deepEqual(others(id), []);
  });

  test(`a process does not survive its timeout: ${way}`, async () => {
    const r = await within(20_000, 'the timeout', d.exec(id, ['/tmp/stubborn', way], { user: 'root', timeout_ms: 400 }));
    assert.equal(r.timed_out, true);
    assert.equal(r.exit_code, 124);
    assert.match(r.stdout, /^ready\n/);
    await poll('nothing is left', () => others(id).length === 0);
  });
}

test('no process survives the deletion of its sandbox', async () => {
  const s = await fresh();
  for (const way of WAYS) await begin(s, way);
  await within(20_000, 'the deletion', d.del(`/v1/sandboxes/${s}`));
  assert.deepEqual(insideOf(d, s), []);
});

test('no process survives the end of init', async () => {
  const s = await fresh();
  for (const way of WAYS.slice(0, 6)) await begin(s, way);
  process.kill(initOf(d, s).pid, 'SIGKILL');
  await poll('nothing is left', () => insideOf(d, s).length === 0);
  await poll('and it is told', async () => (await d.get(`/v1/sandboxes/${s}`)).state === 'stopped');
});

test('a background process of an exec is killed only with its sandbox', async () => {
  const s = await fresh();
  const r = await d.exec(s, '/tmp/stubborn daemonized >/dev/null & sleep 1000 & echo started', { user: 'root' });
  assert.equal(r.stdout, 'started\n');
  await poll('it stays', () => others(s).some((p) => p.includes('sleep')));
  await d.del(`/v1/sandboxes/${s}`);
  assert.deepEqual(insideOf(d, s), []);
});

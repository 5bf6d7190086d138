// /ready answers from the last sandbox that was made for the pool, and names the stage that failed.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { initsOf } from '../lib/chaos.mjs';
import { poll, startDaemon, tagOf } from '../lib/cove.mjs';

const S = '/v1/sandboxes';
const ready = (d) => d.call('GET', '/ready', undefined, { key: null });
const proofs = async (d) => Number(/^cove_sandbox_proofs_total (\d+)$/m.exec((await d.call('GET', '/metrics')).text)[1]);

/** No cgroup can be made for another sandbox while fn runs. */
async function withoutCgroups(d, fn) {
  const name = `cove-${tagOf(d.dir)}/cgroup.max.descendants`;
  const file = [`/sys/fs/cgroup/unified/${name}`, `/sys/fs/cgroup/${name}`].find((f) => fs.existsSync(f));
  fs.writeFileSync(file, '0');
  try {
    return await fn();
  } finally {
    fs.writeFileSync(file, 'max');
  }
}

async function daemon(t, pool) {
  const d = await startDaemon({ args: ['--pool', String(pool), '--exec-timeout', '10s'] });
  t.after(() => d.stop());
  return d;
}

test('a stage that fails at every create is named while /health is fine, until it works again', async (t) => {
  const d = await daemon(t, 2);
  assert.deepEqual((await ready(d)).json, { ok: true, reserve: 'enough' });
  await withoutCgroups(d, async () => {
    for (let i = 0; i < 2; i++) await d.sandbox(); // those that are pooled
    const a = await poll('that is known', async () => {
      const r = await ready(d);
      return r.status === 503 && r;
    });
    assert.deepEqual(a.json, { ok: false, reason: 'failing', stage: 'cgroup', reserve: 'enough' });
    await d.fails(500, 'internal', 'POST', S, {});
    assert.equal((await d.call('GET', '/health', undefined, { key: null })).status, 200);
  });
  await poll('it is ready again', async () => (await ready(d)).status === 200);
  await poll('the pool is full again', async () => /^cove_sandboxes_pooled 2$/m.test((await d.call('GET', '/metrics')).text));
});

test('a sandbox is built as a proof only if none was made recently, and it does not stay', async (t) => {
  const d = await daemon(t, 2);
  for (let i = 0; i < 20; i++) assert.equal((await ready(d)).status, 200);
  assert.equal(await proofs(d), 0, 'the pool was filled a moment ago');
  const none = await daemon(t, 0);
  const all = await Promise.all(Array.from({ length: 20 }, () => ready(none)));
  assert.deepEqual(all.map((a) => a.status), Array(20).fill(200));
  assert.equal((await ready(none)).status, 200);
  assert.equal(await proofs(none), 1, 'all of them were answered by one');
  assert.match((await none.call('GET', '/metrics')).text, /^cove_sandboxes_pooled 0$/m);
  await poll('it is removed', () => initsOf(none.dir).size === 0);
});

test('without a pool the proof fails where a create would', async (t) => {
  const d = await daemon(t, 0);
  await withoutCgroups(d, async () => {
    const a = await ready(d);
    assert.deepEqual([a.status, a.json.reason, a.json.stage], [503, 'failing', 'cgroup']);
  });
  await poll('it is ready again', async () => (await ready(d)).status === 200);
});

test('a proof that does not end is answered with the stage that it is in', async (t) => {
  const d = await daemon(t, 0);
  const nursery = await d.sandbox(); // the first one starts the process that makes inits
  const pid = fs.readdirSync('/proc').find((p) => {
    try {
      return fs.readFileSync(`/proc/${p}/cmdline`, 'utf8').startsWith('cove: nursery') && new RegExp(`^PPid:\\s+${d.keeperPid()}$`, 'm').test(fs.readFileSync(`/proc/${p}/status`, 'utf8'));
    } catch {
      return false;
    }
  });
  process.kill(Number(pid), 'SIGSTOP');
  try {
    const a = await ready(d);
    assert.deepEqual([a.status, a.json.reason, a.json.stage], [503, 'failing', 'birth']);
  } finally {
    process.kill(Number(pid), 'SIGCONT');
  }
  await poll('it is ready again', async () => (await ready(d)).status === 200);
  await d.del(`${S}/${nursery.id}`);
});

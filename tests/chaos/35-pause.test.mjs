// kill -9 around and in the middle of pauses: the acknowledged state holds, the kernel agrees,
// and processes in a paused sandbox do not run.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Dice, instant, isBroken, settled } from '../lib/chaos.mjs';
import { poll, startDaemon, tagOf } from '../lib/cove.mjs';
import { cgroupsNamed } from '../lib/host.mjs';

const S = '/v1/sandboxes';
const ROUNDS = Number(process.env.COVE_CHAOS_ROUNDS ?? 24);
const MANY = 200;

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

/** Whether the kernel holds what runs in it. */
function isFrozen(id) {
  const dir = cgroupsNamed(`cove-${tagOf(d.dir)}`).map((g) => path.join(g, id, 'run')).find((g) => fs.existsSync(path.join(g, 'cgroup.freeze')));
  return fs.readFileSync(path.join(dir, 'cgroup.freeze'), 'utf8').trim() === '1';
}

async function kill(who) {
  await d.kill9(who);
  if (who === 'front') await d.back();
  else await d.restart();
}

test('a paused sandbox stays paused across kills and resumes with its processes', async () => {
  const s = await d.sandbox({ timeout_ms: 600_000, on_timeout: 'pause' });
  const job = await d.process(s.id, 'trap "echo woken" USR1; echo up; while :; do sleep 0.01; done', { id: 'job' });
  const says = async (text) => (await d.call('GET', `${S}/${s.id}/processes/job/logs`)).text.includes(text);
  await poll('it has its trap', () => says('up'));
  const paused = await d.post(`${S}/${s.id}/pause`);
  for (const who of ['front', 'keeper', 'both']) {
    await kill(who);
    assert.deepEqual(await d.get(`${S}/${s.id}`), paused, `after the kill of ${who}`);
    assert.ok(isFrozen(s.id));
  }
  const again = await d.post(`${S}/${s.id}/resume`);
  assert.equal(again.boot_id, s.boot_id);
  assert.equal((await d.get(`${S}/${s.id}/processes/job`)).pid, job.pid);
  await d.post(`${S}/${s.id}/processes/job/signal`, { signal: 'USR1' });
  await poll('it answers', () => says('woken'));
  await d.del(`${S}/${s.id}`);
  await settled(d);
});

test('a kill in the middle of a pause or a resume leaves one or the other, and the kernel agrees', async () => {
  const dice = new Dice();
  await dice.guard(async () => {
    const s = await d.sandbox();
    await d.process(s.id, ['sleep', '100000']);
    let told = 'running';
    for (let round = 0; round < ROUNDS; round++) {
      const what = told === 'running' ? 'pause' : 'resume';
      const call = d.call('POST', `${S}/${s.id}/${what}`).then((a) => a.status, (e) => {
        if (!isBroken(e)) throw e;
        return 0;
      });
      await instant(dice.roll() * 6);
      await kill(dice.pick(['front', 'keeper', 'both']));
      const status = await call;
      const now = await poll('it has settled', async () => {
        const x = await d.get(`${S}/${s.id}`);
        return x.state === (isFrozen(s.id) ? 'paused' : 'running') && x.state;
      });
      if (status === 200) assert.equal(now, what === 'pause' ? 'paused' : 'running', `round ${round}: ${what} was acknowledged`);
      told = now;
    }
    await d.del(`${S}/${s.id}`);
    await settled(d);
  });
});

test(`${MANY} paused sandboxes are found again, and cost their daemon little`, async () => {
  const ids = [];
  for (let i = 0; i < MANY / 20; i++) ids.push(...(await Promise.all(Array.from({ length: 20 }, () => d.sandbox()))).map((s) => s.id));
  await Promise.all(ids.map((id) => d.exec(id, `printf ${id} > /tmp/who`)));
  await Promise.all(ids.map((id) => d.post(`${S}/${id}/pause`)));
  await kill('both');
  const all = [];
  for (let cursor = ''; cursor !== undefined;) {
    const page = await d.get(`${S}?state=paused&limit=100${cursor && `&cursor=${cursor}`}`);
    all.push(...page.sandboxes);
    cursor = page.next_cursor ?? undefined;
  }
  assert.deepEqual(all.map((s) => s.id).sort(), ids.sort());
  await Promise.all(ids.map(async (id) => {
    await d.post(`${S}/${id}/resume`);
    assert.equal((await d.exec(id, ['cat', '/tmp/who'])).stdout, id, 'each goes on as itself');
  }));
  await Promise.all(ids.map((id) => d.del(`${S}/${id}`)));
  await settled(d, { deadline: 60_000 });
});

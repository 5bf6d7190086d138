// kill -9 in the middle of snapshots, forks and creations from them: only
// acknowledged ones exist afterwards, and the original runs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Dice, instant, inventory, isBroken, listAll, settled } from '../lib/chaos.mjs';
import { poll, startDaemon } from '../lib/cove.mjs';

const S = '/v1/sandboxes';
const ROUNDS = Number(process.env.COVE_CHAOS_ROUNDS ?? 20);

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

async function kill(who) {
  await d.kill9(who);
  if (who === 'front') await d.back();
  else await d.restart();
}

const quietly = (promise) => promise.catch((e) => {
  if (!isBroken(e)) throw e;
  return undefined;
});

/** Only what is listed has a record and a disk, as soon as everything is swept. */
async function sweptSnapshots() {
  return poll('there are the snapshots that are listed, and no others', async () => {
    const ids = (await d.get('/v1/snapshots?limit=1000')).snapshots.map((s) => s.id).sort();
    const found = inventory(d);
    assert.deepEqual(found.snapshots, ids, 'records');
    assert.deepEqual(found.snapshotDisks, ids, 'disks');
    return true;
  });
}

test('a kill during a snapshot leaves it complete or absent, and the sandbox runs', async () => {
  const dice = new Dice();
  await dice.guard(async () => {
    const s = await d.sandbox();
    await d.exec(s.id, 'echo 0 > /workspace/n');
    const told = new Map();
    for (let round = 0; round < ROUNDS; round++) {
      await d.exec(s.id, `echo ${round} > /workspace/n; head -c 3000000 /dev/urandom > /workspace/bulk`);
      const call = quietly(d.call('POST', `${S}/${s.id}/snapshots`));
      await instant(dice.roll() * 15);
      await kill(dice.pick(['front', 'keeper', 'both']));
      const a = await call;
      if (a?.status === 201) told.set(a.json.id, round);
      const r = await d.exec(s.id, 'cat /workspace/n'); // it is not left frozen
      assert.equal(r.stdout, `${round}\n`);
    }
    const all = (await d.get('/v1/snapshots?limit=1000')).snapshots.map((x) => x.id);
    for (const id of told.keys()) assert.ok(all.includes(id), `${id} was acknowledged`);
    await sweptSnapshots();
    for (const [id, round] of [...told].slice(-3)) {
      const b = await d.sandbox({ snapshot: id });
      assert.equal((await d.exec(b.id, 'cat /workspace/n')).stdout, `${round}\n`);
      await d.del(`${S}/${b.id}`);
    }
    for (const id of all) await d.del(`/v1/snapshots/${id}`);
    await d.del(`${S}/${s.id}`);
    await sweptSnapshots();
    await settled(d);
  });
});

test('a kill during a fork leaves listed sandboxes or nothing', async () => {
  const dice = new Dice();
  await dice.guard(async () => {
    const s = await d.sandbox();
    await d.exec(s.id, 'echo here > /workspace/f');
    for (let round = 0; round < ROUNDS / 2; round++) {
      const call = quietly(d.call('POST', `${S}/${s.id}/fork`, { count: 4 }));
      await instant(dice.roll() * 40);
      await kill(dice.pick(['front', 'keeper', 'both']));
      const a = await call;
      const { all } = await settled(d);
      if (a?.status === 201) for (const f of a.json.forks) assert.ok(!f.sandbox || all.some((x) => x.id === f.sandbox.id));
      for (const x of all.filter((x) => x.id !== s.id)) {
        assert.equal((await d.exec(x.id, 'cat /workspace/f')).stdout, 'here\n');
        await d.del(`${S}/${x.id}`);
      }
      assert.equal((await d.exec(s.id, 'cat /workspace/f')).stdout, 'here\n');
    }
    await d.del(`${S}/${s.id}`);
    await settled(d);
    await sweptSnapshots();
    assert.deepEqual(await listAll(d), []);
  });
});

test('a kill during an export leaves no sandbox', async () => {
  const s = await d.sandbox();
  const snap = await d.post(`${S}/${s.id}/snapshots`);
  for (const who of ['front', 'both']) {
    const call = quietly(d.call('GET', `/v1/snapshots/${snap.id}/export`));
    await poll('it is under way', () => inventory(d).inits.length > 3); // this one, the pool, the throw-away one
    await kill(who);
    await call;
    await settled(d);
  }
  await d.del(`/v1/snapshots/${snap.id}`);
  await d.del(`${S}/${s.id}`);
  await settled(d);
  await sweptSnapshots();
});

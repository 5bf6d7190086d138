// A range of ids, and with it an interface's name and an address, belongs to one sandbox at a
// time, also while keepers are killed: a new keeper must not lease a range that an old sandbox still has.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { Dice, initsOf, instant, isBroken, listAll } from '../lib/chaos.mjs';
import { poll } from '../lib/cove.mjs';
import { Internet, WEB } from '../lib/internet.mjs';

const ROUNDS = Number(process.env.COVE_CHAOS_ROUNDS ?? 15);
const S = '/v1/sandboxes';
const CLIENTS = 3;
let net;
let d;
before(async () => {
  net = await new Internet().open();
  d = await net.daemon({ args: ['--pool', '4'] });
});
after(async () => {
  await d?.stop();
  await net?.close();
});

/** The first id of a process's user namespace, as the host sees it. */
function firstId(pid) {
  try {
    return Number(/^\s*0\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/uid_map`, 'utf8'))?.[1]);
  } catch {
    return NaN; // it has just ended
  }
}

/** No two sandboxes, also those being deleted, have ids in common. */
function assertApart() {
  const owner = new Map();
  for (const [id, pid] of initsOf(d.dir)) {
    const first = firstId(pid);
    if (!(first > 0)) continue; // its maps are not written yet
    assert.ok(!owner.has(first), `${id} and ${owner.get(first)} both have the ids from ${first} on`);
    owner.set(first, id);
  }
}

/** Makes and deletes until the daemon is gone. */
async function client(dice) {
  const mine = [];
  try {
    for (;;) {
      mine.push((await d.sandbox(dice.below(2) === 0 ? {} : { limits: { memory: 300 << 20 } })).id);
      if (mine.length > 1) await d.del(`${S}/${mine.splice(dice.below(mine.length), 1)[0]}`);
    }
  } catch (e) {
    if (!isBroken(e)) throw e;
  }
}

test('no range is leased twice, wherever a keeper is killed', async () => {
  const dice = new Dice();
  await dice.guard(async () => {
    const kept = await d.sandbox();
    const address = (await d.get(`${S}/${kept.id}/network`)).address;
    for (let round = 0; round < ROUNDS; round++) {
      const clients = Array.from({ length: CLIENTS }, () => client(dice));
      const all = Promise.all(clients);
      await Promise.race([instant(dice.below(120)), all]);
      assertApart();
      await d.kill9('keeper');
      await all;
      await d.restart();
      assertApart();
      const rest = (await listAll(d)).map((s) => s.id).filter((id) => id !== kept.id);
      assert.ok((await listAll(d)).some((s) => s.id === kept.id));
      if (rest.length > 12) await Promise.all(rest.map((id) => d.del(`${S}/${id}`)));
      assert.doesNotMatch(d.log, /File exists|has the same user ids/);
    }
    const running = (await listAll(d)).filter((s) => s.state === 'running');
    const addresses = await Promise.all(running.map(async (s) => (await d.get(`${S}/${s.id}/network`)).address));
    assert.equal(new Set(addresses).size, addresses.length, `addresses: ${addresses}`);
    assert.ok(addresses.includes(address), 'an address stays');
    for (const s of running) await poll(`${s.id} reaches the world`, async () => (await d.exec(s.id, `curl -s -m 5 -o /dev/null -w %{http_code} http://${WEB}/`)).stdout === '200');
  });
});

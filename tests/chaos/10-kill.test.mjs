// kill -9 of the front, the keeper or both, at any instant, while clients create,
// run, follow, time out and delete: nothing acknowledged is lost, nothing leaks.
//
// COVE_CHAOS_SEED replays the choices of a run that failed (not the scheduling of
// the machine), COVE_CHAOS_ROUNDS makes it longer.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Dice, initsOf, instant, isBroken, listAll, settled } from '../lib/chaos.mjs';
import { poll, startDaemon, within } from '../lib/cove.mjs';
import { output } from '../lib/sse.mjs';

const ROUNDS = Number(process.env.COVE_CHAOS_ROUNDS ?? 60);
const S = '/v1/sandboxes';
const KEPT = 6; // sandboxes wanted at one time
// one number per line, for ever; slow enough for a viewer to keep up
const COUNT = 'import time\ni = 0\nwhile True:\n  print(i, flush=True)\n  i += 1\n  time.sleep(0.004)\n';
const SEQUENCE = Buffer.from(Array.from({ length: 200_000 }, (_, i) => `${i}\n`).join(''));

let d;
before(async () => {
  d = await startDaemon();
});
after(async () => {
  for (const f of followers) await f.stop().catch(() => {});
  await d?.stop();
});
const followers = new Set();
let cuts = 0;

/** A reader of one process's log that resumes where it was cut. */
class Follower {
  constructor(url) {
    this.url = url;
    this.bytes = 0;
    this.cuts = 0;
    followers.add(this);
    this.done = this.#follow();
    this.done.catch(() => {}); // rethrown by progress and stop
  }

  async #follow() {
    while (!this.stopped) {
      try {
        this.stream = await d.sse(this.url, this.last === undefined ? {} : { lastEventId: this.last });
        for await (const ev of this.stream) this.#take(ev);
      } catch (e) {
        if (!isBroken(e) && !(e.status >= 500)) throw e;
      }
      this.cuts++;
      cuts++;
      await instant(10); // as a client would, instead of spinning while no server listens
    }
  }

  #take(ev) {
    assert.ok(['stdout', 'stderr'].includes(ev.event), `a running process told ${ev.event}: ${JSON.stringify(ev.data)}`);
    const got = output([ev]);
    const want = SEQUENCE.subarray(this.bytes, this.bytes + got.length);
    assert.ok(got.equals(want), `at byte ${this.bytes}, after ${this.cuts} cuts: ${JSON.stringify(got.toString())} instead of ${JSON.stringify(want.toString())}`);
    this.bytes += got.length;
    this.last = ev.id;
  }

  stop() {
    this.stopped = true;
    this.stream?.close();
    followers.delete(this);
    return this.done;
  }
}

/** What clients were told, and so what must be true. */
class Told {
  constructor() {
    this.alive = new Map(); // id -> what must stay the same
    this.maybe = new Set(); // a delete of it was not answered: either way is right
    this.deleted = new Set();
  }
}

const told = new Told();
let number = 0;

async function create() {
  const s = await d.post(S, { metadata: { n: String(++number) }, timeout_ms: 3_600_000 });
  assert.ok(!told.alive.has(s.id) && !told.deleted.has(s.id), `id ${s.id} was given twice`);
  told.alive.set(s.id, { boot_id: s.boot_id });
  const p = await d.process(s.id, ['python3', '-c', COUNT], { id: 'count' });
  Object.assign(told.alive.get(s.id), { pid: p.pid, init: initsOf(d.dir).get(s.id) });
}

async function remove(id) {
  const was = told.alive.get(id);
  told.alive.delete(id);
  told.maybe.add(id);
  await was.follower?.stop();
  await d.del(`${S}/${id}`);
  told.maybe.delete(id);
  told.deleted.add(id);
}

async function exec(id) {
  const r = await d.exec(id, ['echo', 'it is me']);
  assert.deepEqual([r.stdout, r.exit_code], ['it is me\n', 0]);
}

async function stream(id) {
  const s = await d.sse(`${S}/${id}/exec`, { method: 'POST', body: { command: 'for i in 1 2 3; do echo $i; done' } });
  assert.equal(output(await s.until('exit')).toString(), '1\n2\n3\n');
}

async function extend(id) {
  const was = told.alive.get(id);
  const alone = !was.extending;
  was.extending = (was.extending ?? 0) + 1; // a call without an answer stays counted
  const turn = (was.turn = (was.turn ?? 0) + 1);
  was.ends_at = undefined;
  const s = await d.post(`${S}/${id}/timeout`, { timeout_ms: 7_200_000 });
  was.extending--;
  if (alone && was.turn === turn) was.ends_at = s.ends_at; // of two at once either may be the last
}

async function expire() {
  const s = await d.post(S, { metadata: { n: 'short' }, timeout_ms: 1 });
  told.maybe.add(s.id);
}

/** One of many clients: what breaks because of a kill is no news, anything else is. */
async function act(dice) {
  const ids = [...told.alive.keys()].filter((id) => told.alive.get(id).pid);
  const id = ids.length > 0 ? dice.pick(ids) : undefined;
  const what = id === undefined || ids.length < KEPT / 2 ? create
    : dice.pick([create, create, () => exec(id), () => stream(id), () => extend(id), expire, () => d.get('/v1/templates'),
      ...(ids.length > KEPT ? [() => remove(id), () => remove(id), () => remove(id)] : [() => remove(id)])]);
  try {
    await what();
  } catch (e) {
    // 404 and 410: another client has deleted it meanwhile; 409: it has ended
    if (!isBroken(e) && !(e.status >= 500 && e.code === 'unavailable') && !([404, 409, 410].includes(e.status) && !told.alive.has(id))) throw e;
  }
}

/** Clients that go on until the kill has broken what they were doing. */
async function clients(dice, until) {
  const all = Array.from({ length: 4 }, async () => {
    do await act(dice);
    while (!until.over);
  });
  await Promise.all(all);
}

async function check() {
  await poll('what has timed out is gone', async () => (await listAll(d)).every((s) => s.metadata.n !== 'short'));
  const all = new Map((await listAll(d)).map((s) => [s.id, s]));
  const inits = initsOf(d.dir);
  for (const id of told.deleted) assert.ok(!all.has(id), `${id} was deleted and is back`);
  for (const [id, was] of told.alive) {
    const s = all.get(id);
    assert.ok(s, `${id} was acknowledged and is lost`);
    assert.equal(s.state, 'running', `${id} is ${s.state}: ${s.reason}`);
    assert.equal(s.boot_id, was.boot_id);
    if (was.ends_at) assert.equal(s.ends_at, was.ends_at);
    was.ends_at = s.ends_at;
    was.extending = 0;
    if (was.init) assert.equal(inits.get(id), was.init, 'the init is the same process');
    const p = await d.call('GET', `${S}/${id}/processes/count`);
    if (p.status === 404 && !was.pid) continue; // its start was not acknowledged
    assert.equal(p.status, 200, p.text);
    assert.equal(p.json.state, 'running');
    if (was.pid) assert.equal(p.json.pid, was.pid);
    was.pid = p.json.pid;
    was.init = inits.get(id);
  }
  // no client was told of these: they are whole, and are deleted now
  for (const [id, s] of all) {
    if (told.alive.has(id)) continue;
    assert.equal(s.state, 'running');
    await exec(id);
    await d.del(`${S}/${id}`);
    told.deleted.add(id);
  }
  told.maybe.clear();
}

function follow() {
  for (const [id, was] of told.alive) {
    if (was.pid) was.follower ??= new Follower(`${S}/${id}/processes/count/logs?follow=true`);
  }
}

async function progress() {
  await Promise.all([...told.alive.values()].filter((was) => was.follower).map(async ({ follower }) => {
    const at = follower.bytes;
    await Promise.race([follower.done, poll('a follower is told more', () => follower.bytes > at)]);
  }));
}

async function round(dice, n) {
  const until = { over: false };
  const who = dice.pick(['front', 'front', 'keeper', 'both']);
  const busy = clients(dice, until);
  busy.catch(() => {});
  await instant(dice.roll() * 120);
  until.over = true;
  await d.kill9(who);
  if (who === 'front') await d.back();
  else await d.restart();
  await within(30_000, `clients end after round ${n} (${who})`, busy);
  await check();
  await settled(d);
  follow();
  await progress();
}

test('a daemon that is killed and started again at once finds lock, port, database and disk free', async () => {
  const bare = await startDaemon({ args: ['--pool', '0'] }); // nothing that would hold the disk
  for (let n = 0; n < 15; n++) {
    bare.keeper.kill('SIGKILL');
    await bare.exited;
    await bare.restart();
  }
  const s = await bare.sandbox();
  assert.equal((await bare.exec(s.id, ['echo', 'fine'])).stdout, 'fine\n');
  await bare.stop();
});

test(`kill -9 at ${ROUNDS} random instants loses no sandbox and leaks nothing`, async (t) => {
  const dice = new Dice();
  t.diagnostic(`COVE_CHAOS_SEED=${dice.seed}`);
  await dice.guard(async () => {
    for (let n = 0; n < 4; n++) await create();
    const { found } = await settled(d);
    for (let n = 0; n < ROUNDS; n++) {
      await round(dice, n).catch((e) => {
        e.message = `round ${n}: ${e.message}\n--- log\n${d.log.slice(-3000)}`;
        throw e;
      });
    }
    t.diagnostic(`${number} sandboxes asked for, ${told.deleted.size} deleted, ${cuts} times a log was followed again`);
    assert.equal((await settled(d)).found.mounts, found.mounts, 'mounts of the keeper');
    for (const id of [...told.alive.keys()]) await remove(id);
    assert.deepEqual((await settled(d)).all, []);
  });
});

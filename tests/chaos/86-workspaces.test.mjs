// Front and keeper are killed with -9 while a workspace is made, put away, archived and brought back:
// never two sandboxes, never a lost file, never a caller that waits for nothing.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Dice, instant, isBroken, settled } from '../lib/chaos.mjs';
import { poll, startDaemon } from '../lib/cove.mjs';

const W = '/v1/workspaces';
const S = '/v1/sandboxes';

let d;
before(async () => { d = await startDaemon({ args: ['--pool', '0'] }); });
after(() => d?.stop());

const put = async (name, body) => assert.ok((await d.call('PUT', `${W}/${name}`, body)).status < 300);
const show = (name) => d.get(`${W}/${name}`);
const boxes = async () => (await d.get(`${S}?limit=1000`)).sandboxes;
const run = async (name, argv) => {
  const a = await d.call('POST', `${W}/${name}/exec`, { argv });
  assert.equal(a.status, 200, a.text);
  return a.json;
};
const broken = (p) => p.catch((e) => { if (!isBroken(e)) throw e; });

/** Kills at a random instant of `ms` while `what` runs, and starts again. */
async function killedWhile(dice, ms, what, victim) {
  const running = broken(Promise.resolve().then(what));
  await instant(dice.below(ms));
  await d.kill9(victim);
  await running;
  await (victim === 'front' ? d.back() : d.restart());
}

test('no kill while it is warming makes two sandboxes or leaves one without a workspace', () => {
  const dice = new Dice();
  return dice.guard(async () => {
    for (let i = 0; i < 12; i++) {
      const name = `warm${i}`;
      await put(`${name}`, {});
      await killedWhile(dice, 60, () => Promise.all(Array.from({ length: 10 }, () => broken(d.call('POST', `${W}/${name}/exec`, { argv: ['true'] })))), dice.pick(['front', 'both']));
      assert.equal((await run(name, ['echo', 'on'])).stdout, 'on\n');
      const w = await show(name);
      assert.deepEqual((await boxes()).map((s) => s.id), [w.sandbox], `round ${i}`);
      await d.del(`${W}/${name}`);
    }
    assert.deepEqual((await settled(d, { pool: 0 })).all, []);
  });
});

test('no kill while it is put away, archived or brought back loses a file or makes a second sandbox', () => {
  const dice = new Dice();
  return dice.guard(async () => {
    await put('cycle', { grace_ms: 100, archive_ms: 1, background: false });
    await run('cycle', ['sh', '-c', 'head -c 3000000 /dev/urandom >~/big; sha256sum ~/big >~/sum; for i in $(seq 300); do echo $i >~/f$i; done; sync']);
    for (let i = 0; i < 16; i++) {
      await run('cycle', ['sh', '-c', `echo ${i} >>~/rounds; sync`]);
      await killedWhile(dice, 1500, () => {}, dice.pick(['front', 'both']));
      assert.ok((await boxes()).length <= 1, `round ${i}`);
      const a = await run('cycle', ['sh', '-c', 'cd; sha256sum -c sum; ls f* | wc -l; tail -1 rounds']);
      assert.equal(a.stdout, `${a.stdout.split(':')[0]}: OK\n300\n${i}\n`, `round ${i}`);
      assert.deepEqual((await boxes()).map((s) => s.id), [(await show('cycle')).sandbox], `round ${i}`);
    }
    await d.del(`${W}/cycle`);
    assert.deepEqual((await settled(d, { pool: 0 })).all, []);
  });
});

test('a holder with a row still holds after a kill, and ends at its time', async () => {
  await put('held', { grace_ms: 100, archive_ms: 0, background: false });
  const h = (await d.call('POST', `${W}/held/holders`, { holder: 'turn', ttl_ms: 3000 })).json;
  await d.kill9('both');
  await d.restart();
  const w = await show('held');
  assert.deepEqual([w.turns, w.epoch, w.state], [1, h.epoch, 'warm']);
  await poll('its time is over', async () => (await show('held')).turns === 0);
  await d.del(`${W}/held`);
});

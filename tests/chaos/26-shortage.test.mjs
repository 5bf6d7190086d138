// A machine that has run out of something: what cannot be looked at is not taken for
// gone, and what was asked for is done once there is enough again.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { initsOf, settled } from '../lib/chaos.mjs';
import { BASE, BIN, poll, run, startDaemon } from '../lib/cove.mjs';
import { isAlive } from '../lib/host.mjs';
import { tar } from '../lib/image.mjs';

const S = '/v1/sandboxes';
let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

/** That process can open nothing while fn runs. */
async function withoutFds(pid, fn) {
  const limit = (n) => run('prlimit', ['--pid', `${pid}`, `--nofile=${n}:`]);
  const usual = /^Max open files +(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/limits`, 'utf8'))[1];
  assert.equal((await limit(3)).status, 0); // those of stdio, which it has
  try {
    return await fn();
  } finally {
    await limit(usual);
  }
}

test('what is deleted ends, also when the keeper cannot open a file', async () => {
  const s = await d.sandbox();
  const init = initsOf(d.dir).get(s.id);
  await settled(d);
  await withoutFds(d.keeperPid(), async () => {
    await d.del(`${S}/${s.id}`);
    await poll('nothing of it runs', () => !isAlive(init));
  });
  await settled(d);
});

test('a daemon that may not open enough files to see what there is does not start, and ends nothing', async () => {
  const [running, paused] = [await d.sandbox(), await d.sandbox()];
  await d.process(running.id, ['sleep', '1000'], { id: 'job' });
  await d.post(`${S}/${paused.id}/pause`);
  await d.post(`${S}/${running.id}/snapshots`, { name: 'kept' });
  await d.api('PUT', '/v1/templates/kept', tar([{ name: 'etc/' }]));
  const see = async () => [await d.get(S), await d.get('/v1/snapshots'), await d.get('/v1/templates')];
  const seen = await see();
  await d.end(); // its pool goes down with it: that needs files
  const args = ['serve', '--listen', '127.0.0.1:0', '--state', d.dir, '--base', BASE, '--pool', '0', '--network', 'none'];
  let last = '';
  for (let n = 12; !/front/.test(last); n++) {
    const r = await run('prlimit', [`--nofile=${n}:${n}`, BIN, ...args], { deadline: 15_000 });
    last = r.stderr.trim().split('\n').at(-1);
    assert.notEqual(r.status, 0, `${n} files`);
    assert.match(last, /^cove serve: /, `${n} files`);
  }
  await d.restart();
  assert.deepEqual(await see(), seen);
  assert.equal((await d.get(`${S}/${running.id}/processes/job`)).state, 'running');
});

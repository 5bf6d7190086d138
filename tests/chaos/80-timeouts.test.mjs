// Timeouts that pass while no daemon runs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { settled } from '../lib/chaos.mjs';
import { poll, startDaemon } from '../lib/cove.mjs';

const S = '/v1/sandboxes';
let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const gone = async (id) => (await d.call('GET', `${S}/${id}`)).status === 404;
const past = (s) => poll('its time is over', () => Date.now() > Date.parse(s.ends_at));

test('a sandbox whose lifetime ended while the daemon was down ends at its next start', async () => {
  const [del, halt, stays] = [await d.sandbox({ timeout_ms: 400 }), await d.sandbox({ timeout_ms: 400, on_timeout: 'stop' }), await d.sandbox({ timeout_ms: 600_000 })];
  await d.exec(halt.id, 'echo precious > /workspace/file');
  await d.kill9('both');
  await past(halt);
  await d.restart();
  await poll('one is deleted', () => gone(del.id));
  const now = await poll('one is stopped', async () => {
    const s = await d.get(`${S}/${halt.id}`);
    return s.state === 'stopped' && s;
  });
  assert.equal(now.reason, 'its timeout passed');
  assert.equal(now.ends_at, null);
  assert.deepEqual(await d.get(`${S}/${stays.id}`), stays);
  const again = await d.post(`${S}/${halt.id}/resume`);
  assert.equal(again.state, 'running');
  assert.equal((await d.exec(halt.id, ['cat', '/workspace/file'])).stdout, 'precious\n');
  for (const s of [halt, stays]) await d.del(`${S}/${s.id}`);
  assert.deepEqual((await settled(d)).all, []);
});

for (const who of ['front', 'keeper', 'both']) {
  test(`a kill of the ${who} at the moment of a timeout does not change the action`, async () => {
    const [del, halt] = [await d.sandbox({ timeout_ms: 100 }), await d.sandbox({ timeout_ms: 100, on_timeout: 'stop' })];
    await past(del);
    await d.kill9(who);
    if (who === 'front') await d.back();
    else await d.restart();
    await poll('one is deleted', () => gone(del.id));
    await poll('one is stopped', async () => (await d.get(`${S}/${halt.id}`)).state === 'stopped');
    await settled(d);
    await d.del(`${S}/${halt.id}`);
    assert.deepEqual((await settled(d)).all, []);
  });
}

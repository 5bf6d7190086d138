// What is kept for clients that come later (events, logs) is kept per key: a key that makes many of
// them loses its own oldest, and not those of another. Signed URLs without an id cost the one who sends them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';

const S = '/v1/sandboxes';
const SMALL = { limits: { cpu_milli: 1000, memory: 128 * 2 ** 20 } };
let d, quiet, loud;
before(async () => {
  d = await startDaemon({ args: ['--pool', '0'] });
  quiet = { key: (await d.post('/v1/keys', {})).key };
  loud = { key: (await d.post('/v1/keys', { quotas: { events: 20_000, logs: 100_000, requests: 0 } })).key };
});
after(() => d?.stop());

const used = async (as, name) => (await d.get('/v1/keys/self', as)).quotas.find((q) => q.name === name).used;

/** Events after `id` until `enough(all)`. */
async function eventsAfter(as, id, enough) {
  const stream = await d.sse('/v1/events', { ...as, lastEventId: id });
  const all = [];
  await stream.until((ev) => all.push(ev) && enough(all));
  stream.close();
  return all;
}

test('events of one key do not drive out those of another', async () => {
  const a = await d.api('POST', S, SMALL, quiet);
  const b = await d.api('POST', S, SMALL, loud);
  // each process makes two
  for (let i = 0; i < 15; i++)
    await Promise.all(Array.from({ length: 20 }, () => d.api('POST', `${S}/${b.id}/processes`, { argv: ['true'] }, loud)));
  const mine = await eventsAfter(quiet, 0, (all) => all.some((e) => e.event === 'sandbox.created'));
  assert.ok(mine.some((e) => e.data.sandbox === a.id), 'the first event of the quiet key is still kept');
  assert.ok((await used(loud, 'events')) <= 20_000);
  const theirs = await eventsAfter(loud, 0, (all) => all.length >= 2);
  assert.equal(theirs[0].event, 'truncated', 'the loud key is told that events are missing');
  await d.del(`${S}/${a.id}`, quiet);
  await d.del(`${S}/${b.id}`, loud);
});

test('the log of one key does not grow beyond its quota, nor drive out that of another', async () => {
  const a = await d.api('POST', S, { ...SMALL, log_output: true }, quiet);
  const b = await d.api('POST', S, { ...SMALL, log_output: true }, loud);
  const logs = async (id, as) => (await d.get(`${S}/${id}/logs?limit=1000`, as)).entries;
  await d.api('POST', `${S}/${a.id}/exec`, { command: 'echo kept' }, quiet);
  await poll('the quiet line is logged', async () => (await logs(a.id, quiet)).some((l) => l.message === 'kept'));
  await d.api('POST', `${S}/${b.id}/exec`, { command: 'for i in $(seq 3000); do echo "$i $(printf %0100d 0)"; done; echo last', timeout_ms: 60_000 }, loud);
  await poll('the last loud line is logged', async () => (await logs(b.id, loud)).some((l) => l.message === 'last'), { deadline: 30_000 });
  const bytes = await used(loud, 'logs');
  assert.ok(bytes > 20_000 && bytes <= 110_000, `${bytes} bytes are kept`);
  assert.ok((await logs(a.id, quiet)).some((l) => l.message === 'kept'), 'the quiet line is still there');
  await d.kill9('front');
  await d.back();
  const again = await used(loud, 'logs');
  assert.ok(Math.abs(again - bytes) < 2000, `the count survives a restart: ${bytes} -> ${again}`);
  await d.del(`${S}/${b.id}`, loud);
  assert.equal(await used(loud, 'logs'), 0);
  await d.del(`${S}/${a.id}`, quiet);
});

test('signed URLs without an id do not cost more than a part of the time', async () => {
  const boxes = await Promise.all(Array.from({ length: 12 }, () => d.api('POST', S, { limits: { memory: 2 ** 24 } }, quiet)));
  let limited = 0;
  const ask = () => d.call('GET', `/files?path=/x&signature=v1_${'a'.repeat(43)}`, undefined, { key: null });
  const end = Date.now() + 20_000;
  while (limited === 0 && Date.now() < end) {
    const all = await Promise.all(Array.from({ length: 300 }, ask));
    const refused = all.filter((a) => a.status === 429);
    limited = refused.length;
    for (const a of refused) {
      assert.equal(a.headers['retry-after'], '1');
      assert.equal(a.json.code, 429);
    }
  }
  assert.ok(limited > 0, 'a stranger that goes on is refused');
  assert.equal((await d.call('GET', '/v1/keys/self', undefined, quiet)).status, 200);
  await Promise.all(boxes.map((b) => d.del(`${S}/${b.id}`, quiet)));
});

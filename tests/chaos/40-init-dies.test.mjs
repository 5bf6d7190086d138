// The death of an init, and of everything in a sandbox, stops that sandbox.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { initsOf, settled } from '../lib/chaos.mjs';
import { poll, startDaemon, within } from '../lib/cove.mjs';

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const S = '/v1/sandboxes';

/** A sandbox with a file in it, and a stream of its news. */
async function watched(opts) {
  const s = await d.sandbox(opts);
  await d.exec(s.id, 'echo precious > /workspace/file');
  return { s, news: await d.sse(`/v1/events?sandbox=${s.id}`) };
}

async function stopped({ s, news }) {
  const seen = await within(10_000, 'sandbox.stopped', news.until('sandbox.stopped'));
  const now = await d.get(`${S}/${s.id}`);
  news.close();
  assert.equal(now.state, 'stopped');
  assert.equal(now.reason, seen.at(-1).data.data.reason);
  await d.fails(409, 'conflict', 'POST', `${S}/${s.id}/exec`, { argv: ['true'] });
  return now;
}

async function resumes(s) {
  const again = await d.post(`${S}/${s.id}/resume`);
  assert.equal(again.state, 'running');
  assert.notEqual(again.boot_id, s.boot_id);
  assert.equal((await d.exec(s.id, ['cat', '/workspace/file'])).stdout, 'precious\n');
}

test('an init killed from the host stops its sandbox, with the reason, and it resumes at once', async () => {
  const w = await watched();
  const exec = d.call('POST', `${S}/${w.s.id}/exec`, { argv: ['sleep', '1000'] });
  await poll('the command runs', async () => (await d.exec(w.s.id, 'pgrep -x sleep')).stdout !== '');
  process.kill(initsOf(d.dir).get(w.s.id), 'SIGKILL');
  assert.equal((await stopped(w)).reason, 'its init ended');
  const broken = await within(10_000, 'the command in flight is answered', exec);
  assert.ok(broken.status >= 400, broken.text);
  assert.ok(broken.json.error.message.length > 0);
  await resumes(w.s);
  await settled(d);
  await d.del(`${S}/${w.s.id}`);
});

test('a call right after the death of init is `gone`, not `unresponsive`', async () => {
  const w = await watched();
  process.kill(d.keeperPid(), 'SIGSTOP');
  try {
    process.kill(initsOf(d.dir).get(w.s.id), 'SIGKILL');
    await d.fails(410, 'gone', 'POST', `${S}/${w.s.id}/exec`, { argv: ['true'] });
    await d.fails(410, 'gone', 'GET', `${S}/${w.s.id}/processes`);
  } finally {
    process.kill(d.keeperPid(), 'SIGCONT');
  }
  await stopped(w);
  await d.del(`${S}/${w.s.id}`);
});

test('an init that died while no daemon ran is found at the next start', async () => {
  const s = await d.sandbox();
  await d.exec(s.id, 'echo precious > /workspace/file');
  const init = initsOf(d.dir).get(s.id);
  await d.kill9('both');
  process.kill(init, 'SIGKILL');
  await d.restart();
  const now = await d.get(`${S}/${s.id}`);
  assert.equal(now.state, 'stopped');
  assert.equal(now.reason, 'its init ended while no daemon ran');
  await resumes(s);
  await d.del(`${S}/${s.id}`);
  await settled(d);
});

test('the next front reports an init that died while no front ran', async () => {
  const s = await d.sandbox();
  await d.exec(s.id, 'echo precious > /workspace/file');
  const init = initsOf(d.dir).get(s.id);
  await d.kill9('front');
  process.kill(init, 'SIGKILL');
  await d.back();
  const now = await poll('it is stopped', async () => {
    const got = await d.get(`${S}/${s.id}`);
    return got.state === 'stopped' && got;
  });
  assert.equal(now.reason, 'its init ended');
  await resumes(s);
  await d.del(`${S}/${s.id}`);
});

test('a pooled init that dies is replaced', async () => {
  const { found } = await settled(d);
  for (const id of found.inits) process.kill(initsOf(d.dir).get(id), 'SIGKILL');
  const now = await poll('the pool is another one', async () => {
    const { found: next } = await settled(d);
    return next.records.every((id) => !found.records.includes(id)) && next;
  });
  assert.equal(now.records.length, found.records.length);
});

test('a sandbox that eats all its memory from everywhere answers or says why it stopped', async () => {
  const w = await watched({ limits: { memory: 64 * 2 ** 20 } });
  const eat = 'for i in $(seq 30); do python3 -c "x = bytearray(40 << 20); import time; time.sleep(1000)" & done; x=$(head -c 200M /dev/zero | tr "\\0" x); echo survived';
  const r = await d.exec(w.s.id, eat, { timeout_ms: 20_000 }).catch((e) => e);
  if (!(r instanceof Error)) assert.ok(!r.stdout.includes('survived'));
  const state = await poll('it is settled', async () => {
    const now = await d.get(`${S}/${w.s.id}`);
    if (now.state === 'stopped') return now;
    const a = await d.call('POST', `${S}/${w.s.id}/exec`, { argv: ['echo', 'alive'], timeout_ms: 5000 });
    return a.json?.stdout === 'alive\n' && now;
  }, { deadline: 20_000 });
  if (state.state === 'stopped') {
    assert.match(state.reason, /ran out of memory/);
    await resumes(w.s);
  }
  w.news.close();
  assert.equal((await d.exec(w.s.id, ['cat', '/workspace/file'])).stdout, 'precious\n');
  await d.del(`${S}/${w.s.id}`);
  await settled(d);
});

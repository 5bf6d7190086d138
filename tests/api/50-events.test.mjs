// The stream of events of sandboxes, without a gap.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll, startDaemon, within } from '../lib/cove.mjs';

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const V = '/v1/events';
const next = (s, want) => within(10_000, `event ${want}`, s.until(want));

test('a stream tells of creation, processes and deletion, in order', async () => {
  const s = await d.sse(V);
  const box = await d.sandbox();
  const p = await d.process(box.id, 'exit 3', { id: 'job' });
  await d.post(`/v1/sandboxes/${box.id}/processes/job/wait`, {});
  await next(s, 'process.exited').then((seen) => {
    assert.deepEqual(seen.map((e) => e.event), ['sandbox.created', 'process.started', 'process.exited']);
    for (const e of seen) {
      assert.equal(e.data.sandbox, box.id);
      assert.equal(e.data.kind, e.event);
      assert.equal(String(e.data.seq), e.id);
      assert.ok(Math.abs(Date.parse(e.data.at) - Date.now()) < 60_000);
    }
    assert.equal(seen[0].data.data.template, 'base');
    assert.equal(seen[1].data.data.process, p.id);
    assert.equal(seen[2].data.data.process, p.id);
  });
  await d.del(`/v1/sandboxes/${box.id}`);
  await next(s, 'sandbox.deleted');
  s.close();
});

test('a cut stream of events resumes after its last id', async () => {
  const s = await d.sse(V);
  const a = await d.sandbox();
  const [first] = await next(s, 'sandbox.created');
  s.close();
  await d.del(`/v1/sandboxes/${a.id}`);
  const b = await d.sandbox();
  const again = await d.sse(V, { lastEventId: first.id });
  const seen = await next(again, 'sandbox.created');
  assert.deepEqual(seen.map((e) => [e.event, e.data.sandbox]), [['sandbox.deleted', a.id], ['sandbox.created', b.id]]);
  const numbers = [first, ...seen].map((e) => Number(e.id));
  assert.deepEqual(numbers, [...numbers].sort((x, y) => x - y));
  again.close();
  await d.del(`/v1/sandboxes/${b.id}`);
});

test('without an id only new events are sent', async () => {
  const old = await d.sandbox();
  const s = await d.sse(V);
  await d.del(`/v1/sandboxes/${old.id}`);
  const seen = await next(s, 'sandbox.deleted');
  assert.deepEqual(seen.map((e) => e.event), ['sandbox.deleted']);
  s.close();
});

test('one sandbox can be watched alone', async () => {
  const a = await d.sandbox();
  const b = await d.sandbox();
  const s = await d.sse(`${V}?sandbox=${b.id}`);
  await d.del(`/v1/sandboxes/${a.id}`);
  await d.del(`/v1/sandboxes/${b.id}`);
  const seen = await next(s, 'sandbox.deleted');
  assert.deepEqual(seen.map((e) => e.data.sandbox), [b.id]);
  s.close();
});

test('the end of a lifetime is an event with its action', async () => {
  const s = await d.sse(V);
  const box = await d.sandbox({ timeout_ms: 100 });
  const seen = await next(s, (e) => e.event === 'sandbox.deleted' && e.data.sandbox === box.id);
  assert.ok(seen.some((e) => e.event === 'sandbox.timeout' && e.data.sandbox === box.id));
  s.close();
});

test('a sandbox whose init dies is stopped, with the reason', async () => {
  const s = await d.sse(V);
  const box = await d.sandbox();
  const { processes } = await import('../lib/host.mjs');
  const init = await poll('the init is found', () => processes().find((p) => p.title.startsWith('cove: init') && p.cgroup.includes(box.id)));
  process.kill(init.pid, 'SIGKILL');
  await next(s, 'sandbox.stopped');
  const now = await d.get(`/v1/sandboxes/${box.id}`);
  assert.equal(now.state, 'stopped');
  assert.ok(now.reason.length > 0);
  s.close();
  await d.del(`/v1/sandboxes/${box.id}`);
});

test('an id from the future or nonsense is refused or answered, never fatal', async () => {
  for (const lastEventId of ['x', '-1', '99999999999999999999', '0']) {
    const s = await d.sse(V, { lastEventId }).catch((e) => e);
    if (s instanceof Error) assert.equal(s.status, 400, s.message);
    else s.close();
  }
  assert.equal((await d.call('GET', '/health')).status, 200);
});

test('events keep their numbers over a restart of the front', async () => {
  const s = await d.sse(V);
  const a = await d.sandbox();
  const [first] = await next(s, 'sandbox.created');
  s.close();
  await d.kill9('front');
  await d.back();
  const again = await d.sse(V);
  await d.del(`/v1/sandboxes/${a.id}`);
  const seen = await next(again, 'sandbox.deleted');
  assert.ok(Number(seen.at(-1).id) > Number(first.id));
  again.close();
});

test('a client that resumes after a restart is told once that events may be missing', async () => {
  const s = await d.sse(V);
  const a = await d.sandbox();
  const [first] = await next(s, 'sandbox.created');
  s.close();
  await d.kill9('front');
  await d.back();
  const again = await d.sse(V, { lastEventId: first.id });
  const [gap] = await next(again, 'truncated');
  again.close();
  const behind = await d.sse(V, { lastEventId: gap.id });
  await d.del(`/v1/sandboxes/${a.id}`);
  assert.deepEqual((await next(behind, 'sandbox.deleted')).map((e) => e.event), ['sandbox.deleted']);
  behind.close();
});

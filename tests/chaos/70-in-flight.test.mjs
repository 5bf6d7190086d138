// Running commands survive a kill of front or keeper; unfinished operations are undone.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { isBroken, settled } from '../lib/chaos.mjs';
import { poll, startDaemon } from '../lib/cove.mjs';

const S = '/v1/sandboxes';
let d;
before(async () => {
  // a template of its own, to be refreshed
  d = await startDaemon({ args: ['--base', ''] });
});
after(() => d?.stop());

const WAITS = 'mkfifo /workspace/go && echo began && read -r word < /workspace/go && echo "$word" > /workspace/done';
const goOn = (id) => d.exec(id, 'echo finished > /workspace/go; until [ -s /workspace/done ]; do sleep 0.01; done; cat /workspace/done', { timeout_ms: 10_000 });

for (const who of ['front', 'keeper', 'both']) {
  test(`a command continues when the ${who} is killed during its stream`, async () => {
    const s = await d.sandbox();
    const p = await d.process(s.id, ['sleep', '1000'], { id: 'job' });
    const stream = await d.sse(`${S}/${s.id}/exec`, { method: 'POST', body: { command: WAITS } });
    await stream.until((ev) => ev.event === 'stdout');
    await d.kill9(who);
    if (who === 'front') await d.back();
    else await d.restart();
    await assert.rejects(stream.until('exit'), isBroken);
    assert.equal((await goOn(s.id)).stdout, 'finished\n');
    const now = await d.get(`${S}/${s.id}/processes/job`);
    assert.deepEqual([now.pid, now.state], [p.pid, 'running']);
    await d.del(`${S}/${s.id}`);
  });
}

test('a process whose start was streamed is followed to its end after a kill', async () => {
  const s = await d.sandbox();
  await d.process(s.id, `${WAITS}; echo over; exit 7`, { id: 'job' });
  const first = await d.sse(`${S}/${s.id}/processes/job/logs?follow=true`);
  const [began] = await first.until((ev) => ev.event === 'stdout');
  await d.kill9('both');
  await d.restart();
  const rest = await d.sse(`${S}/${s.id}/processes/job/logs?follow=true`, { lastEventId: began.id });
  await goOn(s.id);
  const seen = await rest.until('exit');
  assert.deepEqual(seen.map((ev) => ev.data.data ?? ev.data.code), ['over\n', 7]);
  await d.del(`${S}/${s.id}`);
});

const versions = () => fs.readdirSync(path.join(d.dir, 'templates')).filter((n) => n !== 'lock').sort();

test('a keeper killed while it refreshes a template leaves the old one and no half of a new one', async () => {
  const old = versions();
  assert.equal(old.length, 1);
  const s = await d.sandbox();
  const refresh = await d.sse('/v1/templates/base/refresh', { method: 'POST', body: {} });
  await refresh.until('progress');
  assert.ok(versions().some((n) => n.startsWith('new-')));
  await d.kill9('keeper');
  await d.restart();
  await poll('the half is gone', () => versions().length === 1);
  assert.deepEqual(versions(), old);
  const { templates } = await d.get('/v1/templates');
  assert.deepEqual(templates.map((t) => [t.name, t.state]), [['base', 'ready']]);
  assert.equal((await d.exec(s.id, ['echo', 'still here'])).stdout, 'still here\n');
  const fresh = await d.sandbox();
  assert.equal((await d.exec(fresh.id, ['echo', 'new'])).stdout, 'new\n');
  for (const id of [s.id, fresh.id]) await d.del(`${S}/${id}`);
  await settled(d);
});

test('a front killed while a template is refreshed does not stop the refresh', async () => {
  const [old] = versions();
  const refresh = await d.sse('/v1/templates/base/refresh', { method: 'POST', body: {} });
  await refresh.until('progress');
  await d.kill9('front');
  await d.back();
  await poll('there is a new version', () => versions().some((n) => n.startsWith('base-') && n > old) && !versions().some((n) => n.startsWith('new-')), { deadline: 60_000 });
  const s = await d.sandbox();
  assert.equal((await d.exec(s.id, ['echo', 'new'])).stdout, 'new\n');
  await d.del(`${S}/${s.id}`);
  // those of the pool may still have stood on the old one
  await d.end();
  await d.restart();
  await poll('the old version is gone', () => {
    assert.equal(versions().length, 1, `${versions()}\n${d.log.slice(-1000)}`);
    return !versions().includes(old);
  }, { deadline: 30_000 });
});

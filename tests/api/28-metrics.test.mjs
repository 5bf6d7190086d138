// Usage samples and logs of sandboxes.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';

let d;
before(async () => {
  d = await startDaemon({ args: ['--metrics-every', '1s'] });
});
after(() => d?.stop());

const S = '/v1/sandboxes';
const metrics = async (id, q = '') => (await d.get(`${S}/${id}/metrics?${q}`)).points;
const logs = (id, q = '') => d.get(`${S}/${id}/logs?${q}`);
const messages = async (id, q) => (await logs(id, q)).entries.map((e) => e.message);

test('points tell of processor, memory, disk and processes; not while it is paused', { timeout: 60_000 }, async () => {
  const before = Date.now();
  const [busy, idle] = [await d.sandbox(), await d.sandbox()];
  await d.process(busy.id, 'while :; do :; done', { id: 'spin' });
  await d.exec(busy.id, 'head -c 20000000 /dev/urandom > /workspace/f; sync');
  const [last] = await poll('there are two points', async () => {
    const p = await metrics(busy.id);
    return p.length >= 2 && p.slice(-1);
  }, { deadline: 30_000, every: 200 });
  assert.ok(last.cpu_milli > 100, `${last.cpu_milli}`);
  assert.ok(last.disk >= 20_000_000, `${last.disk}`);
  assert.ok(last.pids >= 2);
  assert.ok(last.memory > 0 && last.cache > 0 && last.cache <= last.memory);
  assert.ok(Date.parse(last.at) > before);
  const text = (await d.call('GET', '/metrics')).text;
  for (const what of ['cpu_milli', 'memory_bytes', 'cache_bytes', 'disk_bytes', 'processes']) assert.match(text, new RegExp(`^cove_sandbox_${what}\\{sandbox="${busy.id}"\\} \\d+$`, 'm'));
  const quiet = (await metrics(idle.id)).pop();
  assert.ok(quiet.cpu_milli < 100 && quiet.disk < 10_000_000, JSON.stringify(quiet));
  const all = await metrics(busy.id);
  assert.deepEqual(all.map((p) => p.at), all.map((p) => p.at).sort());
  assert.deepEqual(await metrics(busy.id, `until=${before}`), []);
  assert.deepEqual((await metrics(busy.id, `since=${Date.parse(last.at)}&until=${Date.parse(last.at)}`)).map((p) => p.at), [last.at]);
  assert.equal((await metrics(busy.id, 'limit=1')).length, 1);
  await d.post(`${S}/${busy.id}/pause`);
  const frozen = await metrics(busy.id);
  const then = (await metrics(idle.id)).length;
  await poll('the other one has a new point', async () => (await metrics(idle.id)).length > then, { deadline: 20_000, every: 200 });
  assert.ok((await metrics(busy.id)).length <= frozen.length + 1, 'none is taken of what stands still');
  await d.kill9('front');
  await d.back();
  assert.ok((await metrics(busy.id)).length >= frozen.length, 'they survive');
  for (const s of [busy, idle]) await d.del(`${S}/${s.id}`);
});

test('writing samples and logs delays no request', { timeout: 60_000 }, async () => {
  const s = await d.sandbox();
  const count = async () => (await metrics(s.id)).length;
  await poll('a point', count, { deadline: 20_000, every: 100 });
  const tracer = spawn('strace', ['-f', '-qq', '-e', 'trace=fsync,fdatasync', '-p', String(d.frontPid())], { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  tracer.stderr.on('data', (x) => (said += x));
  await poll('it is traced', () => /^TracerPid:\s*[1-9]/m.test(readFileSync(`/proc/${d.frontPid()}/status`, 'utf8')));
  const had = await count();
  await d.exec(s.id, 'true'); // a line of its log
  await poll('three points more', async () => (await count()) >= had + 3, { deadline: 20_000, every: 100 });
  tracer.kill('SIGINT');
  await once(tracer, 'close');
  assert.equal(said, '');
  await d.del(`${S}/${s.id}`);
});

test('the log of a sandbox has its states and processes, in both directions, by level and by text', async () => {
  const s = await d.sandbox();
  await d.process(s.id, ['true'], { id: 'good' });
  await d.process(s.id, ['false'], { id: 'bad' });
  await d.post(`${S}/${s.id}/pause`);
  await d.post(`${S}/${s.id}/resume`);
  const all = await poll('all of it is there', async () => {
    const m = await messages(s.id, 'direction=forward');
    return m.filter((x) => /exited/.test(x)).length === 2 && m;
  });
  assert.match(all[0], /^sandbox created/);
  assert.ok(all.some((m) => /^user started good \(pid \d+\): /.test(m)));
  assert.ok(all.some((m) => /^bad \(pid \d+\) exited with status 1: /.test(m)));
  assert.ok(all.some((m) => m === 'sandbox paused') && all.some((m) => m === 'sandbox resumed'));
  assert.deepEqual(await messages(s.id), [...all].reverse());
  const warned = (await logs(s.id, 'level=warn')).entries;
  assert.deepEqual(warned.map((e) => [e.level, e.fields.process, e.fields.event, e.fields.exit_code]), [['warn', 'bad', 'process.exited', 1]]);
  assert.deepEqual(await messages(s.id, 'search=GOOD&direction=forward'), all.filter((m) => /good/.test(m)));
  const paged = [];
  for (let cursor; ;) {
    const page = await logs(s.id, `limit=2${cursor ? `&cursor=${cursor}` : ''}`);
    paged.push(...page.entries.map((e) => e.message));
    cursor = page.next_cursor;
    if (!cursor) break;
  }
  assert.deepEqual(paged, [...all].reverse());
  const { next_cursor: end } = await logs(s.id, 'direction=forward');
  assert.deepEqual((await logs(s.id, `direction=forward&cursor=${end}`)).entries, []);
  await d.post(`${S}/${s.id}/pause`, { memory: false });
  assert.match((await messages(s.id, `direction=forward&cursor=${end}`))[0], /^sandbox stopped: reason=it was paused/);
  await d.kill9('front');
  await d.back();
  assert.deepEqual((await messages(s.id, 'direction=forward')).slice(0, all.length), all, 'it survives');
  await d.del(`${S}/${s.id}`);
  for (const what of ['logs', 'metrics']) await d.fails(404, 'not_found', 'GET', `${S}/${s.id}/${what}`);
});

test('invalid queries of logs and metrics are refused', async () => {
  const s = await d.sandbox();
  for (const q of ['direction=sideways', 'level=loud', 'cursor=x', 'limit=0', 'limit=1001', 'search=', 'what=1']) await d.fails(400, 'invalid', 'GET', `${S}/${s.id}/logs?${q}`);
  for (const q of ['since=x', 'limit=0', 'what=1']) await d.fails(400, 'invalid', 'GET', `${S}/${s.id}/metrics?${q}`);
  await d.del(`${S}/${s.id}`);
});

// The pruning is looked at when entries are written, once a minute: the first one is at the start.
test('samples and log entries over their maximum are deleted, the oldest first', { timeout: 60_000 }, async () => {
  const e = await startDaemon({ args: ['--metrics-every', '1s'] });
  try {
    const s = await e.sandbox();
    for (let i = 0; i < 30; i++) await e.process(s.id, ['true'], { id: `p${i}` });
    const entries = async () => (await e.get(`${S}/${s.id}/logs?limit=1000&direction=forward`)).entries;
    const points = async () => (await e.get(`${S}/${s.id}/metrics`)).points;
    await poll('all is told', async () => (await entries()).length >= 61);
    await poll('there are some points', async () => (await points()).length >= 4, { deadline: 20_000, every: 200 });
    const last = (await entries()).pop();
    await e.kill9('both');
    e.args = ['--metrics-every', '1s', '--metrics-max', '2', '--logs-max', '10'];
    await e.restart();
    await e.process(s.id, ['true'], { id: 'one-more' });
    await poll('few entries are left', async () => (await entries()).length <= 12, { deadline: 20_000, every: 200 });
    assert.ok((await entries()).some((x) => x.message === last.message), 'the newest are there');
    await poll('few points are left', async () => (await points()).length <= 4, { deadline: 20_000, every: 200 });
  } finally {
    await e.stop();
  }
});

test('there is a histogram of each route that was called, and of the turns of the loop', async () => {
  const s = await d.sandbox();
  for (let i = 0; i < 3; i++) await d.exec(s.id, 'sleep 0.12');
  const { text } = await d.call('GET', '/metrics');
  /** Its buckets by their upper bound in seconds, in order. */
  const of = (name, labels) => {
    const buckets = [...text.matchAll(new RegExp(`^${name}_bucket\\{${labels}${labels && ','}le="(.*?)"\\} (\\d+)$`, 'gm'))].map((m) => [m[1], Number(m[2])]);
    assert.ok(buckets.every(([, n], i) => i === 0 || n >= buckets[i - 1][1]), 'a bucket includes the ones below');
    const value = (what) => Number(new RegExp(`^${name}_${what}${labels && `\\{${labels}\\}`} (\\S+)$`, 'm').exec(text)[1]);
    assert.equal(buckets.at(-1)[0], '+Inf');
    assert.equal(value('count'), buckets.at(-1)[1]);
    return { under: Object.fromEntries(buckets), sum: value('sum'), count: value('count') };
  };
  const exec = of('cove_http_request_seconds', 'method="POST",route="/v1/sandboxes/\\{id\\}/exec"');
  assert.ok(exec.sum >= 0.36 && exec.under['0.1'] <= exec.count - 3, JSON.stringify(exec));
  const turns = of('cove_loop_turn_seconds', '');
  assert.ok(turns.count >= 10, JSON.stringify(turns));
  assert.doesNotMatch(text, /cove_http_request_seconds_count\{method="POST",route="\/v1\/keys"\}/, 'none of a route that was not called');
  await d.del(`${S}/${s.id}`);
});

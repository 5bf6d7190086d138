// Metrics and logs of a sandbox, as the SDK, the CLI and dashboards ask for them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll } from '../../lib/cove.mjs';
import { raw, startE2b } from './lib.mjs';

let d, sdk, Sandbox, cli, sbx;
before(async () => {
  ({ d, sdk, cli } = await startE2b({ args: ['--metrics-every', '1s'] }));
  ({ Sandbox } = sdk);
  sbx = await Sandbox.create();
});
after(() => d.stop());

test('points, the last ones of several, and a time before it was made', async () => {
  const from = new Date(Date.now() - 86_400_000);
  const points = await poll('the first point', async () => {
    const p = await sbx.getMetrics();
    return p.length > 0 && p;
  });
  const [p] = points;
  assert.ok(p.timestamp instanceof Date && Date.now() - p.timestamp < 60_000);
  assert.equal(p.memTotal, 1 << 30);
  assert.ok(p.memUsed >= 0 && p.memUsed < p.memTotal && p.memCache >= 0);
  assert.ok(p.cpuCount >= 1 && p.cpuUsedPct >= 0);
  assert.ok(p.diskTotal > p.diskUsed);
  assert.deepEqual(await sbx.getMetrics({ start: from, end: new Date(from.getTime() + 1000) }), []);
  const several = (await raw(d, 'GET', `/sandboxes/metrics?sandbox_ids=${sbx.sandboxId},nothing`)).json;
  assert.deepEqual(Object.keys(several.sandboxes), [sbx.sandboxId]);
  assert.equal(several.sandboxes[sbx.sandboxId].memTotal, 1 << 30);
  assert.equal((await raw(d, 'GET', '/sandboxes/metrics')).status, 400);
  assert.equal((await raw(d, 'GET', `/sandboxes/metrics?sandbox_ids=${Array(101).fill('x').join(',')}`)).status, 400);
  await assert.rejects(Sandbox.getMetrics('nothing'), sdk.SandboxNotFoundError);
});

test('the data plane has them too, for who has the token', async () => {
  const { envdAccessToken } = (await raw(d, 'GET', `/sandboxes/${sbx.sandboxId}`)).json;
  const get = (headers) => d.call('GET', '/metrics', undefined, { key: null, headers: { host: `49983-${sbx.sandboxId}.localhost`, ...headers } });
  assert.equal((await get({})).status, 401);
  const a = (await get({ 'x-access-token': envdAccessToken })).json;
  assert.deepEqual(Object.keys(a).sort(), ['cpu_count', 'cpu_used_pct', 'disk_total', 'disk_used', 'mem_cache', 'mem_total', 'mem_total_mib', 'mem_used', 'mem_used_mib', 'ts']);
  assert.equal(a.mem_total_mib, 1024);
});

test('logs: what happened, in both generations, and in the CLI', async () => {
  await sbx.commands.run('true');
  const first = await poll('something was said', async () => {
    const a = (await raw(d, 'GET', `/sandboxes/${sbx.sandboxId}/logs`)).json;
    return a.logs.length >= 2 && a;
  });
  assert.equal(first.logs.length, first.logEntries.length);
  const line = JSON.parse(first.logs[0].line);
  assert.equal(line.level, 'info');
  assert.equal(line.message, first.logEntries[0].message);
  const forward = (await raw(d, 'GET', `/v2/sandboxes/${sbx.sandboxId}/logs?limit=2`)).json.logs;
  assert.deepEqual(forward, first.logEntries.slice(0, 2));
  const backward = (await raw(d, 'GET', `/v2/sandboxes/${sbx.sandboxId}/logs?direction=backward`)).json.logs;
  assert.deepEqual(backward.at(-1), first.logEntries[0]);
  assert.deepEqual((await raw(d, 'GET', `/v2/sandboxes/${sbx.sandboxId}/logs?search=no-such-words`)).json.logs, []);
  assert.equal((await raw(d, 'GET', `/v2/sandboxes/${sbx.sandboxId}/logs?direction=up`)).status, 400);
  assert.equal((await raw(d, 'GET', `/v2/sandboxes/${sbx.sandboxId}/logs?level=loud`)).status, 400);
  assert.equal((await raw(d, 'GET', '/sandboxes/nothing/logs')).status, 404);
  const shown = await cli(['sandbox', 'logs', sbx.sandboxId]);
  assert.equal(shown.status, 0, shown.stderr);
  assert.match(shown.stdout, /INFO/);
  const metrics = await cli(['sandbox', 'metrics', sbx.sandboxId]);
  assert.equal(metrics.status, 0, metrics.stderr);
  assert.match(metrics.stdout, /CPU|RAM|Memory/i);
});

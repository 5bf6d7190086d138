// Usage and logs of a sandbox: the SDK, the CLI, and the routes of dashboards.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll } from '../../lib/cove.mjs';
import { raw, startE2b } from './lib.mjs';

let d, sdk, Sandbox, cli;
before(async () => {
  ({ d, sdk, cli } = await startE2b({ args: ['--metrics-every', '1s'] }));
  ({ Sandbox } = sdk);
});
after(() => d.stop());

const logs = async (id, query = '') => (await raw(d, 'GET', `/v2/sandboxes/${id}/logs?${query}`)).json.logs;
const words = async (id, query) => (await logs(id, query)).map((l) => l.message);

test('the first point is there at once, more follow, none before it was made', async () => {
  const early = new Date(Date.now() - 60_000);
  const sbx = await Sandbox.create();
  const info = await sbx.getInfo();
  const [first, ...none] = await sbx.getMetrics();
  assert.deepEqual(none, []);
  assert.deepEqual(Object.keys(first).sort(), ['cpuCount', 'cpuUsedPct', 'diskTotal', 'diskUsed', 'memCache', 'memTotal', 'memUsed', 'timestamp']);
  assert.ok(first.timestamp >= info.startedAt);
  assert.equal(first.cpuCount, info.cpuCount);
  assert.equal(first.memTotal, info.memoryMB * 2 ** 20);
  assert.ok(first.diskTotal > 0 && first.memUsed > 0 && first.memUsed < first.memTotal);
  assert.ok(first.cpuUsedPct >= 0 && first.cpuUsedPct <= 100);

  const spin = await sbx.commands.run('while :; do :; done', { background: true, timeoutMs: 0 });
  const busy = await poll('it is seen to be busy', async () => (await Sandbox.getMetrics(sbx.sandboxId)).find((m) => m.cpuUsedPct > 5), { deadline: 30_000, every: 200 });
  await spin.kill();
  const all = await sbx.getMetrics();
  assert.deepEqual(all[0], first, 'what was seen is seen again');
  assert.deepEqual(all.map((m) => m.timestamp), all.map((m) => m.timestamp).sort((a, b) => a - b));
  assert.deepEqual(await sbx.getMetrics({ start: early, end: new Date(early.getTime() + 10_000) }), []);
  const near = (ms) => new Date(busy.timestamp.getTime() + ms); // the SDK rounds to seconds
  assert.ok((await sbx.getMetrics({ start: near(-1000), end: near(1000) })).some((m) => m.timestamp.getTime() === busy.timestamp.getTime()));
  assert.deepEqual(await sbx.getMetrics({ start: near(3_600_000) }), []);
  await assert.rejects(sbx.getMetrics({ start: new Date(), end: early }), /400: start time cannot be after end time/);

  await sbx.pause();
  const rest = await sbx.getMetrics();
  assert.ok(rest.length >= all.length, 'they are told of a paused one too');
  assert.equal((await sbx.getInfo()).state, 'paused', 'which that does not wake');
  await sbx.kill();
  await assert.rejects(sbx.getMetrics(), sdk.SandboxNotFoundError);
  await assert.rejects(Sandbox.getMetrics('nothing'), sdk.SandboxNotFoundError);
});

test('metrics of several sandboxes omit missing ones and those of other keys', async () => {
  const { key } = await d.post('/v1/keys', { name: 'other' });
  const [a, b, theirs] = [await Sandbox.create(), await Sandbox.create(), await Sandbox.create({ apiKey: key })];
  const ask = (ids) => raw(d, 'GET', `/sandboxes/metrics?sandbox_ids=${ids.join(',')}`);
  const ids = [a, b, theirs].map((s) => s.sandboxId);
  const { sandboxes } = await poll('both have one', async () => {
    const { json } = await ask([...ids, 'nothing', 'x'.repeat(100)]);
    return Object.keys(json.sandboxes).length === 2 && json;
  }, { deadline: 20_000 });
  assert.deepEqual(Object.keys(sandboxes).sort(), [a.sandboxId, b.sandboxId].sort());
  const one = sandboxes[a.sandboxId];
  assert.equal(Math.floor(Date.parse(one.timestamp) / 1000), one.timestampUnix);
  assert.equal((await ask(Array.from({ length: 101 }, (_, i) => `s${i}`))).status, 400);
  assert.deepEqual((await ask(['x'])).json, { sandboxes: {} });
  assert.equal((await raw(d, 'GET', '/sandboxes/metrics')).status, 400);
  await assert.rejects(Sandbox.getMetrics(theirs.sandboxId), sdk.SandboxNotFoundError);
  await Promise.all([a.kill(), b.kill(), Sandbox.kill(theirs.sandboxId, { apiKey: key })]);
});

test('the data plane returns current usage to clients with its token', async () => {
  const sbx = await Sandbox.create();
  const token = (await raw(d, 'GET', `/sandboxes/${sbx.sandboxId}`)).json.envdAccessToken;
  const ask = (headers) => d.call('GET', '/metrics', undefined, { key: null, headers: { 'e2b-sandbox-id': sbx.sandboxId, 'e2b-sandbox-port': '49983', ...headers } });
  assert.equal((await ask({})).status, 401);
  const { json } = await ask({ 'x-access-token': token });
  assert.deepEqual(Object.keys(json), ['ts', 'cpu_count', 'cpu_used_pct', 'mem_total', 'mem_used', 'mem_cache', 'mem_total_mib', 'mem_used_mib', 'disk_used', 'disk_total']);
  assert.ok(Math.abs(json.ts * 1000 - Date.now()) < 30_000);
  assert.equal(json.mem_total_mib, json.mem_total / 2 ** 20);
  const many = await Promise.all(Array.from({ length: 50 }, () => ask({ 'x-access-token': token })));
  for (const a of many) assert.equal(a.status, 200);
  await sbx.commands.run('head -c 30000000 /dev/urandom > big; sync');
  await poll('what was written is counted', async () => (await ask({ 'x-access-token': token })).json.disk_used > 30_000_000, { every: 200 });
  await sbx.kill();
  assert.equal((await ask({ 'x-access-token': token })).status, 502);
});

test('logs are read in both directions, by level, by text, and from a time on', async () => {
  const sbx = await Sandbox.create();
  const good = await sbx.commands.run('true', { background: true });
  await good.wait();
  await sbx.commands.run('exit 3').catch(() => {});
  await sbx.pause();
  await Sandbox.connect(sbx.sandboxId);
  const id = sbx.sandboxId;
  const all = await poll('all of it is there', async () => {
    const l = await logs(id);
    return l.some((x) => x.message === 'sandbox resumed') && l.filter((x) => x.fields.event === 'process.exited').length >= 2 && l;
  });
  for (const l of all) {
    assert.deepEqual(Object.keys(l), ['timestamp', 'level', 'message', 'fields']);
    for (const v of Object.values(l.fields)) assert.equal(typeof v, 'string');
  }
  assert.match(all[0].message, /^sandbox created/);
  assert.deepEqual(await words(id, 'direction=backward'), all.map((l) => l.message).reverse());
  const bad = (await logs(id, 'level=warn')).map((l) => [l.level, l.fields.logger, l.fields.exit_code]);
  assert.deepEqual(bad, [['warn', 'process', '3']]);
  assert.deepEqual(await words(id, 'search=PAUSED'), ['sandbox paused']);
  assert.deepEqual(await words(id, 'search=no-such-words'), []);
  assert.deepEqual(await words(id, 'limit=1'), [all[0].message]);
  assert.deepEqual(await words(id, 'limit=100000'), all.map((l) => l.message));
  const last = Date.parse(all.at(-1).timestamp);
  assert.deepEqual(await words(id, `cursor=${last}`), all.filter((l) => Date.parse(l.timestamp) >= last).map((l) => l.message));
  const start = Date.parse(all[0].timestamp);
  assert.deepEqual(await words(id, `direction=backward&cursor=${start}`), all.filter((l) => Date.parse(l.timestamp) <= start).map((l) => l.message).reverse());
  assert.deepEqual(await words(id, `cursor=${Date.now() + 60_000}`), []);
  for (const q of ['direction=sideways', 'level=loud', 'cursor=x', 'limit=x', `search=${'x'.repeat(300)}`]) {
    const a = await raw(d, 'GET', `/v2/sandboxes/${id}/logs?${q}`);
    assert.equal(`${a.status} ${a.json.code}`, '400 400', q);
  }

  const old = (await raw(d, 'GET', `/sandboxes/${id}/logs?start=${start}`)).json;
  assert.deepEqual(Object.keys(old), ['logs', 'logEntries']);
  assert.deepEqual(old.logEntries, all);
  assert.deepEqual(old.logs.map((l) => JSON.parse(l.line).message), all.map((l) => l.message));
  assert.deepEqual(old.logs.map((l) => l.timestamp), all.map((l) => l.timestamp));
  await sbx.kill();
  for (const url of [`/sandboxes/${id}/logs`, `/v2/sandboxes/${id}/logs`]) assert.equal((await raw(d, 'GET', url)).status, 404);
});

test('the CLI shows metrics and logs', async () => {
  const sbx = await Sandbox.create();
  await sbx.commands.run('exit 5').catch(() => {});
  const m = await cli(['sandbox', 'metrics', sbx.sandboxId]);
  assert.equal(m.status, 0, m.stderr);
  assert.match(m.stdout, /CPU.*: .*% \/ .*Core.*Memory.*: .*MiB.*Disk.*MiB/);
  const lines = async (...args) => (await cli(['sandbox', 'logs', sbx.sandboxId, '--format', 'json', ...args])).stdout.trim().split('\n').filter(Boolean).map((l) => JSON.parse(l));
  const warned = await poll('its end is told', async () => {
    const l = await lines('--level', 'WARN');
    return l.length > 0 && l;
  }, { deadline: 20_000 });
  assert.deepEqual(warned.map((l) => [l.logger, l.event, l.exit_code]), [['process', 'process.exited', '5']]);
  assert.ok((await lines('--loggers', 'sandbox')).every((l) => l.logger === 'sandbox'));
  assert.match((await cli(['sandbox', 'logs', sbx.sandboxId])).stdout, /sandbox created/);
  assert.notEqual((await cli(['sandbox', 'logs', 'nothing'])).status, 0);
  await sbx.kill();
});

test('logged output of commands is returned by both routes and the CLI', async () => {
  const e = await startE2b({ args: ['--logs-output', '1'] });
  try {
    const sbx = await e.sdk.Sandbox.create();
    await sbx.commands.run('echo to stdout; echo to stderr >&2');
    await sbx.commands.run('echo in background', { background: true });
    const at = (v) => `${v}/sandboxes/${sbx.sandboxId}/logs`;
    const printed = await poll('it is there', async () => {
      const l = (await raw(e.d, 'GET', at('/v2'))).json.logs.filter((x) => x.fields.event === 'process.output');
      return l.length === 3 && l;
    });
    assert.deepEqual(printed.map((l) => [l.message, l.level, l.fields.stream, l.fields.logger]).sort(), [['in background', 'info', 'stdout', 'process'], ['to stderr', 'warn', 'stderr', 'process'], ['to stdout', 'info', 'stdout', 'process']]);
    const found = (await raw(e.d, 'GET', `${at('/v2')}?search=TO%20STD&level=warn&direction=backward`)).json.logs;
    assert.deepEqual(found.map((l) => l.message), ['to stderr']);
    const old = (await raw(e.d, 'GET', at(''))).json.logs.map((l) => JSON.parse(l.line));
    assert.ok(old.some((l) => l.message === 'to stdout' && l.stream === 'stdout' && l.logger === 'process'));
    assert.match((await e.cli(['sandbox', 'logs', sbx.sandboxId])).stdout, /to stdout[^]*in background|in background[^]*to stdout/);
    await sbx.kill();
  } finally {
    await e.d.stop();
  }
});

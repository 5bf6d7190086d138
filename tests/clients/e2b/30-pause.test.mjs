// Pause, connect, auto-pause, and resume by traffic.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll } from '../../lib/cove.mjs';
import { raw, startE2b } from './lib.mjs';

let d, sdk, Sandbox, cli;
before(async () => {
  ({ d, sdk, cli } = await startE2b());
  ({ Sandbox } = sdk);
});
after(() => d.stop());

const stateOf = async (id) => (await Sandbox.getInfo(id)).state;

test('pause keeps processes, connect resumes them, and reads do not', async () => {
  const sbx = await Sandbox.create({ timeoutMs: 600_000 });
  const h = await sbx.commands.run('i=0; while true; do echo $((i=i+1)); sleep 0.05; done', { background: true, timeoutMs: 0 });
  await h.disconnect();
  assert.equal(await sbx.pause(), true);
  assert.equal(await sbx.pause(), false, 'it is paused already');
  const info = await sbx.getInfo();
  assert.equal(info.state, 'paused');
  assert.deepEqual(await sbx.getInfo(), info);
  assert.ok(info.endAt <= new Date());
  assert.equal(await sbx.isRunning(), false);
  await assert.rejects(sbx.commands.run('true'), sdk.SandboxNotFoundError);
  assert.ok((await Sandbox.list({ query: { state: ['paused'] } }).nextItems()).some((s) => s.sandboxId === sbx.sandboxId));

  const again = await Sandbox.connect(sbx.sandboxId, { timeoutMs: 120_000 });
  assert.equal(await again.isRunning(), true);
  assert.ok((await again.commands.list()).some((p) => p.pid === h.pid), 'the same process, the same pid');
  let text = '';
  const b = await again.commands.connect(h.pid, { onStdout: (t) => (text += t) });
  await poll('it counts on', () => text.length > 40);
  b.wait().catch(() => {});
  assert.ok(text.startsWith('1\n2\n'));
  assert.equal(await again.kill(), true);
});

test('resume of the first generation; pausing without memory keeps the files only', async () => {
  const sbx = await Sandbox.create();
  const boot = (await sbx.commands.run('cat /proc/sys/kernel/random/boot_id; echo kept > /home/user/f')).stdout;
  assert.equal((await raw(d, 'POST', `/sandboxes/${sbx.sandboxId}/resume`, {})).status, 409);
  assert.equal((await raw(d, 'POST', `/sandboxes/${sbx.sandboxId}/pause`, { memory: false })).status, 204);
  assert.equal(await stateOf(sbx.sandboxId), 'paused');
  const r = await raw(d, 'POST', `/sandboxes/${sbx.sandboxId}/resume`, { timeout: 60 });
  assert.equal(r.status, 201);
  assert.equal(r.json.sandboxID, sbx.sandboxId);
  assert.equal((await sbx.commands.run('cat /home/user/f')).stdout, 'kept\n');
  assert.notEqual((await sbx.commands.run('cat /proc/sys/kernel/random/boot_id')).stdout, boot);
  await sbx.kill();
});

test('a paused sandbox can be killed, and pausing a missing one fails', async () => {
  const sbx = await Sandbox.create();
  await sbx.pause();
  assert.equal(await sbx.kill(), true);
  assert.equal((await raw(d, 'POST', `/sandboxes/${sbx.sandboxId}/pause`)).status, 404);
  assert.equal((await raw(d, 'POST', '/sandboxes/nothing/resume', {})).status, 404);
});

test('at the end of its time it is paused where that was asked for, and waits', async () => {
  const sbx = await Sandbox.create({ lifecycle: { onTimeout: 'pause' }, timeoutMs: 60_000 });
  assert.deepEqual((await sbx.getInfo()).lifecycle, { onTimeout: 'pause', autoResume: false });
  await sbx.setTimeout(1);
  await poll('it is paused', async () => (await stateOf(sbx.sandboxId)) === 'paused');
  await assert.rejects(sbx.commands.run('true'), sdk.SandboxNotFoundError);
  assert.equal(await stateOf(sbx.sandboxId), 'paused', 'without autoResume nothing wakes it');
  await sbx.kill();
});

test('with autoResume commands and traffic to its ports wake it, looking does not', async () => {
  const sbx = await Sandbox.create({ lifecycle: { onTimeout: 'pause', autoResume: true }, timeoutMs: 60_000 });
  await sbx.commands.run('python3 -m http.server 8000', { background: true, timeoutMs: 0 }).then((h) => h.disconnect());
  const fetchPort = () => d.call('GET', '/', undefined, { key: null, headers: { host: `8000-${sbx.sandboxId}.localhost:${d.port}` } });
  await poll('the server answers', async () => (await fetchPort()).status === 200);
  const rest = async () => {
    await sbx.pause();
    assert.equal(await stateOf(sbx.sandboxId), 'paused');
    assert.equal(await sbx.isRunning(), false);
    assert.equal(await stateOf(sbx.sandboxId), 'paused');
  };
  await rest();
  assert.equal((await sbx.commands.run('echo awake')).stdout, 'awake\n');
  await rest();
  assert.deepEqual((await Promise.all([fetchPort(), fetchPort(), fetchPort()])).map((a) => a.status), [200, 200, 200]);
  assert.equal(await stateOf(sbx.sandboxId), 'running');
  assert.ok((await sbx.getInfo()).endAt - Date.now() > 290_000, 'for five minutes at least');
  await rest();
  const stranger = await d.call('POST', '/process.Process/List', '{}', { key: null, headers: { 'e2b-sandbox-id': sbx.sandboxId, 'e2b-sandbox-port': '49983', 'content-type': 'application/json' } });
  assert.equal(stranger.status, 502);
  assert.equal(await stateOf(sbx.sandboxId), 'paused', 'a request without its token does not wake it');
  await sbx.kill();
});

test('the CLI pauses and resumes', async () => {
  const sbx = await Sandbox.create();
  assert.equal((await cli(['sandbox', 'pause', sbx.sandboxId])).status, 0);
  assert.equal(await stateOf(sbx.sandboxId), 'paused');
  assert.equal((await cli(['sandbox', 'resume', sbx.sandboxId])).status, 0);
  assert.equal(await stateOf(sbx.sandboxId), 'running');
  await sbx.kill();
});

test('connect and resume with memory false boot a paused sandbox with its files', async () => {
  const sbx = await Sandbox.create();
  const id = sbx.sandboxId;
  const boot = async () => (await sbx.commands.run('cat /proc/sys/kernel/random/boot_id; pgrep -x sleep || true; cat kept')).stdout;
  for (const [how, url] of [['connect', `/v2/sandboxes/${id}/connect`], ['connect', `/sandboxes/${id}/connect`], ['resume', `/sandboxes/${id}/resume`]]) {
    await sbx.commands.run('sleep 1000', { background: true, timeoutMs: 0 });
    await sbx.commands.run('echo kept > kept; sync');
    const before = await d.get(`/v1/sandboxes/${id}`);
    await sbx.pause();
    const answer = await raw(d, 'POST', url, { timeout: 120, memory: false });
    assert.equal(answer.status, 201, how);
    const after = await d.get(`/v1/sandboxes/${id}`);
    assert.equal(after.state, 'running');
    assert.notEqual(after.boot_id, before.boot_id);
    assert.ok(Math.abs(Date.parse(after.ends_at) - Date.now() - 120_000) < 20_000);
    const said = (await boot()).trim().split('\n');
    assert.deepEqual(said.slice(1), ['kept'], 'no process of before is there');
    await d.kill9('front');
    await d.back();
    assert.equal((await d.get(`/v1/sandboxes/${id}`)).state, 'running', 'and everybody agrees that it runs');
  }
  assert.equal((await raw(d, 'POST', `/v2/sandboxes/${id}/connect`, { memory: false })).status, 200, 'one that runs is left alone');
  assert.equal((await raw(d, 'POST', `/v2/sandboxes/${id}/connect`, { memory: 'no' })).status, 400);
  await Sandbox.kill(id);
});

// The life of a sandbox by the SDK: what each transition answers, alone and at the same time as others.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { poll } from '../../lib/cove.mjs';
import { raw, startE2b } from './lib.mjs';

let d, sdk, Sandbox;
before(async () => {
  ({ d, sdk } = await startE2b());
  ({ Sandbox } = sdk);
});
after(() => d.stop());

const stateOf = async (id) => (await Sandbox.getInfo(id)).state;
const bootOf = async (sbx) => (await sbx.commands.run('cat /proc/sys/kernel/random/boot_id')).stdout;
const all = async (paginator) => {
  const found = [];
  while (paginator.hasNext) found.push(...(await paginator.nextItems()));
  return found;
};

test('connect only lengthens the time of a sandbox, and answers 200 if it runs, 201 if it was resumed', async () => {
  const sbx = await Sandbox.create({ timeoutMs: 600_000 });
  const { endAt } = await sbx.getInfo();
  await Sandbox.connect(sbx.sandboxId, { timeoutMs: 60_000 });
  assert.deepEqual((await sbx.getInfo()).endAt, endAt, 'shorter: nothing changes');
  await sbx.connect({ timeoutMs: 1_200_000 });
  assert.ok((await sbx.getInfo()).endAt - endAt > 500_000);
  await sbx.setTimeout(300_000);
  const { endAt: shorter } = await sbx.getInfo();
  assert.ok(shorter < endAt, 'setTimeout may shorten');
  for (const url of ['/sandboxes', '/v2/sandboxes']) {
    const connect = () => raw(d, 'POST', `${url}/${sbx.sandboxId}/connect`, { timeout: 300 });
    assert.equal((await connect()).status, 200);
    await sbx.pause();
    const a = await connect();
    assert.equal(a.status, 201);
    assert.equal(a.json.sandboxID, sbx.sandboxId);
    assert.equal((await connect()).status, 200);
  }
  assert.ok((await sbx.getInfo()).endAt - Date.now() > 290_000, 'resumed: a time of its own from then on');
  await sbx.kill();
  await assert.rejects(Sandbox.connect(sbx.sandboxId), sdk.SandboxNotFoundError);
  await assert.rejects(Sandbox.connect('nothing'), sdk.SandboxNotFoundError);
});

test('looking never resumes and never changes the end', async () => {
  const sbx = await Sandbox.create({ timeoutMs: 120_000, lifecycle: { onTimeout: 'pause', autoResume: true } });
  const look = async () => {
    await sbx.isRunning();
    await all(Sandbox.list());
    await sbx.getMetrics();
    await all(sbx.listSnapshots());
    return sbx.getInfo();
  };
  const { endAt } = await sbx.getInfo();
  for (let i = 0; i < 3; i++) assert.deepEqual((await look()).endAt, endAt);
  await sbx.pause();
  const paused = await sbx.getInfo();
  for (let i = 0; i < 3; i++) assert.deepEqual(await look(), paused);
  assert.deepEqual((await all(Sandbox.list({ query: { state: ['paused'] } }))).map((s) => [s.sandboxId, s.state, s.endAt]), [[sbx.sandboxId, 'paused', paused.endAt]]);
  assert.deepEqual(await all(Sandbox.list({ query: { state: ['running'] } })), []);
  await assert.rejects(sbx.setTimeout(60_000), /paused/);
  await sbx.kill();
});

test('without its memory: keepMemory: false, by hand and at the end of its time', async () => {
  const sbx = await Sandbox.create();
  const boot = await bootOf(sbx);
  await sbx.files.write('/home/user/f', 'kept');
  const { pid } = await sbx.commands.run('sleep 1000', { background: true, timeoutMs: 0 });
  assert.equal(await sbx.pause({ keepMemory: false }), true);
  assert.equal(await sbx.pause({ keepMemory: false }), false);
  assert.equal(await stateOf(sbx.sandboxId), 'paused');
  const again = await Sandbox.connect(sbx.sandboxId);
  assert.notEqual(await bootOf(again), boot);
  assert.equal(await again.files.read('/home/user/f'), 'kept');
  assert.ok(!(await again.commands.list()).some((p) => p.pid === pid));
  await again.kill();

  const timed = await Sandbox.create({ timeoutMs: 60_000, lifecycle: { onTimeout: { action: 'pause', keepMemory: false } } });
  const before = await bootOf(timed);
  await timed.setTimeout(1);
  await poll('it is paused', async () => (await stateOf(timed.sandboxId)) === 'paused');
  assert.notEqual(await bootOf(await Sandbox.connect(timed.sandboxId)), before);
  await timed.kill();
  for (const lifecycle of [{ autoPauseMemory: false }, { autoPause: true, autoPauseMemory: false, autoResume: { enabled: true } }]) {
    assert.equal((await raw(d, 'POST', '/v2/sandboxes', { templateID: 'base', ...lifecycle })).status, 400, JSON.stringify(lifecycle));
  }
});

test('a paused one has no end, with its memory or without, and is given none', async () => {
  for (const keepMemory of [true, false]) {
    const sbx = await Sandbox.create();
    await sbx.files.write('f', 'kept');
    await sbx.pause({ keepMemory });
    await assert.rejects(sbx.setTimeout(1), (e) => e instanceof sdk.SandboxError && /409: .* is paused and has no timeout/.test(e.message));
    assert.equal((await raw(d, 'POST', `/sandboxes/${sbx.sandboxId}/refreshes`, { duration: 60 })).status, 409);
    assert.equal(await (await Sandbox.connect(sbx.sandboxId)).files.read('f'), 'kept');
    await sbx.kill();
  }
});

test('betaPause works, and a sandbox is deleted at the end of its lifetime by default', async () => {
  const sbx = await Sandbox.create();
  assert.equal(await sbx.betaPause(), true);
  assert.equal(await Sandbox.betaPause(sbx.sandboxId), false);
  assert.equal(await Sandbox.kill(sbx.sandboxId), true);
  assert.equal(await Sandbox.kill(sbx.sandboxId), false);
  await assert.rejects(sbx.betaPause(), sdk.SandboxNotFoundError);
  await assert.rejects(Sandbox.pause('nothing'), sdk.SandboxNotFoundError);
  const short = await Sandbox.create();
  assert.deepEqual((await short.getInfo()).lifecycle, { onTimeout: 'kill', autoResume: false });
  await short.setTimeout(1);
  await poll('it is gone', async () => !(await short.isRunning()));
  await assert.rejects(short.getInfo(), sdk.SandboxNotFoundError);
});

test('open streams of commands and terminals miss nothing across a pause', async () => {
  const sbx = await Sandbox.create();
  let text = '';
  const h = await sbx.commands.run('for i in $(seq 1 50); do echo $i; sleep 0.01; done', { background: true, onStdout: (t) => (text += t), timeoutMs: 20_000 });
  let screen = '';
  const pty = await sbx.pty.create({ cols: 80, rows: 24, onData: (b) => (screen += Buffer.from(b)), timeoutMs: 0 });
  await poll('it counts', () => text.length > 6);
  await sbx.pause();
  await Sandbox.connect(sbx.sandboxId);
  const r = await h.wait();
  assert.equal(r.stdout, Array.from({ length: 50 }, (_, i) => `${i + 1}\n`).join(''));
  await sbx.pty.sendInput(pty.pid, Buffer.from('echo typed-$((40+2))\n'));
  await poll('the terminal goes on', () => screen.includes('typed-42'));
  await sbx.kill();
});

test('transitions at the same time: of several pauses one wins, and connecting waits', async () => {
  const sbx = await Sandbox.create();
  const job = await sbx.commands.run('sleep 1000', { background: true, timeoutMs: 0 });
  await job.disconnect();
  for (let round = 0; round < 5; round++) {
    const pauses = Array.from({ length: 4 }, () => raw(d, 'POST', `/sandboxes/${sbx.sandboxId}/pause`, {}));
    const connects = Array.from({ length: 4 }, () => raw(d, 'POST', `/v2/sandboxes/${sbx.sandboxId}/connect`, { timeout: 300 }));
    for (const a of await Promise.all(pauses)) assert.ok([204, 409].includes(a.status), a.text);
    for (const a of await Promise.all(connects)) assert.ok([200, 201].includes(a.status), a.text);
    await Sandbox.connect(sbx.sandboxId);
    assert.ok((await sbx.commands.list()).some((p) => p.pid === job.pid), 'what ran in it never noticed');
  }
  const both = await Promise.all([raw(d, 'POST', `/sandboxes/${sbx.sandboxId}/pause`, { memory: false }), raw(d, 'POST', `/sandboxes/${sbx.sandboxId}/pause`, { memory: false })]);
  assert.deepEqual(both.map((a) => a.status).sort(), [204, 409]);
  const [killed, paused] = await Promise.all([sbx.kill(), raw(d, 'POST', `/sandboxes/${sbx.sandboxId}/resume`, {})]);
  assert.equal(killed, true);
  assert.ok([201, 404, 409].includes(paused.status), paused.text);
  assert.equal(await sbx.kill(), false);
});

test('a call during a pause fails as it does after the pause', async () => {
  const sbx = await Sandbox.create();
  const answers = [];
  for (let round = 0; round < 6; round++) {
    let paused = false;
    const pause = sbx.pause({ keepMemory: round % 2 === 0 }).finally(() => (paused = true));
    for (let i = 0; !paused; i++) answers.push(await sbx.files.makeDir(`d${round}-${i}`).catch((e) => e));
    await pause;
    await sbx.connect();
  }
  for (const a of answers) assert.ok(a === true || (a instanceof sdk.TimeoutError && /was not found/.test(a.message)), `${a}`);
  await sbx.kill();
});

test('an upload fails when its sandbox is paused without memory', async () => {
  const sbx = await Sandbox.create();
  const headers = { 'e2b-sandbox-id': sbx.sandboxId, 'e2b-sandbox-port': '49983', 'x-access-token': sbx.envdAccessToken, 'content-type': 'application/octet-stream' };
  const req = http.request(`${d.url}/files?path=half`, { method: 'POST', headers });
  const answer = new Promise((resolve, reject) => req.on('response', resolve).on('error', reject));
  req.write(Buffer.alloc(2 << 20));
  await poll('it is under way', async () => (await d.exec(sbx.sandboxId, 'ps -eo comm')).stdout.includes('cove-helper'));
  await sbx.pause({ keepMemory: false });
  const res = await answer;
  assert.equal(res.resume().statusCode, 502);
  req.destroy();
  assert.equal(await (await Sandbox.connect(sbx.sandboxId)).files.exists('half'), false);
  await sbx.kill();
});

// Snapshots and forks, as the SDK asks for them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { raw, startE2b } from './lib.mjs';

let d, sdk, Sandbox;
before(async () => {
  ({ d, sdk } = await startE2b());
  ({ Sandbox } = sdk);
});
after(() => d.stop());

async function all(paginator) {
  const found = [];
  while (paginator.hasNext) found.push(...(await paginator.nextItems()));
  return found;
}

test('a snapshot outlives its sandbox, and new ones start from it, by id and by name', async () => {
  const sbx = await Sandbox.create();
  await sbx.commands.run('echo one > /home/user/f');
  const first = await sbx.createSnapshot({ name: 'mine' });
  assert.deepEqual(first.names, ['mine']);
  await sbx.commands.run('echo two > /home/user/f');
  const second = await sbx.createSnapshot();
  assert.deepEqual((await all(sbx.listSnapshots())).map((s) => s.snapshotId), [second.snapshotId, first.snapshotId]);
  assert.deepEqual(await all(Sandbox.listSnapshots({ name: 'mine' })), [first]);
  assert.equal((await all(Sandbox.listSnapshots({ limit: 1 }))).length, 2);
  await sbx.kill();
  for (const [template, text] of [[first.snapshotId, 'one\n'], ['mine', 'one\n'], [second.snapshotId, 'two\n']]) {
    const from = await Sandbox.create(template);
    assert.equal((await from.commands.run('cat /home/user/f')).stdout, text);
    await from.kill();
  }
  assert.equal(await Sandbox.deleteSnapshot(first.snapshotId), true);
  assert.equal(await Sandbox.deleteSnapshot(first.snapshotId), false);
  assert.equal(await Sandbox.deleteSnapshot(second.snapshotId), true);
  assert.deepEqual(await all(Sandbox.listSnapshots()), []);
  await assert.rejects(Sandbox.create(first.snapshotId), /404/);
  await assert.rejects(sbx.createSnapshot(), sdk.SandboxNotFoundError);
});

test('forks have the files, tokens of their own, and go their own way', async () => {
  const sbx = await Sandbox.create({ metadata: { of: 'me' } });
  await sbx.commands.run('echo same > /home/user/f');
  const made = await sbx.fork({ count: 3, timeoutMs: 60_000 });
  assert.equal(made.length, 3);
  for (const [i, f] of made.entries()) {
    assert.ok(f instanceof Sandbox, `${f}`);
    assert.equal((await f.commands.run(`cat /home/user/f; echo ${i} > /home/user/f; echo $E2B_SANDBOX_ID`)).stdout, `same\n${f.sandboxId}\n`);
  }
  assert.equal((await sbx.commands.run('cat /home/user/f')).stdout, 'same\n');
  const tokens = await Promise.all([sbx, ...made].map(async (s) => (await raw(d, 'GET', `/sandboxes/${s.sandboxId}`)).json.envdAccessToken));
  assert.equal(new Set(tokens).size, 4);
  await sbx.pause();
  assert.equal((await raw(d, 'POST', `/sandboxes/${sbx.sandboxId}/fork`, {})).status, 409);
  for (const count of [0, 101]) assert.equal((await raw(d, 'POST', `/sandboxes/${made[0].sandboxId}/fork`, { count })).status, 400);
  assert.equal((await raw(d, 'POST', '/sandboxes/nothing/fork', {})).status, 404);
  await Promise.all([sbx, ...made].map((s) => s.kill()));
});

test('a key sees and deletes only its own snapshots; templates are an admin\'s to delete', async () => {
  const { key } = await d.post('/v1/keys', { name: 'other' });
  const sbx = await Sandbox.create();
  const { snapshotId } = await sbx.createSnapshot();
  assert.deepEqual(await all(Sandbox.listSnapshots({ apiKey: key })), []);
  assert.equal(await Sandbox.deleteSnapshot(snapshotId, { apiKey: key }), false);
  assert.equal(await Sandbox.deleteSnapshot('base', { apiKey: key }), false);
  await assert.rejects(Sandbox.create(snapshotId, { apiKey: key }), /404/);
  assert.equal(await Sandbox.deleteSnapshot(snapshotId), true);
  await sbx.kill();
});

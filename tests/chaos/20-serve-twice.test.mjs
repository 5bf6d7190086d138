// One daemon per state directory, one program per port: the second is told so
// and the first notices nothing.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { settled } from '../lib/chaos.mjs';
import { BASE, BIN, poll, run, startDaemon, tagOf } from '../lib/cove.mjs';
import { leftovers } from '../lib/host.mjs';

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const serve = (dir, port) => run(BIN, ['serve', '--listen', `127.0.0.1:${port}`, '--state', dir, '--base', BASE, '--pool', '2', '--network', 'none'], { deadline: 20_000 });

/** A state directory on which serving must fail and leave nothing. */
async function failsIn(port) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-test-'));
  const r = await serve(dir, port);
  await poll('nothing is left', async () => (await leftovers(dir, tagOf(dir))).length === 0, { deadline: 5000 });
  fs.rmSync(dir, { recursive: true });
  return r;
}

test('a second daemon on a state directory is refused, and the first goes on', async () => {
  const s = await d.sandbox();
  const p = await d.process(s.id, ['sleep', '1000']);
  const before_ = await settled(d);
  const front = d.frontPid();
  const r = await serve(d.dir, 0);
  assert.equal(r.status, 75);
  assert.equal(r.stdout, '');
  assert.equal(r.stderr, `cove serve: state directory: another cove (pid ${d.keeper.pid}) serves ${d.dir} already\n`);
  assert.equal(d.frontPid(), front);
  assert.deepEqual(await settled(d), before_);
  assert.equal((await d.get(`/v1/sandboxes/${s.id}/processes/${p.id}`)).state, 'running');
  assert.equal((await d.exec(s.id, ['echo', 'here'])).stdout, 'here\n');
  await d.del(`/v1/sandboxes/${s.id}`);
});

test('the port of another daemon is refused by name, and nothing is left of the attempt', async () => {
  const r = await failsIn(d.port);
  assert.equal(r.status, 75);
  assert.match(r.stderr, new RegExp(`^cove serve: 127\\.0\\.0\\.1:${d.port} is in use by another program$`, 'm'));
  assert.equal((await d.call('GET', '/health')).status, 200);
});

test('the port of any other program too', async () => {
  const other = net.createServer().listen(0, '127.0.0.1');
  await new Promise((r) => other.once('listening', r));
  const { port } = other.address();
  const r = await failsIn(port);
  other.close();
  assert.equal(r.status, 75);
  assert.match(r.stderr, new RegExp(`127\\.0\\.0\\.1:${port} is in use by another program`));
});

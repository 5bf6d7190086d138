// The example in examples/workspaces, as a user would run it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { poll, ROOT_DIR, startDaemon } from '../lib/cove.mjs';

let d;
before(async () => { d = await startDaemon(); });
after(() => d?.stop());

function worker(steps) {
  const p = spawn(process.execPath, [path.join(ROOT_DIR, 'examples/workspaces/worker.mjs'), 'counter', String(steps), '20'], { env: { ...process.env, COVE_URL: d.url, COVE_API_KEY: d.key } });
  const w = { p, out: '', ended: new Promise((r) => p.on('exit', (code) => r(code))) };
  for (const s of [p.stdout, p.stderr]) s.on('data', (t) => { w.out += t; });
  w.counts = () => [...w.out.matchAll(/: (\d+)$/gm)].map((m) => Number(m[1]));
  return w;
}

test('of two workers that share a workspace one is killed, and the other goes on with the same files', async () => {
  const a = worker(1000);
  const b = worker(40);
  await poll('both count', () => a.counts().length > 3 && b.counts().length > 3);
  a.p.kill('SIGKILL');
  assert.equal(await b.ended, 0, b.out);
  const all = [...a.counts(), ...b.counts()].sort((x, y) => x - y);
  assert.deepEqual(all, [...new Set(all)], 'no number was given twice');
  assert.deepEqual([a.out, b.out].map((o) => /: (\w+), epoch 1$/m.exec(o)[1]).sort(), ['attached', 'spawner']);
  assert.equal((await d.get('/v1/sandboxes')).sandboxes.length, 1);
  await poll('the dead worker holds nothing', async () => (await d.get('/v1/workspaces/counter')).turns === 0);
  const c = worker(1);
  assert.equal(await c.ended, 0, c.out);
  assert.ok(c.counts()[0] > Math.max(...b.counts()) , 'the next one goes on where they were');
});

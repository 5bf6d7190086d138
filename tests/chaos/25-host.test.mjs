// Hosts with unusual configurations.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { run, startDaemon } from '../lib/cove.mjs';
import { loopsOf } from '../lib/host.mjs';

test('a mount inside the host\'s /proc forbids no sandbox its own', async (t) => {
  const d = await startDaemon({ wrap: ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs tmpfs /proc/fs && exec "$@"', 'sh'] });
  t.after(() => d.stop());
  const s = await d.sandbox();
  assert.equal((await d.exec(s.id, ['cat', '/proc/self/comm'])).stdout, 'cat\n');
});

test('disks of a state directory that is reached by another path are not mounted a second time', async (t) => {
  const d = await startDaemon();
  const [here, other] = [d.dir, fs.mkdtempSync(path.join(os.tmpdir(), 'cove-test-'))];
  t.after(async () => {
    await d.end();
    d.dir = here;
    await run('umount', [other]);
    fs.rmdirSync(other);
    await d.restart();
    await d.stop();
  });
  const s = await d.sandbox();
  await d.kill9('both');
  assert.equal((await run('mount', ['--bind', here, other])).status, 0);
  d.dir = other;
  await d.restart();
  assert.equal(loopsOf(here).length + loopsOf(other).length, 1);
  await d.exec(s.id, 'echo kept >/workspace/f; sync');
  const n = await d.post(`/v1/sandboxes/${s.id}/snapshots`);
  const copy = await d.sandbox({ snapshot: n.id });
  assert.equal((await d.exec(copy.id, ['cat', '/workspace/f'])).stdout, 'kept\n');
});

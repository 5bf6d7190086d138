// Hosts that are arranged in unusual ways.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';

test('a mount inside the host\'s /proc forbids no sandbox its own', async (t) => {
  const d = await startDaemon({ wrap: ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs tmpfs /proc/fs && exec "$@"', 'sh'] });
  t.after(() => d.stop());
  const s = await d.sandbox();
  assert.equal((await d.exec(s.id, ['cat', '/proc/self/comm'])).stdout, 'cat\n');
});

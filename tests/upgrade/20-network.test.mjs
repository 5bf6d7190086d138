// A sandbox with a network that an older release made keeps its connections, its address and its rules under this build.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BIN, ROOT_DIR } from '../lib/cove.mjs';
import { Internet, poll, tries, WEB, WEB2 } from '../lib/internet.mjs';

let net;
let d;
before(async () => {
  net = await new Internet().open();
  const bin = execFileSync(path.join(ROOT_DIR, 'tools/build-release.sh'), ['0.1.0'], { encoding: 'utf8' }).trim();
  d = await net.daemon({ bin });
});
after(async () => {
  await d?.stop();
  await net?.close();
});

test('a connection and its rules survive the upgrade', async () => {
  const s = await d.sandbox({ network: { deny: [WEB2] } });
  const log = async () => (await d.get(`/v1/sandboxes/${s.id}/processes/drip/logs`)).chunks.map((c) => c.data).join('');
  const address = async () => (await d.exec(s.id, 'ip -4 -o addr show eth0 || hostname -I')).stdout;
  await d.process(s.id, ['curl', '-sN', `http://${WEB}/drip`], { id: 'drip' });
  await d.post(`/v1/sandboxes/${s.id}/processes/drip/wait`, { for: 'log', text: 'first', timeout_ms: 5000 });
  const before = await address();
  await d.kill9('both');
  d.bin = BIN;
  await d.restart();
  const seen = await log();
  await net.drop();
  await poll('one more line comes over the old connection', async () => (await log()).length > seen.length);
  assert.equal(await address(), before);
  assert.deepEqual(await tries(d, s.id, [['tcp', WEB, 80], ['tcp', WEB2, 80]]), ['ok', 'ECONNREFUSED']);
  await d.del(`/v1/sandboxes/${s.id}`);
  const again = await d.sandbox();
  assert.deepEqual(await tries(d, again.id, [['tcp', WEB, 80], ['tcp', WEB2, 80]]), ['ok', 'ok'], 'the rules went with it');
});

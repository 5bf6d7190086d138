// The nursery may be killed or stopped at any time.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { recordsOf, settled } from '../lib/chaos.mjs';
import { poll, startDaemon } from '../lib/cove.mjs';
import { isAlive, processesOf } from '../lib/host.mjs';

let d;
before(async () => {
  d = await startDaemon({ args: ['--pool', '0'] });
});
after(() => d?.stop());

const S = '/v1/sandboxes';

const nursery = () => processesOf(d.keeper.pid).find((p) => p.title.startsWith('cove: nursery') && p.state !== 'Z');

async function gone(all) {
  await Promise.all(all.map((s) => d.del(`${S}/${s.id}`)));
  await settled(d, { pool: 0 });
}

test('a nursery killed during a clone is replaced and all creates succeed', async () => {
  await gone([await d.sandbox()]);
  const first = nursery();
  const coming = Array.from({ length: 30 }, () => d.sandbox());
  process.kill(first.pid, 'SIGKILL');
  const all = await Promise.all(coming);
  assert.equal(new Set(all.map((s) => s.id)).size, 30);
  for (const s of all) assert.equal((await d.exec(s.id, ['echo', 'here'])).stdout, 'here\n');
  assert.notEqual(nursery().pid, first.pid);
  assert.ok(!isAlive(first.pid));
  await gone(all);
});

test('a nursery that does not answer is replaced', async () => {
  await gone([await d.sandbox()]);
  const first = nursery();
  process.kill(first.pid, 'SIGSTOP');
  const s = await d.sandbox();
  assert.equal((await d.exec(s.id, ['echo', 'here'])).stdout, 'here\n');
  assert.ok(!isAlive(first.pid));
  await gone([s]);
});

test('a keeper killed during a clone leaves nothing after the next start', async () => {
  await gone([await d.sandbox()]);
  const old = nursery();
  process.kill(old.pid, 'SIGSTOP');
  const lost = Array.from({ length: 5 }, () => d.call('POST', S, {}).catch(() => null));
  await poll('they are being made', () => recordsOf(d.dir).size === 5);
  await d.kill9('both');
  await Promise.all(lost);
  await poll('the nursery is gone with it', () => !isAlive(old.pid));
  await d.restart();
  assert.deepEqual((await settled(d, { pool: 0 })).all, []);
});

test('the nursery has no fds of the daemon and no mounts of the host', async () => {
  const s = await d.sandbox();
  const { pid } = nursery();
  const fds = fs.readdirSync(`/proc/${pid}/fd`).map((f) => fs.readlinkSync(`/proc/${pid}/fd/${f}`));
  assert.deepEqual(fds.filter((l) => l !== '/null' && l !== '/dev/null' && !l.startsWith('socket:')), []);
  const points = fs.readFileSync(`/proc/${pid}/mountinfo`, 'utf8').trim().split('\n').map((l) => l.split(' ')[4]);
  assert.deepEqual(points.sort(), ['/', '/proc', '/sys']);
  await gone([s]);
});

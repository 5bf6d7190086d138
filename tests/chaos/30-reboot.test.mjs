// The host restarts: processes are gone, files are not.
//
// Simulated: everything is killed and removed from the kernel, and the next
// daemon lives in a mount namespace with another boot id and an empty /run/cove.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { initsOf, recordsOf, settled } from '../lib/chaos.mjs';
import { poll, startDaemon, tagOf } from '../lib/cove.mjs';
import { cgroupsNamed, loopsOf, processes } from '../lib/host.mjs';

let d;
let scratch;
before(async () => {
  d = await startDaemon();
  scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-boot-'));
});
after(async () => {
  await d?.stop();
  fs.rmSync(scratch, { recursive: true, force: true });
});

const S = '/v1/sandboxes';
const AFTER_REBOOT = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && mount -t tmpfs -o mode=755 none /run/cove && exec "$@"';

/** The children first. */
function removeGroups(dir) {
  for (const e of fs.readdirSync(dir, { withFileTypes: true })) if (e.isDirectory()) removeGroups(path.join(dir, e.name));
  fs.rmdirSync(dir);
}

/** Nothing of the daemon outlives this but its state directory. */
async function powerOff() {
  await d.kill9('both'); // before anything that takes time
  const groups = cgroupsNamed(`cove-${tagOf(d.dir)}`);
  for (const g of groups) if (fs.existsSync(path.join(g, 'cgroup.kill'))) fs.writeFileSync(path.join(g, 'cgroup.kill'), '1');
  await poll('every process is gone', () => processes().every((p) => !p.cgroup.includes(`/cove-${tagOf(d.dir)}/`)));
  await poll('its groups are gone', () => {
    for (const g of groups) if (fs.existsSync(g)) removeGroups(g);
    return true;
  });
  await poll('its loop device is gone', () => loopsOf(d.dir).length === 0);
}

async function powerOn(number = 0) {
  const boot = path.join(scratch, 'boot_id');
  fs.writeFileSync(boot, `0000000${number}-1111-4222-8333-444444444444\n`);
  d.wrap = ['unshare', '-m', 'sh', '-c', AFTER_REBOOT, boot];
  await d.restart();
}

test('sandboxes of a restarted host are stopped, with their files, and resume', async () => {
  const made = await Promise.all([d.sandbox({ metadata: { n: 'a' } }), d.sandbox({ metadata: { n: 'b' }, env: { KEPT: 'yes' } }), d.sandbox()]);
  const [a, b, c] = made.map((s) => s.id);
  await d.exec(b, 'echo precious > /workspace/file; sudo mkdir /opt/x; sudo touch /opt/x/y; sync');
  await d.process(b, ['sleep', '1000'], { id: 'job' });
  const asleep = await d.sandbox({ timeout_ms: 60_000, auto_resume: true });
  await d.exec(asleep.id, 'echo dream > /workspace/file; sync');
  await d.post(`${S}/${asleep.id}/pause`);
  await d.del(`${S}/${c}`);
  await powerOff();
  await powerOn();
  const all = (await d.get(S)).sandboxes;
  const lost = all.pop();
  assert.deepEqual([lost.id, lost.state, lost.ends_at], [asleep.id, 'stopped', null], 'paused with its memory, which is gone');
  assert.match(lost.reason, /host was restarted while it was paused/);
  await d.fails(409, 'conflict', 'POST', `${S}/${lost.id}/exec`, { argv: ['true'] });
  await poll('it boots', () => d.post(`${S}/${lost.id}/resume`));
  assert.equal((await d.exec(lost.id, 'cat /workspace/file')).stdout, 'dream\n');
  await d.del(`${S}/${lost.id}`);
  assert.deepEqual(all.map((s) => [s.id, s.state, s.reason]), [a, b].map((id) => [id, 'stopped', 'the host was restarted']));
  assert.equal(initsOf(d.dir).has(b), false);
  await d.fails(409, 'conflict', 'POST', `${S}/${b}/exec`, { argv: ['true'] });

  const again = await poll('it resumes', () => d.post(`${S}/${b}/resume`));
  assert.equal(again.state, 'running');
  assert.ok(!again.reason);
  assert.notEqual(again.boot_id, made[1].boot_id);
  assert.deepEqual(again.metadata, { n: 'b' });
  assert.equal((await d.exec(b, 'cat /workspace/file; ls /opt/x; echo $KEPT; id -un')).stdout, 'precious\ny\nyes\nuser\n');
  assert.equal((await d.exec(b, ['cat', '/proc/sys/kernel/random/boot_id'])).stdout.trim(), again.boot_id);
  assert.deepEqual((await d.get(`${S}/${b}/processes`)).processes, []);
  await d.del(`${S}/${a}`); // one that was never resumed
  await settled(d);
});

test('a resumed sandbox survives the next kill, also with /run/cove lost', async () => {
  const [s] = (await d.get(S)).sandboxes;
  await d.kill9('both');
  await powerOn();
  assert.deepEqual((await d.get(S)).sandboxes, [s]);
  assert.equal((await d.exec(s.id, ['cat', '/workspace/file'])).stdout, 'precious\n');
  await settled(d);
  await d.del(`${S}/${s.id}`);
  await settled(d);
});

// The keeper does not flush what it says of a delete: the front's row was durable before it was asked.
test('a deleted sandbox does not come back because the host failed before its record was flushed', async () => {
  const kept = await d.sandbox();
  const gone = await d.sandbox();
  const records = path.join(d.dir, 'sandboxes');
  await d.exec(gone.id, 'echo x > /workspace/file; sync');
  const before = fs.readFileSync(records);
  assert.ok(before.includes(gone.id));
  await d.del(`${S}/${gone.id}`);
  await powerOff(); // at once: a row is removed only when the keeper's records have been flushed
  fs.writeFileSync(records, before);
  await powerOn(1);
  assert.deepEqual((await d.get(S)).sandboxes.map((s) => [s.id, s.state]), [[kept.id, 'stopped']]);
  await settled(d);
  assert.ok(!fs.readFileSync(records).includes(gone.id), 'its leftovers are destroyed');
  await d.del(`${S}/${kept.id}`);
  await settled(d);
});

// Stages are recorded without a flush, so the record that survives may be older than the stages.
test('a sandbox whose record is older than its stages leaves nothing after a power failure', async () => {
  const records = path.join(d.dir, 'sandboxes');
  const nursery = processes().find((p) => p.ppid === d.keeper.pid && p.title.startsWith('cove: nursery'));
  process.kill(nursery.pid, 'SIGSTOP'); // a build stands still at its third stage
  const { id } = await d.sandbox(); // from the pool, which is then filled again
  const old = await poll('a build has begun', () => {
    const bytes = fs.readFileSync(records);
    for (const [building, at] of recordsOf(d.dir)) if (/building\0.{4}birth\0/s.test(bytes.toString('latin1', at, at + 128))) return { bytes, building };
    return null;
  });
  process.kill(nursery.pid, 'SIGCONT');
  await settled(d);
  assert.ok(fs.existsSync(path.join(d.dir, 'run', old.building)), 'the build went on to its last stage');
  await powerOff();
  fs.writeFileSync(records, old.bytes);
  await powerOn(2);
  await settled(d);
  assert.ok(!fs.existsSync(path.join(d.dir, 'run', old.building)));
  await d.del(`${S}/${id}`);
});

// The page cache survives this simulation: what is tested is that the loss is reported, once and where it may have happened.
test('a sandbox whose fsync was relaxed when the host failed says so, others do not', async () => {
  const relaxed = await d.sandbox({ fsync: 'relaxed' });
  const durable = await d.sandbox();
  const stopped = await d.sandbox({ fsync: 'relaxed' }); // everything was written out when it stopped
  await d.post(`${S}/${stopped.id}/pause`, { memory: false });
  await powerOff();
  await powerOn(3);
  const at = async (id) => (await d.get(`${S}/${id}`)).writes_lost_at;
  const lost = await at(relaxed.id);
  assert.ok(Date.parse(lost) > Date.parse(relaxed.created_at));
  assert.deepEqual([await at(durable.id), await at(stopped.id)], [null, null]);
  const said = async () => (await d.get(`${S}/${relaxed.id}/logs`)).entries.filter((l) => l.level === 'warn' && /last writes may be missing/.test(l.message)).length;
  await poll('its log has it', async () => (await said()) === 1);
  assert.equal((await d.post(`${S}/${relaxed.id}/resume`)).writes_lost_at, lost);
  await d.kill9('both');
  await powerOn(3);
  assert.deepEqual([await at(relaxed.id), await said()], [lost, 1], 'once');
  for (const s of [relaxed, durable, stopped]) await d.del(`${S}/${s.id}`);
  await settled(d);
});

// A host that has run out of fds or memory: sandboxes that cannot be examined are not
// taken for gone, and requests complete when there is enough again.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { initsOf, settled } from '../lib/chaos.mjs';
import { BASE, BIN, poll, run, startDaemon } from '../lib/cove.mjs';
import { isAlive } from '../lib/host.mjs';
import { tar } from '../lib/image.mjs';

const S = '/v1/sandboxes';
let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

/** That process can open nothing while fn runs. */
async function withoutFds(pid, fn) {
  const limit = (n) => run('prlimit', ['--pid', `${pid}`, `--nofile=${n}:`]);
  const usual = /^Max open files +(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/limits`, 'utf8'))[1];
  assert.equal((await limit(3)).status, 0); // those of stdio, which it has
  try {
    return await fn();
  } finally {
    await limit(usual);
  }
}

test('a delete completes although the keeper cannot open files', async () => {
  const s = await d.sandbox();
  const init = initsOf(d.dir).get(s.id);
  await settled(d);
  await withoutFds(d.keeperPid(), async () => {
    await d.del(`${S}/${s.id}`);
    await poll('nothing of it runs', () => !isAlive(init));
  });
  await settled(d);
});

test('a daemon with too few fds does not start and ends no sandbox', async () => {
  const [running, paused] = [await d.sandbox(), await d.sandbox()];
  await d.process(running.id, ['sleep', '1000'], { id: 'job' });
  await d.post(`${S}/${paused.id}/pause`);
  await d.post(`${S}/${running.id}/snapshots`, { name: 'kept' });
  await d.api('PUT', '/v1/templates/kept', tar([{ name: 'etc/' }]));
  const see = async () => [await d.get(S), await d.get('/v1/snapshots'), await d.get('/v1/templates')];
  const seen = await see();
  await d.end(); // its pool goes down with it: that needs files
  const args = ['serve', '--listen', '127.0.0.1:0', '--state', d.dir, '--base', BASE, '--pool', '0', '--network', 'none'];
  let last = '';
  for (let n = 12; !/front/.test(last); n++) {
    const r = await run('prlimit', [`--nofile=${n}:${n}`, BIN, ...args], { deadline: 15_000 });
    last = r.stderr.trim().split('\n').at(-1);
    assert.notEqual(r.status, 0, `${n} files`);
    assert.match(last, /^cove serve: /, `${n} files`);
  }
  await d.restart();
  assert.deepEqual(await see(), seen);
  assert.equal((await d.get(`${S}/${running.id}/processes/job`)).state, 'running');
});

/** A daemon whose state directory is a file system of its own, with so much room; grow() gives it more. */
async function onSmallDisk(t, size, args) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-test-'));
  const mount = async (...words) => assert.equal((await run('mount', [...words, dir])).status, 0);
  await mount('-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs');
  const small = await startDaemon({ dir, args });
  t.after(async () => {
    await small.end();
    await run(BIN, ['stop', '--all', '--state', dir]);
    await poll('nothing of it is mounted', async () => (await run('umount', [dir])).status === 0);
    fs.rmdirSync(dir);
  });
  return Object.assign(small, { grow: (more) => mount('-o', `remount,size=${more}`) });
}

test('disks that are kept where another file system is mounted are mounted once', async (t) => {
  const small = await onSmallDisk(t, '320M', ['--disk-pool', '256M']);
  const s = await small.sandbox();
  const { ino, dev } = fs.statSync(path.join(small.dir, 'disk.img'));
  const image = `${ino} ${(dev >> 8) & 0xfff}:${(dev & 0xff) | ((dev >> 12) & 0xfff00)}`;
  await small.kill9('both');
  await small.restart();
  const all = (await run('losetup', ['-nlO', 'BACK-INO,BACK-MAJ:MIN'])).stdout.split('\n').map((l) => l.trim().replace(/ +/, ' '));
  assert.equal(all.filter((l) => l === image).length, 1, 'loop devices on the image');
  await small.exec(s.id, 'echo kept >/workspace/f');
});

/** Writes to a file in the state directory until nothing fits any more. */
function fillUp(d) {
  const fill = fs.openSync(path.join(d.dir, 'fill'), 'w');
  assert.throws(() => {
    for (;;) fs.writeSync(fill, Buffer.alloc(4096));
  }, /ENOSPC/);
  fs.closeSync(fill);
}

test('lost blocks of the disk image are reported, and files are there after stop --all', async (t) => {
  const small = await onSmallDisk(t, '320M', ['--disk-pool', '256M']);
  const s = await small.sandbox();
  await small.exec(s.id, 'echo kept >/workspace/f; sync');
  // all that btrfs has not used yet: its first chunks are at the beginning
  await run('fallocate', ['-p', '-o', '36M', '-l', '220M', path.join(small.dir, 'disk.img')]);
  fillUp(small);
  await small.exec(s.id, 'head -c 100M /dev/urandom >/workspace/big; for i in $(seq 8000); do echo $i >/workspace/$i; done; head -c 20M /dev/urandom | split -b 1500 - /workspace/x; sync');
  await small.fails(503, 'unavailable', 'POST', S, {});
  assert.match((await small.fails(503, 'unavailable', 'POST', `${S}/${s.id}/snapshots`)).message, /read-only/);
  const { json: ready } = await small.call('GET', '/ready', undefined, { key: null });
  assert.deepEqual([ready.ok, ready.reason, ready.stage], [false, 'failing', 'disk'], 'broken, not full');
  await small.grow('800M');
  await small.kill9('both');
  await assert.rejects(small.restart(), /read-only after a failed write.*cove stop --all/);
  assert.equal((await run(BIN, ['stop', '--all', '--state', small.dir])).status, 0);
  await small.restart();
  assert.equal((await small.post(`${S}/${s.id}/resume`)).state, 'running');
  assert.equal((await small.exec(s.id, 'cat /workspace/f; echo more >>/workspace/f; echo $?')).stdout, 'kept\n0\n');
});

test('in a full state directory sandboxes can still be deleted, paused and given time', async (t) => {
  const small = await onSmallDisk(t, '320M', ['--disk-pool', '256M']);
  const [a, b] = [await small.sandbox(), await small.sandbox()];
  fillUp(small);
  await small.del(`${S}/${a.id}`);
  assert.equal((await small.post(`${S}/${b.id}/pause`)).state, 'paused');
  assert.equal((await small.post(`${S}/${b.id}/resume`, { timeout_ms: 3_600_000 })).state, 'running');
  await small.kill9('front');
  await small.back();
  assert.deepEqual((await small.get(S)).sandboxes.map((s) => s.id), [b.id]);
  fs.unlinkSync(path.join(small.dir, 'fill'));
});

test('idle connections do not use up the fds of active ones', async (t) => {
  const few = await startDaemon({ wrap: ['prlimit', '--nofile=1024:1024'] });
  const { id } = await few.sandbox();
  const some = () => Promise.all(Array.from({ length: 32 }, () => few.exec(id, ['sleep', '0.3'])));
  await some(); // their connections stay
  const idle = await Promise.all(Array.from({ length: 1100 }, async () => {
    const c = net.connect(few.port, '127.0.0.1').on('error', () => {});
    await once(c, 'connect');
    return c;
  }));
  t.after(async () => {
    for (const c of idle) c.destroy();
    await few.stop();
  });
  await some();
});

// A host whose disk fills up: acknowledged data is kept, sandboxes keep running, and
// everything works again when there is room. Each daemon here has a small ext4 of its own.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { BIN, poll, run, startDaemon } from '../lib/cove.mjs';
import { tar } from '../lib/image.mjs';

const S = '/v1/sandboxes';
const MiB = 1 << 20;

/** Runs a program that has to succeed. */
async function sh(file, ...args) {
  const r = await run(file, args);
  assert.equal(r.status, 0, `${file} ${args.join(' ')}: ${r.stderr}`);
  return r.stdout;
}

/** A file system of that size, and a directory in it for a daemon's state. */
async function host(t, size, type = 'ext4') {
  const at = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-test-host-'));
  const image = `${at}.img`;
  fs.closeSync(fs.openSync(image, 'w'));
  fs.truncateSync(image, size);
  await sh(`mkfs.${type}`, '-q', '-m', '0', '-b', '4096', '-E', 'lazy_itable_init=1', image);
  await sh('mount', '-o', 'loop', image, at);
  fs.chmodSync(at, 0o711);
  const dir = path.join(at, 'state');
  fs.mkdirSync(dir);
  t.after(async () => {
    await run(BIN, ['stop', '--all', '--state', dir]);
    await poll('the host file system is free', async () => (await run('umount', [at])).status === 0);
    fs.rmdirSync(at);
    fs.unlinkSync(image);
  });
  const free = () => {
    const s = fs.statfsSync(at);
    return s.bavail * s.bsize;
  };
  const filler = path.join(at, 'filler');
  /** Another program fills it, to the last block, or leaves so much. */
  const fill = async (leave = 0) => {
    for (let size = free() - leave; size >= 4096; size = Math.min(free() - leave, Math.floor(size / 2))) await run('fallocate', ['-o', `${fs.statSync(filler, { throwIfNoEntry: false })?.size ?? 0}`, '-l', `${size}`, filler]);
  };
  return { dir, at, free, fill, empty: () => fs.rmSync(filler, { force: true }) };
}

async function onHost(t, size, args, type) {
  const h = await host(t, size, type);
  const d = await startDaemon({ dir: h.dir, args });
  t.after(() => d.end());
  return { h, d };
}

const put = (d, id, name, body) => d.call('PUT', `${S}/${id}/files?path=${name}`, body);

/** What btrfs has, from its superblock, and what of the image is allocated. */
function sizes(d) {
  const fd = fs.openSync(path.join(d.dir, 'disk.img'), 'r');
  const total = Buffer.alloc(8);
  fs.readSync(fd, total, 0, 8, 65536 + 0x70);
  const { blocks, size } = fs.fstatSync(fd);
  fs.closeSync(fd);
  return { pool: size, btrfs: Number(total.readBigUInt64LE()), allocated: blocks * 512 };
}
const isBacked = (d) => {
  const { btrfs, allocated } = sizes(d);
  return allocated >= btrfs;
};
/** btrfs's own tool, on the disks as the keeper has them mounted. */
const inside = (d, ...words) => sh('nsenter', '-t', `${d.keeperPid()}`, '-m', 'btrfs', ...words, path.join(d.dir, 'disk'));
/** Has btrfs look for chunks that are empty: by itself it does so every 30 s. */
const commit = (d) => inside(d, 'filesystem', 'sync');
/** What anybody is told of it, and what an operator is. */
async function shown(d) {
  const ready = await d.call('GET', '/ready', undefined, { key: null });
  const { text } = await d.call('GET', '/metrics');
  const of = (name) => Number(new RegExp(`^cove_disk_${name} (\\d+)$`, 'm').exec(text)[1]);
  const doctor = await run(BIN, ['doctor', '--state', d.dir]);
  return { status: ready.status, ready: ready.json, of, doctor: /^(\w+) +reserve +(.*)$/m.exec(doctor.stdout).slice(1) };
}

const full = (d, method, url, body) => d.fails(507, 'disk_full', method, url, body);

test('acknowledged data survives a full host, a kill and a restart', async (t) => {
  const { h, d } = await onHost(t, 1500 * MiB, ['--disk-pool', '1G']);
  const s = await d.sandbox();
  const bytes = crypto.randomBytes(3 * MiB);
  assert.equal((await put(d, s.id, 'f', bytes)).status, 200);
  await h.fill();
  await d.exec(s.id, 'sync').catch(() => {});
  await d.kill9('both');
  await d.restart();
  h.empty();
  const got = await d.call('GET', `${S}/${s.id}/files?path=f`);
  assert.ok(got.bytes.equals(bytes), `${got.bytes.length} bytes`);
});

test('on a full host tenants see ENOSPC and creates are refused, until there is room', async (t) => {
  const { h, d } = await onHost(t, 2048 * MiB, ['--disk-pool', '1500M', '--disk-reserve', '128M']);
  const [a, b, c] = [await d.sandbox(), await d.sandbox(), await d.sandbox()];
  const kept = crypto.randomBytes(MiB);
  await put(d, a.id, 'kept', kept);
  let s;
  await poll('what was written is counted', async () => (s = await shown(d)).of('used_bytes') >= MiB);
  assert.deepEqual([s.status, s.ready], [200, { ok: true, reserve: 'enough' }]);
  assert.deepEqual([s.of('bytes'), s.of('reserve_wanted_bytes'), s.of('low'), s.of('backed')], [1500 * MiB, 128 * MiB, 0, 1]);
  assert.equal(s.of('allocated_bytes'), sizes(d).btrfs);
  assert.ok(s.of('reserve_bytes') >= 128 * MiB && s.of('free_bytes') > 1000 * MiB);
  assert.match(s.doctor.join(), /^ok,256 MiB of disks, .* free; the host can give 1\d\d\d more, the pool ends at 1500/);
  await d.process(a.id, 'while :; do echo tick; sleep 0.1; done', { id: 'clock' });
  await h.fill();
  await d.exec(c.id, 'for i in $(seq 2000); do head -c 1000 /dev/urandom >$i || break; done; true');
  const writer = await d.exec(b.id, 'head -c 1200M /dev/zero >/workspace/big; echo $?; sync');
  assert.match(writer.stderr, /No space left/);
  assert.equal((await put(d, a.id, 'more', crypto.randomBytes(3 * MiB))).status, 507);
  assert.match((await full(d, 'POST', S, {})).message, /make room/);
  await full(d, 'POST', `${S}/${a.id}/snapshots`);
  await full(d, 'PUT', '/v1/templates/t', tar([{ name: 'etc/' }]));
  s = await shown(d);
  assert.deepEqual([s.status, s.ready], [503, { ok: false, reason: 'full', lacks: 'disk', reserve: 'low' }]);
  assert.deepEqual([s.of('low'), s.of('backed'), s.doctor[0]], [1, 1, 'note']);
  // nothing of what runs is hurt, and what gives room is done
  assert.equal((await d.get(`${S}/${a.id}/processes/clock`)).state, 'running');
  await d.del(`${S}/${c.id}`);
  assert.equal((await d.post(`${S}/${a.id}/pause`)).state, 'paused');
  assert.equal((await d.post(`${S}/${a.id}/resume`)).state, 'running');
  await d.post(`${S}/${a.id}/timeout`, { timeout_ms: 3_600_000 });
  for (let i = 0, status = 201; status === 201 && i < 100; i++) {
    ({ status } = await d.call('POST', '/v1/keys', { name: `k${i}` }));
    assert.ok([201, 507].includes(status), `${status}`);
  }
  await d.exec(b.id, 'rm /workspace/big; sync');
  assert.equal((await put(d, a.id, 'more', crypto.randomBytes(3 * MiB))).status, 200);
  await d.exec(b.id, 'head -c 1200M /dev/zero >/workspace/big; sync');
  await full(d, 'POST', S, {});
  h.empty();
  await poll('creates work again', async () => (await d.call('POST', S, {})).status === 201);
  assert.equal((await d.call('GET', '/ready', undefined, { key: null })).status, 200);
  assert.equal((await d.get(`${S}/${a.id}/processes/clock`)).state, 'running');
  assert.equal((await d.exec(b.id, 'head -c 300M /dev/zero >/workspace/big2; echo $?; sync')).stdout, '0\n');
  assert.ok((await d.call('GET', `${S}/${a.id}/files?path=kept`)).bytes.equals(kept));
  assert.ok(isBacked(d));
});

test('a fast writer gets no ENOSPC while the host has room', async (t) => {
  const { d } = await onHost(t, 4096 * MiB, ['--disk-pool', '3G', '--disk-reserve', '256M']);
  const s = await d.sandbox();
  assert.ok(sizes(d).btrfs < 512 * MiB);
  const r = await d.exec(s.id, 'for i in 1 2; do head -c 1200M /dev/zero >/workspace/f$i & done; wait -n && wait -n; echo $?');
  assert.equal(r.stdout, '0\n', r.stderr);
  assert.ok(sizes(d).btrfs > 2400 * MiB);
  assert.ok(isBacked(d));
});

test('an image that an earlier release made, as large as the pool and sparse, is shrunk and backed', async (t) => {
  const { h, d } = await onHost(t, 2048 * MiB, ['--disk-reserve', '128M']);
  await d.end();
  await sh(BIN, 'stop', '--all', '--state', h.dir);
  const image = path.join(h.dir, 'disk.img');
  fs.closeSync(fs.openSync(image, 'w', 0o600));
  fs.truncateSync(image, 8192 * MiB);
  await sh('mkfs.btrfs', '-q', '-m', 'single', '-d', 'single', image);
  await h.fill(60 * MiB);
  await d.restart();
  assert.match(d.log, /no room for all/);
  await full(d, 'POST', S, {});
  assert.ok(!isBacked(d));
  h.empty();
  await poll('all of it is backed', async () => (await d.call('GET', '/ready')).json.reserve === 'enough');
  const s = await d.sandbox();
  assert.ok(isBacked(d));
  const { pool, btrfs } = sizes(d);
  assert.equal(pool, 8192 * MiB);
  assert.ok(btrfs < 512 * MiB, `${btrfs / MiB} MiB`);
  assert.equal((await d.exec(s.id, 'head -c 700M /dev/zero >f; sync; echo $?')).stdout, '0\n');
  assert.ok(isBacked(d));
});

test('a host without fallocate is reported, and refuses creates before it is full', async (t) => {
  const { h, d } = await onHost(t, 340 * MiB, ['--disk-pool', '2G', '--disk-reserve', '128M'], 'ext2');
  const s = await d.sandbox();
  assert.match(d.log, /cannot allocate ahead/);
  let now = await shown(d);
  assert.deepEqual([now.status, now.ready.reserve, now.of('backed'), now.doctor[0]], [200, 'unbacked', 0, 'note']);
  assert.equal((await d.exec(s.id, 'head -c 30M /dev/zero >f; sync; echo $?')).stdout, '0\n');
  fs.writeFileSync(path.join(h.at, 'filler'), Buffer.alloc(h.free() - 12 * MiB));
  await full(d, 'POST', S, {});
  now = await shown(d);
  assert.deepEqual([now.status, now.ready.reserve, now.of('low')], [503, 'low', 1]);
  assert.equal((await d.exec(s.id, 'echo still')).stdout, 'still\n');
  h.empty();
  await poll('creates work again', async () => (await d.call('POST', S, {})).status === 201);
});

test('space of deleted files returns to the host', async (t) => {
  const { h, d } = await onHost(t, 2048 * MiB, ['--disk-pool', '1500M', '--disk-reserve', '128M']);
  const before = h.free();
  const s = await d.sandbox();
  assert.equal((await d.exec(s.id, 'head -c 800M /dev/zero >f; echo $?; sync')).stdout, '0\n');
  assert.ok(h.free() < before - 700 * MiB, `${h.free() / MiB} of ${before / MiB} MiB free`);
  await d.del(`${S}/${s.id}`);
  await poll('the host has its space again', async () => {
    // btrfs may keep the last thing that was deleted until something else is
    await d.del(`${S}/${(await d.sandbox()).id}`);
    await commit(d);
    return h.free() > before - 300 * MiB;
  }, { deadline: 30_000, every: 200 });
  assert.ok(isBacked(d));
});

test('a kill at any moment of growing and shrinking leaves a whole file system', async (t) => {
  const { d } = await onHost(t, 2048 * MiB, ['--disk-pool', '1500M', '--disk-reserve', '64M']);
  const s = await d.sandbox();
  const kept = crypto.randomBytes(2 * MiB);
  await put(d, s.id, 'kept', kept);
  await d.process(s.id, 'while :; do head -c 400M /dev/zero >f; sync; rm f; sync; sleep 4; done', { id: 'tide' });
  let changes = 0;
  for (let i = 0; i < 8; i++) {
    const was = sizes(d).btrfs;
    changes += await poll('its size changes', () => sizes(d).btrfs !== was, { every: 1, deadline: 2000 }).catch(() => false);
    await d.kill9('both');
    await d.restart();
    assert.equal((await d.get(`${S}/${s.id}/processes/tide`)).state, 'running');
  }
  assert.ok(changes >= 2, `${changes} changes of size`);
  await poll('all of it is backed', () => isBacked(d));
  assert.ok((await d.call('GET', `${S}/${s.id}/files?path=kept`)).bytes.equals(kept));
  await d.post(`${S}/${s.id}/processes/tide/kill`, { grace_ms: 0 });
  await poll('every checksum is right', async () => (await inside(d, 'scrub', 'start', '-B')).includes('no errors found'));
});

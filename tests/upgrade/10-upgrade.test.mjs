// Every release that CHANGES.md names a commit for is built from the history, fills a state directory with
// everything it can make, and is killed; this build must find all of it. Then the way back.
//
// When a release adds something that is kept, it gets a line in `made` and in `check`.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { Cloudflare } from '../lib/cloudflare.mjs';
import { initsOf, settled } from '../lib/chaos.mjs';
import { BASE, BIN, Daemon, poll, ROOT_DIR, run } from '../lib/cove.mjs';
import { isAlive } from '../lib/host.mjs';
import { openSession, Session } from '../lib/session.mjs';
import { Ws } from '../lib/ws.mjs';

const S = '/v1/sandboxes';
const releases = [...fs.readFileSync(path.join(ROOT_DIR, 'CHANGES.md'), 'utf8').matchAll(/^## (\S+)\n\nCommit [0-9a-f]{40}\b/gm)].map((m) => m[1]);
const ARGS = ['--mounts', 'data', '--disk', '256M'];
const COUNT = 'i=0; while :; do echo $((i++)); sleep 0.01; done';

test('CHANGES.md names at least one release to upgrade from', () => {
  assert.ok(releases.includes('0.1.0'));
});

const write = async (d, id, text) => assert.equal((await d.exec(id, `printf %s '${text}' >/workspace/f; sync`)).exit_code, 0);
const read = async (d, id) => (await d.exec(id, ['cat', '/workspace/f'])).stdout;
const connect = async (d, m, since) => Ws.connect(d, `${S}/${m.term.sandbox}/terminals/${m.term.id}/connect?since=${since}`);

/** A root filesystem of one file, for a template: this host's busybox is not to be relied on. */
function rootfs(dir) {
  fs.mkdirSync(path.join(dir, 'etc'), { recursive: true });
  fs.writeFileSync(path.join(dir, 'etc', 'mark'), 'of the template\n');
  return dir;
}

/** Everything that is kept, made by the old release. */
async function made(d) {
  const m = {};
  m.up = await d.sandbox({ metadata: { who: 'up' }, env: { A: '1' } });
  await write(d, m.up.id, 'up');
  m.process = await d.process(m.up.id, COUNT, { id: 'count' });
  m.session = (await openSession(d, m.up.id, { id: 'work' })).id;
  await new Session(d, m.up.id, { id: 'work' }).exec('cd /usr; n=42; sleep 1000 & job=$!');
  m.term = { sandbox: m.up.id, ...(await d.post(`${S}/${m.up.id}/terminals`, { id: 'tty', argv: ['bash', '--norc'] })) };
  const ws = await connect(d, m, 0);
  ws.send('echo se""en\n');
  await ws.shows('seen');
  ws.cut();

  m.paused = await d.sandbox();
  await write(d, m.paused.id, 'paused');
  await d.process(m.paused.id, ['sleep', '1000'], { id: 'still' });
  m.paused = await d.post(`${S}/${m.paused.id}/pause`);
  m.stopped = await d.sandbox();
  await write(d, m.stopped.id, 'stopped');
  m.stopped = await d.post(`${S}/${m.stopped.id}/pause`, { memory: false });

  m.snapshot = await d.post(`${S}/${m.up.id}/snapshots`, { name: 'snap' });
  m.fromSnapshot = await d.sandbox({ snapshot: m.snapshot.id });
  const dir = fs.mkdtempSync('/tmp/cove-rootfs-');
  assert.equal((await d.cli(['template', 'add', 'plain', rootfs(dir)])).status, 0);
  assert.equal((await d.cli(['template', 'alias', 'plain', 'other'])).status, 0);
  fs.rmSync(dir, { recursive: true });
  m.onTemplate = await d.sandbox({ template: 'plain' });

  m.cloudflare = new Cloudflare(d);
  await m.cloudflare.call('POST', '/mount', { binding: 'data', mountPath: '/mnt/data', options: {} });
  assert.equal((await m.cloudflare.sh('echo volume >/mnt/data/f; echo named >/workspace/f; sync')).exit, 0);
  m.key = await d.post('/v1/keys', { name: 'second' });
  m.theirs = await d.post(S, {}, { key: m.key.key });
  m.list = (await d.get(S)).sandboxes;
  return m;
}

const ids = (list) => list.map((s) => s.id).sort();

/** All of it, seen through this build; what only one look may do is left to the second. */
async function check(d, m) {
  // what a release did not know: no further limits, every write durable
  const unknown = { key: 'root', fsync: 'durable', writes_lost_at: null };
  assert.deepEqual((await d.get(S)).sandboxes, m.list.map((s) => ({ ...unknown, ...s, limits: { bandwidth: 0, disk_io: 0, ...s.limits } })));
  assert.deepEqual(ids((await d.get(S, { key: m.key.key })).sandboxes), [m.theirs.id]);
  assert.equal(await read(d, m.up.id), 'up');
  assert.equal(await read(d, m.fromSnapshot.id), 'up');

  const numbers = async () => (await d.call('GET', `${S}/${m.up.id}/processes/count/logs`, undefined, { headers: { accept: 'application/octet-stream' } })).text.split('\n').slice(0, -1).map(Number);
  const seen = await numbers();
  assert.deepEqual(seen, seen.map((_, i) => i), 'no line of its output is missing');
  await poll('it goes on counting', async () => (await numbers()).length > seen.length);
  const work = new Session(d, m.up.id, { id: 'work' });
  assert.equal(await work.out('echo $n $PWD; kill -0 $job && jobs | wc -l'), '42 /usr\n1\n');
  const ws = await connect(d, m, 0);
  await ws.shows('seen');
  ws.send('echo ag""ain\n');
  await ws.shows('again');
  ws.cut();

  assert.deepEqual((await d.get('/v1/snapshots')).snapshots.map(({ damaged, ...s }) => s), [m.snapshot]);
  const again = await d.sandbox({ snapshot: 'snap' });
  assert.equal(await read(d, again.id), 'up');
  await d.del(`${S}/${again.id}`);
  const names = (await d.get('/v1/templates')).templates.map((t) => [t.name, t.state]);
  assert.deepEqual(names.sort(), [['base', 'ready'], ['other', 'ready'], ['plain', 'ready']]);
  for (const template of ['plain', 'other']) {
    const s = await d.sandbox({ template });
    assert.equal((await d.call('GET', `${S}/${s.id}/files?path=/etc/mark`)).text, 'of the template\n');
    await d.del(`${S}/${s.id}`);
  }
  assert.equal((await m.cloudflare.sh('cat /mnt/data/f /workspace/f')).stdout, 'volume\nnamed\n');
}

/** Pause, resume and boot, by this build, of what the old one left. */
async function use(d, m) {
  assert.equal((await d.post(`${S}/${m.paused.id}/resume`)).state, 'running');
  assert.equal((await d.get(`${S}/${m.paused.id}/processes/still`)).state, 'running');
  assert.equal(await read(d, m.paused.id), 'paused');
  assert.equal((await d.post(`${S}/${m.stopped.id}/resume`)).state, 'running');
  assert.equal(await read(d, m.stopped.id), 'stopped');
  for (const id of [m.up.id, m.onTemplate.id, m.fromSnapshot.id]) {
    await d.post(`${S}/${id}/pause`, { memory: false });
    assert.equal((await d.post(`${S}/${id}/resume`)).state, 'running');
  }
  assert.equal(await read(d, m.fromSnapshot.id), 'up');
  const { forks } = await d.post(`${S}/${m.up.id}/fork`, { count: 1 });
  assert.equal(await read(d, forks[0].sandbox.id), 'up');
}

for (const release of releases) {
  describe(`from ${release}`, () => {
    let d, m, old;
    after(() => d?.stop());

    test('everything that it made is there after the upgrade', async () => {
      old = execFileSync(path.join(ROOT_DIR, 'tools/build-release.sh'), [release], { encoding: 'utf8' }).trim();
      d = await new Daemon({ bin: old, args: ARGS }).start();
      m = await made(d);
      const inits = initsOf(d.dir);
      await d.kill9('both');
      d.bin = BIN;
      await d.restart();
      await check(d, m);
      for (const s of m.list.filter((s) => s.state !== 'stopped')) assert.ok(isAlive(inits.get(s.id)), `the init of ${s.id} runs on`);
    });

    test('the old release refuses to start on this build\'s state and does not change it', async () => {
      await d.end();
      const inits = initsOf(d.dir);
      const r = await run(old, ['serve', '--listen', '127.0.0.1:0', '--state', d.dir, '--base', BASE, '--network', 'none', ...ARGS], { deadline: 30_000 });
      assert.ok(r.status > 0, `status ${r.status} ${r.signal}`);
      assert.match(r.stderr.trim().split('\n').at(-1), /^cove serve: /);
      const stop = await run(old, ['stop', '--all', '--state', d.dir]);
      assert.ok(stop.status > 0, 'nor does it stop anything');
      assert.deepEqual(initsOf(d.dir), inits);
      await d.restart();
      await check(d, m);
    });

    test('sandboxes of the old release can be paused, booted, forked and deleted', async () => {
      await use(d, m);
      await d.kill9('both');
      await d.restart();
      assert.equal(await read(d, m.stopped.id), 'stopped');
      for (const s of (await d.get(S)).sandboxes) await d.del(`${S}/${s.id}`);
      await d.del(`${S}/${m.theirs.id}`, { key: m.key.key });
      await d.del(`/v1/snapshots/${m.snapshot.id}`);
      for (const name of ['plain', 'other']) await d.del(`/v1/templates/${name}`);
      await settled(d);
    });
  });
}

// A host without btrfs, accepted by the operator (no-disk-limit): pause, snapshots and forks
// work, by copying files.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BIN, poll, run, startDaemon } from '../lib/cove.mjs';

let d;
// without mkfs.btrfs there is no image of one
const wrap = ['unshare', '-m', 'sh', '-c', 'mount --bind /bin/false "$(readlink -f /sbin/mkfs.btrfs)" && exec "$@"', 'sh'];
before(async () => {
  d = await startDaemon({ wrap, args: ['--accept', 'no-disk-limit'] });
});
after(() => d?.stop());

const S = '/v1/sandboxes';
const sh = async (id, text) => {
  const r = await d.exec(id, text);
  assert.equal(r.exit_code, 0, `${text}: ${r.stderr}`);
  return r.stdout;
};

test('without btrfs a snapshot is a copy, and new sandboxes start from it', async () => {
  assert.match(d.log, /WITHOUT A LIMIT/);
  const a = await d.sandbox();
  await sh(a.id, 'cd /workspace; echo one > f; ln f g; sudo rm /etc/issue; sudo mkdir /opt/d; sudo chown 5:6 /opt/d; truncate -s 1G hole');
  const snap = await d.post(`${S}/${a.id}/snapshots`);
  assert.ok(snap.bytes > 0 && snap.bytes < 100 * 2 ** 20, `${snap.bytes}: not the template, and holes are holes`);
  await sh(a.id, 'echo two > /workspace/f');
  const b = await d.sandbox({ snapshot: snap.id });
  assert.equal(await sh(b.id, 'cd /workspace; cat f; stat -c %h g; stat -c %s hole; ls /etc/issue 2>/dev/null || echo none; stat -c %u:%g /opt/d'), 'one\n2\n1073741824\nnone\n5:6\n');
  const { forks } = await d.post(`${S}/${b.id}/fork`, { count: 2 });
  for (const f of forks) assert.equal(await sh(f.sandbox.id, 'cat /workspace/f'), 'one\n');
  await d.del(`/v1/snapshots/${snap.id}`);
  assert.equal(await sh(b.id, 'cat /workspace/f'), 'one\n');
  await d.post(`${S}/${b.id}/pause`);
  await d.post(`${S}/${b.id}/resume`);
  for (const s of [a, b, ...forks.map((f) => f.sandbox)]) await d.del(`${S}/${s.id}`);
});

test('a tree deeper than PATH_MAX is deleted with its sandbox', async () => {
  const a = await d.sandbox();
  await sh(a.id, `python3 -c '
import os
for i in range(1000):
    for name in "lifted-%d" % i, "beside":
        os.mkdir(name)
    open("beside/file", "w").close()
    os.chdir("lifted-%d" % i)
'`);
  const disk = path.join(d.dir, 'disk', a.id);
  assert.ok(fs.existsSync(disk), 'it lies there');
  await d.del(`${S}/${a.id}`);
  // a rename for every level, each a few ms on a host that writes a lot
  await poll('nothing of it is left', () => !fs.existsSync(disk), { deadline: 60_000 });
});

test('cove stop --all works without --accept', async () => {
  const s = await d.sandbox();
  const r = await run(wrap[0], [...wrap.slice(1), BIN, 'stop', '--all', '--state', d.dir]);
  assert.equal(r.status, 0, r.stderr);
  await d.restart();
  assert.equal((await d.get(`${S}/${s.id}`)).state, 'stopped');
});

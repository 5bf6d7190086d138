// The kernel of Debian 12 lacks features of newer ones, and Cove has a fallback for each
// (docs/architecture.md). These tests use the fallbacks on any kernel.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { ROOT_DIR, run, startDaemon } from '../lib/cove.mjs';

let d;
let scratch;
before(async () => {
  scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-old-'));
  const wrap = path.join(scratch, 'old-kernel');
  const r = await run('gcc', ['-Wall', '-Wextra', '-Werror', '-o', wrap, path.join(ROOT_DIR, 'tests/lib/old-kernel.c')]);
  assert.equal(r.status, 0, r.stderr);
  d = await startDaemon({ wrap: [wrap] });
});
after(async () => {
  await d?.stop();
  fs.rmSync(scratch, { recursive: true, force: true });
});

const S = '/v1/sandboxes';
const sh = async (id, text) => {
  const r = await d.exec(id, text);
  assert.equal(r.exit_code, 0, `${text}: ${r.stderr}`);
  return r.stdout;
};
const put = (id, file, body, query = '') => d.api('PUT', `${S}/${id}/files?path=${file}${query}`, Buffer.from(body));

test('overlays are made from layers with paths, and no layer stays mounted', async () => {
  const all = await Promise.all(Array.from({ length: 12 }, () => d.sandbox()));
  assert.match(await sh(all[0].id, 'cat /proc/self/mountinfo'), /overlay cove rw,lowerdir=\/proc\/self\/fd\/\d+,/);
  for (const s of all) assert.equal(await sh(s.id, 'sudo rm /etc/issue; sudo mv /usr/share/doc /usr/share/papers; echo $(id -un)'), 'user\n');
  assert.doesNotMatch(fs.readFileSync(`/proc/${d.keeperPid()}/mountinfo`, 'utf8'), /\/layers /);
  await Promise.all(all.map((s) => d.del(`${S}/${s.id}`)));
});

test('snapshots are layers like others', async () => {
  const a = await d.sandbox();
  await sh(a.id, 'echo one > /workspace/f; sudo rm /etc/issue');
  const snap = await d.post(`${S}/${a.id}/snapshots`);
  const b = await d.sandbox({ snapshot: snap.id });
  assert.equal(await sh(b.id, 'cat /workspace/f; ls /etc/issue 2>/dev/null || echo none'), 'one\nnone\n');
  const { forks } = await d.post(`${S}/${b.id}/fork`, { count: 2 });
  for (const f of forks) assert.equal(await sh(f.sandbox.id, 'cat /workspace/f'), 'one\n');
  for (const s of [a, b, ...forks.map((f) => f.sandbox)]) await d.del(`${S}/${s.id}`);
  await d.del(`/v1/snapshots/${snap.id}`);
});

test('a sandbox has as many layers as on a new kernel: more than one argument of fsconfig holds', async () => {
  let s = await d.sandbox();
  for (let i = 0; i < 16; i++) {
    await sh(s.id, `echo ${i} >> /workspace/log`);
    const snap = await d.post(`${S}/${s.id}/snapshots`);
    const next = await d.sandbox({ snapshot: snap.id });
    await d.del(`${S}/${s.id}`);
    await d.del(`/v1/snapshots/${snap.id}`);
    s = next;
  }
  assert.equal(await sh(s.id, 'wc -l < /workspace/log'), '16\n');
  await d.del(`${S}/${s.id}`);
});

test('files are written, replaced and copied without leaving temporary files', async () => {
  const { id } = await d.sandbox();
  const big = Buffer.alloc(3 << 20, 'abc');
  await put(id, '/workspace/new', big, '&atomic=1');
  await put(id, '/workspace/plain', big);
  await put(id, '/workspace/plain', 'short');
  await sh(id, 'chmod 750 /workspace/plain; echo old > /workspace/over; chmod 600 /workspace/over');
  await put(id, '/workspace/over', big, '&atomic=1');
  await d.post(`${S}/${id}/files/copy?path=/workspace&to=/tmp/copy`);
  await d.post(`${S}/${id}/files/copy?path=/workspace/plain&to=/tmp/copy/over&overwrite=1`);
  const seen = await d.exec(id, 'cd /tmp/copy; stat -c "%n %a %U %s" *; cat over; ls -A . /workspace | grep cove-');
  assert.equal(seen.stdout, `new 644 user ${big.length}\nover 750 user 5\nplain 750 user 5\nshort`);
  assert.equal((await d.exec(id, 'cmp /workspace/new /workspace/over && stat -c %a /workspace/over')).stdout, '600\n');
});

// A watch has only the rights of its user.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';

let d, s, other;
before(async () => {
  d = await startDaemon({});
  [s, other] = await Promise.all([d.sandbox(), d.sandbox()]);
});
after(() => d?.stop());

const sh = async (command, user) => {
  const r = await d.exec(s.id, command, { user });
  assert.equal(r.exit_code, 0, r.stderr);
};
const watch = (query) => `/v1/sandboxes/${s.id}/files/watch?${new URLSearchParams(query)}`;

test('a user cannot watch a directory that only root may read', async () => {
  await sh('mkdir -m 700 /root/secret', 'root');
  for (const path of ['/root/secret', '/root', '/workspace/../root/secret', '/proc/1/root/root']) await d.fails(403, 'denied', 'GET', watch({ path }));
  await sh('ln -s /root/secret /workspace/link');
  await d.fails(403, 'denied', 'GET', watch({ path: '/workspace/link' }));
});

test('a watch shows nothing below a directory that only root may read', async () => {
  await sh('mkdir -p /workspace/t/open && mkdir -m 711 /workspace/t/closed && mkdir -m 777 /workspace/t/closed/in', 'root');
  const r = await d.sse(watch({ path: '/workspace/t', recursive: 1, coalesce_ms: 0 }));
  await r.until('ready');
  await sh('cd /workspace/t; touch closed/hidden closed/in/hidden; mkdir -m 700 later; touch later/hidden; touch open/seen', 'root');
  const seen = await r.until((e) => e.data.path === 'open/seen');
  assert.ok(!seen.some((e) => /hidden/.test(e.data.path ?? '')), JSON.stringify(seen));
  r.close();
});

test('a watch is not led elsewhere by a link that takes the place of a directory', async () => {
  await sh('mkdir -p /workspace/u /workspace/elsewhere');
  const r = await d.sse(watch({ path: '/workspace/u', recursive: 1, coalesce_ms: 0, user: 'root' }));
  await r.until('ready');
  await sh('cd /workspace/u; for i in $(seq 100); do mkdir d; rmdir d; ln -s ../elsewhere d; touch ../elsewhere/f$i; rm d; done; touch last');
  const seen = await r.until((e) => e.data.path === 'last');
  assert.ok(!seen.some((e) => /\bf\d/.test(e.data.path ?? '')));
  r.close();
});

test('a watch of another sandbox cannot be read', async () => {
  const w = await d.post(`/v1/sandboxes/${s.id}/watches`, { path: '/workspace' });
  await d.fails(404, 'not_found', 'GET', `/v1/sandboxes/${other.id}/watches/${w.id}/events`);
  await d.fails(404, 'not_found', 'DELETE', `/v1/sandboxes/${other.id}/watches/${w.id}`);
});

test('forged output of the helper does not hurt the front', async () => {
  const w = await d.post(`/v1/sandboxes/${s.id}/watches`, { path: '/workspace' });
  // the helper's own stdout, by its name in /proc: the user runs the helper and may
  await d.exec(s.id, ['python3', '-c', `
import os, re, subprocess
for pid in subprocess.run(["pgrep", "cove-helper"], capture_output=True, text=True).stdout.split():
    try: f = open("/proc/%s/fd/1" % pid, "wb", buffering=0)
    except OSError: continue
    f.write(b"create f " + b"x" * 100000 + b"\\nmove f\\n\\0\\xff\\n" + b"end nonsense\\nready ready\\ncreate f %zz\\ncreate d forged\\n")
`]);
  const p = await d.get(`/v1/sandboxes/${s.id}/watches/${w.id}/events`);
  assert.deepEqual(p.events.map((e) => [e.event, e.path, e.type]).filter((e) => e[1] !== 'forged'), []);
  assert.equal(p.ended, false);
});

// A restart of the daemon keeps everything acknowledged.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { BIN, poll, run, startDaemon, within } from '../lib/cove.mjs';
import { output } from '../lib/sse.mjs';

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const S = '/v1/sandboxes';

/** A sandbox with a process whose output goes on and on, numbered. */
async function busy() {
  const s = await d.sandbox({ metadata: { kind: 'busy' }, env: { MINE: 'yes' }, timeout_ms: 3_600_000 });
  const p = await d.process(s.id, 'i=0; while :; do echo $((i++)); sleep 0.002; done', { id: 'counter' });
  return { s, p, at: `${S}/${s.id}` };
}

function checkCount(bytes) {
  const lines = bytes.toString().split('\n').slice(0, -1).map(Number);
  lines.forEach((n, i) => assert.equal(n, lines[0] + i));
  return lines;
}

for (const how of ['front', 'keeper', 'both', 'sigterm']) {
  test(`sandboxes, processes and cursors outlive the end of the daemon (${how})`, async () => {
    const { s, p, at } = await busy();
    const view = await d.sse(`${at}/processes/counter/logs?follow=1`);
    const seen = [];
    let last;
    for await (const ev of view) {
      seen.push(ev);
      last = ev.id ?? last;
      if (seen.length >= 10) break;
    }
    view.close();
    if (how === 'sigterm') await d.end();
    else await d.kill9(how);
    if (how === 'front') await d.back();
    else await d.restart();
    const now = await d.get(at);
    assert.deepEqual(now, s);
    const still = await d.get(`${at}/processes/counter`);
    assert.equal(still.pid, p.pid);
    assert.equal(still.state, 'running');
    const again = await d.sse(`${at}/processes/counter/logs?follow=1`, { lastEventId: last });
    for await (const ev of again) {
      seen.push(ev);
      if (seen.length >= 40) break;
    }
    again.close();
    const lines = checkCount(output(seen));
    assert.equal(lines[0], 0);
    assert.equal((await d.exec(s.id, 'echo $MINE')).stdout, 'yes\n');
    await d.del(at);
  });
}

test('a timeout that passed while the daemon was away is kept to when it is back', async () => {
  const s = await d.sandbox({ timeout_ms: 300 });
  await d.kill9('both');
  await poll('its time is over', () => Date.now() > Date.parse(s.ends_at));
  await d.restart();
  await poll('it is gone', async () => (await d.call('GET', `${S}/${s.id}`)).status === 404);
});

test('a deleted sandbox stays deleted after a restart', async () => {
  const s = await d.sandbox();
  await d.del(`${S}/${s.id}`);
  await d.kill9('both');
  await d.restart();
  await d.fails(404, 'not_found', 'GET', `${S}/${s.id}`);
});

test('a process that ended while the daemon was away has its exit and its output', async () => {
  const s = await d.sandbox();
  await d.process(s.id, 'read x; echo the end; exit 12', { id: 'ends', stdin: true });
  await d.process(s.id, 'sleep 0.3; echo late; exit 13', { id: 'later' });
  await d.kill9('both');
  await poll('the time it takes', () => !fs.readdirSync('/proc').some((pid) => /^\d+$/.test(pid) && read(`/proc/${pid}/cmdline`).includes('echo late; exit 13')));
  await d.restart();
  const p = await d.get(`${S}/${s.id}/processes/later`);
  assert.equal(p.exit.code, 13);
  assert.equal((await d.get(`${S}/${s.id}/processes/later/logs`)).chunks[0].data, 'late\n');
  await d.call('POST', `${S}/${s.id}/processes/ends/stdin?close=1`, 'x\n');
  assert.equal((await d.post(`${S}/${s.id}/processes/ends/wait`, { timeout_ms: 5000 })).code, 12);
  await d.del(`${S}/${s.id}`);
});

function read(file) {
  try {
    return fs.readFileSync(file, 'utf8').replace(/\0/g, ' ');
  } catch {
    return '';
  }
}

test('the key and the URL are the same after a restart', async () => {
  const { key, url } = d;
  await d.end();
  await d.restart();
  assert.equal(d.key, key);
  assert.equal(d.url, url);
});

test('a request that comes while the front is being started again is answered', async () => {
  await d.kill9('front');
  const a = await within(10_000, 'an answer', d.call('GET', '/health'));
  assert.equal(a.status, 200);
  await d.back();
});

test('stop ends the daemon and leaves the sandboxes; serve finds them again', async () => {
  const { s, p, at } = await busy();
  const r = await run(BIN, ['stop', '--state', d.dir]);
  assert.equal(r.status, 0, r.stderr);
  await within(10_000, 'the daemon ends', d.exited);
  await d.restart();
  assert.equal((await d.get(`${at}/processes/counter`)).pid, p.pid);
  await d.del(`${S}/${s.id}`);
});

test('stop --all ends the sandboxes and keeps their files', async () => {
  const { s, at } = await busy();
  await d.exec(s.id, 'echo kept >/workspace/file; sync');
  const r = await run(BIN, ['stop', '--all', '--state', d.dir]);
  assert.equal(r.status, 0, r.stderr);
  await within(10_000, 'the daemon ends', d.exited);
  await d.restart();
  const now = await d.get(at);
  assert.equal(now.state, 'stopped');
  assert.match(now.reason, /stop/);
  await d.post(`${at}/resume`);
  assert.equal((await d.exec(s.id, 'cat /workspace/file; echo $MINE')).stdout, 'kept\nyes\n');
  await d.del(at);
});

test('stop --all without a daemon succeeds, also twice', async () => {
  await d.end();
  for (const args of [['--all', '--state', d.dir], ['--state', d.dir, '--all']]) {
    const r = await run(BIN, ['stop', ...args]);
    assert.equal(r.status, 0, r.stderr);
  }
  await d.restart();
});

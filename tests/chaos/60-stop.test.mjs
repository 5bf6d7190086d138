// Ending the daemon is not ending the sandboxes; `cove stop --all` is.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { initsOf, settled } from '../lib/chaos.mjs';
import { BIN, poll, run, startDaemon, tagOf, within } from '../lib/cove.mjs';
import { cgroupsNamed, leftovers } from '../lib/host.mjs';

const S = '/v1/sandboxes';
let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const stop = (...args) => run(BIN, ['stop', ...args, '--state', d.dir]);
const ended = () => within(15_000, 'the daemon ends', d.exited);

async function busy() {
  const s = await d.sandbox();
  await d.exec(s.id, 'echo precious > /workspace/file');
  const p = await d.process(s.id, ['sleep', '1000'], { id: 'job' });
  return { s, p, init: initsOf(d.dir).get(s.id) };
}

/** The sandbox is unchanged, but no daemon watches it; the pool is gone. */
async function livesOn({ s, p, init }) {
  assert.deepEqual([...initsOf(d.dir)], [[s.id, init]]);
  assert.ok(!fs.existsSync('/run/cove/default') || !fs.readFileSync('/run/cove/default', 'utf8').includes(d.dir));
  await d.restart();
  assert.deepEqual((await d.get(S)).sandboxes, [s]);
  assert.equal(initsOf(d.dir).get(s.id), init);
  const now = await d.get(`${S}/${s.id}/processes/job`);
  assert.deepEqual([now.pid, now.state], [p.pid, 'running']);
  assert.equal((await d.exec(s.id, ['cat', '/workspace/file'])).stdout, 'precious\n');
  await d.del(`${S}/${s.id}`);
  await settled(d);
}

/** Nothing runs, everything is there again after a resume. */
async function isStopped({ s }) {
  assert.deepEqual(await leftovers(d.dir, tagOf(d.dir)), []);
  await d.restart();
  const now = await d.get(`${S}/${s.id}`);
  assert.deepEqual([now.state, now.reason], ['stopped', 'cove stop --all']);
  const again = await d.post(`${S}/${s.id}/resume`);
  assert.notEqual(again.boot_id, s.boot_id);
  assert.equal((await d.exec(s.id, ['cat', '/workspace/file'])).stdout, 'precious\n');
  assert.deepEqual((await d.get(`${S}/${s.id}/processes`)).processes, []);
  await d.del(`${S}/${s.id}`);
  await settled(d);
}

test('SIGTERM ends the daemon, not the sandboxes', async () => {
  const b = await busy();
  assert.deepEqual(await d.end(), { code: 0, signal: null });
  await livesOn(b);
});

test('Ctrl-C, which reaches the whole process group, ends the daemon, not the sandboxes', async () => {
  const b = await busy();
  process.kill(-d.keeper.pid, 'SIGINT');
  assert.deepEqual(await ended(), { code: 0, signal: null });
  await livesOn(b);
});

test('a terminal that is closed ends the daemon, not the sandboxes', async () => {
  const b = await busy();
  process.kill(-d.keeper.pid, 'SIGHUP');
  assert.deepEqual(await ended(), { code: 0, signal: null });
  await livesOn(b);
});

test('streams that are open do not keep the daemon from ending', async () => {
  const b = await busy();
  const logs = await d.sse(`${S}/${b.s.id}/processes/job/logs?follow=true`);
  const news = await d.sse('/v1/events');
  const exec = d.call('POST', `${S}/${b.s.id}/exec`, { argv: ['sleep', '1000'], timeout_ms: 900_000 }).catch((e) => e);
  await poll('the command runs', async () => (await d.exec(b.s.id, 'pgrep -xc sleep')).stdout.trim() === '2');
  const { code } = await d.end();
  assert.equal(code, 0);
  logs.close();
  news.close();
  await exec;
  await livesOn(b);
});

test('a stream that a client can resume ends with the daemon and is not cut', async () => {
  const b = await busy();
  const streams = [await d.sse('/v1/events'), await d.sse(`${S}/${b.s.id}/processes/job/logs?follow=true`)];
  const all = streams.map((stream) => stream.all()); // rejects if the connection closes before the last chunk
  await d.end();
  await Promise.all(all);
  await livesOn(b);
});

test('cove stop ends a running daemon and succeeds without one', async () => {
  const b = await busy();
  const r = await stop();
  assert.deepEqual([r.status, r.stderr], [0, '']);
  assert.deepEqual(await ended(), { code: 0, signal: null });
  assert.equal((await stop()).status, 0);
  await livesOn(b);
});

test('cove stop --all with a running daemon ends everything', async () => {
  const b = await busy();
  const r = await stop('--all');
  assert.deepEqual([r.status, r.stderr], [0, '']);
  await ended();
  await isStopped(b);
});

test('cove stop --all after the daemon was killed ends everything', async () => {
  const b = await busy();
  await d.kill9('both');
  const r = await stop('--all');
  assert.equal(r.status, 0, r.stderr);
  await isStopped(b);
});

test('cove stop --all succeeds twice and on a directory that was never served', async () => {
  await d.end();
  assert.equal((await stop('--all')).status, 0);
  assert.equal((await stop('--all')).status, 0);
  assert.deepEqual(await leftovers(d.dir, tagOf(d.dir)), []);
  const none = path.join(os.tmpdir(), 'cove-never-served');
  const r = await run(BIN, ['stop', '--all', '--state', none]);
  assert.equal(r.status, 202);
  assert.equal(r.stderr, `cove stop: state directory ${none} does not exist\n`);
  assert.ok(!fs.existsSync(none));
  await d.restart();
});

test('a sandbox that cannot be torn down does not block the end of the daemon', async () => {
  const s = await d.sandbox();
  const [held] = cgroupsNamed(`cove-${tagOf(d.dir)}`).map((g) => path.join(g, s.id, 'held')).filter((g) => fs.existsSync(path.dirname(g)));
  fs.mkdirSync(held);
  await d.del(`${S}/${s.id}`);
  assert.equal((await d.end()).code, 0);
  assert.match(d.log, /1 sandboxes are not down yet/);
  fs.rmdirSync(held);
  await d.restart();
  assert.deepEqual((await settled(d)).all, []);
});

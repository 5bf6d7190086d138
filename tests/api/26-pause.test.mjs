// Pause and resume of sandboxes.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { poll, startDaemon, tagOf } from '../lib/cove.mjs';
import { cgroupsNamed } from '../lib/host.mjs';
import { openSession } from '../lib/session.mjs';
import { output } from '../lib/sse.mjs';
import { Ws } from '../lib/ws.mjs';

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const S = '/v1/sandboxes';
const FAR = 10 * 60_000;
const pause = (id, body) => d.post(`${S}/${id}/pause`, body);
const resume = (id, body) => d.post(`${S}/${id}/resume`, body);
const state = async (id) => (await d.get(`${S}/${id}`)).state;
const COUNT = 'i=0; while :; do echo $i > /tmp/n; i=$((i+1)); sleep 0.01; done';

/** What a process that counts has come to; init answers also while it stands still. */
async function counted(id) {
  const r = await d.exec(id, 'cat /tmp/n');
  return Number(r.stdout);
}

test('a pause freezes processes; a resume continues them with the same pids', async () => {
  const s = await d.sandbox();
  const p = await d.process(s.id, COUNT, { id: 'count' });
  await poll('it counts', async () => (await counted(s.id)) > 3);
  const paused = await pause(s.id);
  assert.equal(paused.state, 'paused');
  assert.equal(paused.ends_at, null);
  assert.ok(Date.parse(paused.changed_at) >= Date.parse(s.created_at));
  assert.deepEqual(await d.get(`${S}/${s.id}`), paused);
  const again = await resume(s.id);
  assert.equal(again.state, 'running');
  assert.equal(again.boot_id, s.boot_id);
  const n = await counted(s.id);
  await poll('it counts on', async () => (await counted(s.id)) > n);
  const now = await d.get(`${S}/${s.id}/processes/count`);
  assert.deepEqual([now.pid, now.state], [p.pid, 'running']);
  await d.del(`${S}/${s.id}`);
});

test('no process runs while its sandbox is paused', async () => {
  const s = await d.sandbox();
  await d.process(s.id, 'i=0; while :; do echo $((i++)); done', { id: 'busy' });
  const logs = () => d.call('GET', `${S}/${s.id}/processes/busy/logs`, undefined, { headers: { accept: 'application/octet-stream' } });
  await poll('it prints', async () => (await logs()).bytes.length > 0);
  await pause(s.id);
  const before = (await logs()).bytes;
  for (let i = 0; i < 20; i++) assert.deepEqual((await logs()).bytes, before);
  await resume(s.id);
  await poll('it prints again', async () => !(await logs()).bytes.equals(before));
  await d.del(`${S}/${s.id}`);
});

test('a paused sandbox refuses commands, answers reads, and stays paused', async () => {
  const s = await d.sandbox();
  await d.process(s.id, ['sleep', '1000'], { id: 'job' });
  const paused = await pause(s.id);
  for (const [url, body] of [['exec', { argv: ['true'] }], ['processes', { argv: ['true'] }]]) {
    const e = await d.fails(409, 'conflict', 'POST', `${S}/${s.id}/${url}`, body);
    assert.match(e.message, /paused.*resume/);
  }
  await d.fails(409, 'conflict', 'POST', `${S}/${s.id}/pause`);
  await d.fails(409, 'conflict', 'POST', `${S}/${s.id}/timeout`, { timeout_ms: 1000 });
  assert.deepEqual((await d.get(`${S}/${s.id}/processes`)).processes.map((p) => p.id), ['job']);
  assert.deepEqual((await d.get(`${S}?state=paused`)).sandboxes.map((x) => x.id), [s.id]);
  assert.deepEqual(await d.get(`${S}/${s.id}`), paused);
  await resume(s.id);
  await d.fails(409, 'conflict', 'POST', `${S}/${s.id}/resume`);
  await d.del(`${S}/${s.id}`);
  for (const what of ['pause', 'resume']) await d.fails(404, 'not_found', 'POST', `${S}/${s.id}/${what}`);
});

test('the timeout of a process stands still', async () => {
  const s = await d.sandbox();
  const job = await d.process(s.id, ['sleep', '1000'], { id: 'job', timeout_ms: 300 });
  await pause(s.id);
  const started = Date.parse(job.started_at);
  await poll('its time would be over', () => Date.now() > started + 800);
  assert.equal((await d.get(`${S}/${s.id}/processes/job`)).state, 'running');
  await resume(s.id);
  const ended = await poll('it ends', async () => {
    const p = await d.get(`${S}/${s.id}/processes/job`);
    return p.state === 'exited' && p;
  });
  assert.equal(ended.exit.timed_out, true);
  await d.del(`${S}/${s.id}`);
});

test('a pause without memory keeps files, ends processes, and the resume boots', async () => {
  const s = await d.sandbox({ timeout_ms: FAR });
  await d.exec(s.id, 'echo kept > /workspace/f');
  await d.process(s.id, ['sleep', '1000'], { id: 'job' });
  const stopped = await pause(s.id, { memory: false });
  assert.equal(stopped.state, 'stopped');
  assert.match(stopped.reason, /memory/);
  assert.equal(stopped.ends_at, null);
  const again = await resume(s.id);
  assert.notEqual(again.boot_id, s.boot_id);
  assert.equal((await d.exec(s.id, 'cat /workspace/f')).stdout, 'kept\n');
  assert.deepEqual((await d.get(`${S}/${s.id}/processes`)).processes, []);
  await d.del(`${S}/${s.id}`);
});

test('a resumed sandbox gets its original lifetime or the one in the call', async () => {
  const s = await d.sandbox({ timeout_ms: FAR });
  const left = (x) => Date.parse(x.ends_at) - Date.now();
  await pause(s.id);
  assert.ok(Math.abs(left(await resume(s.id)) - FAR) < 60_000);
  await pause(s.id);
  assert.ok(Math.abs(left(await resume(s.id, { timeout_ms: 2 * FAR })) - 2 * FAR) < 60_000);
  await pause(s.id);
  assert.equal((await resume(s.id, { timeout_ms: 0 })).ends_at, null);
  await d.del(`${S}/${s.id}`);
});

test('on_timeout pause pauses, and the paused one has no end', async () => {
  const s = await d.sandbox({ timeout_ms: 50, on_timeout: 'pause' });
  assert.equal(s.on_timeout, 'pause');
  const paused = await poll('it is paused', async () => {
    const now = await d.get(`${S}/${s.id}`);
    return now.state === 'paused' && now;
  });
  assert.equal(paused.ends_at, null);
  await resume(s.id, { timeout_ms: FAR });
  assert.equal((await d.exec(s.id, ['echo', 'on'])).stdout, 'on\n');
  await d.del(`${S}/${s.id}`);
});

test('auto_resume: a command wakes it, for five minutes at least; a look does not', async () => {
  const s = await d.sandbox({ auto_resume: true, timeout_ms: 100, on_timeout: 'pause' });
  assert.equal(s.auto_resume, true);
  await poll('it is paused', async () => (await state(s.id)) === 'paused');
  await d.get(`${S}/${s.id}/processes`);
  assert.equal(await state(s.id), 'paused');
  assert.equal((await d.exec(s.id, ['echo', 'awake'])).stdout, 'awake\n');
  const now = await d.get(`${S}/${s.id}`);
  assert.equal(now.state, 'running');
  assert.ok(Date.parse(now.ends_at) - Date.now() > 290_000);
  await d.del(`${S}/${s.id}`);
});

test('auto-pause and auto-resume under load: every command gets its answer', async () => {
  const s = await d.sandbox({ auto_resume: true });
  const one = async (i) => {
    const r = await d.exec(s.id, `echo ${i}`);
    assert.equal(r.stdout, `${i}\n`);
  };
  let busy = true;
  const workers = Array.from({ length: 8 }, async (_, w) => {
    for (let i = 0; busy; i++) await one(w * 1_000_000 + i);
  });
  for (let i = 0; i < 40; i++) {
    const a = await d.call('POST', `${S}/${s.id}/pause`);
    assert.ok([200, 409].includes(a.status), a.text);
    await one(i);
  }
  busy = false;
  await Promise.all(workers);
  await d.del(`${S}/${s.id}`);
});

test('of concurrent pauses and resumes one wins, the others wait or are refused', async () => {
  const s = await d.sandbox();
  const all = await Promise.all(['pause', 'pause', 'resume', 'pause', 'resume'].map((what) => d.call('POST', `${S}/${s.id}/${what}`)));
  for (const a of all) assert.ok([200, 409].includes(a.status), a.text);
  assert.ok(all.some((a) => a.status === 200));
  assert.ok(['running', 'paused'].includes(await state(s.id)));
  await d.del(`${S}/${s.id}`);
});

test('a paused sandbox can be deleted, also while it is being paused', async () => {
  const a = await d.sandbox();
  await d.process(a.id, ['sleep', '1000']);
  await pause(a.id);
  await d.del(`${S}/${a.id}`);
  const b = await d.sandbox();
  await d.process(b.id, ['sleep', '1000']);
  const [p, x] = await Promise.all([d.call('POST', `${S}/${b.id}/pause`), d.call('DELETE', `${S}/${b.id}`)]);
  assert.equal(x.status, 204);
  assert.ok([200, 404, 410].includes(p.status), p.text);
});

test('an open stream pauses and resumes with its sandbox', async () => {
  const s = await d.sandbox();
  await d.process(s.id, 'for i in $(seq 1 1000000); do echo $i; sleep 0.005; done', { id: 'p' });
  const events = await d.sse(`${S}/${s.id}/processes/p/logs?follow=true`);
  const upTo = (n) => events.until((ev) => ev.event === 'stdout' && Number(ev.data.data.trim().split('\n').pop()) >= n);
  const seen = await upTo(5);
  await pause(s.id);
  await resume(s.id);
  seen.push(...(await upTo(Number(output(seen).toString().trim().split('\n').pop()) + 20)));
  const lines = output(seen).toString().trim().split('\n');
  assert.deepEqual(lines, lines.map((_, i) => String(i + 1)), 'nothing is lost and nothing comes twice');
  events.close();
  await d.del(`${S}/${s.id}`);
});

test('an upload, a session command and a terminal continue after a pause', async () => {
  const s = await d.sandbox();
  const at = `${S}/${s.id}`;
  const session = await openSession(d, s.id);
  const said = session.out('for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.05; done; x=kept');
  const t = await d.post(`${at}/terminals`, { argv: ['bash', '--norc', '--noprofile', '-i'], env: { PS1: 'prompt> ' } });
  const w = await Ws.connect(d, `${at}/terminals/${t.id}/connect`);
  await w.shows('prompt> ');
  const HALF = 20_000_000;
  const half = Buffer.alloc(HALF, 'a');
  const upload = new Promise((resolve, reject) => {
    const req = http.request(`${d.url}${at}/files?path=/workspace/up`, { method: 'PUT', headers: { authorization: `Bearer ${d.key}` } });
    req.on('error', reject);
    req.on('response', (res) => {
      let text = '';
      res.on('data', (x) => (text += x)).on('end', () => resolve({ status: res.statusCode, text }));
    });
    // most of the first half has left us, for more than the sockets hold: it is being written when all stops
    req.write(half, () => {
      pause(s.id).then(() => {
        w.send('echo ty""ped\n');
        return resume(s.id);
      }).then(() => req.end(Buffer.alloc(HALF, 'b')), reject);
    });
  });
  const put = await upload;
  assert.equal(Math.floor(put.status / 100), 2, put.text);
  await w.shows('typed');
  assert.equal(await said, '1\n2\n3\n4\n5\n6\n7\n8\n');
  assert.equal(await session.out('echo $x'), 'kept\n');
  assert.equal((await d.exec(s.id, `head -c ${HALF} /workspace/up | tr -d a | wc -c; tail -c ${HALF} /workspace/up | tr -d b | wc -c; stat -c %s /workspace/up`)).stdout, `0\n0\n${2 * HALF}\n`);
  w.socket.destroy();
  await d.del(at);
});

test('the CLI pauses and resumes several, with and without their memory', async () => {
  const [a, b] = [await d.sandbox(), await d.sandbox()];
  assert.equal((await d.cli(['pause', a.id, b.id])).status, 0);
  assert.deepEqual([await state(a.id), await state(b.id)], ['paused', 'paused']);
  const twice = await d.cli(['pause', a.id]);
  assert.notEqual(twice.status, 0);
  assert.match(twice.stderr, /paused/);
  assert.equal((await d.cli(['resume', '--timeout', '10m', a.id])).status, 0);
  assert.ok((await d.get(`${S}/${a.id}`)).ends_at);
  assert.equal((await d.cli(['pause', '--no-memory', a.id])).status, 0);
  assert.equal(await state(a.id), 'stopped');
  for (const s of [a, b]) await d.del(`${S}/${s.id}`);
});

test('a tenant cannot prevent a pause or run during it', async () => {
  const s = await d.sandbox();
  for (const command of [
    'kill -STOP $$', // stopped already
    'for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; wait',
    'while :; do (exit 0); done', // always forking
    'trap "" TERM INT HUP QUIT USR1 USR2 CONT TSTP; while :; do sleep 0.001; done',
    `exec python3 -c 'import ctypes, os
p = os.fork()
if p == 0:
  ctypes.CDLL(None).ptrace(0, 0, 0, 0); os.kill(os.getpid(), 19); os._exit(0)
os.wait(); ctypes.CDLL(None).pause()'`, // traced, and stopped for that
  ]) await d.process(s.id, command);
  for (let i = 0; i < 5; i++) {
    assert.equal((await pause(s.id)).state, 'paused');
    const busy = () => d.get(`${S}/${s.id}/processes`);
    assert.deepEqual(await busy(), await busy());
    await resume(s.id);
  }
  await pause(s.id);
  await d.del(`${S}/${s.id}`);
});

test('input that makes no sense is refused', async () => {
  const s = await d.sandbox();
  for (const body of [{ memory: 'yes' }, { memroy: true }, []]) await d.fails(400, 'invalid', 'POST', `${S}/${s.id}/pause`, body);
  for (const body of [{ timeout_ms: -1 }, { timeout_ms: 'x' }]) await d.fails(400, 'invalid', 'POST', `${S}/${s.id}/resume`, body);
  await d.fails(400, 'invalid', 'POST', S, { on_timeout: 'explode' });
  assert.equal(await state(s.id), 'running');
  await d.del(`${S}/${s.id}`);
});

test('the host reclaims memory of a paused sandbox without losing data', { timeout: 60_000 }, async () => {
  const s = await d.sandbox();
  await d.exec(s.id, 'head -c 80000000 /dev/urandom > /workspace/big; sync; sha256sum /workspace/big > /workspace/sum; cat /workspace/big > /dev/null');
  const used = () => {
    for (const g of cgroupsNamed(`cove-${tagOf(d.dir)}`))
      for (const file of ['memory.current', 'memory.usage_in_bytes']) {
        const p = path.join(g, s.id, file);
        if (fs.existsSync(p)) return Number(fs.readFileSync(p, 'utf8'));
      }
    return undefined;
  };
  const before = used();
  if (before === undefined) return; // no memory controller here
  assert.ok(before > 60_000_000, `${before}`);
  await d.post(`${S}/${s.id}/pause`);
  await poll('most of it is given back', () => used() < before / 3, { deadline: 30_000, every: 100 });
  await d.post(`${S}/${s.id}/resume`);
  assert.match((await d.exec(s.id, 'sha256sum -c /workspace/sum')).stdout, /OK/);
  await d.del(`${S}/${s.id}`);
});

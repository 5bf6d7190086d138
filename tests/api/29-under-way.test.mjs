// Pauses during streams, transfers and terminals lose nothing; and calls to many sandboxes whose
// lifetimes end at the same time.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';
import { rawServer, serveInside } from '../lib/ports.mjs';
import { openSession } from '../lib/session.mjs';
import { output } from '../lib/sse.mjs';
import { Ws } from '../lib/ws.mjs';

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const S = '/v1/sandboxes';
const pause = (id) => d.post(`${S}/${id}/pause`);
const resume = (id) => d.post(`${S}/${id}/resume`);
const sha = (bytes) => crypto.createHash('sha256').update(bytes).digest('hex');

/** Time passes outside for a sandbox that is paused: another one counts it. */
async function someTime(ms) {
  const since = Date.now();
  await poll('time has passed', () => Date.now() - since > ms);
}

test('a stream delivers every byte once and in order across pauses', async () => {
  const s = await d.sandbox();
  const N = 200_000;
  const events = await d.sse(`${S}/${s.id}/exec`, { method: 'POST', body: { argv: ['seq', '1', String(N)] } });
  const seen = [];
  for (let i = 0; i < 5; i++) {
    seen.push(...(await events.until((ev) => ev.event === 'stdout' || ev.event === 'exit')));
    await pause(s.id);
    await resume(s.id);
  }
  if (seen.at(-1).event !== 'exit') seen.push(...(await events.until('exit')));
  assert.equal(seen.at(-1).data.exit_code, 0);
  const text = output(seen).toString();
  assert.equal(sha(text), sha(Array.from({ length: N }, (_, i) => `${i + 1}\n`).join('')));
  await d.del(`${S}/${s.id}`);
});

test('an upload across a pause arrives complete', async () => {
  const s = await d.sandbox();
  const piece = crypto.randomBytes(1 << 20);
  const hash = crypto.createHash('sha256');
  const answer = new Promise((resolve, reject) => {
    const req = http.request(`${d.url}${S}/${s.id}/files?path=/workspace/big`, { method: 'PUT', headers: { authorization: `Bearer ${d.key}` } });
    req.on('error', reject);
    req.on('response', (res) => {
      res.resume();
      res.on('end', () => resolve(res.statusCode));
    });
    const send = async () => {
      for (let i = 0; i < 24; i++) {
        if (i % 8 === 4) {
          await pause(s.id);
          // what is sent now waits on the way; it must not block the one who resumes
          resume(s.id).catch(reject);
        }
        hash.update(piece);
        if (!req.write(piece)) await new Promise((r) => req.once('drain', r));
      }
      req.end();
    };
    send().catch(reject);
  });
  assert.ok([200, 201, 204].includes(await answer));
  const r = await d.exec(s.id, 'sha256sum < /workspace/big; ls -A /workspace');
  assert.equal(r.stdout, `${hash.digest('hex')}  -\nbig\n`);
  await d.del(`${S}/${s.id}`);
});

test('a download across a pause arrives complete', async () => {
  const s = await d.sandbox();
  const want = (await d.exec(s.id, 'head -c 20000000 /dev/urandom > /workspace/f; sha256sum < /workspace/f')).stdout.slice(0, 64);
  const res = await new Promise((resolve, reject) => {
    http.get(`${d.url}${S}/${s.id}/files?path=/workspace/f`, { headers: { authorization: `Bearer ${d.key}` } }, resolve).on('error', reject);
  });
  assert.equal(res.statusCode, 200);
  await pause(s.id);
  await resume(s.id);
  const parts = [];
  for await (const part of res) parts.push(part);
  assert.equal(sha(Buffer.concat(parts)), want);
  await d.del(`${S}/${s.id}`);
});

test('a command of a session: its time stands still, its output is whole, its shell is the same', async () => {
  const s = await d.sandbox();
  const sess = await openSession(d, s.id);
  await sess.exec('x=before; cd /tmp');
  const { pid } = await sess.get();
  const running = sess.exec('echo up > /tmp/up; for i in $(seq 1 30); do echo $i; sleep 0.02; done; y=$x-after', { timeout_ms: 2500 });
  await poll('it runs', async () => (await d.exec(s.id, 'cat /tmp/up')).stdout === 'up\n');
  await pause(s.id);
  await someTime(3000);
  await resume(s.id);
  const r = await running;
  assert.deepEqual([r.exit_code, r.timed_out ?? false], [0, false], JSON.stringify(r));
  assert.equal(r.stdout, Array.from({ length: 30 }, (_, i) => `${i + 1}\n`).join(''));
  assert.equal(await sess.out('echo $y $PWD'), 'before-after /tmp\n');
  assert.equal((await sess.get()).pid, pid);
  await d.del(`${S}/${s.id}`);
});

test('a terminal receives input typed during a pause and keeps its output', async () => {
  const s = await d.sandbox();
  const t = await d.post(`${S}/${s.id}/terminals`, { argv: ['bash', '--norc', '--noprofile', '-i'], env: { PS1: 'prompt> ' } });
  const w = await Ws.connect(d, `${S}/${s.id}/terminals/${t.id}/connect`);
  await w.shows('prompt> ');
  w.send('for i in $(seq 1 60); do echo line-$i.; sleep 0.01; done; echo all\r');
  await w.shows('line-5.');
  await pause(s.id);
  const shown = w.count;
  w.send('echo typed-$((40+2))\r');
  w.tell({ type: 'resize', cols: 101, rows: 31 });
  assert.equal((await d.get(`${S}/${s.id}/terminals/${t.id}`)).state ?? 'running', 'running');
  assert.ok(w.count - shown < 64 * 1024);
  await resume(s.id);
  await w.shows('typed-42\r\n');
  const lines = [...w.text.matchAll(/line-(\d+)\.\r\n/g)].map((m) => Number(m[1]));
  assert.deepEqual(lines, Array.from({ length: 60 }, (_, i) => i + 1));
  w.send('stty size\r');
  await w.shows('31 101');
  await w.close();
  await d.del(`${S}/${s.id}`);
});

test('a connection to a port: half an answer before, half after', async () => {
  const s = await d.sandbox();
  const half = 'x'.repeat(1000);
  await serveInside(d, s.id, 8000, rawServer(8000, `
read_head(c)
c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2000\\r\\n\\r\\n' + b'x' * 1000)
open('/tmp/half', 'w').close()
import os
while not os.path.exists('/tmp/go'): time.sleep(0.005)
c.sendall(b'x' * 1000)`));
  const got = d.call('GET', '/', undefined, { key: null, headers: { host: `8000-${s.id}.localhost:${d.port}` } });
  await poll('half of it is sent', async () => (await d.exec(s.id, 'test -e /tmp/half')).exit_code === 0);
  await pause(s.id);
  await resume(s.id);
  await d.exec(s.id, 'touch /tmp/go');
  const a = await got;
  assert.equal(a.text, half + half);
  await d.del(`${S}/${s.id}`);
});

/** Settles with `asked`. A call in progress when the time ends waits until another call wakes the sandbox: so others are made. */
async function withVisitors(id, asked) {
  const visits = [];
  let done = false;
  asked.finally(() => (done = true)).catch(() => {});
  await poll('it is answered', () => done || (visits.push(d.exec(id, ['true'])), false), { deadline: 60_000, every: 100 });
  let left = visits.length; // the last of them may be under way at the end themselves
  for (const v of visits) v.finally(() => left--).catch(() => {});
  await poll('they are answered too', async () => left === 0 || (await d.call('POST', `${S}/${id}/resume`), false), { deadline: 60_000, every: 50 });
  for (const v of await Promise.all(visits)) assert.equal(v.exit_code, 0);
  return asked;
}

test('auto-pause and auto-resume under load: each command is run once, each request answered', { timeout: 120_000 }, async () => {
  const MANY = 16;
  const ROUNDS = 12;
  const boxes = await Promise.all(Array.from({ length: MANY }, () => d.sandbox({ timeout_ms: 600_000, on_timeout: 'pause', auto_resume: true })));
  let paused = 0;
  const events = await d.sse('/v1/events');
  const watching = (async () => {
    for await (const ev of events) paused += ev.event === 'sandbox.paused' ? 1 : 0;
  })();
  const work = async (s) => {
    await serveInside(d, s.id, 8000, rawServer(8000, "read_head(c)\nc.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')"));
    for (let i = 0; i < ROUNDS; i++) {
      // its time ends somewhere in what follows; one that is paused already has none
      const a = await d.call('POST', `${S}/${s.id}/timeout`, { timeout_ms: 1 + Math.floor(Math.random() * 20) });
      assert.ok([200, 204, 409].includes(a.status), a.text);
      const [r, p] = await withVisitors(s.id, Promise.all([
        d.exec(s.id, `echo ${i} >> /workspace/log; echo ${i}`),
        d.call('GET', '/', undefined, { key: null, headers: { host: `8000-${s.id}.localhost:${d.port}` } }),
      ]));
      assert.equal(r.stdout, `${i}\n`);
      assert.equal(`${p.status} ${p.text}`, '200 ok');
    }
    const log = (await d.exec(s.id, 'cat /workspace/log')).stdout;
    assert.equal(log, Array.from({ length: ROUNDS }, (_, i) => `${i}\n`).join(''), 'nothing is lost, nothing done twice');
  };
  await Promise.all(boxes.map(work));
  await poll('they were paused all the while', () => paused >= MANY);
  events.close();
  await watching;
  await Promise.all(boxes.map((s) => d.del(`${S}/${s.id}`)));
});

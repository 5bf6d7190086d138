// Processes: commands with an id, a record and kept output.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll, startDaemon, within } from '../lib/cove.mjs';
import { output } from '../lib/sse.mjs';

let d;
let id;
let P;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox()).id;
  P = `/v1/sandboxes/${id}/processes`;
});
after(() => d?.stop());

const start = (command, opts) => d.process(id, command, opts);
const wait = (pid, body = {}) => d.post(`${P}/${pid}/wait`, body);
const exits = (pid) => wait(pid, { timeout_ms: 20_000 });
const logs = (pid, q = '') => d.get(`${P}/${pid}/logs${q}`);
const follow = (pid, q = '', opts = {}) => d.sse(`${P}/${pid}/logs?follow=1${q}`, opts);

test('starting a process answers after its exec, with its record', async () => {
  const a = await d.call('POST', P, { argv: ['sleep', '1000'] });
  const p = a.json;
  assert.equal(a.status, 201);
  assert.ok(p.id.length > 0);
  assert.ok(p.pid > 1);
  assert.equal(p.state, 'running');
  assert.deepEqual(p.argv, ['sleep', '1000']);
  assert.equal(p.cwd, '/workspace');
  assert.equal(p.user, 'user');
  assert.equal(p.exit, null);
  assert.equal(p.ended_at, null);
  assert.deepEqual(await d.get(`${P}/${p.id}`), p);
  assert.equal((await d.exec(id, `cat /proc/${p.pid}/comm`)).stdout, 'sleep\n');
  await d.post(`${P}/${p.id}/kill`, { grace_ms: 0 });
});

test('a process that cannot start is an error and leaves no record', async () => {
  const before_ = (await d.get(P)).processes.length;
  await d.fails(422, 'cannot_start', 'POST', P, { argv: ['no-such-program'], id: 'never' });
  await d.fails(422, 'cannot_start', 'POST', P, { argv: ['true'], cwd: '/no/such', id: 'never' });
  await d.fails(404, 'not_found', 'GET', `${P}/never`);
  assert.equal((await d.get(P)).processes.length, before_);
  assert.equal((await start(['true'], { id: 'never' })).id, 'never');
});

test('an unknown process is 404 everywhere', async () => {
  await d.fails(404, 'not_found', 'GET', `${P}/unknown`);
  await d.fails(404, 'not_found', 'GET', `${P}/unknown/logs`);
  await d.fails(404, 'not_found', 'POST', `${P}/unknown/signal`, { signal: 'TERM' });
  await d.fails(404, 'not_found', 'POST', `${P}/unknown/kill`, {});
  await d.fails(404, 'not_found', 'POST', `${P}/unknown/wait`, {});
  await d.fails(404, 'not_found', 'POST', `${P}/unknown/stdin`, 'x');
});

test('a second process with the same id is refused and the first keeps running', async () => {
  const p = await start('echo first; sleep 1000', { id: 'my.own_id-1' });
  assert.equal(p.id, 'my.own_id-1');
  await wait(p.id, { for: 'log', text: 'first\n', timeout_ms: 5000 });
  await d.fails(409, 'conflict', 'POST', P, { command: 'echo second', id: 'my.own_id-1' });
  const still = await d.get(`${P}/my.own_id-1`);
  assert.equal(still.pid, p.pid);
  assert.equal(still.state, 'running');
  await d.post(`${P}/${p.id}/kill`, { grace_ms: 0 });
  await d.fails(409, 'conflict', 'POST', P, { command: 'true', id: 'my.own_id-1' });
  assert.equal((await logs(p.id)).chunks[0].data, 'first\n');
  for (const bad of ['', 'a/b', 'a b', '..', '.', 'ü', 'x'.repeat(65)]) await d.fails(400, 'invalid', 'POST', P, { argv: ['true'], id: bad });
});

test('of many starts with one id at the same moment exactly one runs', async () => {
  const all = await Promise.all(Array.from({ length: 10 }, () => d.call('POST', P, { command: 'echo x >>/workspace/race; sleep 1000', id: 'race' })));
  assert.deepEqual(all.map((a) => a.status).sort(), [201, ...Array(9).fill(409)]);
  await d.post(`${P}/race/wait`, { for: 'log', text: 'never', timeout_ms: 50 }).catch(() => {});
  assert.equal((await d.exec(id, 'wc -l </workspace/race')).stdout.trim(), '1');
  await d.post(`${P}/race/kill`, { grace_ms: 0 });
});

test('the list has running and finished processes', async () => {
  const a = await start(['sleep', '1000']);
  const b = await start(['false']);
  await exits(b.id);
  const { processes } = await d.get(P);
  assert.equal(processes.find((p) => p.id === a.id).state, 'running');
  const gone = processes.find((p) => p.id === b.id);
  assert.equal(gone.state, 'exited');
  assert.equal(gone.exit.code, 1);
  assert.ok(Date.parse(gone.ended_at) >= Date.parse(gone.started_at));
  await d.post(`${P}/${a.id}/kill`, { grace_ms: 0 });
});

test('an exec leaves no process in the list', async () => {
  const before_ = (await d.get(P)).processes.length;
  await d.exec(id, 'true');
  assert.equal((await d.get(P)).processes.length, before_);
});

test('the exit record says code, signal, timed_out and core', async () => {
  const code = await exits((await start('exit 3')).id);
  assert.equal(code.code, 3);
  assert.equal(code.signal, null);
  assert.equal(code.timed_out, false);
  assert.equal(code.core, false);
  const signal = await exits((await start('kill -TERM $$')).id);
  assert.equal(signal.signal, 'SIGTERM');
  assert.equal(signal.code, 143);
  const timed = await exits((await start('sleep 1000', { timeout_ms: 100 })).id);
  assert.equal(timed.timed_out, true);
  assert.equal(timed.code, 124);
  const killed = await d.post(`${P}/${(await start(['sleep', '1000'])).id}/kill`, { grace_ms: 0 });
  assert.equal(killed.killed, true);
  assert.equal(killed.signal, 'SIGKILL');
});

test('wait, get, list and streams report the same exit record', async () => {
  const p = await start('echo x; exit 9');
  const waited = await exits(p.id);
  const got = (await d.get(`${P}/${p.id}`)).exit;
  const f = await follow(p.id);
  const ev = (await f.all()).at(-1);
  assert.deepEqual(got, waited);
  assert.equal(ev.event, 'exit');
  assert.deepEqual(ev.data, waited);
});

test('a wait ends at the exit, at once if that was before, or with 408', async () => {
  const p = await start('read x', { stdin: true });
  await d.fails(408, 'timeout', 'POST', `${P}/${p.id}/wait`, { timeout_ms: 100 });
  const pending = exits(p.id);
  await d.call('POST', `${P}/${p.id}/stdin`, 'go\n');
  assert.equal((await within(5000, 'the wait', pending)).code, 0);
  assert.equal((await wait(p.id)).code, 0);
  await d.fails(400, 'invalid', 'POST', `${P}/${p.id}/wait`, { for: 'christmas' });
});

test('logs are read from the start and from a cursor', async () => {
  const p = await start('echo one; echo two >&2; echo three');
  await exits(p.id);
  const f = await d.sse(`${P}/${p.id}/logs`);
  const all = await f.all();
  assert.equal(output(all, 'stdout').toString(), 'one\nthree\n');
  assert.equal(output(all, 'stderr').toString(), 'two\n');
  const first = all.find((e) => e.event === 'stdout');
  const later = await (await d.sse(`${P}/${p.id}/logs?since=${encodeURIComponent(first.id)}`)).all();
  assert.equal(Buffer.concat([output([first]), output(later)]).length, output(all).length);
});

test('one stream can be asked for alone', async () => {
  const p = await start('echo out; echo err >&2');
  await exits(p.id);
  const only = await (await d.sse(`${P}/${p.id}/logs?stream=stderr`)).all();
  assert.equal(output(only).toString(), 'err\n');
});

test('logs are also served as JSON pages with the next position', async () => {
  const p = await start('echo one; read x; echo two >&2; printf "\\377"; printf "x%.0s" {1..100}', { stdin: true });
  await wait(p.id, { for: 'log', text: 'one\n', timeout_ms: 5000 });
  const a = await logs(p.id);
  assert.deepEqual(a, { chunks: [{ pos: 0, stream: 'stdout', data: 'one\n' }], next: 4, exited: false });
  assert.deepEqual(await logs(p.id, '?since=4'), { chunks: [], next: 4, exited: false });
  await d.call('POST', `${P}/${p.id}/stdin?close=1`, '\n');
  await exits(p.id);
  const b = await logs(p.id, '?since=4&max_bytes=16');
  assert.deepEqual(b.chunks[0], { pos: 4, stream: 'stderr', data: 'two\n' });
  assert.equal(b.chunks[1].encoding, 'base64');
  assert.equal(b.next, 20);
  const c = await logs(p.id, `?since=${b.next}`);
  assert.equal(c.chunks[0].data, 'x'.repeat(89));
  assert.equal(c.exited, true);
  await d.fails(400, 'invalid', 'GET', `${P}/${p.id}/logs?since=now`);
  await d.fails(400, 'invalid', 'GET', `${P}/${p.id}/logs?stream=stdin`);
  await d.fails(400, 'invalid', 'GET', `${P}/${p.id}/logs?follow=1`);
});

test('follow streams output until the exit', async () => {
  const p = await start('while read x; do echo "got $x"; done; exit 5', { stdin: true });
  const f = await follow(p.id);
  await d.call('POST', `${P}/${p.id}/stdin`, 'a\n');
  await within(5000, 'the first', f.until('stdout'));
  await d.call('POST', `${P}/${p.id}/stdin?close=1`, 'b\n');
  const rest = await within(5000, 'the rest', f.all());
  assert.equal(output(rest).toString(), 'got b\n');
  assert.equal(rest.at(-1).event, 'exit');
});

test('a follow resumed with Last-Event-ID misses no byte and repeats none', async () => {
  const p = await start('for i in $(seq 2000); do printf "%05d ü\\n" $i; done; read x; seq 1000', { stdin: true });
  let got = Buffer.alloc(0);
  let last;
  for (let i = 0; i < 5; i++) {
    const f = await follow(p.id, '', last === undefined ? {} : { lastEventId: last });
    if (i === 4) {
      await d.call('POST', `${P}/${p.id}/stdin?close=1`, '\n');
      got = Buffer.concat([got, output(await within(10_000, 'the end', f.all()))]);
      break;
    }
    let n = 0;
    for await (const ev of f) {
      got = Buffer.concat([got, output([ev])]);
      if (ev.id !== undefined) last = ev.id;
      if (ev.event === 'stdout' && ++n >= 1) break;
    }
    f.close();
    if (got.length >= 2000 * 9) i = 3; // all of the first part is here
  }
  const want = Array.from({ length: 2000 }, (_, i) => `${String(i + 1).padStart(5, '0')} ü\n`).join('') + Array.from({ length: 1000 }, (_, i) => `${i + 1}\n`).join('');
  assert.equal(got.toString(), want);
});

test('a cursor before the oldest kept byte is reported as truncated', async () => {
  const p = await start('seq 1000000');
  await exits(p.id);
  const all = await (await d.sse(`${P}/${p.id}/logs?since=0`)).all();
  const cut = all.find((e) => e.event === 'truncated');
  assert.ok(cut, JSON.stringify(all.slice(0, 2)).slice(0, 300));
  assert.ok(output(all).toString().endsWith('\n1000000\n'));
  const record = await d.get(`${P}/${p.id}`);
  assert.equal(record.output.end, 6_888_896);
  assert.equal(record.output.end - record.output.first, output(all).length);
});

test('a process without viewers never blocks on its output', async () => {
  const p = await start('seq 2000000; echo end');
  assert.equal((await exits(p.id)).code, 0);
});

test('eight viewers get the same output', async () => {
  const p = await start('read x; seq 20000', { stdin: true });
  const views = await Promise.all(Array.from({ length: 8 }, () => follow(p.id)));
  await d.call('POST', `${P}/${p.id}/stdin?close=1`, '\n');
  const seen = await within(20_000, 'all of them', Promise.all(views.map((v) => v.all())));
  for (const s of seen) assert.equal(output(s).toString(), output(seen[0]).toString());
});

test('stdin is written in pieces and closed', async () => {
  const p = await start(['cat'], { stdin: true });
  assert.equal((await d.get(`${P}/${p.id}`)).stdin_open, true);
  for (const part of ['a', Buffer.from([0, 255]), 'ü\n']) assert.equal((await d.call('POST', `${P}/${p.id}/stdin`, part)).status, 204);
  assert.equal((await d.call('POST', `${P}/${p.id}/stdin/close`)).status, 204);
  assert.equal((await exits(p.id)).code, 0);
  const all = await (await d.sse(`${P}/${p.id}/logs`)).all();
  assert.deepEqual(output(all), Buffer.concat([Buffer.from('a'), Buffer.from([0, 255]), Buffer.from('ü\n')]));
  await d.fails(410, 'gone', 'POST', `${P}/${p.id}/stdin`, 'late');
});

test('a large stdin goes in as fast as it is read', async () => {
  const p = await start('sleep 0.3; wc -c', { stdin: true });
  const a = await d.call('POST', `${P}/${p.id}/stdin?close=1`, Buffer.alloc(8 << 20, 'x'), { timeout: 30_000 });
  assert.equal(a.status, 204);
  await exits(p.id);
  assert.equal(output(await (await d.sse(`${P}/${p.id}/logs`)).all()).toString().trim(), String(8 << 20));
});

test('stdin of a process started without it is refused', async () => {
  const p = await start('cat; sleep 1000');
  const a = await d.call('POST', `${P}/${p.id}/stdin`, 'x');
  assert.ok([409, 410].includes(a.status), `${a.status}`);
  await d.post(`${P}/${p.id}/kill`, { grace_ms: 0 });
});

test('a signal is sent by name or number, to the process alone or to its tree', async () => {
  const p = await start('trap "echo usr1" USR1; trap "echo hup; exit 0" HUP; echo up; while :; do sleep 0.05; done');
  await wait(p.id, { for: 'log', text: 'up', timeout_ms: 5000 });
  await d.post(`${P}/${p.id}/signal`, { signal: 'USR1' });
  await wait(p.id, { for: 'log', text: 'usr1', timeout_ms: 5000 });
  await d.post(`${P}/${p.id}/signal`, { signal: 'SIGHUP' });
  assert.equal((await exits(p.id)).code, 0);
  const q = await start('sleep 1000 & wait; echo child ended');
  await d.post(`${P}/${q.id}/signal`, { signal: 15, tree: true });
  assert.equal((await exits(q.id)).signal, 'SIGTERM');
  for (const signal of ['NOPE', 0, 65, -1, {}, null]) await d.fails(400, 'invalid', 'POST', `${P}/${q.id}/signal`, { signal });
});

test('a signal to a process that has ended is 410', async () => {
  const p = await start(['true']);
  await exits(p.id);
  await d.fails(410, 'gone', 'POST', `${P}/${p.id}/signal`, { signal: 'TERM' });
});

test('kill ends the whole tree, including daemonized children', async () => {
  const p = await start('(setsid bash -c "trap \\"\\" TERM; echo escaped; while :; do sleep 0.1; done" &) ; (sleep 1234 & disown); echo up; sleep 1234');
  await wait(p.id, { for: 'log', text: 'escaped', timeout_ms: 5000 });
  await wait(p.id, { for: 'log', text: 'up', timeout_ms: 5000 });
  const e = await d.post(`${P}/${p.id}/kill`, { grace_ms: 200 });
  assert.equal(e.killed, true);
  assert.equal((await d.exec(id, 'ps ax -o args | grep -c "[s]leep 1234\\|[t]rap"', { user: 'root' })).stdout.trim(), '0');
});

test('kill with grace lets a process clean up', async () => {
  const p = await start('trap "echo cleaned; exit 0" TERM; echo up; while :; do sleep 0.05; done');
  await wait(p.id, { for: 'log', text: 'up', timeout_ms: 5000 });
  const e = await within(4000, 'it ends before the grace does', d.post(`${P}/${p.id}/kill`, { grace_ms: 20_000 }));
  assert.equal(e.code, 0);
  assert.match(output(await (await d.sse(`${P}/${p.id}/logs`)).all()).toString(), /cleaned/);
});

test('a process that ignores TERM is killed when its grace ends', async () => {
  const p = await start('trap "" TERM; echo up; while :; do sleep 0.05; done');
  await wait(p.id, { for: 'log', text: 'up', timeout_ms: 5000 });
  const t = Date.now();
  const e = await d.post(`${P}/${p.id}/kill`, { grace_ms: 300 });
  assert.ok(Date.now() - t >= 280 && Date.now() - t < 5000, `${Date.now() - t} ms`);
  assert.equal(e.signal, 'SIGKILL');
});

test('killing an ended process ends its children and returns the recorded exit', async () => {
  const p = await start('sleep 4321 & echo up; exit 6');
  assert.equal((await exits(p.id)).code, 6);
  const a = await d.call('POST', `${P}/${p.id}/kill`, { grace_ms: 0 });
  assert.ok([200, 410].includes(a.status), a.text);
  if (a.status === 200) {
    assert.equal(a.json.code, 6);
    assert.equal((await d.exec(id, 'ps ax -o args | grep -c "[s]leep 4321"', { user: 'root' })).stdout.trim(), '0');
  }
});

test('waits over the maximum are refused, and the process can still be killed', async () => {
  const p = await start(['sleep', '1000']);
  const answers = Array.from({ length: 600 }, () => d.call('POST', `${P}/${p.id}/wait`, {}));
  const refused = await Promise.any(answers);
  assert.deepEqual([refused.status, refused.json.error?.code], [429, 'limit'], refused.text);
  assert.equal((await d.get(`${P}/${p.id}`)).state, 'running');
  assert.equal((await d.exec(id, 'true').catch((e) => e)).code, 'limit');
  await d.post(`${P}/${p.id}/kill`, { grace_ms: 0 });
  const kinds = (await Promise.all(answers)).map((a) => a.status);
  assert.deepEqual([...new Set(kinds)].sort(), [200, 429]);
  assert.equal((await d.exec(id, 'echo room')).stdout, 'room\n');
});

test('waiting for a port answers when it listens, 408 after its time, 410 when the process ended', async () => {
  const p = await start(['python3', '-c', 'import socket,time\ntime.sleep(0.3)\ns=socket.socket(); s.bind(("127.0.0.1", 8123)); s.listen(); time.sleep(1000)']);
  const a = await within(10_000, 'the port', wait(p.id, { for: 'port', port: 8123, timeout_ms: 9000 }));
  assert.deepEqual(a, { port: 8123 });
  await d.fails(408, 'timeout', 'POST', `${P}/${p.id}/wait`, { for: 'port', port: 9, timeout_ms: 200 });
  await d.fails(400, 'invalid', 'POST', `${P}/${p.id}/wait`, { for: 'port' });
  await d.post(`${P}/${p.id}/kill`, { grace_ms: 0 });
  const q = await start('sleep 0.3');
  await d.fails(410, 'gone', 'POST', `${P}/${q.id}/wait`, { for: 'port', port: 8124, timeout_ms: 9000 });
});

test('waiting for a text finds it in the log, also if it was printed before or in pieces', async () => {
  const p = await start('printf "server rea"; sleep 0.2; printf "dy on\\n"; echo error >&2; sleep 1000');
  const a = await within(10_000, 'the text', wait(p.id, { for: 'log', text: 'ready', timeout_ms: 9000 }));
  assert.equal(a.position, 12);
  assert.equal((await wait(p.id, { for: 'log', text: 'server', timeout_ms: 1000 })).position, 6);
  await wait(p.id, { for: 'log', text: 'error', stream: 'stderr', timeout_ms: 5000 });
  await d.fails(408, 'timeout', 'POST', `${P}/${p.id}/wait`, { for: 'log', text: 'error', stream: 'stdout', timeout_ms: 100 });
  await d.fails(408, 'timeout', 'POST', `${P}/${p.id}/wait`, { for: 'log', text: 'server', since: 6, timeout_ms: 100 });
  await d.fails(400, 'invalid', 'POST', `${P}/${p.id}/wait`, { for: 'log' });
  await d.post(`${P}/${p.id}/kill`, { grace_ms: 0 });
  const q = await start('echo short');
  await d.fails(410, 'gone', 'POST', `${P}/${q.id}/wait`, { for: 'log', text: 'long', timeout_ms: 9000 });
});

test('a timeout of a process kills its tree', async () => {
  const p = await start('sleep 5678 & sleep 5678', { timeout_ms: 200 });
  const e = await exits(p.id);
  assert.equal(e.timed_out, true);
  // all were killed in one step, but each dies on a core of its own
  await poll('nothing of it is left', async () => (await d.exec(id, 'ps ax -o args | grep -c "[s]leep 5678"', { user: 'root' })).stdout.trim() === '0');
});

test('finished processes are kept with their logs, but not without bound', async () => {
  const own = await d.sandbox();
  const list = `/v1/sandboxes/${own.id}/processes`;
  const keep = await d.post(list, { command: 'echo kept; sleep 1000', id: 'runs-on' });
  for (let i = 0; i < 30; i++) await Promise.all(Array.from({ length: 10 }, (_, j) => d.post(list, { argv: ['true'], id: `p${i}-${j}` })));
  const { processes } = await d.get(list);
  assert.ok(processes.length < 300, `${processes.length} kept`);
  assert.ok(processes.length >= 16, `${processes.length} kept`);
  assert.ok(processes.some((p) => p.id === keep.id), 'a running one is never forgotten');
  assert.ok(processes.some((p) => p.id.startsWith('p29-')), 'the newest are kept');
  assert.ok(!processes.some((p) => p.id === 'p0-0'), 'the oldest go');
  await d.fails(404, 'not_found', 'GET', `${list}/p0-0`);
  await d.del(`/v1/sandboxes/${own.id}`);
});

test('a process started as a stream has no gap, and its record is kept', async () => {
  const s = await d.sse(P, { method: 'POST', body: { command: 'seq 1000000; exit 4', id: 'owned' } });
  const all = await within(60_000, 'the stream', s.all());
  assert.ok(!all.some((e) => e.event === 'truncated'));
  assert.equal(output(all).length, 6_888_896);
  assert.equal(all.at(-1).event, 'exit');
  const record = await d.get(`${P}/owned`);
  assert.equal(record.exit.code, 4);
});

test('the end of the owner\'s connection sets the process free', async () => {
  const s = await d.sse(P, { method: 'POST', body: { command: 'echo up; seq 1000000; echo end', id: 'freed' } });
  await s.until('stdout');
  s.close();
  assert.equal((await exits('freed')).code, 0);
});

test('waiting for a port can wait for an HTTP answer, and only the wanted one counts', async () => {
  const { id } = await d.sandbox();
  const p = await d.process(id, ['python3', '-c', `
import http.server, time
start = time.time()
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404 if self.path != '/well' else 503 if time.time() - start < 0.4 else 204); self.end_headers()
    def log_message(self, *a): pass
http.server.HTTPServer(('127.0.0.1', 8080), H).serve_forever()`]);
  const wait = (http, timeout_ms = 10_000) => d.call('POST', `/v1/sandboxes/${id}/processes/${p.id}/wait`, { for: 'port', port: 8080, http, timeout_ms });
  const began = Date.now();
  const r = await wait({ path: '/well', status: '200-299' });
  assert.equal(r.status, 200, r.text);
  assert.deepEqual(r.json, { port: 8080 });
  assert.ok(Date.now() - began >= 300);
  assert.equal((await wait({ path: '/nothing' }, 300)).json.error.code, 'timeout');
  assert.equal((await wait({ path: '/nothing', status: '404' })).status, 200);
  assert.equal((await wait({ path: 'nothing' })).status, 400);
});

test('a killed process is reported as exited although its owner does not read', async () => {
  const s = await d.sse(P, { method: 'POST', body: { id: 'unread', argv: ['yes'] } });
  s.res.pause();
  let end = -1;
  await poll('it waits for its reader', async () => {
    const before = end;
    end = (await d.get(`${P}/unread`)).output.end;
    return end === before && end > 1 << 20;
  }, { every: 300, deadline: 20_000 });
  const exit = await d.post(`${P}/unread/kill`, { grace_ms: 0 });
  const p = await d.get(`${P}/unread`);
  assert.deepEqual([p.state, p.exit], ['exited', exit]);
  s.close();
});

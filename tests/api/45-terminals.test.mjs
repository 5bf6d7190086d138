// Terminals: processes on a pty that keep running without viewers.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';
import { Ws } from '../lib/ws.mjs';

let d;
let id;
let T;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox()).id;
  T = `/v1/sandboxes/${id}/terminals`;
});
after(() => d?.stop());

const create = (opts = {}) => d.post(T, opts);
const sh = (command, opts = {}) => create({ command, ...opts });
const connect = (tid, query = '', opts) => Ws.connect(d, `${T}/${tid}/connect${query}`, opts);
const remove = (tid) => d.del(`${T}/${tid}`);
/** A terminal and a viewer of it. */
async function opened(opts, query) {
  const t = await create(opts);
  const w = await connect(t.id, query);
  await w.says('ready');
  return [t, w];
}
/** A shell that is at its prompt. */
async function shell() {
  const [t, w] = await opened({ argv: ['bash', '--norc', '--noprofile', '-i'], env: { PS1: 'prompt> ' } });
  await w.shows('prompt> ');
  return [t, w];
}

test('a terminal is by default a login bash of 80x24 in the default directory', async () => {
  const a = await d.call('POST', T, {});
  assert.equal(a.status, 201, a.text);
  const t = a.json;
  assert.deepEqual(t.argv, ['bash', '-l']);
  assert.equal(t.state, 'running');
  assert.equal(t.cwd, '/workspace');
  assert.equal(t.user, 'user');
  assert.deepEqual([t.cols, t.rows], [80, 24]);
  assert.equal(t.exit, null);
  assert.ok(t.pid > 1);
  const w = await connect(t.id);
  const ready = await w.says('ready');
  assert.deepEqual([ready.cols, ready.rows, ready.pid, ready.read_only], [80, 24, t.pid, false]);
  w.send('shopt -q login_shell && echo log""in; echo $TERM; pwd; stty size; tty; id -un\n');
  await w.shows('login\r\nxterm-256color\r\n/workspace\r\n24 80\r\n/dev/pts/');
  await w.shows(/\nuser\r\n/);
  await poll('the viewer has seen all of it', async () => (await d.get(`${T}/${t.id}`)).output.end === w.count); // a prompt follows
  assert.ok((await d.get(T)).terminals.some((x) => x.id === t.id));
  w.send('exit 7\n');
  assert.deepEqual((({ code, signal }) => ({ code, signal }))(await w.says('exit')), { code: 7, signal: null });
  assert.equal((await w.closed()).code, 1000);
  assert.equal((await d.get(`${T}/${t.id}`)).exit.code, 7);
});

test('a terminal is a process: listed, read and typed into as one', async () => {
  const t = await sh('read x; echo got $x', { id: 'also' });
  const p = (await d.get(`/v1/sandboxes/${id}/processes`)).processes.find((x) => x.id === 'also');
  assert.equal(p.pid, t.pid);
  assert.equal(p.terminal, true);
  await d.post(`/v1/sandboxes/${id}/processes/also/stdin`, Buffer.from('typed\n'));
  await d.post(`/v1/sandboxes/${id}/processes/also/wait`, { timeout_ms: 20_000 });
  const logs = await d.get(`/v1/sandboxes/${id}/processes/also/logs`);
  assert.equal(logs.chunks[0].data, 'typed\r\ngot typed\r\n');
  const other = await d.process(id, ['sleep', '1000']);
  assert.equal(other.terminal, false);
  await d.fails(404, 'not_found', 'GET', `${T}/${other.id}`);
  await d.fails(404, 'not_found', 'DELETE', `${T}/${other.id}`);
  await assert.rejects(connect(other.id), { status: 404 });
});

test('invalid input is refused with a reason and makes no terminal', async () => {
  const before_ = (await d.get(T)).terminals.length;
  await d.fails(400, 'invalid', 'POST', T, { cols: 0 });
  await d.fails(400, 'invalid', 'POST', T, { rows: 1001 });
  await d.fails(400, 'invalid', 'POST', T, { ring: 4095 });
  await d.fails(400, 'invalid', 'POST', T, { ring: 16 * 1024 * 1024 + 1 });
  await d.fails(400, 'invalid', 'POST', T, { id: 'a/b' });
  await d.fails(400, 'invalid', 'POST', T, { id: '.own' });
  await d.fails(400, 'invalid', 'POST', T, { get_or_create: true });
  await d.fails(400, 'invalid', 'POST', T, { argv: ['true'], command: 'true' });
  await d.fails(422, 'cannot_start', 'POST', T, { argv: ['no-such-program'], id: 'never' });
  await d.fails(422, 'cannot_start', 'POST', T, { cwd: '/no/such', id: 'never' });
  await d.fails(404, 'not_found', 'GET', `${T}/never`);
  await d.fails(404, 'not_found', 'DELETE', `${T}/never`);
  await d.fails(404, 'not_found', 'POST', `${T}/never/resize`, { cols: 1, rows: 1 });
  await d.fails(404, 'not_found', 'POST', `${T}/never/signal`, { signal: 'INT' });
  await d.fails(404, 'not_found', 'POST', `/v1/sandboxes/nobody/terminals`, {});
  await assert.rejects(connect('never'), { status: 404 });
  await assert.rejects(connect('never', '?since=x'), { status: 400 });
  await assert.rejects(connect('never', '', { key: 'wrong' }), { status: 401 });
  assert.equal((await d.get(T)).terminals.length, before_);
  const t = await create();
  await d.fails(400, 'invalid', 'POST', `${T}/${t.id}/resize`, { cols: 80 });
  await d.fails(400, 'invalid', 'POST', `${T}/${t.id}/signal`, { signal: 'NONSENSE' });
  await d.fails(426, 'invalid', 'GET', `${T}/${t.id}/connect`);
  await assert.rejects(connect(t.id, '?since=99999999'), { status: 400 });
  await remove(t.id);
});

test('an id in use is refused; concurrent get_or_create make exactly one terminal', async () => {
  await create({ id: 'one' });
  await d.fails(409, 'conflict', 'POST', T, { id: 'one' });
  const asked = { id: 'many', get_or_create: true, command: 'echo "$$" >> /tmp/started; exec sleep 1000' };
  const answers = await Promise.all(Array.from({ length: 50 }, () => d.call('POST', T, asked)));
  assert.equal(answers.filter((a) => a.status === 201).length, 1);
  assert.equal(answers.filter((a) => a.status === 200).length, 49);
  assert.equal(new Set(answers.map((a) => a.json.pid)).size, 1);
  assert.equal((await d.exec(id, 'wc -l < /tmp/started')).stdout.trim(), '1');
  assert.equal((await d.get(T)).terminals.filter((t) => t.id === 'many').length, 1);
  await remove('many');
  await remove('one');
});

test('get_or_create replaces a terminal that has ended', async () => {
  const [t, w] = await opened({ id: 'again', command: 'exit 1' });
  await w.says('exit');
  const next = await d.call('POST', T, { id: 'again', get_or_create: true });
  assert.equal(next.status, 201);
  assert.notEqual(next.json.pid, t.pid);
  await remove('again');
});

test('job control works: ^C interrupts, ^Z stops, fg continues', async () => {
  const [t, w] = await shell();
  w.send("sh -c 'echo slee''ping; exec sleep 1000'\n");
  await w.shows('sleeping');
  w.send('\x03');
  w.send('echo after-$?\n');
  await w.shows('after-130');
  w.send("sh -c 'echo beg''un; read x; echo fin''ished $x'\n");
  await w.shows('begun');
  w.send('\x1a');
  await w.shows('Stopped');
  w.send('fg\n');
  await w.shows(/fg\r\n.*sh -c/s);
  w.send('line\n');
  await w.shows('finished line');
  w.send('tty -s < /dev/tty && echo has-""one\n');
  await w.shows('has-one');
  await remove(t.id);
  assert.equal((await w.says('exit')).signal, 'SIGKILL');
});

test('a new size is seen inside as SIGWINCH and by the other viewers', async () => {
  const [t, w] = await opened({
    command: `trap 'echo winch' WINCH; echo up; while :; do n=$(stty size); [ "$n" = "$o" ] || echo "$n"; o=$n; sleep 0.05; done`,
    cols: 100,
    rows: 30,
  });
  const other = await connect(t.id);
  await w.shows('up');
  w.tell({ type: 'resize', cols: 132, rows: 43 });
  await w.shows('43 132');
  await w.shows('winch');
  assert.deepEqual((({ cols, rows }) => [cols, rows])(await other.says('resize')), [132, 43]);
  assert.equal((await d.call('POST', `${T}/${t.id}/resize`, { cols: 90, rows: 20 })).status, 204);
  await w.shows('20 90');
  assert.deepEqual((({ cols, rows }) => [cols, rows])(await d.get(`${T}/${t.id}`)), [90, 20]);
  await remove(t.id);
  await other.says('exit');
});

test('an invalid message is answered with an error and the viewer stays connected', async () => {
  const [t, w] = await opened({ command: 'read x; echo got $x' });
  for (const [text, part] of [['{', ''], ['[]', ''], ['{"type":"dance"}', 'dance'], ['{"type":"resize","cols":0,"rows":1}', 'cols'],
    ['{"type":"resize","cols":1}', 'rows'], [`{"type":"${'x'.repeat(5000)}"}`, 'at most']]) {
    const n = w.texts.length;
    w.tell(text);
    const e = await w.until(text.slice(0, 40), () => w.texts[n]);
    assert.equal(e.type, 'error');
    assert.ok(e.message.includes(part), `${text}: ${e.message}`);
  }
  w.send('still\n');
  await w.shows('got still');
  await w.says('exit');
  assert.equal((await d.get(`${T}/${t.id}`)).cols, 80);
});

test('a new viewer gets a replay, one with a cursor the missed part, one from now nothing', async () => {
  const [t, w] = await opened({ command: 'echo first; read x; echo second; read x; echo third' });
  await w.shows('first\r\n');
  const cursor = (await w.says('ready')).cursor + w.count;
  w.send('\n');
  await w.shows('second\r\n');
  const late = await connect(t.id);
  const back = await connect(t.id, `?since=${cursor}`);
  const now = await connect(t.id, '?since=now');
  assert.equal((await late.says('ready')).cursor, 0);
  assert.equal((await back.says('ready')).cursor, cursor);
  assert.equal((await now.says('ready')).cursor, w.count);
  w.send('\n');
  await Promise.all([w, late, back, now].map((v) => v.says('exit')));
  assert.equal(late.text, w.text);
  assert.equal(back.text, w.text.slice(cursor));
  assert.equal(now.text, '\r\nthird\r\n');
  const after_ = await connect(t.id); // it has ended: the replay, the exit, the end
  await after_.says('exit');
  assert.equal(after_.text, w.text);
  assert.equal((await after_.closed()).code, 1000);
});

test('questions to the terminal are not asked again when old output is replayed, and positions stay', async () => {
  const asks = '\\033[c\\033[6n\\033]11;?\\007\\033P+q544e\\033\\\\';
  const [t, w] = await opened({ command: `stty -echo; read x; printf 'old${asks}end\\n'; read x; printf 'new${asks}end\\n'; read x` });
  w.send('\n');
  await w.shows('end\r\n');
  assert.match(w.text, /old\x1b\[c\x1b\[6n\x1b\]11;\?\x07\x1bP\+q544e\x1b\\end/, 'who looked at the time was asked');
  const late = await connect(t.id);
  await late.shows('end\r\n');
  assert.equal(late.count, w.count);
  assert.match(late.text, /^(\r\n)?old\0+end\r\n$/);
  w.send('\n');
  await late.shows('new\x1b[c\x1b[6n'); // and is asked what is asked from now on
  await remove(t.id);
});

test('a read-only viewer sees all output and cannot type or resize', async () => {
  const [t, w] = await opened({ command: 'read x; echo got $x' });
  const ro = await connect(t.id, '?readonly=1');
  assert.equal((await ro.says('ready')).read_only, true);
  ro.send('forbidden\n');
  assert.equal((await ro.says('error')).code, 'denied');
  ro.tell({ type: 'resize', cols: 10, rows: 10 });
  await ro.until('the second error', () => ro.texts.filter((x) => x.type === 'error').length === 2);
  w.send('allowed\n');
  await ro.shows('got allowed');
  assert.equal((await ro.says('exit')).code, 0);
  assert.deepEqual((({ cols }) => cols)(await d.get(`${T}/${t.id}`)), 80);
});

test('a read-only viewer does not wake a paused sandbox; one that may type does with auto_resume', async () => {
  const s = await d.sandbox({ auto_resume: true });
  const at = `/v1/sandboxes/${s.id}`;
  await d.post(`${at}/terminals`, { id: 't', argv: ['sh', '-c', 'echo there; cat'] });
  const early = await Ws.connect(d, `${at}/terminals/t/connect`);
  await early.shows('there');
  await d.post(`${at}/pause`);
  const looks = await Ws.connect(d, `${at}/terminals/t/connect?readonly=1`);
  await looks.shows('there');
  assert.equal((await d.get(at)).state, 'paused');
  const types = await Ws.connect(d, `${at}/terminals/t/connect`);
  types.send('awake\n');
  await looks.shows('awake');
  assert.equal((await d.get(at)).state, 'running');
  for (const w of [early, looks, types]) w.cut();
  await d.del(at);
});

test('all that was printed comes before the exit, though a child keeps the terminal open', async () => {
  const [, w] = await opened({ command: "(trap '' HUP; sleep 1000) & seq 100000; exit 3", ring: 1 << 20 });
  const exit = await w.says('exit');
  assert.equal(exit.code, 3);
  assert.equal(w.text, Array.from({ length: 100000 }, (_, i) => `${i + 1}\r\n`).join(''));
  assert.equal(exit.at, w.count, 'nothing comes after it');
  assert.equal((await w.closed()).code, 1000);
});

test('a terminal keeps running without viewers, also after a viewer was cut off', async () => {
  const [t, w] = await opened({ command: 'echo up; read x; echo on; read x' });
  await w.shows('up');
  w.cut();
  assert.equal((await d.get(`${T}/${t.id}`)).state, 'running');
  const again = await connect(t.id);
  again.send('\n');
  await again.shows('on\r\n');
  await remove(t.id);
});

test('a paste of 10 MB waits for the program and loses nothing', async () => {
  const paste = Buffer.alloc(10 * 1024 * 1024);
  for (let i = 0; i < paste.length; i += 64) paste.write(`${String(i).padStart(10)} ${crypto.randomBytes(26).toString('hex')}\n`, i);
  const [t, w] = await opened({ command: `stty raw -echo; echo go; sleep 0.5; head -c ${paste.length} > /tmp/paste; sha256sum < /tmp/paste; read x` });
  w.keep = false;
  await w.until('go', () => w.count > 0);
  w.keep = true;
  const poured = w.pour(paste);
  // no other viewer waits for that
  assert.equal((await d.get(`${T}/${t.id}`)).state, 'running');
  await poured;
  const m = await w.shows(/([0-9a-f]{64})/, 60_000);
  assert.equal(m[1], crypto.createHash('sha256').update(paste).digest('hex'));
  await remove(t.id);
});

test('lines pasted into a program that reads lines arrive too', async () => {
  const lines = Array.from({ length: 20000 }, (_, i) => `line ${i} é漢🙂\n`).join('');
  const bytes = Buffer.from(lines);
  const [t, w] = await opened({ command: `stty -echo; echo go; head -n 20000 > /tmp/lines; sha256sum < /tmp/lines; read x` });
  await w.shows('go');
  await w.pour(bytes, 1000); // cuts characters in two
  const m = await w.shows(/([0-9a-f]{64})/, 60_000);
  assert.equal(m[1], crypto.createHash('sha256').update(bytes).digest('hex'));
  await remove(t.id);
});

test('input sent before a close arrives, as many small messages or one large paste', async () => {
  for (const [messages, size] of [[2000, 2], [40, 65536]]) {
    const [t, w] = await opened({ command: `stty raw -echo; echo go; head -c ${messages * size} | wc -c` });
    await w.shows('go');
    w.socket.cork(); // the close comes with the last of them
    for (let i = 0; i < messages; i++) w.send(Buffer.alloc(size, 'x'));
    const closed = w.close();
    w.socket.uncork();
    assert.equal((await closed).code, 1000);
    await poll('all of it was read', async () => (await d.get(`${T}/${t.id}`)).state === 'exited');
  }
});

test('a viewer that stops reading is closed with 4408 and can resume with its cursor', async () => {
  const [t, w] = await opened({ command: 'read x; head -c 30000000 /dev/zero | tr "\\0" y; echo; echo done; read x' });
  const lazy = await connect(t.id);
  await lazy.says('ready');
  lazy.keep = w.keep = false;
  lazy.socket.pause();
  let tail = '';
  w.onBytes = (b) => { tail = (tail + b.subarray(-20)).slice(-40); };
  w.send('\n');
  await w.until('done', () => tail.includes('done'), 60_000);
  assert.equal(w.close_, undefined);
  await poll('the lazy one is dropped', async () => (await d.get(`${T}/${t.id}`)).viewers === 1, { deadline: 20_000, every: 200 });
  lazy.socket.resume();
  assert.equal((await lazy.closed()).code, 4408);
  const last = await d.get(`${T}/${t.id}`);
  const back = await connect(t.id, `?since=${lazy.count}`);
  const gap = await back.says('truncated');
  assert.equal(gap.from, lazy.count);
  assert.ok(gap.to > gap.from && gap.to <= last.output.end);
  await back.shows('done');
  await remove(t.id);
});

test('a signal goes to the foreground, not to the shell', async () => {
  const [t, w] = await shell();
  w.send("sh -c 'echo rea''dy; exec sleep 1000'\n");
  await w.shows('ready');
  assert.equal((await d.call('POST', `${T}/${t.id}/signal`, { signal: 'TERM' })).status, 204);
  w.send('echo code-$?\n');
  await w.shows('code-143');
  await remove(t.id);
});

test('deleting kills the whole tree, answers when it is dead, and frees the id', async () => {
  await sh("trap '' TERM HUP; (trap '' TERM HUP; exec sleep 4242) & exec sleep 4243", { id: 'gone' });
  const exit = await remove('gone');
  assert.equal(exit.signal, 'SIGKILL');
  assert.equal((await d.exec(id, 'pgrep -f "sleep 424[23]" | wc -l')).stdout.trim(), '0');
  await d.fails(404, 'not_found', 'GET', `${T}/gone`);
  await create({ id: 'gone' });
  await remove('gone');
});

test('a program that floods, closes or never reads its terminal does not hurt others', async () => {
  const [flood] = await Promise.all([
    create({ argv: ['sh', '-c', 'while :; do seq 100000; done'] }),
    create({ command: 'exec <&- >&- 2>&-; sleep 1000', id: 'closed' }),
    create({ command: 'stty raw; sleep 1000', id: 'deaf' }),
    create({ argv: ['python3', '-c', 'import os,time\nfds=[]\ntry:\n  while 1: fds.append(os.open("/dev/ptmx",os.O_RDWR))\nexcept OSError as e: print(e)\ntime.sleep(1000)'], id: 'greedy' }),
  ]);
  const greedy = await connect('greedy');
  await greedy.shows('No space left on device');
  const err = await d.fails(429, 'limit', 'POST', T, {});
  assert.match(err.message, /in use/);
  const deaf = await connect('deaf');
  deaf.pour(Buffer.alloc(4 << 20, 'x')).catch(() => {});
  const started = Date.now();
  for (let i = 0; i < 20; i++) assert.equal((await d.exec(id, ['true'])).exit_code ?? 0, 0);
  assert.ok(Date.now() - started < 15_000);
  assert.equal((await d.get(`${T}/closed`)).state, 'running');
  await Promise.all(['closed', 'deaf', 'greedy', flood.id].map(remove));
  const t = await create();
  await remove(t.id);
});

test('limits: 32 terminals run at once, 32 viewers look at one, 256 at all of a sandbox', async () => {
  const s = await d.sandbox();
  const at = `/v1/sandboxes/${s.id}/terminals`;
  const made = [];
  for (let i = 0; i < 32; i++) made.push(await d.post(at, { argv: ['sleep', '1000'] }));
  await d.fails(429, 'limit', 'POST', at, {});
  const viewers = await Promise.all(Array.from({ length: 32 }, () => Ws.connect(d, `${at}/${made[0].id}/connect`)));
  await assert.rejects(Ws.connect(d, `${at}/${made[0].id}/connect`), { status: 429 });
  await viewers[0].close();
  // init hears of that over one connection, and of the next viewer over another
  viewers[0] = await poll('its place is free', () => Ws.connect(d, `${at}/${made[0].id}/connect`).catch(() => undefined));
  for (let i = 1; i < 8; i++)
    await Promise.all(Array.from({ length: 32 }, () => Ws.connect(d, `${at}/${made[i].id}/connect`)));
  await assert.rejects(Ws.connect(d, `${at}/${made[8].id}/connect`), { status: 429 });
  await d.del(`/v1/sandboxes/${s.id}`);
  const c = await viewers[1].closed();
  assert.equal(c.code, 1011, c.reason);
});

test('ttyd: the subprotocol tty is spoken when it is offered', async () => {
  const t = await sh('echo up; read x; echo got $x; read x');
  const w = await connect(t.id, '', { protocol: 'foo, tty' });
  assert.equal(w.protocol, 'tty');
  const messages = () => w.bytes.toString('latin1');
  await w.shows('1Cove');
  await w.shows('2{}');
  assert.ok(!messages().includes('0up'), 'nothing is printed before the first message');
  w.tell({ AuthToken: '', columns: 120, rows: 40 });
  await w.shows('0up');
  assert.deepEqual((({ cols, rows }) => [cols, rows])(await d.get(`${T}/${t.id}`)), [120, 40]);
  w.tell('0hello\n');
  await w.shows('0got hello'.slice(1));
  w.send('1{"columns":99,"rows":33}');
  await w.until('the size', () => true);
  w.send('2');
  w.send('3');
  w.send('0bye\n');
  assert.equal((await w.closed()).code, 1000);
  const seen = await d.get(`${T}/${t.id}`);
  assert.deepEqual([seen.cols, seen.rows], [99, 33]);
});

// exec: one stateless command, its input, output and exit.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { SANITIZED, bytesOf, poll, startDaemon, within } from '../lib/cove.mjs';
import { rssOf } from '../lib/host.mjs';
import { output } from '../lib/sse.mjs';

let d;
let id;
let E;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox({ env: { FROM_SANDBOX: 'yes', BOTH: 'sandbox' } })).id;
  E = `/v1/sandboxes/${id}/exec`;
});
after(() => d?.stop());

const sh = (command, opts) => d.exec(id, command, opts);

test('argv runs without a shell', async () => {
  const r = await sh(['printf', '%s|', 'a b', '$HOME', '*', '']);
  assert.equal(r.stdout, 'a b|$HOME|*||');
  assert.equal(r.stderr, '');
  assert.equal(r.exit_code, 0);
  assert.equal(r.signal, null);
  assert.equal(r.timed_out, false);
});

test('command is text for bash', async () => {
  const r = await sh('x=(1 2 3); echo ${#x[@]} | tr 3 drei; echo err >&2');
  assert.equal(r.stdout, 'd\n');
  assert.equal(r.stderr, 'err\n');
});

test('exactly one of argv and command is wanted', async () => {
  await d.fails(400, 'invalid', 'POST', E, {});
  await d.fails(400, 'invalid', 'POST', E, { argv: ['true'], command: 'true' });
  await d.fails(400, 'invalid', 'POST', E, { argv: [] });
  await d.fails(400, 'invalid', 'POST', E, { argv: [''] });
  await d.fails(400, 'invalid', 'POST', E, { argv: ['true', 1] });
  await d.fails(400, 'invalid', 'POST', E, { command: '' });
  await d.fails(400, 'invalid', 'POST', E, { command: 'a\u0000b' });
});

test('a non-zero exit is a result, not an error', async () => {
  for (const code of [1, 2, 42, 124, 137, 255]) {
    const r = await sh(`exit ${code}`);
    assert.equal(r.exit_code, code);
    assert.equal(r.signal, null);
    assert.equal(r.timed_out, false);
  }
});

test('an end by signal says which', async () => {
  const r = await sh('kill -USR1 $$');
  assert.equal(r.signal, 'SIGUSR1');
  assert.equal(r.exit_code, 128 + 10);
  assert.equal((await sh('kill -9 $$')).signal, 'SIGKILL');
});

test('only files pass from one exec to the next', async () => {
  await sh('cd /tmp; export LEAK=1; f() { :; }; umask 077; echo file >/workspace/f');
  const r = await sh('pwd; echo ${LEAK-none}; type f >/dev/null 2>&1 || echo no f; umask; cat /workspace/f');
  assert.equal(r.stdout, '/workspace\nnone\nno f\n0022\nfile\n');
});

test('cwd is where it runs, and a bad one means it does not run', async () => {
  assert.equal((await sh('pwd', { cwd: '/tmp' })).stdout, '/tmp\n');
  const e = await d.fails(422, 'cannot_start', 'POST', E, { command: 'touch /workspace/ran', cwd: '/no/such/dir' });
  assert.match(e.message, /\/no\/such\/dir/);
  await d.fails(422, 'cannot_start', 'POST', E, { command: 'touch /workspace/ran', cwd: '/etc/passwd' });
  await d.fails(422, 'cannot_start', 'POST', E, { command: 'touch /workspace/ran', cwd: '/root' });
  assert.equal((await sh('test -e /workspace/ran')).exit_code, 1);
});

test('env is laid over the sandbox\'s, which is laid over the defaults', async () => {
  const r = await sh('echo $FROM_SANDBOX $BOTH $MINE; echo $PATH; echo $USER $LOGNAME', { env: { BOTH: 'call', MINE: 'ä b' } });
  const [first, path, who] = r.stdout.split('\n');
  assert.equal(first, 'yes call ä b');
  assert.match(path, /\/usr\/bin/);
  assert.equal(who, 'user user');
  const bare = await sh(['/usr/bin/env'], { env: { PATH: '/nowhere' } });
  assert.match(bare.stdout, /^PATH=\/nowhere$/m);
  assert.doesNotMatch(bare.stdout, /COVE|KEY/);
});

test('user is a name, a uid, or uid:gid', async () => {
  assert.equal((await sh('id -un; echo $HOME', { user: 'root' })).stdout, 'root\n/root\n');
  assert.equal((await sh('id -u; id -g', { user: '0' })).stdout, '0\n0\n');
  assert.equal((await sh('id -u; id -g', { user: '1234:4321' })).stdout, '1234\n4321\n');
  const e = await d.fails(422, 'cannot_start', 'POST', E, { command: 'true', user: 'nobody-knows' });
  assert.match(e.message, /nobody-knows/);
});

test('supplementary groups are set', async () => {
  await sh('groupadd -g 5555 extra && usermod -aG extra user', { user: 'root' });
  assert.match((await sh('id -G')).stdout, /\b5555\b/);
});

test('a command that cannot start is a clear error', async () => {
  assert.match((await d.fails(422, 'cannot_start', 'POST', E, { argv: ['no-such-program'] })).message, /no-such-program/);
  const long = 'x'.repeat(131072);
  assert.equal((await sh(['printf', '%s', long.slice(1)])).stdout.length, 131071);
  assert.match((await d.fails(422, 'cannot_start', 'POST', E, { argv: ['echo', long] })).message, /an argument is longer than the 131071 bytes/);
  assert.match((await d.fails(422, 'cannot_start', 'POST', E, { argv: ['true'], env: { LONG: long } })).message, /a variable of env is longer/);
  await d.fails(413, 'too_large', 'POST', E, { argv: ['true', ...Array(30).fill(long.slice(1))] });
  await d.fails(422, 'cannot_start', 'POST', E, { argv: ['/etc/passwd'] });
  await d.fails(422, 'cannot_start', 'POST', E, { argv: ['/workspace'] });
  await sh('printf "#!/no/such/interpreter\\n" >/workspace/bad; chmod +x /workspace/bad');
  await d.fails(422, 'cannot_start', 'POST', E, { argv: ['/workspace/bad'] });
});

test('a program is found by the PATH of the call', async () => {
  await sh('mkdir -p /workspace/bin; printf "#!/bin/sh\\necho mine\\n" >/workspace/bin/tool; chmod +x /workspace/bin/tool');
  assert.equal((await sh(['tool'], { env: { PATH: '/workspace/bin:/bin' } })).stdout, 'mine\n');
  assert.equal((await sh(['./tool'], { cwd: '/workspace/bin' })).stdout, 'mine\n');
});

test('stdin is given whole and then ends; without it it is empty', async () => {
  assert.equal((await sh(['cat'], { stdin: 'über\nlast line without end' })).stdout, 'über\nlast line without end');
  assert.equal((await sh('cat | wc -c')).stdout.trim(), '0');
  assert.equal((await sh('wc -c', { stdin: '' })).stdout.trim(), '0');
  const raw = Buffer.from([0, 255, 10, 13, 0, 128]);
  const r = await sh(['cat'], { stdin_base64: raw.toString('base64') });
  assert.equal(r.stdout_encoding, 'base64');
  assert.deepEqual(bytesOf(r.stdout, r.stdout_encoding), raw);
  await d.fails(400, 'invalid', 'POST', E, { argv: ['cat'], stdin: 'a', stdin_base64: 'YQ==' });
  await d.fails(400, 'invalid', 'POST', E, { argv: ['cat'], stdin_base64: 'not base64!' });
});

test('a lot of stdin through a filter does not lock up', async () => {
  const big = 'x'.repeat(99) + '\n';
  const r = await sh(['cat'], { stdin: big.repeat(20_000), max_output: 4 << 20 });
  assert.equal(r.stdout.length, 2_000_000);
  assert.equal(r.stdout_truncated, false);
});

test('unread stdin does not block the end of a command', async () => {
  const r = await sh(['true'], { stdin: 'x'.repeat(1 << 20) });
  assert.equal(r.exit_code, 0);
});

test('bytes are verbatim: NUL, no newline at the end, invalid UTF-8 as base64 with a flag', async () => {
  const nul = await sh(['printf', 'a\\0b']);
  assert.equal(nul.stdout, 'a\u0000b');
  assert.equal(nul.stdout_encoding, undefined);
  const bad = await sh(['printf', 'ok\\377\\376']);
  assert.equal(bad.stdout_encoding, 'base64');
  assert.deepEqual(bytesOf(bad.stdout, 'base64'), Buffer.from([0x6f, 0x6b, 0xff, 0xfe]));
  assert.equal(bad.stderr, '');
  assert.equal(bad.stderr_encoding, undefined);
  const all = await sh(['python3', '-c', 'import sys; sys.stdout.buffer.write(bytes(range(256))*64)']);
  assert.deepEqual(bytesOf(all.stdout, all.stdout_encoding), Buffer.concat(Array(64).fill(Buffer.from([...Array(256).keys()]))));
  const esc = await sh(['printf', '"\\\\\\t\\r\\n\\033[1m\u2028\ud83d\ude00']);
  assert.equal(esc.stdout, '"\\\t\r\n\u001b[1m\u2028\ud83d\ude00');
});

test('a timeout kills the whole tree and returns the output and exit code 124', async () => {
  const t = Date.now();
  const r = await sh('echo before; echo err >&2; (setsid sleep 999 & echo $! >/workspace/pid); trap "" TERM; sleep 999', { timeout_ms: 500 });
  assert.ok(Date.now() - t < 8000);
  assert.equal(r.timed_out, true);
  assert.equal(r.exit_code, 124);
  assert.equal(r.stdout, 'before\n');
  assert.equal(r.stderr, 'err\n');
  const alive = await sh('kill -0 $(cat /workspace/pid) 2>/dev/null && echo alive; ps ax -o args | grep -c "[s]leep 999"', { user: 'root' });
  assert.equal(alive.stdout.trim(), '0');
});

test('a command that ends in time is not timed out', async () => {
  const r = await sh('echo quick', { timeout_ms: 10_000 });
  assert.equal(r.timed_out, false);
  assert.equal(r.exit_code, 0);
});

test('a command that ends just before its timeout keeps its exit code', async () => {
  for (let i = 0; i < 160; i++) {
    const r = await sh(['sleep', '0.02'], { timeout_ms: 20 + (i % 8) });
    const want = r.timed_out ? [124, 'SIGKILL'] : [0, null];
    assert.deepEqual([r.exit_code, r.signal], want, `round ${i}`);
  }
});

test('the exit of the command ends the call even when a child holds the pipe', async () => {
  const t = Date.now();
  const r = await sh('echo first; sleep 300 & echo $! >/workspace/bg; echo last');
  assert.ok(Date.now() - t < 5000, 'it waited for the background child');
  assert.equal(r.stdout, 'first\nlast\n');
  await sh('kill $(cat /workspace/bg)', { user: 'root' });
});

test('all output written before the exit is delivered', async () => {
  for (let i = 0; i < 5; i++) {
    const r = await sh('seq 100000; sleep 100 &', { max_output: 4 << 20 });
    assert.equal(r.stdout.length, 588_895);
    assert.ok(r.stdout.endsWith('\n100000\n'));
  }
});

test('output past the maximum keeps head and tail and says how much is missing', async () => {
  const r = await sh('seq -f "%07.0f" 100000', { max_output: 8000 });
  assert.equal(r.stdout_truncated, true);
  assert.equal(r.stderr_truncated, false);
  assert.ok(r.stdout.startsWith('0000001\n0000002\n'));
  assert.ok(r.stdout.endsWith('0099999\n0100000\n'));
  assert.ok(r.stdout.length <= 8000);
  assert.equal(r.stdout_dropped, 800_000 - r.stdout.length);
  assert.equal(r.stdout.slice(0, r.stdout_dropped_at), Array.from({ length: 9999 }, (_, i) => `${String(i + 1).padStart(7, '0')}\n`).join('').slice(0, r.stdout_dropped_at));
});

test('a flood does not make the daemon grow', async () => {
  const r = await sh('head -c 300M /dev/zero', { max_output: 1000, timeout_ms: 60_000 });
  assert.equal(r.exit_code, 0);
  assert.equal(r.stdout_truncated, true);
  assert.equal(r.stdout_dropped, 300 * 2 ** 20 - 1000);
  const rss = rssOf(d.frontPid());
  assert.ok(SANITIZED || rss < 100_000, `${rss} KiB`);
});

test('a stream starts before the command ends, keeps the order and ends with the exit', async () => {
  await sh('rm -f /workspace/fifo; mkfifo /workspace/fifo');
  const live = await d.sse(E, { method: 'POST', body: { command: 'echo one; read x </workspace/fifo; echo two >&2; sleep 0.2; printf three; exit 7' } });
  const first = await within(5000, 'the first line while it runs', live.until('stdout'));
  assert.equal(output(first, 'stdout').toString(), 'one\n');
  await sh('echo go >/workspace/fifo');
  const rest = await within(5000, 'the rest', live.all());
  const all = [...first, ...rest];
  assert.equal(output(all, 'stdout').toString(), 'one\nthree');
  assert.equal(output(all, 'stderr').toString(), 'two\n');
  const names = all.map((e) => e.event);
  assert.equal(names[0], 'start');
  assert.equal(names.at(-1), 'exit');
  assert.ok(names.indexOf('stderr') < names.lastIndexOf('stdout'));
  assert.equal(all.at(-1).data.exit_code, 7);
  assert.ok(all[0].data.pid > 1);
});

test('a stream never splits a character, and sends invalid UTF-8 as base64', async () => {
  const s = await d.sse(E, { method: 'POST', body: { argv: ['python3', '-c', 'import sys,time\nfor b in "añ€😀".encode():\n  sys.stdout.buffer.write(bytes([b])); sys.stdout.buffer.flush(); time.sleep(0.02)\nsys.stdout.buffer.write(b"\\xff\\xe2\\x82")'] } });
  const events = await within(20_000, 'the stream', s.all());
  for (const e of events) if (e.event === 'stdout' && e.data.encoding === undefined) assert.ok(!e.data.data.includes('\ufffd'));
  assert.deepEqual(output(events, 'stdout'), Buffer.concat([Buffer.from('añ€😀'), Buffer.from([0xff, 0xe2, 0x82])]));
});

test('a stream to a slow reader has no gap', async () => {
  const s = await d.sse(E, { method: 'POST', body: { command: 'seq 3000000' } });
  await within(5000, 'the first', s.until('stdout')).then(async (first) => {
    await new Promise((r) => s.res.pause() && setTimeout(r, 300)); // a reader that does not read, for a while
    s.res.resume();
    const all = [...first, ...(await within(60_000, 'the rest', s.all()))];
    assert.ok(!all.some((e) => e.event === 'truncated'));
    const text = output(all, 'stdout').toString();
    assert.equal(text.length, 22_888_896);
    assert.ok(text.endsWith('\n3000000\n'));
  });
});

test('a stream of a command that cannot start is an error, not a stream', async () => {
  const e = await d.sse(E, { method: 'POST', body: { argv: ['no-such-program'] } }).catch((err) => err);
  assert.equal(e.status, 422);
  assert.match(e.text, /cannot_start/);
});

test('a client that disconnects does not kill its command', async () => {
  await sh('rm -f /workspace/done');
  const s = await d.sse(E, { method: 'POST', body: { command: 'echo started; sleep 0.5; seq 200000; echo done >/workspace/done' } });
  await s.until('stdout');
  s.close();
  await poll('it ended by itself', async () => (await sh('cat /workspace/done')).stdout === 'done\n');
});

test('a client that disconnects does not take back the stdin it sent', async () => {
  await sh('rm -f /workspace/read');
  // the flood waits for the client, and goes on when it has left: only then is stdin read
  const s = await d.sse(E, {
    method: 'POST',
    body: { command: 'echo started; head -c 32M /dev/zero; wc -c >/workspace/read', stdin: 'x'.repeat(3 << 20) },
  });
  await s.until('stdout');
  s.close();
  await poll('it read all of it', async () => (await sh('cat /workspace/read')).stdout === `${3 << 20}\n`);
});

test('bare bytes are there for a pipe', async () => {
  const a = await d.call('POST', E, { argv: ['printf', 'a\\0\\377'] }, { headers: { accept: 'application/octet-stream' } });
  assert.equal(a.status, 200);
  assert.match(a.headers['content-type'], /octet-stream/);
  assert.deepEqual(a.bytes, Buffer.from([0x61, 0, 0xff]));
});

test('long arguments and a big environment arrive whole', async () => {
  const arg = 'é'.repeat(60_000);
  assert.equal((await sh(['sh', '-c', 'printf %s "$1" | wc -c', 'sh', arg])).stdout.trim(), '120000');
  const env = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`V${i}`, 'x'.repeat(100)]));
  assert.equal((await sh('env | grep -c "^V[0-9]*=x"', { env })).stdout.trim(), '500');
  const tooLong = await d.call('POST', E, { argv: ['echo', 'x'.repeat(200_000)] });
  assert.ok([200, 413, 422].includes(tooLong.status), `${tooLong.status}`);
});

test('fifty concurrent commands all answer', async () => {
  const all = await Promise.all(Array.from({ length: 50 }, (_, i) => sh(['echo', String(i)])));
  all.forEach((r, i) => assert.equal(r.stdout, `${i}\n`));
});

test('file descriptors of the daemon do not reach a command', async () => {
  assert.equal((await sh('ls -l /proc/self/fd | grep -c -v "pipe\\|/dev/null\\|/proc\\|^total"')).stdout.trim(), '0');
  assert.equal((await sh(['sh', '-c', 'ls /proc/$$/fd'])).stdout, '0\n1\n2\n');
});

test('signal dispositions and the mask are the defaults', async () => {
  const r = await sh('grep -E "^Sig(Blk|Ign):" /proc/self/status');
  assert.equal(r.stdout, 'SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n');
});

test('the result has the use of resources and the time it took', async () => {
  const r = await sh(['python3', '-c', 'x = bytearray(50 << 20)\nfor i in range(10**6): pass']);
  assert.ok(r.max_rss_kb > 50_000 && r.max_rss_kb < 500_000, `${r.max_rss_kb}`);
  assert.ok(r.cpu_ms > 1);
  assert.ok(r.duration_ms >= 1);
});

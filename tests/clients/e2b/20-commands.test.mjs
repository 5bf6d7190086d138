// Commands and PTYs as the SDK runs them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll, within } from '../../lib/cove.mjs';
import { raw, startE2b } from './lib.mjs';

let d, sdk, Sandbox, sbx;
before(async () => {
  ({ d, sdk } = await startE2b());
  ({ Sandbox } = sdk);
  sbx = await Sandbox.create({ envs: { FROM_SANDBOX: 'yes', BOTH: 'sandbox' } });
});
after(() => d.stop());

test('run returns both streams and the exit code, and calls back during the run', async () => {
  const seen = [];
  const r = await sbx.commands.run('echo out; echo err >&2; echo ümlaut', { onStdout: (t) => seen.push(t), onStderr: (t) => seen.push(t) });
  assert.equal(r.stdout, 'out\nümlaut\n');
  assert.equal(r.stderr, 'err\n');
  assert.equal(r.exitCode, 0);
  assert.equal(seen.join('').length, r.stdout.length + r.stderr.length);
});

test('a command that fails is a CommandExitError with everything in it', async () => {
  await assert.rejects(sbx.commands.run('echo a; echo b >&2; exit 7'), (e) => {
    assert.ok(e instanceof sdk.CommandExitError);
    assert.equal(e.exitCode, 7);
    assert.equal(e.stdout, 'a\n');
    assert.equal(e.stderr, 'b\n');
    assert.equal(e.error, 'exit status 7');
    return true;
  });
  await assert.rejects(sbx.commands.run('no-such-program'), (e) => e.exitCode === 127 && /not found/.test(e.stderr));
  await assert.rejects(sbx.commands.run('kill -SEGV $$'), (e) => e.exitCode === -1 && /segmentation fault/.test(e.error));
});

test('a command has the variables of E2B, the sandbox and the call, in that order, and the user\'s home and cwd', async () => {
  const r = await sbx.commands.run('echo $E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID $FROM_SANDBOX $BOTH $MINE; whoami; echo $HOME; pwd; umask', {
    envs: { MINE: 'call', BOTH: 'call' },
  });
  assert.equal(r.stdout, `true ${sbx.sandboxId} base yes call call\nuser\n/home/user\n/home/user\n0022\n`);
  const root = await sbx.commands.run('whoami; pwd; sudo -n true && echo sudo', { user: 'root' });
  assert.equal(root.stdout, 'root\n/root\nsudo\n');
  await sbx.commands.run('mkdir -p sub');
  for (const [cwd, is] of [['/tmp', '/tmp'], ['sub', '/home/user/sub'], ['~/sub', '/home/user/sub'], ['~', '/home/user']])
    assert.equal((await sbx.commands.run('pwd', { cwd })).stdout.trim(), is);
});

test('a user without a home starts in / unless cwd is given', async () => {
  const run = (command, opts) => sbx.commands.run(command, { user: 'nobody', ...opts });
  assert.equal((await run('whoami; pwd')).stdout, 'nobody\n/\n');
  assert.equal((await run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n');
  await assert.rejects(run('no-such-program'), (e) => e.exitCode === 127);
  for (const cwd of ['~', 'sub']) await assert.rejects(run('pwd', { cwd }), (e) => e instanceof sdk.InvalidArgumentError && e.message.includes(`cwd '${cwd}' does not exist`));
  const missing = await rpc('Start', { process: { cmd: '/no/such/program' }, stdin: false }, { stream: true, headers: { authorization: `Basic ${btoa('nobody:')}` } });
  assert.equal(missing.frames.at(-2).event.end.exitCode, 127);
});

test('a command that cannot start fails with envd\'s message', async () => {
  await assert.rejects(sbx.commands.run('true', { cwd: '/no/such' }), (e) => e instanceof sdk.InvalidArgumentError && /cwd '\/no\/such' does not exist/.test(e.message));
  await assert.rejects(sbx.commands.run('true', { user: 'nobody-here' }), (e) => e instanceof sdk.AuthenticationError && /invalid username: 'nobody-here'/.test(e.message));
  const missing = await rpc('Start', { process: { cmd: '/no/such/program', args: ['x'] }, stdin: false }, { stream: true });
  const events = missing.frames.map((f) => f.event);
  assert.ok(events[0].start.pid > 1, 'it starts, and a shell says what is wrong');
  assert.deepEqual(events.at(-2), { end: { exitCode: 127, exited: true, status: 'exit status 127', error: 'exit status 127' } });
});

test('PIDs are those inside; kill ends a command and its children at once', async () => {
  const h = await sbx.commands.run('setsid sleep 1000 & sleep 1000; echo never', { background: true });
  assert.equal((await sbx.commands.run(`kill -0 ${h.pid}; echo $?`)).stdout, '0\n');
  const listed = (await sbx.commands.list()).find((p) => p.pid === h.pid);
  assert.equal(listed.cmd, '/bin/bash');
  assert.deepEqual(listed.args, ['-l', '-c', 'setsid sleep 1000 & sleep 1000; echo never']);
  assert.equal(await h.kill(), true);
  assert.equal((await sbx.commands.run(`kill -0 ${h.pid} 2>/dev/null; echo $?; pgrep -x sleep | wc -l`)).stdout, '1\n0\n');
  await assert.rejects(h.wait(), (e) => e.exitCode === -1 && e.error === 'signal: killed');
  assert.equal(await sbx.commands.kill(h.pid), false);
  assert.equal(await sbx.commands.kill(99999), false);
  assert.ok(!(await sbx.commands.list()).some((p) => p.pid === h.pid));
});

test('a command ends when all processes have closed its output', async () => {
  const r = await sbx.commands.run('(sleep 0.3; echo late) & echo early');
  assert.equal(r.stdout, 'early\nlate\n');
});

test('timeoutMs limits a command, and 0 means no limit', async () => {
  const from = Date.now();
  await assert.rejects(sbx.commands.run('echo $$ > /tmp/slow; exec sleep 1000', { timeoutMs: 400 }), sdk.TimeoutError);
  assert.ok(Date.now() - from < 10_000);
  const pid = (await sbx.commands.run('cat /tmp/slow')).stdout.trim();
  await poll('it was killed', async () => (await sbx.commands.run(`kill -0 ${pid} 2>/dev/null; echo $?`)).stdout === '1\n');
  assert.equal((await sbx.commands.run('sleep 0.2; echo done', { timeoutMs: 0 })).stdout, 'done\n');
});

test('a later connect gets the output of a background command, also after its end', async () => {
  const h = await sbx.commands.run('for i in 1 2 3; do echo line $i; done; echo oops >&2; exit 4', { background: true });
  await h.disconnect();
  await poll('it ended', async () => !(await sbx.commands.list()).some((p) => p.pid === h.pid));
  const again = await sbx.commands.connect(h.pid);
  assert.equal(again.pid, h.pid);
  await assert.rejects(again.wait(), (e) => e.exitCode === 4 && e.stdout === 'line 1\nline 2\nline 3\n' && e.stderr === 'oops\n');
  await assert.rejects(sbx.commands.connect(99999), (e) => e instanceof sdk.NotFoundError && /process with pid 99999 not found/.test(e.message));
});

test('connect to a command without a reader misses no later output', async () => {
  const size = 20_000_000;
  const h = await sbx.commands.run(`read go; yes 0123456789 | head -c ${size}`, { background: true, stdin: true, timeoutMs: 0 });
  await h.disconnect();
  let got = 0;
  const again = await sbx.commands.connect(h.pid, { onStdout: (t) => (got += t.length), timeoutMs: 0 });
  await sbx.commands.sendStdin(h.pid, 'go\n');
  assert.equal((await again.wait()).exitCode, 0);
  assert.equal(got, size);
});

test('several clients may connect, and disconnecting does not kill the command', async () => {
  const h = await sbx.commands.run('while read line; do echo got $line; done', { background: true, stdin: true, timeoutMs: 0 });
  const seen = ['', ''];
  const a = await sbx.commands.connect(h.pid, { onStdout: (t) => (seen[0] += t) });
  const b = await sbx.commands.connect(h.pid, { onStdout: (t) => (seen[1] += t) });
  await sbx.commands.sendStdin(h.pid, 'one\n');
  await poll('both see it', () => seen.every((s) => s === 'got one\n'));
  await a.disconnect();
  await h.disconnect();
  await sbx.commands.sendStdin(h.pid, 'two\n');
  await poll('who stayed sees it', () => seen[1] === 'got one\ngot two\n');
  await sbx.commands.closeStdin(h.pid);
  const r = await b.wait();
  assert.equal(r.exitCode, 0);
  assert.equal(r.stdout, 'got one\ngot two\n');
});

test('stdin: bytes arrive whole, and its end; without it a command reads its end at once', async () => {
  const h = await sbx.commands.run('wc -c', { background: true, stdin: true });
  const much = 'x'.repeat(3 << 20);
  await h.sendStdin(much);
  await h.closeStdin();
  await h.closeStdin(); // closed is closed
  assert.equal((await h.wait()).stdout.trim(), String(much.length));
  assert.equal((await sbx.commands.run('cat; echo end')).stdout, 'end\n');
  const deaf = await sbx.commands.run('sleep 5', { background: true });
  await assert.rejects(deaf.sendStdin('x'), (e) => /not open/.test(e.message));
  await deaf.kill();
});

test('ten megabytes of output arrive completely, also at a slow reader', async () => {
  let n = 0;
  const h = await sbx.commands.run('seq 1 1500000', { background: true, onStdout: (t) => (n += t.length), timeoutMs: 0 });
  const r = await h.wait();
  assert.equal(n, r.stdout.length);
  assert.ok(r.stdout.startsWith('1\n2\n') && r.stdout.endsWith('\n1500000\n'));
  assert.equal(r.stdout.length, 10_888_896);
});

test('bytes that are no text, and a character cut in two, come out as they are', async () => {
  const r = await rpc('Start', { process: { cmd: '/bin/sh', args: ['-c', "printf '\\000\\377a'; sleep 0.1; printf '\\303'; sleep 0.1; printf '\\244'"] }, stdin: false }, { stream: true });
  const bytes = Buffer.concat(r.frames.filter((f) => f.event?.data?.stdout).map((f) => Buffer.from(f.event.data.stdout, 'base64')));
  assert.deepEqual([...bytes], [0, 255, 97, 0xc3, 0xa4]);
});

test('keepalives come as often as asked for', async () => {
  const r = await rpc('Start', { process: { cmd: 'sleep', args: ['2.5'] }, stdin: false }, { stream: true, headers: { 'keepalive-ping-interval': '1' } });
  assert.ok(r.frames.filter((f) => f.event?.keepalive).length >= 2);
});

test('a sandbox that ends in the middle: the SDK says that it was killed', async () => {
  const mine = await Sandbox.create();
  const h = await mine.commands.run('sleep 1000', { background: true, timeoutMs: 0 });
  const waiting = h.wait().catch((e) => e);
  await mine.kill();
  const e = await within(10_000, 'the stream ends', waiting);
  assert.ok(e instanceof sdk.TimeoutError, `${e}`);
  assert.match(e.message, /sandbox was killed or reached its end of life/);
  await assert.rejects(mine.commands.run('true'), sdk.SandboxNotFoundError);
  assert.equal(await mine.isRunning(), false);
});

test('a front that dies takes no command along', async () => {
  const h = await sbx.commands.run('echo before; sleep 1000', { background: true, timeoutMs: 0 });
  h.wait().catch(() => {});
  await d.kill9('front');
  await d.back();
  const again = await sbx.commands.connect(h.pid);
  await poll('what it printed', () => again.stdout === 'before\n');
  again.wait().catch(() => {});
  assert.equal(await sbx.commands.kill(h.pid), true);
});

test('a token opens its own sandbox only; a tokenless sandbox is open', async () => {
  const other = await Sandbox.create();
  const { envdAccessToken } = (await raw(d, 'GET', `/sandboxes/${sbx.sandboxId}`)).json;
  for (const token of [envdAccessToken, 'x', undefined]) {
    const a = await rpc('List', {}, { id: other.sandboxId, token });
    assert.equal(a.status, 401);
    assert.deepEqual(a.json, { code: 'unauthenticated', message: 'unauthorized access, please provide a valid access token or method signing if supported' });
    assert.equal((await data('GET', '/envs', undefined, { id: other.sandboxId, token })).json.code, 401);
  }
  const open = (await raw(d, 'POST', '/sandboxes', { templateID: 'base' })).json;
  assert.equal((await rpc('List', {}, { id: open.sandboxID, token: undefined })).status, 200);
  await Promise.all([other.kill(), Sandbox.kill(open.sandboxID)]);
});

test('malformed requests are refused as in the Connect protocol', async () => {
  const cases = [
    [400, 'invalid_argument', 'SendSignal', { process: {}, signal: 'SIGNAL_SIGKILL' }],
    [400, 'invalid_argument', 'SendSignal', { process: { pid: 1 }, signal: 'SIGNAL_NONE' }],
    [400, 'invalid_argument', 'SendInput', { process: { pid: 1 }, input: {} }],
    [400, 'invalid_argument', 'SendInput', { process: { pid: 1 }, input: { stdin: '!' } }],
    [404, 'not_found', 'SendSignal', { process: { pid: 99999 }, signal: 'SIGNAL_SIGKILL' }],
    [404, 'not_found', 'SendSignal', { process: { tag: 'nobody' }, signal: 9 }],
    [404, 'not_found', 'SendInput', { process: { pid: 99999 }, input: { stdin: '' } }],
    [404, 'not_found', 'CloseStdin', { process: { pid: 99999 } }],
    [404, 'not_found', 'Update', { process: { pid: 99999 }, pty: { size: { cols: 1, rows: 1 } } }],
  ];
  for (const [status, code, method, message] of cases) {
    const a = await rpc(method, message);
    assert.equal(a.status, status, `${method} ${JSON.stringify(message)}: ${a.text}`);
    assert.equal(a.json.code, code);
    assert.equal(typeof a.json.message, 'string');
  }
  for (const message of [{}, { process: {} }, { process: { cmd: 7 } }]) {
    const a = await rpc('Start', message, { stream: true });
    assert.equal(a.status, 200);
    assert.equal(a.frames.at(-1).error.code, 'invalid_argument', JSON.stringify(message));
  }
});

test('a tag names a process, and may be used again', async () => {
  const start = () => rpc('Start', { process: { cmd: 'sleep', args: ['1000'] }, tag: 'worker', stdin: false }, { stream: true, until: (f) => f.event?.start });
  const first = (await start()).frames[0].event.start.pid;
  assert.ok((await sbx.commands.list()).some((p) => p.tag === 'worker' && p.pid === first));
  assert.equal((await rpc('SendSignal', { process: { tag: 'worker' }, signal: 'SIGNAL_SIGTERM' })).status, 200);
  await poll('it ended', async () => (await rpc('SendSignal', { process: { tag: 'worker' }, signal: 15 })).status === 404);
  const second = (await start()).frames[0].event.start.pid;
  assert.notEqual(first, second);
  assert.equal((await rpc('SendSignal', { process: { tag: 'worker' }, signal: 'SIGNAL_SIGKILL' })).status, 200);
});

test('a PTY runs a shell, takes input and sizes, is connected again, and ends', async () => {
  let text = '';
  const pty = await sbx.pty.create({ cols: 80, rows: 24, onData: (b) => (text += Buffer.from(b)), envs: { MINE: 'pty' }, cwd: '/tmp', timeoutMs: 0 });
  const type = (s) => sbx.pty.sendInput(pty.pid, new TextEncoder().encode(s));
  await type('echo $MINE $TERM $(pwd); tput cols; tput lines\n');
  await poll('the shell answers', () => /pty xterm-256color \/tmp\r\n80\r\n24\r\n/.test(text));
  await sbx.pty.resize(pty.pid, { cols: 100, rows: 30 });
  await type('stty size\n');
  await poll('the new size', () => /\r30 100\r\n/.test(text));
  await pty.disconnect();
  let again = '';
  const b = await sbx.pty.connect(pty.pid, { onData: (x) => (again += Buffer.from(x)) });
  await poll('what was on it before', () => /30 100/.test(again));
  await type('echo again\n');
  await poll('and what comes', () => /\ragain\r\n/.test(again));
  await type('exit 3\n');
  await assert.rejects(b.wait(), (e) => e.exitCode === 3);
  const other = await sbx.pty.create({ cols: 10, rows: 10, onData: () => {} });
  assert.equal(await other.kill(), true);
  await assert.rejects(other.wait());
  assert.equal(await sbx.pty.kill(other.pid), false);
});

test('64 concurrent commands in eight sandboxes each get their own output', async () => {
  const all = await Promise.all(Array.from({ length: 8 }, () => Sandbox.create()));
  const results = await Promise.all(all.flatMap((s, i) => Array.from({ length: 8 }, (_, k) => s.commands.run(`echo ${i}-${k} $E2B_SANDBOX_ID`))));
  results.forEach((r, n) => assert.equal(r.stdout, `${Math.floor(n / 8)}-${n % 8} ${all[Math.floor(n / 8)].sandboxId}\n`));
  await Promise.all(all.map((s) => s.kill()));
});

test('GET /envs returns the variables of the sandbox', async () => {
  const a = await data('GET', '/envs');
  assert.deepEqual(a.json, { E2B_SANDBOX: 'true', E2B_SANDBOX_ID: sbx.sandboxId, E2B_TEMPLATE_ID: 'base', FROM_SANDBOX: 'yes', BOTH: 'sandbox' });
});

test('a page of another origin may call, with the token', async () => {
  const host = `49983-${sbx.sandboxId}.localhost:${d.port}`;
  const asked = await d.call('OPTIONS', '/process.Process/List', undefined, { key: null, headers: { host, origin: 'http://ui.example', 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-access-token' } });
  assert.equal(asked.status, 204);
  assert.equal(asked.headers['access-control-allow-origin'], '*');
  assert.match(asked.headers['access-control-allow-methods'], /POST/);
  const a = await rpc('List', {}, { headers: { host, origin: 'http://ui.example' } });
  assert.equal(a.status, 200);
  assert.equal(a.headers['access-control-allow-origin'], '*');
  assert.equal((await rpc('List', {}, { headers: { host, origin: 'http://ui.example' }, token: undefined })).status, 401);
  assert.equal((await rpc('List', {})).headers['access-control-allow-origin'], undefined);
});

// ---- the wire, for what the SDK cannot say ----

let tokens = {};
async function tokenOf(id) {
  return (tokens[id] ??= (await raw(d, 'GET', `/sandboxes/${id}`)).json.envdAccessToken);
}

async function data(method, path, body, { id = sbx.sandboxId, headers = {}, ...opts } = {}) {
  const token = 'token' in opts ? opts.token : await tokenOf(id);
  return d.call(method, path, body, {
    key: null,
    headers: { 'e2b-sandbox-id': id, 'e2b-sandbox-port': '49983', ...(token ? { 'x-access-token': token } : {}), ...headers },
  });
}

async function rpc(method, message, { stream = false, until, headers = {}, ...opts } = {}) {
  const json = Buffer.from(JSON.stringify(message));
  if (!stream) return data('POST', `/process.Process/${method}`, json, { ...opts, headers: { 'content-type': 'application/json', ...headers } });
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  const all = { 'content-type': 'application/connect+json', ...headers };
  if (until) return untilFrame(method, Buffer.concat([head, json]), all, until);
  const a = await data('POST', `/process.Process/${method}`, Buffer.concat([head, json]), { ...opts, headers: all });
  return { ...a, frames: framesOf(a.bytes) };
}

/** Reads a stream up to a frame, then leaves. */
async function untilFrame(method, body, headers, until) {
  const res = await fetch(`${d.url}/process.Process/${method}`, {
    method: 'POST',
    body,
    headers: { 'e2b-sandbox-id': sbx.sandboxId, 'e2b-sandbox-port': '49983', 'x-access-token': await tokenOf(sbx.sandboxId), ...headers },
  });
  const reader = res.body.getReader();
  let bytes = Buffer.alloc(0);
  while (!framesOf(bytes).some(until)) {
    const { done, value } = await reader.read();
    assert.ok(!done, `the stream ended: ${bytes}`);
    bytes = Buffer.concat([bytes, value]);
  }
  await reader.cancel();
  return { frames: framesOf(bytes) };
}

function framesOf(bytes) {
  const frames = [];
  for (let at = 0; at + 5 <= bytes.length; ) {
    const n = bytes.readUInt32BE(at + 1);
    if (at + 5 + n > bytes.length) break;
    frames.push(JSON.parse(bytes.subarray(at + 5, at + 5 + n)));
    at += 5 + n;
  }
  return frames;
}

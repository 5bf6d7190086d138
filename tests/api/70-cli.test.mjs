// The command line, run for real.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BIN, finished, poll, run, startDaemon, within } from '../lib/cove.mjs';

let d;
let id;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox({ metadata: { name: 'shared' } })).id;
});
after(() => d?.stop());

const cove = (args, opts) => d.cli(args, opts);
const sandboxes = async () => (await d.get('/v1/sandboxes?limit=1000')).sandboxes.map((s) => s.id);

test('version prints the version, help describes every command', async () => {
  assert.match((await cove(['version'])).stdout, /^cove \d+\.\d+\.\d+\n$/);
  assert.match(JSON.parse((await cove(['version', '--json'])).stdout).version, /^\d/);
  const help = await cove(['help']);
  assert.equal(help.status, 0);
  for (const c of ['serve', 'stop', 'create', 'list', 'run', 'exec', 'ps', 'logs', 'kill', 'resume', 'delete', 'template', 'doctor', 'version']) {
    assert.match(help.stdout, new RegExp(`^  ${c} `, 'm'));
    const own = await cove([c, '--help']);
    assert.equal(own.status, 0, c);
    assert.match(own.stdout, new RegExp(`^usage: cove ${c}`));
    assert.equal((await cove(['help', c])).stdout, own.stdout);
  }
});

test('a mistyped command is suggested, and the status is 200', async () => {
  const r = await cove(['crate']);
  assert.equal(r.status, 200);
  assert.equal(r.stdout, '');
  assert.match(r.stderr, /did you mean `cove create`/);
  assert.equal((await cove(['frobnicate'])).status, 200);
  assert.equal((await cove([])).status, 200);
});

test('a call that makes no sense shows the usage of that command', async () => {
  for (const args of [['exec'], ['exec', id], ['logs'], ['logs', id, 'p', 'q'], ['kill'], ['delete'], ['ps', id, 'extra'], ['run'], ['exec', '--frob', id, 'true'], ['exec', '-w'], ['list', '--json=1'], ['create', '--memory', 'lots'], ['create', '--env', '=x'], ['template'], ['template', 'frob'], ['kill', '-s', 'NOPE', id, 'x'], ['exec', '--timeout', 'soon', id, 'true']]) {
    const r = await cove(args);
    assert.equal(r.status, 200, `${args}: ${r.stderr}`);
    assert.notEqual(r.stderr, '', `${args}`);
    assert.equal(r.stdout, '', `${args}`);
  }
  assert.match((await cove(['exec'])).stderr, /usage: cove exec \[OPTIONS\] SANDBOX/);
});

test('exit statuses of failures follow the table', async () => {
  assert.equal((await cove(['ps', 'nosuchsandbox'])).status, 202);
  assert.equal((await cove(['list'], { env: { COVE_API_KEY: 'wrong' } })).status, 213);
  assert.equal((await cove(['list'], { env: { COVE_URL: 'http://127.0.0.1:9' } })).status, 211);
  assert.equal((await cove(['list'], { env: { COVE_URL: 'nonsense://x' } })).status, 200);
  assert.equal((await cove(['exec', id, 'no-such-program'])).status, 127);
  assert.equal((await cove(['exec', '-t', id, 'true'])).status, 200);
  // another name for it: root's own key goes only to where root's daemon said it is
  const env = { ...process.env, COVE_URL: d.url.replace('127.0.0.1', 'localhost') };
  delete env.COVE_API_KEY;
  assert.equal((await run(BIN, ['list'], { env })).status, 213);
});

test('create takes limits and metadata, list shows them, delete deletes', async () => {
  const made = await cove(['create', '--meta', 'a=b', '-e', 'V=w', '--memory', '256M', '--cpu', '0.5', '--pids', '99', '--disk', '1G', '--nofile', '128', '--bandwidth', '10M', '--timeout', '1h', '--on-timeout', 'stop']);
  assert.equal(made.status, 0, made.stderr);
  const box = await d.get(`/v1/sandboxes/${made.stdout.trim()}`);
  assert.deepEqual(box.limits, { cpu_milli: 500, memory: 256 << 20, pids: 99, disk: 2 ** 30, nofile: 128, bandwidth: 10 << 20, disk_io: 0 });
  assert.deepEqual(box.metadata, { a: 'b' });
  assert.equal(box.on_timeout, 'stop');
  const list = await cove(['list']);
  const line = list.stdout.split('\n').find((l) => l.startsWith(box.id));
  assert.match(line, /running\s+base\s+\d+s\s+in \d+m\s+a=b$/);
  assert.match(list.stdout.split('\n')[0], /^ID +NAME +STATE +TEMPLATE +AGE +ENDS +METADATA$/);
  assert.ok(JSON.parse((await cove(['list', '--json'])).stdout).sandboxes.some((s) => s.id === box.id));
  assert.ok((await cove(['list', '-q'])).stdout.split('\n').includes(box.id));
  assert.equal((await cove(['delete', box.id])).status, 0);
  const again = await cove(['rm', box.id]);
  assert.equal(again.status, 202);
  assert.match(again.stderr, new RegExp(box.id));
  const json = JSON.parse((await cove(['create', '--json'])).stdout);
  assert.equal((await cove(['delete', json.id])).status, 0);
});

test('cove list and cove snapshot list show all pages', async () => {
  const made = await Promise.all(Array.from({ length: 3 }, () => d.sandbox()));
  const snaps = await Promise.all(made.map((s) => d.post(`/v1/sandboxes/${s.id}/snapshots`, {})));
  const pages = [];
  // Pages of 100 would need more sandboxes than a test should make: the proxy asks for pages of one.
  const proxy = http.createServer(async (req, res) => {
    pages.push(req.url);
    const a = await d.call('GET', req.url.replace('limit=100', 'limit=1'));
    res.writeHead(a.status, { 'content-type': 'application/json' }).end(a.text);
  });
  await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  try {
    const env = { COVE_URL: `http://127.0.0.1:${proxy.address().port}` };
    assert.deepEqual((await cove(['list', '-q'], { env })).stdout.trim().split('\n'), await sandboxes());
    assert.ok(pages.length > 3, `${pages}`);
    const listed = JSON.parse((await cove(['snapshot', 'list', '--json'], { env })).stdout).snapshots.map((s) => s.id);
    assert.deepEqual(listed.sort(), snaps.map((s) => s.id).sort());
  } finally {
    proxy.close();
  }
  assert.equal((await cove(['delete', ...made.map((s) => s.id)])).status, 0);
  for (const s of snaps) await d.del(`/v1/snapshots/${s.id}`);
});

test('exec passes output and exit status through, byte for byte', async () => {
  const r = await cove(['exec', id, '--', 'bash', '-c', 'printf "a\\0\\377ü"; echo err >&2; exit 42']);
  assert.equal(r.status, 42);
  assert.deepEqual(r.bytes, Buffer.concat([Buffer.from([0x61, 0, 0xff]), Buffer.from('ü')]));
  assert.equal(r.stderr, 'err\n');
});

test('exec does not parse options after the sandbox', async () => {
  assert.equal((await cove(['exec', id, 'echo', '--json', '-w', '--', 'x'])).stdout, '--json -w -- x\n');
  assert.equal((await cove(['exec', '-w', '/tmp', '-e', 'A=1', '-e', 'B', '-u', 'root', id, '--', 'bash', '-c', 'pwd; echo $A$B; id -un'], { env: { B: '2' } })).stdout, '/tmp\n12\nroot\n');
});

test('a signal becomes 128 and its number, a timeout 124', async () => {
  assert.equal((await cove(['exec', id, 'bash', '-c', 'kill -9 $$'])).status, 137);
  const t = await cove(['exec', '--timeout', '300ms', id, 'bash', '-c', 'echo before; sleep 100']);
  assert.equal(t.status, 124);
  assert.equal(t.stdout, 'before\n');
});

test('stdin is passed on, in both directions at once', async () => {
  const big = Buffer.alloc(3 << 20, 'lines of text\n');
  const r = await cove(['exec', id, 'cat'], { input: big });
  assert.equal(r.status, 0, r.stderr);
  assert.ok(r.bytes.equals(big));
  assert.equal((await cove(['exec', id, 'wc', '-c'])).stdout.trim(), '0');
  assert.equal((await cove(['exec', id, 'head', '-c1'], { input: big })).stdout, 'l');
});

test('a lot of output has no gap', async () => {
  const r = await cove(['exec', id, 'seq', '2000000']);
  assert.equal(r.bytes.length, 14_888_896);
  assert.ok(r.stdout.endsWith('\n2000000\n'));
});

test('exec ends when its stdout is closed', async () => {
  const r = await run('bash', ['-o', 'pipefail', '-c', `"${BIN}" exec ${id} yes | head -2; echo \${PIPESTATUS[0]}`], { env: d.cliEnv(), deadline: 20_000 });
  assert.equal(r.stdout, 'y\ny\n141\n', r.stderr);
  await poll('yes is gone', async () => (await d.exec(id, 'pgrep -x yes || echo none', { user: 'root' })).stdout === 'none\n');
});

test('Ctrl-C interrupts the command, which may handle it', async () => {
  const child = d.cliSpawn(['exec', id, 'bash', '-c', 'trap "echo caught; exit 33" INT; echo up; while :; do sleep 0.05; done']);
  const end = finished(child, { deadline: 20_000 });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  child.kill('SIGINT');
  const r = await end;
  assert.equal(r.stdout, 'up\ncaught\n');
  assert.equal(r.status, 33);
});

test('a signal that is ignored, as nohup does it, is not passed on', async () => {
  const line = `trap '' HUP; exec "$@"`;
  const child = spawn('sh', ['-c', line, 'sh', BIN, 'exec', id, 'sh', '-c', 'echo up; read x; echo $x'], { env: d.cliEnv() });
  const end = finished(child);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  child.kill('SIGHUP');
  child.stdin.end('still here\n');
  const r = await within(20_000, 'it ends', end);
  assert.deepEqual([r.status, r.stdout], [0, 'up\nstill here\n'], r.stderr);
});

test('a second Ctrl-C kills it', async () => {
  const child = d.cliSpawn(['exec', id, 'bash', '-c', 'trap "echo ignored" INT; echo up; while :; do sleep 0.05; done']);
  const end = finished(child, { deadline: 20_000 });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  child.kill('SIGINT');
  await new Promise((resolve) => child.stdout.once('data', resolve));
  child.kill('SIGINT');
  assert.equal((await end).status, 137);
});

test('run makes a sandbox and deletes it afterwards', async () => {
  const before_ = await sandboxes();
  const r = await cove(['run', '-e', 'X=y', '--memory', '128M', '--', 'bash', '-c', 'echo $X; ls /workspace; exit 3']);
  assert.equal(r.stdout, 'y\n', r.stderr);
  assert.equal(r.status, 3);
  assert.equal((await cove(['run', 'echo', 'hello'])).stdout, 'hello\n');
  assert.equal((await cove(['run', 'cat'], { input: 'in and out' })).stdout, 'in and out');
  assert.equal((await cove(['run', 'no-such-program'])).status, 127);
  assert.deepEqual(await sandboxes(), before_);
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  test(`run deletes its sandbox also after ${signal}`, async () => {
    const before_ = await sandboxes();
    const child = d.cliSpawn(['run', 'bash', '-c', 'echo up; sleep 1000']);
    const end = finished(child, { deadline: 20_000 });
    await new Promise((resolve) => child.stdout.once('data', resolve));
    assert.equal((await sandboxes()).length, before_.length + 1);
    child.kill(signal);
    const r = await end;
    assert.ok(r.status > 128, `${r.status} ${r.stderr}`);
    assert.deepEqual(await sandboxes(), before_);
  });
}

test('ps shows running and finished processes', async () => {
  await d.process(id, ['sleep', '1000'], { id: 'ps-one' });
  await d.process(id, 'exit 4', { id: 'ps-two' });
  await d.post(`/v1/sandboxes/${id}/processes/ps-two/wait`);
  await d.process(id, ['bash', '-c', 'sleep 1000', '\u001b[31mred\u0007'], { id: 'ps-evil' });
  const r = await cove(['ps', id]);
  assert.match(r.stdout, /^ps-one +\d+ +running +user +\d+s +sleep 1000$/m);
  assert.match(r.stdout, /^ps-two +\d+ +exit 4 /m);
  assert.ok(!r.stdout.includes('\u001b') && !r.stdout.includes('\u0007'), 'a tenant does not paint our terminal');
  assert.ok(JSON.parse((await cove(['ps', '--json', id])).stdout).processes.some((p) => p.id === 'ps-one'));
  for (const p of ['ps-one', 'ps-evil']) assert.equal((await cove(['kill', '--grace', '0', id, p])).status, 0);
});

test('logs print the output so far; -f follows until the end', async () => {
  await d.process(id, 'echo out; echo err >&2; read x; echo more', { id: 'logged', stdin: true });
  await d.post(`/v1/sandboxes/${id}/processes/logged/wait`, { for: 'log', text: 'err\n', timeout_ms: 5000 });
  const now = await cove(['logs', id, 'logged']);
  assert.equal(now.stdout, 'out\n');
  assert.equal(now.stderr, 'err\n');
  const child = d.cliSpawn(['logs', '-f', id, 'logged']);
  const end = finished(child, { deadline: 20_000 });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  await d.call('POST', `/v1/sandboxes/${id}/processes/logged/stdin?close=1`, '\n');
  const r = await end;
  assert.equal(r.stdout, 'out\nmore\n');
  assert.equal(r.status, 0);
  assert.equal((await cove(['logs', id, 'nobody'])).status, 202);
});

test('kill ends a process; -s only sends a signal', async () => {
  await d.process(id, 'trap "echo hup" HUP; echo up; while :; do sleep 0.05; done', { id: 'victim' });
  await d.post(`/v1/sandboxes/${id}/processes/victim/wait`, { for: 'log', text: 'up', timeout_ms: 5000 });
  assert.equal((await cove(['kill', '-s', 'HUP', id, 'victim'])).status, 0);
  await d.post(`/v1/sandboxes/${id}/processes/victim/wait`, { for: 'log', text: 'hup', timeout_ms: 5000 });
  assert.equal((await cove(['kill', id, 'victim'])).status, 0);
  assert.equal((await d.get(`/v1/sandboxes/${id}/processes/victim`)).state, 'exited');
});

test('template list shows base, and refresh of an unknown template fails', async () => {
  assert.match((await cove(['template', 'list'])).stdout, /^base +ready /m);
  assert.ok(JSON.parse((await cove(['template', 'list', '--json'])).stdout).templates.length > 0);
  assert.equal((await cove(['template', 'refresh', 'no-such'])).status, 202);
});

test('a follow survives a restart of the daemon, without a gap and without a repeat', async () => {
  const child = spawn(BIN, ['exec', id, 'bash', '-c', 'for i in $(seq 300); do echo line $i; sleep 0.01; done; exit 9'], { env: d.cliEnv(), stdio: ['ignore', 'pipe', 'pipe'] });
  const end = finished(child, { deadline: 60_000 });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  await d.kill9('front');
  await d.back();
  await d.kill9('both');
  await d.restart();
  const r = await within(60_000, 'the command', end);
  assert.equal(r.stdout, Array.from({ length: 300 }, (_, i) => `line ${i + 1}\n`).join(''));
  assert.equal(r.status, 9, r.stderr);
});

test('a second daemon on the same state is refused clearly', async () => {
  const r = await run(BIN, ['serve', '--state', d.dir, '--listen', '127.0.0.1:0'], { deadline: 20_000 });
  assert.notEqual(r.status, 0);
  assert.match(r.stderr + r.stdout, /already|running|in use|locked/i);
  assert.equal((await d.call('GET', '/health')).status, 200);
});

test('serve refuses settings that make no sense, naming them', async () => {
  for (const [args, word] of [[['--frob', '1'], 'frob'], [['--pids', '1'], 'pids'], [['--memory', 'x'], 'memory'], [['--listen'], 'listen'], [['--domain', 'https://x.example'], 'domain'], [['--domain', 'x.example:0'], 'domain']]) {
    const r = await run(BIN, ['serve', '--state', `${d.dir}-none`, ...args], { deadline: 20_000 });
    assert.equal(r.status, 200, `${args}: ${r.stderr}`);
    assert.match(r.stderr, new RegExp(word));
  }
});

test('serve and stop refuse a directory that is not a state directory', async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-home-'));
  const link = `${dir}-link`;
  fs.writeFileSync(path.join(dir, 'letter'), 'dear');
  fs.chmodSync(dir, 0o1777);
  fs.symlinkSync(dir, link);
  try {
    for (const [args, why] of [[['serve', '--state', dir], /not empty/], [['stop', '--all', '--state', dir], /not empty/], [['serve', '--state', link], /is a symbolic link/]]) {
      const r = await run(BIN, args, { deadline: 20_000 });
      assert.equal(r.status, 200, `${args}: ${r.stderr}`);
      assert.match(r.stderr, why);
    }
    assert.deepEqual([fs.readdirSync(dir), fs.statSync(dir).mode & 0o7777], [['letter'], 0o1777]);
  } finally {
    fs.rmSync(link);
    fs.rmSync(dir, { recursive: true });
  }
});

test('a key that was there before the first start is the first key', async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-key-'));
  const key = 'e2b_0123456789abcdef0123456789abcdef01234567';
  fs.writeFileSync(path.join(dir, 'api-key'), `${key}\n`, { mode: 0o600 });
  const own = await startDaemon({ dir });
  try {
    assert.deepEqual([own.key, (await own.call('GET', '/v1/sandboxes')).status], [key, 200]);
  } finally {
    await own.stop();
  }
});

test('doctor reports what the host supports', async () => {
  const r = await cove(['doctor']);
  assert.ok(r.stdout.split('\n').length > 5, r.stderr);
  assert.match(r.stdout, /cgroup/i);
  assert.match(r.stdout, /pid/i);
});

test('doctor without root does not report privileged checks as missing', async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-bin-'));
  const copy = path.join(dir, 'cove');
  fs.copyFileSync(BIN, copy);
  fs.chmodSync(dir, 0o755);
  fs.chmodSync(copy, 0o755);
  const r = await run('setpriv', ['--reuid=65534', '--regid=65534', '--clear-groups', copy, 'doctor']);
  fs.rmSync(dir, { recursive: true });
  assert.deepEqual([r.status, r.stdout], [213, '']);
  assert.match(r.stderr, /^cove doctor: not root/);
});

test('resume boots a stopped sandbox, and says why it cannot', async () => {
  const s = await d.sandbox({ timeout_ms: 1, on_timeout: 'stop' });
  await poll('it is stopped', async () => (await d.get(`/v1/sandboxes/${s.id}`)).state === 'stopped');
  const r = await cove(['resume', '--timeout', '10m', s.id]);
  assert.equal(r.status, 0, r.stderr);
  assert.equal((await d.get(`/v1/sandboxes/${s.id}`)).state, 'running');
  const again = await cove(['resume', s.id, 'nope']);
  assert.notEqual(again.status, 0);
  assert.match(again.stderr, /running|not stopped/);
  assert.match(again.stderr, /nope/);
  await d.del(`/v1/sandboxes/${s.id}`);
});

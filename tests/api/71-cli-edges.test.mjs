// Errors of the command line: closed or full streams, hostile file names, invalid
// arguments, servers that are not Cove.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BIN, finished, poll, run, startDaemon } from '../lib/cove.mjs';
import { Pane } from '../lib/pane.mjs';

let d;
let id;
let here;
before(async () => {
  here = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-cli-'));
  d = await startDaemon();
  id = (await d.sandbox()).id;
});
after(async () => {
  await d?.stop();
  fs.rmSync(here, { recursive: true, force: true });
});

const cove = (args, opts) => d.cli(args, opts);
/** A line of shell in which $COVE is the binary and $ID the sandbox. */
const sh = (line) => run('bash', ['-c', line], { env: { ...d.cliEnv(), COVE: BIN, ID: id }, deadline: 20_000 });
const sandboxes = async () => (await d.get('/v1/sandboxes?limit=1000')).sandboxes.map((s) => s.id);
// eslint-disable-next-line no-control-regex
const CONTROL = /[\x00-\x09\x0b-\x1f\x7f-\x9f]/;

test('a failed write to stdout is an error with status 210', async () => {
  for (const args of ['list', 'list --json', 'ps $ID', 'version', 'help', 'create --help', 'template show base']) {
    const r = await sh(`$COVE ${args} > /dev/full`);
    assert.equal(r.status, 210, `${args}: ${r.stderr}`);
    assert.match(r.stderr, /^cove [a-z]+: stdout: No space left on device\n$/, args);
  }
});

test('logs end when stdout fails, also with -f', async () => {
  for (const args of ['logs $ID', 'logs --json $ID', 'logs -f $ID']) {
    const r = await sh(`$COVE ${args} > /dev/full`);
    assert.equal(r.status, 211, `${args}: ${r.stderr}`);
    assert.match(r.stderr, /stdout: No space left on device/, args);
  }
});

test('a closed stdout or stderr is an error', async () => {
  for (const args of ['exec $ID -- echo hi', 'run -- echo hi', 'cat $ID:/etc/hostname', 'list', 'logs $ID', 'cp $ID:/etc/hostname -']) {
    const r = await sh(`$COVE ${args} >&-`);
    assert.notEqual(r.status, 0, args);
    assert.match(r.stderr, /Bad file descriptor/, args);
  }
  assert.notEqual((await sh(`$COVE exec $ID -- sh -c 'echo hi >&2' 2>&-`)).status, 0);
  assert.equal((await sh(`$COVE exec $ID -- true >&- 2>&- <&-`)).status, 0);
  assert.equal((await sh(`$COVE exec $ID -- sh -c 'wc -c; exit 3' <&-`)).stdout, '0\n');
  assert.deepEqual(await sandboxes(), [id]);
});

test('a stdin that cannot be read is not an empty one', async () => {
  await cove(['session', 'create', '--id', 'in', id]);
  for (const args of ['exec $ID cat', 'session exec -i $ID in cat']) {
    const r = await sh(`$COVE ${args} < /`);
    assert.notEqual(r.status, 0, args);
    assert.match(r.stderr, /stdin: Is a directory/, args);
  }
});

test('exec works with non-blocking stdin', async () => {
  await cove(['session', 'create', '--id', 'slow', id]);
  const nonblock = 'use Fcntl; fcntl(STDIN, F_SETFL, O_NONBLOCK); exec @ARGV';
  for (const args of [['exec', id, 'cat'], ['session', 'exec', '-i', id, 'slow', 'cat']]) {
    const child = spawn('perl', ['-e', nonblock, BIN, ...args], { env: d.cliEnv() });
    const end = finished(child, { deadline: 20_000 });
    await poll('it to be ours', () => fs.readFileSync(`/proc/${child.pid}/comm`, 'utf8') !== 'perl\n');
    child.stdin.end('late');
    assert.equal((await end).stdout, 'late', `${args}`);
  }
});

test('cp works with non-blocking stdio', async () => {
  const nonblock = 'use Fcntl; fcntl($_, F_SETFL, O_NONBLOCK) for STDIN, STDOUT; exec @ARGV';
  const start = (args) => spawn('perl', ['-e', nonblock, BIN, ...args], { env: d.cliEnv() });
  const put = start(['cp', '-', `${id}:late`]);
  const done = finished(put, { deadline: 20_000 });
  await poll('it to be ours', () => fs.readFileSync(`/proc/${put.pid}/comm`, 'utf8') !== 'perl\n');
  put.stdin.end(Buffer.alloc(4 << 20, 'late'));
  assert.equal((await done).status, 0);
  const get = start(['cat', `${id}:late`]);
  await poll('it sleeps in poll(2)', () => fs.readFileSync(`/proc/${get.pid}/syscall`, 'utf8').startsWith('7 '));
  const r = await finished(get, { deadline: 20_000 });
  assert.deepEqual([r.status, r.bytes.length, r.stderr], [0, 4 << 20, '']);
});

test('no name and no message can send a terminal anything', async () => {
  const name = '\x1b]0;t\x07\u009b31m';
  await cove(['exec', id, 'bash', '-c', 'mkdir odd; cd odd; echo x > "$1"; chmod 0 "$1"', 'bash', name]);
  for (const args of [
    ['cp', `${id}:odd`, path.join(here, 'odd')],
    ['cat', `${id}:odd/${name}`],
    ['exec', id, name],
    ['ps', name],
    ['delete', name],
    ['exec', '-w', `/${name}`, id, 'true'],
    ['logs', id, name],
    ['template', 'show', name],
    ['help', name],
    [name],
  ]) {
    const r = await cove(args);
    assert.notEqual(r.status, 0, `${args}`);
    assert.doesNotMatch(r.stderr, CONTROL, `${args}`);
    assert.match(r.stderr, /\\x1b\]0;t\\x07/, `${args}`);
  }
  const listed = await cove(['ls', '--json', `${id}:odd`]);
  assert.doesNotMatch(listed.stdout, CONTROL);
  assert.equal(JSON.parse(listed.stdout).files[0].name, name);
});

test('file names are printed without terminal escape sequences', async () => {
  await cove(['exec', id, 'bash', '-c', "mkdir c1; touch c1/$'a\\u009b1mb'"]);
  const pane = new Pane(`${BIN} ls ${id}:c1`, { env: d.cliEnv() });
  try {
    await pane.shows('a\\x9b1mb');
  } finally {
    pane.close();
  }
});

test('a copy that is refused leaves the file that is here', async () => {
  const to = path.join(here, 'kept');
  fs.writeFileSync(to, 'precious');
  assert.equal((await cove(['cp', `${id}:/etc/shadow`, to])).status, 213);
  assert.equal(fs.readFileSync(to, 'utf8'), 'precious');
  assert.equal((await cove(['cp', `${id}:/etc/shadow`, path.join(here, 'new')])).status, 213);
  assert.equal(fs.existsSync(path.join(here, 'new')), false);
});

test('a value that is not UTF-8 is refused, and not left out', async () => {
  for (const args of ['create --snapshot', 'create --on-timeout', 'session create $ID --id', 'snapshot take $ID --name', 'template alias base', 'template build x --debootstrap', 'template build x --debootstrap bookworm --mirror', 'template build x --debootstrap bookworm --packages']) {
    const r = await sh(`$COVE ${args} $'\\xff'`);
    assert.equal(r.status, 200, `${args}: ${r.stderr}`);
    assert.match(r.stderr, /not UTF-8/, args);
  }
  assert.deepEqual(await sandboxes(), [id]);
});

test('a surplus argument is refused before any request', async () => {
  await cove(['session', 'create', '--id', 'one', id]);
  for (const args of [['create', id, 'two'], ['list', id, 'x'], ['delete', id, 'one', 'two'], ['interrupt', id, 'one', 'x']]) {
    const r = await cove(['session', ...args]);
    assert.equal(r.status, 200, `${args}`);
    assert.match(r.stderr, /unexpected argument/, `${args}`);
  }
  assert.match((await cove(['session', 'list', id])).stdout, /^one /m);
});

test('contradicting options are refused before any request', async () => {
  const child = d.cliSpawn(['exec', id, 'sh', '-c', 'echo up; exec sleep 1000']);
  const end = finished(child);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const { processes } = await d.get(`/v1/sandboxes/${id}/processes`);
  const { id: p } = processes.find((x) => x.state === 'running');
  for (const args of [['kill', '-s', 'KILL', '--grace', '1s', id, p], ['kill', '--tree', id, p], ['network', '--open', '--deny', '0.0.0.0/0', id]]) {
    const r = await cove(args);
    assert.equal(r.status, 200, `${args}: ${r.stderr}`);
  }
  assert.equal((await d.get(`/v1/sandboxes/${id}/processes/${p}`)).state, 'running');
  assert.equal((await cove(['kill', '-s', 'KILL', id, p])).status, 0);
  assert.equal((await end).status, 137);
});

test('numbers are written as numbers are', async () => {
  for (const cpu of ['0x1', ' 1', '1e0', '1x', 'inf', 'nan', '-1', '']) {
    const r = await cove(['create', '--cpu', cpu]);
    assert.equal(r.status, 200, cpu);
    assert.match(r.stderr, /--cpu: .* is not a number of cores/);
  }
  assert.deepEqual(await sandboxes(), [id]);
});

test('a cursor is one value, whatever is in it', async () => {
  for (const since of ['a b', '0&follow=1', '0 HTTP/1.1\r\nX: y\r\n\r\n']) {
    const r = await cove(['logs', '--since', since, id, 'nosuch']);
    assert.equal(r.status, 200, since);
    assert.match(r.stderr, /^cove logs: since: /, since);
  }
});

test('an answer of another server is an error and not a crash', async () => {
  const stranger = net.createServer((c) => {
    c.on('error', () => {});
    c.once('data', () => c.end('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'));
  });
  await new Promise((resolve) => stranger.listen(0, '127.0.0.1', resolve));
  const env = { COVE_URL: `http://127.0.0.1:${stranger.address().port}` };
  try {
    for (const args of [['create'], ['key', 'create'], ['snapshot', 'take', 'x'], ['session', 'create', 'x']]) {
      const r = await cove(args, { env });
      assert.equal(r.status, 206, `${args}: ${r.signal}`);
      assert.match(r.stderr, /the server's answer has no (id|key)/);
    }
  } finally {
    stranger.close();
  }
});

test('an answer without words has some of ours', async () => {
  const stranger = http.createServer((req, res) => {
    if (req.url.includes('/processes')) res.setHeader('Content-Type', 'text/event-stream');
    res.end(req.url.includes('/processes') ? 'event: error\ndata: {}\n\n' : '');
  });
  await new Promise((resolve) => stranger.listen(0, '127.0.0.1', resolve));
  const env = { COVE_URL: `http://127.0.0.1:${stranger.address().port}` };
  try {
    for (const [args, words] of [[['ls', 'x'], /answer is empty/], [['cp', 'x:y', 'z'], /answer is empty/], [['exec', 'x', 'true'], /gave no reason/]]) {
      const r = await cove(args, { env });
      assert.equal(r.status, 206, `${args}`);
      assert.match(r.stderr, words);
    }
  } finally {
    stranger.close();
  }
});

test('logs --search reads further pages until it has enough entries', async () => {
  const entry = (n) => ({ cursor: String(n), at: '2026-01-31T12:00:00.000Z', level: 'info', message: `needle ${n}`, fields: {} });
  const pages = { '': { entries: [], next_cursor: '9' }, 9: { entries: [entry(8), entry(7)], next_cursor: '6' }, 6: { entries: [entry(5), entry(4)], next_cursor: '3' } };
  const server = http.createServer((req, res) => {
    res.end(JSON.stringify(pages[new URL(req.url, 'http://cove').searchParams.get('cursor') ?? '']));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const r = await cove(['logs', '-n', '3', '--search', 'needle', 'x'], { env: { COVE_URL: `http://127.0.0.1:${server.address().port}` } });
    assert.deepEqual(r.stdout.match(/needle \d/g), ['needle 5', 'needle 7', 'needle 8'], r.stderr);
  } finally {
    server.close();
  }
});

/** The half of the daemon that answers, stopped as if it hung, while fn runs. */
async function whileStuck(fn) {
  const front = d.frontPid();
  process.kill(front, 'SIGSTOP');
  try {
    return await fn();
  } finally {
    process.kill(front, 'SIGCONT');
  }
}

/** Until a child sleeps with these signals blocked: they are caught, and it waits. */
const waits = (child) =>
  poll('it to wait for an answer', () => {
    const status = fs.readFileSync(`/proc/${child.pid}/status`, 'utf8');
    return /^SigBlk:\s+0*4003$/m.test(status) && /^State:\s+S/m.test(status);
  });

test('Ctrl-C ends a command whose server does not answer', async () => {
  for (const args of [['exec', id, 'true'], ['run', 'true'], ['session', 'exec', id, 'slow', 'true']]) {
    const r = await whileStuck(async () => {
      const child = d.cliSpawn(args);
      const end = finished(child, { deadline: 20_000 });
      await waits(child);
      child.kill('SIGINT');
      return end;
    });
    assert.equal(r.status, 211, `${args}: ${r.stderr}`);
    assert.match(r.stderr, /interrupted: the server does not answer/, `${args}`);
  }
});

test('a second Ctrl-C ends the client when the server cannot be told', async () => {
  const child = d.cliSpawn(['exec', id, 'sh', '-c', 'echo up; exec sleep 1000']);
  const end = finished(child, { deadline: 40_000 });
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const r = await whileStuck(async () => {
    child.kill('SIGINT');
    await new Promise((resolve) => child.stderr.once('data', resolve));
    child.kill('SIGINT');
    return end;
  });
  assert.equal(r.status, 211, r.stderr);
  assert.match(r.stderr, /interrupted, and the server does not answer; command \w+ may still run in/);
});

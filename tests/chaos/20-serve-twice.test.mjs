// One daemon per state directory, one program per port: the second is refused
// and the first keeps running.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { settled } from '../lib/chaos.mjs';
import { BASE, BIN, Daemon, poll, run, startDaemon, tagOf } from '../lib/cove.mjs';
import { leftovers } from '../lib/host.mjs';

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const serve = (dir, port) => run(BIN, ['serve', '--listen', `127.0.0.1:${port}`, '--state', dir, '--base', BASE, '--pool', '2', '--network', 'none'], { deadline: 20_000 });

/** A state directory on which serving must fail and leave nothing. */
async function failsIn(port) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-test-'));
  const r = await serve(dir, port);
  await poll('nothing is left', async () => (await leftovers(dir, tagOf(dir))).length === 0, { deadline: 5000 });
  fs.rmSync(dir, { recursive: true });
  return r;
}

test('a second daemon on a state directory is refused, and the first keeps running', async () => {
  const s = await d.sandbox();
  const p = await d.process(s.id, ['sleep', '1000']);
  const before_ = await settled(d);
  const front = d.frontPid();
  const r = await serve(d.dir, 0);
  assert.equal(r.status, 211);
  assert.equal(r.stdout, '');
  assert.equal(r.stderr, `cove serve: state directory: another cove (pid ${d.keeper.pid}) already serves ${d.dir}\n`);
  assert.equal(d.frontPid(), front);
  assert.deepEqual(await settled(d), before_);
  assert.equal((await d.get(`/v1/sandboxes/${s.id}/processes/${p.id}`)).state, 'running');
  assert.equal((await d.exec(s.id, ['echo', 'here'])).stdout, 'here\n');
  await d.del(`/v1/sandboxes/${s.id}`);
});

test('the port of another daemon is refused by name and leaves no state', async () => {
  const r = await failsIn(d.port);
  assert.equal(r.status, 211);
  assert.match(r.stderr, new RegExp(`^cove serve: listen on 127\\.0\\.0\\.1:${d.port}: the port is in use by another program$`, 'm'));
  assert.equal((await d.call('GET', '/health')).status, 200);
});

test('the port of any other program is refused by name', async () => {
  const other = net.createServer().listen(0, '127.0.0.1');
  await new Promise((r) => other.once('listening', r));
  const { port } = other.address();
  const r = await failsIn(port);
  other.close();
  assert.equal(r.status, 211);
  assert.match(r.stderr, new RegExp(`127\\.0\\.0\\.1:${port}: the port is in use by another program`));
});

const AGAIN = 50;

test('a killed daemon can be restarted at once on its directory and port', async () => {
  const s = await d.sandbox();
  for (let i = 0; i < AGAIN; i++) {
    const work = [d.sandbox(), d.exec(s.id, 'dd if=/dev/zero of=file bs=64k count=16 conv=fsync 2>/dev/null')].map((p) => p.catch(() => {}));
    if (i % 2 === 0) await Promise.race(work);
    d.keeper.kill('SIGKILL');
    d.agent.destroy();
    await d.restart(); // says so if it is refused
    await Promise.all(work);
  }
  for (const other of (await d.get('/v1/sandboxes?limit=100')).sandboxes) await d.del(`/v1/sandboxes/${other.id}`);
});

test('a front that does not leave after its keeper is killed, and its port is free', async () => {
  const front = d.frontPid();
  process.kill(front, 'SIGSTOP');
  d.keeper.kill('SIGKILL');
  d.agent.destroy();
  await d.restart().catch((e) => {
    process.kill(front, 'SIGKILL'); // or it would outlive the test
    throw e;
  });
  assert.match(d.log, new RegExp(`front \\(pid ${front}\\) of a keeper that is gone does not end: killing it`));
  assert.equal((await d.call('GET', '/v1/sandboxes')).status, 200);
});

/** Starts a daemon where `holder`, a child of ours, has the lock; it waits until `release` is called. */
async function waitsFor(holder, dir, release) {
  const late = new Daemon({ dir });
  const started = late.start();
  started.catch(() => {}); // told below
  await poll('the daemon has opened the lock', () => {
    assert.equal(late.keeper.exitCode, null, late.log);
    return fs.readdirSync(`/proc/${late.keeper.pid}/fd`).some((n) => fs.readlinkSync(`/proc/${late.keeper.pid}/fd/${n}`) === path.join(dir, 'lock'));
  });
  const ended = new Promise((r) => holder.once('exit', r));
  release();
  await ended;
  await started;
  assert.equal((await late.call('GET', '/health')).status, 200);
  await late.stop();
}

/** A state directory whose lock a program has; it prints a line when it has it. */
async function locked(text, ...args) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-test-'));
  const holder = spawn('python3', ['-c', `import ctypes, fcntl, os, sys, threading
f = open(sys.argv[1] + '/lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX)
${text}`, dir, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  await new Promise((resolve, reject) => {
    holder.stdout.once('data', resolve);
    holder.once('exit', (c) => reject(new Error(`the holder ended: ${c}`)));
  });
  return { dir, holder };
}

test('a killed daemon with a remaining thread is waited for', async () => {
  // the first thread ends, as after a kill while another one waits for the disk
  const { dir, holder } = await locked(`
open('/proc/self/comm', 'w').write('cove-keeper'); f.write(f'{os.getpid()}\\n'); f.flush()
def rest():
    while open('/proc/self/stat').read().rsplit(')')[1].split()[0] != 'Z': pass
    os.write(1, b'held\\n'); sys.stdin.buffer.raw.read(); os._exit(0)
threading.Thread(target=rest).start()
ctypes.CDLL(None).syscall(60, 0)`);
  await waitsFor(holder, dir, () => holder.stdin.end());
});

test('a child of a killed daemon is waited for, also if its pid is reused', async () => {
  const { dir, holder } = await locked(`
f.write(sys.argv[2] + '\\n'); f.flush(); print('held', flush=True); sys.stdin.read()`, String(process.pid));
  await waitsFor(holder, dir, () => holder.stdin.end());
});

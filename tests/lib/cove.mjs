// cove.mjs - the harness: starts a daemon for a test, talks to it, and checks at the
// end that nothing of it is left in the kernel.
//
// Every daemon has its own state directory, port and tag; only the template is
// shared (COVE_TEST_BASE), since building it takes seconds. Tests wait for events
// or for a predicate with a deadline, never for a fixed time.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { isAlive, leftovers, processesOf } from './host.mjs';
import { SseReader } from './sse.mjs';

const ROOT = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../..');
export const BIN = path.resolve(process.env.COVE_BIN ?? path.join(ROOT, 'build/cove'));
export const BASE = process.env.COVE_TEST_BASE ?? '/tmp/cove-test-base';
export const ROOT_DIR = ROOT;
/** Memory means something else with a sanitizer that keeps freed blocks for a while. */
export const SANITIZED = /asan/.test(BIN);
const COMPLAINTS = /^.*(AddressSanitizer|LeakSanitizer|runtime error:|assertion|Assertion).*$/gm;
/** The tests of host mode (tests/host/README.md). */
export const HOST = process.env.COVE_HOST === '1';
const SERVE_ONLY = new Set(['--pool', '--disk-reserve', '--disk-pool', '--network', '--base', '--accept']);
const setsOf = (args) => {
  const out = [];
  for (let i = 0; i < args.length; i += 2) out.push('--set', `${args[i].slice(2)}=${args[i + 1]}`);
  return out;
};
const READY_MS = 120_000; // the first start builds the template
const LOG_KEPT = 256 * 1024;

/** Calls fn until it returns something true; fails with `what` when the time is over. */
export async function poll(what, fn, { deadline = 10_000, every = 15 } = {}) {
  const end = Date.now() + deadline;
  let last;
  for (;;) {
    try {
      const got = await fn();
      if (got) return got;
      last = got;
    } catch (e) {
      last = e;
    }
    if (Date.now() > end) throw new Error(`after ${deadline} ms still not: ${what} (last: ${last?.message ?? JSON.stringify(last)})`);
    await new Promise((r) => setTimeout(r, every));
  }
}

/** Fails when the promise is not settled in time. */
export function within(ms, what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Runs a program to its end. */
export function run(file, args, { input, env, cwd, deadline = 120_000 } = {}) {
  const child = spawn(file, args, {
    env: env ?? process.env,
    cwd,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  return finished(child, { input, deadline });
}

export function finished(child, { input, deadline = 120_000 } = {}) {
  const out = [];
  const err = [];
  child.stdout.on('data', (d) => out.push(d));
  child.stderr.on('data', (d) => err.push(d));
  if (input !== undefined) {
    child.stdin.on('error', () => {}); // it may not read it
    child.stdin.end(input);
  }
  const done = new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (status, signal) =>
      resolve({
        status,
        signal,
        bytes: Buffer.concat(out),
        stdout: Buffer.concat(out).toString(),
        stderr: Buffer.concat(err).toString(),
      }));
  });
  return within(deadline, `${child.spawnargs.join(' ')}`, done).catch((e) => {
    child.kill('SIGKILL');
    throw e;
  });
}

export class ApiError extends Error {
  constructor(method, url, answer) {
    super(`${method} ${url}: ${answer.status} ${answer.json?.error?.code ?? ''} ${answer.json?.error?.message ?? answer.text}`);
    this.status = answer.status;
    this.code = answer.json?.error?.code;
    this.answer = answer;
  }
}

const running = new Set();
process.on('exit', () => {
  for (const d of running) d.keeper?.kill('SIGKILL');
});

export class Daemon {
  /** `wrap`: a command that ends by executing the daemon; `inside`: the same for everything of it, and
   * `agent`: how to reach what listens there. `bin` may be changed between two starts. */
  constructor({ args = [], env = {}, dir, wrap = [], inside = [], agent = {}, bin = BIN } = {}) {
    this.bin = bin;
    this.dir = dir ?? fs.mkdtempSync(path.join(os.tmpdir(), 'cove-test-'));
    fs.chmodSync(this.dir, 0o711);
    this.args = args;
    this.inside = inside;
    this.agentOptions = agent;
    this.env = env;
    this.wrap = wrap;
    this.port = 0;
    this.log = '';
    this.complaints = [];
    this.frontsLost = 0; // ended for any reason...
    this.frontsKilled = 0; // ...and ended by this test
  }

  /** With COVE_HOST=1 it is `cove host`, on the copy of this machine that tests/host/inside.sh makes. */
  #hostArgs() {
    const told = this.args.filter((a, i) => !SERVE_ONLY.has(a) && !SERVE_ONLY.has(this.args[i - 1]));
    return ['host', '--listen', `127.0.0.1:${this.port}`, '--state', this.dir, '--user', 'user', ...setsOf(told)];
  }

  async start() {
    if (HOST) return this.#launch([...this.inside, ...this.wrap, this.bin, ...this.#hostArgs()]);
    const args = ['serve', '--listen', `127.0.0.1:${this.port}`, '--state', this.dir, '--base', BASE];
    if (!this.args.includes('--pool')) args.push('--pool', '2');
    // each daemon's share of this disk is allocated at its start; an old release does not know the word
    if (this.bin === BIN && !this.args.some((a) => a.startsWith('--disk-'))) args.push('--disk-reserve', '1G');
    // no test sends anything out of this machine; those of the network build an internet
    if (!this.args.includes('--network')) args.push('--network', 'none');
    return this.#launch([...this.inside, ...this.wrap, this.bin, ...args, ...this.args]);
  }

  async #launch([file, ...words]) {
    this.keeper = spawn(file, words, {
      env: { ...process.env, ...this.env },
      cwd: HOST ? '/workspace' : undefined,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true, // a process group of its own, as in a terminal
    });
    running.add(this);
    const keeper = this.keeper; // another may be started before this one has ended
    this.exited = new Promise((resolve) => {
      keeper.on('exit', (code, signal) => {
        if (this.keeper === keeper) running.delete(this);
        resolve({ code, signal });
      });
    });
    this.keeper.stderr.on('data', (d) => {
      this.log = (this.log + d).slice(-LOG_KEPT);
      this.complaints.push(...(String(d).match(COMPLAINTS) ?? []));
      this.frontsLost += (String(d).match(/the front ended/g) ?? []).length;
    });
    await this.#ready();
    this.key = fs.readFileSync(path.join(this.dir, 'api-key'), 'utf8').trim();
    this.agent = this.#newAgent();
    return this;
  }

  #newAgent() {
    return Object.assign(new http.Agent({ keepAlive: true, maxSockets: 512 }), this.agentOptions);
  }

  async #ready() {
    let seen = '';
    const line = new Promise((resolve) => {
      this.keeper.stdout.on('data', (d) => {
        seen += d;
        const m = /^.*\bready\b.*?(http:\/\/[^\s/]+).*$/m.exec(seen);
        if (m) resolve(m[1]);
      });
    });
    const ended = this.exited.then(({ code, signal }) => {
      throw new Error(`the daemon ended before it was ready (${code ?? signal}):\n${seen}${this.log}`);
    });
    this.url = await within(READY_MS, 'ready line', Promise.race([line, ended])).catch((e) => {
      e.message += `\n${seen}${this.log}`;
      throw e;
    });
    ended.catch(() => {});
    this.output = seen;
    this.port = Number(new URL(this.url).port);
  }

  // ---- talking to it ----

  /** One request; never throws for a status. `body`: an object is sent as JSON, bytes as they are. */
  call(method, url, body, { headers = {}, key = this.key, timeout = 60_000, maxHeaderSize } = {}) {
    const isJson = body !== undefined && !(body instanceof Uint8Array) && typeof body !== 'string';
    const data = body === undefined ? undefined : isJson ? JSON.stringify(body) : body;
    return new Promise((resolve, reject) => {
      const req = http.request(this.url + url, {
        method,
        agent: this.agent,
        maxHeaderSize,
        headers: {
          ...(key ? { authorization: `Bearer ${key}` } : {}),
          ...(data !== undefined ? { 'content-length': Buffer.byteLength(data) } : {}),
          ...(isJson ? { 'content-type': 'application/json' } : {}),
          ...headers,
        },
      });
      req.setTimeout(timeout, () => req.destroy(new Error(`${method} ${url}: no answer in ${timeout} ms`)));
      req.on('error', reject);
      req.on('response', (res) => {
        const parts = [];
        res.on('data', (d) => parts.push(d));
        res.on('error', reject);
        res.on('end', () => {
          const bytes = Buffer.concat(parts);
          const answer = { status: res.statusCode, headers: res.headers, bytes, text: bytes.toString() };
          if (bytes.length > 0 && /^application\/json/.test(res.headers['content-type'] ?? '')) answer.json = JSON.parse(answer.text);
          resolve(answer);
        });
      });
      req.end(data);
    });
  }

  /** The JSON of a 2xx answer; throws ApiError otherwise. */
  async api(method, url, body, opts) {
    const answer = await this.call(method, url, body, opts);
    if (answer.status < 200 || answer.status > 299) throw new ApiError(method, url, answer);
    return answer.json;
  }

  get(url, opts) {
    return this.api('GET', url, undefined, opts);
  }

  post(url, body = {}, opts) {
    return this.api('POST', url, body, opts);
  }

  del(url, opts) {
    return this.api('DELETE', url, undefined, opts);
  }

  /** Asserts that a call fails with this status and code, in the common format of errors. */
  async fails(status, code, method, url, body, opts) {
    const a = await this.call(method, url, body, opts);
    assert.equal(a.status, status, `${method} ${url}: ${a.text}`);
    assert.ok(a.json, `an error is JSON: ${a.text}`);
    assert.deepEqual(Object.keys(a.json), ['error']);
    assert.equal(a.json.error.code, code, a.text);
    assert.equal(typeof a.json.error.message, 'string');
    assert.equal(typeof a.json.error.request_id, 'string');
    return a.json.error;
  }

  /** Server-sent events: an async iterator of {id, event, data}; close() ends it. */
  sse(url, opts = {}) {
    return new SseReader(this, url, opts).open();
  }

  async sandbox(opts = {}) {
    if (HOST) {
      await this.post('/v1/sandboxes/host/resume').catch(() => {}); // a test may have stopped it
      if (opts.env) { // the machine's: that of its server
        this.env = { ...this.env, ...opts.env };
        await this.end();
        await this.start();
      }
      return this.get('/v1/sandboxes/host');
    }
    return this.post('/v1/sandboxes', opts);
  }

  /** Runs a command (text for bash, or argv) and returns the result. */
  exec(id, command, opts = {}) {
    const what = Array.isArray(command) ? { argv: command } : { command };
    return this.post(`/v1/sandboxes/${id}/exec`, { ...what, ...opts }, { timeout: 120_000 });
  }

  process(id, command, opts = {}) {
    const what = Array.isArray(command) ? { argv: command } : { command };
    return this.post(`/v1/sandboxes/${id}/processes`, { ...what, ...opts });
  }

  cliEnv(extra = {}) {
    return { ...process.env, COVE_URL: this.url, COVE_API_KEY: this.key, ...extra };
  }

  /** The real CLI against this daemon. */
  cli(args, opts = {}) {
    const [file, ...all] = [...this.inside, this.bin, ...args];
    return run(file, all, { ...opts, env: this.cliEnv(opts.env) });
  }

  /** The CLI as a child to play with; see finished(). */
  cliSpawn(args, { env, stdio = ['ignore', 'pipe', 'pipe'] } = {}) {
    return spawn(this.bin, args, { env: this.cliEnv(env), stdio });
  }

  // ---- ending it, gently or not ----

  keeperPid() {
    return this.keeper.pid;
  }

  frontPid() {
    return processesOf(this.keeper.pid).find((p) => p.title.startsWith('cove: front'))?.pid;
  }

  /** kill -9 of 'front', 'keeper' or 'both'. A dead front is started again by its keeper. */
  async kill9(who) {
    const front = this.frontPid();
    if (who !== 'keeper' && front) {
      process.kill(front, 'SIGKILL');
      this.frontsKilled++;
    }
    if (who !== 'front') {
      this.keeper.kill('SIGKILL');
      await this.exited;
      // without its keeper a front leaves by itself; the next daemon wants the port
      if (front) await poll('the front is gone', () => !isAlive(front));
    }
    this.agent.destroy();
    this.agent = this.#newAgent();
    return front;
  }

  /** Waits until a front answers again after kill9('front'). */
  async back() {
    await poll('the front answers again', async () => (await this.call('GET', '/health', undefined, { timeout: 2000 })).status === 200);
    await poll('the engine is ready', async () => (await this.call('GET', '/v1/sandboxes?limit=1', undefined, { timeout: 5000 })).status === 200);
  }

  /** Starts the daemon again on the same state and port. */
  restart() {
    return this.start();
  }

  /** SIGTERM: ends the daemon and leaves the sandboxes alone. */
  async end() {
    this.agent?.destroy();
    if (this.keeper.exitCode === null && this.keeper.signalCode === null) this.keeper.kill('SIGTERM');
    return within(30_000, 'the daemon ends after SIGTERM', this.exited);
  }

  async #stopHost() {
    this.agent?.destroy();
    const { code } = await this.end();
    assert.equal(code, 0, `cove host ended with ${code}:\n${this.log.slice(-4000)}`);
    assert.deepEqual(this.complaints, [], 'the server complained about itself');
    assert.ok(this.frontsLost <= this.frontsKilled, `a front ended that nobody killed:\n${this.log.slice(-4000)}`);
    fs.rmSync(this.dir, { recursive: true, force: true });
  }

  /** `cove stop --all`, checks that nothing is left, removes the directory. */
  async stop() {
    if (HOST) return this.#stopHost();
    this.agent?.destroy();
    const tag = tagOf(this.dir);
    const [file, ...all] = [...this.inside, this.bin, 'stop', '--all', '--state', this.dir];
    const r = await run(file, all);
    const log = `${r.stdout}${r.stderr}\n--- log of the daemon\n${this.log.slice(-4000)}`;
    assert.equal(r.status, 0, `cove stop --all failed: ${log}`);
    await within(30_000, 'the daemon ends', this.exited);
    assert.deepEqual(this.complaints, [], 'the daemon complained about itself');
    assert.ok(this.frontsLost <= this.frontsKilled, `a front ended that no test killed:\n${this.log.slice(-4000)}`);
    await poll('nothing is left of the daemon', async () => {
      const left = await leftovers(this.dir, tag);
      if (left.length > 0) throw new Error(`left on the host: ${left.join(', ')}`);
      return true;
    }, { deadline: 5000 });
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

/** The tag in the names of this daemon's kernel objects. */
export function tagOf(dir) {
  try {
    return fs.readFileSync(path.join(dir, 'tag'), 'utf8').trim();
  } catch {
    return undefined;
  }
}

/** A daemon that is ready. */
export function startDaemon(opts) {
  return new Daemon(opts).start();
}

/** The bytes of an output event or of a field of an exec result. */
export function bytesOf(data, encoding) {
  return Buffer.from(data, encoding === 'base64' ? 'base64' : 'utf8');
}

// cloudflare.mjs - the Cloudflare plane over plain HTTP.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567';

/** A random id, as clients make them. */
export function anyId() {
  return [...crypto.randomBytes(20)].map((b) => LETTERS[b & 31]).join('');
}

/** The events of a whole stream: [{event, data}], data as it is on the wire. */
export function eventsOf(text) {
  return text.split('\n\n').filter((e) => e.trim() !== '' && !e.startsWith(':')).map((e) => {
    const lines = e.split('\n');
    const of = (name) => lines.filter((l) => l.startsWith(`${name}: `)).map((l) => l.slice(name.length + 2));
    return { event: of('event')[0], data: of('data').join('\n') };
  });
}

/** The output and exit of a command. */
export function resultOf(events) {
  const of = (name) => events.filter((e) => e.event === name);
  const bytes = (name) => Buffer.concat(of(name).map((e) => Buffer.from(e.data, 'base64')));
  const exit = of('exit').map((e) => JSON.parse(e.data).exit_code);
  const error = of('error').map((e) => JSON.parse(e.data));
  assert.equal(exit.length + error.length, 1, `one end: ${JSON.stringify(events).slice(0, 500)}`);
  return { exit: exit[0], error: error[0], out: bytes('stdout'), err: bytes('stderr'), stdout: bytes('stdout').toString(), stderr: bytes('stderr').toString(), events };
}

export class Cloudflare {
  constructor(daemon, id = anyId(), key = daemon.key) {
    this.d = daemon;
    this.id = id;
    this.key = key;
  }

  call(method, path, body, opts = {}) {
    return this.d.call(method, `/v1/sandbox/${this.id}${path}`, body, { key: this.key, ...opts });
  }

  /** A command to its end; the answer must be a stream. */
  async exec(argv, { session, timeout = 60_000, ...body } = {}) {
    const a = await this.call('POST', '/exec', { argv, ...body }, { timeout, headers: session ? { 'session-id': session } : {} });
    assert.equal(a.status, 200, a.text);
    assert.match(a.headers['content-type'], /^text\/event-stream/);
    return resultOf(eventsOf(a.text));
  }

  sh(text, opts) {
    return this.exec(['bash', '-c', text], opts);
  }

  async running() {
    const a = await this.call('GET', '/running');
    assert.equal(a.status, 200, a.text);
    assert.deepEqual(Object.keys(a.json), ['running']);
    return a.json.running;
  }

  async delete() {
    const a = await this.call('DELETE', '');
    assert.equal(a.status, 204, a.text);
  }

  /** A call that is refused: status, code, and nothing but {error, code}. */
  async fails(status, code, method, path, body, opts) {
    const a = await this.call(method, path, body, opts);
    assert.equal(a.status, status, `${method} ${path}: ${a.text}`);
    assert.deepEqual(Object.keys(a.json), ['error', 'code']);
    assert.equal(a.json.code, code, a.text);
    assert.equal(typeof a.json.error, 'string');
    return a.json.error;
  }
}

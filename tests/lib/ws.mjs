// ws.mjs - a WebSocket client for tests: custom headers, counted bytes, and reading
// that can be stopped.
import crypto from 'node:crypto';
import http from 'node:http';
import { within } from './cove.mjs';

const OP = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 };

function frameOf(op, payload) {
  const n = payload.length;
  const head = n < 126 ? Buffer.from([0x80 | op, 0x80 | n]) : n < 65536 ? Buffer.alloc(4) : Buffer.alloc(10);
  if (n >= 126) {
    head[0] = 0x80 | op;
    head[1] = 0x80 | (n < 65536 ? 126 : 127);
    if (n < 65536) head.writeUInt16BE(n, 2);
    else head.writeBigUInt64BE(BigInt(n), 2);
  }
  const mask = crypto.randomBytes(4);
  const masked = Buffer.from(payload);
  for (let i = 0; i < n; i++) masked[i] ^= mask[i & 3];
  return Buffer.concat([head, mask, masked]);
}

/** One frame of a server at the front of `b`, or undefined. */
function parse(b) {
  if (b.length < 2) return undefined;
  let n = b[1] & 0x7f;
  let at = 2;
  if (n === 126) {
    if (b.length < 4) return undefined;
    n = b.readUInt16BE(2);
    at = 4;
  } else if (n === 127) {
    if (b.length < 10) return undefined;
    n = Number(b.readBigUInt64BE(2));
    at = 10;
  }
  if (b.length < at + n) return undefined;
  return { op: b[0] & 0xf, data: b.subarray(at, at + n), size: at + n };
}

export class Ws {
  constructor(socket, head, protocol) {
    this.socket = socket;
    this.protocol = protocol;
    this.texts = []; // JSON, in order of arrival
    this.bytes = Buffer.alloc(0); // of all binary messages, kept
    this.count = 0; // of all binary messages
    this.keep = true;
    this.pending = [head];
    this.waiters = [];
    this.pongs = 0;
    socket.on('data', (d) => this.#take(d));
    socket.on('error', () => {});
    socket.on('close', () => this.#ended());
    this.#take(Buffer.alloc(0));
  }

  /** Rejects with the answer when it is not 101. */
  static connect(d, url, { protocol, headers = {}, key = d.key } = {}) {
    const opening = new Promise((resolve, reject) => {
      const req = http.request(d.url + url, {
        headers: {
          connection: 'Upgrade',
          upgrade: 'websocket',
          'sec-websocket-version': '13',
          'sec-websocket-key': crypto.randomBytes(16).toString('base64'),
          ...(protocol ? { 'sec-websocket-protocol': protocol } : {}),
          ...(key ? { authorization: `Bearer ${key}` } : {}),
          ...headers,
        },
      });
      req.on('upgrade', (res, socket, head) => resolve(new Ws(socket, head, res.headers['sec-websocket-protocol'])));
      req.on('response', (res) => {
        let text = '';
        res.on('data', (b) => { text += b; });
        res.on('end', () => reject(Object.assign(new Error(`${res.statusCode} ${text}`), { status: res.statusCode, text })));
      });
      req.on('error', reject);
      req.end();
    });
    return within(20_000, `upgrade of ${url}`, opening);
  }

  #take(d) {
    this.pending.push(d);
    let b = Buffer.concat(this.pending);
    const parts = [];
    for (let f; (f = parse(b)) !== undefined; b = b.subarray(f.size)) {
      if (f.op === OP.binary) parts.push(f.data);
      else if (f.op === OP.text) this.texts.push({ at: this.count + parts.reduce((n, p) => n + p.length, 0), ...JSON.parse(f.data.toString()) });
      else if (f.op === OP.ping) this.socket.write(frameOf(OP.pong, f.data));
      else if (f.op === OP.close) this.#closed(f.data);
    }
    this.pending = [Buffer.from(b)];
    if (parts.length > 0) {
      const all = Buffer.concat(parts);
      this.count += all.length;
      if (this.keep) this.bytes = Buffer.concat([this.bytes, all]);
      this.onBytes?.(all);
    }
    this.#look();
  }

  #closed(data) {
    this.close_ = { code: data.length >= 2 ? data.readUInt16BE(0) : 1005, reason: data.subarray(2).toString() };
    if (!this.saidClose) this.socket.end(frameOf(OP.close, data.subarray(0, 2)));
  }

  #ended() {
    this.close_ ??= { code: 1006, reason: '' };
    this.gone = true;
    this.#look();
  }

  #look() {
    this.waiters = this.waiters.filter((w) => !w());
  }

  /** Resolves with the first true value of fn, which is asked whenever something came. */
  until(what, fn, ms = 20_000) {
    const found = new Promise((resolve, reject) => {
      const look = () => {
        const got = fn();
        if (got) resolve(got);
        else if (this.gone) reject(new Error(`closed (${this.close_.code} ${this.close_.reason}) before: ${what}`));
        return got || this.gone;
      };
      if (!look()) this.waiters.push(look);
    });
    return within(ms, what, found).catch((e) => {
      e.message += `\nso far: ${JSON.stringify(this.texts)} ${JSON.stringify(this.text.slice(-2000))}`;
      throw e;
    });
  }

  get text() {
    return this.bytes.toString();
  }

  /** Until the bytes hold it. */
  shows(text, ms) {
    return this.until(JSON.stringify(text), () => (text instanceof RegExp ? text.exec(this.text) : this.bytes.includes(text)), ms);
  }

  says(type, ms) {
    return this.until(type, () => this.texts.find((t) => t.type === type), ms);
  }

  closed(ms) {
    return this.until('close', () => this.close_, ms);
  }

  send(data) {
    return this.socket.write(frameOf(OP.binary, Buffer.from(data)));
  }

  /** Text: an object as JSON. */
  tell(data) {
    return this.socket.write(frameOf(OP.text, Buffer.from(typeof data === 'string' ? data : JSON.stringify(data))));
  }

  /** Sends all of it in pieces, as fast as the peer takes them. */
  async pour(data, piece = 64 * 1024) {
    for (let i = 0; i < data.length; i += piece)
      if (!this.send(data.subarray(i, i + piece)))
        await new Promise((r) => this.socket.once('drain', r));
  }

  close(code = 1000) {
    this.saidClose = true;
    const data = Buffer.alloc(2);
    data.writeUInt16BE(code);
    this.socket.write(frameOf(OP.close, data));
    return this.closed();
  }

  /** Destroys the socket without a close frame. */
  cut() {
    this.socket.destroy();
  }
}

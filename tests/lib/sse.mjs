// sse.mjs - server-sent events as an async iterator.
import http from 'node:http';

export class SseReader {
  constructor(daemon, url, { method = 'GET', body, lastEventId, headers = {}, key = daemon.key } = {}) {
    this.target = daemon.url + url;
    this.data = body === undefined ? undefined : JSON.stringify(body);
    this.options = {
      method,
      // a connection of its own, by the daemon's way of reaching it
      agent: Object.assign(new http.Agent(), daemon.agentOptions),
      headers: {
        authorization: `Bearer ${key}`,
        accept: 'text/event-stream',
        ...(this.data === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(this.data) }),
        ...(lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) }),
        ...headers,
      },
    };
  }

  /** Resolves when the head of the answer is there; rejects if it is not a stream. */
  open() {
    return new Promise((resolve, reject) => {
      this.req = http.request(this.target, this.options);
      this.req.on('error', reject);
      this.req.on('response', (res) => {
        this.res = res;
        this.status = res.statusCode;
        if (/^text\/event-stream/.test(res.headers['content-type'] ?? '')) {
          resolve(this);
          return;
        }
        let text = '';
        res.on('data', (d) => (text += d));
        res.on('end', () => reject(Object.assign(new Error(`${this.status}: ${text}`), { status: this.status, text })));
      });
      this.req.end(this.data);
    });
  }

  close() {
    this.closed = true;
    this.req.destroy();
  }

  async *[Symbol.asyncIterator]() {
    let text = '';
    let ev = { data: [] };
    const decoder = new TextDecoder();
    try {
      for await (const chunk of this.res) {
        text += decoder.decode(chunk, { stream: true });
        for (let end; (end = text.indexOf('\n')) >= 0; text = text.slice(end + 1)) {
          const line = text.slice(0, end).replace(/\r$/, '');
          if (line !== '') {
            const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line);
            if (name === 'data') ev.data.push(value);
            else if (name === 'id') this.lastId = ev.id = value;
            else if (name === 'event') ev.event = value;
            else if (name === '') this.comments = (this.comments ?? 0) + 1;
          } else if (ev.data.length > 0) {
            const done = ev;
            ev = { data: [] };
            yield { id: done.id, event: done.event ?? 'message', data: JSON.parse(done.data.join('\n')) };
          }
        }
      }
    } catch (e) {
      if (!this.closed) throw e;
    } finally {
      this.req.destroy();
    }
  }

  /** Reads on until an event of this name (or for which it is true) has come; returns all read. */
  async until(want) {
    const is = typeof want === 'string' ? (ev) => ev.event === want : want;
    const seen = [];
    this.iterator ??= this[Symbol.asyncIterator]();
    for (;;) {
      const { value, done } = await this.iterator.next();
      if (done) throw new Error(`the stream ended before ${want}: ${JSON.stringify(seen).slice(0, 2000)}`);
      seen.push(value);
      if (is(value)) return seen;
    }
  }

  /** All events up to the end of the stream. */
  async all() {
    const seen = [];
    this.iterator ??= this[Symbol.asyncIterator]();
    for (;;) {
      const { value, done } = await this.iterator.next();
      if (done) return seen;
      seen.push(value);
    }
  }
}

/** The bytes of all output events of these streams. */
export function output(events, ...streams) {
  const want = streams.length > 0 ? streams : ['stdout', 'stderr'];
  return Buffer.concat(events.filter((e) => want.includes(e.event))
    .map((e) => Buffer.from(e.data.data, e.data.encoding === 'base64' ? 'base64' : 'utf8')));
}

// grammar.mjs - requests made from descriptions: mostly well formed, each with a chance of one thing wrong.

/** mulberry32: the same seed makes the same requests. */
export function random(seed) {
  let a = seed >>> 0;
  const next = () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return { next, below: (n) => Math.floor(next() * n), pick: (l) => l[Math.floor(next() * l.length)], chance: (p) => next() < p };
}

const TEXTS = ['', 'a', 'base', 'true', '/workspace', '/workspace/f', '/tmp/../etc', '../..', '..', '/', '%2e%2e%2f', 'x'.repeat(300), 'x'.repeat(5000), '\u0001', 'é€😀', '\ud800', '"\\', '-1', '0', 'null',
  'a\nb', '*', '[', '(a+)+$', 'HEAD', '{}', 'user', 'root', '0:0', 'key', 'running', 'backward', '9999999999999999999', '1e9', '0x10', "'; DROP TABLE logs; --"];
const WRONG = [null, true, -1, 0, 1.5, 1e300, 2 ** 53, '', [], {}, [[[[[[[[[[]]]]]]]]]], { a: { b: {} } }, 'x'.repeat(70_000), Array(500).fill(1)];

export class Grammar {
  constructor(document, rnd) {
    this.document = document;
    this.rnd = rnd;
    this.known = new Map(); // what a parameter of that name may be
  }

  /** Remembers a name that the server gave. */
  learn(name, value) {
    const l = this.known.get(name) ?? [];
    if (typeof value === 'string' && value !== '' && !l.includes(value)) this.known.set(name, [...l.slice(-7), value]);
  }

  value(schema, depth = 0) {
    const { rnd } = this;
    if (rnd.chance(0.04)) return rnd.pick(WRONG);
    const s = schema?.$ref ? this.document.components.schemas[schema.$ref.split('/').at(-1)] : schema ?? {};
    const type = Array.isArray(s.type) ? s.type[0] : s.type;
    if (s.enum) return rnd.pick(s.enum);
    if (type === 'boolean') return rnd.chance(0.5);
    if (type === 'integer' || type === 'number') {
      const low = s.minimum ?? 0;
      return rnd.pick([low, low + 1, 1, 5, 100, s.maximum ?? 1000, (s.maximum ?? 1000) + 1, low - 1, rnd.below(1000)]);
    }
    if (type === 'array') return Array.from({ length: rnd.pick([0, 1, 1, 2, 3, 30]) }, () => this.value(s.items, depth + 1));
    if (type === 'object' && depth < 6) {
      const out = {};
      for (const [name, of] of Object.entries(s.properties ?? {}))
        if (s.required?.includes(name) ? rnd.chance(0.95) : rnd.chance(0.3)) out[name] = this.field(name, of, depth);
      if (s.additionalProperties && s.additionalProperties !== true)
        for (let i = rnd.below(4); i > 0; i--) out[rnd.pick(TEXTS)] = this.value(s.additionalProperties, depth + 1);
      if (rnd.chance(0.03)) out[rnd.pick(TEXTS)] = rnd.pick(WRONG);
      return out;
    }
    return rnd.pick(TEXTS);
  }

  /** What runs must end, and what waits must not wait for long. */
  field(name, schema, depth) {
    const { rnd } = this;
    if (/timeout|^grace_ms$|duration/.test(name) && rnd.chance(0.9)) return rnd.pick([1, 50, 200]);
    if (name === 'command' && rnd.chance(0.8)) return rnd.pick(['true', 'echo hi', 'exit 3', 'cat', 'head -c 200000 /dev/zero', 'seq 10000', 'sleep 0.1', 'kill -9 $$', 'cd /tmp; false', 'exec 0<&-; "']);
    if (name === 'argv' && rnd.chance(0.8)) return rnd.pick([['true'], ['echo', 'hi'], ['sh', '-c', 'exit 7'], ['cat'], ['nothing'], ['sleep', '0.1']]);
    if (['memory', 'disk', 'pids', 'cpu_milli', 'nofile'].includes(name)) return rnd.pick([2 ** 26, 64, 100, 2 ** 60]);
    if (['count', 'limit', 'depth'].includes(name)) return rnd.pick([1, 2, 0, 10]);
    if (this.known.has(name) && rnd.chance(0.7)) return rnd.pick(this.known.get(name));
    return this.value(schema, depth + 1);
  }

  text(name) {
    const { rnd } = this;
    const known = this.known.get(name);
    return known !== undefined && rnd.chance(0.85) ? rnd.pick(known) : rnd.pick(TEXTS);
  }

  /** {method, path, headers, body} of a route. */
  request(route) {
    const { rnd } = this;
    const [template, query = ''] = route.path.split('?');
    const escape = (t) => (rnd.chance(0.97) ? encodeURIComponent(t.toWellFormed?.() ?? t.replace(/[\ud800-\udfff]/g, '')) : t.replace(/[^!-~]/g, ''));
    const path = template.replace(/\{(.*?)\}/g, (_, name) => escape(this.text(name)) || 'x');
    const names = [...query.split('&').filter(Boolean), ...(route.query ?? [])];
    const pairs = names.filter(() => rnd.chance(0.4)).map((name) => `${name}=${escape(/timeout|wait|grace/.test(name) ? '50' : this.text(name))}`);
    const headers = { ...route.headers };
    if (rnd.chance(0.2)) headers.accept = rnd.pick(['text/event-stream', 'application/octet-stream', '*/*', 'application/json', '']);
    if (rnd.chance(0.02)) headers['last-event-id'] = rnd.pick(['1', '999999999', '-1', 'x']);
    if (rnd.chance(0.02)) headers.range = rnd.pick(['bytes=0-0', 'bytes=-5', 'bytes=9-1', 'x']);
    let body;
    if (route.body === 'raw') {
      body = rnd.pick([Buffer.alloc(0), Buffer.from('hello'), Buffer.alloc(100_000, 7), Buffer.from([0x1f, 0x8b, 8, 0])]);
      headers['content-type'] ??= rnd.pick(['application/octet-stream', 'text/plain', 'application/json']);
    } else if (route.body !== undefined) {
      body = Buffer.from(JSON.stringify(this.value(route.body)) ?? '');
      if (rnd.chance(0.03)) body = rnd.pick([Buffer.from('{'), Buffer.from('[1,'), Buffer.alloc(30, 0xff), Buffer.from('{"a":1,"a":2}'), Buffer.from(`[${'1,'.repeat(30_000)}1]`), Buffer.from(`{"command":"${'x'.repeat(60_000)}`)]);
      if (route.framed) body = Buffer.concat([Buffer.from([0]), Buffer.from(Uint32Array.of(rnd.chance(0.95) ? body.length : 2 ** 31).buffer).reverse(), body]);
      headers['content-type'] ??= route.framed ? 'application/connect+json' : 'application/json';
    }
    return { method: rnd.chance(0.01) ? rnd.pick(['GET', 'PUT', 'PATCH', 'OPTIONS', 'HEAD', 'BREW']) : route.method, path: path + (pairs.length > 0 ? `?${pairs.join('&')}` : ''), headers, body };
  }
}

/** The routes of an OpenAPI document. */
export function routesOf(document) {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, op]) => {
      const content = op.requestBody?.content ?? {};
      return {
        plane: path.startsWith('/v1/sandbox/') || path === '/v1/sandbox' || path.startsWith('/v1/pool') ? 'cloudflare' : 'native',
        method: method.toUpperCase(), path, query: (op.parameters ?? []).filter((p) => p.in === 'query').map((p) => p.name.replace(/NAME$/, 'a')),
        body: content['application/json']?.schema ?? (content['application/octet-stream'] ? 'raw' : undefined),
      };
    }));
}

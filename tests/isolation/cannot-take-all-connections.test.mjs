// Connections are a common good: who has no key, or one key, cannot take them all, nor all the time of
// the front with requests, streams and calls of ports.
import assert from 'node:assert/strict';
import net from 'node:net';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';
import { rawServer } from '../lib/ports.mjs';

const S = '/v1/sandboxes';
const MOST = 64;
let d;
before(async () => {
  d = await startDaemon({ args: ['--pool', '0', '--requests-max', String(MOST), '--peer-connections-max', String(MOST)] });
});
after(() => d?.stop());

async function connect(address = '127.0.0.1', from) {
  const s = net.connect({ port: d.port, host: address, localAddress: from });
  s.on('error', () => {});
  await once(s, 'connect');
  return s;
}
const head = (path, key, more = '') => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${key ? `Authorization: Bearer ${key}\r\n` : ''}${more}\r\n`;
const keyWith = (quotas) => d.post('/v1/keys', { quotas });
const closed = (s) => s.closed || s.readableEnded || s.destroyed;

test('silent connections without a key do not keep a client with one out', async () => {
  const client = await connect();
  client.write(head('/v1/keys/self', d.key));
  await once(client, 'data');
  const silent = [];
  for (let i = 0; i < 4 * MOST; i++) {
    silent.push(await connect());
    silent[i].resume();
    if (i % 3 === 0) silent[i].write('GET / HTTP/1.1\r\nHo');
    if (i % 40 === 0) assert.equal((await d.call('GET', '/v1/keys/self')).status, 200, `after ${i}`);
  }
  assert.equal((await d.call('GET', S)).status, 200);
  client.write(head('/v1/keys/self', d.key));
  assert.match(String((await once(client, 'data'))[0]), /^HTTP\/1.1 200/, 'an idle client with a key is still connected');
  await poll('those that were silent for longest are closed', () => silent.filter(closed).length >= 3 * MOST);
  assert.ok(!closed(silent.at(-1)));
  assert.match((await d.call('GET', '/metrics')).text, /^cove_http_evictions_total [1-9]/m);
  for (const s of [...silent, client]) s.destroy();
});

test('one address does not take the connections of another', async () => {
  const e = await startDaemon({ args: ['--pool', '0', '--requests-max', '64', '--peer-connections-max', '8'] });
  const mine = [];
  const at = async (from) => {
    const s = net.connect({ port: e.port, host: '127.0.0.1', localAddress: from });
    s.on('error', () => {});
    await once(s, 'connect');
    return s.resume();
  };
  try {
    const other = await at('127.0.0.3');
    for (let i = 0; i < 30; i++) mine.push(await at('127.0.0.2'));
    await poll('the oldest of that address are closed', () => mine.filter(closed).length === 22);
    assert.ok(!closed(other));
    const { text } = await e.call('GET', '/metrics');
    assert.ok(Number(/^cove_http_connections (\d+)/m.exec(text)[1]) <= 8 + 1 + 4, text);
    other.destroy();
  } finally {
    for (const s of mine) s.destroy();
    await e.stop();
  }
});

test('a key does not make more requests in a second than its quota', async () => {
  const k = await keyWith({ requests: 20 });
  const as = { key: k.key };
  await poll('some are refused', async () => {
    const all = await Promise.all(Array.from({ length: 40 }, () => d.call('GET', '/v1/keys/self', undefined, as)));
    const refused = all.filter((a) => a.status === 429);
    assert.ok(all.every((a) => [200, 429].includes(a.status)));
    for (const a of refused) {
      assert.equal(a.json.error.code, 'limit');
      assert.match(a.json.error.message, /quota requests of this key: 20 of 20/);
      assert.equal(a.headers['retry-after'], '1');
    }
    return refused.length > 0;
  });
  assert.equal((await d.call('GET', '/v1/keys/self')).status, 200, 'another key is served');
  await poll('in the next second it is served', async () => (await d.call('GET', '/v1/keys/self', undefined, as)).status === 200);
  const e2b = await Promise.all(Array.from({ length: 60 }, () => d.call('GET', '/v2/sandboxes', undefined, { key: null, headers: { 'x-api-key': k.key } })));
  const e2bRefused = e2b.find((a) => a.status === 429);
  assert.ok(e2bRefused === undefined || e2bRefused.json.code === 429);
});

test('a key does not have more connections than its quota, and gets them back', async () => {
  const k = await keyWith({ connections: 4 });
  const open = [];
  for (let i = 0; i < 4; i++) {
    const s = await connect();
    s.write(head('/v1/keys/self', k.key));
    assert.match(String((await once(s, 'data'))[0]), /^HTTP\/1.1 200/);
    open.push(s);
  }
  const more = await connect();
  more.write(head('/v1/keys/self', k.key));
  assert.match(String((await once(more, 'data'))[0]), /^HTTP\/1.1 429 [^]*quota connections of this key: 4 of 4/);
  open[0].write(head('/v1/keys/self', k.key));
  assert.match(String((await once(open[0], 'data'))[0]), /^HTTP\/1.1 200/, 'those it has go on');
  open[1].destroy();
  await poll('one is free', async () => {
    more.write(head('/v1/keys/self', k.key));
    return /^HTTP\/1.1 200/.test(String((await once(more, 'data'))[0]));
  });
  for (const s of [...open, more]) s.destroy();
  const row = async () => (await d.get(`/v1/keys/${k.id}`)).quotas.find((q) => q.name === 'connections').used;
  await poll('none is counted any more', async () => (await row()) === 0);
});

test('a key does not have more streams than its quota, and gets them back', async () => {
  const k = await keyWith({ streams: 2 });
  const open = [];
  for (let i = 0; i < 2; i++) {
    const s = await connect();
    s.write(head('/v1/events', k.key, 'Accept: text/event-stream\r\n'));
    assert.match(String((await once(s, 'data'))[0]), /^HTTP\/1.1 200/);
    open.push(s);
  }
  const e = await d.fails(429, 'limit', 'GET', '/v1/events', undefined, { key: k.key });
  assert.match(e.message, /quota streams of this key: 2 of 2/);
  assert.equal((await d.call('GET', '/v1/keys/self', undefined, { key: k.key })).status, 200, 'other requests are served');
  for (const s of open) s.resetAndDestroy();
  const row = async () => (await d.get(`/v1/keys/${k.id}`)).quotas.find((q) => q.name === 'streams').used;
  await poll('none is counted any more', async () => (await row()) === 0);
});

test('calls of ports count to the key of the sandbox, not to the others', async () => {
  const k = await keyWith({ ports: 3 });
  const { id } = await d.api('POST', S, {}, { key: k.key });
  const other = await d.sandbox();
  const server = rawServer(8000, `
read_head(c)
c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 100\\r\\n\\r\\nok')
c.recv(1)`);
  for (const [sb, key] of [[id, k.key], [other.id, d.key]]) {
    const as = { key, timeout: 30_000 };
    const p = await d.api('POST', `${S}/${sb}/processes`, { argv: ['python3', '-u', '-c', server] }, as);
    await d.api('POST', `${S}/${sb}/processes/${p.id}/wait`, { for: 'port', port: 8000, timeout_ms: 20_000 }, as);
  }
  const open = [];
  const ask = async (sb) => {
    const s = await connect();
    s.write(`GET / HTTP/1.1\r\nHost: 8000-${sb}.localhost:${d.port}\r\n\r\n`);
    open.push(s);
    return String((await once(s, 'data'))[0]);
  };
  for (let i = 0; i < 3; i++) assert.match(await ask(id), /^HTTP\/1.1 200/);
  assert.match(await ask(id), /^HTTP\/1.1 429 [^]*quota ports of this key: 3 of 3/);
  assert.match(await ask(other.id), /^HTTP\/1.1 200/);
  for (const s of open) s.destroy();
  const row = async () => (await d.get(`/v1/keys/${k.id}`)).quotas.find((q) => q.name === 'ports').used;
  await poll('none is counted any more', async () => (await row()) === 0);
});

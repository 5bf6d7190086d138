// The front serves all keys with one loop and one memory: a key cannot hold either with large bodies,
// bodies that never end, many small values, or output that the server has to collect.
import assert from 'node:assert/strict';
import net from 'node:net';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';
import { rssOf } from '../lib/host.mjs';
import { holdsOf } from '../lib/metrics.mjs';

const MiB = 2 ** 20;
const S = '/v1/sandboxes';
let d, id, key, session;
before(async () => {
  d = await startDaemon({ args: ['--pool', '0', '--buffers-max', '192M'] });
  ({ key } = await d.post('/v1/keys', { quotas: { buffers: 64 * MiB } }));
  ({ id } = await d.api('POST', S, {}, { key }));
  session = (await d.api('POST', `${S}/${id}/sessions`, {}, { key })).id;
});
after(() => d?.stop());

const used = async (k = key) => (await d.get('/v1/keys/self', { key: k })).quotas.find((q) => q.name === 'buffers').used;
const rss = () => rssOf(d.frontPid()) / 1024;
const json = { 'content-type': 'application/json' };
const script = (body) => d.call('POST', `${S}/${id}/sessions/${session}/exec`, Buffer.from(body), { key, headers: json });

/** A request of which only the head and some of the body are sent. */
async function halfSent(path, length, sent, k = key) {
  const s = net.connect(d.port, '127.0.0.1');
  s.on('error', () => {});
  await once(s, 'connect');
  s.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${k}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`);
  s.write(Buffer.alloc(sent, ' '));
  return s;
}
const answerOf = async (s) => String((await once(s, 'data'))[0]);

test('a large body for a sandbox that does not exist is refused before it is sent', async () => {
  for (const path of [`${S}/nothing/sessions/x/exec`, `${S}/nothing/exec`]) {
    const s = await halfSent(path, 4 * MiB, 0);
    assert.match(await answerOf(s), /^HTTP\/1.1 404 [^]*not_found/);
    s.destroy();
  }
});

test('half-sent bodies do not exceed the memory of their key, and give it back', async () => {
  const path = `${S}/${id}/sessions/${session}/exec`;
  const first = await halfSent(path, 20 * MiB, 4 * MiB);
  await poll('the body is held', async () => (await used()) === 60 * MiB);
  const second = await halfSent(path, 20 * MiB, 0);
  const refused = await answerOf(second);
  assert.match(refused, /^HTTP\/1.1 429 [^]*Retry-After: 1[^]*quota buffers of this key/);
  assert.equal((await d.exec((await d.sandbox()).id, 'echo served')).stdout, 'served\n', 'another key is served');
  first.destroy();
  second.destroy();
  await poll('what was held is given back', async () => (await used()) === 0);
});

test('all keys together do not exceed what the server holds', async () => {
  const keys = await Promise.all(Array.from({ length: 4 }, async () => (await d.post('/v1/keys', {})).key));
  const open = [];
  for (const k of keys) {
    const s = await d.api('POST', S, { limits: { memory: 64 * MiB } }, { key: k });
    const { id: of } = await d.api('POST', `${S}/${s.id}/sessions`, {}, { key: k });
    open.push(await halfSent(`${S}/${s.id}/sessions/${of}/exec`, 20 * MiB, 1000, k));
    if (open.length < 4) await poll('it is held', async () => (await used(k)) === 60 * MiB);
  }
  assert.match(await answerOf(open[3]), /^HTTP\/1.1 503 [^]*Retry-After: 1[^]*buffers-max/);
  for (const s of open) s.destroy();
  for (const k of keys) await poll('what was held is given back', async () => (await used(k)) === 0);
});

test('no body, whatever is in it, holds the loop or stays in memory', async () => {
  await script('{"command":"true"}');
  const begin = { rss: rss(), ...(await holdsOf(d)) };
  const shapes = {
    'many values': `{"x":[${'1,'.repeat(9e6)}1]}`, 'many names': `{${Array.from({ length: 90_000 }, (_, i) => `"n${i}":1`).join()}}`,
    'many strings': `{"command":"true","env":{"a":"b"},"x":[${'"abc",'.repeat(90_000)}""]}`, brackets: '['.repeat(15e6), quotes: `"${'\\"'.repeat(7e6)}"`,
    'long stdin': `{"command":"cat >/dev/null","stdin":"${'x'.repeat(10e6)}"}`, base64: `{"command":"cat >/dev/null","stdin_base64":"${'eHh4'.repeat(4e6)}"}`,
    'long command': `{"command":": ${'x'.repeat(10e6)}"}`, digits: `{"x":${'1'.repeat(5e6)}}`,
  };
  for (const [what, body] of Object.entries(shapes)) {
    const a = await script(body);
    assert.ok([200, 400].includes(a.status), `${what}: ${a.status} ${a.text.slice(0, 200)}`);
    if (['many values', 'brackets'].includes(what)) assert.match(a.text, /more than \d+ values|nested deeper/);
  }
  const end = await holdsOf(d);
  assert.ok(end.above(10) - begin.above(10) <= 1, `callbacks of over 10 ms: ${end.above(10) - begin.above(10)}, the longest ${end.longest} s`);
  await poll('the memory is given back', () => rss() < begin.rss + 12 || Promise.reject(new Error(`${begin.rss} -> ${rss()} MiB`)), { deadline: 20_000, every: 200 });
});

test('output that is collected is counted; without room its middle is dropped, and the command is not repeated', async () => {
  const begin = { rss: rss(), ...(await holdsOf(d)) };
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, rss())), 20);
  const all = await Promise.all(Array.from({ length: 8 }, () => d.api('POST', `${S}/${id}/exec`, {
    command: 'echo begin; head -c 60000000 /dev/zero | tr "\\0" x; echo end', max_output: 64 * MiB, timeout_ms: 60_000 }, { key })));
  clearInterval(watch);
  for (const a of all) {
    assert.equal(a.exit_code, 0);
    assert.ok(a.stdout.startsWith('begin\n'), a.stdout.slice(0, 20));
    assert.ok(a.stdout.endsWith('xend\n'), a.stdout.slice(-20));
  }
  assert.ok(all.some((a) => a.stdout_truncated && a.stdout_dropped > 0), 'not all of it fits');
  assert.ok(most < begin.rss + 160, `the front grew from ${begin.rss} to ${most} MiB`);
  await poll('what was held is given back', async () => (await used()) === 0);
  await poll('the memory is given back', () => rss() < begin.rss + 12 || Promise.reject(new Error(`${begin.rss} -> ${rss()} MiB`)), { deadline: 20_000, every: 200 });
});

// Load over the limits is refused with Retry-After, and the daemon keeps running.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { settled } from '../lib/chaos.mjs';
import { poll, startDaemon } from '../lib/cove.mjs';

const MAX = 5;
const S = '/v1/sandboxes';

let d;
before(async () => {
  d = await startDaemon({ args: ['--sandboxes-max', String(MAX), '--requests-max', '64', '--pool', '0'] });
});
after(() => d?.stop());

const isRefusal = (a) => [429, 503].includes(a.status) && Number(a.headers['retry-after']) >= 1 && a.json.error.code.length > 0;

async function removeAll() {
  for (const s of (await d.get(S)).sandboxes) await d.del(`${S}/${s.id}`);
}

test('creates over creates-max are answered 503 with Retry-After', async () => {
  const few = await startDaemon({ args: ['--creates-max', '2', '--pool', '0'] });
  const all = await Promise.all(Array.from({ length: 40 }, () => few.call('POST', S, {})));
  const made = all.filter((a) => a.status === 201);
  for (const a of all) assert.ok(a.status === 201 || isRefusal(a), `${a.status} ${a.text}`);
  assert.ok(made.length >= 2 && made.length < 40, `${made.length} of 40 were made`);
  const { all: listed } = await settled(few, { pool: 0 });
  assert.deepEqual(listed.map((s) => s.id).sort(), made.map((a) => a.json.id).sort());
  await few.stop();
});

test('concurrent creates never exceed sandboxes-max', async () => {
  const made = [];
  await Promise.all(Array.from({ length: 12 }, async () => {
    for (let tries = 0; tries < 10; tries++) {
      const a = await d.call('POST', S, {});
      if (a.status === 201) made.push(a.json.id);
      else assert.ok(isRefusal(a), `${a.status} ${a.text}`);
    }
  }));
  const { all } = await settled(d, { pool: 0 });
  assert.deepEqual(all.map((s) => s.id).sort(), made.sort());
  assert.equal(all.length, MAX);
  const a = await d.call('POST', S, {});
  assert.ok(isRefusal(a));
  assert.match(a.json.error.message, new RegExp(`\\b${MAX}\\b`));
  assert.equal((await d.exec(made[0], ['echo', 'on'])).stdout, 'on\n');
});

test('a stopped sandbox leaves its place, and needs one to run again', async () => {
  const [first, second] = (await d.get(S)).sandboxes;
  await d.del(`${S}/${first.id}`);
  const s = await d.sandbox({ timeout_ms: 1, on_timeout: 'stop' });
  await poll('it has stopped', async () => (await d.get(`${S}/${s.id}`)).state === 'stopped');
  await d.sandbox();
  const a = await d.call('POST', `${S}/${s.id}/resume`);
  assert.ok(isRefusal(a), `${a.status} ${a.text}`);
  await d.del(`${S}/${second.id}`);
  assert.equal((await d.post(`${S}/${s.id}/resume`)).state, 'running');
  await removeAll();
  assert.deepEqual((await settled(d, { pool: 0 })).all, []);
});

test('a flood of connections is answered 503 or closed, and the daemon keeps running', async () => {
  const heard = [];
  let closed = 0;
  const socks = Array.from({ length: 600 }, () => {
    const s = net.connect(d.port, '127.0.0.1');
    s.on('data', (t) => heard.push(String(t)));
    s.on('error', () => {});
    s.on('close', () => closed++);
    return s;
  });
  // all of them are idle, so those that have waited longest make room for the others
  await poll('all but the permitted are gone', () => closed >= 600 - 64);
  assert.ok(socks.some((s) => !s.destroyed), 'one is still there');
  for (const text of heard) {
    assert.match(text, /^HTTP\/1\.1 503 /);
    assert.match(text, /\r\nretry-after: \d+\r\n/i);
  }
  for (const s of socks) s.destroy();
  await d.back();
  const s = await d.sandbox();
  assert.equal((await d.exec(s.id, ['echo', 'on'])).stdout, 'on\n');
  await d.del(`${S}/${s.id}`);
});

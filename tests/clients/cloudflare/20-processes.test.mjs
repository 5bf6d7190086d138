// Processes of the next version of the API, beside the stable one.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Cloudflare } from '../../lib/cloudflare.mjs';
import { poll, startDaemon } from '../../lib/cove.mjs';

let d;
let b;

before(async () => {
  d = await startDaemon();
  b = new Cloudflare(d);
});
after(() => d?.stop());

async function start(body) {
  const a = await b.call('POST', '/processes', body);
  assert.equal(a.status, 200, a.text);
  return a.json;
}
const get = async (id) => (await b.call('GET', `/processes/${id}`)).json;
const events = async (id, query = '') => {
  const a = await b.call('GET', `/processes/${id}/logs${query}`);
  assert.equal(a.status, 200, a.text);
  return a.text.split('\n\n').filter((e) => e.startsWith('data: ')).map((e) => JSON.parse(e.slice(6)));
};
const text = (evs, type) => Buffer.concat(evs.filter((e) => e.type === type).map((e) => Buffer.from(e.data, 'base64'))).toString();

test('reading an unused id makes no sandbox', async () => {
  const had = (await d.get('/v1/sandboxes')).sandboxes.length;
  const never = new Cloudflare(d);
  assert.deepEqual((await never.call('GET', '/processes')).json, []);
  await never.fails(404, 'not_found', 'GET', '/processes/x');
  await never.fails(404, 'not_found', 'GET', '/processes/x/logs');
  await never.fails(404, 'not_found', 'POST', '/processes/x/kill');
  assert.equal((await d.get('/v1/sandboxes')).sandboxes.length, had);
});

test('a process is launched, seen while it runs, and described at its end', async () => {
  const p = await start({ argv: ['bash', '-c', 'echo $A; read x; exit 3'], env: { A: 'b' }, cwd: '.' });
  assert.deepEqual(Object.keys(p), ['id', 'pid', 'command', 'cwd', 'startedAt', 'state', 'exit', 'endedAt'].filter((k) => k in p));
  const ended = await poll('it ended', async () => ((await get(p.id)).state === 'exited' ? get(p.id) : null));
  assert.deepEqual(ended.exit, { code: 3, timedOut: false });
  assert.deepEqual(ended.command, ['bash', '-c', 'echo $A; read x; exit 3']);
  assert.equal(ended.cwd, '/workspace');
  assert.ok(Date.parse(ended.endedAt) >= Date.parse(ended.startedAt));
  assert.ok((await b.call('GET', '/processes')).json.some((q) => q.id === p.id));
});

test('logs are replayed, followed to the end, and resumed after a cursor', async () => {
  const p = await start({ argv: ['bash', '-c', 'echo one; sleep 0.2; echo two >&2; sleep 0.2; printf "\\377"'] });
  const all = await events(p.id);
  assert.equal(text(all, 'stdout'), Buffer.from([...Buffer.from('one\n'), 0xff]).toString());
  assert.equal(text(all, 'stderr'), 'two\n');
  const last = all.at(-1);
  assert.deepEqual([last.type, last.state, last.exit], ['terminal', 'exited', { code: 0, timedOut: false }]);
  for (const e of all) assert.ok(typeof e.cursor === 'string' && !Number.isNaN(Date.parse(e.timestamp)));
  const rest = await events(p.id, `?since=${all[0].cursor}`);
  assert.deepEqual(rest.map((e) => [e.type, e.cursor]), all.slice(1).map((e) => [e.type, e.cursor]));
  assert.deepEqual((await events(p.id, '?replay=false')).map((e) => e.type), ['terminal']);
  await b.fails(400, 'invalid_request', 'GET', `/processes/${p.id}/logs?since=x`);
  await b.fails(400, 'invalid_request', 'GET', `/processes/${p.id}/logs?since=99999`);
});

test('logs without follow end at the current output', async () => {
  const p = await start({ argv: ['bash', '-c', 'echo here; exec sleep 60'] });
  await poll('it printed', async () => text(await events(p.id, '?follow=false'), 'stdout') === 'here\n');
  assert.ok(!(await events(p.id, '?follow=0')).some((e) => e.type === 'terminal'));
  assert.equal((await b.call('POST', `/processes/${p.id}/kill`, { signal: 9 })).status, 204);
  assert.deepEqual((await events(p.id)).at(-1).exit, { code: 137, signal: 9, timedOut: false });
});

test('lost output is reported', async () => {
  const p = await start({ argv: ['bash', '-c', 'seq 400000'] });
  await poll('it ended', async () => (await get(p.id)).state === 'exited');
  const all = await events(p.id);
  assert.equal(all[0].type, 'truncated');
  assert.ok(text(all, 'stdout').endsWith('\n400000\n'));
});

test('kill sends the signal that is named, or 15, to all of it, and never escalates', async () => {
  const p = await start({ argv: ['bash', '-c', 'trap "echo term" TERM; trap "echo usr" USR1; echo up; while :; do sleep 0.05; done'] });
  await poll('it is up', async () => text(await events(p.id, '?follow=0'), 'stdout').includes('up'));
  assert.equal((await b.call('POST', `/processes/${p.id}/kill`)).status, 204);
  await poll('it heard', async () => text(await events(p.id, '?follow=0'), 'stdout').includes('term'));
  assert.equal((await b.call('POST', `/processes/${p.id}/kill`, { signal: 10 })).status, 204);
  await poll('it heard', async () => text(await events(p.id, '?follow=0'), 'stdout').includes('usr'));
  for (const signal of [0, 65, 1.5, 'TERM', -1]) await b.fails(400, 'invalid_request', 'POST', `/processes/${p.id}/kill`, { signal });
  assert.equal((await get(p.id)).state, 'running');
  assert.equal((await b.call('POST', `/processes/${p.id}/kill`, { signal: 9 })).status, 204);
  await poll('it ended', async () => (await get(p.id)).state === 'exited');
  assert.equal((await b.call('POST', `/processes/${p.id}/kill`)).status, 204);
});

test('a timeout kills the tree and is reported', async () => {
  const p = await start({ argv: ['bash', '-c', 'sleep 88 & sleep 89'], timeout: 200 });
  assert.deepEqual((await events(p.id)).at(-1).exit, { code: 124, signal: 9, timedOut: true });
  assert.equal((await b.sh('pgrep -f "sleep 8[89]"')).stdout, '');
});

test('a process that cannot be started is refused with the reason', async () => {
  assert.match(await b.fails(502, 'process_error', 'POST', '/processes', { argv: ['no-such-program'] }), /no-such-program/);
  await b.fails(403, 'invalid_request', 'POST', '/processes', { argv: ['true'], cwd: '/etc' });
  for (const body of [{}, { argv: [] }, { argv: [''] }, { argv: ['a', 1] }, { argv: ['a'], timeout: 0 }, { argv: ['a'], timeout: -1 }, { argv: ['a'], env: { A: 1 } }, { argv: ['a'], env: [] }]) {
    await b.fails(400, 'invalid_request', 'POST', '/processes', body);
  }
  await b.fails(404, 'not_found', 'GET', '/processes/none');
});

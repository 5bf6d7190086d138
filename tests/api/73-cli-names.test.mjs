// Names, prefixes and what can be changed of a sandbox: over HTTP and on the command line.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BIN, poll, startDaemon } from '../lib/cove.mjs';

const S = '/v1/sandboxes';
let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const cove = (args, opts) => d.cli(args, opts);
const ok = async (args, opts) => {
  const r = await cove(args, opts);
  assert.equal(r.status, 0, `${args.join(' ')}: ${r.stderr}`);
  return r.stdout;
};

test('a sandbox is reached by its name, its id and an unambiguous beginning of its id', async () => {
  const id = (await ok(['create', '--name', 'web'])).trim();
  assert.equal((await d.get(`${S}/web`)).id, id);
  assert.equal((await d.get(`${S}/${id}`)).name, 'web');
  for (let n = 19; n >= 8; n--) assert.equal((await d.get(`${S}/${id.slice(0, n)}`)).id, id);
  assert.equal((await ok(['exec', 'web', 'echo', 'hi'])), 'hi\n');
  assert.equal((await ok(['exec', id.slice(0, 10), 'echo', 'hi'])), 'hi\n');
  assert.match(await ok(['list']), new RegExp(`^${id}\\s+web\\s+running`, 'm'));
  assert.equal(JSON.parse(await ok(['inspect', 'web'])).id, id);
  assert.equal(await ok(['inspect', '-f', 'limits.pids', 'web']), '1024\n');
  await d.fails(404, 'not_found', 'GET', `${S}/nothing-of-that-name`);
  await ok(['delete', 'web']);
  assert.equal((await cove(['exec', 'web', 'true'])).status, 202);
});

test('a name means one sandbox of its key, and is free when that one is deleted', async () => {
  const a = await d.sandbox({ name: 'one' });
  const e = await d.fails(409, 'conflict', 'POST', S, { name: 'one' });
  assert.match(e.message, new RegExp(`'one' belongs to sandbox ${a.id}`));
  for (const name of ['-x', '.x', 'a/b', 'a b', 'a:b', 'x'.repeat(64), '']) await d.fails(400, 'invalid', 'POST', S, { name });
  const key = (await d.post('/v1/keys', { name: 'other' })).key;
  const theirs = await d.post(S, { name: 'one' }, { key });
  assert.notEqual(theirs.id, a.id);
  await d.fails(404, 'not_found', 'GET', `${S}/${a.id}`, undefined, { key });
  await d.fails(404, 'not_found', 'GET', `${S}/${a.id.slice(0, 12)}`, undefined, { key });
  await d.del(`${S}/one`, { key });
  await d.del(`${S}/one`);
  await d.sandbox({ name: 'one' });
  await d.del(`${S}/one`);
});

test('only one of many creates that ask for a name at once gets it', async () => {
  const all = await Promise.all(Array.from({ length: 6 }, () => d.call('POST', S, { name: 'race' })));
  assert.deepEqual(all.map((a) => a.status).sort(), [201, 409, 409, 409, 409, 409]);
  await d.del(`${S}/race`);
});

test('a beginning that several ids share answers 409 with all of them', async () => {
  const made = await Promise.all(Array.from({ length: 40 }, () => d.sandbox()));
  const ids = made.map((s) => s.id);
  const letter = ids.map((i) => i[0]).find((c, i, all) => all.indexOf(c) !== i);
  const e = await d.fails(409, 'conflict', 'DELETE', `${S}/${letter}`);
  const all = (await d.get(`${S}?limit=1000`)).sandboxes.map((s) => s.id).filter((i) => i[0] === letter);
  for (const i of all.slice(0, 8)) assert.ok(e.message.includes(i), e.message);
  for (const i of ids) await d.get(`${S}/${i}`); // none was deleted
  const r = await cove(['delete', letter]);
  assert.equal(r.status, 211);
  assert.match(r.stderr, /beginning of several ids/);
  await Promise.all(ids.map((i) => d.del(`${S}/${i}`)));
});

test('name, labels, lifetime and limits change while it runs, and survive a restart', async () => {
  const { id } = await d.sandbox({ name: 'before', metadata: { a: '1' } });
  await ok(['update', '--name', 'after', '--meta', 'b=2', '--timeout', '2h', '--on-timeout', 'stop', '--auto-resume', 'on', '--cpu', '0.5', '--memory', '300M', '--pids', '100', '--disk', '1G', 'before']);
  const check = async () => {
    const s = await d.get(`${S}/after`);
    assert.equal(s.id, id);
    assert.deepEqual(s.metadata, { b: '2' });
    assert.deepEqual([s.on_timeout, s.auto_resume], ['stop', true]);
    assert.deepEqual([s.limits.cpu_milli, s.limits.memory, s.limits.pids, s.limits.disk, s.limits.nofile], [500, 300 << 20, 100, 1 << 30, 4096]);
    assert.ok(new Date(s.ends_at) - Date.now() > 3_600_000);
    await d.fails(404, 'not_found', 'GET', `${S}/before`);
  };
  await check();
  // the kernel has them: more than the new limit of memory is too much
  const big = await d.exec(id, ['python3', '-c', 'x = bytearray(500 << 20)']);
  assert.equal(big.oom, true, JSON.stringify(big));
  await d.kill9('both');
  await d.restart();
  await check();
  assert.equal((await d.exec('after', 'echo on')).stdout, 'on\n');
  await ok(['update', '--name', '', id]);
  assert.equal((await d.get(`${S}/${id}`)).name, undefined);
  await d.sandbox({ name: 'after' }).then((s) => d.del(`${S}/${s.id}`));
  await d.del(`${S}/${id}`);
});

test('what cannot change is refused, and then nothing is changed', async () => {
  const taken = await d.sandbox({ name: 'taken' });
  const { id } = await d.sandbox();
  await d.fails(409, 'conflict', 'PATCH', `${S}/${id}`, { name: 'taken', metadata: { x: '1' } });
  await d.fails(409, 'conflict', 'PATCH', `${S}/${id}`, { limits: { nofile: 100 }, metadata: { x: '1' } });
  await d.fails(409, 'conflict', 'PATCH', `${S}/${id}`, { limits: { bandwidth: 1 << 20 }, metadata: { x: '1' } });
  await d.fails(400, 'invalid', 'PATCH', `${S}/${id}`, { limits: { memory: 1 } });
  await d.fails(400, 'invalid', 'PATCH', `${S}/${id}`, { on_timeout: 'explode' });
  await d.fails(400, 'invalid', 'PATCH', `${S}/${id}`, { template: 'base' });
  await d.process(id, ['python3', '-c', 'import time; x = bytearray(200 << 20); print("ready", flush=True); time.sleep(1000)'], { id: 'big' });
  await d.post(`${S}/${id}/processes/big/wait`, { text: 'ready' });
  await poll('its use was measured', async () => (await d.get(`/v1/usage?sandbox=${id}`)).sandboxes[0]?.memory > 200 << 20);
  await d.fails(409, 'conflict', 'PATCH', `${S}/${id}`, { limits: { memory: 32 << 20 } });
  assert.equal((await d.get(`${S}/${id}/processes/big`)).state, 'running');
  assert.deepEqual((await d.get(`${S}/${id}`)).metadata, {});
  await d.post(`${S}/${id}/pause`, { memory: false });
  assert.equal((await d.api('PATCH', `${S}/${id}`, { limits: { nofile: 100 } })).limits.nofile, 100);
  await d.post(`${S}/${id}/resume`);
  assert.equal((await d.exec(id, 'ulimit -n')).stdout, '100\n');
  assert.equal((await cove(['update', id])).status, 200);
  await d.del(`${S}/${id}`);
  await d.del(`${S}/${taken.id}`);
});

test('ports of a sandbox with a name are reached by their URL', async () => {
  const { id } = await d.sandbox({ name: 'served' });
  await d.process(id, ['python3', '-m', 'http.server', '5173'], { id: 'http' });
  // without `for`: until the port answers, not until the exit
  assert.deepEqual(await d.post(`${S}/served/processes/http/wait`, { port: 5173, timeout_ms: 20_000 }), { port: 5173 });
  const { ports } = await d.get(`${S}/served/ports`);
  assert.deepEqual(ports, [{ port: 5173, address: 'any', url: `http://5173-${id}.localhost:${d.port}` }]);
  assert.equal(await ok(['port', 'served', '5173']), `${ports[0].url}\n`);
  assert.match(await ok(['port', 'served']), /^PORT +ADDRESS +URL\n5173 +any +http/);
  assert.equal((await d.call('GET', '/', undefined, { headers: { host: new URL(ports[0].url).host } })).status, 200);
  const r = await cove(['port', 'served', '99']);
  assert.equal(r.status, 202);
  assert.match(r.stderr, /nothing in sandbox served listens on port 99/);
  await d.del(`${S}/served`);
});

test('names are completed in bash, and fish and zsh ask the same question', async () => {
  const { id } = await d.sandbox({ name: 'complete-me' });
  const words = (await ok(['completion', 'sandboxes'])).trim().split('\n');
  assert.ok(words.includes('complete-me') && words.includes(id));
  const bash = await ok(['completion', 'bash']);
  const ask = (...w) => execFileSync('bash', ['-c', `${bash}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _cove; printf '%s\\n' "\${COMPREPLY[@]}"`, 'x', 'cove', ...w], { env: d.cliEnv({ PATH: `${path.dirname(BIN)}:${process.env.PATH}` }) }).toString().trim();
  assert.equal(ask('exec', 'compl'), 'complete-me');
  assert.equal(ask('snapshot', 'take', 'compl'), 'complete-me');
  for (const shell of ['zsh', 'fish']) assert.match(await ok(['completion', shell]), /cove completion sandboxes/);
  // without a server there is nothing to complete, and Tab does not wait
  const began = Date.now();
  await cove(['completion', 'sandboxes'], { env: { COVE_URL: 'http://127.0.0.1:9' } });
  assert.ok(Date.now() - began < 5000);
  await d.del(`${S}/${id}`);
});

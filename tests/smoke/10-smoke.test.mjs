// One daemon, and one look at each surface: seconds, for the edit loop (`make check`). What a surface promises in
// detail is in the other folders.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Cloudflare } from '../lib/cloudflare.mjs';
import { settled } from '../lib/chaos.mjs';
import { poll, startDaemon } from '../lib/cove.mjs';
import { tar } from '../lib/image.mjs';
import { openSession } from '../lib/session.mjs';
import { Ws } from '../lib/ws.mjs';

const S = '/v1/sandboxes';
let d;
let id;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox({ metadata: { smoke: '1' } })).id;
});
after(() => d?.stop());

const file = (p) => `${S}/${id}/files?path=${encodeURIComponent(p)}`;

test('health, readiness, metrics and the document answer', async () => {
  assert.deepEqual((await d.get('/health')).ok, true);
  assert.equal((await d.call('GET', '/ready')).status, 200);
  assert.match((await d.call('GET', '/metrics')).text, /^cove_sandboxes\{/m);
  assert.equal((await d.get('/v1/openapi.json')).openapi, '3.1.0');
});

test('a sandbox is made, listed and shown', async () => {
  assert.deepEqual((await d.get(S)).sandboxes.map((s) => [s.id, s.metadata]), [[id, { smoke: '1' }]]);
  assert.equal((await d.get(`${S}/${id}`)).state, 'running');
});

test('exec runs a command, and a stream of events tells of one', async () => {
  const r = await d.exec(id, 'echo out; echo err >&2; exit 3');
  assert.deepEqual([r.stdout, r.stderr, r.exit_code], ['out\n', 'err\n', 3]);
});

test('a process is started, fed, waited for and read again', async () => {
  const p = await d.process(id, ['cat'], { stdin: true });
  assert.ok((await d.call('POST', `${S}/${id}/processes/${p.id}/stdin?close=1`, 'fed')).status < 300);
  assert.equal((await d.post(`${S}/${id}/processes/${p.id}/wait`, { timeout_ms: 5000 })).code, 0);
  assert.equal((await d.get(`${S}/${id}/processes/${p.id}/logs`)).chunks.map((c) => c.data).join(''), 'fed');
});

test('a session remembers its directory and variables', async () => {
  const s = await openSession(d, id);
  await s.exec('cd /usr; n=7');
  assert.equal(await s.out('echo $n $PWD'), '7 /usr\n');
  await s.delete();
});

test('a terminal echoes input', async () => {
  const t = await d.post(`${S}/${id}/terminals`, {});
  const ws = await Ws.connect(d, `${S}/${id}/terminals/${t.id}/connect`);
  ws.send('echo ty""ped\n');
  await ws.shows('typed');
  ws.cut();
});

test('files are written, read, listed, searched, packed and watched', async () => {
  assert.ok((await d.call('PUT', `${file('/workspace/a/b')}&parents=1`, 'text')).status < 300);
  assert.equal((await d.call('GET', file('/workspace/a/b'))).text, 'text');
  assert.equal((await d.call('GET', `${S}/${id}/archive?path=/workspace`)).status, 200);
  const w = await d.post(`${S}/${id}/watches`, { path: '/workspace' });
  await d.exec(id, 'touch /workspace/seen');
  await poll('the watch tells', async () => JSON.stringify(await d.get(`${S}/${id}/watches/${w.id}/events`)).includes('seen'));
});

test('git tells the status of a repository', async () => {
  await d.exec(id, 'cd /workspace && git init -q . && touch new');
  const s = await d.get(`${S}/${id}/git/status?path=/workspace`);
  assert.match(JSON.stringify(s), /new/);
});

test('a port inside is reached', async () => {
  await d.process(id, ['python3', '-m', 'http.server', '8000', '--directory', '/workspace'], { id: 'web' });
  await d.post(`${S}/${id}/processes/web/wait`, { for: 'port', port: 8000, timeout_ms: 20_000 });
  const a = await d.call('GET', '/a/b', undefined, { headers: { host: `8000-${id}.localhost` } });
  assert.equal(a.text, 'text');
});

test('a sandbox is paused, resumed, snapshotted and forked', async () => {
  assert.equal((await d.post(`${S}/${id}/pause`)).state, 'paused');
  assert.equal((await d.post(`${S}/${id}/resume`)).state, 'running');
  const snap = await d.post(`${S}/${id}/snapshots`);
  const again = await d.sandbox({ snapshot: snap.id });
  assert.equal((await d.exec(again.id, ['cat', '/workspace/a/b'])).stdout, 'text');
  const { forks } = await d.post(`${S}/${id}/fork`, { count: 1 });
  for (const s of [again.id, forks[0].sandbox.id]) await d.del(`${S}/${s}`);
  await d.del(`/v1/snapshots/${snap.id}`);
});

test('a template is added and started from', async () => {
  const a = await d.call('PUT', '/v1/templates/smoke', tar([{ name: 'mark', data: 'x' }]), { headers: { 'content-type': 'application/x-tar' } });
  assert.ok(a.status < 300, a.text);
  const s = await d.sandbox({ template: 'smoke' });
  await d.del(`${S}/${s.id}`);
  await d.del('/v1/templates/smoke');
});

test('logs, metrics and keys answer', async () => {
  assert.match(JSON.stringify(await d.get(`${S}/${id}/logs`)), /created|started/);
  assert.ok(Array.isArray((await d.get(`${S}/${id}/metrics`)).points));
  const k = await d.post('/v1/keys', { name: 'smoke' });
  assert.deepEqual((await d.get(S, { key: k.key })).sandboxes, []);
});

test('the E2B plane and the Cloudflare plane answer', async () => {
  const made = await d.call('POST', '/sandboxes', { templateID: 'base' }, { headers: { 'x-api-key': d.key } });
  assert.equal(made.status, 201, made.text);
  assert.equal((await d.call('DELETE', `/sandboxes/${made.json.sandboxID}`, undefined, { headers: { 'x-api-key': d.key } })).status, 204);
  const b = new Cloudflare(d);
  assert.equal((await b.sh('echo hello')).stdout, 'hello\n');
  await b.delete();
});

test('the CLI runs a command, lists, copies and reports errors', async () => {
  assert.equal((await d.cli(['run', '--', 'echo', 'from the cli'])).stdout, 'from the cli\n');
  assert.match((await d.cli(['list'])).stdout, new RegExp(id));
  const wrong = await d.cli(['exec', 'nosuch', '--', 'true']);
  assert.notEqual(wrong.status, 0);
  assert.match(wrong.stderr, /^cove exec: /);
});

test('after kill -9 of front and keeper the sandbox is there, and its delete leaves nothing', async () => {
  await d.kill9('both');
  await d.restart();
  assert.equal((await d.exec(id, ['cat', '/workspace/a/b'])).stdout, 'text');
  await d.del(`${S}/${id}`);
  await settled(d);
});

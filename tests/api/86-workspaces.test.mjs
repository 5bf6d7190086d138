// Workspaces: a name with at most one live sandbox behind it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';

const W = '/v1/workspaces';

let d;
before(async () => { d = await startDaemon({ args: ['--workspace-grace', '1h'] }); });
after(() => d?.stop());

const run = (name, cmd, headers) => d.call('POST', `${W}/${name}/exec`, { argv: cmd }, headers);
const ok = (a, status = 200) => { assert.equal(a.status, status, a.text); return a.json; };
const show = async (name) => ok(await d.call('GET', `${W}/${name}`));
const state = (name, is) => poll(`${name} is ${is}`, async () => (await show(name)).state === is);
const sandboxes = async () => (await d.get('/v1/sandboxes?limit=1000')).sandboxes;

test('a workspace has no sandbox before its first use, and one after it', async () => {
  const made = ok(await d.call('PUT', `${W}/first`, { env: { A: 'b' } }), 201);
  assert.equal(made.state, 'cold');
  assert.equal(made.epoch, 0);
  assert.deepEqual(made.spec.env_names, ['A']);
  assert.equal((await sandboxes()).length, 0);
  const a = await run('first', ['sh', '-c', 'echo $A']);
  assert.equal(ok(a).stdout, 'b\n');
  assert.equal(a.headers['cove-epoch'], '1');
  const now = await show('first');
  assert.equal(now.state, 'warm');
  assert.equal((await sandboxes())[0].id, now.sandbox);
});

test('fifty first operations at once make one sandbox', async () => {
  ok(await d.call('PUT', `${W}/crowd`, {}), 201);
  const before = (await sandboxes()).length;
  const all = await Promise.all(Array.from({ length: 50 }, (_, i) => run('crowd', ['echo', String(i)])));
  all.forEach((a, i) => assert.equal(ok(a).stdout, `${i}\n`));
  assert.equal((await sandboxes()).length, before + 1);
  assert.equal((await show('crowd')).epoch, 1);
});

test('reading a workspace never makes its sandbox', async () => {
  ok(await d.call('PUT', `${W}/quiet`, {}), 201);
  await show('quiet');
  ok(await d.call('GET', W));
  for (const below of ['metrics', 'logs']) {
    const a = await d.call('GET', `${W}/quiet/${below}`);
    assert.equal(a.status, 409);
    assert.match(a.json.error.message, /quiet is cold: it has no sandbox now/);
  }
  assert.deepEqual([(await show('quiet')).state, (await show('quiet')).epoch], ['cold', 0]);
});

test('a name that is not one is refused, and an unknown one says how to make it', async () => {
  for (const name of ['.x', '-x', 'a%20b', 'x'.repeat(64)]) assert.equal((await d.call('PUT', `${W}/${name}`, {})).status, 400, name);
  const a = await run('nothing', ['true']);
  assert.equal(a.status, 404);
  assert.match(a.json.error.message, /PUT \/v1\/workspaces\/nothing makes it/);
});

test('a second PUT returns the workspace, unless it asks for another sandbox', async () => {
  ok(await d.call('PUT', `${W}/twice`, { metadata: { a: 'b' }, limits: { pids: 100 } }), 201);
  ok(await d.call('PUT', `${W}/twice`, {}), 200);
  ok(await d.call('PUT', `${W}/twice`, { limits: { pids: 100 }, metadata: { a: 'b' } }), 200);
  const a = await d.call('PUT', `${W}/twice`, { limits: { pids: 200 } });
  assert.equal(a.status, 409);
  assert.match(a.json.error.message, /was made with other options/);
  assert.equal((await d.call('PUT', `${W}/wrong`, { limits: { pids: 'many' } })).status, 400);
  assert.equal((await d.call('GET', `${W}/wrong`)).status, 404);
});

test('one that is not used is paused, and the next use gets the same sandbox with its memory', async () => {
  ok(await d.call('PUT', `${W}/idle`, { grace_ms: 300, archive_ms: 0, background: false }), 201);
  ok(await run('idle', ['true']));
  const was = await show('idle');
  ok(await d.call('POST', `${W}/idle/processes`, { argv: ['sleep', '1000'], id: 'sleeper' }), 201);
  await poll('its sandbox is paused', async () => (await d.get(`/v1/sandboxes/${was.sandbox}`)).state === 'paused');
  assert.equal((await show('idle')).state, 'draining');
  const a = await run('idle', ['true']);
  ok(a);
  assert.equal(a.headers['cove-epoch'], '1');
  assert.equal((await show('idle')).sandbox, was.sandbox);
  assert.equal(ok(await d.call('GET', `${W}/idle/processes/sleeper`)).state, 'running');
});

test('a process in the background keeps it warm, if the policy does not say otherwise', async () => {
  ok(await d.call('PUT', `${W}/busy`, { grace_ms: 200, archive_ms: 0 }), 201);
  ok(await d.call('POST', `${W}/busy/processes`, { argv: ['sleep', '1000'], id: 'sleeper' }), 201);
  const t = Date.now();
  await poll('two sweeps have passed', () => Date.now() - t > 1500);
  assert.equal((await show('busy')).state, 'warm');
  ok(await d.call('POST', `${W}/busy/processes/sleeper/signal`, { signal: 'KILL' }), 204);
  await state('busy', 'draining');
});

test('an archived one comes back with all its files, owners, links and attributes', async () => {
  ok(await d.call('PUT', `${W}/kept`, { grace_ms: 200, archive_ms: 1 }), 201);
  ok(await run('kept', ['sh', '-ec', 'cd; mkdir -p d/e; echo text >d/e/f; ln -s d/e/f link; ln d/e/f hard; chmod 600 d/e/f; setfattr -n user.a -v b d/e/f 2>/dev/null || true; truncate -s 10M sparse']));
  ok(await d.call('POST', `${W}/kept/exec`, { argv: ['sh', '-c', 'echo installed >/usr/local/bin/tool; chown daemon /usr/local/bin/tool; rm /etc/motd; exit 0'], user: 'root' }));
  const list = ['sh', '-c', 'cd; find . -printf "%P %y %m %n %s %U %l\\n" | sort; cat d/e/f; stat -c "%U %n" /usr/local/bin/tool; ls /etc/motd 2>&1'];
  const was = ok(await run('kept', list)).stdout;
  const { sandbox } = await show('kept');
  await state('kept', 'cold');
  assert.equal((await d.call('GET', `/v1/sandboxes/${sandbox}`)).status, 404);
  assert.match((await show('kept')).archive, /^[0-9a-f]{64}$/);
  const a = await run('kept', list);
  assert.equal(ok(a).stdout, was);
  assert.equal(a.headers['cove-epoch'], '2');
});

test('a sandbox that someone deleted is made again from the newest archive', async () => {
  ok(await d.call('PATCH', `${W}/kept`, { grace_ms: 3600000 }));
  ok(await run('kept', ['true']));
  const { sandbox, epoch } = await show('kept');
  await d.del(`/v1/sandboxes/${sandbox}`);
  assert.equal(ok(await run('kept', ['sh', '-c', 'cat ~/d/e/f'])).stdout, 'text\n');
  const now = await show('kept');
  assert.equal(now.epoch, epoch + 1);
  assert.notEqual(now.sandbox, sandbox);
});

test('an epoch that is over is fenced, and changes nothing', async () => {
  const { epoch } = await show('kept');
  const h = (e) => ({ headers: { 'cove-epoch': String(e) } });
  ok(await run('kept', ['true'], h(epoch)));
  const a = await run('kept', ['touch', '/tmp/no'], h(epoch - 1));
  assert.equal(a.status, 409);
  assert.equal(a.json.error.code, 'fenced');
  assert.equal(ok(await run('kept', ['ls', '/tmp/no'])).exit_code, 2);
  for (const [method, body, query] of [['PUT', { epoch: epoch - 1 }, ''], ['DELETE', undefined, `?epoch=${epoch - 1}`]]) {
    ok(await d.call('POST', `${W}/kept/holders`, { holder: 'me', ttl_ms: 5000 }));
    const b = await d.call(method, `${W}/kept/holders/me${query}`, body);
    assert.deepEqual([b.status, b.json.error.code], [409, 'fenced']);
    assert.equal((await show('kept')).turns, 1);
  }
  assert.equal((await run('kept', ['true'], h('x'))).status, 400);
});

test('holders are told their role, extend their time, and end', async () => {
  ok(await d.call('PUT', `${W}/held`, { grace_ms: 200, archive_ms: 0 }), 201);
  const hold = (holder, more = {}) => d.call('POST', `${W}/held/holders`, { holder, ...more });
  const first = ok(await hold('a'));
  assert.deepEqual([first.role, first.epoch, first.kind], ['spawner', 1, 'turn']);
  assert.equal(ok(await hold('b', { kind: 'viewer', ttl_ms: 1000 })).role, 'attached');
  assert.deepEqual([(await show('held')).turns, (await show('held')).viewers], [1, 1]);
  await poll('the viewer ended by itself', async () => (await show('held')).viewers === 0);
  assert.equal((await show('held')).state, 'warm', 'a turn holds it');
  ok(await d.call('PUT', `${W}/held/holders/a`, { epoch: 1, ttl_ms: 60000 }));
  assert.equal((await d.call('PUT', `${W}/held/holders/b`, { epoch: 1, kind: 'viewer' })).status, 404);
  const no = await d.call('DELETE', `${W}/held`);
  assert.equal(no.status, 409);
  assert.match(no.json.error.message, /held by the turn a/);
  for (let i = 0; i < 2; i++) ok(await d.call('DELETE', `${W}/held/holders/a?epoch=1`), 204);
  await state('held', 'draining');
  assert.equal(ok(await hold('c')).role, 'rearmed');
  ok(await d.call('DELETE', `${W}/held?force=true`), 204);
});

test('a holder that is bound to a connection ends with it', async () => {
  ok(await d.call('PUT', `${W}/bound`, { grace_ms: 200, archive_ms: 0 }), 201);
  const gone = new AbortController();
  const a = await fetch(`${d.url}${W}/bound/holders`, { method: 'POST', signal: gone.signal, headers: { authorization: `Bearer ${d.key}`, 'content-type': 'application/json', accept: 'text/event-stream' }, body: JSON.stringify({ holder: 'tab', kind: 'viewer' }) });
  const { value } = await a.body.getReader().read();
  assert.match(Buffer.from(value).toString(), /event: held\n.*"role":"spawner"/s);
  assert.equal((await show('bound')).uses, 1);
  gone.abort();
  await state('bound', 'draining');
});

test('an acquire that may not wait says so, and the sandbox is made all the same', async () => {
  ok(await d.call('PUT', `${W}/hasty`, {}), 201);
  const a = await d.call('POST', `${W}/hasty/holders`, { holder: 'x', wait_ms: 0 });
  assert.ok([200, 408].includes(a.status), a.text);
  await state('hasty', 'warm');
});

test('a stream, a session and a terminal go through a workspace as through a sandbox', async () => {
  const W1 = `${W}/first`;
  ok(await d.call('PUT', `${W1}/files?path=/tmp/f`, 'hello', { headers: { 'content-type': 'application/octet-stream' } }));
  assert.equal((await d.call('GET', `${W1}/files?path=/tmp/f`)).text, 'hello');
  const s = ok(await d.call('POST', `${W1}/sessions`, {}), 201);
  assert.equal(ok(await d.call('POST', `${W1}/sessions/${s.id}/exec`, { command: 'cd /usr; pwd' })).stdout, '/usr\n');
  const t = ok(await d.call('POST', `${W1}/terminals`, { cols: 80, rows: 24 }), 201);
  assert.ok(t.id);
  ok(await d.call('GET', `${W1}/git/status?path=/tmp`), 404);
});

test('another key sees and uses nothing of it, and an admin key lists all', async () => {
  const { key } = await d.post('/v1/keys', { name: 'other' });
  assert.deepEqual((await d.get(W, { key })).workspaces, []);
  for (const [method, path, body] of [['GET', '/first'], ['POST', '/first/exec', { argv: ['true'] }], ['DELETE', '/first'], ['POST', '/first/holders', { holder: 'x' }]]) assert.equal((await d.call(method, `${W}${path}`, body, { key })).status, 404);
  assert.equal((await d.call('GET', `${W}?all_keys=true`, undefined, { key })).status, 403);
  assert.ok((await d.get(`${W}?all_keys=true`)).workspaces.length > 5);
});

test('lists have pages and a filter', async () => {
  const all = (await d.get(W)).workspaces.map((w) => w.name);
  const seen = [];
  let cursor = '';
  do {
    const page = await d.get(`${W}?limit=2${cursor && `&cursor=${cursor}`}`);
    assert.ok(page.workspaces.length <= 2);
    seen.push(...page.workspaces.map((w) => w.name));
    cursor = page.next_cursor;
  } while (cursor);
  assert.deepEqual(seen, all);
  assert.ok((await d.get(`${W}?state=cold`)).workspaces.every((w) => w.state === 'cold'));
});

test('deleting one deletes its sandbox and its archives', async () => {
  const { sandbox } = await show('kept');
  ok(await d.call('DELETE', `${W}/kept/holders/me`), 204);
  ok(await d.call('DELETE', `${W}/kept`), 204);
  assert.equal((await d.call('GET', `${W}/kept`)).status, 404);
  assert.equal((await d.call('GET', `/v1/sandboxes/${sandbox}`)).status, 404);
  ok(await d.call('PUT', `${W}/kept`, {}), 201);
  assert.equal(ok(await run('kept', ['ls', '/usr/local/bin/tool'])).exit_code, 2, 'it is new');
});

test('transitions are events', async () => {
  const list = [];
  const gone = new AbortController();
  ok(await d.call('PUT', `${W}/told`, {}), 201);
  ok(await d.call('PUT', `${W}/not-told`, {}), 201);
  const a = await fetch(`${d.url}${W}/told/events`, { signal: gone.signal, headers: { authorization: `Bearer ${d.key}`, accept: 'text/event-stream' } });
  const reading = (async () => { for await (const p of a.body) list.push(Buffer.from(p).toString()); })().catch(() => {});
  ok(await run('not-told', ['true']));
  ok(await d.call('POST', `${W}/told/processes`, { argv: ['true'], id: 'p1' }), 201);
  ok(await d.call('DELETE', `${W}/told`), 204);
  await poll('it was told', () => /workspace\.deleted/.test(list.join('')));
  const states = [...list.join('').matchAll(/"workspace":"told","state":"(\w+)"/g)].map((m) => m[1]);
  assert.deepEqual(states, ['warming', 'warm', 'deleting']);
  assert.match(list.join(''), /event: process\.started/);
  assert.doesNotMatch(list.join(''), /not-told/);
  gone.abort();
  await reading;
});

test('every command takes @NAME, and cove workspace makes, lists, holds and deletes', async () => {
  const cli = async (...args) => { const r = await d.cli(args); assert.equal(r.status, 0, `${args}: ${r.stderr}`); return r.stdout; };
  assert.equal(await cli('workspace', 'create', 'web', '--meta', 'a=b', '--grace', '1h', '-e', 'X=y'), 'web\n');
  assert.equal(await cli('workspace', 'exec', 'web', 'sh', '-c', 'echo $X'), 'y\n');
  assert.equal(await cli('exec', '@web', 'pwd'), '/workspace\n');
  assert.equal((await d.cli(['exec', '@web', 'sh', '-c', 'exit 7'])).status, 7);
  await cli('cp', '/etc/hostname', '@web:/tmp/h');
  assert.match(await cli('ls', '@web:/tmp'), /\bh\b/);
  assert.match(await cli('workspace', 'list'), /^web +warm +[a-z0-9]{20} +1 +0 +0/m);
  assert.match(await cli('workspace', 'list', '-q', '--state', 'warm'), /^web$/m);
  assert.equal(await cli('workspace', 'hold', 'web', '--ttl', '1m'), 'attached\n');
  const refused = await d.cli(['workspace', 'delete', 'web']);
  assert.equal(refused.status, 211);
  assert.match(refused.stderr, /held by the turn cli; release it, or delete with force/);
  await cli('workspace', 'release', 'web');
  await cli('workspace', 'delete', 'web');
  const gone = await d.cli(['exec', '@web', 'true']);
  assert.equal(gone.status, 202);
  assert.match(gone.stderr, /no workspace web/);
});

test('a use while it is being deleted is answered, and never waits for what does not come', async () => {
  for (let i = 0; i < 5; i++) {
    ok(await d.call('PUT', `${W}/leaving`, {}), 201);
    ok(await run('leaving', ['true']));
    const gone = d.call('DELETE', `${W}/leaving`);
    const uses = Array.from({ length: 12 }, (_, n) => [run('leaving', ['true']), d.call('POST', `${W}/leaving/holders`, { holder: `h${n}` }), d.call('PUT', `${W}/leaving`, {})]).flat();
    const answers = await Promise.all(uses.map((u) => Promise.race([u, new Promise((r) => { setTimeout(r, 15_000, { status: 'none' }).unref(); })])));
    assert.equal((await gone).status < 300 || (await gone).status === 409, true);
    for (const a of answers) assert.ok([200, 201, 404, 409, 410].includes(a.status), `${a.status} ${a.text}`);
    await poll('it is deleted', async () => [204, 404].includes((await d.call('DELETE', `${W}/leaving?force=true`)).status));
  }
});

test('a request with an epoch is never run in a later sandbox', async () => {
  ok(await d.call('PUT', `${W}/fence`, { grace_ms: 3600000 }), 201);
  const first = await show('fence');
  ok(await run('fence', ['true']));
  const { sandbox, epoch } = await show('fence');
  assert.equal(epoch, first.epoch + 1);
  await d.del(`/v1/sandboxes/${sandbox}`);
  const headers = { 'cove-epoch': String(epoch) };
  const a = await run('fence', ['touch', '/tmp/late'], { headers });
  assert.deepEqual([a.status, a.json.error?.code], [409, 'fenced'], a.text);
  assert.match(a.json.error.message, /its sandbox of epoch 1 is gone/);
  assert.equal((await show('fence')).state, 'cold', 'a request that is fenced makes nothing');
  ok(await run('fence', ['true']));
  assert.equal((await d.call('GET', `${W}/fence/metrics`, undefined, { headers })).json.error?.code, 'fenced');
  ok(await d.call('DELETE', `${W}/fence`), 204);
});

test('a sandbox that is used by its id is not deleted under that use', async () => {
  ok(await d.call('PUT', `${W}/direct`, { grace_ms: 100, archive_ms: 1500, background: false }), 201);
  ok(await run('direct', ['sh', '-c', 'echo one >~/f']));
  const { sandbox } = await show('direct');
  await poll('it is paused', async () => (await d.get(`/v1/sandboxes/${sandbox}`)).state === 'paused');
  const a = await d.call('POST', `/v1/sandboxes/${sandbox}/exec`, { argv: ['sh', '-c', 'echo two >~/f; sleep 3; echo done'] });
  assert.equal(ok(a).stdout, 'done\n');
  assert.equal(ok(await run('direct', ['sh', '-c', 'cat ~/f'])).stdout, 'two\n');
  ok(await d.call('DELETE', `${W}/direct`), 204);
});

test('a turn that is bound to a connection is counted and protects it from being deleted', async () => {
  ok(await d.call('PUT', `${W}/turned`, {}), 201);
  const gone = new AbortController();
  const a = await fetch(`${d.url}${W}/turned/holders`, { method: 'POST', signal: gone.signal, headers: { authorization: `Bearer ${d.key}`, 'content-type': 'application/json', accept: 'text/event-stream' }, body: JSON.stringify({ holder: 'open', kind: 'turn' }) });
  await a.body.getReader().read();
  assert.equal((await show('turned')).turns, 1);
  const no = await d.call('DELETE', `${W}/turned`);
  assert.equal(no.status, 409);
  assert.match(no.json.error.message, /held by the turn open/);
  gone.abort();
  await poll('its turn is over', async () => (await show('turned')).turns === 0);
  ok(await d.call('DELETE', `${W}/turned`), 204);
});

test('many holders that end at once end together', async () => {
  ok(await d.call('PUT', `${W}/many`, { grace_ms: 3600000 }), 201);
  ok(await run('many', ['true']));
  for (let i = 0; i < 1000; i += 50) await Promise.all(Array.from({ length: 50 }, (_, n) => d.call('POST', `${W}/many/holders`, { holder: `v${i + n}`, kind: 'viewer', ttl_ms: 60_000 }).then(ok)));
  const most = await d.call('POST', `${W}/many/holders`, { holder: 'more', kind: 'viewer' });
  assert.equal(most.json.error.code, 'limit', most.text);
  ok(await d.call('DELETE', `${W}/many`), 204);
});

test('a page of large workspaces is a short one, and the pages have all of them', async () => {
  const { key } = await d.post('/v1/keys', { name: 'large' });
  const env = { A: 'x'.repeat(60_000) };
  for (let i = 0; i < 50; i++) ok(await d.call('PUT', `${W}/large${i}`, { env }, { key }), 201);
  const sizes = [];
  let cursor = '';
  do {
    const page = await d.get(`${W}?limit=1000${cursor && `&cursor=${cursor}`}`, { key });
    sizes.push(page.workspaces.length);
    cursor = page.next_cursor;
  } while (cursor);
  assert.ok(sizes[0] < 50 && sizes[0] > 10, `${sizes}`);
  assert.equal(sizes.reduce((a, b) => a + b), 50);
});

test('clients that go away at any moment leave no use behind, and the epochs of others alone', async () => {
  const other = (await show('first')).epoch;
  ok(await d.call('PUT', `${W}/storm`, { grace_ms: 60, archive_ms: 1, background: false }), 201);
  for (let round = 0; round < 12; round++) {
    const gone = new AbortController();
    const headers = { authorization: `Bearer ${d.key}`, 'content-type': 'application/json' };
    const calls = Array.from({ length: 8 }, (_, i) => fetch(`${d.url}${W}/storm/${i % 2 ? 'exec' : 'holders'}`, { method: 'POST', signal: gone.signal, headers: { ...headers, accept: i % 4 ? 'application/json' : 'text/event-stream' }, body: JSON.stringify(i % 2 ? { argv: ['true'] } : { holder: `s${i}`, ttl_ms: 1000 }) }).then((a) => a.text()).catch(() => {}));
    await new Promise((r) => { setTimeout(r, round * 15); });
    gone.abort();
    await Promise.all(calls);
    if (round % 4 === 3) {
      ok(await d.call('DELETE', `${W}/storm?force=true`), 204);
      ok(await d.call('PUT', `${W}/storm`, { grace_ms: 60, archive_ms: 1, background: false }), 201);
    }
  }
  await poll('nothing uses it', async () => { const w = await show('storm'); return w.uses === 0 && w.turns === 0; });
  assert.equal(ok(await run('storm', ['echo', 'on'])).stdout, 'on\n');
  assert.ok((await sandboxes()).filter((s) => s.state === 'running').length < 40);
  assert.equal((await show('first')).epoch, other);
  ok(await d.call('DELETE', `${W}/storm?force=true`), 204);
});

test('uses and deletes while an envelope is adopted are answered', async () => {
  const envelope = { version: 1, backend: 'cove', spec: {}, archive: { space: 'y'.repeat(26), digest: '0'.repeat(64) } };
  for (let i = 0; i < 5; i++) {
    const adopted = d.call('PUT', `${W}/coming/envelope`, envelope);
    const all = [adopted, ...Array.from({ length: 6 }, () => [run('coming', ['true']), d.call('DELETE', `${W}/coming`)]).flat()];
    const answers = await Promise.all(all.map((a) => Promise.race([a, new Promise((r) => { setTimeout(r, 15_000, { status: 'none' }).unref(); })])));
    for (const a of answers) assert.ok([204, 404, 409, 410].includes(a.status), `${a.status} ${a.text}`);
    await poll('nothing is left of it', async () => (await d.call('GET', `${W}/coming`)).status === 404);
  }
});

test('a token of a sandbox opens no workspace', async () => {
  const box = ok(await d.call('POST', '/sandboxes', { templateID: 'base', secure: true }, { headers: { 'x-api-key': d.key }, key: null }), 201);
  assert.ok(box.envdAccessToken);
  for (const [method, below, body] of [['POST', '/first/exec', { argv: ['true'] }], ['GET', '/first'], ['GET', '/first/envelope']]) assert.equal((await d.call(method, `${W}${below}`, body, { key: box.envdAccessToken })).status, 401, below);
  await d.del(`/v1/sandboxes/${box.sandboxID}`);
});

test('a workspace of a key that was revoked can be shown and deleted by an admin, also if it is cold', async () => {
  const { id, key } = await d.post('/v1/keys', { name: 'leaver' });
  ok(await d.call('PUT', `${W}/left`, {}, { key }), 201);
  await d.del(`/v1/keys/${id}`);
  const headers = { 'cove-as': id };
  assert.equal((await d.call('GET', `${W}/left`, undefined, { key })).status, 401);
  assert.equal(ok(await d.call('GET', `${W}/left`, undefined, { headers })).state, 'cold');
  ok(await d.call('DELETE', `${W}/left`, undefined, { headers }), 204);
  assert.equal((await d.get(`${W}?all_keys=true`)).workspaces.some((w) => w.name === 'left'), false);
});

test('why a sandbox could not be made stays shown until one is made', async () => {
  ok(await d.call('PUT', `${W}/reasons`, { snapshot: 'missing-one' }), 201);
  const a = await run('reasons', ['true']);
  assert.equal(a.status, 404, a.text);
  await state('reasons', 'cold');
  assert.match((await show('reasons')).reason, /missing-one/);
  ok(await d.call('DELETE', `${W}/reasons`), 204);
});

// ---- envelopes and stores ----

/** A directory that several daemons keep their archives in. */
function store(t) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-archives-'));
  fs.chmodSync(dir, 0o777);
  t.after(() => fs.rmSync(dir, { recursive: true }));
  return dir;
}

test('an envelope brings a workspace back at another server, with its files', async (t) => {
  const args = ['--archives', store(t)];
  const here = await startDaemon({ args });
  const there = await startDaemon({ args });
  const at = (dd, method, rest, body) => dd.call(method, `${W}/moved${rest}`, body);
  ok(await at(here, 'PUT', '', { grace_ms: 100, archive_ms: 1, env: { SECRET: 'x' } }), 201);
  ok(await at(here, 'POST', '/exec', { argv: ['sh', '-c', 'echo files >~/f'] }));
  await poll('it is cold', async () => (await here.get(`${W}/moved`)).state === 'cold');
  const envelope = ok(await at(here, 'GET', '/envelope'));
  assert.deepEqual([envelope.version, envelope.backend, envelope.epoch, envelope.sandbox], [1, 'cove', 1, undefined]);
  ok(await at(there, 'PUT', '/envelope', envelope), 204);
  const a = await at(there, 'POST', '/exec', { argv: ['sh', '-c', 'cat ~/f; echo $SECRET'] });
  assert.equal(ok(a).stdout, 'files\nx\n');
  assert.equal(a.headers['cove-epoch'], '2');
  assert.equal((await at(there, 'PUT', '/envelope', envelope)).status, 409);
  await here.stop();
  await there.stop();
});

test('an envelope with a sandbox that is still here resumes that one, at its epoch', async () => {
  ok(await d.call('PUT', `${W}/again`, {}), 201);
  ok(await run('again', ['sh', '-c', 'echo mine >~/f']));
  const envelope = ok(await d.call('GET', `${W}/again/envelope`));
  const taken = await d.call('PUT', `${W}/copy/envelope`, envelope);
  assert.equal(taken.status, 409);
  assert.match(taken.json.error.message, /is that of another workspace/);
  const { sandbox } = await show('again');
  assert.equal(envelope.sandbox, sandbox);
  ok(await d.call('DELETE', `${W}/again`), 204);
  ok(await d.call('PUT', `${W}/again/envelope`, envelope), 204);
  assert.deepEqual([(await show('again')).state, (await show('again')).epoch], ['cold', 1], 'its sandbox is gone, so it is cold');
});

test('an envelope that is not one leaves nothing', async () => {
  const good = { version: 1, backend: 'cove', spec: {} };
  for (const [status, bad, text] of [
    [400, { version: 2 }, /knows version 1/],
    [400, { spec: { template: 5 } }, /^spec: template/],
    ...['text', 5, true, []].map((spec) => [400, { spec }, /^spec: expected an object/]),
    [501, { backend: 'moon' }, /no backend 'moon'/],
    [400, { archive: { space: 'x', digest: 'short' } }, /archive: digest/],
    [404, { archive: { space: 'x'.repeat(26), digest: '0'.repeat(64) } }, /./],
  ]) {
    const a = await d.call('PUT', `${W}/bad/envelope`, { ...good, ...bad });
    assert.equal(a.status, status, a.text);
    assert.match(a.json.error.message, text);
  }
  await poll('nothing is left of it', async () => (await d.call('GET', `${W}/bad`)).status === 404);
});

test('a store that fails leaves the sandbox and says why, and a store that works again is used', async (t) => {
  const dir = store(t);
  const dd = await startDaemon({ args: ['--archives', dir] });
  ok(await dd.call('PUT', `${W}/stuck`, { grace_ms: 100, archive_ms: 1 }), 201);
  ok(await dd.call('POST', `${W}/stuck/exec`, { argv: ['sh', '-c', 'echo kept >~/f'] }));
  const { sandbox } = await dd.get(`${W}/stuck`);
  for (const f of fs.readdirSync(dir)) fs.rmSync(path.join(dir, f), { recursive: true });
  fs.chownSync(dir, 0, 0);
  fs.chmodSync(dir, 0o700);
  const w = await poll('the reason is shown', async () => { const x = await dd.get(`${W}/stuck`); return x.reason && x; });
  assert.match(w.reason, /permission denied|Permission denied/i);
  assert.equal(w.sandbox, sandbox);
  assert.equal(ok(await dd.call('POST', `${W}/stuck/exec`, { argv: ['sh', '-c', 'cat ~/f'] })).stdout, 'kept\n');
  fs.chmodSync(dir, 0o777);
  await poll('it is archived', async () => (await dd.get(`${W}/stuck`)).state === 'cold', { deadline: 30_000 });
  assert.equal(ok(await dd.call('POST', `${W}/stuck/exec`, { argv: ['sh', '-c', 'cat ~/f'] })).stdout, 'kept\n');
  await dd.stop();
});

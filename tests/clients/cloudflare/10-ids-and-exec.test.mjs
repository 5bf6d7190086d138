// Ids, keys and exec of Cloudflare's API over plain HTTP, and where ours
// must be better than the reference.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Cloudflare, anyId, eventsOf, resultOf } from '../../lib/cloudflare.mjs';
import { poll, startDaemon } from '../../lib/cove.mjs';

let d;
let b; // one sandbox that most tests share

before(async () => {
  d = await startDaemon();
  b = new Cloudflare(d);
});
after(() => d?.stop());

const count = async () => (await d.get('/v1/sandboxes?limit=100')).sandboxes.length;

test('health wants no key; the document wants one and shows the Cloudflare plane', async () => {
  const health = await d.call('GET', '/health', undefined, { key: '' });
  assert.deepEqual([health.status, health.json], [200, { ok: true }]);
  assert.equal((await d.call('GET', '/v1/openapi.json', undefined, { key: '' })).status, 401);
  const doc = await d.get('/v1/openapi.json');
  assert.equal(doc.openapi, '3.1.0');
  assert.equal(doc.paths['/v1/sandbox/{id}/exec'].post.operationId, 'execCommand');
  const ops = Object.values(doc.paths).flatMap((p) => Object.values(p)).map((o) => o.operationId);
  assert.equal(new Set(ops).size, ops.length, 'each operation has a name of its own');
});

test('the HTML page is served, and both documents take the key as a parameter', async () => {
  for (const url of ['/v1/openapi', '/v1/openapi.html']) {
    assert.equal((await d.call('GET', url, undefined, { key: '' })).status, 401);
    assert.equal((await d.call('GET', `${url}?token=wrong`, undefined, { key: '' })).status, 401);
    const page = await d.call('GET', `${url}?token=${d.key}`, undefined, { key: '' });
    assert.equal(page.status, 200);
    assert.match(page.headers['content-type'], /^text\/html/);
    assert.match(page.headers['content-security-policy'], /default-src 'none'/);
    assert.ok(page.text.includes('/v1/sandbox/{id}/exec'));
  }
  assert.equal((await d.call('GET', `/v1/openapi.json?token=${d.key}`, undefined, { key: '' })).json.openapi, '3.1.0');
  assert.equal((await d.call('GET', `/v1/sandboxes?token=${d.key}`, undefined, { key: '' })).status, 401);
});

test('serve prints the variables of the bridge', () => {
  assert.ok(d.output.includes(`export CLOUDFLARE_SANDBOX_WORKER_URL=${d.url} CLOUDFLARE_SANDBOX_API_KEY=$(cat ${d.dir}/api-key)`));
});

test('create answers an id of 26 base32 characters for any body, and makes no sandbox', async () => {
  const had = await count();
  for (const body of [{ exposedPorts: [8080], timeoutMs: 5, mounts: [{}] }, Buffer.from('not json'), undefined]) {
    const a = await d.call('POST', '/v1/sandbox', body);
    assert.equal(a.status, 200);
    assert.deepEqual(Object.keys(a.json), ['id']);
    assert.match(a.json.id, /^[a-z2-7]{26}$/);
  }
  assert.equal(await count(), had);
});

test('the form of an id is looked at before the key', async () => {
  for (const bad of ['A', 'a1', 'a-b', 'x'.repeat(129), '%20']) {
    const a = await d.call('GET', `/v1/sandbox/${bad}/running`, undefined, { key: '' });
    assert.deepEqual([a.status, a.json?.code], [400, 'invalid_request'], bad);
  }
  for (const good of ['a', 'z7', 'x'.repeat(128)]) {
    const a = await d.call('GET', `/v1/sandbox/${good}/running`, undefined, { key: '' });
    assert.deepEqual([a.status, a.json?.code], [401, 'unauthorized'], good);
  }
});

test('a key is wanted as Bearer, in any case for sandboxes, exactly for the pool', async () => {
  const as = (url, authorization) => d.call('GET', url, undefined, { key: '', headers: authorization ? { authorization } : {} });
  const box = `/v1/sandbox/${anyId()}/running`;
  assert.equal((await as(box, `bearer ${d.key}`)).status, 200);
  assert.equal((await as(box, `BEARER ${d.key}`)).status, 200);
  assert.equal((await as(box, d.key)).status, 401);
  assert.equal((await as(box, `Basic ${d.key}`)).status, 401);
  assert.equal((await as(box, 'Bearer wrong')).status, 401);
  assert.equal((await d.call('POST', '/v1/sandbox', {}, { key: '' })).status, 401);
  assert.equal((await as('/v1/pool/stats', `Bearer ${d.key}`)).status, 200);
  assert.equal((await as('/v1/pool/stats', `bearer ${d.key}`)).status, 401);
});

test('concurrent first calls of an id make exactly one sandbox', async () => {
  const racer = new Cloudflare(d);
  const had = await count();
  const all = await Promise.all(Array.from({ length: 24 }, () => racer.sh('cat /proc/sys/kernel/random/boot_id')));
  assert.equal(new Set(all.map((r) => r.stdout)).size, 1);
  assert.equal(await count(), had + 1);
  assert.equal((await d.get('/v1/sandboxes?limit=100')).sandboxes.filter((s) => s.name === racer.id).length, 1);
  await racer.delete();
  assert.equal(await count(), had);
});

test('running and delete of an unused id make no sandbox', async () => {
  const never = new Cloudflare(d);
  const had = await count();
  assert.equal(await never.running(), false);
  await never.delete();
  assert.equal(await count(), had);
});

test('a created id is reported as running before its first use and until its delete', async () => {
  const had = await count();
  const { json } = await d.call('POST', '/v1/sandbox');
  const x = new Cloudflare(d, json.id);
  const { key } = await d.post('/v1/keys', { name: 'not its owner' });
  assert.equal(await x.running(), true);
  assert.equal(await new Cloudflare(d, x.id, key).running(), false);
  assert.equal(await count(), had);
  await x.delete();
  assert.equal(await x.running(), false);
  await x.exec(['true']);
  assert.equal(await x.running(), true);
  await x.delete();
  assert.equal(await x.running(), false);
});

test('a deleted id can be used again at once and means a new sandbox', async () => {
  const again = new Cloudflare(d);
  await again.sh('echo old >f');
  assert.equal(await again.running(), true);
  const gone = again.delete();
  await gone;
  assert.equal(await again.running(), false);
  assert.equal((await again.sh('cat f')).exit, 1);
  await again.delete();
});

test('calls during the creation of a sandbox find a workspace owned by root', async () => {
  for (let round = 0; round < 12; round++) {
    const x = new Cloudflare(d);
    const all = [];
    for (let i = 0; i < 16; i++) {
      all.push(x.exec(['stat', '-c', '%U', '.']));
      await new Promise(setImmediate);
    }
    assert.deepEqual([...new Set((await Promise.all(all)).map((r) => r.stdout))], ['root\n']);
    await x.delete();
  }
});

test('a call cut off by a delete fails, and the next call is in a new sandbox', async () => {
  const ends = new Set();
  for (let round = 0; round < 12; round++) {
    const x = new Cloudflare(d);
    if (round % 2) await x.sh('touch old');
    const racing = [];
    for (let i = 0; i < 6; i++) {
      racing.push(x.call('POST', '/exec', { argv: ['true'] }));
      if (i === 2) racing.push(x.delete().then(() => x.sh('ls')).then((r) => assert.deepEqual([r.exit, r.stdout], [0, ''])));
      await new Promise(setImmediate);
    }
    for (const a of (await Promise.all(racing)).filter(Boolean)) {
      const { exit, error } = a.status === 200 ? resultOf(eventsOf(a.text)) : { error: a.json };
      ends.add(exit === 0 ? 'exit' : `${a.status} ${error.code}: ${error.error.replace(/sandbox \S+/, 'sandbox X')}`);
    }
    await x.delete();
  }
  for (const end of ends) assert.match(end, /^(exit|(200|502) exec_transport_error: (sandbox X was deleted|no sandbox X))$/);
});

test('an id is a name within its key', async () => {
  const { key } = await d.post('/v1/keys', { name: 'another' });
  const id = anyId();
  const mine = new Cloudflare(d, id);
  const theirs = new Cloudflare(d, id, key);
  await mine.sh('echo mine >f');
  assert.equal(await theirs.running(), false);
  assert.equal((await theirs.sh('ls')).stdout, '');
  await theirs.delete();
  assert.equal((await mine.sh('cat f')).stdout, 'mine\n');
  await mine.delete();
});

test('commands are root\'s, at home in /root, in /workspace', async () => {
  const r = await b.sh('id -u; echo $HOME; pwd; cd; pwd; touch /workspace/x && echo written; umask');
  assert.equal(r.stdout, '0\n/root\n/workspace\n/root\nwritten\n0022\n');
  assert.equal((await b.sh('stat -c %U .; git init -q g && git -C g status --short && echo fine')).stdout, 'root\nfine\n');
});

test('every argument stays one argument', async () => {
  const words = ['a b', '$HOME', "it's", 'line\nline', '\t', '*', '~', '`id`', '', 'é', '\\', '"'];
  const r = await b.exec(['printf', '[%s]', ...words]);
  assert.equal(r.stdout, words.map((w) => `[${w}]`).join(''));
  const viaBash = await b.exec(['builtin', 'printf', '[%s]', ...words]);
  assert.equal(viaBash.stdout, words.map((w) => `[${w}]`).join(''));
});

test('builtins, assignments, keywords and unknown names are run by bash', async () => {
  assert.equal((await b.exec(['cd', '/tmp'])).exit, 0);
  assert.equal((await b.exec(['type', 'cd'])).stdout, 'cd is a shell builtin\n');
  assert.equal((await b.exec(['X=1', 'env'])).stdout.split('\n').includes('X=1'), true);
  assert.equal((await b.exec(['exit', '7'])).exit, 7);
  const nowhere = await b.exec(['no-such-program']);
  assert.equal(nowhere.exit, 127);
  assert.match(nowhere.stderr, /no-such-program: command not found/);
  await b.sh('echo echo ran >script; chmod +x script; echo x >plain');
  assert.equal((await b.exec(['./script'])).stdout, 'ran\n');
  assert.equal((await b.exec(['./plain'])).exit, 126);
  assert.equal((await b.exec([''])).exit, 127);
});

test('too many arguments for bash are refused and never dropped', async () => {
  const quotes = (n) => Array.from({ length: 15 }, () => "'".repeat(n));
  const many = Array(60000).fill("'");
  assert.match(await b.fails(413, 'payload_too_large', 'POST', '/exec', { argv: ['no-such-program', ...many, ...quotes(130_000)] }), /argv/);
  await b.fails(413, 'payload_too_large', 'POST', '/exec', { argv: ['true', ...quotes(150_000)] }, { headers: { 'session-id': 's' } });
});

test('each event has whole characters; invalid UTF-8 is sent verbatim', async () => {
  const r = await b.sh('for i in 1 2 3; do printf "\\xe2\\x82"; sleep 0.05; printf "\\xac"; done; printf "\\xff\\x00\\xe2"; printf "no newline" >&2');
  const out = r.events.filter((e) => e.event === 'stdout').map((e) => Buffer.from(e.data, 'base64'));
  assert.deepEqual(r.out, Buffer.concat([Buffer.from('€€€'), Buffer.from([0xff, 0, 0xe2])]));
  const text = out.map((x) => x.toString()).join('');
  assert.ok(text.startsWith('€€€'), `decoded one by one: ${JSON.stringify(text)}`);
  assert.equal(r.stderr, 'no newline');
});

test('a large output comes whole and in order', async () => {
  const r = await b.sh('seq 300000; seq 10 >&2');
  assert.equal(r.stdout, Array.from({ length: 300000 }, (_, i) => `${i + 1}\n`).join(''));
  assert.equal(r.stderr, '1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n');
});

test('timeout_ms kills the tree and returns the output with exit code 124', async () => {
  const r = await b.sh('echo first; (sleep 77 & wait) & sleep 78', { timeout_ms: 300 });
  assert.equal(r.exit, 124);
  assert.equal(r.stdout, 'first\n');
  assert.equal((await b.sh('pgrep -f "sleep 7[78]"')).stdout, '');
  assert.equal((await b.exec(['true'], { timeout_ms: 0 })).exit, 0);
  assert.equal((await b.exec(['true'], { timeout_ms: 1500.5 })).exit, 0);
  assert.equal((await b.exec(['sleep', '20'], { timeout_ms: 0.3 })).exit, 124);
});

test('a child in the background does not hold up the end', async () => {
  const start = Date.now();
  const r = await b.sh('sleep 30 & echo done');
  assert.deepEqual([r.exit, r.stdout], [0, 'done\n']);
  assert.ok(Date.now() - start < 15_000);
  await b.exec(['pkill', 'sleep']);
});

test('the exit code is that of the command, or 128 and the signal', async () => {
  assert.equal((await b.sh('exit 42')).exit, 42);
  assert.equal((await b.sh('kill -9 $$')).exit, 137);
  assert.equal((await b.sh('kill -TERM $$')).exit, 143);
});

test('cwd must resolve to a place in /workspace', async () => {
  await b.exec(['mkdir', '-p', 'a/b']);
  for (const [cwd, seen] of [['a/b', '/workspace/a/b'], ['/workspace/a/../a', '/workspace/a'], ['.', '/workspace'], ['//workspace///a/', '/workspace/a']]) {
    assert.equal((await b.exec(['pwd'], { cwd })).stdout, `${seen}\n`, cwd);
  }
  for (const cwd of ['/', '/etc', '..', '/workspace/..', '/workspaces', 'a/../../etc']) {
    await b.fails(403, 'invalid_request', 'POST', '/exec', { argv: ['pwd'], cwd });
  }
  assert.match(await b.fails(502, 'exec_transport_error', 'POST', '/exec', { argv: ['pwd'], cwd: 'nowhere' }), /nowhere/);
});

test('/workspace can be removed and made again', async () => {
  const x = new Cloudflare(d);
  assert.equal((await x.sh('rm -rf /workspace')).exit, 0);
  assert.equal((await x.exec(['pwd'])).stdout, '/\n');
  assert.equal((await x.exec(['type', 'cd'])).stdout, 'cd is a shell builtin\n');
  assert.equal((await x.exec(['no-such-program'])).exit, 127);
  assert.match(await x.fails(502, 'exec_transport_error', 'POST', '/exec', { argv: ['pwd'], cwd: 'sub' }), /workspace/);
  // some clients always say where
  assert.equal((await x.exec(['mkdir', '-p', '/workspace'], { cwd: '/workspace' })).exit, 0);
  assert.equal((await x.exec(['pwd'])).stdout, '/workspace\n');
  await x.delete();
});

test('an invalid command is refused before a sandbox is made', async () => {
  const never = new Cloudflare(d);
  const had = await count();
  for (const body of [{}, { argv: [] }, { argv: 'ls' }, { argv: [1] }, { argv: ['ls'], timeout_ms: 'soon' }, { argv: ['ls'], cwd: 5 }, []]) {
    await never.fails(400, 'invalid_request', 'POST', '/exec', body);
  }
  await never.fails(400, 'invalid_request', 'POST', '/exec', Buffer.from('{"argv":'));
  await never.fails(413, 'payload_too_large', 'POST', '/exec', { argv: ['x'.repeat(5 << 20)] });
  await never.fails(405, 'invalid_request', 'GET', '/exec');
  await never.fails(404, 'not_found', 'GET', '/nothing');
  assert.equal(await count(), had);
});

test('fields we do not know and any content type are taken', async () => {
  const a = await b.call('POST', '/exec', Buffer.from('{"argv":["true"],"session":"x","env":{"A":"b"}}'), { headers: { 'content-type': 'text/plain;charset=UTF-8' } });
  assert.equal(resultOf(eventsOf(a.text)).exit, 0);
});

test('the pool tells its numbers and takes care of itself', async () => {
  const { json } = await d.call('GET', '/v1/pool/stats');
  assert.deepEqual(Object.keys(json), ['warm', 'assigned', 'total', 'config', 'maxInstances']);
  assert.equal(json.total, json.warm + json.assigned);
  assert.ok(json.assigned >= 1);
  assert.equal(json.config.warmTarget, 2);
  for (const path of ['prime', 'shutdown-prewarmed']) {
    assert.deepEqual((await d.call('POST', `/v1/pool/${path}`)).json, { ok: true });
  }
});

test('an id means the same sandbox after front and keeper were killed', async () => {
  await b.sh('echo kept >kept');
  await d.kill9('both');
  await d.restart();
  assert.equal(await b.running(), true);
  assert.equal((await b.sh('cat kept')).stdout, 'kept\n');
});

test('an id means one sandbox also when the front dies while it is being made', async () => {
  const all = Array.from({ length: 6 }, () => new Cloudflare(d));
  for (const [i, x] of all.entries()) {
    const first = Promise.allSettled(Array.from({ length: 4 }, () => x.exec(['true'])));
    for (let turn = 0; turn < 4 * i; turn++) await new Promise(setImmediate); // each time a little further
    await d.kill9('front');
    await first;
    await d.back();
    await x.sh('echo here >f');
    assert.equal((await x.sh('cat f')).stdout, 'here\n');
  }
  await Promise.all(all.map((x) => x.delete()));
  assert.ok(await poll('nothing of them is left', async () => (await count()) === 1));
});

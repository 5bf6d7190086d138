// Snapshots and forks.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { inventory } from '../lib/chaos.mjs';
import { finished, poll, run, startDaemon } from '../lib/cove.mjs';
import { dockerSave, staticProbe, tar } from '../lib/image.mjs';

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const S = '/v1/sandboxes';
const take = (id, body) => d.post(`${S}/${id}/snapshots`, body);
const fork = async (id, body) => (await d.post(`${S}/${id}/fork`, body)).forks;
const sh = async (id, text) => {
  const r = await d.exec(id, text);
  assert.equal(r.exit_code, 0, `${text}: ${r.stderr}`);
  return r.stdout;
};
const drop = (...all) => Promise.all(all.map((s) => d.del(s.sandbox ? `/v1/snapshots/${s.id}` : `${S}/${s.id}`)));

test('sandboxes made from one snapshot start equal and are independent', async () => {
  const a = await d.sandbox();
  await sh(a.id, 'echo one > /workspace/f; sudo rm -rf /usr/share/doc; sudo mkdir /usr/share/doc; sudo chown user /etc/hostname || true');
  const snap = await take(a.id);
  assert.equal(snap.sandbox, a.id);
  assert.equal(snap.template, 'base');
  assert.ok(snap.bytes > 0);
  assert.equal(snap.name, undefined);
  assert.equal((await d.get(`${S}/${a.id}`)).state, 'running');
  await sh(a.id, 'echo two > /workspace/f');
  const b = await d.sandbox({ snapshot: snap.id });
  assert.deepEqual([b.snapshot, b.template], [snap.id, 'base']);
  assert.notEqual(b.boot_id, a.boot_id);
  assert.equal(await sh(b.id, 'cat /workspace/f; ls /usr/share/doc | wc -l; id -un'), 'one\n0\nuser\n');
  await sh(b.id, 'echo three > /workspace/f; echo new > /workspace/g');
  assert.equal(await sh(a.id, 'cat /workspace/f; ls /workspace'), 'two\nf\n');
  const c = await d.sandbox({ template: snap.id });
  assert.equal(await sh(c.id, 'cat /workspace/f; ls /workspace'), 'one\nf\n');
  await drop(a, b, c, snap);
});

test('a chain of snapshots keeps removals, replacements, renames, links, modes, owners and attributes', async () => {
  const a = await d.sandbox();
  await sh(a.id, `cd /workspace && mkdir -p d/e && echo x > d/e/f && ln d/e/f hard && ln -s d/e/f soft && mkfifo pipe &&
    printf '#!/bin/sh\\necho ran\\n' > tool && chmod 4755 tool && setfattr -n user.note -v hello tool 2>/dev/null; true`);
  await sh(a.id, 'sudo mv /usr/share/man /usr/share/man2 || true; sudo rm /etc/motd /etc/issue; sudo chmod 600 /etc/shadow; sudo touch /opt/mine; sudo chown 1234:4321 /opt/mine');
  const one = await take(a.id);
  const b = await d.sandbox({ snapshot: one.id });
  await sh(b.id, 'rm /workspace/soft; mv /workspace/d /workspace/moved; sudo rm -rf /usr/share/man2; echo back | sudo tee /etc/issue');
  const two = await take(b.id);
  const c = await d.sandbox({ snapshot: two.id });
  const found = await sh(c.id, `cd /workspace; ls; cat moved/e/f; stat -c '%h %a' hard tool; ./tool; stat -c %u:%g /opt/mine; ls -d /usr/share/man /usr/share/man2 2>/dev/null; cat /etc/issue; ls /etc/motd 2>/dev/null || echo none; test -p pipe && echo pipe`);
  assert.equal(found, 'hard\nmoved\npipe\ntool\nx\n2 644\n1 4755\nran\n1234:4321\nback\nnone\npipe\n');
  await drop(a, b, c, one, two);
});

test('a snapshot of a paused or stopped sandbox does not change its state', async () => {
  const a = await d.sandbox();
  await sh(a.id, 'echo kept > /workspace/f');
  await d.process(a.id, ['sleep', '1000']);
  await d.post(`${S}/${a.id}/pause`);
  const one = await take(a.id, { name: 'while-paused' });
  assert.equal((await d.get(`${S}/${a.id}`)).state, 'paused');
  await d.post(`${S}/${a.id}/resume`);
  await d.post(`${S}/${a.id}/pause`, { memory: false });
  const two = await poll('it is down', () => take(a.id));
  assert.equal((await d.get(`${S}/${a.id}`)).state, 'stopped');
  for (const s of [one, two]) {
    const b = await d.sandbox({ snapshot: s.id });
    assert.equal(await sh(b.id, 'cat /workspace/f'), 'kept\n');
    await drop(b);
  }
  await drop(a, one, two);
});

test('a resume while a snapshot is being taken works; of a stopped one it may have to be tried again', async () => {
  const a = await d.sandbox();
  for (let i = 0; i < 10; i++) {
    await d.post(`${S}/${a.id}/pause`);
    const [snap] = await Promise.all([d.call('POST', `${S}/${a.id}/snapshots`), d.post(`${S}/${a.id}/resume`)]);
    assert.ok([201, 409].includes(snap.status), snap.text); // 409: the resume came first
    assert.equal(await sh(a.id, 'echo on'), 'on\n');
    if (snap.status === 201) await drop(snap.json);
  }
  for (let i = 0; i < 10; i++) {
    await d.post(`${S}/${a.id}/pause`, { memory: false });
    await drop(await poll('it is down', () => take(a.id)));
    const [snap, again] = await Promise.all([d.call('POST', `${S}/${a.id}/snapshots`), d.call('POST', `${S}/${a.id}/resume`)]);
    assert.ok([201, 409].includes(snap.status), snap.text);
    assert.ok([200, 409].includes(again.status), again.text);
    if (snap.status === 201) await drop(snap.json);
    if (again.status !== 200) await d.post(`${S}/${a.id}/resume`);
  }
  await drop(a);
});

for (const journal of ['wal', 'delete']) {
  test(`a database that is written to all the time (journal: ${journal}) opens clean from a snapshot, with all that was committed`, async () => {
    const a = await d.sandbox();
    const write = `
import sqlite3
c = sqlite3.connect('/workspace/db', isolation_level=None, timeout=30)
c.execute('pragma journal_mode=${journal}')
c.execute('create table t (n integer primary key, x text)')
done = 0
while True:
  c.execute('begin immediate')
  for i in range(20): c.execute("insert into t (x) values (hex(randomblob(400)))")
  c.execute('commit')
  done += 20
  print(done, flush=True)`;
    const read = `
import sqlite3
c = sqlite3.connect('/workspace/db', timeout=30)
print(c.execute('pragma integrity_check').fetchone()[0], c.execute('select count(*) from t').fetchone()[0], c.execute('pragma journal_mode').fetchone()[0])`;
    await d.process(a.id, ['python3', '-c', write], { id: 'writer' });
    const committed = async () => {
      const { chunks } = await d.get(`${S}/${a.id}/processes/writer/logs`);
      return Number(chunks.map((c) => c.data).join('').trimEnd().split('\n').pop());
    };
    await poll('it writes', async () => (await committed()) > 200);
    for (let i = 0; i < 3; i++) {
      const before = await committed();
      const s = await take(a.id);
      const b = await d.sandbox({ snapshot: s.id });
      const [check, rows, mode] = (await d.exec(b.id, ['python3', '-c', read])).stdout.trim().split(' ');
      assert.deepEqual([check, mode], ['ok', journal]);
      assert.ok(Number(rows) >= before, `${rows} rows, and ${before} were committed before`);
      assert.equal(Number(rows) % 20, 0, `${rows} rows: no transaction is there by half`);
      await drop(b, s);
    }
    assert.equal((await d.get(`${S}/${a.id}/processes/writer`)).state, 'running');
    await drop(a);
  });
}

test('a snapshot outlives its sandbox, and a sandbox its snapshot', async () => {
  const a = await d.sandbox();
  await sh(a.id, 'echo deep > /workspace/f');
  const one = await take(a.id);
  await drop(a);
  const b = await d.sandbox({ snapshot: one.id });
  const two = await take(b.id);
  await drop(one);
  await d.fails(404, 'not_found', 'GET', `/v1/snapshots/${one.id}`);
  await d.fails(404, 'not_found', 'POST', S, { snapshot: one.id });
  assert.equal(await sh(b.id, 'cat /workspace/f'), 'deep\n');
  const c = await d.sandbox({ snapshot: two.id });
  await drop(b, two);
  assert.equal(await sh(c.id, 'cat /workspace/f; echo more >> /workspace/f; cat /workspace/f'), 'deep\ndeep\nmore\n');
  await d.post(`${S}/${c.id}/pause`, { memory: false });
  await poll('it boots again', () => d.post(`${S}/${c.id}/resume`));
  assert.equal(await sh(c.id, 'cat /workspace/f'), 'deep\nmore\n');
  await drop(c);
  await poll('nothing is left of any of them', () => inventory(d).snapshots.length === 0 && inventory(d).snapshotDisks.length === 0);
});

test('forty snapshots of snapshots keep all files', async () => {
  let s = await d.sandbox();
  for (let i = 0; i < 40; i++) {
    await sh(s.id, `echo ${i} >> /workspace/log; echo ${i} > /workspace/${i}; rm -f /workspace/${i - 2}`);
    const snap = await take(s.id);
    const next = await d.sandbox({ snapshot: snap.id });
    await drop(s, snap);
    s = next;
  }
  assert.equal(await sh(s.id, 'wc -l < /workspace/log; ls /workspace'), '40\n38\n39\nlog\n');
  await drop(s);
});

test('named, listed, filtered, in pages; of several of a name the newest is meant', async () => {
  const a = await d.sandbox();
  const snaps = [];
  for (const [i, name] of ['x', 'y', 'x', 'x'].entries()) {
    await sh(a.id, `echo ${i} > /workspace/f`);
    snaps.push(await take(a.id, { name }));
  }
  const list = async (q) => (await d.get(`/v1/snapshots?${q}`)).snapshots.map((s) => s.id);
  const ids = snaps.map((s) => s.id).reverse();
  assert.deepEqual(await list(`sandbox=${a.id}`), ids);
  assert.deepEqual(await list('name=y'), [snaps[1].id]);
  assert.deepEqual(await list('sandbox=none'), []);
  const first = await d.get('/v1/snapshots?name=x&limit=2');
  assert.deepEqual(first.snapshots.map((s) => s.id), [snaps[3].id, snaps[2].id]);
  const second = await d.get(`/v1/snapshots?name=x&limit=2&cursor=${first.next_cursor}`);
  assert.deepEqual([second.snapshots.map((s) => s.id), second.next_cursor], [[snaps[0].id], null]);
  assert.equal((await d.get('/v1/snapshots/x')).id, snaps[3].id);
  for (const how of [{ snapshot: 'x' }, { template: 'x' }]) {
    const b = await d.sandbox(how);
    assert.equal(await sh(b.id, 'cat /workspace/f'), '3\n');
    await drop(b);
  }
  await drop(a, ...snaps);
  for (const q of ['limit=0', 'cursor=nonsense', 'what=1']) await d.fails(400, 'invalid', 'GET', `/v1/snapshots?${q}`);
});

test('a fork makes the requested number of independent copies, and the original keeps running', async () => {
  const a = await d.sandbox({ env: { SECRET: 'shared' }, metadata: { job: 'fork' }, timeout_ms: 600_000, limits: { memory: 256 * 2 ** 20 } });
  await sh(a.id, 'echo here > /workspace/f');
  await d.process(a.id, ['sleep', '1000'], { id: 'job' });
  const forks = await fork(a.id, { count: 5 });
  assert.equal(forks.length, 5);
  const all = forks.map((f) => f.sandbox);
  assert.equal(new Set(all.map((s) => s.id)).size, 5);
  await Promise.all(all.map(async (s, i) => {
    assert.deepEqual([s.state, s.metadata, s.limits.memory], ['running', { job: 'fork' }, 256 * 2 ** 20]);
    assert.ok(Math.abs(Date.parse(s.ends_at) - Date.now() - 600_000) < 60_000);
    assert.equal(await sh(s.id, `cat /workspace/f; echo $SECRET; echo ${i} > /workspace/f`), 'here\nshared\n');
    assert.deepEqual((await d.get(`${S}/${s.id}/processes`)).processes, []);
  }));
  assert.equal(await sh(a.id, 'cat /workspace/f'), 'here\n');
  assert.equal((await d.get(`${S}/${a.id}/processes/job`)).state, 'running');
  const [once] = await fork(all[0].id, { timeout_ms: 0 });
  assert.equal(once.sandbox.ends_at, null);
  assert.equal(await sh(once.sandbox.id, 'cat /workspace/f'), '0\n');
  assert.deepEqual((await d.get('/v1/snapshots')).snapshots, [], 'the snapshot of a fork is not listed');
  await drop(a, ...all, once.sandbox);
  await poll('its layers are gone with the last of them', () => inventory(d).snapshotDisks.length === 0);
});

test('data held by a snapshot does not count against the disk limit of its sandbox', async () => {
  const a = await d.sandbox({ limits: { disk: 64 * 2 ** 20 } });
  const fill = 'dd if=/dev/urandom of=/workspace/big bs=1M count=48 conv=fsync status=none';
  await sh(a.id, fill);
  const snap = await take(a.id);
  assert.ok(snap.bytes > 40 * 2 ** 20, `${snap.bytes}`);
  await sh(a.id, `rm /workspace/big; ${fill}`);
  const b = await d.sandbox({ snapshot: snap.id, limits: { disk: 64 * 2 ** 20 } });
  await sh(b.id, `${fill.replace('big', 'other')}; cmp -n 1000 /workspace/big /workspace/other || true`);
  const more = await d.exec(b.id, fill.replace('big', 'third'));
  assert.match(more.stderr, /space|quota/i, 'its own limit holds');
  await drop(a, b, snap);
});

test('an export ended by a signal leaves no file', async () => {
  const front = d.frontPid();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    const file = `${d.dir}/${signal}.tar.zst`;
    process.kill(front, 'SIGSTOP'); // the answer does not come before the signal
    try {
      const child = d.cliSpawn(['snapshot', 'export', 'any', file]);
      const end = finished(child, { deadline: 20_000 });
      await poll('the file', () => fs.existsSync(file));
      child.kill(signal);
      assert.equal((await end).signal, signal);
    } finally {
      process.kill(front, 'SIGCONT');
    }
    assert.equal(fs.existsSync(file), false, signal);
  }
});

test('the CLI takes, lists, shows, uses and deletes snapshots, and forks', async () => {
  const ok = async (args) => {
    const r = await d.cli(args);
    assert.equal(r.status, 0, `${args}: ${r.stderr}`);
    return r.stdout.trim();
  };
  const a = await d.sandbox();
  await sh(a.id, 'echo cli > /workspace/f');
  const id = await ok(['snapshot', 'take', '--name', 'from-cli', a.id]);
  assert.match(id, /^[a-z0-9]{20}$/);
  assert.match(await ok(['snapshot', 'list']), new RegExp(`${id} +from-cli +${a.id} +base`));
  assert.equal(await ok(['snapshot', 'list', '-q', '--sandbox', a.id]), id);
  assert.equal(JSON.parse(await ok(['snapshot', 'show', 'from-cli'])).id, id);
  const b = { id: await ok(['create', '--snapshot', 'from-cli']) };
  assert.equal(await sh(b.id, 'cat /workspace/f'), 'cli\n');
  const forks = (await ok(['fork', '-n', '2', '--timeout', '10m', a.id])).split('\n').map((x) => ({ id: x }));
  assert.equal(forks.length, 2);
  for (const f of forks) assert.equal(await sh(f.id, 'cat /workspace/f'), 'cli\n');
  await ok(['snapshot', 'delete', id]);
  assert.notEqual((await d.cli(['snapshot', 'show', id])).status, 0);
  assert.equal((await d.cli(['snapshot', 'what'])).status, 200);
  assert.notEqual((await d.cli(['fork', '-n', 'x', a.id])).status, 0);
  await drop(a, b, ...forks);
});

test('an exported snapshot is imported unchanged, on the same or another host', async () => {
  const layer = tar([
    { name: 'p', data: staticProbe(), mode: 0o755 },
    { name: 'etc/' },
    { name: 'etc/gone', data: 'x' },
    { name: 'data/', mode: 0o1777 },
    { name: 'data/f', data: 'shared', mode: 0o4755, uid: 1234, gid: 4321, pax: { 'SCHILY.xattr.user.note': 'hi' } },
    { name: 'data/hard', type: 'hard', link: 'data/f' },
    { name: 'data/soft', type: 'symlink', link: '../etc' },
    { name: 'data/pipe', type: 'fifo' },
  ]);
  await d.api('PUT', '/v1/templates/tiny', dockerSave([layer], { config: { User: '7:8', WorkingDir: '/data', Env: ['SHIP=ahoy'] } }));
  const p = async (id, ...argv) => {
    const r = await d.exec(id, ['/p', ...argv]);
    assert.equal(r.exit_code, 0, `${argv}: ${r.stderr}`);
    return r.stdout;
  };
  const a = await d.sandbox({ template: 'tiny' });
  await p(a.id, 'write', '/data/new', 'carried');
  assert.equal((await d.exec(a.id, ['/p', 'rm', '/etc/gone'], { user: '0' })).exit_code, 0);
  const snap = await take(a.id, { name: 'travels' });
  const file = `${d.dir}/snapshot.tar.zst`;
  const r = await d.cli(['snapshot', 'export', 'travels', file]);
  assert.equal(r.status, 0, r.stderr);
  const list = await run('sh', ['-c', `zstd -dc ${file} | tar -t`]);
  assert.match(list.stdout, /^oci-layout\nindex\.json\nblobs\/sha256\/[0-9a-f]{64}\n/);
  await drop(a, snap);
  await poll('nothing stands on the template any more', async () => (await d.call('DELETE', '/v1/templates/tiny')).status === 204);
  const came = await d.cli(['snapshot', 'import', '--name', 'arrived', file]);
  assert.equal(came.status, 0, came.stderr);
  const id = came.stdout.trim();
  assert.match(id, /^[a-z0-9]{20}$/);
  const got = await d.get('/v1/snapshots/arrived');
  assert.deepEqual([got.id, got.sandbox, got.template], [id, '', 'imported']);
  const b = await d.sandbox({ snapshot: 'arrived' });
  const check = async (s) => {
    assert.equal(await p(s, 'ls', '/data'), 'f\nhard\nnew\npipe\nsoft\n');
    assert.equal(await p(s, 'ls', '/etc'), '');
    assert.equal(await p(s, 'stat', '/data'), (await p(s, 'stat', '/data')).replace(/^\S+/, '41777'));
    for (const f of ['f', 'hard']) assert.equal(await p(s, 'stat', `/data/${f}`), '104755 1234:4321 6 2 \n');
    assert.match(await p(s, 'stat', '/data/pipe'), /^10644 /);
    assert.match(await p(s, 'stat', '/data/soft'), / \.\.\/etc\n$/);
    assert.equal(await p(s, 'xattr', '/data/f', 'user.note'), 'hi');
    assert.equal(await p(s, 'cat', '/data/new') + await p(s, 'id') + await p(s, 'pwd'), 'carried7:8\n/data\n');
    assert.match(await p(s, 'env'), /^SHIP=ahoy$/m);
  };
  await check(b.id);
  const again = await take(b.id); // it is a layer like any other
  const c = await d.sandbox({ snapshot: again.id });
  await drop({ id, sandbox: true }, b, again);
  await check(c.id);
  const bytes = fs.readFileSync(file);
  const cut = await d.call('POST', '/v1/snapshots/import', bytes.subarray(0, bytes.length - 100));
  assert.equal(cut.status, 400, cut.text);
  const bad = (await run('zstd', ['-dc', file])).bytes;
  bad[bad.indexOf('carried')] ^= 1; // one bit is enough
  const spoilt = await d.fails(400, 'invalid', 'POST', '/v1/snapshots/import', bad);
  assert.match(spoilt.message, /digest|sha256/);
  assert.deepEqual((await d.get('/v1/snapshots')).snapshots, []);
  fs.rmSync(file);
  assert.notEqual((await d.cli(['snapshot', 'export', 'nope', file])).status, 0);
  assert.equal(fs.existsSync(file), false, 'an incomplete export leaves no file');
  await drop(c);
  await poll('nothing is left of it', () => inventory(d).snapshotDisks.length === 0 && inventory(d).snapshots.length === 0);
});

test('what is larger than the disk of a sandbox is exported, and imported again with little more disk than its size', async () => {
  const small = await startDaemon({ args: ['--disk', '64M'] });
  const file = `${small.dir}/large.tar.zst`;
  try {
    await small.api('PUT', '/v1/templates/tiny', tar([{ name: 'p', data: staticProbe(), mode: 0o755 }]));
    const a = await small.sandbox({ template: 'tiny', limits: { disk: 1 << 30 } });
    for (let i = 0; i < 10; i++) await small.api('PUT', `${S}/${a.id}/files?path=/f${i}`, crypto.randomBytes(30 << 20));
    const snap = await small.post(`${S}/${a.id}/snapshots`);
    const out = await small.cli(['snapshot', 'export', snap.id, file]);
    assert.equal(out.status, 0, out.stderr);
    for (const how of [[], ['--disk', '320M']]) {
      const r = await small.cli(['snapshot', 'import', ...how, file]);
      assert.equal(r.status, 0, r.stderr);
      const { bytes } = await small.get(`/v1/snapshots/${r.stdout.trim()}`);
      assert.ok(bytes > 300 << 20 && bytes < 310 << 20, `${bytes}`);
    }
    const no = await small.cli(['snapshot', 'import', '--disk', '200M', file]);
    assert.notEqual(no.status, 0);
    assert.match(no.stderr, /does not fit.*--disk/);
    const odd = await small.cli(['snapshot', 'import', '--disk', 'much', file]);
    assert.match(odd.stderr, /--disk: 'much' is not a size/);
  } finally {
    await small.stop();
  }
});

test('invalid requests are refused', async () => {
  const a = await d.sandbox();
  for (const body of [{ name: '' }, { name: 'a b' }, { name: 'x'.repeat(200) }, { nam: 'x' }]) await d.fails(400, 'invalid', 'POST', `${S}/${a.id}/snapshots`, body);
  for (const body of [{ count: 0 }, { count: 101 }, { count: 'x' }, { timeout_ms: -1 }]) await d.fails(400, 'invalid', 'POST', `${S}/${a.id}/fork`, body);
  await d.fails(400, 'invalid', 'POST', S, { template: 'base', snapshot: 'x' });
  await d.fails(404, 'not_found', 'POST', S, { snapshot: 'nope' });
  await d.fails(404, 'not_found', 'POST', S, { template: 'nope' });
  for (const what of ['snapshots', 'fork']) await d.fails(404, 'not_found', 'POST', `${S}/nope/${what}`);
  for (const how of ['GET', 'DELETE']) await d.fails(404, 'not_found', how, '/v1/snapshots/nope');
  await d.fails(404, 'not_found', 'GET', '/v1/snapshots/nope/export');
  await d.fails(400, 'invalid', 'POST', '/v1/snapshots/import', new Uint8Array([1, 2, 3]));
  await d.fails(400, 'invalid', 'POST', '/v1/snapshots/import?name=a%20b', new Uint8Array([1, 2, 3]));
  await drop(a);
});

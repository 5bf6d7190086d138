// Sandboxes: create, get, list, timeouts, delete.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { cgroupWith } from '../lib/attack.mjs';
import { poll, startDaemon } from '../lib/cove.mjs';

let d;
before(async () => {
  d = await startDaemon();
});
after(() => d?.stop());

const S = '/v1/sandboxes';

test('a sandbox created without options has the defaults', async () => {
  const a = await d.call('POST', S, {});
  const s = a.json;
  assert.equal(a.status, 201);
  assert.match(s.id, /^[a-z0-9]{20}$/);
  assert.equal(s.state, 'running');
  assert.equal(s.template, 'base');
  assert.equal(s.network, 'none');
  assert.deepEqual(s.metadata, {});
  assert.equal(s.ends_at, null);
  assert.equal(s.on_timeout, 'delete');
  assert.ok(Math.abs(Date.parse(s.created_at) - Date.now()) < 60_000);
  assert.deepEqual(s.limits, { cpu_milli: 2000, memory: 2 ** 30, pids: 1024, disk: 10 * 2 ** 30, nofile: 4096, bandwidth: 0, disk_io: 0 });
  assert.ok(s.boot_id.length > 8);
  assert.deepEqual(await d.get(`${S}/${s.id}`), s);
  await d.del(`${S}/${s.id}`);
});

test('a body may be absent altogether', async () => {
  const a = await d.call('POST', S);
  assert.equal(a.status, 201);
  await d.del(`${S}/${a.json.id}`);
});

test('an answer to a creation means that commands run at once', async () => {
  const s = await d.sandbox();
  const r = await d.exec(s.id, ['echo', 'hello']);
  assert.equal(r.stdout, 'hello\n');
  assert.equal(r.exit_code, 0);
  await d.del(`${S}/${s.id}`);
});

test('metadata comes back as given, environment only by its names', async () => {
  const s = await d.sandbox({ metadata: { a: '1', 'ü': 'ß "\\\n' }, env: { TOKEN: 'secret-value', B: '' } });
  assert.deepEqual(s.metadata, { a: '1', 'ü': 'ß "\\\n' });
  assert.deepEqual([...s.env_names].sort(), ['B', 'TOKEN']);
  assert.ok(!JSON.stringify(await d.get(`${S}/${s.id}`)).includes('secret-value'));
  assert.equal((await d.exec(s.id, 'echo "$TOKEN/${B-unset}"')).stdout, 'secret-value/\n');
  await d.del(`${S}/${s.id}`);
});

test('a limit of disk I/O is had, or refused with the reason: never left out silently', async () => {
  const { text } = await d.call('GET', '/metrics');
  if (/^cove_disk_io_limits 1$/m.test(text)) {
    const s = await d.sandbox({ limits: { disk_io: 10 << 20 } });
    assert.match(fs.readFileSync(cgroupWith(d, s.id, 'io.max'), 'utf8'), /rbps=10485760 wbps=10485760/);
    await d.del(`${S}/${s.id}`);
    return;
  }
  const e = await d.fails(501, 'unsupported', 'POST', S, { limits: { disk_io: 10 << 20 } });
  assert.match(e.message, /no cgroup v2 io controller.*cove doctor/);
});

test('limits given are the limits shown, and they hold', async () => {
  const limits = { cpu_milli: 500, memory: 128 * 2 ** 20, pids: 50, disk: 64 * 2 ** 20, nofile: 100, bandwidth: 10 * 2 ** 20, disk_io: 0 };
  const s = await d.sandbox({ limits });
  assert.deepEqual(s.limits, limits);
  assert.equal((await d.exec(s.id, 'ulimit -n')).stdout.trim(), '100');
  assert.equal((await d.exec(s.id, 'ulimit -Hn')).stdout.trim(), '100');
  const forks = await d.exec(s.id, 'for i in $(seq 200); do sleep 30 & done; jobs -r | wc -l', { timeout_ms: 20_000 });
  assert.ok(Number(forks.stdout.trim() || 0) < 50, forks.stdout);
  const memory = await d.exec(s.id, ['python3', '-c', 'x = bytearray(400 << 20); print(len(x))']);
  assert.notEqual(memory.exit_code, 0);
  assert.equal(memory.stdout, '');
  const disk = await d.exec(s.id, 'dd if=/dev/zero of=/workspace/big bs=1M count=200 conv=fsync 2>&1; ls -l /workspace/big | cut -d" " -f5', { timeout_ms: 60_000 });
  assert.match(disk.stdout, /No space left|Disk quota exceeded/);
  await d.del(`${S}/${s.id}`);
});

test('df inside shows the sandbox\'s own disk, not the host\'s', async () => {
  const s = await d.sandbox({ limits: { disk: 256 * 2 ** 20 } });
  const kb = Number((await d.exec(s.id, 'df -k / | tail -1 | awk \'{print $2}\'')).stdout);
  assert.ok(kb > 200 * 1024 && kb < 300 * 1024, `${kb} KiB`);
  await d.del(`${S}/${s.id}`);
});

test('an invalid create is refused and makes no sandbox', async () => {
  const before_ = (await d.get(S)).sandboxes.length;
  for (const body of [
    { limits: { memory: 1 } }, { limits: { cpu_milli: 0 } }, { limits: { pids: 10 ** 12 } },
    { limits: { speed: 1 } }, { limits: [] }, { limits: { memory: '1G' } }, { limits: { memory: -5 } }, { limits: { memory: 1.5e9 + 0.5 } },
    { timeout_ms: -1 }, { timeout_ms: 'soon' }, { on_timeout: 'explode' },
    { env: { 'A=B': 'x' } }, { env: { '': 'x' } }, { env: { A: 1 } }, { env: [] },
    { metadata: { a: 1 } }, { metadata: 'x' }, { network: 'everything' },
  ]) await d.fails(400, 'invalid', 'POST', S, body);
  await d.fails(404, 'not_found', 'POST', S, { template: 'no-such-template' });
  assert.equal((await d.get(S)).sandboxes.length, before_);
});

test('a template name cannot leave its directory', async () => {
  for (const template of ['../base', '..', '.', '/etc', 'base/../base', 'a\u0000b']) {
    const a = await d.call('POST', S, { template });
    assert.ok([400, 404].includes(a.status), `${template}: ${a.status} ${a.text}`);
  }
});

test('a sandbox that does not exist is 404 everywhere', async () => {
  const id = 'zzzzzzzzzzzzzzzzzzzz';
  await d.fails(404, 'not_found', 'GET', `${S}/${id}`);
  await d.fails(404, 'not_found', 'DELETE', `${S}/${id}`);
  await d.fails(404, 'not_found', 'POST', `${S}/${id}/timeout`, { timeout_ms: 1000 });
  await d.fails(404, 'not_found', 'POST', `${S}/${id}/exec`, { command: 'true' });
  await d.fails(404, 'not_found', 'GET', `${S}/${id}/processes`);
  for (const odd of ['..', '%2e%2e', 'A'.repeat(400), '-', 'x%20y']) {
    const a = await d.call('GET', `${S}/${odd}/processes`);
    assert.ok([400, 404].includes(a.status), `${odd}: ${a.status}`);
  }
});

test('a deleted sandbox is 404 and has no process left', async () => {
  const s = await d.sandbox();
  await d.process(s.id, ['sleep', '1000']);
  const a = await d.call('DELETE', `${S}/${s.id}`);
  assert.equal(a.status, 204);
  assert.equal(a.bytes.length, 0);
  await d.fails(404, 'not_found', 'GET', `${S}/${s.id}`);
  await d.fails(404, 'not_found', 'DELETE', `${S}/${s.id}`);
  await d.fails(404, 'not_found', 'POST', `${S}/${s.id}/exec`, { command: 'true' });
});

test('a delete while a command runs ends the command\'s call with an error', async () => {
  const s = await d.sandbox();
  const call = d.call('POST', `${S}/${s.id}/exec`, { command: 'echo up >/workspace/up; sleep 1000' });
  await poll('the command runs', async () => (await d.exec(s.id, 'cat /workspace/up')).stdout === 'up\n');
  await d.del(`${S}/${s.id}`);
  const a = await call;
  assert.ok([404, 409, 410, 503].includes(a.status), `${a.status} ${a.text}`);
});

test('concurrent creates make different sandboxes', async () => {
  const made = await Promise.all(Array.from({ length: 8 }, () => d.sandbox()));
  assert.equal(new Set(made.map((s) => s.id)).size, 8);
  assert.equal(new Set(made.map((s) => s.boot_id)).size, 8);
  const names = await Promise.all(made.map((s) => d.exec(s.id, `echo ${s.id} >/workspace/me; cat /workspace/me; ls /workspace`)));
  names.forEach((r, i) => assert.equal(r.stdout, `${made[i].id}\nme\n`));
  await Promise.all(made.map((s) => d.del(`${S}/${s.id}`)));
});

test('a list has pages, oldest first, and a cursor that survives deletions', async () => {
  const ids = [];
  for (let i = 0; i < 5; i++) ids.push((await d.sandbox({ metadata: { page: 'yes' } })).id);
  const page = (cursor) => d.get(`${S}?limit=2&metadata.page=yes${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`);
  const one = await page();
  assert.deepEqual(one.sandboxes.map((s) => s.id), ids.slice(0, 2));
  await d.del(`${S}/${ids[1]}`);
  const two = await page(one.next_cursor);
  assert.deepEqual(two.sandboxes.map((s) => s.id), ids.slice(2, 4));
  const three = await page(two.next_cursor);
  assert.deepEqual(three.sandboxes.map((s) => s.id), ids.slice(4));
  assert.equal(three.next_cursor, null);
  for (const id of ids) if (id !== ids[1]) await d.del(`${S}/${id}`);
});

test('a list is filtered by metadata, state and template; all filters must hold', async () => {
  const a = await d.sandbox({ metadata: { owner: 'ann', job: '1' } });
  const b = await d.sandbox({ metadata: { owner: 'bob', job: '1' } });
  const list = async (q) => (await d.get(`${S}?${q}`)).sandboxes.map((s) => s.id);
  assert.deepEqual(await list('metadata.owner=ann'), [a.id]);
  assert.deepEqual(await list('metadata.job=1'), [a.id, b.id]);
  assert.deepEqual(await list('metadata.job=1&metadata.owner=bob'), [b.id]);
  assert.deepEqual(await list('metadata.owner=carol'), []);
  assert.deepEqual(await list('metadata.job=1&state=running&template=base'), [a.id, b.id]);
  assert.deepEqual(await list('metadata.job=1&state=stopped'), []);
  assert.deepEqual(await list('metadata.job=1&template=other'), []);
  await d.del(`${S}/${a.id}`);
  await d.del(`${S}/${b.id}`);
});

test('an invalid query parameter is refused with the expected values', async () => {
  for (const q of ['limit=0', 'limit=-1', 'limit=ten', 'limit=100000', 'state=asleep', 'cursor=%00', 'cursor=nonsense', 'colour=red', 'limit=1&limit=2', 'metadata.a=%zz'])
    await d.fails(400, 'invalid', 'GET', `${S}?${q}`);
});

test('a sandbox ends when its timeout says, and says when that is', async () => {
  const s = await d.sandbox({ timeout_ms: 700 });
  const left = Date.parse(s.ends_at) - Date.parse(s.created_at);
  assert.ok(Math.abs(left - 700) < 100, `${left} ms`);
  await poll('it is gone', async () => (await d.call('GET', `${S}/${s.id}`)).status === 404);
  assert.ok(Date.now() >= Date.parse(s.ends_at), 'not before its time');
});

test('a timeout can be moved, and taken away', async () => {
  const s = await d.sandbox({ timeout_ms: 60_000 });
  const longer = await d.post(`${S}/${s.id}/timeout`, { timeout_ms: 3_600_000 });
  assert.ok(Date.parse(longer.ends_at) - Date.now() > 3_500_000);
  assert.equal((await d.post(`${S}/${s.id}/timeout`, { timeout_ms: 0 })).ends_at, null);
  await d.fails(400, 'invalid', 'POST', `${S}/${s.id}/timeout`, {});
  await d.post(`${S}/${s.id}/timeout`, { timeout_ms: 1 });
  await poll('it is gone', async () => (await d.call('GET', `${S}/${s.id}`)).status === 404);
});

test('on_timeout stop keeps the files, and resume boots it again', async () => {
  const s = await d.sandbox({ timeout_ms: 60_000, on_timeout: 'stop', env: { KEEP: 'me' } });
  await d.exec(s.id, 'echo kept >/workspace/file');
  await d.process(s.id, ['sleep', '1000'], { id: 'gone-later' });
  await d.post(`${S}/${s.id}/timeout`, { timeout_ms: 1 });
  const stopped = await poll('it is stopped', async () => {
    const now = await d.get(`${S}/${s.id}`);
    return now.state === 'stopped' && now;
  });
  assert.match(stopped.reason, /time/);
  await d.fails(409, 'conflict', 'POST', `${S}/${s.id}/exec`, { command: 'true' });
  const again = await d.post(`${S}/${s.id}/resume`);
  assert.equal(again.state, 'running');
  assert.notEqual(again.boot_id, s.boot_id);
  assert.equal((await d.exec(s.id, 'cat /workspace/file; echo $KEEP')).stdout, 'kept\nme\n');
  assert.deepEqual((await d.get(`${S}/${s.id}/processes`)).processes, []);
  await d.fails(409, 'conflict', 'POST', `${S}/${s.id}/resume`);
  await d.del(`${S}/${s.id}`);
});

test('a stopped sandbox can be deleted', async () => {
  const s = await d.sandbox({ timeout_ms: 1, on_timeout: 'stop' });
  await poll('it is stopped', async () => (await d.get(`${S}/${s.id}`)).state === 'stopped');
  await d.del(`${S}/${s.id}`);
  await d.fails(404, 'not_found', 'GET', `${S}/${s.id}`);
});

test('the default template is listed', async () => {
  const { templates } = await d.get('/v1/templates');
  const base = templates.find((t) => t.name === 'base');
  assert.ok(base);
  assert.equal(base.state, 'ready');
  assert.ok(base.files > 1000);
});

test('the sandbox is a plausible computer', async () => {
  const s = await d.sandbox();
  const sh = async (c, o) => (await d.exec(s.id, c, o)).stdout;
  assert.equal(await sh('id -un; id -u; pwd; echo $HOME; echo $SHELL; echo $LANG; umask'), 'user\n1000\n/workspace\n/home/user\n/bin/bash\nC.UTF-8\n0022\n');
  assert.equal(await sh('sudo id -u'), '0\n');
  assert.equal(await sh('id -un; pwd', { user: 'root' }), 'root\n/workspace\n');
  assert.equal(await sh('python3 -c "print(6*7)"; python -c "print(1)"; git --version | cut -d" " -f1'), '42\n1\ngit\n');
  assert.equal(await sh('ls /proc | grep -c "^[0-9]*$"') < '9', true);
  assert.equal(await sh('cat /sys/class/net/*/operstate | sort -u; ls /sys/class/net'), 'unknown\nlo\n');
  assert.equal(await sh('dpkg -s bash | grep ^Status'), 'Status: install ok installed\n');
  assert.equal(await sh('touch /usr/bin/x 2>&1; sudo touch /usr/bin/x && ls /usr/bin/x'), "touch: cannot touch '/usr/bin/x': Permission denied\n/usr/bin/x\n");
  await d.del(`${S}/${s.id}`);
});

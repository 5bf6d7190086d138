// A host at its limits: a clear error, and service again afterwards.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';

let d;
before(async () => {
  d = await startDaemon({ args: ['--sandboxes-max', '3', '--pool', '1', '--memory', '256M', '--pids', '64', '--disk', '64M', '--exec-timeout', '2s', '--timeout', '1h'] });
});
after(() => d?.stop());

const S = '/v1/sandboxes';

test('a full host answers 503 with Retry-After, and creates again after a delete', async () => {
  const made = [];
  for (let i = 0; i < 3; i++) made.push(await d.sandbox());
  const a = await d.call('POST', S, {});
  assert.equal(a.status, 503, a.text);
  assert.equal(a.json.error.code, 'unavailable');
  assert.ok(Number(a.headers['retry-after']) >= 1);
  const ready = await d.call('GET', '/ready', undefined, { key: null });
  assert.deepEqual([ready.status, ready.json], [503, { ok: false, reason: 'full', lacks: 'sandboxes', reserve: 'enough' }]);
  await d.del(`${S}/${made[0].id}`);
  const again = await poll('there is room again', async () => {
    const b = await d.call('POST', S, {});
    return b.status === 201 && b.json;
  });
  for (const s of [...made.slice(1), again]) await d.del(`${S}/${s.id}`);
});

test('a fork that does not fit prints the sandboxes it made and fails', async () => {
  const { id } = await d.sandbox();
  for (const json of [false, true]) {
    const r = await d.cli(['fork', ...(json ? ['--json'] : []), '-n', '4', id]);
    assert.equal(r.status, 211, r.stderr);
    assert.match(r.stderr, /^(cove fork: .*3 sandboxes.*\n){2}$/);
    const made = json ? JSON.parse(r.stdout).forks.flatMap((f) => f.sandbox?.id ?? []) : r.stdout.trim().split('\n');
    assert.equal(made.length, 2);
    for (const fork of made) await d.del(`${S}/${fork}`);
  }
  await d.del(`${S}/${id}`);
});

test('a full host answers all concurrent creates', async () => {
  const all = await Promise.all(Array.from({ length: 40 }, () => d.call('POST', S, {})));
  const made = all.filter((a) => a.status === 201);
  assert.ok(made.length <= 3 && made.length >= 1, `${made.length} made`);
  for (const a of all) assert.ok([201, 503].includes(a.status), `${a.status}`);
  assert.equal((await d.get(S)).sandboxes.length, made.length);
  for (const a of made) await d.del(`${S}/${a.json.id}`);
});

test('the configured defaults are a sandbox\'s limits, and a timeout is one of them', async () => {
  const s = await poll('there is room', () => d.sandbox());
  assert.equal(s.limits.memory, 256 << 20);
  assert.equal(s.limits.pids, 64);
  assert.equal(s.limits.disk, 64 << 20);
  const hour = Date.parse(s.ends_at) - Date.parse(s.created_at);
  assert.ok(Math.abs(hour - 3_600_000) < 1000);
  assert.equal((await d.post(`${S}/${s.id}/timeout`, { timeout_ms: 0 })).ends_at, null);
  const r = await d.exec(s.id, 'sleep 100');
  assert.equal(r.timed_out, true);
  assert.equal((await d.exec(s.id, 'sleep 2.5; echo', { timeout_ms: 0 })).exit_code, 0);
  await d.del(`${S}/${s.id}`);
});

test('settings are shown, and secrets are not among them', async () => {
  const { settings } = await d.get('/v1/config');
  const of = (name) => settings.find((s) => s.name === name);
  assert.equal(of('sandboxes-max').value, '3');
  assert.equal(of('pool').default, '16');
  assert.ok(!JSON.stringify(settings).includes(d.key));
});

test('a full disk inside is the tenant\'s problem alone', async () => {
  const s = await poll('there is room', () => d.sandbox());
  const other = await d.sandbox();
  const full = await d.exec(s.id, 'head -c 200M /dev/zero >/workspace/big; echo $?; echo small >/workspace/small; echo $?', { timeout_ms: 60_000 });
  assert.notEqual(full.stdout.split('\n')[0], '0');
  assert.match(full.stderr, /No space left|Disk quota exceeded/);
  assert.equal((await d.exec(s.id, 'echo still here')).stdout, 'still here\n');
  assert.equal((await d.exec(other.id, 'head -c 20M /dev/zero >/workspace/ok; echo $?')).stdout, '0\n');
  assert.equal((await d.exec(s.id, 'rm /workspace/big && sync && head -c 10M /dev/zero >/workspace/again; echo $?')).stdout, '0\n');
  await d.del(`${S}/${s.id}`);
  await d.del(`${S}/${other.id}`);
});

test('a sandbox out of processes still answers, and recovers', async () => {
  const s = await poll('there is room', () => d.sandbox());
  const bomb = await d.post(`${S}/${s.id}/processes`, { command: ':(){ :|:& };:; sleep 1000', id: 'bomb' });
  assert.equal(bomb.id, 'bomb');
  assert.equal((await d.get(`${S}/${s.id}/processes/bomb`)).id, 'bomb');
  await d.post(`${S}/${s.id}/processes/bomb/kill`, { grace_ms: 0 });
  const r = await poll('commands run again', () => d.exec(s.id, 'echo back'));
  assert.equal(r.stdout, 'back\n');
  await d.del(`${S}/${s.id}`);
});

test('a command killed by the OOM killer is reported as such', async () => {
  const s = await poll('there is room', () => d.sandbox());
  const r = await d.exec(s.id, ['python3', '-c', 'x = [bytearray(1 << 20) for i in range(1000)]']);
  assert.equal(r.signal, 'SIGKILL');
  assert.equal(r.oom, true);
  assert.equal((await d.exec(s.id, 'kill -9 $$')).oom, false);
  assert.equal((await d.exec(s.id, 'echo still here')).stdout, 'still here\n');
  await d.del(`${S}/${s.id}`);
});

test('only the command that the OOM killer killed is reported as such', async () => {
  const s = await poll('there is room', () => d.sandbox());
  const P = `${S}/${s.id}/processes`;
  const hog = () => d.exec(s.id, 'python3 -c "x = [bytearray(1 << 20) for i in range(1000)]"; echo $?');
  const older = await Promise.all([1, 2, 3].map(() => d.process(s.id, ['sleep', '1000'])));
  const late = d.exec(s.id, 'mkfifo /tmp/x; read </tmp/x', { timeout_ms: 2500 });
  assert.equal((await hog()).stdout, '137\n', 'only the child was killed');
  assert.equal((await d.exec(s.id, 'kill -9 $$')).oom, false);
  assert.equal((await d.post(`${P}/${older[0].id}/kill`, { grace_ms: 0 })).oom, false);
  for (const [p, tree] of [[older[1], false], [older[2], true]]) {
    await d.api('POST', `${P}/${p.id}/signal`, { signal: 'KILL', tree });
    const end = await d.post(`${P}/${p.id}/wait`);
    assert.deepEqual([end.signal, end.oom], ['SIGKILL', false]);
  }
  const end = await late;
  assert.deepEqual([end.timed_out, end.oom], [true, false]);
  await d.del(`${S}/${s.id}`);
});

test('settings can come from a file, and the command line wins', async () => {
  const file = path.join(d.dir, 'test.conf');
  fs.writeFileSync(file, '# a comment\npids = 77\nmemory = 64M\n\n');
  const other = await startDaemon({ args: ['--config', file, '--memory', '128M'] });
  const s = await other.sandbox();
  assert.equal(s.limits.pids, 77);
  assert.equal(s.limits.memory, 128 << 20);
  await other.del(`${S}/${s.id}`);
  await other.stop();
  fs.unlinkSync(file);
});

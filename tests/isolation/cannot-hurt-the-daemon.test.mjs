// Nothing a tenant does makes the daemon block, grow, leak or crash: floods,
// silence, hostile files, and an init that speaks nonsense.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { Attacks, cgroupWith, initOf } from '../lib/attack.mjs';
import { poll, startDaemon, within } from '../lib/cove.mjs';
import { fdCount, rssOf } from '../lib/host.mjs';

const attacks = new Attacks();
let d;
let id;
let other;
let base;
before(async () => {
  await attacks.compile('fakeinit');
  d = await startDaemon({ args: ['--pool', '0'] });
  [{ id }, { id: other }] = await Promise.all([d.sandbox(), d.sandbox()]);
  // warm: connections, buffers and caches that are there for good
  for (let i = 0; i < 20; i++) await Promise.all(Array.from({ length: 10 }, () => d.exec(i % 2 ? id : other, 'head -c 300000 /dev/zero | tr "\\0" x')));
  base = { front: d.frontPid(), keeper: d.keeperPid(), ...usage() };
});
after(async () => {
  attacks.clean();
  await d?.stop();
});

function usage() {
  const [f, k] = [d.frontPid(), d.keeperPid()];
  return { frontRss: rssOf(f), keeperRss: rssOf(k), frontFds: fdCount(f), keeperFds: fdCount(k) };
}

const SLACK = { rss: 6 << 10, fds: 24 }; // KiB; idle connections to clients and inits are kept a while

/** While something bad goes on: another sandbox is served, quickly, by the same daemon. */
async function unharmed() {
  assert.equal((await within(10_000, 'another sandbox is served', d.exec(other, 'echo served'))).stdout, 'served\n');
  assert.equal((await d.call('GET', '/health')).status, 200);
  assert.equal(d.frontPid(), base.front, 'the front is the one it was');
}

afterEach(async () => {
  await unharmed();
  d.agent.destroy();
  d.agent = new http.Agent({ keepAlive: true, maxSockets: 512 });
  await poll('the daemon is as small as before', () => {
    const now = usage();
    const grown = Object.keys(now).filter((k) => now[k] > base[k] + (k.endsWith('Rss') ? SLACK.rss : SLACK.fds));
    if (grown.length > 0) throw new Error(grown.map((k) => `${k} ${base[k]} -> ${now[k]}`).join(', '));
    return true;
  }, { deadline: 20_000, every: 100 });
});

/** A request whose answer is not read. */
function unread(url, body) {
  const req = http.request(d.url + url, { method: 'POST', agent: false, headers: { authorization: `Bearer ${d.key}`, 'content-type': 'application/json', accept: 'text/event-stream' } });
  req.on('error', () => {});
  return new Promise((resolve) => {
    req.on('response', (res) => {
      res.pause();
      resolve(req);
    });
    req.end(JSON.stringify(body));
  });
}

test('the daemon survives a flood of output that its owner does not read', async () => {
  const all = await Promise.all(Array.from({ length: 8 }, () => unread(`/v1/sandboxes/${id}/exec`, { command: 'yes | head -c 1000000000' })));
  // the floods have filled what can be filled when the commands wait in a write
  await poll('they wait for their reader', () => {
    const inside = fs.readdirSync('/proc').filter((p) => /^\d+$/.test(p)).filter((p) => {
      try {
        return fs.readFileSync(`/proc/${p}/cgroup`, 'utf8').includes(id) && fs.readFileSync(`/proc/${p}/wchan`, 'utf8').includes('pipe_w');
      } catch {
        return false;
      }
    });
    return inside.length >= 8;
  }, { deadline: 20_000 });
  await unharmed();
  const grown = rssOf(base.front) - base.frontRss;
  assert.ok(grown < 24 << 10, `the front grew by ${grown} KiB`);
  for (const r of all) r.destroy();
  await d.exec(id, 'pkill yes; true', { user: 'root' });
});

test('the daemon survives a flood of output that is read', async () => {
  const r = await d.exec(id, 'yes | head -c 200000000', { max_output: 65536, timeout_ms: 60_000 });
  assert.equal(r.stdout_truncated, true);
  assert.ok(r.stdout.length <= 70_000);
});

test('200,000 writes of one byte arrive whole', async () => {
  const r = await d.exec(id, ['python3', '-c', 'import os\nfor i in range(200000): os.write(1 + i % 2, b"x")'], { timeout_ms: 60_000, max_output: 1 << 20 });
  assert.deepEqual([r.stdout.length, r.stderr.length], [100_000, 100_000]);
});

test('the daemon does not keep what a process does not read', async () => {
  const p = await d.process(id, ['sleep', '1000'], { stdin: true });
  const P = `/v1/sandboxes/${id}/processes/${p.id}`;
  const reqs = Array.from({ length: 4 }, () => {
    const req = http.request(`${d.url}${P}/stdin`, { method: 'POST', agent: false, headers: { authorization: `Bearer ${d.key}`, 'content-type': 'application/octet-stream' } });
    req.on('error', () => {});
    req.on('response', (res) => res.resume());
    const block = Buffer.alloc(1 << 20, 'x');
    let left = 64;
    const more = () => {
      while (left-- > 0) if (!req.write(block)) return req.once('drain', more);
      return req.end();
    };
    more();
    return req;
  });
  await unharmed();
  await poll('the bytes stand still on their way', async () => {
    const before = reqs.map((r) => r.socket?.bytesWritten);
    await new Promise((r) => setTimeout(r, 200));
    return before.every((n, i) => n !== undefined && n === reqs[i].socket?.bytesWritten);
  });
  const grown = rssOf(base.front) - base.frontRss;
  assert.ok(grown < 24 << 10, `the front grew by ${grown} KiB`);
  await within(10_000, 'the kill', d.post(`${P}/kill`, { grace_ms: 0 }));
  for (const r of reqs) r.destroy();
});

test('the daemon survives a thousand commands that cannot start', async () => {
  for (let i = 0; i < 20; i++) {
    const all = await Promise.all(Array.from({ length: 50 }, (_, n) => d.call('POST', `/v1/sandboxes/${id}/exec`, n % 2 ? { argv: ['/no/such/program'] } : { command: 'true', cwd: '/nowhere' })));
    assert.deepEqual([...new Set(all.map((a) => a.status))], [422]);
  }
  assert.equal((await d.exec(id, 'ls /proc/1/task | wc -l; cat /proc/self/cgroup | wc -l')).exit_code, 0);
});

test('hostile passwd and group files fail calls of their sandbox only', async () => {
  const s = (await d.sandbox()).id;
  // dash: bash itself asks who it is and would wait for a pipe
  const root = (c) => d.exec(s, ['sh', '-c', c], { user: 'root', timeout_ms: 20_000 });
  const E = `/v1/sandboxes/${s}/exec`;
  await root('cp /etc/passwd /passwd; cp /etc/group /group');
  const evils = ['mkfifo F', 'ln -s /proc/kmsg F', 'ln -s /dev/zero F', 'ln -s F F', 'mkdir F', 'truncate -s 1G F', 'ln -s /proc/self/mem F', 'head -c 4M /dev/urandom >F',
    'head -c 900000 /dev/zero | tr "\\0" : >F', 'printf "user:x:99999999999999999999:0::/:/bin/sh\\nuser:x:-1:-1::/:/bin/sh\\nuser:x:4294967295:0::/:/\\n" >F', 'yes "user:x:0:0::/:" | head -c 1M >F', 'printf "user:x:1000:1000::/:/bin/sh\\0user" >F'];
  for (const evil of evils)
    for (const file of ['/etc/passwd', '/etc/group']) {
      await root(`rm -rf ${file}; ${evil.replaceAll('F', file)}`);
      const a = await within(15_000, `${evil} as ${file}`, d.call('POST', E, { argv: ['sh', '-c', 'echo ran'], user: 'user' }));
      assert.ok([200, 422].includes(a.status), `${evil}: ${a.text}`);
      assert.equal((await root('echo root')).stdout, 'root\n', evil);
      await root(`rm -rf ${file}; cp ${file.replace('/etc', '')} ${file}`);
    }
  assert.equal((await d.exec(s, 'id -un')).stdout, 'user\n');
  await d.del(`/v1/sandboxes/${s}`);
});

test('a pipe, a loop or noise in place of bash hurts only calls of its sandbox', async () => {
  const s = (await d.sandbox()).id;
  const E = `/v1/sandboxes/${s}/exec`;
  await d.exec(s, 'mv /usr/bin/bash /usr/bin/bash.old; mkfifo /usr/bin/bash', { user: 'root' });
  assert.equal((await within(15_000, 'a pipe for a shell', d.call('POST', E, { command: 'true' }))).status, 422);
  await d.exec(s, ['sh', '-c', 'rm /usr/bin/bash; printf "#!/usr/bin/bash\\n" >/usr/bin/bash; chmod 755 /usr/bin/bash'], { user: 'root' });
  assert.equal((await within(15_000, 'a shell that is its own', d.call('POST', E, { command: 'true' }))).status, 422);
  await d.exec(s, ['sh', '-c', 'rm /usr/bin/bash; head -c 100000 /dev/urandom >/usr/bin/bash; chmod 755 /usr/bin/bash'], { user: 'root' });
  assert.ok([200, 422].includes((await within(15_000, 'noise for a shell', d.call('POST', E, { command: 'true', timeout_ms: 5000 }))).status));
  await d.del(`/v1/sandboxes/${s}`);
});

test('arguments and variables beyond their limits are refused, at the limits they arrive', async () => {
  const E = `/v1/sandboxes/${id}/exec`;
  const many = await d.exec(id, ['sh', '-c', 'echo $#', ...Array(20_000).fill('x')]);
  assert.equal(many.stdout, '19999\n');
  for (const body of [
    { argv: ['true', 'x'.repeat(200_000)] }, { argv: ['true', ...Array(20).fill('x'.repeat(120_000))] },
    { argv: ['true'], env: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`V${i}`, 'x'.repeat(5000)])) },
    { argv: ['x'.repeat(5000)] }, { argv: ['true'], cwd: `/${'x/'.repeat(3000)}` }, { argv: ['true'], user: 'x'.repeat(500) },
  ]) {
    const a = await d.call('POST', E, body);
    assert.ok([200, 400, 413, 422].includes(a.status), `${a.status} ${a.text.slice(0, 200)}`);
  }
});

test('names with control characters do not hurt the daemon', async () => {
  const evil = '\u001b]0;owned\u0007\u001b[2J\r\n2026-01-01 error keeper: forged';
  const p = await d.process(id, ['sh', '-c', 'sleep 1000', evil], { user: 'root' });
  const got = await d.get(`/v1/sandboxes/${id}/processes/${p.id}`);
  assert.equal(got.argv[3], evil, 'shown as it is, in JSON');
  await d.call('POST', `/v1/sandboxes/${id}/exec`, { argv: [evil] });
  await d.call('POST', `/v1/sandboxes/${id}/exec`, { argv: ['true'], user: evil.slice(0, 40), cwd: `/${evil}` });
  await d.call('GET', `/v1/sandboxes/${encodeURIComponent(evil)}`);
  await d.call('GET', `/v1/sandboxes/${id}/processes/${encodeURIComponent(evil)}`);
  await d.post(`/v1/sandboxes/${id}/processes/${p.id}/kill`, { grace_ms: 0 });
  assert.doesNotMatch(d.log, /\u001b|^2026-01-01 error/m, 'nothing of it in the log as it is');
  const ps = await d.cli(['ps', id]);
  assert.equal(ps.status, 0, ps.stderr);
  assert.doesNotMatch(ps.stdout, /\u001b|\u0007/, 'nor on the terminal of who looks');
});

test('a disk that takes long to remove does not delay other calls', async () => {
  const s = (await d.sandbox()).id;
  // pieces, of which the kernel frees each by itself
  const pieces = 'import os\nf = os.open("/root/pieces", os.O_CREAT | os.O_WRONLY)\nfor i in range(100000): os.pwrite(f, b"x" * 4096, i * 8192)\nos.fsync(f)';
  assert.equal((await d.exec(s, ['python3', '-c', pieces], { user: 'root', timeout_ms: 120_000 })).exit_code, 0);
  await d.del(`/v1/sandboxes/${s}`);
  const made = [];
  let slowest = 0;
  while (cgroupWith(d, s, 'cgroup.procs')) {
    const since = Date.now();
    made.push(await d.sandbox());
    slowest = Math.max(slowest, Date.now() - since);
  }
  assert.ok(made.length > 0 && slowest < 1000, `of ${made.length} that others made meanwhile one took ${slowest} ms`);
  await Promise.all(made.map((m) => d.del(`/v1/sandboxes/${m.id}`)));
});

test('an init that is stopped delays only calls of its sandbox', async () => {
  const s = (await d.sandbox()).id;
  const { pid } = initOf(d, s);
  process.kill(pid, 'SIGSTOP');
  try {
    const asked = Array.from({ length: 20 }, () => d.call('POST', `/v1/sandboxes/${s}/exec`, { argv: ['true'] }, { timeout: 60_000 }));
    await unharmed();
    const a = await within(60_000, 'an answer although init says nothing', Promise.all(asked));
    for (const x of a) assert.ok(x.status >= 400 && x.status < 600, x.text);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  await within(15_000, 'it can be deleted', d.del(`/v1/sandboxes/${s}`));
});

for (const mode of ['garbage', 'giant', 'almost', 'silent', 'leaving', 'tomorrow', 'twice', 'nonsense', 'flood', 'fds'])
  test(`the front survives an init that a tenant replaced: ${mode}`, async () => {
    const s = (await d.sandbox()).id;
    const E = `/v1/sandboxes/${s}/exec`;
    // the idle connections to the true one end with it; the front asks anew
    const fake = spawn(attacks.path('fakeinit'), [path.join(d.dir, 'run', s), mode], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      await new Promise((r) => fake.stdout.once('data', r));
      const asked = Array.from({ length: 6 }, () => d.call('POST', E, { argv: ['sleep', '1000'], timeout_ms: 2000 }, { timeout: 40_000 }).catch((e) => ({ status: 599, text: e.message })));
      await unharmed();
      const all = await within(50_000, 'every call is answered', Promise.all(asked));
      const bad = all.filter((x) => x.status === 599 || (x.status === 200 && x.json.exit_code === 0));
      assert.deepEqual(bad.map((x) => x.text), []);
      assert.ok(all.some((x) => x.status >= 400), `the fake was asked: ${all.map((x) => x.status)}`);
      await unharmed();
      const grown = rssOf(base.front) - base.frontRss;
      assert.ok(grown < 64 << 10, `the front grew by ${grown} KiB`);
    } finally {
      try {
        process.kill(-fake.pid, 'SIGKILL');
      } catch {
        fake.kill('SIGKILL');
      }
      await new Promise((r) => (fake.exitCode === null && fake.signalCode === null ? fake.on('exit', r) : r()));
    }
    await within(15_000, 'it can be deleted', d.del(`/v1/sandboxes/${s}`));
  });

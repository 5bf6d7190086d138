// All sandboxes together have a limit of memory, below what the host has; and when the host has none,
// they are ended before the daemon.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import { after, before, test } from 'node:test';
import { initsOf } from '../lib/chaos.mjs';
import { BIN, poll, run, startDaemon, tagOf } from '../lib/cove.mjs';

const S = '/v1/sandboxes';
const MiB = 1 << 20;
const ALL = 640 * MiB; // for all sandboxes
const LOW = 32 * MiB; // what is left when creates are refused
const HOST = Number(/^MemTotal: +(\d+) kB$/m.exec(fs.readFileSync('/proc/meminfo', 'utf8'))[1]) * 1024;
let d;
before(async () => {
  d = await startDaemon({ args: ['--pool', '0', '--memory', '1G', '--memory-reserve', String(HOST - ALL)] });
});
after(() => d?.stop());

const number = async (name) => Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await d.call('GET', '/metrics')).text)[1]);

/** A process inside that takes memory, so many MiB at a time. */
async function taker(id) {
  const p = await d.process(id, ['python3', '-uc', `
import sys
taken = []
for line in sys.stdin:
    taken.append(b"x" * (int(line) << 20))
    print("took", len(taken))`], { stdin: true });
  const P = `${S}/${id}/processes/${p.id}`;
  let n = 0;
  return {
    P,
    ask: (mib) => d.call('POST', `${P}/stdin`, `${mib}\n`),
    async take(mib) {
      await this.ask(mib);
      await d.post(`${P}/wait`, { for: 'log', text: `took ${++n}`, timeout_ms: 60_000 });
    },
    end: () => d.post(`${P}/kill`, { grace_ms: 0 }),
  };
}

test('the kernel has one limit for all sandboxes, and it leaves the reserve', async () => {
  const name = `cove-${tagOf(d.dir)}`;
  const files = [`/sys/fs/cgroup/memory/${name}/memory.limit_in_bytes`, `/sys/fs/cgroup/${name}/memory.max`, `/sys/fs/cgroup/unified/${name}/memory.max`];
  const file = files.find((f) => fs.existsSync(f));
  assert.equal(Number(fs.readFileSync(file, 'utf8')), ALL);
  assert.equal(await number('cove_memory_bytes'), ALL);
});

test('with little memory left no sandbox is made or booted, and those that run go on', async () => {
  const [a, b] = [await d.sandbox(), await d.sandbox()];
  await d.post(`${S}/${b.id}/pause`, { memory: false });
  const t = await taker(a.id);
  let left = await number('cove_memory_left_bytes');
  await t.take(Math.floor((left - 128 * MiB) / MiB));
  left = await poll('that is counted', async () => {
    const now = await number('cove_memory_left_bytes');
    return now < left / 2 && now;
  });
  while (left >= LOW) { // in steps, since files that are cached count until then
    await t.take(Math.ceil((left - LOW) / MiB) + 4);
    const before = left;
    left = await poll('that is counted', async () => {
      const now = await number('cove_memory_left_bytes');
      return now !== before && now;
    });
  }
  assert.equal(await number('cove_memory_low'), 1);
  const e = await d.fails(503, 'unavailable', 'POST', S, {});
  assert.match(e.message, /not enough memory for another sandbox/);
  await d.fails(503, 'unavailable', 'POST', `${S}/${b.id}/resume`);
  const ready = await d.call('GET', '/ready', undefined, { key: null });
  assert.deepEqual([ready.status, ready.json.reason, ready.json.lacks], [503, 'full', 'memory']);
  assert.equal((await d.exec(a.id, 'echo runs')).stdout, 'runs\n');
  await t.end();
  await poll('there is room again', async () => (await d.call('POST', `${S}/${b.id}/resume`)).status === 200);
  await d.del(`${S}/${(await d.sandbox()).id}`);
  for (const s of [a, b]) await d.del(`${S}/${s.id}`);
});

test('sandboxes that take more together than all may have lose a process, and the daemon none', async () => {
  const pids = [d.keeperPid(), d.frontPid()];
  const made = [await d.sandbox(), await d.sandbox()];
  const inits = made.map((s) => initsOf(d.dir).get(s.id));
  const takers = await Promise.all(made.map((s) => taker(s.id)));
  const half = Math.floor(ALL / MiB / 2);
  await takers[0].take(half - 64);
  await takers[1].ask(half + 256);
  const ends = await Promise.race(takers.map(async (t) => d.post(`${t.P}/wait`, { timeout_ms: 60_000 })));
  assert.equal(ends.signal, 'SIGKILL');
  assert.deepEqual([d.keeperPid(), d.frontPid()], pids);
  assert.deepEqual(made.map((s) => initsOf(d.dir).get(s.id)), inits);
  for (const s of made) {
    assert.equal((await d.exec(s.id, 'echo runs')).stdout, 'runs\n');
    await d.del(`${S}/${s.id}`);
  }
});

test('the daemon is killed last, and nothing inside can get its score', async () => {
  const s = await d.sandbox();
  const score = (pid) => Number(fs.readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'));
  // a container without CAP_SYS_RESOURCE cannot lower its score: there the sandboxes have a higher one
  const can = (BigInt(`0x${/^CapBnd:\s+(\w+)$/m.exec(fs.readFileSync(`/proc/${d.keeperPid()}/status`, 'utf8'))[1]}`) >> 24n & 1n) === 1n;
  const [ours, inside] = can ? [-900, 0] : [score(process.pid), 500];
  for (const pid of [d.keeperPid(), d.frontPid()]) assert.equal(score(pid), ours);
  assert.equal(score(initsOf(d.dir).get(s.id)), inside);
  const r = await d.exec(s.id, 'cat /proc/self/oom_score_adj; echo -1 >/proc/self/oom_score_adj; cat /proc/self/oom_score_adj', { user: 'root' });
  assert.equal(r.stdout, `${inside}\n${inside}\n`);
  assert.match(r.stderr, /Permission denied/);
  await d.del(`${S}/${s.id}`);
});

test('a reserve that leaves sandboxes nothing is refused, and doctor says what they get', async () => {
  const dir = fs.mkdtempSync(`${os.tmpdir()}/cove-test-`);
  const r = await run(BIN, ['serve', '--listen', '127.0.0.1:0', '--state', dir, '--network', 'none', '--memory-reserve', String(HOST)]);
  assert.notEqual(r.status, 0);
  assert.match(r.stderr, /memory-reserve: \d+ MiB of the host's \d+ leave sandboxes less than 128 MiB/);
  fs.rmSync(dir, { recursive: true, force: true });
  assert.match((await run(BIN, ['doctor'])).stdout, /all memory +\d+ MiB on this host; all sandboxes together get \d+/);
});

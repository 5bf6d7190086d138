// chaos.mjs - shared by the chaos tests: randomness that can be replayed, the
// instant of a kill, and everything of a daemon in the kernel and on the disk.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { poll, tagOf } from './cove.mjs';
import { cgroupsNamed, processes } from './host.mjs';

const S = '/v1/sandboxes';
const RANGES = '/run/cove/idranges';
const TAG_LEN = 8;
const SPARES_MAX = 64;
const PLACE = 2048; // of a record (src/keeper/life/record.h)
const ID_AT = 28; // in it: after the head and the length of the first field

/** Random numbers from a seed: COVE_CHAOS_SEED replays a run. */
export class Dice {
  constructor(seed = Number(process.env.COVE_CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 31))) {
    this.seed = seed;
    this.state = seed >>> 0;
  }

  /** 0 <= x < 1 */
  roll() {
    this.state = (this.state + 0x9e3779b9) >>> 0;
    let z = this.state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
  }

  below(n) {
    return Math.floor(this.roll() * n);
  }

  pick(list) {
    return list[this.below(list.length)];
  }

  /** Adds the seed to errors thrown inside. */
  async guard(fn) {
    try {
      return await fn();
    } catch (e) {
      e.message = `COVE_CHAOS_SEED=${this.seed}: ${e.message}`;
      throw e;
    }
  }
}

/** The one place that waits for time to pass: until the instant of a kill. */
export function instant(ms) {
  return new Promise((r) => setTimeout(r, ms));
}

/** True for a call that broke because the daemon died; it may have succeeded. */
export function isBroken(e) {
  return ['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'].includes(e.code) ||
    /socket hang up|aborted|stream ended before|other side closed/.test(e.message);
}

const groupDirs = new Map();

/** The daemon's own directories in every cgroup hierarchy; they keep their names. */
function groupsOf(tag) {
  const known = groupDirs.get(tag);
  if (known && known.every((g) => fs.existsSync(g))) return known;
  const found = cgroupsNamed(`cove-${tag}`);
  groupDirs.set(tag, found);
  return found;
}

function names(dir) {
  try {
    return fs.readdirSync(dir).filter((n) => !n.startsWith('.')).sort();
  } catch {
    return [];
  }
}

/** Names with a dot that begin so, without that. */
function hidden(dir, prefix) {
  return fs.readdirSync(dir).filter((n) => n.startsWith(prefix)).map((n) => n.slice(prefix.length)).sort();
}

/** How many id ranges of the host this daemon has leased, as its keeper sees it. */
function rangesOf(d, tag) {
  const all = fs.readFileSync(`/proc/${d.keeper.pid}/root${RANGES}`);
  let n = 0;
  for (let at = 0; at + TAG_LEN <= all.length; at += TAG_LEN) if (all.toString('latin1', at, at + TAG_LEN) === tag) n++;
  return n;
}

/** The records of a daemon: sandbox id -> where its place begins in DIR/sandboxes. */
export function recordsOf(dir) {
  const all = fs.readFileSync(path.join(dir, 'sandboxes'));
  const found = new Map();
  for (let at = 0; at < all.length; at += PLACE) {
    if (all.toString('latin1', at, at + 4) === 'covr') found.set(/^[a-z0-9]*/.exec(all.toString('latin1', at + ID_AT, at + ID_AT + 31))[0], at);
  }
  return found;
}

/** The inits of a daemon: sandbox id -> pid as the host sees it. */
export function initsOf(dir) {
  const tag = tagOf(dir);
  const inits = new Map();
  for (const p of processes()) {
    const m = new RegExp(`^0::.*/cove-${tag}/([a-z0-9]+)$`, 'm').exec(p.cgroup);
    if (m && p.state !== 'Z' && p.title.startsWith('cove: init')) inits.set(m[1], p.pid);
  }
  return inits;
}

/** Everything that exists of the daemon in `d.dir`, by sandbox id where it has one. */
export function inventory(d) {
  const tag = tagOf(d.dir);
  const inside = processes().filter((p) => p.state !== 'Z' && p.cgroup.includes(`/cove-${tag}/`));
  const netns = new Set();
  for (const p of inside) {
    try {
      netns.add(fs.readlinkSync(`/proc/${p.pid}/ns/net`));
    } catch {
      // it has just ended
    }
  }
  // mounts of the host propagate to the keeper: ignore them
  const mounts = fs.readFileSync(`/proc/${d.keeper.pid}/mountinfo`, 'utf8').split('\n').filter((l) => l.includes(` ${d.dir}/`)).length;
  // mounted where only the keeper sees them
  const disks = names(`/proc/${d.keeper.pid}/root${d.dir}/disk`);
  const isSpare = (n) => n.startsWith('spare-');
  const groups = {};
  for (const g of groupsOf(tag)) groups[g] = fs.readdirSync(g, { withFileTypes: true }).filter((e) => e.isDirectory()).map((e) => e.name).sort();
  return {
    groups,
    records: [...recordsOf(d.dir).keys()].sort(),
    sockets: names(path.join(d.dir, 'run')),
    disks: disks.filter((n) => !isSpare(n)),
    spares: disks.filter(isSpare).length,
    snapshots: names(path.join(d.dir, 'snapshots')),
    snapshotDisks: hidden(`/proc/${d.keeper.pid}/root${d.dir}/disk`, '.snap-'),
    inits: [...initsOf(d.dir).keys()].sort(),
    netns: netns.size,
    ranges: rangesOf(d, tag),
    mounts,
  };
}

export async function listAll(d) {
  const all = [];
  for (let cursor = ''; ;) {
    const page = await d.get(`${S}?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
    all.push(...page.sandboxes);
    cursor = page.next_cursor ?? '';
    if (!cursor) return all;
  }
}

/** Exactly the listed sandboxes and the pool must exist. */
function compare(all, found, pool) {
  const up = all.filter((s) => s.state !== 'stopped').map((s) => s.id);
  const down = all.filter((s) => s.state === 'stopped').map((s) => s.id);
  const known = new Set([...up, ...down]);
  const pooled = found.records.filter((id) => !known.has(id));
  const alive = [...up, ...pooled].sort();
  const kept = [...alive, ...down].sort();
  assert.equal(pooled.length, pool, `records that are neither listed nor pooled: ${pooled}`);
  assert.deepEqual(found.records, kept, 'records');
  assert.deepEqual(found.disks, kept, 'disks');
  assert.ok(found.spares <= SPARES_MAX, `${found.spares} empty disks kept for later`);
  assert.deepEqual(found.sockets, alive, 'sockets in DIR/run');
  assert.deepEqual(found.inits, alive, 'inits');
  assert.equal(found.netns, alive.length, 'network namespaces');
  assert.equal(found.ranges, alive.length, 'leased id ranges');
  for (const [dir, ids] of Object.entries(found.groups)) assert.deepEqual(ids, alive, `groups in ${dir}`);
}

/** Waits until only the listed sandboxes and a full pool exist; returns both. */
export async function settled(d, { pool = 2, deadline = 15_000 } = {}) {
  return poll('everything that exists is listed or pooled', async () => {
    const all = await listAll(d);
    const found = inventory(d);
    compare(all, found, pool);
    return { all, found };
  }, { deadline, every: 30 });
}

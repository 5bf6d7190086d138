// attack.mjs - shared by the isolation tests: attack programs compiled here and
// run inside, and the host's view of a sandbox.
//
// An attack prints one line per attempt, `NAME RESULT`, where RESULT is `ok`, the
// name of an errno, or a value, and `done` as its last line. A test that expects
// failures checks that line too: an attack that never ran proves nothing.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ROOT_DIR, run, tagOf } from './cove.mjs';
import { cgroupsNamed, processes } from './host.mjs';

const SOURCES = path.join(ROOT_DIR, 'tests/isolation/attacks');
const FLAGS = ['-static', '-s', '-O1', '-Wall', '-Wextra', '-Werror', '-D_GNU_SOURCE'];

/** Programs of tests/isolation/attacks, compiled once per test file. */
export class Attacks {
  constructor() {
    this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-attack-'));
  }

  async compile(...names) {
    await Promise.all(names.map(async (name) => {
      const r = await run('gcc', [...FLAGS, '-o', path.join(this.dir, name), path.join(SOURCES, `${name}.c`)]);
      assert.equal(r.status, 0, r.stderr);
    }));
    return this;
  }

  path(name) {
    return path.join(this.dir, name);
  }

  /** Puts programs into a sandbox, at /tmp/NAME. */
  async put(d, id, ...names) {
    for (const name of names) {
      const r = await d.exec(id, ['sh', '-c', `cat >/tmp/${name} && chmod 755 /tmp/${name}`], {
        user: 'root',
        stdin_base64: fs.readFileSync(this.path(name)).toString('base64'),
      });
      assert.equal(r.exit_code, 0, r.stderr);
    }
  }

  clean() {
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

/** The lines of an attack as an object; fails if it did not run to its end. */
export function results(text) {
  const lines = text.split('\n').filter(Boolean);
  assert.equal(lines.pop(), 'done', `the attack ran to its end: ${text}`);
  return Object.fromEntries(lines.map((l) => {
    const at = l.lastIndexOf(' ');
    return [l.slice(0, at), l.slice(at + 1)];
  }));
}

/** Runs /tmp/NAME inside and returns its results. */
export async function attack(d, id, name, args = [], opts = {}) {
  const r = await d.exec(id, [`/tmp/${name}`, ...args], { user: 'root', timeout_ms: 60_000, max_output: 4 << 20, ...opts });
  assert.equal(r.exit_code, 0, `${name} ${args.join(' ')}: ${r.signal} ${r.stdout.slice(-2000)}${r.stderr.slice(-2000)}`);
  return results(r.stdout);
}

/** Each attempt ended as expected: {NAME: 'EPERM' or ['EPERM', 'ENOSYS']}, nothing missing, nothing more. */
export function refused(got, want) {
  const bad = [];
  for (const [name, ends] of Object.entries(want)) if (![ends].flat().includes(got[name])) bad.push(`${name}: ${got[name]} instead of ${[ends].flat().join(' or ')}`);
  for (const name of Object.keys(got)) if (!(name in want)) bad.push(`${name}: ${got[name]}, and the test does not say what it must be`);
  assert.deepEqual(bad, []);
}

/** The processes of a sandbox as the host sees them. */
export function insideOf(d, id) {
  const at = `/cove-${tagOf(d.dir)}/${id}`;
  return processes().filter((p) => p.cgroup.includes(at) && p.state !== 'Z');
}

/** Init of a sandbox as the host sees it. */
export function initOf(d, id) {
  return insideOf(d, id).find((p) => new RegExp(`^0::.*/${id}$`, 'm').test(p.cgroup));
}

/** The cgroup directory of a sandbox in which this file exists (v2, or v1 of that controller). */
export function cgroupWith(d, id, ...files) {
  for (const dir of cgroupsNamed(`cove-${tagOf(d.dir)}`)) for (const f of files) if (fs.existsSync(path.join(dir, id, f))) return path.join(dir, id, f);
  return undefined;
}

/** All output of a process so far. */
export async function logOf(d, id, pid) {
  return (await d.get(`/v1/sandboxes/${id}/processes/${pid}/logs?max_bytes=1048576`)).chunks.map((c) => c.data).join('');
}

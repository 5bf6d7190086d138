// Privileges of each process, read from the kernel: none for the front, those needed for
// the keeper, and init's only inside its sandbox.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { initOf, insideOf } from '../lib/attack.mjs';
import { recordsOf } from '../lib/chaos.mjs';
import { BASE, BIN, run, startDaemon } from '../lib/cove.mjs';
import { statusOf } from '../lib/host.mjs';

const FOURTEEN = [0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31];
const SYS_PTRACE = 19;
const bits = (hex) => [...Array(64).keys()].filter((b) => (BigInt(`0x${hex}`) >> BigInt(b)) & 1n);
const SETS = ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'];

let d;
let id;
let cove;
before(async () => {
  d = await startDaemon({ args: ['--pool', '1'] });
  id = (await d.sandbox()).id;
  const r = await run('getent', ['passwd', 'cove']);
  const [, , uid, gid] = r.stdout.split(':').map(Number);
  cove = { uid, gid };
});
after(() => d?.stop());

const links = (pid) => fs.readdirSync(`/proc/${pid}/fd`).map((fd) => {
  try {
    return fs.readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return undefined; // closed in between
  }
}).filter(Boolean);

test('the front is cove, without a capability and without a way to get one', () => {
  const s = statusOf(d.frontPid());
  assert.ok(cove.uid > 0 && cove.gid > 0);
  assert.deepEqual(s.Uid.split(/\s+/).map(Number), Array(4).fill(cove.uid));
  assert.deepEqual(s.Gid.split(/\s+/).map(Number), Array(4).fill(cove.gid));
  assert.equal(s.Groups, '');
  for (const set of SETS) assert.deepEqual(bits(s[set]), [], set);
  assert.equal(s.NoNewPrivs, '1');
});

test('the front\'s environment has only the hash of a key', () => {
  const env = fs.readFileSync(`/proc/${d.frontPid()}/environ`, 'latin1').split('\0').filter(Boolean);
  assert.deepEqual(env.map((e) => e.split('=')[0]), ['COVE_KEY_SHA256']);
  assert.ok(!fs.readFileSync(`/proc/${d.frontPid()}/cmdline`, 'latin1').includes(d.key));
});

test('the front holds fds of the kinds it needs, and no file of the keeper\'s', () => {
  const odd = links(d.frontPid()).filter((l) => !(
    /^(socket|pipe|anon_inode):/.test(l) || l === '/dev/null' || l === path.join(d.dir, 'run') || l.startsWith(path.join(d.dir, 'front'))));
  assert.deepEqual(odd, []);
});

test('the front reads none of root\'s files', async () => {
  const r = await run('setpriv', ['--reuid', String(cove.uid), '--regid', String(cove.gid), '--clear-groups', 'sh', '-c',
    `for f in api-key records disk.img templates lock tag disk dev; do cat ${d.dir}/$f >/dev/null 2>&1 && echo "read $f"; ls ${d.dir}/$f/ >/dev/null 2>&1 && echo "list $f"; done; ls ${d.dir} >/dev/null 2>&1 && echo "list DIR"; ls ${d.dir}/run >/dev/null 2>&1 && echo "list run"; ls ${d.dir}/front >/dev/null && echo own; echo tried`]);
  assert.equal(r.stdout, 'own\ntried\n', r.stderr);
});

test('the keeper is root with only the capabilities it needs', () => {
  const s = statusOf(d.keeperPid());
  assert.deepEqual(s.Uid.split(/\s+/).map(Number).slice(0, 3), [0, 0, 0]);
  const eff = bits(s.CapEff);
  assert.ok(eff.includes(21), 'it mounts');
  for (const [name, cap] of [['sys_module', 16], ['sys_rawio', 17], ['sys_boot', 22], ['sys_time', 25], ['net_admin', 12], ['bpf', 39], ['mac_admin', 33]])
    assert.ok(!eff.includes(cap) && !bits(s.CapBnd).includes(cap), name);
});

test('init is a range\'s first id, filtered, and bounded to the fourteen', () => {
  for (const init of [initOf(d, id)]) {
    const s = statusOf(init.pid);
    const uids = s.Uid.split(/\s+/).map(Number);
    const base = uids[0];
    assert.ok(base >= 0x70000000 && base < 0x7f000000 && base % 65536 === 0, s.Uid);
    assert.equal(uids[1], base);
    assert.equal(uids[2], base + 65535, 'a saved uid that no other process has');
    assert.equal(s.Seccomp, '2');
    assert.deepEqual(bits(s.CapBnd), FOURTEEN);
    // to answer statfs it reads and writes the asker's memory; what it executes does not get it
    assert.deepEqual(bits(s.CapPrm).filter((b) => b !== SYS_PTRACE), FOURTEEN);
    for (const set of ['CapInh', 'CapAmb']) assert.deepEqual(bits(s[set]), [], set);
    assert.equal(s.Groups, '');
  }
});

test('init is static, sealed, and runs from nowhere', () => {
  const { pid } = initOf(d, id);
  assert.match(fs.readlinkSync(`/proc/${pid}/exe`), /^\/memfd:cove-init \(deleted\)$/);
  assert.equal(fs.statSync(`/proc/${pid}/exe`).mode & 0o777, 0o111);
  assert.equal(fs.statSync(`/proc/${pid}/exe`).uid, 0, 'the host\'s root\'s');
  const maps = fs.readFileSync(`/proc/${pid}/maps`, 'utf8');
  assert.doesNotMatch(maps, /\.so|\/build\/|\/cove$/m, 'no library and nothing of the daemon\'s binary');
  const environ = fs.readFileSync(`/proc/${pid}/environ`, 'utf8');
  assert.equal(environ, '');
});

test('init holds no fd of the host but those it was given', () => {
  const odd = links(initOf(d, id).pid).filter((l) => !(/^(socket|pipe|anon_inode):/.test(l) || ['/dev/null', '/null'].includes(l)));
  // detached: the group in which it makes groups; read-only: its quota and its OOM kills;
  // its own files over those of /proc (init/limits/files.h), and the covered one that it copies from
  for (const l of odd) assert.match(l, /^\/(\d+\/?)?$|\/cgroup\.(events|stat\.local)$|\/memory\.(events|oom_control)$|\/qgroups\/0_\d+\/(max_)?referenced$|^\/memfd:cove-helper \(deleted\)$|^\/dev\/cove\/limits \(deleted\)$|^(\/proc)?\/cpuinfo$/, l);
  for (const l of odd) assert.ok(!l.includes(d.dir), l);
});

test('pooled sandboxes have the same isolation', () => {
  const tag = fs.readFileSync(path.join(d.dir, 'tag'), 'utf8').trim();
  const pooled = [...recordsOf(d.dir).keys()].filter((r) => r !== id);
  for (const p of pooled) {
    const init = initOf(d, p);
    if (!init || statusOf(init.pid).Seccomp !== '2') continue; // being born
    assert.deepEqual(bits(statusOf(init.pid).CapBnd), FOURTEEN, `${tag} ${p}`);
    assert.equal(insideOf(d, p).length, 1);
  }
});

// With it a tenant traced the processes that init was just starting (measured).
test('a host where set-user-id programs may be dumped is refused', async () => {
  const inside = 'f=$(mktemp); echo 1 >$f; mount --bind $f /proc/sys/fs/suid_dumpable; rm $f; exec "$0" "$@"';
  const r = await run('unshare', ['--mount', 'sh', '-c', inside, BIN, 'doctor']);
  assert.match(r.stdout, /MISSING\s+dumps\s+fs\.suid_dumpable is 1/);
  assert.notEqual(r.status, 0);
  const dir = fs.mkdtempSync('/tmp/cove-dumpable-');
  try {
    const serve = await run('unshare', ['--mount', 'sh', '-c', inside, BIN, 'serve', '--state', dir, '--base', BASE, '--listen', '127.0.0.1:0', '--network', 'none']);
    assert.match(serve.stderr, /fs\.suid_dumpable is 1/);
    assert.notEqual(serve.status, 0);
  } finally {
    fs.rmSync(dir, { recursive: true });
  }
});

test('the state directory is as src/keeper/host/dirs.c says', () => {
  const want = {
    '.': [0, 0o711], lock: [0, 0o600], tag: [0, 0o600], '.copy-tag': [0, 0o600], 'api-key': [0, 0o600], front: ['cove', 0o700], run: [0, 0o711],
    sandboxes: [0, 0o600], records: [0, 0o700], damaged: [0, 0o700], 'disk.img': [0, 0o600], disk: [0, 0o700], templates: [0, 0o700], snapshots: [0, 0o700], images: [0, 0o700], dev: [0, 0o700], layers: [0, 0o700],
  };
  for (const name of ['.', ...fs.readdirSync(d.dir)]) {
    assert.ok(name in want, `${name}: the test does not say whose it is`);
    const s = fs.statSync(path.join(d.dir, name));
    const [owner, mode] = want[name];
    assert.deepEqual([s.uid, s.mode & 0o7777], [owner === 'cove' ? cove.uid : owner, mode], name);
  }
  for (const name of fs.readdirSync(path.join(d.dir, 'run'))) {
    const s = fs.statSync(path.join(d.dir, 'run', name));
    assert.deepEqual([s.isSocket(), s.uid, s.mode & 0o777], [true, cove.uid, 0o600], name);
  }
  for (const name of fs.readdirSync(path.join(d.dir, 'front'))) assert.equal(fs.statSync(path.join(d.dir, 'front', name)).uid, cove.uid, name);
});

test('the key is in no log, process title or database', () => {
  assert.ok(d.key.length > 20);
  for (const name of fs.readdirSync(path.join(d.dir, 'front'))) assert.ok(!fs.readFileSync(path.join(d.dir, 'front', name)).includes(d.key), name);
  assert.ok(!d.log.includes(d.key));
  assert.ok(!fs.readFileSync(`/proc/${d.keeperPid()}/cmdline`, 'utf8').includes(d.key));
});

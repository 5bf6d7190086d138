// What root inside can open for writing below /proc and /sys, as a list: each entry of it was looked
// at. A new kernel with one more fails here, so that a person decides.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';

let d;
let id;
before(async () => {
  d = await startDaemon({ args: ['--pool', '0'] });
  id = (await d.sandbox()).id;
});
after(() => d?.stop());

// A file that closes slowly, or that the host keeps something for (a PSI trigger), holds up the kill of its sandbox.
const LIST = `
import os, stat
def opens(path):
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode): return False
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        return True
    except OSError:
        return False
for top in ("/proc", "/sys"):
    for at, dirs, files in os.walk(top):
        if at == "/proc":
            dirs[:] = [d for d in dirs if not d.isdigit() and d not in ("self", "thread-self")]
        for f in files:
            if opens(os.path.join(at, f)): print(os.path.join(at, f))
for f in os.listdir("/proc/self"):
    # root has the right to open everything; what has no mode to write has no code for it either
    if os.lstat("/proc/self/" + f).st_mode & 0o222 and opens("/proc/self/" + f): print("self/" + f)
print("done")`;

/** Of a process itself. Each acts on that process, or is refused by the user namespace (the maps, time, loginuid). */
const OWN = [
  'autogroup', 'clear_refs', 'comm', 'coredump_filter', 'fail-nth', 'gid_map', 'latency', 'loginuid', 'make-it-fail', 'mem', 'oom_adj', 'oom_score_adj',
  'projid_map', 'sched', 'seccomp_cache', 'setgroups', 'timens_offsets', 'timerslack_ns', 'uid_map',
];

for (const user of ['root', 'user'])
  test(`${user} opens no file of the kernel for writing that is not in the list`, async () => {
    const r = await d.exec(id, ['python3', '-c', LIST], { user, timeout_ms: 60_000 });
    const lines = r.stdout.split('\n').filter(Boolean);
    assert.equal(lines.pop(), 'done', r.stderr);
    assert.ok(lines.includes('self/oom_score_adj'), 'the list sees what can be written');
    assert.deepEqual(lines.filter((l) => !OWN.includes(l.replace('self/', ''))), []);
  });

test('a tenant sets no PSI trigger, which would let its sandbox outlive a kill', async () => {
  const r = await d.exec(id, 'ls -A /proc/pressure | wc -l; cd /proc/pressure && for f in cpu io memory irq; do echo "some 150000 1000000" >$f; done', { user: 'root' });
  assert.match(r.stdout, /^0\n/);
  assert.doesNotMatch(r.stderr, /^$/, 'it was refused');
});

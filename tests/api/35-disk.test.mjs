// The disk of a sandbox and its limit.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';

let d, s;
before(async () => {
  d = await startDaemon({});
  s = await d.post('/v1/sandboxes', { limits: { disk: 64 << 20 } });
});
after(() => d?.stop());

const python = (text, user) => d.exec(s.id, ['python3', '-c', text], { user });

test('df shows the limit, not the disk of the host', async () => {
  const r = await python('import os\nv = os.statvfs("/workspace")\nprint(v.f_blocks * v.f_frsize)');
  assert.equal(Number(r.stdout), 64 << 20);
});

test('df shows written bytes, by path and by file descriptor', async () => {
  const r = await python(`
import os
def free(v): return v.f_bavail * v.f_frsize
before = free(os.statvfs("/"))
with open("/workspace/f", "wb") as f:
    f.write(b"x" * (8 << 20))
    os.fsync(f.fileno())
    if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 7):
        os.sync() # quotas that are not simple ones count with the next commit
    print(before - free(os.fstatvfs(f.fileno())) >= 8 << 20)
os.chdir("/workspace")
print(before - free(os.statvfs("f")) >= 8 << 20)
os.unlink("f")`);
  assert.equal(r.stdout, 'True\nTrue\n', r.stderr);
});

test('other filesystems are answered by the kernel', async () => {
  const r = await python(`
import os
print(os.statvfs("/proc").f_blocks, os.statvfs("/dev/shm").f_blocks > 0)
try: os.statvfs("/nope")
except FileNotFoundError: print("no such file")`);
  assert.equal(r.stdout, '0 True\nno such file\n', r.stderr);
});

test('statfs does not tell a user of files that they may not look for', async () => {
  await d.exec(s.id, 'touch /root/secret', { user: 'root' });
  const r = await python(`
import os
for path in ["/root/secret", "/root/nothing"]:
    try: os.statvfs(path)
    except PermissionError: print("denied")`);
  assert.equal(r.stdout, 'denied\ndenied\n', r.stderr);
});

test('a full disk is ENOSPC inside, and removing a file makes room', async () => {
  const r = await python(`
import errno, os
try:
    with open("/workspace/big", "wb") as f:
        for i in range(100): f.write(b"x" * (1 << 20))
except OSError as e:
    print(e.errno in (errno.ENOSPC, errno.EDQUOT))
os.unlink("/workspace/big")
os.sync()
with open("/workspace/small", "wb") as f: f.write(b"x" * (1 << 20))
print("room")`);
  assert.equal(r.stdout, 'True\nroom\n', r.stderr);
});

test('a directory of the template is renamed in place', async () => {
  const r = await python(`
import os
os.rename("/usr/share/man", "/usr/share/man2")
print(os.path.isdir("/usr/share/man2"), os.path.exists("/usr/share/man"))`, 'root');
  assert.equal(r.stdout, 'True False\n', r.stderr);
});

test('removing a directory of the template and making it again works', async () => {
  const r = await d.exec(s.id, 'rm -rf /usr/share/doc && mkdir /usr/share/doc && touch /usr/share/doc/x && ls /usr/share/doc', { user: 'root' });
  assert.equal(r.stdout, 'x\n', r.stderr);
});

test('a reused disk shows no data of the deleted sandbox', async () => {
  const first = await d.post('/v1/sandboxes', {});
  await d.exec(first.id, 'echo mine > /workspace/left; sudo touch /etc/left; sudo rm /usr/bin/awk');
  await d.del(`/v1/sandboxes/${first.id}`);
  for (let i = 0; i < 40; i++) {
    const next = await d.post('/v1/sandboxes', {});
    const r = await d.exec(next.id, 'ls /workspace; ls -d /etc/left; ls /usr/bin/awk');
    assert.equal(r.stdout, '/usr/bin/awk\n');
    await d.del(`/v1/sandboxes/${next.id}`);
  }
});

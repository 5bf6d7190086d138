// No user inside can make a namespace, mount, use dangerous system calls, or open a device.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { attack, Attacks, refused } from '../lib/attack.mjs';
import { startDaemon } from '../lib/cove.mjs';

const attacks = new Attacks();
let d;
let id;
before(async () => {
  await attacks.compile('calls');
  d = await startDaemon({ args: ['--pool', '0'] });
  id = (await d.sandbox()).id;
  await attacks.put(d, id, 'calls');
});
after(async () => {
  attacks.clean();
  await d?.stop();
});

const all = (names, end) => Object.fromEntries(names.map((n) => [n, end]));
const KINDS = ['user', 'pid', 'mnt', 'net', 'ipc', 'uts', 'time', 'cgroup', 'user+net', 'user+mnt'];
const CLONES = KINDS.flatMap((k) => (k === 'time' ? [`clone3 ${k}`] : [`clone ${k}`, `clone3 ${k}`]));

for (const user of ['root', 'user']) {
  test(`${user} makes no namespace and enters none`, async () => {
    refused(await attack(d, id, 'calls', ['namespaces'], { user }), {
      ...all(KINDS.map((k) => `unshare ${k}`), 'EPERM'),
      // without CAP_SYS_ADMIN only a user namespace could be had, and there are none left
      ...Object.fromEntries(CLONES.map((n) => [n, n.includes('user') ? 'ENOSPC' : 'EPERM'])),
      ...all(KINDS.slice(0, 8).map((k) => `setns ${k}`), 'EPERM'),
    });
  });

  test(`${user} cannot mount with the old or new calls, or unmount masks`, async () => {
    const got = await attack(d, id, 'calls', ['mounts'], { user });
    const late = ['statmount', 'listmount', 'open_tree_attr']; // calls that the filter's library may not know
    assert.equal(Object.keys(got).length, 27);
    refused(got, Object.fromEntries(Object.keys(got).map((n) => [n, late.includes(n) ? ['EPERM', 'ENOSYS'] : 'EPERM'])));
  });

  test(`${user} has none of the kernel's sharper tools`, async () => {
    const got = await attack(d, id, 'calls', ['kernel'], { user });
    assert.equal(Object.keys(got).length, 36);
    refused(got, {
      ...all(Object.keys(got), 'EPERM'),
      'a number of tomorrow': 'ENOSYS',
      'an x32 number': ['EPERM', 'ENOSYS'],
    });
  });

  test(`${user} opens no socket of a family that is not in the list`, async () => {
    const got = await attack(d, id, 'calls', ['families'], { user });
    assert.equal(Object.keys(got).length, 9);
    refused(got, all(Object.keys(got), 'ENOSYS'));
  });

  test(`${user} makes no device node, opens none and changes none`, async () => {
    const got = await attack(d, id, 'calls', ['devices'], { user });
    const open = Object.keys(got).filter((n) => n.startsWith('open '));
    assert.equal(open.length, 12);
    refused(got, {
      ...all(Object.keys(got).filter((n) => n.startsWith('mknod ')), 'EPERM'),
      // any user may make a whiteout on a filesystem that is no overlay; it is no device
      'mknod in shm whiteout': ['ok', 'EPERM'],
      ...all(open, 'ENOENT'),
      'create in /dev': user === 'root' ? 'EROFS' : ['EROFS', 'EACCES'],
      'chmod /dev/null': 'EROFS',
      'unlink /dev/null': user === 'root' ? 'EROFS' : ['EROFS', 'EACCES'],
    });
  });

  test(`${user} types into no terminal with TIOCSTI`, async () => {
    refused(await attack(d, id, 'calls', ['terminal'], { user }), { TIOCSTI: ['EPERM', 'ENOSYS'], 'TIOCSTI with high bits': ['EPERM', 'ENOSYS'] });
  });

  test(`${user} gets past the filter by no other way to call`, async () => {
    refused(await attack(d, id, 'calls', ['old'], { user }), all(['int80 getpid', 'int80 mount', 'int80 unshare'], ['EPERM', 'ENOSYS']));
  });
}

test('the filter is on everything that runs', async () => {
  const r = await d.exec(id, 'for u in "" sudo; do $u grep -h ^Seccomp: /proc/self/status /proc/1/status; done');
  assert.deepEqual(r.stdout.split(/\s+/).filter(Boolean), Array(4).fill(['Seccomp:', '2']).flat(), r.stderr);
});

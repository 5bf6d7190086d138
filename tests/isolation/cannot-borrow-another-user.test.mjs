// File calls run as a user inside: with only that user's rights, and the files they leave
// give other users no rights.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';
import { tar } from '../lib/image.mjs';

let d, id;
before(async () => {
  d = await startDaemon({});
  id = (await d.sandbox()).id;
});
after(() => d?.stop());

const url = (what, query) => `/v1/sandboxes/${id}/files${what}?${new URLSearchParams(query)}`;
const sh = async (command, user = 'root') => (await d.exec(id, command, { user })).stdout;

test('unknown ids map to nobody and not to root', async () => {
  for (const user of ['70000:0', '70000:1000', '70000', '0:70000', '4294967294:0']) {
    const e = await d.fails(400, 'invalid', 'GET', url('', { path: '/etc/shadow', user }));
    assert.match(e.message, /ids in a sandbox are 0 to 65535/);
    await d.fails(400, 'invalid', 'PUT', url('', { path: '/etc/new', user }), Buffer.from('x'));
    await d.fails(400, 'invalid', 'GET', url('/stat', { path: '/root/x', user }));
  }
  assert.equal(await sh('ls /etc/new 2>/dev/null'), '');
  assert.match((await d.call('GET', url('', { path: '/etc/shadow', user: '0:0' }))).text, /^root:/, 'init is itself again');
  await d.fails(403, 'denied', 'GET', url('', { path: '/etc/shadow', user: '1000:1000' }));
});

test('a copy of a program that runs as its owner does not run as the new one', async () => {
  await sh(`cp /bin/sleep /tmp/run; mkdir /tmp/theirs; for m in 4755 2755 6755 0755; do
    install -o 4000 -g 4000 -m $m /tmp/run /tmp/theirs/$m; done; chown 4000:4000 /tmp/theirs; chmod 2755 /tmp/theirs`);
  for (const [user, home] of [['user', '/home/user'], ['root', '/root']]) {
    await d.api('POST', url('/copy', { path: '/tmp/theirs', to: `${home}/mine`, user }));
    const modes = await sh(`cd ${home}/mine; stat -c '%n %a %u' . *`);
    // root's copy is still the other's
    const kept = user === 'root' ? '. 2755 4000\n0755 755 4000\n2755 2755 4000\n4755 4755 4000\n6755 6755 4000\n' : '. 755 1000\n0755 755 1000\n2755 755 1000\n4755 755 1000\n6755 755 1000\n';
    assert.equal(modes, kept);
  }
});

test('a file that is replaced does not run as its owner any more', async () => {
  await sh('install -m 6755 /tmp/run /home/user/over; chown user:user /home/user/over; chmod 6755 /home/user/over');
  await d.api('PUT', url('', { path: '/home/user/over', user: 'user', atomic: 1 }), Buffer.from('new'));
  assert.equal(await sh("stat -c '%a %u' /home/user/over"), '755 1000\n');
});

test('an archive cannot leave a setuid program of the user who unpacked it', async () => {
  const entries = [{ name: 's', data: 'x', mode: 0o6755, uid: 4000, gid: 4000 }];
  for (const atomic of [0, 1]) {
    await d.api('PUT', `/v1/sandboxes/${id}/archive?${new URLSearchParams({ path: '/home/user/unpacked', user: 'user', atomic, parents: 1 })}`, tar(entries));
    assert.equal(await sh("stat -c '%a %u' /home/user/unpacked/s"), '755 1000\n');
  }
});

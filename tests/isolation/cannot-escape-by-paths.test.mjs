// No link, magic link, handle, directory or program leads out of a sandbox.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { attack, Attacks, initOf, refused } from '../lib/attack.mjs';
import { startDaemon } from '../lib/cove.mjs';

const attacks = new Attacks();
const CANARY = path.join(os.tmpdir(), `cove-canary-${process.pid}`);
let d;
let id;
before(async () => {
  fs.writeFileSync(CANARY, 'canary of the host\n', { mode: 0o666 });
  await attacks.compile('breakout');
  d = await startDaemon({ args: ['--pool', '0'] });
  id = (await d.sandbox()).id;
  await attacks.put(d, id, 'breakout');
});
after(async () => {
  attacks.clean();
  fs.rmSync(CANARY, { force: true });
  await d?.stop();
});

const E = () => `/v1/sandboxes/${id}/exec`;
const root = (command, opts = {}) => d.exec(id, command, { user: 'root', timeout_ms: 60_000, ...opts });

test('dots and links that lead up end at the sandbox\'s root', async () => {
  const up = '../'.repeat(40);
  const r = await root(`
    ln -s ${up}${CANARY} /tmp/up; ln -s / /tmp/slash; ln -s /proc/self/root${CANARY} /tmp/magic; ln -s /proc/1/root${CANARY} /tmp/init
    for f in ${CANARY} /${up}${CANARY} /tmp/up /tmp/slash/../${up}${CANARY} /tmp/magic /tmp/init \\
        /proc/self/root/../../..${CANARY} /proc/self/cwd/${up}${CANARY} /proc/self/task/$$/root/..${CANARY} /dev/fd/../../..${CANARY} \\
        /proc/1/root${CANARY} /proc/1/cwd${CANARY} /proc/1/fd/3/${up}${CANARY} /sys/../..${CANARY} /dev/shm/../..${CANARY} /proc/sys/../..${CANARY}; do
      cat "$f" 2>/dev/null && echo "ESCAPED $f"; echo tried
    done`);
  assert.equal(r.stdout, 'tried\n'.repeat(16));
  assert.equal((await root('stat -Lc %d:%i / /.. /proc/self/root /proc/self/root/.. | sort -u | wc -l')).stdout, '1\n');
});

test('chroot and fchdir climb no higher than the sandbox\'s root', async () => {
  refused(await attack(d, id, 'breakout', ['climb', CANARY]), { chroot: 'ok', fchdir: 'ok', 'chroot .': 'ok', 'same root': 'yes', canary: 'ENOENT' });
  refused(await attack(d, id, 'breakout', ['climb', CANARY], { user: 'user' }), { chroot: 'EPERM', fchdir: 'ok', 'chroot .': 'EPERM', 'same root': 'yes', canary: 'ENOENT' });
});

test('no file is opened by its handle', async () => {
  const got = await attack(d, id, 'breakout', ['handles']);
  assert.equal(Object.keys(got).length, 18);
  refused(got, Object.fromEntries(Object.keys(got).map((n) => [n, 'EPERM'])));
});

test('a tenant cannot overwrite running programs, including that of init', async () => {
  const exe = fs.readlinkSync(`/proc/${initOf(d, id).pid}/exe`);
  assert.match(exe, /^\/memfd:cove-init/);
  refused(await attack(d, id, 'breakout', ['overwrite']), { 'exe for writing': 'ETXTBSY', 'exe again by its fd': 'ETXTBSY', "init's exe": 'EACCES', "parent's exe": 'EACCES' });
  // from the host, as root, where nothing else refuses: its seals hold
  assert.throws(() => fs.writeFileSync(`/proc/${initOf(d, id).pid}/exe`, 'x'), /ETXTBSY|EPERM/);
});

test('a program that is a link to another\'s does not run as that', async () => {
  await root('ln -sf /proc/1/exe /tmp/evil; ln -sf /proc/self/exe /tmp/self; printf "#!/proc/self/exe\\n" >/tmp/script; printf "#!/proc/1/exe\\n" >/tmp/script1; chmod 755 /tmp/script /tmp/script1');
  for (const argv of [['/tmp/evil'], ['/proc/1/exe'], ['/tmp/script1']]) await d.fails(422, 'cannot_start', 'POST', E(), { argv, user: 'root' });
  // in the instant before it executes, a command's own exe is init's program
  for (const argv of [['/tmp/self'], ['/proc/self/exe'], ['/tmp/script'], ['/proc/thread-self/exe']]) {
    const a = await d.call('POST', E(), { argv, user: 'root', timeout_ms: 5000 });
    assert.ok(a.status === 422 || a.json.exit_code !== 0 || a.json.timed_out, a.text);
  }
  assert.equal((await root('echo fine')).stdout, 'fine\n');
});

test('a working directory in init or of the host is refused', async () => {
  for (const cwd of ['/proc/1/root', '/proc/1/cwd', '/proc/1/fd/3', '/proc/1/root/tmp', d.dir, path.dirname(process.execPath) + '/../../cove-none'])
    await d.fails(422, 'cannot_start', 'POST', E(), { command: `cat ${CANARY}`, cwd, user: 'root' });
  // in the instant before it executes, a command's fds are none but its own three
  for (let fd = 0; fd < 24; fd++) {
    const a = await d.call('POST', E(), { command: 'pwd; ls -a; cat cgroup.procs', cwd: `/proc/self/fd/${fd}`, user: 'root' });
    assert.equal(a.status, 422, a.text);
  }
  for (const cwd of ['/proc/self/root', '/proc/self/cwd']) assert.equal((await root('stat -c %i .; cat etc/hostname', { cwd })).stdout.split('\n')[1], 'cove');
});

test('users and groups are not read through a link to another filesystem', async () => {
  await root('cp /etc/passwd /tmp/passwd.old; rm /etc/passwd; ln -s /proc/1/environ /etc/passwd');
  await d.fails(422, 'cannot_start', 'POST', E(), { command: 'true', user: 'user' });
  await root(`rm /etc/passwd; ln -s ../../../../..${CANARY} /etc/passwd`);
  await d.fails(422, 'cannot_start', 'POST', E(), { command: 'true', user: 'user' });
  assert.equal((await root('rm /etc/passwd; mv /tmp/passwd.old /etc/passwd; id -un user')).stdout, 'user\n');
});

test('files of the host are unchanged after all attacks', () => {
  assert.equal(fs.readFileSync(CANARY, 'utf8'), 'canary of the host\n');
});

// Root inside has a container's fourteen capabilities and no way to a fifteenth.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { attack, Attacks, refused, results } from '../lib/attack.mjs';
import { startDaemon } from '../lib/cove.mjs';

// chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service
// net_raw sys_chroot mknod audit_write setfcap
const FOURTEEN = [0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31].reduce((m, bit) => m | (1n << BigInt(bit)), 0n);
const mask = (text) => BigInt(`0x${text}`);

const attacks = new Attacks();
let d;
let id;
before(async () => {
  await attacks.compile('caps');
  d = await startDaemon({ args: ['--pool', '0'] });
  id = (await d.sandbox()).id;
  await attacks.put(d, id, 'caps');
});
after(async () => {
  attacks.clean();
  await d?.stop();
});

const sh = (command, opts) => d.exec(id, command, opts);

test('root has exactly the fourteen capabilities, and other users none', async () => {
  const root = await attack(d, id, 'caps', ['show']);
  for (const set of ['CapPrm', 'CapEff', 'CapBnd']) assert.equal(mask(root[set]), FOURTEEN, set);
  for (const set of ['CapInh', 'CapAmb']) assert.equal(mask(root[set]), 0n, set);
  for (const user of ['user', '1234', '65535']) {
    const got = await attack(d, id, 'caps', ['show'], { user });
    for (const set of ['CapPrm', 'CapEff', 'CapInh', 'CapAmb']) assert.equal(mask(got[set]), 0n, `${user} ${set}`);
    assert.equal(mask(got.CapBnd), FOURTEEN);
  }
});

test('sudo gives the fourteen and no more', async () => {
  const r = await sh('sudo /tmp/caps show');
  assert.equal(r.stderr, '', 'and finds nothing wrong with the walls');
  const got = results(r.stdout);
  assert.equal(mask(got.CapEff), FOURTEEN);
  assert.equal(mask(got.CapBnd), FOURTEEN);
});

for (const user of ['root', 'user']) {
  test(`${user} is given no more when it asks`, async () => {
    const got = await attack(d, id, 'caps', ['ask'], { user });
    assert.equal(Object.keys(got).length, 30);
    refused(got, Object.fromEntries(Object.keys(got).map((n) => [n, 'EPERM'])));
  });

  test(`${user} uses none that it does not have`, async () => {
    const got = await attack(d, id, 'caps', ['use'], { user });
    refused(got, {
      nf_tables: 'EPERM',
      'new link': ['EPERM', 'EOPNOTSUPP'], // EOPNOTSUPP: this kernel has no such link
      'loopback down': 'EPERM',
      nice: 'EACCES',
      realtime: 'EPERM',
      securebits: 'EPERM',
      'trusted xattr': 'EPERM',
      immutable: ['EPERM', 'EBADF'],
      oom_score_adj: 'EACCES',
    });
  });
}

test('a setuid program of root has the fourteen and no more', async () => {
  await sh('cp /tmp/caps /tmp/setuid-caps && chmod 4755 /tmp/setuid-caps', { user: 'root' });
  const got = await attack(d, id, 'setuid-caps', ['show'], { user: 'user' });
  assert.equal(mask(got.CapEff), FOURTEEN);
});

test('capabilities of a file reach no further than the fourteen', async () => {
  await sh('cp /tmp/caps /tmp/filecaps; cp /tmp/caps /tmp/filecaps-e', { user: 'root' });
  refused(await attack(d, id, 'caps', ['file', '/tmp/filecaps']), { setcap: 'ok', 'setcap of another root': ['EPERM', 'EINVAL'] });
  for (const user of ['root', 'user']) {
    const got = await attack(d, id, 'filecaps', ['show'], { user });
    assert.equal(mask(got.CapPrm) & ~FOURTEEN, 0n, `${user} ${got.CapPrm}`);
  }
  // with the effective flag, "all or nothing" is the kernel's rule: nothing
  await attack(d, id, 'caps', ['file', '/tmp/filecaps-e', 'effective']);
  await d.fails(422, 'cannot_start', 'POST', `/v1/sandboxes/${id}/exec`, { argv: ['/tmp/filecaps-e', 'show'] });
  assert.equal((await sh('/tmp/filecaps-e show')).exit_code, 126);
});

test('a user does not put capabilities on a file', async () => {
  const r = await sh('cp /tmp/caps /workspace/caps && /workspace/caps file /workspace/caps');
  refused(results(r.stdout), { setcap: 'EPERM', 'setcap of another root': ['EPERM', 'EINVAL'] });
});

// `cove session`, run for real.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { finished, poll, startDaemon, within } from '../lib/cove.mjs';

let d;
let id;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox()).id;
});
after(() => d?.stop());

const cove = (args, opts) => d.cli(['session', ...args], opts);

test('create, exec, list, delete: the state is kept and the status is the command\'s', async () => {
  const made = await cove(['create', '--id', 'work', '-e', 'GIVEN=1', id]);
  assert.deepEqual([made.status, made.stdout], [0, 'work\n']);
  assert.equal((await cove(['exec', id, 'work', '--', 'cd /usr; v="two words"'])).status, 0);
  const r = await cove(['exec', id, 'work', 'pwd;', 'echo "$v" $GIVEN;', 'echo no >&2;', '(exit', '7)']);
  assert.deepEqual([r.status, r.stdout, r.stderr], [7, '/usr\ntwo words 1\n', 'no\n']);
  assert.match((await cove(['list', id])).stdout, /^SESSION +STATE +USER[^\n]*\nwork +idle +user +\S+ +\/usr +-\n$/);
  assert.equal(JSON.parse((await cove(['list', '--json', id])).stdout).sessions[0].id, 'work');
  const j = await cove(['exec', '--json', id, 'work', '--', 'echo x; (exit 3)']);
  assert.equal(j.status, 3);
  assert.equal(JSON.parse(j.stdout).stdout, 'x\n');
  assert.equal((await cove(['exec', '-w', '/etc', '-e', 'A=b', id, 'work', '--', 'pwd; echo $A'])).stdout, '/etc\nb\n');
  assert.equal((await cove(['exec', '-i', id, 'work', '--', 'read a; echo "[$a]"; cat'], { input: 'one\ntwo' })).stdout, '[one]\ntwo');
  assert.equal((await cove(['exec', '--timeout', '200ms', id, 'work', '--', 'sleep 1000'])).status, 124);
  assert.equal((await cove(['delete', id, 'work'])).status, 0);
  assert.equal((await cove(['list', id])).stdout.split('\n').length, 2);
});

test('errors of session commands are printed with their exit status', async () => {
  assert.equal((await cove([])).status, 200);
  assert.equal((await cove(['frobnicate', id])).status, 200);
  assert.match((await cove(['exec', id])).stderr, /SESSION is missing/);
  assert.match((await cove(['exec', id, 'none'])).stderr, /COMMAND is missing/);
  const r = await cove(['exec', id, 'none', 'true']);
  assert.equal(r.status, 202);
  assert.match(r.stderr, /no session none/);
  await cove(['create', '--id', 'dup', id]);
  assert.equal((await cove(['create', '--id', 'dup', id])).status, 211);
  assert.equal((await cove(['exec', id, 'dup', 'exit 4'])).status, 4);
  assert.match((await cove(['exec', id, 'dup', 'true'])).stderr, /has ended: the shell exited with 4/);
  await cove(['delete', id, 'dup']);
});

test('Ctrl-C interrupts the command and keeps the session', async () => {
  await cove(['create', '--id', 'c', id]);
  const child = d.cliSpawn(['session', 'exec', id, 'c', '--', 'v=1; echo here; sleep 1000']);
  const done = finished(child);
  await new Promise((r) => child.stdout.once('data', r));
  child.kill('SIGINT');
  assert.equal((await within(10_000, 'it ends', done)).status, 130);
  assert.equal((await cove(['exec', id, 'c', 'echo $v'])).stdout, '1\n');
  const waits = cove(['exec', id, 'c', 'sleep 1000']);
  await poll('it runs', async () => (await d.get(`/v1/sandboxes/${id}/sessions/c`)).state === 'busy');
  assert.equal((await cove(['interrupt', id, 'c'])).status, 0);
  assert.equal((await waits).status, 130);
  await cove(['delete', id, 'c']);
});

test('Ctrl-C interrupts the command also with --json', async () => {
  await cove(['create', '--id', 'j', id]);
  const child = d.cliSpawn(['session', 'exec', '--json', id, 'j', '--', 'v=2; sleep 1000']);
  const done = finished(child);
  await poll('it runs', async () => (await d.get(`/v1/sandboxes/${id}/sessions/j`)).state === 'busy');
  child.kill('SIGINT');
  const r = await within(10_000, 'it ends', done);
  assert.equal(r.status, 130, r.stderr);
  assert.equal(JSON.parse(r.stdout).interrupted, true);
  assert.equal((await cove(['exec', id, 'j', 'echo $v'])).stdout, '2\n');
  await cove(['delete', id, 'j']);
});

test('the command survives a restart of the daemon', async () => {
  await cove(['create', '--id', 'r', id]);
  await d.exec(id, 'rm -f /tmp/gate; mkfifo /tmp/gate; chmod 666 /tmp/gate', { user: 'root' });
  const waits = cove(['exec', id, 'r', '--', 'echo before; read x < /tmp/gate; echo after; (exit 5)']);
  await poll('it runs', async () => (await d.get(`/v1/sandboxes/${id}/sessions/r`)).state === 'busy');
  await d.kill9('both');
  await d.restart();
  await d.exec(id, 'echo > /tmp/gate');
  const r = await waits;
  assert.deepEqual([r.status, r.stdout], [5, 'before\nafter\n']);
});

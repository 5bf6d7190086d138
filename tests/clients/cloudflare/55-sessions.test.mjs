// Sessions as Cloudflare has them, without the defects of the reference.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Cloudflare } from '../../lib/cloudflare.mjs';
import { poll, startDaemon } from '../../lib/cove.mjs';

let d;
let b;

before(async () => {
  d = await startDaemon();
  b = new Cloudflare(d);
});
after(() => d?.stop());

const line = (session, text, opts = {}) => b.exec(['eval', text], { session, ...opts });

test('state of a session is kept for its next command', async () => {
  const made = await b.call('POST', '/session', { id: 'work', cwd: '/tmp', env: { A: 'given' } });
  assert.deepEqual([made.status, made.json], [200, { id: 'work' }]);
  assert.equal((await line('work', 'echo $A $PWD $HOME; id -u')).stdout, 'given /tmp /root\n0\n');
  await line('work', 'cd /usr; x=kept; f() { echo "f $1"; }');
  assert.equal((await line('work', 'f $x; pwd')).stdout, 'f kept\n/usr\n');
  assert.equal((await b.exec(['pwd'])).stdout, '/workspace\n', 'a command without one knows nothing of it');
});

test('every argument of a session command stays one argument', async () => {
  const words = ['a b', '$HOME', "it's", '*', 'l1\nl2', ''];
  assert.equal((await b.exec(['printf', '[%s]', ...words], { session: 'work' })).stdout, words.map((w) => `[${w}]`).join(''));
  assert.equal((await b.exec(['no-such-program'], { session: 'work' })).exit, 127);
});

test('the first command with a new session id makes the session, once', async () => {
  const all = await Promise.all(Array.from({ length: 8 }, () => line('lazy', 'n=$((n+1)); echo $n')));
  assert.deepEqual(all.map((r) => Number(r.stdout)).sort((x, y) => x - y), [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.equal((await line('lazy', 'pwd')).stdout, '/workspace\n');
});

test('an id may be 128 long and begin with a dot', async () => {
  for (const id of ['.dot', 's'.repeat(128), 'A._-9']) {
    await line(id, 'v=1');
    assert.equal((await line(id, 'echo $v')).stdout, '1\n', id);
  }
  for (const bad of ['a b', 'a/b', '..', 'a..b', 's'.repeat(129)]) {
    await b.fails(400, 'invalid_request', 'POST', '/exec', { argv: ['true'] }, { headers: { 'session-id': bad } });
    await b.fails(400, 'invalid_request', 'POST', '/session', { id: bad });
  }
});

test('exit, set -e and an unfinished quote end the command and keep the session', async () => {
  await line('hard', 'keep=me');
  assert.equal((await line('hard', 'exit 3')).exit, 3);
  assert.equal((await line('hard', 'set -e; false')).exit, 1);
  assert.notEqual((await line('hard', 'echo "unterminated')).exit, 0);
  assert.notEqual((await line('hard', '}')).exit, 0);
  assert.equal((await line('hard', 'echo $keep')).stdout, 'me\n');
  assert.equal((await line('hard', 'printf "no newline\\0"')).stdout, 'no newline\0');
});

test('a dead shell is replaced', async () => {
  await line('gone', 'x=1; exec true');
  const r = await line('gone', 'echo "[$x]"');
  assert.deepEqual([r.exit, r.stdout], [0, '[]\n']);
});

test('timeout_ms kills the command, keeps the session, and does not apply to the next command', async () => {
  await line('slow', 'y=2');
  const r = await line('slow', 'echo began; sleep 77', { timeout_ms: 300 });
  assert.deepEqual([r.exit, r.stdout], [124, 'began\n']);
  assert.equal((await b.sh('pgrep -fc "sleep 77$"')).stdout, '0\n');
  assert.equal((await line('slow', 'sleep 0.6; echo $y')).stdout, '2\n');
});

test('cwd of one command, in /workspace, is that command\'s', async () => {
  await b.exec(['mkdir', '-p', 'sub']);
  await line('cwd', 'cd /usr');
  assert.equal((await b.exec(['pwd'], { session: 'cwd', cwd: 'sub' })).stdout, '/workspace/sub\n');
  await b.fails(403, 'invalid_request', 'POST', '/exec', { argv: ['pwd'], cwd: '/usr' }, { headers: { 'session-id': 'cwd' } });
});

test('commands of one session run one after another, of two at once', async () => {
  const first = line('q', 'echo begins >>order; until test -e go; do sleep 0.02; done; echo first >>order');
  await poll('the first runs', async () => (await b.sh('cat order')).stdout === 'begins\n');
  const second = line('q', 'echo second >>order');
  assert.equal((await line('p', 'echo other >>order; touch go')).exit, 0);
  assert.deepEqual((await Promise.all([first, second])).map((r) => r.exit), [0, 0]);
  assert.equal((await b.sh('cat order')).stdout, 'begins\nother\nfirst\nsecond\n');
});

test('five megabytes of lines are no trouble', async () => {
  const r = await line('big', 'seq 700000');
  assert.equal(r.out.length, 4788895);
});

test('delete ends a session and its children; unknown and duplicate sessions are errors', async () => {
  await line('del', 'sleep 4444 & true');
  const a = await b.call('DELETE', '/session/del');
  assert.equal(a.status, 200, a.text);
  assert.deepEqual(Object.keys(a.json), ['success', 'sessionId', 'timestamp']);
  assert.deepEqual([a.json.success, a.json.sessionId], [true, 'del']);
  assert.equal((await b.sh('pgrep -fc "sleep 4444$"')).stdout, '0\n');
  await b.fails(502, 'session_error', 'DELETE', '/session/del');
  await b.fails(400, 'invalid_request', 'DELETE', '/session/a..b');
  await b.fails(502, 'session_error', 'POST', '/session', { id: 'work' });
  await b.fails(502, 'session_error', 'POST', '/session', { id: 'nodir', cwd: '/no/such' });
  const made = (await b.call('POST', '/session')).json.id;
  assert.match(made, /^[a-z0-9]+$/);
  assert.equal((await line(made, 'pwd')).stdout, '/workspace\n');
  await new Cloudflare(d).fails(502, 'session_error', 'DELETE', '/session/x');
});

test('a command cut off by the delete of its session fails', async () => {
  const session = 'cut';
  await b.exec(['true'], { session });
  const running = b.sh('echo begun >begun; sleep 60', { session });
  await poll('it runs', async () => (await b.exec(['test', '-s', 'begun'])).exit === 0);
  const queued = b.sh('echo ran >ran', { session });
  const { id } = (await d.get('/v1/sandboxes?limit=100')).sandboxes.find((s) => s.name === b.id);
  await poll('another waits for it', async () => (await d.get(`/v1/sandboxes/${id}/sessions/${session}/commands`)).commands.some((c) => c.state === 'queued'));
  assert.equal((await b.call('DELETE', `/session/${session}`)).status, 200);
  assert.equal((await running).exit, 137);
  const never = await queued;
  assert.deepEqual([never.exit, never.error?.code], [undefined, 'exec_transport_error']);
  assert.equal((await b.exec(['test', '-e', 'ran'])).exit, 1);
});

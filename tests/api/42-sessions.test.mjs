// Sessions: shells that keep their state between commands.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll, startDaemon, within } from '../lib/cove.mjs';
import { openSession } from '../lib/session.mjs';

let d;
let id;
let S;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox()).id;
  S = `/v1/sandboxes/${id}/sessions`;
});
after(() => d?.stop());

const open = (opts) => openSession(d, id, opts);
const alive = async (pid) => (await d.exec(id, `kill -0 ${pid}`, { user: 'root' })).exit_code === 0;

test('a session is created, shown, listed and deleted', async () => {
  const a = await d.call('POST', S, { id: 'first', timeout_ms: 60_000 });
  assert.equal(a.status, 201);
  assert.equal(a.json.id, 'first');
  assert.equal(a.json.state, 'idle');
  assert.equal(a.json.user, 'user');
  assert.equal(a.json.cwd, '/workspace');
  assert.equal(a.json.timeout_ms, 60_000);
  assert.equal(a.json.restart, false);
  assert.ok(a.json.pid > 1);
  assert.deepEqual((await d.get(S)).sessions.map((s) => s.id), ['first']);
  assert.equal((await d.get(`${S}/first`)).pid, a.json.pid);
  assert.equal((await d.call('DELETE', `${S}/first`)).status, 204);
  await d.fails(404, 'not_found', 'GET', `${S}/first`);
  await d.fails(404, 'not_found', 'POST', `${S}/first/exec`, { command: 'true' });
  assert.equal(await alive(a.json.pid), false);
});

test('lists of processes, sessions and terminals are paged without gaps', async () => {
  const box = (await d.sandbox()).id;
  const lists = {
    sessions: (n) => d.post(`/v1/sandboxes/${box}/sessions`, { id: n }),
    terminals: (n) => d.post(`/v1/sandboxes/${box}/terminals`, { id: `t${n}`, command: 'sleep 1000' }),
    processes: (n) => d.post(`/v1/sandboxes/${box}/processes`, { id: `p${n}`, argv: ['sleep', '1000'] }),
  };
  for (const [list, make] of Object.entries(lists)) {
    const url = `/v1/sandboxes/${box}/${list}`;
    for (const n of ['a', 'b', 'c', 'd', 'e']) await make(n);
    const all = await d.get(url);
    const ids = all[list].map((x) => x.id);
    assert.equal(all.next_cursor, null);
    const seen = [];
    for (let cursor = ''; cursor !== null; ) {
      const page = await d.get(`${url}?limit=2${cursor && `&cursor=${cursor}`}`);
      assert.ok(page[list].length <= 2);
      seen.push(...page[list].map((x) => x.id));
      cursor = page.next_cursor;
    }
    assert.deepEqual(seen, ids, list);
    const whole = await d.get(`${url}?limit=${ids.length}`);
    assert.equal(whole.next_cursor, null);
    await d.fails(400, 'invalid', 'GET', `${url}?cursor=nonsense`);
    await d.fails(400, 'invalid', 'GET', `${url}?cursor=zzzzzzzzzzzzzzzzid`);
    await d.fails(400, 'invalid', 'GET', `${url}?limit=0`);
    await d.fails(400, 'invalid', 'GET', `${url}?limit=1001`);
  }
  const sessions = `/v1/sandboxes/${box}/sessions`;
  const first = await d.get(`${sessions}?limit=2`);
  await d.call('DELETE', `${sessions}/b`);
  const rest = await d.get(`${sessions}?cursor=${first.next_cursor}`);
  assert.deepEqual(rest.sessions.map((x) => x.id).slice(-3), ['c', 'd', 'e']);
  await d.call('DELETE', `/v1/sandboxes/${box}`);
});

test('invalid input is refused with a reason and makes no session', async () => {
  await d.fails(400, 'invalid', 'POST', S, { id: 'a/b' });
  await d.fails(400, 'invalid', 'POST', S, { cwd: 'relative' });
  await d.fails(422, 'cannot_start', 'POST', S, { id: 'x', cwd: '/no/such' });
  await d.fails(422, 'cannot_start', 'POST', S, { id: 'x', user: 'nobody-here' });
  const s = await open();
  await d.fails(400, 'invalid', 'POST', `${s.url}/exec`, {});
  await d.fails(400, 'invalid', 'POST', `${s.url}/exec`, { command: 'true', command_base64: 'dHJ1ZQ==' });
  await d.fails(400, 'invalid', 'POST', `${s.url}/exec`, { command_base64: Buffer.from('echo a\0b').toString('base64') });
  await d.fails(400, 'invalid', 'POST', `${s.url}/exec`, { command: 'true', env: { 'a-b': '1' } });
  await d.fails(400, 'invalid', 'POST', `${s.url}/exec`, { command: 'true', id: 'a/b' });
  assert.deepEqual((await d.get(S)).sessions.map((x) => x.id), [s.id]);
  await s.delete();
});

test('a session that failed to start leaves nothing and its id is free', async () => {
  await d.exec(id, 'echo "sleep 1234 & exit 3" > /tmp/ends');
  for (const env of [{ SHELLOPTS: 'noexec' }, { BASH_ENV: '/tmp/ends' }]) {
    const error = await d.fails(422, 'cannot_start', 'POST', S, { id: 'x', env });
    assert.match(error.message, /before it was ready: .*BASH_ENV/);
    await d.fails(404, 'not_found', 'GET', `${S}/x`);
    assert.deepEqual((await d.get(S)).sessions, []);
    assert.equal((await d.exec(id, 'pgrep -fx "sleep 1234"; ls /dev/cove', { user: 'root' })).stdout, '');
    await (await open({ id: 'x' })).delete();
  }
});

for (const [what, program] of [['another program', 'cp /bin/true /bin/bash'], ['another shell', 'cp /bin/dash /bin/bash'], ['a script', 'printf "#!/bin/sh\\nexec /bin/real \\"\\$@\\"\\n" > /bin/bash; chmod 755 /bin/bash']])
  test(`sessions are refused with a reason if bash is ${what}`, async () => {
    const box = (await d.sandbox()).id;
    await d.exec(box, `mv /bin/bash /bin/real; ${program}`, { user: 'root' });
    const error = await d.fails(422, 'cannot_start', 'POST', `/v1/sandboxes/${box}/sessions`, {});
    assert.match(error.message, /^the session could not be started: \/bin\/bash exited with 127 before it was ready: it must be bash 5.1/);
    await d.call('DELETE', `/v1/sandboxes/${box}`);
  });

test('options of bash that a session\'s env names are on in it', async () => {
  const s = await open({ env: { SHELLOPTS: 'errexit:nounset', BASHOPTS: 'nullglob' } });
  assert.equal(await s.out('echo $-; shopt -q nullglob; echo no-such-*'), 'ehuB\n\n');
  const a = await s.exec('false; echo no');
  assert.deepEqual([a.exit_code, a.stdout, a.session], [1, '', 'running']);
  await s.delete();
});

test('BASH_ENV is read where the session begins, and may go elsewhere', async () => {
  await d.exec(id, 'mkdir -p /tmp/begins/there; echo "was=\\$PWD; cd there" > /tmp/begins/env.sh');
  const s = await open({ cwd: '/tmp/begins', env: { BASH_ENV: './env.sh' } });
  assert.equal(await s.out('echo "$was $PWD $(pwd) $OLDPWD"'), '/tmp/begins /tmp/begins/there /tmp/begins/there /tmp/begins\n');
  assert.equal(await s.out('echo "$0 $BASH_SOURCE ${#FUNCNAME[@]}"; f() { echo "${BASH_SOURCE[@]} ${FUNCNAME[@]}"; }; f'), 'bash bash 0\nbash bash f main\n');
  assert.match((await s.exec('no-such-command')).stderr, /^bash: line 1: no-such-command: /);
  await s.delete();
});

test('shell state is kept for the next command', async () => {
  const s = await open({ env: { GIVEN: 'at the start' } });
  await s.exec('cd /usr/lib; plain=1; export EXPORTED=2; arr=(a b "c d"); f() { echo "f: $1"; }; alias hi="echo alias"; set -o pipefail; shopt -s nullglob; umask 027');
  assert.equal(
    await s.out('pwd; echo $plain $EXPORTED ${arr[2]} "$GIVEN"; f x; hi; set -o | grep pipefail; shopt nullglob; umask; bash -c "echo \\$EXPORTED [\\$plain]"'),
    '/usr/lib\n1 2 c d at the start\nf: x\nalias\npipefail       \ton\nnullglob       \ton\n0027\n2 []\n',
  );
  assert.equal((await s.get()).cwd, '/usr/lib');
  await s.exec('shopt -s extglob');
  assert.equal(await s.out('case foobar in foo@(bar|baz)) echo yes;; esac'), 'yes\n');
  await s.exec('sleep 1000 & echo $! > /tmp/bg');
  assert.match(await s.out('jobs -l; kill -0 $(cat /tmp/bg) && kill $!; wait $!; echo $?'), /Running.*sleep 1000[^]*143\n$/);
  await s.exec('false');
  assert.equal(await s.out('echo $?'), '1\n');
  assert.equal(await s.out('echo $?'), '0\n');
  await s.delete();
});

test('output is verbatim, and the two streams are apart', async () => {
  const s = await open();
  const a = await s.exec('printf "no newline"; printf "to\\n\\nerr" >&2');
  assert.equal(a.stdout, 'no newline');
  assert.equal(a.stderr, 'to\n\nerr');
  assert.equal(a.exit_code, 0);
  assert.equal(a.session, 'running');
  const b = await s.exec("printf 'a\\0b\\377'");
  assert.equal(b.stdout_encoding, 'base64');
  assert.deepEqual(Buffer.from(b.stdout, 'base64'), Buffer.from([97, 0, 98, 255]));
  const c = await d.post(`${s.url}/exec`, { command_base64: Buffer.from([...Buffer.from("printf '"), 0xff, 0xfe, ...Buffer.from("'")]).toString('base64') });
  assert.deepEqual(Buffer.from(c.stdout, 'base64'), Buffer.from([0xff, 0xfe]));
  assert.equal((await s.exec('exit_with() { return 7; }; exit_with')).exit_code, 7);
  await s.delete();
});

test('stdin of a session command is the given bytes, or EOF', async () => {
  const s = await open();
  assert.equal((await s.exec('read x; echo "[$x] $?"')).stdout, '[] 1\n');
  assert.equal((await s.exec('read x; echo "[$x]"; cat', { stdin: 'one\ntwo\nthree' })).stdout, '[one]\ntwo\nthree');
  assert.equal((await s.exec('cat | wc -c', { stdin: '' })).stdout, '0\n');
  const big = 'x'.repeat(3 << 20);
  assert.equal((await s.exec('cat | wc -c', { stdin: big })).stdout, `${big.length}\n`);
  assert.equal((await s.exec('cat')).stdout, '');
  await s.delete();
});

test('cwd and env of one command do not stick', async () => {
  const s = await open();
  await s.exec('cd /usr; A=mine; ln -sfn /usr/lib /tmp/link; cd /tmp/link; cd /usr; cd -');
  assert.equal(await s.out('pwd; echo $A $B; sh -c "echo \\$B"', { cwd: '/etc', env: { A: "it's", B: '$(x)' } }), "/etc\nit's $(x)\n$(x)\n");
  assert.equal(await s.out('pwd; echo [$A] [$B]; cd - '), '/tmp/link\n[mine] []\n/usr\n');
  const bad = await s.exec('echo ran', { cwd: '/no/such' });
  assert.equal(bad.exit_code, 1);
  assert.equal(bad.stdout, '');
  assert.match(bad.stderr, /no\/such: No such file/);
  assert.equal(await s.out("pwd; set | grep -c ^__cove"), '/usr\n0\n');
  await s.exec("echo 'open quote", { cwd: '/etc', env: { X: '1' } });
  assert.equal(await s.out('pwd'), '/usr\n');
  assert.equal((await s.exec('cd /var; exit 3', { cwd: '/etc' })).session, 'ended');
  await s.delete();
});

test('commands of a session run one after the other, sessions side by side', async () => {
  const s = await open();
  const t = await open();
  await d.exec(id, 'rm -f /tmp/gate; mkfifo /tmp/gate; chmod 666 /tmp/gate', { user: 'root' });
  const first = s.exec('read x < /tmp/gate; echo first; n=1', { id: 'one' });
  await poll('first runs', async () => (await s.get()).command === 'one');
  const second = s.exec('n=$((n + 1)); echo second $n', { id: 'two' });
  const third = s.exec('echo third $n', { id: 'three' });
  await poll('two wait', async () => (await s.get()).queued === 2);
  assert.equal((await s.command('two')).state, 'queued');
  assert.equal((await s.get()).state, 'busy');
  assert.equal(await t.out('echo other'), 'other\n');
  assert.deepEqual((await d.get(`${s.url}/commands`)).commands.map((c) => [c.id, c.state]), [['one', 'running'], ['two', 'queued'], ['three', 'queued']]);
  await d.exec(id, 'echo go > /tmp/gate');
  assert.deepEqual([(await first).stdout, (await second).stdout, (await third).stdout], ['first\n', 'second 2\n', 'third 2\n']);
  await d.fails(409, 'conflict', 'POST', `${s.url}/exec`, { command: 'true', id: 'one' });
  await s.delete();
  await t.delete();
});

test('queued commands run in order, small and large', async () => {
  const s = await open();
  const sizes = [0, 1, 5000, 70_000, 300_000];
  await d.exec(id, 'rm -f /tmp/gate; mkfifo /tmp/gate; chmod 666 /tmp/gate', { user: 'root' });
  const first = s.exec('read x < /tmp/gate; n=0');
  await poll('it runs', async () => (await s.get()).command !== null);
  const all = [];
  for (let i = 0; i < 40; i++) {
    all.push(s.exec(`v=${'x'.repeat(sizes[i % 5])}; n=$((n + 1)); echo $n ` + '${#v}'));
    await poll('it waits', async () => (await s.get()).queued === i + 1);
  }
  await d.exec(id, 'echo go > /tmp/gate');
  await first;
  assert.deepEqual((await Promise.all(all)).map((a) => a.stdout), all.map((_, i) => `${i + 1} ${sizes[i % 5]}\n`));
  await s.delete();
});

test('a background child does not delay the command, and its later output is kept', async () => {
  const s = await open();
  await d.exec(id, 'rm -f /tmp/late; mkfifo /tmp/late; chmod 666 /tmp/late', { user: 'root' });
  const a = await within(5000, 'bg', s.exec('(read x < /tmp/late; echo later $x) & echo now', { id: 'bg' }));
  assert.equal(a.stdout, 'now\n');
  assert.equal(await s.out('echo next'), 'next\n');
  await d.exec(id, 'echo word > /tmp/late');
  const page = await poll('the rest', async () => {
    const p = await d.get(`${s.url}/commands/bg/output`);
    return p.chunks.map((c) => c.data).join('') === 'now\nlater word\n' && p;
  });
  assert.equal(page.exited, true);
  assert.equal((await d.get(`${s.url}/commands/bg/output?since=4`)).chunks[0].data, 'later word\n');
  await s.delete();
});

test('a timeout kills the processes of its command only; the shell keeps its state', async () => {
  const s = await open();
  await s.exec('v=kept; cd /usr; sleep 1000 & echo $! > /tmp/earlier; disown');
  const earlier = (await d.exec(id, 'cat /tmp/earlier')).stdout.trim();
  const a = await s.exec('echo before; setsid sleep 1001 & (trap "" TERM INT; echo $BASHPID > /tmp/child; sleep 1002); echo after', { timeout_ms: 300 });
  assert.equal(a.exit_code, 124);
  assert.equal(a.timed_out, true);
  assert.equal(a.interrupted, false);
  assert.equal(a.session, 'running');
  assert.match(a.stdout, /^before\n$/);
  assert.equal((await d.exec(id, 'pgrep -f "^sleep 100[12]"')).stdout, '');
  assert.equal(await alive(earlier), true);
  assert.equal(await s.out('echo $v; pwd'), 'kept\n/usr\n');
  for (const spin of ['while :; do :; done', 'while :; do sleep 0.01; done', 'sleep 1000 | cat', 'x=$(sleep 1000)', 'f() { sleep 1000; }; f', 'read x < <(sleep 1000)'])
    assert.equal((await s.exec(spin, { timeout_ms: 200 })).exit_code, 124, spin);
  assert.equal(await s.out('echo $v; echo fine'), 'kept\nfine\n');
  assert.equal(await alive(earlier), true);
  await s.delete();
  assert.equal(await alive(earlier), false);
});

test('a default timeout is the session\'s, and one of a call is that call\'s', async () => {
  const s = await open({ timeout_ms: 300 });
  assert.equal((await s.exec('sleep 1000')).exit_code, 124);
  assert.equal((await s.exec('sleep 0.5; echo done', { timeout_ms: 20_000 })).stdout, 'done\n');
  assert.equal((await s.exec('sleep 1000')).exit_code, 124);
  await s.delete();
});

test('an interrupt ends the running command with 130', async () => {
  const s = await open();
  assert.deepEqual(await s.interrupt(), { interrupted: false });
  const run = s.exec('v=1; echo started; sleep 1000', { id: 'long' });
  await poll('output', async () => (await s.command('long')).output_end > 0);
  assert.deepEqual(await s.interrupt(), { interrupted: true });
  const a = await run;
  assert.equal(a.exit_code, 130);
  assert.equal(a.interrupted, true);
  assert.match(a.stdout, /^started\n/);
  assert.equal(await s.out('echo $v'), '1\n');
  await s.delete();
});

test('a command that ignores its interrupt ends the shell, and the session reports that', async () => {
  const s = await open();
  const a = await s.exec('trap "" RTMAX; while :; do :; done', { timeout_ms: 200 });
  assert.equal(a.exit_code, 124);
  assert.equal(a.session, 'ended');
  const r = await s.get();
  assert.equal(r.state, 'ended');
  assert.match(r.reason, /did not come back/);
  await s.gone();
  await s.delete();
});

test('exit ends the session, with its code, and it is never replaced', async () => {
  const s = await open({ id: 'leaver' });
  const waits = s.exec('sleep 0.3; exit 3');
  const waiting = d.call('POST', `${s.url}/exec`, { command: 'echo never' });
  const a = await waits;
  assert.equal(a.exit_code, 3);
  assert.equal(a.session, 'ended');
  assert.equal((await waiting).status, 410);
  const r = await s.get();
  assert.equal(r.state, 'ended');
  assert.equal(r.exit_code, 3);
  assert.match(r.reason, /exited with 3/);
  await s.gone();
  await d.fails(410, 'gone', 'POST', `${s.url}/interrupt`);
  await d.fails(409, 'conflict', 'POST', S, { id: 'leaver' });
  assert.ok((await d.get(S)).sessions.some((x) => x.id === 'leaver'));
  await s.delete();
  assert.equal((await open({ id: 'leaver' })).id, 'leaver');
  await d.call('DELETE', `${S}/leaver`);
});

test('exit 1 ends the session, though an error of arithmetic or a variable that is not set looks like it', async () => {
  const calls = [['exit 1'], ['false || exit 1'], ['die() { exit 1; }', 'die'], ['a[1+]=1', 'exit 1'], ['set -u; echo $no', 'exit 1'], ['a[1+]=1', 'die() { exit 1; }', 'die']];
  for (const texts of calls) {
    const s = await open();
    const said = [];
    for (const t of texts) said.push((await s.exec(t)).session);
    assert.deepEqual(said, texts.map((t, i) => (i + 1 < texts.length ? 'running' : 'ended')), texts.join(' / '));
    await s.delete();
  }
});

test('the last word of a shell is heard although its end is known first', async () => {
  const busy = await Promise.all([0, 1, 2].map(() => open()));
  const spins = busy.map((s) => s.exec('while :; do (:); done'));
  for (let i = 0; i < 60; i += 6)
    await Promise.all(
      Array.from({ length: 6 }, async () => {
        const s = await open();
        assert.equal((await s.exec('exit 3')).exit_code, 3);
        assert.match((await s.get()).reason, /exited with 3/);
        await s.delete();
      }),
    );
  for (const s of busy) await s.interrupt();
  await Promise.all(spins);
  for (const s of busy) await s.delete();
});

test('background children of a shell that exits live until the session is deleted', async () => {
  for (const end of ['exit 3', 'set -e; [[ 1 == 2 ]]; exit 3', 'kill -9 $BASHPID']) {
    const s = await open();
    const pid = (await s.exec(`sleep 1000 & echo $!; ${end}`)).stdout.trim();
    assert.equal(await alive(pid), true, end);
    await s.delete();
    assert.equal(await alive(pid), false, end);
  }
});

test('with restart an exit ends the command only, and the state is there', async () => {
  const s = await open({ restart: true });
  await s.exec('v=1; f() { echo f; }; cd /usr');
  for (const code of [3, 0, 1, 127]) {
    const a = await s.exec(`v=$((v + 1)); exit ${code}`);
    assert.equal(a.exit_code, code);
    assert.equal(a.session, 'running');
  }
  assert.equal(await s.out('echo $v; f; pwd'), '5\nf\n/usr\n');
  assert.equal((await s.get()).restarts, 4);
  await s.delete();
});

/** What ends a bash that runs a script, with its status. */
const ENDS = {
  'exit 3': 3,
  'f() { local v=0; exit 3; }; f': 3,
  'f() { exit 3; }; for i in 1; do f >/dev/null; done': 3,
  'eval "exit 3"': 3,
  '. /tmp/exits': 3,
  'trap "exit 3" USR1; kill -USR1 $$': 3,
  'set -e; false': 1,
  'set -e; f() { local v=0; false; }; f': 1,
  'set -e; f() { eval false; }; g() { f 5>/dev/null; }; g 2>/dev/null': 1,
  'set -e; f() { . /tmp/fails; }; f': 1,
  'set -e -o pipefail; false | true': 1,
  'set -e; trap "false" USR1; kill -USR1 $$; echo no': 1,
  'set -e; (exit 4)': 4,
  'set -u; echo $no_such': 1,
  'set -u; f() { local v=0; echo $no_such; }; f': 1,
  'set -eu; echo $no_such': 1,
  'set -eu; f() { local v=0; eval "echo \\$no_such"; }; f': 1,
  'echo ${no_such:?gone}': 1,
  'set -e; echo ${no such}': 1,
  'exec no-such-program': 127,
  'exec /etc': 126,
  'set -o posix; . /no/such': 1,
};
for (const [command, code] of Object.entries(ENDS))
  test(`the shell keeps its jobs and state after ${command}`, async () => {
    const s = await open({ restart: true });
    await d.exec(id, 'echo "exit 3" > /tmp/exits; echo false > /tmp/fails');
    await s.exec('sleep 1000 & v=42; set -- p q; trap "echo usr2" USR2; trap ":" EXIT; kept() { echo kept; }');
    const known = 'set +eu +o posix +o pipefail; trap - USR1; echo $$ $BASHPID $BASH_SUBSHELL $v $# ${#FUNCNAME[@]}; jobs; kill -USR2 $$; trap -p; kept; local no; ls /proc/$$/fd > /tmp/fds; wc -l < /tmp/fds';
    const before = await s.out(known);
    assert.match(before, /^(\d+) \1 0 42 2 0\n\[1\].*Running.*sleep 1000 &\nusr2\n/);
    for (let i = 1; i <= 3; i++) {
      const a = await within(10_000, 'the command', s.exec(`${command}; echo not this`));
      assert.deepEqual([a.exit_code, a.session, a.stdout], [code, 'running', '']);
      assert.doesNotMatch(a.stderr, /cove|pop_|context/);
      assert.equal(await s.out('echo $?'), `${code}\n`);
      assert.equal((await s.exec('r() { (exit 5); return; }; r')).exit_code, 5);
      assert.equal((await s.exec('set +e; true\n\nno-such-command')).stderr, 'bash: line 3: no-such-command: command not found\n');
      assert.equal(await s.out(known), before);
    }
    assert.equal(await s.out('kill %1; wait %1; echo $?'), '143\n');
    assert.ok((await s.get()).restarts >= 3);
    await s.delete();
  });

test('a thousand commands that exit leak no process, fd or memory', async () => {
  const s = await open({ restart: true });
  const left = 'pgrep -c -x bash; ls /proc/$$/fd > /tmp/fds; wc -l < /tmp/fds; grep VmRSS /proc/$$/status | tr -dc 0-9';
  const ways = ['exit 3', 'f() { local q=7; exit 3; }; f >/dev/null', 'set -e; (exit 3)', 'set +e; set -u; : $no; exit 3'];
  for (const w of ways) await s.exec(w);
  const [bashes, fds, rss] = (await s.out(`set +eu; ${left}`)).split('\n');
  await s.exec('v=0');
  for (let i = 0; i < 1000; i++) await s.exec(`set +eu; v=$((v + 1)); ${ways[i % 4]}`);
  for (let i = 0; i < 10; i++) await s.exec('v=$((v + 1)); sleep 100', { timeout_ms: 10 });
  const after = (await s.out(`set +eu; echo $v; ${left}`)).split('\n');
  assert.deepEqual(after.slice(0, 3), ['1010', bashes, fds]);
  assert.ok(Number(after[3]) < Number(rss) + 1024, `${rss} KiB, then ${after[3]}`);
  assert.equal(await s.out('echo $BASHPID'), `${(await s.get()).pid}\n`);
  await s.delete();
});

test('an EXIT trap runs when the shell exits, for as long as the command may, and has the last word', async () => {
  let s = await open();
  await s.exec('trap "echo bye; exit 5" EXIT; set -e');
  assert.deepEqual(await s.exec('false').then((a) => [a.exit_code, a.stdout, a.session]), [1, '', 'running']);
  assert.deepEqual(await s.exec('exit 3').then((a) => [a.exit_code, a.stdout, a.session]), [5, 'bye\n', 'ended']);
  assert.match((await s.get()).reason, /exited with 5/);
  await s.delete();
  s = await open();
  await s.exec('trap "sleep 1.5; echo slept" EXIT');
  assert.deepEqual(await s.exec('exit 3').then((a) => [a.exit_code, a.stdout]), [3, 'slept\n']);
  await s.delete();
  s = await open();
  await s.exec('trap "sleep 1000" EXIT');
  assert.deepEqual(await within(10_000, 'the command', s.exec('exit 3', { timeout_ms: 100 })).then((a) => [a.exit_code, a.session]), [124, 'ended']);
  await s.delete();
});

test('children of a command that ended its shell survive a later timeout', async () => {
  const s = await open({ restart: true });
  await s.exec('exit 1');
  await s.exec('sleep 1000 & echo $! >/tmp/left; exit 1');
  assert.equal((await s.exec('sleep 1000', { timeout_ms: 100 })).timed_out, true);
  assert.equal(await s.out('kill -0 "$(</tmp/left)" && echo alive'), 'alive\n');
  await s.delete();
});

test('set -e and set -u end the command and stay set in the session', async () => {
  const s = await open();
  await s.exec('v=1');
  let a = await s.exec('set -e; v=2; false; echo no');
  assert.deepEqual([a.exit_code, a.stdout, a.session], [1, '', 'running']);
  a = await s.exec('echo $v $-; ls /no/such 2>/dev/null; echo no');
  assert.match(a.stdout, /^2 \S*e/);
  assert.deepEqual([a.exit_code, a.session], [2, 'running']);
  assert.equal(await s.out('set +e; false; echo on'), 'on\n');
  a = await s.exec('set -u; echo $no_such; echo no');
  assert.deepEqual([a.stdout, a.session], ['', 'running']);
  assert.notEqual(a.exit_code, 0);
  assert.match(a.stderr, /no_such: unbound variable/);
  assert.match(await s.out('echo $-; echo $v'), /u[^]*2\n/);
  await s.delete();
});

test('a shell that is replaced, killed or exits ends the session with the reason', async () => {
  const cases = [
    ['exec true', /exited with 0/],
    ['exec sh -c "exit 5"', /exited with 5/],
    ['kill -9 $$', /signal 9/],
    ['kill $$', /signal 15/],
    ['trap "echo bye > /tmp/bye" EXIT; exit 4', /exited with 4/],
    ['set -n', /no longer runs commands \(set -n\)/],
  ];
  for (const [command, why] of cases) {
    const s = await open();
    const a = await s.exec(command);
    assert.equal(a.session, 'ended', command);
    assert.match((await s.get()).reason, why, command);
    await s.gone();
    await s.delete();
  }
});

test('concurrent creates of one id make exactly one shell', async () => {
  const all = await Promise.all(Array.from({ length: 30 }, () => d.call('POST', S, { id: 'same' })));
  assert.deepEqual([...new Set(all.map((a) => a.status))].sort(), [201, 409]);
  assert.equal(all.filter((a) => a.status === 201).length, 1);
  assert.equal((await d.get(S)).sessions.length, 1);
  await d.call('DELETE', `${S}/same`);
});

test('a session command can be streamed as it runs', async () => {
  const s = await open();
  await d.exec(id, 'rm -f /tmp/gate2; mkfifo /tmp/gate2; chmod 666 /tmp/gate2', { user: 'root' });
  const events = [];
  for await (const ev of await d.sse(`${s.url}/exec`, { method: 'POST', body: { command: 'echo one; read x < /tmp/gate2; echo two >&2; exit 6', id: 'st' } })) {
    events.push([ev.event, ev.data]);
    if (ev.event === 'stdout') await d.exec(id, 'echo > /tmp/gate2');
  }
  assert.deepEqual(events.map((e) => e[0]), ['start', 'stdout', 'stderr', 'exit']);
  assert.equal(events[0][1].id, 'st');
  assert.equal(events[3][1].exit_code, 6);
  assert.equal(events[3][1].session, 'ended');
  await s.delete();
});

test('a command continues when its client disconnects, and its result can be read by id', async () => {
  const s = await open();
  await d.exec(id, 'rm -f /tmp/gate3; mkfifo /tmp/gate3; chmod 666 /tmp/gate3', { user: 'root' });
  const looker = await d.sse(`${s.url}/exec`, { method: 'POST', body: { command: 'echo a; read x < /tmp/gate3; echo b; v=9', id: 'kept' } });
  await poll('runs', async () => (await s.get()).command === 'kept');
  looker.close();
  await d.exec(id, 'echo > /tmp/gate3');
  const c = await d.post(`${s.url}/commands/kept/wait`, { timeout_ms: 10_000 });
  assert.equal(c.state, 'done');
  assert.equal(c.exit.code, 0);
  const page = await d.get(`${s.url}/commands/kept/output`);
  assert.equal(page.chunks.map((x) => x.data).join(''), 'a\nb\n');
  assert.equal(await s.out('echo $v'), '9\n');
  await d.fails(404, 'not_found', 'GET', `${s.url}/commands/none`);
  await s.delete();
});

test('only the last commands are kept', async () => {
  const s = await open();
  for (let i = 0; i < 40; i++) await s.exec('true', { id: `k${i}` });
  const kept = (await d.get(`${s.url}/commands`)).commands.map((c) => c.id);
  assert.equal(kept.length, 32);
  assert.equal(kept[31], 'k39');
  await s.delete();
});

test('too many sessions, and too many commands that wait, are refused', async () => {
  const box = (await d.sandbox()).id;
  const all = [];
  for (let i = 0; i < 64; i++) all.push(await openSession(d, box));
  await d.fails(429, 'limit', 'POST', `/v1/sandboxes/${box}/sessions`, {});
  await all[1].delete();
  all[1] = await openSession(d, box);
  const s = all[0];
  const running = s.exec('sleep 1000', { id: 'blocker' });
  await poll('runs', async () => (await s.get()).command === 'blocker');
  const waiting = Array.from({ length: 64 }, (_, i) => d.call('POST', `${s.url}/exec`, { command: `echo ${i}` }));
  await poll('all wait', async () => (await s.get()).queued === 64);
  await d.fails(429, 'limit', 'POST', `${s.url}/exec`, { command: 'true' });
  await s.interrupt();
  assert.equal((await running).exit_code, 130);
  assert.deepEqual((await Promise.all(waiting)).map((a) => a.json.stdout), Array.from({ length: 64 }, (_, i) => `${i}\n`));
  await d.call('DELETE', `/v1/sandboxes/${box}`);
});

test('of ended sessions the last 64 stay known', async () => {
  const box = (await d.sandbox()).id;
  const url = `/v1/sandboxes/${box}/sessions`;
  const lives = await openSession(d, box, { id: 'lives' });
  for (let i = 0; i < 66; i++) assert.equal((await (await openSession(d, box, { id: `e${i}` })).exec('exit 1')).exit_code, 1);
  const ended = async () => (await d.get(url)).sessions.filter((s) => s.state === 'ended').map((s) => s.id);
  await poll('two are forgotten', async () => (await ended()).length === 64);
  assert.deepEqual(await ended(), Array.from({ length: 64 }, (_, i) => `e${i + 2}`));
  await d.fails(404, 'not_found', 'GET', `${url}/e1`);
  await d.fails(410, 'gone', 'POST', `${url}/e2/exec`, { command: 'true' });
  assert.equal(await lives.out('echo on'), 'on\n');
  await d.call('DELETE', `/v1/sandboxes/${box}`);
});

test('the texts that wait in all sessions are at most 64 MiB', async () => {
  const box = (await d.sandbox()).id;
  const a = await openSession(d, box);
  const b = await openSession(d, box);
  const text = `: ${'x'.repeat(10_000_000)}; echo ran`;
  const gate = a.exec('sleep 1000');
  const other = b.exec('sleep 1000');
  await poll('both run', async () => (await a.get()).command !== null && (await b.get()).command !== null);
  const waiting = [];
  let refused = null;
  for (let i = 0; refused === null && i < 8; i++) {
    const s = i % 2 ? a : b;
    const call = d.call('POST', `${s.url}/exec`, { command: text });
    await poll('it waits or is refused', async () => {
      refused = await Promise.race([call, null]);
      return refused !== null || (await a.get()).queued + (await b.get()).queued === waiting.length + 1;
    });
    if (refused === null) waiting.push(call);
  }
  assert.equal(refused?.status, 429);
  assert.equal(refused.json.error.code, 'limit');
  assert.ok(waiting.length >= 3 && waiting.length <= 6, `${waiting.length} of 10 MB waited`);
  await a.interrupt();
  await b.interrupt();
  await Promise.all([gate, other]);
  for (const call of waiting) assert.equal((await call).json.stdout, 'ran\n');
  assert.equal(await a.out(text), 'ran\n'); // there is room again
  await d.call('DELETE', `/v1/sandboxes/${box}`);
});

test('the state for a process is at most 4 MiB, and one that is larger is refused', async () => {
  const s = await open();
  await s.exec("printf -v big '%3000000s' x");
  const p = await d.post(`${s.url}/processes`, { command: 'echo ${#big}' });
  await d.post(`/v1/sandboxes/${id}/processes/${p.id}/wait`, { timeout_ms: 20_000 });
  assert.equal((await d.get(`/v1/sandboxes/${id}/processes/${p.id}/logs`)).chunks.map((c) => c.data).join(''), '3000000\n');
  await s.exec("printf -v more '%3000000s' x");
  const e = await d.fails(413, 'too_large', 'POST', `${s.url}/processes`, { command: 'true' });
  assert.match(e.message, /more than 4194304 bytes/);
  assert.equal(await s.out('echo ${#more}'), '3000000\n');
  await s.delete();
});

test('a process starts from the state of the session and writes nothing back', async () => {
  const s = await open();
  await s.exec('cd /usr; plain="two words"; export EX=1; arr=(x y); f() { echo "f $plain"; }; alias al="echo aliased"; set -o pipefail; shopt -s extglob; umask 077');
  const run = async (body) => {
    const p = await d.post(`${s.url}/processes`, body);
    const end = await d.post(`/v1/sandboxes/${id}/processes/${p.id}/wait`, { timeout_ms: 20_000 });
    const page = await d.get(`/v1/sandboxes/${id}/processes/${p.id}/logs`);
    return { ...p, code: end.code, text: page.chunks.map((c) => c.data).join('') };
  };
  const a = await run({ command: 'pwd; f; al; echo ${arr[1]} $EX; set -o | grep pipefail; shopt extglob; umask; plain=changed; cd /; exit 4', id: 'snap' });
  assert.equal(a.text, '/usr\nf two words\naliased\ny 1\npipefail       \ton\nextglob        \ton\n0077\n');
  assert.equal(a.code, 4);
  assert.deepEqual((await d.get(`/v1/sandboxes/${id}/processes/snap`)).argv, ['pwd; f; al; echo ${arr[1]} $EX; set -o | grep pipefail; shopt extglob; umask; plain=changed; cd /; exit 4']);
  assert.equal(await s.out('pwd; echo $plain'), '/usr\ntwo words\n');
  assert.equal((await run({ argv: ['f'], cwd: '/etc', env: { plain: "it's" } })).text, "f it's\n");
  assert.equal((await run({ argv: ['env'], env: { NEWVAR: 'x y' } })).text.match(/^NEWVAR=.*$/m)[0], 'NEWVAR=x y');
  const ctl = s.exec('sleep 0.3; late=yes');
  assert.equal((await run({ command: 'echo $late' })).text, 'yes\n');
  await ctl;
  const e = await s.exec('set -eu; x=1');
  assert.equal(e.exit_code, 0);
  assert.equal((await run({ command: 'echo $-' })).text.match(/e.*u|u.*e/) !== null, true);
  await s.delete();
});

test('deleting a session ends its running command and all background children', async () => {
  const s = await open();
  await s.exec('sleep 2000 & setsid sleep 2001 &');
  const run = d.call('POST', `${s.url}/exec`, { command: 'sleep 2002' });
  await poll('runs', async () => (await s.get()).state === 'busy');
  assert.equal((await within(5000, 'delete', s.delete())).status, 204);
  const a = await run;
  assert.ok(a.status === 410 || a.json.session === 'ended', JSON.stringify(a.json));
  assert.equal((await d.exec(id, 'pgrep -f "^sleep 200[012]"')).stdout, '');
});

test('deleting a session during an interrupt does not affect other sessions', async () => {
  const box = (await d.sandbox()).id;
  const before = await openSession(d, box);
  const one = async (i) => {
    const s = await openSession(d, box);
    const run = d.call('POST', `${s.url}/exec`, { command: 'sleep 1000 | cat', timeout_ms: 20 + i });
    await new Promise((r) => setTimeout(r, 15 + 2 * (i % 20))); // at many moments of it: no event tells of each
    await within(5000, 'delete', s.delete());
    await run;
  };
  for (let i = 0; i < 60; i += 6) await Promise.all([0, 1, 2, 3, 4, 5].map((k) => one(i + k)));
  assert.equal(await before.out('echo lives'), 'lives\n');
  await d.call('DELETE', `/v1/sandboxes/${box}`);
});

test('another user\'s session has its own shell, and root its own home', async () => {
  const s = await open({ user: 'root', env: { HOME: '/root' } });
  assert.equal(await s.out('id -un; cd; pwd'), 'root\n/root\n');
  await s.delete();
});

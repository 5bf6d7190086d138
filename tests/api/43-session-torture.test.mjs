// Hostile commands in a session: none of them blocks the session, loses its state, or prints
// text of ours.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon, within } from '../lib/cove.mjs';
import { openSession } from '../lib/session.mjs';

let d;
let id;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox()).id;
});
after(() => d?.stop());

const SETUP = 'v=42; fn() { echo fn; }; alias al="echo alias"; export EX=1; arr=(1 2 3); cd /usr';
const PROBE = '\\echo "$v $EX ${arr[2]} $PWD"; fn; al';
const ALL = '42 1 3 /usr\nfn\nalias\n';

/** The command, what it ends with, and where it matters what it prints and what the next call does. */
const KEPT = [
  ["echo 'open quote", 2],
  ['echo "open $(', 2],
  ['cat <<E', 0],
  ['cat <<E\nhi\nE', 0, { out: 'hi\n' }],
  ["cat <<'E'\n$v ' \" \\\nE\n", 0, { out: "$v ' \" \\\n" }],
  ['echo a \\', 0, { out: 'a \\\n' }],
  ['}', 2],
  [')', 2],
  [';;', 2],
  ['fi; done; esac', 2],
  ['echo crlf\r\n', 0, { out: 'crlf\r\n' }],
  ['# only a comment', 0],
  ['\n\n', 0],
  ['exec 1>&-; echo x', 1, { out: '' }],
  ['exec 0<&- 1>&- 2>&-', 0],
  ['for i in {0..255}; do eval "exec $i>&-"; done', 0],
  ['exec > /tmp/torture-out; echo x', 0, { out: '' }],
  ['exec 5> /dev/null; exec 200< /dev/null', 0],
  ["trap 'echo bye' EXIT", 0, { out: '' }],
  ["trap 'echo err' ERR; false", 1, { out: 'err\n' }],
  ["trap 'echo ret' RETURN", 0, { out: '' }],
  ["set -E; trap 'echo E' ERR; false", 1, { out: 'E\n' }],
  ['read x; echo "got=$x"', 0, { out: 'got=\n' }],
  ['umask 777', 0],
  ['ulimit -n 20', 0],
  ['ulimit -f 0', 0],
  ['ulimit -c 0; ulimit -s 1024', 0],
  ['IFS=0123456789abcdef/.', 0],
  ["PS4='$(echo traced >&2) '; set -x; :", 0],
  ["PROMPT_COMMAND='echo pc'; PS1=x", 0, { out: '' }],
  ['unset PATH', 0],
  ['eval() { echo fake; }', 0],
  ['builtin() { echo fake; }', 0],
  ['builtin() { command builtin "$@"; }', 0],
  ['command() { echo fake; }; test() { return 1; }; local() { return 0; }; source() { :; }; .() { :; }', 0],
  ['trap() { echo no; }; exit() { echo no; }; read() { :; }; printf() { :; }; exec() { :; }', 0],
  ['alias .=echo eval=echo builtin=echo if=echo until=echo then=echo', 0],
  ['a["no number"]=1; echo no', 1, { out: '' }],
  ['declare -i n; n=1.5; echo no', 1, { out: '' }],
  ['bad() { local -i n=1+; }; for i in 1; do bad; done; echo no', 1, { out: '' }],
  ['break; echo on', 0, { out: 'on\n' }],
  ['continue 5; echo on', 0, { out: 'on\n' }],
  ['return 5; echo on', 0, { out: 'on\n' }],
  ['(exit 3)', 3],
  ['f2() { return 7; }; f2', 7],
  ['set -o posix', 0],
  ["set -o posix; echo 'open", 2],
  ['set -C', 0],
  ['set -f', 0],
  ['set -k', 0],
  ['set -a', 0],
  ['set -m', 0],
  ['set -b; set -h; set -v', 0],
  ['set -t', 0],
  ['set -- a b c', 0],
  ['shopt -s failglob; ls nope*', 1],
  ['shopt -s nullglob dotglob extglob globstar', 0],
  ['cd /tmp && mkdir -p zz && cd zz && rmdir ../zz && cd /usr', 0],
  ['TMPDIR=/nonexistent; HOME=/nonexistent', 0],
  ['readonly IFS PATH HOME BASHPID', 0],
  ['unset BASHPID FUNCNAME LINENO BASH_SUBSHELL', 0],
  ['BASH_ARGV0=foo', 0],
  ['readonly RO=1; RO=2; echo after', 1, { out: '' }],
  ['kill -STOP $$', 0],
  ['jobs; wait; disown -a; fc -l; suspend', 1],
  ['logout', 1],
  ['coproc cat', 0],
  ['sleep 100 & echo bg', 0, { out: 'bg\n' }],
  ['LC_ALL=C; LANG=C', 0],
  ['[[ a =~ ( ]]', 2],
  ['enable -n test local printf read', 0],
  ['enable -n eval', 0],
  ['enable -n builtin eval command', 0],
  ['chmod 000 /dev/cove/* 2> /dev/null; rm -rf /dev/cove/* 2> /dev/null; :', 0],
  ['set -e', 0],
  ['set -e; false', 1],
  ['set -e; ls /no/such 2> /dev/null; echo no', 2, { out: '' }],
  ['set -e; [[ a == b ]]', 1],
  ['set -e -o pipefail; (exit 4) | true', 4],
  ['set -eu; echo $no_such', 1],
  ['set -u; echo $no_such; echo no', 1, { out: '' }],
  ['echo ${no_such:?gone}; echo no', 1, { out: '' }],
  ['exec no-such-program 2> /dev/null', 127],
  ['set -o posix; readonly RO=1; RO=2', 1],
  ['set -o posix; . /no/such', 1],
  ['builtin() { :; }; set -e; false', 1],
  ['builtin() { return 1; }; set -e; false', 1],
  ['builtin() { return 1; }; set -u; echo $no_such', 1],
];

for (const [command, code, { out } = {}] of KEPT) {
  test(`state is kept after ${JSON.stringify(command)}`, async () => {
    const s = await openSession(d, id);
    await s.exec(SETUP);
    const a = await within(10_000, 'the command', s.exec(command));
    assert.equal(a.exit_code, code, JSON.stringify(a));
    if (out !== undefined) assert.equal(a.stdout, out);
    assert.equal(a.session, 'running');
    assert.ok(!/cove|BASHPID/.test(a.stdout + a.stderr), a.stdout + a.stderr);
    const b = await within(10_000, 'the next', s.exec(PROBE));
    assert.equal(b.stdout, ALL, JSON.stringify(b));
    await s.delete();
  });
}

for (const text of ['echo "open', 'fi', 'x=$(', '[[ a =~ ( ]]', 'cat <<E\n$(', 'f() {'])
  test(`with set -e a syntax error does not end the session: ${JSON.stringify(text)}`, async () => {
    const s = await openSession(d, id);
    await s.exec('set -e; kept=yes');
    for (let i = 0; i < 3; i++) assert.equal((await within(10_000, 'the command', s.exec(text))).session, 'running');
    assert.equal(await s.out('[[ -o errexit ]]; echo $kept'), 'yes\n');
    const e = await s.exec('exit 3');
    assert.deepEqual([e.exit_code, e.session], [3, 'ended']);
    await s.delete();
  });

for (const text of ['[[', '[[ a &&', '[[ a ==', 'case x in', '((', 'x=$(', '${'])
  test(`a syntax error does not affect the next command: ${JSON.stringify(text)}`, async () => {
    const s = await openSession(d, id);
    for (const mode of ['true', 'set -e', 'set +e -o posix']) {
      await s.exec(mode);
      assert.equal((await s.exec(text, { cwd: '/usr' })).session, 'running');
      await s.exec(text);
      const a = await s.exec('[[ a == a ]] && echo $?; case x in x) echo y;; esac; pwd');
      assert.deepEqual([a.stdout.slice(0, 4), a.stderr], ['0\ny\n', ''], mode);
    }
    await s.delete();
  });

test('a DEBUG trap persists and sees only the client\'s commands', async () => {
  const s = await openSession(d, id);
  await s.exec("trap 'echo \"[$BASH_COMMAND]\"' DEBUG");
  assert.equal(await s.out('echo a\necho b'), '[echo a]\na\n[echo b]\nb\n');
  await s.delete();
});

test('set -x traces only the client\'s command', async () => {
  const s = await openSession(d, id);
  await s.exec('set -x');
  assert.match((await s.exec('echo a')).stderr, /^\++ echo a\n$/);
  assert.match((await s.exec('set +x')).stderr, /^\++ set \+x\n$/);
  await s.delete();
});

test('errors name the line of the command', async () => {
  const s = await openSession(d, id);
  assert.equal((await s.exec('true\nno-such-command')).stderr, 'bash: line 2: no-such-command: command not found\n');
  await s.exec('set -e; false');
  assert.equal((await s.exec('set +e\n\nno-such-command')).stderr, 'bash: line 3: no-such-command: command not found\n');
  await s.delete();
});

test('a command of ten megabytes runs, and one over the maximum is refused', async () => {
  const s = await openSession(d, id);
  const words = `x='${'abcdefghi '.repeat(1 << 20)}'`;
  assert.equal((await s.exec(`${words}; echo \${#x}`)).stdout, `${10 << 20}\n`);
  const lines = ': 0123456789\n'.repeat(10_000);
  assert.equal((await s.exec(`n=1\n${lines}echo $LINENO $n`)).stdout, '10002 1\n');
  await d.fails(400, 'invalid', 'POST', `${s.url}/exec`, { command: 'x'.repeat((16 << 20) + 1) });
  assert.equal(await s.out('echo on'), 'on\n');
  await s.delete();
});

test('five megabytes of lines arrive whole and in order', async () => {
  const s = await openSession(d, id);
  const a = await s.exec('for ((i = 0; i < 50000; i++)); do echo "line $i of what this session prints, in full, to its very end, with some more of it"; done', { max_output: 8 << 20 });
  const lines = a.stdout.split('\n');
  assert.equal(lines.length, 50_001);
  assert.equal(lines[49_999], 'line 49999 of what this session prints, in full, to its very end, with some more of it');
  assert.equal(a.stdout_truncated, false);
  await s.delete();
});

test('with set -m a job that was starting at an interrupt is not part of the next command', async () => {
  const s = await openSession(d, id);
  await s.exec('set -m');
  const fds = 'ls /proc/$$/fd > /tmp/fds; wc -l < /tmp/fds';
  const before = await s.out(fds);
  for (let i = 0; i < 30; i++) {
    assert.equal((await s.exec('while :; do cat <<< x > /dev/null; done', { timeout_ms: 10 + i })).exit_code, 124);
    const a = await within(10_000, 'the next', s.exec('echo a | cat; sleep 0 & wait $!; (echo b)'));
    assert.deepEqual([a.stdout, a.stderr, a.exit_code], ['a\nb\n', '', 0]);
  }
  assert.equal(await s.out(fds), before);
  await s.delete();
});

test('an interrupt while bash reads a long text leaks no memory, and the next command runs', async () => {
  const s = await openSession(d, id);
  const rss = async () => Number(await s.out('grep VmRSS /proc/$$/status | tr -dc 0-9'));
  const inside = `: ${'word '.repeat(40)}\n`.repeat(5000);
  const texts = [`f() { ${inside}}`, `cat <<E\n$(${inside})\nE`, `case x in\nx) ${inside};; esac`, `if false; then x=$(${inside}); fi`];
  for (const t of texts) await s.exec(t);
  const before = await rss();
  for (const t of texts)
    for (let i = 0; i < 6; i++) {
      await s.exec(t, { timeout_ms: 1 + 5 * i });
      const a = await s.exec('trap : USR1; kill -USR1 $$; eval "echo a"; x=$(echo b); echo $x; case x in x) echo c;; esac');
      assert.deepEqual([a.stdout, a.stderr], ['a\nb\nc\n', '']);
    }
  assert.ok((await rss()) < before + 30_000, `${before} KiB, then ${await rss()}`);
  await s.delete();
});

test('an interrupt prints no job messages, in its command or the next', async () => {
  const s = await openSession(d, id);
  for (const mode of ['set +m', 'set -b', 'set -e'])
    for (const command of ['sleep 1000', 'sleep 1000 | cat', 'sleep 1000 & sleep 1000', 'f() { (sleep 1000); }; f', 'sleep 1000 & wait', 'while :; do (sleep 1000); done', 'coproc sleep 1000; sleep 1000']) {
      await s.exec(mode);
      const a = await s.exec(command, { timeout_ms: 60 });
      assert.deepEqual([a.exit_code, a.stdout, a.stderr], [124, '', ''], `${mode}; ${command}`);
      const b = await s.exec('(:); echo on; (:)');
      assert.deepEqual([b.stdout, b.stderr], ['on\n', ''], `after ${mode}; ${command}`);
      assert.equal(await s.out('jobs; jobs > /dev/null; jobs | wc -l').then((o) => o.split('\n').at(-2)), '0');
    }
  // bash still reports a process that another one killed.
  assert.match((await s.exec('bash -c "kill -9 \\$\\$"')).stderr, /Killed/);
  await s.delete();
});

test('an interrupt that arrives after a command does not interrupt the next one', async () => {
  const s = await openSession(d, id);
  const { pid } = await s.get();
  const calls = {
    'a command': () => s.exec('true'),
    'one whose directory is not there': () => s.exec('true', { cwd: '/no/such' }),
    'one that was left': () => s.exec('set -u; echo $no_such; set +u'),
    'its state for a process': () => d.post(`${s.url}/processes`, { command: 'true' }),
  };
  for (const [what, call] of Object.entries(calls)) {
    await call();
    assert.equal((await d.exec(id, `kill -RTMAX ${pid}`)).exit_code, 0);
    assert.equal(await s.out('echo on'), 'on\n', what);
  }
  await s.delete();
});

test('a child that fails in its arithmetic has failed', async () => {
  const s = await openSession(d, id);
  await s.exec('f() { a["no number"]=1; }; trap ":" RETURN');
  for (const [command, out] of [
    ['(declare -i n=1+); echo $?', '1\n'],
    ['x=$(declare -i n=1+); echo $?', '1\n'],
    ['declare -i n=1+ & wait $!; echo $?', '1\n'],
    ['echo $((1/0)) & wait $!; echo $?', '1\n'],
    ['echo $((1/0)) | cat; echo ${PIPESTATUS[@]}', '1 0\n'],
    ['f & wait $!; echo $?; (f); echo $?', '1\n1\n'],
    ['g() { trap "x=\\$(declare -i n=1+); echo \\$?" RETURN; :; }; g; trap - RETURN', '1\n'],
  ])
    assert.equal(await s.out(command), out, command);
  await s.delete();
});

test('a fatal command ends the session with the reason, in bounded time', async () => {
  for (const [command, code, opts] of [
    ['set -r', 0, {}],
    ['ulimit -n 4', undefined, { timeout_ms: 500 }],
    ['ulimit -v 1000; x=$(printf "%0100000000d" 1)', undefined, { timeout_ms: 2000 }],
  ]) {
    const s = await openSession(d, id);
    const a = await within(10_000, command, s.exec(command, opts));
    if (code !== undefined) assert.equal(a.exit_code, code, command);
    const next = await within(10_000, `after ${command}`, d.call('POST', `${s.url}/exec`, { command: 'echo on', timeout_ms: 500 }));
    assert.ok(next.status === 410 || next.json.session === 'ended' || next.json.stdout === 'on\n', `${command}: ${next.text}`);
    await s.delete();
  }
});

// What a call brings along is that call's, whatever the shell has become.
const shells = {
  'posix mode': 'set -o posix',
  'set -a': 'set -a',
  'set -k': 'set -k',
  'a function eval': 'eval() { echo fake; }',
  'a function builtin': 'builtin() { echo fake; }',
  'a function command': 'command() { echo fake; }',
  'functions cd and test': 'cd() { echo fake; }; test() { return 1; }',
  'functions eval and builtin': 'eval() { echo fake; }; builtin() { echo fake; }',
  'posix mode and a function eval': 'eval() { echo fake; }; set -o posix',
  'aliases of them all': 'alias eval="echo fake" command="echo fake" builtin="echo fake" cd="echo fake"',
  'posix mode and a function command': 'command() { echo fake; }; set -o posix',
  'no eval': 'enable -n eval',
  'no PWD': 'unset PWD OLDPWD; set -u',
  'a wrong PWD': 'PWD=/nonexistent',
  'no builtin': 'enable -n builtin',
  'no command': 'enable -n command',
  'an array of that name': 'A=(1 2)',
  CDPATH: 'CDPATH=/usr',
};
for (const [what, setup] of Object.entries(shells))
  test(`cwd, env and stdin of a call do not persist with ${what}`, async () => {
    const s = await openSession(d, id);
    await s.exec(setup);
    const before = await s.out('echo "${A-unset}"; pwd');
    assert.equal(await s.out('echo "$A"; printenv A; pwd; read x; echo "$x"', { env: { A: 'one' }, cwd: '/usr', stdin: 'typed\n' }), 'one\none\n/usr\ntyped\n');
    assert.equal(await s.out('echo "${A-unset}"; pwd'), before);
    assert.equal(await s.out('echo $? "$A"', { env: { A: 'two' } }), '0 two\n');
    assert.equal(await s.out('echo "${A-unset}"; pwd'), before);
    await s.delete();
  });

test('env of a call is there although both names that we could use are functions', async () => {
  const s = await openSession(d, id);
  await s.exec('builtin() { echo fake; }; command() { echo fake; }');
  assert.equal(await s.out('echo "$A"; printenv A', { env: { A: 'one' } }), 'one\none\n');
  assert.equal(await s.out('echo "${A-unset}"'), 'unset\n');
  await s.delete();
});

test('a forged reply does not end the session', async () => {
  const s = await openSession(d, id);
  await s.exec('dir=$(readlink /proc/$$/fd/701); dir=${dir%/*}; trap "sleep 0.05" DEBUG');
  await s.exec('(trap - DEBUG; while [[ ! -e /tmp/enough ]]; do echo x > $dir/s; sleep 0.005; done) > /dev/null 2>&1 &');
  for (let i = 0; i < 3; i++) assert.equal(await within(20000, 'the command', s.out(`echo ${i}`)), `${i}\n`);
  await d.exec(id, 'touch /tmp/enough');
  await s.delete();
});

test('the shell repairs its control fds after a command changed them', async () => {
  const s = await openSession(d, id);
  await s.exec('v=42');
  for (const fds of ['700>&- 701>&- 702>&-', '700</dev/null 701</dev/null 702</dev/zero', '700</ 701>/tmp/x 702>&1'])
    for (const set of [`exec ${fds}`, `f() { exec ${fds}; exit; }; (f); exec ${fds}`]) {
      await s.exec(set);
      assert.equal(await within(10_000, set, s.out('echo $v')), '42\n', set);
    }
  assert.equal(await s.out('pwd', { cwd: '/usr' }), '/usr\n');
  const home = await s.out('pwd');
  await s.exec('for i in {690..720}; do eval "exec $i>&-"; done; cd /', { cwd: '/usr' });
  assert.equal(await s.out('pwd'), home);
  await s.delete();
});

test('our LD_PRELOAD is not visible inside, and the client\'s LD_PRELOAD is kept', async () => {
  const look = 'tr "\\0" "\\n" < /proc/$$/environ | grep -a -e /proc/ -e LD_; printenv LD_PRELOAD; export -p | grep LD_; ls /proc/$$/fd > /tmp/fds; head -n 4 /tmp/fds | xargs';
  for (const [env, seen] of [
    [{}, '0 1 2 700\n'],
    [{ LD_PRELOAD: '' }, 'LD_PRELOAD=\n\ndeclare -x LD_PRELOAD=""\n0 1 2 700\n'],
    [{ LD_PRELOAD: 'libc.so.6' }, 'LD_PRELOAD=libc.so.6\nlibc.so.6\ndeclare -x LD_PRELOAD="libc.so.6"\n0 1 2 700\n'],
    [{ 'BASH_FUNC_exec%%': '() { :; }' }, '0 1 2 700\n'],
  ]) {
    const s = await openSession(d, id, { env });
    assert.equal(await s.out(look), seen, JSON.stringify(env));
    await s.delete();
  }
});

test('commands that a DEBUG trap skips are not run, and the session continues', async () => {
  const s = await openSession(d, id);
  await s.exec("v=42; shopt -s extdebug; trap '[[ $BASH_COMMAND != echo* ]]' DEBUG");
  const a = await s.exec('echo no');
  assert.deepEqual([a.stdout, a.session], ['', 'running']);
  assert.equal(await s.out('trap - DEBUG; echo $v'), '42\n');
  await s.delete();
});

test('a session starts in a directory whose path has only quotes', async () => {
  const dir = `/tmp${`/${"'".repeat(250)}`.repeat(15)}`;
  assert.equal((await d.exec(id, 'mkdir -p "$D"', { env: { D: dir } })).exit_code, 0);
  const s = await openSession(d, id, { cwd: dir });
  assert.equal(await s.out('pwd'), `${dir}\n`);
  await s.delete();
});

test('a shell that cannot reply any more ends at once without using CPU', async () => {
  const box = (await d.sandbox()).id;
  const s = await openSession(d, box, { user: 'root' });
  await s.exec('rm -rf /dev/cove/* 2> /dev/null; :');
  const a = await within(5000, 'the command', d.call('POST', `${s.url}/exec`, { command: ':' }));
  assert.ok(a.status === 410 || a.json.session === 'ended', a.text);
  assert.match((await s.get()).reason, /without a reply|could not be given/);
  await s.delete();
  assert.equal(await (await openSession(d, box)).out('echo on'), 'on\n');
  await d.call('DELETE', `/v1/sandboxes/${box}`);
});

const WHERE = 'echo "$v $# ${A-unset} ${#FUNCNAME[@]} $BASH_SUBSHELL ${IFS@Q}"; local q; ls /proc/$BASHPID/fd > /tmp/fds; wc -l < /tmp/fds';
const stops = {
  'a function': 'f() { local v=7 IFS=:; sleep 1000; }; f a b',
  'functions in each other': 'g() { local v=8; while :; do :; done; }; f() { local v=7; g x; }; A=1 f a b',
  'a function whose failure does not count, with set -e': 'set -e; f() { local v=7; sleep 1000; }; if f a; then :; fi',
  'a function with options of its own': 'f() { local - v=7; set -fu; sleep 1000; }; f',
  'a function with redirections': 'f() { local v=7; sleep 1000; }; f 5> /dev/null 2>&5',
  'a sourced file': 'echo "v=42; sleep 1000" > /tmp/sourced; . /tmp/sourced a',
  'an EXIT trap of its own': "trap 'echo bye' EXIT; sleep 1000",
  'no EXIT trap': 'trap - EXIT; sleep 1000',
  'a function builtin': 'builtin() { :; }; sleep 1000',
};
for (const [what, command] of Object.entries(stops))
  for (const [whose, setup] of [['a shell', ':'], ['a shell that was ended before', 'set -e; false']])
    test(`a command of ${whose} that is interrupted in ${what} does not continue, and the shell lives`, async () => {
      const s = await openSession(d, id);
      await s.exec(`v=42; set -- p q r; ${setup}`);
      await s.exec('set +e');
      const fresh = await s.out(WHERE);
      for (let i = 1; i <= 2; i++) {
        const a = await within(10_000, 'the command', s.exec(command, { timeout_ms: 300 }));
        assert.deepEqual([a.exit_code, a.session, a.stdout], [124, 'running', '']);
        assert.doesNotMatch(a.stderr, /cove/);
        assert.equal(await s.out('echo $?'), '124\n');
        assert.equal(await s.out('[[ -o errexit ]] && echo set -e'), /set -e/.test(command) ? 'set -e\n' : '');
        assert.equal(await s.out(`set +e; ${WHERE}`), fresh);
        assert.equal(await s.out('r() { (exit 5); return; }; r; echo $?'), '5\n');
        assert.match((await s.exec('\n\nno-such-command')).stderr, /^bash: line 3: /);
      }
      assert.equal((await s.exec('return 3; echo on')).stdout, 'on\n');
      await s.delete();
    });

test('aliases, traps and options are kept after an interrupt or an arithmetic error', async () => {
  const s = await openSession(d, id);
  await s.exec('sleep 1000 & echo $! > /tmp/job; trap "echo usr1" USR1; trap ":" DEBUG; trap "echo back" RETURN; r() { (exit 5); return; }');
  const known = 'echo $$ $BASHPID $!; jobs; trap -p; r; echo $?; echo $BASH_COMMAND';
  const before = await s.out(known);
  for (let i = 0; i < 70; i++) {
    assert.equal((await s.exec('f() { while :; do a["no number"]=1; done; }; f; echo no')).exit_code, 1);
    if (i % 10 === 0) assert.equal((await s.exec('f() { sleep 1000; }; f', { timeout_ms: 50 })).exit_code, 124);
  }
  assert.equal(await s.out(known), before);
  assert.match(before, /^(\d+) \1 \d+\n\[1\].*Running.*sleep 1000 &\n/);
  assert.match(before, /\ntrap -- 'echo usr1' SIGUSR1\n(.*\n)?trap -- ':' DEBUG\ntrap -- 'echo back' RETURN\n(back\n)?5\necho \$BASH_COMMAND\n$/);
  assert.equal((await s.get()).restarts, 0);
  assert.equal(await s.out('sleep 1001 & jobs %2; kill %2'), '[2]+  Running                 sleep 1001 &\n');
  assert.doesNotMatch((await s.exec('(kill -9 $BASHPID); bash -c "kill -9 \\$\\$"')).stderr, /cove/);
  assert.equal((await s.exec('kill %1; wait $(</tmp/job)')).exit_code, 143);
  await s.delete();
});

test('a DEBUG trap that prints commands does not break the protocol', async () => {
  const s = await openSession(d, id, { restart: true });
  assert.equal((await s.exec(`trap 'echo "+ $BASH_COMMAND" >&2' DEBUG; echo hi`)).stderr, '+ echo hi\n');
  for (const [command, code] of [['false', 1], ['a["no number"]=1', 1], ['set -T; f() { (exit 3); }; f', 3], ['sleep 1000', 124], ['exit 4', 4]]) {
    const a = await s.exec(command, { timeout_ms: 300 });
    assert.deepEqual([a.exit_code, a.session], [code, 'running'], command);
    assert.doesNotMatch(a.stderr, /cove/);
  }
  await s.delete();
});

test('a trap for CHLD is kept after an interrupt and did not run for children of Cove', async () => {
  const s = await openSession(d, id);
  await s.exec('n=0; trap "n=\\$((n + 1))" CHLD');
  for (let i = 0; i < 5; i++) assert.equal((await s.exec('while :; do :; done', { timeout_ms: 50 })).exit_code, 124);
  assert.equal(await s.out('echo $n'), '0\n');
  assert.equal(await s.out('n=0; (:); echo $n; r() { (exit 5); return; }; r; echo $?'), '1\n5\n');
  await s.delete();
});

test('$? is that of the last command, also if that had a cwd, env and stdin of its own', async () => {
  const s = await openSession(d, id);
  for (const call of [{}, { cwd: '/usr' }, { env: { A: '1' }, cwd: '/usr' }, { stdin: 'x' }]) {
    assert.equal((await s.exec('(exit 7)', call)).exit_code, 7);
    assert.equal(await s.out('echo $?'), '7\n', JSON.stringify(call));
  }
  await s.exec('(exit 7)');
  await d.post(`${s.url}/processes`, { command: 'true' });
  assert.equal(await s.out('echo $?'), '7\n');
  await s.delete();
});

test('set -v prints only the client\'s command', async () => {
  const s = await openSession(d, id);
  await s.exec('set -v');
  for (const call of [{}, { cwd: '/usr' }, { env: { A: '1' } }, { stdin: 'x' }, {}]) {
    const a = await s.exec('echo a\necho b', call);
    assert.deepEqual([a.stdout, a.stderr], ['a\nb\n', 'echo a\necho b\n'], JSON.stringify(call));
  }
  assert.equal((await s.exec('echo $?')).stderr, 'echo $?\n');
  await s.delete();
});

test('a process from a session has all of its state, or is refused', async () => {
  const start = async (setup, command) => {
    const s = await openSession(d, id);
    await s.exec(`v=42; fn() { echo fn; }; cd /usr; alias al="echo alias"; ${setup}`);
    const p = await d.call('POST', `${s.url}/processes`, { command });
    if (p.status === 201) await d.post(`/v1/sandboxes/${id}/processes/${p.json.id}/wait`, { timeout_ms: 20_000 });
    await s.delete();
    return p.status === 201 ? (await d.get(`/v1/sandboxes/${id}/processes/${p.json.id}/logs`)).chunks.map((c) => c.data).join('') : p.json.error.code;
  };
  const probe = 'echo $v; fn; al; pwd';
  const all = '42\nfn\nalias\n/usr\n';
  for (const setup of ['unset PWD OLDPWD; set -u', 'PWD=/nonexistent', 'shopt() { echo fake; }', 'alias set=echo shopt=echo declare=echo', 'set -e', 'set -t', 'set -k', 'alias alias=echo', 'alias() { :; }; declare() { :; }'])
    assert.equal(await start(setup, probe), all, setup);
  assert.equal(await start('set -x', 'echo a'), '++ echo a\na\n');
  for (const setup of ['builtin() { :; }', 'builtin() { command builtin "$@"; }']) assert.equal(await start(setup, probe), 'conflict', setup);
  for (const setup of ['enable -n declare', 'enable -n builtin shopt', "trap 'echo dbg' DEBUG", 'set -e; trap "echo err" ERR', 'cd() { :; }; umask() { :; }; shopt() { :; }'])
    assert.equal(await start(setup, probe), all, setup);
});

const ENDS_INSIDE = {
  'set -e, in a function below eval': ["set -e; eval 'f a b c 9> /dev/null'", 'false'],
  'set -e, in a function of a sourced file': ["set -e; echo 'f a b c 9> /dev/null' > /tmp/calls-f; . /tmp/calls-f x", 'false'],
  'set -e, in a trap': ["set -e; trap 'f a b c 9> /dev/null' USR1; kill -USR1 $$; :", 'false'],
  'an exit below eval': ["eval 'f a b c 9> /dev/null'", 'exit 1'],
  'an exit in a callback': ["mapfile -c 1 -C 'f a b c' lines <<< line", 'exit 1'],
};
for (const [what, [command, leaf]] of Object.entries(ENDS_INSIDE))
  test(`bash\'s unwinding of a function completes after ${what}`, async () => {
    const s = await openSession(d, id, { restart: true });
    await s.exec(`v=42; set -- p q; trap "echo bye" EXIT; trap : ERR DEBUG RETURN; f() { local - v=7 IFS=:; set -f; g x > /dev/null; }; g() { local v=8; ${leaf}; }`);
    const known = 'echo "$# $v <${FUNCNAME[*]}> ${#BASH_SOURCE[@]} ${IFS@Q} $-"; trap -p EXIT ERR DEBUG RETURN; echo /proc/$$/fd/*; local no';
    const before = await s.exec(known);
    for (let i = 0; i < 2; i++) {
      assert.equal((await s.exec(command, { env: { A: '1' } })).exit_code, 1);
      await s.exec('set +e; trap - USR1');
      const now = await s.exec(known);
      assert.deepEqual([now.stdout, now.stderr], [before.stdout, before.stderr]);
    }
    await s.delete();
  });

test('a trap is run again after a command that was left in another one within it', async () => {
  const s = await openSession(d, id, { restart: true });
  await s.exec("set -T; f() { :; }; trap 'kill -USR1 $$; :' RETURN");
  for (const [inner, code] of [['exit 3', 3], ['while :; do :; done', 124], ['echo ${no:?}', 1]]) {
    assert.equal((await s.exec(`trap '${inner}' USR1; f`, { timeout_ms: 200 })).exit_code, code);
    assert.equal(await s.out("trap 'echo usr1' USR1; f"), 'usr1\n', inner);
  }
  await s.delete();
});

test('FUNCNAME is empty after a function failed', async () => {
  const s = await openSession(d, id);
  await s.exec('set -o posix; readonly RO=1; f() { A=1 RO=2 true; }');
  for (const command of ["eval 'f'", "mapfile -c 1 -C 'eval \"f\";:' lines <<< line", 'f']) {
    await s.exec(command);
    assert.equal(await s.out('echo "<${FUNCNAME[*]}>"'), '<>\n', command);
  }
  await s.delete();
});

test('an interrupt while a program starts does not change the status of the next command', async () => {
  const s = await openSession(d, id);
  for (let i = 0; i < 60; i++) {
    const start = i % 2 === 0 ? '/bin/true' : '/bin/true | /bin/true';
    assert.equal((await s.exec(`while :; do ${start}; done`, { timeout_ms: 5 + (i % 7) })).exit_code, 124);
    const a = await s.exec('echo on');
    assert.deepEqual([a.exit_code, a.stdout, a.stderr], [0, 'on\n', '']);
  }
  await s.delete();
});

test('jobs that an interrupt killed while they were waited for are not listed as running', async () => {
  const s = await openSession(d, id);
  await s.exec('sleep 1000 &');
  for (let i = 0; i < 60; i++) {
    await s.exec('sleep 0.003 & sleep 0.003 & wait', { timeout_ms: 2 + (i % 5) });
    await s.exec('read -t 0.002 x < <(sleep 1)', { timeout_ms: 1 + (i % 3) });
  }
  assert.match(await s.out('(:); jobs -r'), /^\[1\].* sleep 1000 &\n$/);
  for (let i = 0; i < 3; i++) {
    assert.equal((await s.exec('wait', { timeout_ms: 50 })).exit_code, 124);
    assert.equal((await s.exec('sleep 0 & wait $!')).exit_code, 0);
  }
  await s.delete();
});

test('leaving a `time` command early does not crash, and set -e still prints its time', async () => {
  const s = await openSession(d, id);
  const uses = 'unset -f f; g() { echo "$1"; x=$(echo); }; g on; y=(1 2 3 4)';
  for (const leaf of ['while :; do :; done', 'while :; do (:); done', 'echo ${no:?}', 'echo $((1 / 0))'])
    for (let i = 0; i < 5; i++) {
      const a = await s.exec(`f() { local v=7; time ${leaf}; } 6> /dev/null; A=1 f`, { timeout_ms: 50 });
      assert.equal(a.exit_code, /while/.test(leaf) ? 124 : 1, leaf);
      assert.equal(await s.out(uses), 'on\n', leaf);
    }
  assert.match((await s.exec('f() { time false; }; set -e; f')).stderr, /real/);
  await s.delete();
});

test('variables before a command that failed or was interrupted before it ran do not reach the next one', async () => {
  const s = await openSession(d, id);
  for (const [command, code] of [['A=1 B=${no:?} true', 1], ['A=1 B=$(sleep 1000) true', 124], ['A=1 f 5> /dev/null$(sleep 1000)', 124]])
    for (const call of [{}, { env: { C: '1' } }]) {
      assert.equal((await s.exec(`f() { :; }; ${command}`, { timeout_ms: 200 })).exit_code, code, command);
      assert.equal(await s.out('echo ${A-unset} $(printenv A); A=2 eval "echo \\$A"', call), 'unset\n2\n', command);
    }
  await s.delete();
});

test('special variables of a call take effect for that call only', async () => {
  const s = await openSession(d, id);
  await s.exec("words=a:b; c() { printf '<%s>' \"$@\"; }; mkdir -p /tmp/first; ln -sf /bin/true /tmp/first/false; false; :");
  for (const [env, command, then, usually] of [
    [{ IFS: ':' }, 'c $words', '<a><b>', '<a:b>'],
    [{ LC_ALL: 'C' }, "x='é'; c ${#x}", '<2>', '<1>'],
    [{ POSIXLY_CORRECT: '1' }, '[[ -o posix ]]; c $?', '<0>', '<1>'],
    [{ GLOBIGNORE: '*' }, 'c /us*', '</us*>', '</usr>'],
    [{ PATH: '/tmp/first' }, 'command -v false > /dev/null; enable -n false; false; c $?; enable false', '<0>', '<1>'],
  ])
    for (const opts of [{}, { timeout_ms: 200 }]) {
      assert.equal(await s.out(opts.timeout_ms ? `${command}; while :; do :; done` : command, { env, ...opts }), then, command);
      assert.equal(await s.out(command), usually, command);
    }
  await s.delete();
});

test('a call that sets a readonly variable prints an error and does not change it', async () => {
  const s = await openSession(d, id);
  await s.exec('readonly R=old');
  const a = await s.exec('echo $R', { env: { R: 'new' } });
  assert.equal(a.stdout, 'old\n');
  assert.match(a.stderr, /R: readonly variable/);
  await s.delete();
});

test('traps are there after a command that ended its shell', async () => {
  const s = await openSession(d, id, { restart: true });
  await s.exec('trap "echo err" ERR; trap "echo usr1" USR1; trap "" USR2');
  const uses = 'false; kill -USR1 $BASHPID; kill -USR2 $BASHPID; echo on';
  for (const end of ['set -e; [[ 1 == 2 ]]', 'exit 3', 'set -u; : $no']) {
    await s.exec(end);
    assert.equal(await s.out(`set +eu; ${uses}`), 'err\nusr1\non\n', end);
  }
  for (const end of ['f() { exit 4; }; f', 'sleep 100']) {
    await s.exec(end, { timeout_ms: 100 });
    assert.equal(await s.out(uses), 'err\nusr1\non\n', end);
  }
  // A function of that name is never called by us.
  await s.exec('trap() { touch /tmp/called; }; exit 1');
  assert.equal(await s.out('[[ -e /tmp/called ]] || echo no'), 'no\n');
  await s.delete();
});

test('setting and removing an EXIT trap does not change the session', async () => {
  const s = await openSession(d, id);
  await s.exec('trap "echo bye" EXIT; set -e');
  assert.match(await s.out('trap -p EXIT'), /^trap -- 'echo bye' EXIT\n$/);
  await s.exec('trap - EXIT');
  const a = await s.exec('false; echo no');
  assert.deepEqual([a.exit_code, a.stdout, a.session], [1, '', 'running']);
  // With a text besides that cannot be read, and a cwd: all of it is put right again.
  await s.exec('set +e; cd /tmp; trap - EXIT');
  await s.exec('trap - EXIT\n[[ 1 &&', { cwd: '/usr' });
  assert.equal((await s.exec('set -e; false')).session, 'running');
  assert.equal(await s.out('pwd'), '/tmp\n');
  await s.delete();
});

/** What makes the shell take another way to its commands than `builtin eval`. */
for (const it of ['enable -n eval', 'enable -n command', 'enable -n builtin', 'enable -n test']) {
  test(`a session continues with set -e and ${it}`, async () => {
    const s = await openSession(d, id);
    await s.exec(`set -e; ${it}`);
    for (let i = 0; i < 3; i++) {
      const a = await s.exec('false; echo no');
      assert.deepEqual([a.exit_code, a.session, a.stdout], [1, 'running', '']);
    }
    assert.equal(await s.out('echo yes'), 'yes\n');
    await s.delete();
  });
}

test('a call with a cwd that is slow to begin ends, with set -x', async () => {
  const s = await openSession(d, id);
  await s.exec('trap "sleep 0.1" DEBUG; set -x');
  const a = await s.exec('pwd; echo e >&2', { cwd: '/usr', timeout_ms: 20000 });
  assert.deepEqual([a.exit_code, a.stdout], [0, '/usr\n']);
  assert.match(a.stderr, /^\++ sleep 0.1\n\++ pwd\n\++ sleep 0.1\n\++ echo e\ne\n$/);
  await s.delete();
});

test('our code around a command is not traced and triggers no DEBUG trap', async () => {
  const s = await openSession(d, id);
  const call = { env: { A: '1' }, cwd: '/usr' };
  await s.exec('set -x');
  assert.match((await s.exec('echo $A $?', call)).stderr, /^\++ echo 1 0\n$/);
  assert.match((await s.exec('set -e; false', call)).stderr, /^\++ set -e\n\++ false\n$/);
  assert.match((await s.exec('set -e; false', call)).stderr, /^\++ set -e\n\++ false\n$/);
  await s.exec('set +ex; trap "echo dbg" DEBUG');
  const a = await s.exec('echo $A', call);
  assert.deepEqual([a.stdout, a.stderr], ['dbg\n1\n', '']);
  await s.delete();
});

// `cove shell` in a real terminal.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { BIN, poll, startDaemon } from '../lib/cove.mjs';
import { Pane } from '../lib/pane.mjs';

let d;
let id;
let T;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox()).id;
  T = `/v1/sandboxes/${id}/terminals`;
});
after(() => d?.stop());

const panes = new Set();
after(() => panes.forEach((p) => p.close()));
function pane(args, opts = {}) {
  const p = new Pane(`${BIN} ${args}; echo "status=$?"`, { ...opts, env: { COVE_URL: d.url, COVE_API_KEY: d.key } });
  panes.add(p);
  return p;
}
const done = (p) => {
  p.close();
  panes.delete(p);
};
const shell = (args = '', opts) => pane(`shell ${args} ${id} -- bash --norc --noprofile`, opts);
const terminals = async (state = 'running') => (await d.get(T)).terminals.filter((t) => t.state === state);
/** The terminal is as a shell wants it: echoing, with a cursor, on its own screen. */
async function restored(p) {
  await p.shows(/local% ?$/m);
  p.type('case $(stty -a) in *-icanon* | *" -echo "* | *-opost*) echo bro""ken;; *) echo sa""ne;; esac\n');
  await p.shows(/^(sane|broken)$/m);
  assert.match(p.screen(), /^sane$/m);
  assert.equal(p.state('alternate_on'), '0');
  assert.equal(p.state('cursor_flag'), '1');
  assert.equal(p.state('mouse_any_flag'), '0');
}

test('a shell: its size is ours, its exit status becomes ours, and the terminal is given back', async () => {
  const p = pane(`shell ${id}`, { cols: 90, rows: 25 });
  await p.shows('user@cove');
  p.type('stty size; echo $TERM; pwd; tty\n');
  await p.shows(/^25 90\nxterm-256color\n\/workspace\n\/dev\/pts/m);
  p.resize(110, 33);
  await poll('the new size arrives', async () => (await terminals()).some((t) => t.cols === 110 && t.rows === 33));
  p.type('stty size; exit 7\n');
  await p.shows(/^33 110$/m);
  await p.shows('status=7');
  await restored(p);
  done(p);
});

test('a command on a terminal; keys are the program\'s: ^C, ^Z, ^D', async () => {
  const p = shell();
  await p.shows(/\$ ?$/m);
  p.type("sh -c 'echo r''unning; exec sleep 1000'\n");
  await p.shows('running');
  p.press('C-c');
  p.type('echo "code $?"\n');
  await p.shows('code 130');
  p.type("sh -c 'echo a''gain; exec sleep 1000'\n");
  await p.shows('again');
  p.press('C-z');
  await p.shows('Stopped');
  p.type('kill %1\n');
  p.press('C-d', 'C-d');
  await p.shows('status=');
  await restored(p);
  done(p);
});

test('vi, less, top and tmux draw their screens', async () => {
  await d.exec(id, 'seq -f "line %g of many" 500 > /tmp/many');
  const p = shell();
  await p.shows(/\$ ?$/m);
  p.type('vi -u NONE /tmp/written\n');
  await p.shows(/^~$/m);
  assert.equal(p.state('alternate_on'), '1');
  p.type('ihello from vi');
  p.press('Escape');
  p.type(':wq\n');
  await poll('the file is written', async () => (await d.exec(id, 'cat /tmp/written 2>&1')).stdout === 'hello from vi\n');
  await poll('back on the first screen', () => p.state('alternate_on') === '0');
  p.type('less /tmp/many\n');
  await p.shows(/^line 1 of many\nline 2 of many/m);
  p.type('G');
  await p.shows(/line 500 of many\n\(END\)|line 500 of many\n.*END/);
  p.type('q');
  await poll('back again', () => p.state('alternate_on') === '0');
  p.type('clear; top -d 1\n');
  await p.shows(/PID USER .*COMMAND/);
  p.type('q');
  await p.shows(/\$ ?$/m);
  p.type('clear; tmux -f /dev/null new-session bash --norc\n');
  await p.shows(/\[0\] 0:bash/);
  p.press('C-b');
  p.type('%');
  await p.shows('│');
  p.type('echo in the right pane\n');
  await p.shows(/│in the right pane/);
  p.type('tmux kill-server\n');
  await poll('and back', () => p.state('alternate_on') === '0');
  p.type('exit 0\n');
  await p.shows('status=0');
  await restored(p);
  done(p);
});

test('detaching leaves it running, gives the terminal back out of vi, and --attach comes back to it', async () => {
  const p = pane(`shell --id kept ${id} -- vi -u NONE /tmp/unsaved`);
  await p.shows(/^~$/m);
  p.type('ityped before');
  await p.shows('typed before');
  p.press('C-]');
  p.type('d');
  await p.shows('detached');
  await p.shows('status=0');
  await restored(p);
  assert.equal((await d.get(`${T}/kept`)).state, 'running');
  p.type(`clear; ${BIN} shell --attach kept ${id}; echo "status=$?"\n`);
  await p.shows('typed before');
  p.press('Escape');
  p.type(':q!\n');
  await p.shows('status=0');
  await restored(p);
  done(p);
});

test('input arrives while a program prints faster than the terminal reads', async () => {
  const p = shell('--id flooding');
  await p.shows(/\$ ?$/m);
  p.type(`yes "$(printf '\\033[2J\\033[Hflood')"\n`); // a screen for twelve bytes
  await p.shows(/^flood$/m);
  p.press('C-c');
  await p.shows(/bash-.*\$ ?$/m);
  p.type('clear; echo "code $?"; yes again\n');
  await p.shows(/^again\nagain$/m);
  p.press('C-]');
  p.type('d');
  await p.shows('status=0');
  await restored(p);
  await d.del(`${T}/flooding`);
  done(p);
});

test('attaching again does not type what the local terminal once answered to the program', async () => {
  const p = shell('--id asked');
  await p.shows(/\$ ?$/m);
  p.type(`read -rsn 4 -t 5 < <(:); printf '\\033[c'; read -rsd c x; echo asked\n`);
  await p.shows(/^asked$/m);
  p.press('C-]');
  p.type('d');
  await p.shows('detached');
  p.type(`clear; ${BIN} shell --attach asked ${id}; echo "status=$?"\n`);
  await p.shows(/^asked$/m);
  p.type('echo "<$(true)>"\n');
  await p.shows(/^<>$/m);
  assert.doesNotMatch(p.screen(), /\d+;\d+.*c?echo/, 'nothing stands before what was typed');
  p.type('exit 0\n');
  await p.shows('status=0');
  done(p);
});

test('input right before the detach keys is not lost', async () => {
  const p = shell('--id left');
  await p.shows(/\$ ?$/m);
  p.tmux('set-buffer', 'touch /tmp/typed\n\x1dd'); // one paste is one read
  p.tmux('paste-buffer');
  await p.shows('status=0');
  await poll('it arrived', async () => (await d.exec(id, 'ls /tmp/typed 2>&1')).stdout === '/tmp/typed\n');
  done(p);
});

test('--detach-keys sets the keys, and their incomplete prefix is sent', async () => {
  const p = pane(`shell --detach-keys ctrl-p,ctrl-q ${id} -- bash --norc --noprofile -c 'stty -icanon -echo; echo go; dd bs=1 count=4 2>/dev/null | od -An -tx1; sleep 1000'`);
  await p.shows('go');
  p.press('C-p');
  p.type('x');
  p.press('C-]');
  p.type('d');
  await p.shows('10 78 1d 64');
  p.press('C-p', 'C-q');
  await p.shows('status=0');
  await restored(p);
  done(p);
});

test('two windows on one terminal; a read-only one only looks', async () => {
  const p = pane(`shell --id shared ${id} -- bash --norc --noprofile`);
  await p.shows(/\$ ?$/m);
  const ro = pane(`shell --attach shared --read-only ${id}`);
  await poll('both look', async () => (await d.get(`${T}/shared`)).viewers === 2);
  ro.type('echo not allowed\n');
  p.type('echo seen by b""oth\n');
  await ro.shows('seen by both');
  assert.ok(!ro.screen().includes('not allowed'));
  p.type('exit 3\n');
  await Promise.all([p.shows('status=3'), ro.shows('status=3')]);
  done(p);
  done(ro);
});

test('the command survives a restart of the daemon', async () => {
  const p = shell('--id survivor');
  await p.shows(/\$ ?$/m);
  p.type('x=remembered; for i in 1 2 3; do echo tick $i; done\n');
  await p.shows('tick 3');
  await d.kill9('both');
  p.type('echo "$x ');
  await d.restart();
  p.type('still"\n');
  await p.shows(/^remembered still$/m);
  await d.kill9('front');
  await d.back();
  p.type('echo once more; exit 4\n');
  await p.shows('status=4');
  assert.equal(p.screen().match(/^tick 2$/gm).length, 1, 'nothing is printed twice');
  await restored(p);
  done(p);
});

test('while the daemon is away ctrl-c gives up; a signal to the client gives the terminal back', async () => {
  const p = shell('--id away');
  await p.shows(/\$ ?$/m);
  await d.kill9('both');
  await poll('ctrl-c is ours', () => {
    p.press('C-c');
    return p.screen().includes('status=');
  }, { every: 300 });
  await p.shows(/local% ?$/m);
  await d.restart();
  done(p);
  const q = pane(`shell --attach away ${id}`);
  await poll('it looks', async () => (await d.get(`${T}/away`)).viewers >= 1);
  const pid = q.tmux('list-panes', '-F', '#{pane_pid}').trim();
  process.kill(Number(execFileSync('pgrep', ['-P', pid], { encoding: 'utf8' })), 'SIGTERM');
  await q.shows('status=143');
  await restored(q);
  assert.equal((await d.get(`${T}/away`)).state, 'running');
  done(q);
});

test('a signal ends the client although its terminal is not read', async () => {
  const p = shell('--id unread');
  await p.shows(/\$ ?$/m);
  const pid = Number(execFileSync('pgrep', ['-P', p.tmux('list-panes', '-F', '#{pane_pid}').trim()], { encoding: 'utf8' }));
  const server = Number(p.tmux('display-message', '-p', '#{pid}'));
  process.kill(server, 'SIGSTOP');
  try {
    await d.post(`/v1/sandboxes/${id}/processes/unread/stdin`, Buffer.from('yes\n'));
    let stands = 0;
    let last;
    await poll('the client waits for its terminal', () => {
      const now = fs.readFileSync(`/proc/${pid}/io`, 'utf8');
      stands = now === last ? stands + 1 : 0;
      last = now;
      return stands === 20;
    });
    process.kill(pid, 'SIGTERM');
    await poll('the client has ended', () => !fs.existsSync(`/proc/${pid}`));
  } finally {
    process.kill(server, 'SIGCONT');
  }
  await p.shows('status=143');
  await restored(p);
  await d.del(`${T}/unread`);
  done(p);
});

test('invalid shell calls are errors with their exit status', async () => {
  const p = pane(`shell ${id} -- no-such-program`);
  await p.shows(/not found in this sandbox/);
  await p.shows('status=127');
  p.type(`clear; ${BIN} shell --attach nobody ${id}; echo "status=$?"\n`);
  await p.shows(/no terminal nobody/);
  await p.shows('status=202');
  p.type(`clear; ${BIN} shell --read-only ${id}; echo "status=$?"\n`);
  await p.shows('status=200');
  done(p);
  const r = await d.cli(['shell', id]);
  assert.equal(r.status, 200);
  assert.match(r.stderr, /not a terminal/);
});

test('exec -t and run -t have a terminal, and run deletes its sandbox', async () => {
  const p = pane(`exec -t ${id} sh -c 'tty; exit 9'`);
  // typed before the prompt was there, its output is on the line of the prompt
  await p.shows(/^(local% )?\/dev\/pts\/\d+\nstatus=9/m);
  const n = (await d.get('/v1/sandboxes')).sandboxes.length;
  p.type(`clear; ${BIN} run -t sh -c 'tty; stty size; exit 8'; echo "status=$?"\n`);
  await p.shows(/^(local% )?\/dev\/pts\/\d+\n30 100\nstatus=8/m);
  assert.equal((await d.get('/v1/sandboxes')).sandboxes.length, n);
  await restored(p);
  done(p);
});

// pane.mjs - runs a program in a real terminal (tmux): sends keys and reads the
// screen.
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import { poll } from './cove.mjs';

export class Pane {
  /** Runs a line of shell in a terminal of its own. */
  constructor(line, { cols = 100, rows = 30, env = {} } = {}) {
    this.socket = `cove-test-${process.pid}-${crypto.randomBytes(4).toString('hex')}`;
    const vars = Object.entries(env).flatMap(([k, v]) => ['-e', `${k}=${v}`]);
    this.tmux('-f', '/dev/null', 'new-session', '-d', '-x', String(cols), '-y', String(rows), ...vars, 'sh');
    this.type(`PS1='local% '; clear\n`);
    this.type(`${line}\n`);
  }

  tmux(...args) {
    return execFileSync('tmux', ['-L', this.socket, ...args], { encoding: 'utf8' });
  }

  /** Text as it is; a line end is the Enter key. */
  type(text) {
    const parts = text.split('\n');
    parts.forEach((part, i) => {
      if (part !== '') this.tmux('send-keys', '-l', part);
      if (i < parts.length - 1) this.press('Enter');
    });
  }

  /** Keys by their names, as C-c or Escape. */
  press(...keys) {
    this.tmux('send-keys', ...keys);
  }

  resize(cols, rows) {
    this.tmux('resize-window', '-x', String(cols), '-y', String(rows));
  }

  screen() {
    return this.tmux('capture-pane', '-p');
  }

  /** A variable of tmux's, such as alternate_on or cursor_flag. */
  state(name) {
    return this.tmux('display-message', '-p', `#{${name}}`).trim();
  }

  /** Until the screen matches. */
  async shows(what, deadline = 20_000) {
    const re = typeof what === 'string' ? { exec: (s) => s.includes(what) } : what;
    let last = '';
    return poll(String(what), () => re.exec((last = this.screen())), { deadline, every: 50 }).catch((e) => {
      e.message += `\non the screen:\n${last}`;
      throw e;
    });
  }

  close() {
    try {
      this.tmux('kill-server');
    } catch {} // it has ended by itself
  }
}

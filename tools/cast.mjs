#!/usr/bin/env node
// cast.mjs - plays the first commands of README.md in a real terminal (tmux), against a daemon of its own,
// and writes what was seen as docs/cast.svg. Needs root and a build in build/ (or COVE_BIN).
//
// The picture has all rows; where animations work they appear in the order in which they were typed.
import fs from 'node:fs';
import path from 'node:path';
import { poll, startDaemon } from '../tests/lib/cove.mjs';
import { Pane } from '../tests/lib/pane.mjs';
import { firstCommands } from '../tests/lib/readme.mjs';

const COLS = 92;
const ROWS = 45;
const CHAR = 8.43; // px of a character of 14 px
const LINE = 19;
const EDGE = 16;
const BAR = 30; // the title bar
const TYPED_S = 1.1; // from a command to its output
const READ_S = 1.3; // from an output to the next command
const PROMPT = '$ ';

const root = path.join(import.meta.dirname, '..');
const bin = path.resolve(process.env.COVE_BIN ?? path.join(root, 'build/cove'));

/** The rows of the screen without the empty ones at its end. */
const rowsOf = (pane) => pane.screen().trimEnd().split('\n').map((r) => r.trimEnd());

/** Plays the commands; returns rows with the second at which each is there. */
async function play(commands) {
  const d = await startDaemon();
  const env = { COVE_URL: d.url, COVE_API_KEY: d.key, BIN: path.dirname(bin) };
  const pane = new Pane(`PATH=$BIN:$PATH; PS1='${PROMPT}'; clear`, { cols: COLS, rows: ROWS, env });
  const rows = [];
  let at = 0.4;
  try {
    const idle = (above) => poll('the prompt', () => {
      const seen = rowsOf(pane);
      return seen.length > above && seen.at(-1) === PROMPT.trim() ? seen : null;
    });
    let seen = await idle(0);
    for (const command of commands) {
      const from = seen.length - 1;
      pane.type(`${command}\n`);
      seen = await idle(from + 1);
      seen.slice(from, -1).forEach((text, i) => rows.push({ text, at: i === 0 ? at : at + TYPED_S }));
      at += TYPED_S + READ_S;
    }
  } finally {
    pane.close();
    await d.stop();
  }
  return rows;
}

const escaped = (s) => s.replace(/[&<>]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]);

/** A row: the prompt and a comment are dim, a command is bright. */
function row({ text, at }, i) {
  const [, command, comment] = text.startsWith(PROMPT) ? /^\$ (.*?)( +# .*)?$/.exec(text) : [];
  const inner = command === undefined
    ? escaped(text)
    : `<tspan class="d">${PROMPT}</tspan><tspan class="c">${escaped(command)}</tspan>${comment ? `<tspan class="d">${escaped(comment)}</tspan>` : ''}`;
  return `<text x="${EDGE}" y="${BAR + EDGE + 14 + i * LINE}" style="animation-delay:${at.toFixed(1)}s">${inner}</text>`;
}

function picture(rows) {
  const width = Math.ceil(COLS * CHAR + 2 * EDGE);
  const height = BAR + 2 * EDGE + rows.length * LINE;
  const dots = ['#ff5f56', '#ffbd2e', '#27c93f'].map((c, i) => `<circle cx="${20 + i * 20}" cy="16" r="6" fill="${c}"/>`).join('');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" xml:space="preserve" role="img" aria-label="The first commands of the README in a terminal">
<!-- made by tools/cast.mjs -->
<style>
text { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #c9d1d9; white-space: pre; animation: shown 1ms both }
.c { fill: #7ee787 }
.d { fill: #8b949e }
@keyframes shown { from { visibility: hidden } }
@media (prefers-reduced-motion: reduce) { text { animation: none } }
</style>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
${dots}
${rows.map(row).join('\n')}
</svg>
`;
}

const rows = await play(firstCommands(fs.readFileSync(path.join(root, 'README.md'), 'utf8')));
fs.writeFileSync(path.join(root, 'docs/cast.svg'), picture(rows));

// The command line where things go wrong: streams that are closed or full, names that
// mean harm to a terminal, arguments that make no sense, servers that are none.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BIN, finished, poll, run, startDaemon } from '../lib/cove.mjs';
import { Pane } from '../lib/pane.mjs';

let d;
let id;
let here;
before(async () => {
  here = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-cli-'));
  d = await startDaemon();
  id = (await d.sandbox()).id;
});
after(async () => {
  await d?.stop();
  fs.rmSync(here, { recursive: true, force: true });
});

const cove = (args, opts) => d.cli(args, opts);
/** A line of shell in which $COVE is the binary and $ID the sandbox. */
const sh = (line) => run('bash', ['-c', line], { env: { ...d.cliEnv(), COVE: BIN, ID: id }, deadline: 20_000 });
const sandboxes = async () => (await d.get('/v1/sandboxes?limit=1000')).sandboxes.map((s) => s.id);
// eslint-disable-next-line no-control-regex
const CONTROL = /[\x00-\x09\x0b-\x1f\x7f-\x9f]/;

test('a copy that is refused leaves the file that is here', async () => {
  const to = path.join(here, 'kept');
  fs.writeFileSync(to, 'precious');
  assert.equal((await cove(['cp', `${id}:/etc/shadow`, to])).status, 77);
  assert.equal(fs.readFileSync(to, 'utf8'), 'precious');
  assert.equal((await cove(['cp', `${id}:/etc/shadow`, path.join(here, 'new')])).status, 77);
  assert.equal(fs.existsSync(path.join(here, 'new')), false);
});

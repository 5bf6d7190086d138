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

test('output that cannot be written is said, with status 74', async () => {
  for (const args of ['list', 'list --json', 'ps $ID', 'version', 'help', 'create --help', 'template show base']) {
    const r = await sh(`$COVE ${args} > /dev/full`);
    assert.equal(r.status, 74, `${args}: ${r.stderr}`);
    assert.match(r.stderr, /^cove [a-z]+: stdout: No space left on device\n$/, args);
  }
});

test('a stream that was closed is nobody else\'s', async () => {
  for (const args of ['exec $ID -- echo hi', 'run -- echo hi', 'cat $ID:/etc/hostname', 'list', 'logs $ID', 'cp $ID:/etc/hostname -']) {
    const r = await sh(`$COVE ${args} >&-`);
    assert.notEqual(r.status, 0, args);
    assert.match(r.stderr, /Bad file descriptor/, args);
  }
  assert.notEqual((await sh(`$COVE exec $ID -- sh -c 'echo hi >&2' 2>&-`)).status, 0);
  assert.equal((await sh(`$COVE exec $ID -- true >&- 2>&- <&-`)).status, 0);
  assert.equal((await sh(`$COVE exec $ID -- sh -c 'wc -c; exit 3' <&-`)).stdout, '0\n');
  assert.deepEqual(await sandboxes(), [id]);
});

test('a copy that is refused leaves the file that is here', async () => {
  const to = path.join(here, 'kept');
  fs.writeFileSync(to, 'precious');
  assert.equal((await cove(['cp', `${id}:/etc/shadow`, to])).status, 77);
  assert.equal(fs.readFileSync(to, 'utf8'), 'precious');
  assert.equal((await cove(['cp', `${id}:/etc/shadow`, path.join(here, 'new')])).status, 77);
  assert.equal(fs.existsSync(path.join(here, 'new')), false);
});

test('a cursor is one value, whatever is in it', async () => {
  for (const since of ['a b', '0&follow=1', '0 HTTP/1.1\r\nX: y\r\n\r\n']) {
    const r = await cove(['logs', '--since', since, id, 'nosuch']);
    assert.equal(r.status, 64, since);
    assert.match(r.stderr, /^cove logs: since: /, since);
  }
});

// cove cp, ls and cat.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { run, startDaemon } from '../lib/cove.mjs';

let d, s, t, dir;
before(async () => {
  dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-cp-'));
  d = await startDaemon({});
  [s, t] = await Promise.all([d.sandbox(), d.sandbox()]);
});
after(async () => {
  fs.rmSync(dir, { recursive: true, force: true });
  await d?.stop();
});

const here = (name) => path.join(dir, name);
const ok = async (args, opts) => {
  const r = await d.cli(args, opts);
  assert.equal(r.status, 0, `cove ${args.join(' ')}: ${r.stderr}`);
  return r;
};
const bad = async (args, text, opts) => {
  const r = await d.cli(args, opts);
  assert.notEqual(r.status, 0, `cove ${args.join(' ')}`);
  assert.match(r.stderr, text);
};
const sh = async (command, id = s.id) => {
  const r = await d.exec(id, command);
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};

test('cp copies a file into, out of and between sandboxes, byte for byte', async () => {
  const bytes = crypto.randomBytes(3 << 20);
  fs.writeFileSync(here('a b.bin'), bytes, { mode: 0o750 });
  await ok(['cp', here('a b.bin'), `${s.id}:in.bin`]);
  assert.equal(await sh('stat -c %a in.bin'), '750\n');
  await ok(['cp', `${s.id}:in.bin`, here('out.bin')]);
  assert.ok(fs.readFileSync(here('out.bin')).equals(bytes));
  assert.equal(fs.statSync(here('out.bin')).mode & 0o777, 0o750);
  await ok(['cp', `${s.id}:/workspace/in.bin`, `${t.id}:~/there`]);
  await ok(['cp', `${t.id}:~/there`, here('back')]);
  assert.ok(fs.readFileSync(here('back')).equals(bytes));
});

test('cp into an existing directory keeps the name of the file', async () => {
  await sh('mkdir -p box');
  fs.writeFileSync(here('note'), 'hi');
  await ok(['cp', here('note'), `${s.id}:box`]);
  await ok(['cp', here('note'), `${s.id}:box/`]);
  assert.equal(await sh('cat box/note'), 'hi');
  fs.mkdirSync(here('got'));
  await ok(['cp', `${s.id}:box/note`, here('got')]);
  assert.equal(fs.readFileSync(here('got/note'), 'utf8'), 'hi');
  await bad(['cp', here('note'), `${s.id}:none/`], /no such directory/);
});

test('cp reads stdin and writes stdout for -, and cat writes files', async () => {
  await ok(['cp', '-', `${s.id}:piped`], { input: 'from stdin' });
  assert.equal((await ok(['cp', `${s.id}:piped`, '-'])).stdout, 'from stdin');
  assert.equal((await ok(['cat', `${s.id}:piped`, `${s.id}:piped`])).stdout, 'from stdinfrom stdin');
  await bad(['cp', '-', `${s.id}:box`], /is a directory/, { input: 'x' });
});

test('cp copies directories with links and odd names, both ways and between sandboxes', async () => {
  await sh(`rm -rf tree; mkdir -p 'tree/a b/c' tree/empty; echo 1 > 'tree/a b/c/f'; ln -s '../x' tree/l; printf odd > "$(printf 'tree/\\377\\nz')"; mkfifo tree/p`);
  const r = await ok(['cp', `${s.id}:tree`, here('tree')]);
  assert.match(r.stderr, /1 devices, sockets or pipes were left out/);
  assert.equal(fs.readFileSync(here('tree/a b/c/f'), 'utf8'), '1\n');
  assert.equal(fs.readlinkSync(here('tree/l')), '../x');
  assert.ok(fs.statSync(here('tree/empty')).isDirectory());
  assert.equal(fs.readFileSync(Buffer.concat([Buffer.from(here('tree/')), Buffer.from([0xff, 0x0a, 0x7a])]), 'utf8'), 'odd');
  await ok(['cp', here('tree'), `${t.id}:copied`]);
  const names = 'find . | LC_ALL=C sort | od -c | md5sum';
  assert.equal(await sh(`cd copied; ${names}`, t.id), await sh(`cd tree; rm p; ${names}`));
  await ok(['cp', `${s.id}:tree`, `${t.id}:passed`]);
  assert.equal(await sh('cat "passed/a b/c/f"', t.id), '1\n');
});

test('cp of a directory over its earlier copy replaces the files', async () => {
  await sh('rm -rf twice; mkdir -m 750 twice; mkdir -m 700 twice/own; echo 1 > twice/own/f; ln -s f twice/own/l; ln -s f twice/own/m');
  fs.mkdirSync(here('outs'));
  await ok(['cp', `${s.id}:twice`, here('outs')]);
  assert.deepEqual(['outs/twice', 'outs/twice/own'].map((n) => fs.statSync(here(n)).mode & 0o777), [0o750, 0o700]);
  await sh('cd twice/own; ln -sf ../elsewhere l; rm m; echo a file now > m');
  await ok(['cp', `${s.id}:twice`, here('outs')]);
  assert.equal(fs.readlinkSync(here('outs/twice/own/l')), '../elsewhere');
  assert.equal(fs.readFileSync(here('outs/twice/own/m'), 'utf8'), 'a file now\n');
  assert.equal(fs.readFileSync(here('outs/twice/own/f'), 'utf8'), '1\n');
});

test('cp to a device or pipe keeps its mode', async () => {
  await sh('echo private > p; chmod 600 p');
  await run('mkfifo', ['-m', '666', here('fifo')]);
  const reader = run('cat', [here('fifo')]);
  await ok(['cp', `${s.id}:p`, here('fifo')]);
  assert.equal((await reader).stdout, 'private\n');
  assert.equal(fs.statSync(here('fifo')).mode & 0o777, 0o666);
});

test('names from a sandbox cannot lead outside the target of cp', async () => {
  await sh(`rm -rf evil; mkdir -p evil/d; echo inside > evil/d/f`);
  fs.mkdirSync(here('target/evil'), { recursive: true });
  fs.mkdirSync(here('outside'));
  fs.symlinkSync(here('outside'), here('target/evil/d')); // as a link that came first would be
  await bad(['cp', `${s.id}:evil`, here('target')], /./);
  assert.deepEqual(fs.readdirSync(here('outside')), []);
});

test('ls lists names, hidden ones, trees and long rows as its options say', async () => {
  await sh('rm -rf l; mkdir -p l/sub; echo abc > l/file; touch l/.hidden l/sub/deep; ln -s file l/link; chmod 4711 l/file');
  assert.equal((await ok(['ls', `${s.id}:l`])).stdout, 'file\nlink\nsub\n');
  assert.equal((await ok(['ls', '-a', `${s.id}:l`])).stdout, '.hidden\nfile\nlink\nsub\n');
  assert.equal((await ok(['ls', '-R', `${s.id}:l`])).stdout, 'file\nlink\nsub\nsub/deep\n');
  const long = (await ok(['ls', '-l', `${s.id}:l`])).stdout;
  assert.match(long, /^MODE +OWNER +GROUP +SIZE +MODIFIED +NAME\n-rws--x--x +user +user +4 +\d{4}-\d\d-\d\dT\d\d:\d\d +file\n/);
  assert.match(long, /lrwxrwxrwx .* link -> file\n/);
  const far = [...'abc'].map((c) => c.repeat(200)).join('/');
  await sh(`mkdir -p l/sub/${far}; ln -s ${far} l/sub/far`);
  const deep = (await ok(['ls', '-lR', `${s.id}:l`])).stdout;
  assert.ok(deep.includes(` sub/${far}\n`) && deep.includes(` sub/far -> ${far}\n`), 'names are whole, however long');
  await sh(`rm -r l/sub/*; touch l/sub/deep`);
  assert.equal((await ok(['ls', `${s.id}:l/file`])).stdout, '/workspace/l/file\n');
  assert.ok(JSON.parse((await ok(['ls', '--json', s.id])).stdout).files.length > 0);
  await bad(['ls', `${s.id}:nothing`], /No such file/);
});

test('errors say what is wrong', async () => {
  await bad(['cp', here('none'), `${s.id}:x`], /No such file/);
  await bad(['cp', `${s.id}:none`, here('x')], /No such file/);
  await bad(['cp', here('note'), here('y')], /SANDBOX:PATH/);
  await bad(['cp', here('note'), 'nosandbox:/x'], /no sandbox/i);
  await bad(['cp', here('note'), `${s.id}:/etc/x`], /Permission denied/);
  await bad(['cp', '-r', `${s.id}:/etc`, here('etc')], /^cove cp: \/etc\/[^ ]+: Permission denied\n$/);
  await bad(['cat', here('note')], /SANDBOX:PATH/);
  assert.ok(!fs.existsSync(here('x')));
  await ok(['cp', '-u', 'root', here('note'), `${s.id}:/etc/x`]);
});

test('cp shows progress on a terminal only', async () => {
  fs.writeFileSync(here('big'), Buffer.alloc(64 << 20));
  const quiet = await ok(['cp', here('big'), `${s.id}:big`]);
  assert.equal(quiet.stderr, '');
  const r = await run('script', ['-qec', `${process.env.COVE_BIN ?? 'build/cove'} cp ${here('big')} ${s.id}:big`, '/dev/null'], { env: d.cliEnv() });
  assert.equal(r.status, 0, r.stdout);
  assert.match(r.stdout, /\r\x1b\[Kcopying +\d+% +[\d.]+ MiB big/);
  assert.match(r.stdout, /\r\x1b\[Kcopied big: 64\.0 MiB in [\d.]+ s\r\n$/, 'the last line is a summary');
  const cat = await run('script', ['-qec', `${process.env.COVE_BIN ?? 'build/cove'} cat ${s.id}:piped`, '/dev/null'], { env: d.cliEnv() });
  assert.equal(cat.stdout, 'from stdin', 'what is printed needs no bar');
});

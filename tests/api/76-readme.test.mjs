// What the README says to type works as it is written there.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BIN, run, startDaemon } from '../lib/cove.mjs';
import { firstCommands, shellBlocks } from '../lib/readme.mjs';

const ROOT = path.join(import.meta.dirname, '../..');
const README = fs.readFileSync(path.join(ROOT, 'README.md'), 'utf8');

let d;
before(async () => {
  d = await startDaemon();
  fs.symlinkSync(path.dirname(path.resolve(BIN)), path.join(d.dir, 'build')); // "export PATH=$PWD/build:$PATH"
});
after(() => d?.stop());

const bash = (text) => run('bash', ['-ec', text], { cwd: d.dir, env: { ...process.env, COVE_URL: d.url, COVE_API_KEY: d.key } });

test('the first example of the README is three lines: make serve, PATH, cove run', async () => {
  const [[serve, ...more], [setPath, first]] = shellBlocks(README).map((b) => b.filter((l) => l !== ''));
  assert.deepEqual(more, []);
  const how = await run('make', ['-n', ...serve.split(' ').slice(1, 2)], { cwd: ROOT });
  assert.match(how.stdout, /build\/cove serve /);
  const r = await bash(`${setPath}\n${first}`);
  assert.equal(r.status, 0, r.stderr);
  assert.match(r.stdout, /^Linux .*GNU\/Linux\n$/);
});

test('the commands that follow it print what they should', async () => {
  const commands = firstCommands(README);
  assert.ok(commands.length >= 8, commands.join('\n'));
  const r = await bash(['export PATH=$PWD/build:$PATH', ...commands].join('\n'));
  assert.equal(r.status, 0, r.stderr);
  assert.match(r.stdout, /^Linux .*\nuid=0\(root\).*\nhi\nwork\n1 in \/usr\n(\w{20}\n){3}PROCESS /);
});

test('the picture in the README shows its commands, and needs nothing beside itself', async () => {
  const file = path.join(ROOT, 'docs/cast.svg');
  assert.match(README, /!\[[^\]]+\]\(docs\/cast\.svg\)/);
  const svg = fs.readFileSync(file, 'utf8');
  const text = svg.replace(/<style>[^]*?<\/style>/, '').replace(/<[^>]*>/g, '').replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&');
  const shown = text.split('\n').filter((l) => l.startsWith('$ ')).map((l) => l.slice(2));
  assert.deepEqual(shown, firstCommands(README), 'tools/cast.mjs makes it again');
  assert.doesNotMatch(svg, /href|url\(|@import|<script|<image/);
  assert.ok(svg.length < 16 << 10);
  assert.doesNotMatch(text, /not found|cove \w+: /, 'no command failed');
});

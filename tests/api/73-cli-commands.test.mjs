// What the command line offers besides running commands: watching, cleaning up, several servers.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BIN, finished, poll, run, startDaemon } from '../lib/cove.mjs';
import { staticProbe, tar } from '../lib/image.mjs';
import { Pane } from '../lib/pane.mjs';

const S = '/v1/sandboxes';
let d;
let id;
let home;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox({ name: 'box' })).id;
  home = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-home-'));
});
after(async () => {
  await d?.stop();
  fs.rmSync(home, { recursive: true });
});

const cove = (args, opts) => d.cli(args, opts);
const ok = async (args, opts) => {
  const r = await cove(args, opts);
  assert.equal(r.status, 0, `${args.join(' ')}: ${r.stderr}`);
  return r.stdout;
};

test('the status of run and exec is the command\'s, or what a shell says of one that cannot run', async () => {
  for (const n of [0, 1, 64, 75, 125]) assert.equal((await cove(['exec', 'box', 'sh', '-c', `exit ${n}`])).status, n);
  assert.equal((await cove(['exec', 'box', 'no-such-program'])).status, 127);
  assert.equal((await cove(['run', 'no-such-program'])).status, 127);
  assert.equal((await cove(['exec', 'box', '/etc/passwd'])).status, 126);
  assert.equal((await cove(['exec', 'box', '/'])).status, 126);
  assert.equal((await cove(['exec', '-u', 'root', 'box', 'sh', '-c', "printf '#!/no/such/interpreter\\n' >/tmp/odd; chmod 755 /tmp/odd"])).status, 0);
  assert.equal((await cove(['exec', 'box', '/tmp/odd'])).status, 126);
  // ours, and so of no program
  assert.equal((await cove(['exec', '-w', '/no/such/directory', 'box', 'true'])).status, 201);
  assert.equal((await cove(['exec', 'nobody', 'true'])).status, 202);
  for (const [args, step] of [
    [['exec', 'nobody', 'true'], /no sandbox nobody; `cove list` shows the sandboxes/],
    [['ls', 'nobody:/'], /no sandbox nobody; `cove list`/],
    [['snapshot', 'show', 'nothing'], /no snapshot nothing; `cove snapshot list`/],
    [['template', 'show', 'nothing'], /no template 'nothing'; `cove template list`/],
  ]) assert.match((await cove(args)).stderr, step);
  assert.equal((await cove(['exec', '-u', 'nobody-of-that-name', 'box', 'true'])).status, 201);
});

test('an OOM kill is said in words by exec, ps and logs', async () => {
  const small = await d.sandbox({ limits: { memory: 64 << 20 } });
  const r = await cove(['exec', small.id, 'python3', '-c', 'x = bytearray(500 << 20)']);
  assert.equal(r.status, 137);
  assert.match(r.stderr, /killed: sandbox \w+ reached its memory limit; `cove update --memory/);
  assert.match(await ok(['ps', small.id]), /out of memory/);
  await poll('the log has it', async () => /was killed: the sandbox reached its memory limit: python3/.test(await ok(['logs', small.id])));
  await d.del(`${S}/${small.id}`);
});

test('logs show what ran, when and by whom', async () => {
  await ok(['exec', '-u', 'root', 'box', 'sh', '-c', 'true; exit 0 # by root']);
  const log = await poll('it is in the log', async () => {
    const text = await ok(['logs', 'box']);
    return /exited with status 0: sh -c true; exit 0 # by root/.test(text) && text;
  });
  assert.match(log, /^\d{4}-\d\d-\d\dT[\d:.]+Z info +root started \w+ \(pid \d+\): sh -c true; exit 0 # by root$/m);
});

test('a detached command goes on; its id is printed, and run -d prints the sandbox', async () => {
  const p = (await ok(['exec', '-d', 'box', 'sh', '-c', 'echo here; sleep 1000'])).trim();
  await d.post(`${S}/box/processes/${p}/wait`, { text: 'here' });
  assert.equal(await ok(['logs', 'box', p]), 'here\n');
  await ok(['kill', 'box', p]);
  const s = (await ok(['run', '-d', '--name', 'job', 'sleep', '1000'])).trim();
  assert.equal((await d.get(`${S}/job`)).id, s);
  assert.match(await ok(['ps', 'job']), /running .*sleep 1000/);
  await ok(['delete', 'job']);
  assert.equal((await cove(['run', '-d', 'no-such-program'])).status, 127);
  assert.deepEqual((await d.get(S)).sandboxes.map((x) => x.id), [id]);
  for (const args of [['exec', '-dt', 'box', 'true'], ['exec', '-di', 'box', 'true']]) assert.equal((await cove(args)).status, 200);
});

test('with -i a command reads the terminal, line by line', async () => {
  const p = new Pane(`${BIN} exec -i box sh -c 'read a; echo got:$a'; echo "status=$?"`, { env: d.cliEnv() });
  await poll('it runs', async () => (await d.get(`${S}/box/processes`)).processes.some((x) => x.state === 'running' && x.argv.includes('read a; echo got:$a')));
  p.type('hello\n');
  await p.shows('got:hello');
  await p.shows('status=0');
  p.close();
});

test('list filters by state, template and label, and shows the columns that are asked for', async () => {
  const other = await d.sandbox({ metadata: { team: 'a b', n: '1' } });
  await d.post(`${S}/${other.id}/pause`);
  assert.deepEqual((await ok(['list', '-q', '--state', 'paused'])).trim(), other.id);
  assert.deepEqual((await ok(['list', '-q', '--meta', 'team=a b', '--meta', 'n=1'])).trim(), other.id);
  assert.equal(await ok(['list', '-q', '--meta', 'team=b']), '');
  assert.equal(await ok(['list', '-q', '--template', 'nothing']), '');
  assert.match(await ok(['list', '--columns', 'name,memory,cpu', '--state', 'running']), /^NAME +MEMORY +CPU\nbox +1\.0G +2\n$/);
  assert.match((await cove(['list', '--columns', 'colour'])).stderr, /no column 'colour'/);
  assert.equal((await cove(['list', '--state', 'odd'])).status, 200);
  await d.del(`${S}/${other.id}`);
});

test('list --watch and top draw again, on a terminal', async () => {
  const p = new Pane(`${BIN} list --watch`, { env: d.cliEnv() });
  await p.shows(/^ID +NAME +STATE/m);
  const s = await d.sandbox({ name: 'newcomer' });
  await p.shows('newcomer');
  p.press('C-c');
  await p.shows('local%');
  p.type(`clear; ${BIN} top\n`);
  await p.shows(/^ID +NAME +CPU +MEMORY/m);
  await p.shows('newcomer');
  await d.del(`${S}/${s.id}`);
  await poll('it is gone from the screen', () => !p.screen().includes('newcomer'));
  p.press('C-c');
  await p.shows('local%');
  p.close();
  assert.match(await ok(['stats', 'box']), /^ID.*\n\w+ +box +[\d.]+% of 2 .*\n$/);
  assert.equal(JSON.parse(await ok(['stats', '--json', 'box'])).sandboxes[0].id, id);
  assert.equal((await cove(['stats', 'nobody'])).status, 202);
});

test('events come as they happen, of all or of one, and go on after a restart of the daemon', async () => {
  const child = d.cliSpawn(['events', 'box']);
  let out = '';
  child.stdout.on('data', (x) => (out += x));
  const started = async (word) => poll(`${word} is an event`, async () => {
    await d.exec(id, 'true').catch(() => {});
    await d.process(id, ['echo', word]).catch(() => {});
    return out.includes(`command=echo ${word} user=`);
  }, { every: 200 });
  await started('first');
  assert.match(out, new RegExp(`^\\S+Z ${id} process\\.started process=\\w+ pid=\\d+ command=echo first`, 'm'));
  await d.kill9('front');
  await d.back();
  await started('second');
  child.kill('SIGINT');
  await once(child, 'close');
});

test('df adds up what takes disk space', async () => {
  const snap = await d.post(`${S}/box/snapshots`, { name: 'kept' });
  const text = await ok(['df', '-v']);
  assert.match(text, /^disk: \S+ used of \S+, \S+ can still be written$/m);
  assert.match(text, /^running sandboxes +1 /m);
  assert.match(text, /^snapshots +1 /m);
  assert.match(text, new RegExp(`^${snap.id} +kept `, 'm'));
  const all = JSON.parse(await ok(['df', '--json']));
  assert.ok(all.disk.total > all.disk.used && all.disk.used > 0);
  await d.del(`/v1/snapshots/${snap.id}`);
});

test('prune asks, deletes only what does not run, and needs --force without a terminal', async () => {
  const stopped = await d.sandbox({ name: 'old' });
  const paused = await d.sandbox();
  const snap = await d.post(`${S}/box/snapshots`, {});
  await d.post(`${S}/${stopped.id}/pause`, { memory: false });
  await d.post(`${S}/${paused.id}/pause`);
  const ids = async () => (await d.get(S)).sandboxes.map((s) => s.id).sort();
  const r = await cove(['prune']);
  assert.equal(r.status, 200);
  assert.match(r.stdout, /sandbox +\w+ +old/);
  assert.match(r.stderr, /--force/);
  assert.equal(await ok(['prune', '--older', '1h', '--force']), 'nothing to delete\n');
  const p = new Pane(`${BIN} prune`, { env: d.cliEnv() });
  await p.shows(/Delete these 1 and their files\? \[y\/N\]/);
  p.type('n\n');
  await p.shows('nothing deleted');
  assert.deepEqual(await ids(), [id, stopped.id, paused.id].sort());
  p.type(`clear; ${BIN} prune\n`);
  await p.shows(/\[y\/N\]/);
  p.type('y\n');
  await p.shows('1 deleted');
  p.close();
  assert.deepEqual(await ids(), [id, paused.id].sort());
  assert.equal(await ok(['prune', '--paused', '--snapshots', '--force']), '2 deleted\n');
  assert.deepEqual(await ids(), [id]);
  await d.fails(404, 'not_found', 'GET', `/v1/snapshots/${snap.id}`);
});

test('contexts name servers; their keys are in a file that only the user can read', async () => {
  const env = { PATH: process.env.PATH, HOME: home };
  const own = (args, opts = {}) => run(BIN, args, { env: { ...env, ...opts.env }, input: opts.input });
  const file = path.join(home, '.config/cove/contexts.json');
  assert.equal((await own(['context', 'add', 'here', d.url], { input: 'wrong\n' })).status, 213);
  assert.equal(fs.existsSync(file), false);
  const r = await own(['context', 'add', 'here', d.url], { input: `${d.key}\n` });
  assert.equal(r.status, 0, r.stderr);
  assert.equal(fs.statSync(file).mode & 0o777, 0o600);
  assert.equal((await own(['list', '-q'])).stdout.trim(), id);
  assert.match((await own(['context', 'list'])).stdout, /^here +\* +http/m);
  assert.doesNotMatch((await own(['context', 'list', '--json'])).stdout, new RegExp(d.key));
  const down = await own(['context', 'add', 'away', 'http://127.0.0.1:9'], { input: 'key\n' });
  assert.equal(down.status, 0);
  assert.match(down.stderr, /does not answer now/);
  assert.equal((await own(['--context', 'away', 'list'])).status, 200); // an option of a command
  assert.equal((await own(['list', '--context', 'away'])).status, 211);
  assert.equal((await own(['list', '--context', 'here'], { env: { COVE_URL: 'http://127.0.0.1:9', COVE_API_KEY: 'x' } })).status, 0);
  assert.equal((await own(['list'], { env: { COVE_CONTEXT: 'away' } })).status, 211);
  assert.equal((await own(['context', 'use', 'nowhere'])).status, 202);
  await own(['context', 'use', 'away']);
  assert.equal((await own(['list'])).status, 211);
  await own(['context', 'remove', 'away']);
  assert.match((await own(['context', 'list'])).stdout, /^here +- /m);
  fs.chmodSync(file, 0o644);
  const open = await own(['list', '--context', 'here']);
  assert.equal(open.status, 213);
  assert.match(open.stderr, /chmod 600/);
});

test('cp takes several sources, and -r', async () => {
  const dir = fs.mkdtempSync(path.join(home, 'cp-'));
  fs.mkdirSync(path.join(dir, 'tree'));
  for (const f of ['a', 'b', 'tree/c']) fs.writeFileSync(path.join(dir, f), f);
  await d.exec(id, 'mkdir -p /workspace/in');
  await ok(['cp', '-r', path.join(dir, 'a'), path.join(dir, 'b'), path.join(dir, 'tree'), 'box:/workspace/in']);
  assert.equal((await d.exec(id, 'cd /workspace/in && cat a b tree/c')).stdout, 'abtree/c');
  fs.mkdirSync(path.join(dir, 'out'));
  await ok(['cp', 'box:/workspace/in/a', 'box:/workspace/in/tree', path.join(dir, 'out')]);
  assert.deepEqual(fs.readdirSync(path.join(dir, 'out')).sort(), ['a', 'tree']);
  for (const to of ['box:/workspace/in/a', path.join(dir, 'a'), 'box:/workspace/none', '-']) {
    const r = await cove(['cp', path.join(dir, 'a'), 'box:/workspace/in/b', to]);
    assert.notEqual(r.status, 0, to);
  }
});

test('a subcommand has its own help, with its options only', async () => {
  const take = await ok(['snapshot', 'take', '--help']);
  assert.match(take, /^usage: cove snapshot take \[OPTIONS\] SANDBOX\n/);
  assert.match(take, /--name NAME +name of the snapshot/);
  assert.doesNotMatch(take, /--sandbox/);
  assert.equal(await ok(['help', 'snapshot', 'take']), take);
  assert.match(await ok(['snapshot', 'list', '--help']), /--name NAME +only snapshots of this name/);
  assert.match(await ok(['context', 'use', '-h']), /^usage: cove context use/);
  assert.match(await ok(['snapshot', '--help']), /subcommands:/);
  for (const c of ['serve', 'list', 'key'])
    for (const l of (await ok([c, '--help'])).split('\n')) assert.ok(l.length <= 100, `${c}: too wide: ${l}`);
});

test('a missing argument is named, with the next step', async () => {
  assert.match((await cove(['exec'])).stderr, /SANDBOX is missing; `cove list` shows the sandboxes/);
  assert.match((await cove(['exec', 'box'])).stderr, /COMMAND is missing/);
  assert.match((await cove(['cp', 'x'])).stderr, /TARGET is missing/);
  assert.match((await cove(['exec', '--time', '3s', 'box', 'true'])).stderr, /did you mean --timeout\?/);
});

/** All bytes that a command writes to a terminal of that width. */
async function terminalBytes(line, cols) {
  const file = path.join(home, `bytes-${Math.random()}`);
  const p = new Pane(':', { cols, env: d.cliEnv() });
  await p.shows('local%');
  p.tmux('pipe-pane', `cat >${file}`);
  p.type(`${line}; echo status=$?\n`);
  await p.shows(/^status=0$/m, 60_000);
  const screen = p.screen();
  p.close();
  return { screen, bytes: await poll('all is written', () => /^status=0/m.exec(fs.readFileSync(file, 'utf8'))?.input) };
}

test('progress stays on one line, names its phases and ends with a summary', async () => {
  const cols = 60;
  const image = path.join(home, 'image.tar');
  const at = path.join(home, 'export.tar.zst');
  fs.writeFileSync(image, tar([{ name: 'p', data: staticProbe(), mode: 0o755 }, { name: 'noise', data: crypto.randomBytes(64 << 20) }]));
  const check = (phases, summary, { screen, bytes }) => {
    for (const phase of phases) assert.match(bytes, new RegExp(`\\r\x1b\\[K${phase} `), `${phase} is shown`);
    assert.match(screen, summary);
    assert.equal(screen.split('\n').filter((l) => /^(reading|sending|receiving|unpacking|storing) /.test(l)).length, 0, screen);
    const lines = bytes.split(/[\r\n]+/).map((l) => l.replace(/\x1b\[[0-9;?]*[A-Za-z]/g, ''));
    for (const l of lines.filter((x) => /^(reading|sending|receiving|unpacking|storing) /.test(x))) assert.ok(l.length < cols, l);
  };
  check(['sending', 'unpacking', 'storing'], /added template noise: [\d.]+ MiB in [\d.]+ s/, await terminalBytes(`${BIN} template add noise ${image}`, cols));
  const box = await d.sandbox({ template: 'noise' });
  const snap = await d.post(`${S}/${box.id}/snapshots`, { name: 'a-snapshot-with-a-name-that-is-longer-than-half-of-the-line' });
  check(['reading', 'receiving'], /exported \S+.*: [\d.]+ MiB in [\d.]+ s/, await terminalBytes(`${BIN} snapshot export ${snap.id} ${at}`, cols));
  check(['sending', 'unpacking', 'storing'], /imported \S+.*: [\d.]+ MiB in [\d.]+ s/, await terminalBytes(`${BIN} snapshot import ${at}`, cols));
  await d.del(`${S}/${box.id}`);
});

// Watching directories, as the SDK does (a stream) and as others do (polling).
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll } from '../../lib/cove.mjs';
import { startE2b } from './lib.mjs';

let d, sdk, sbx, id;
before(async () => {
  ({ d, sdk } = await startE2b());
  sbx = await sdk.Sandbox.create();
  id = sbx.sandboxId;
});
after(() => d.stop());

const sh = async (command, opts) => (await d.exec(id, command, opts)).stdout;

/** Watches and gathers; `until` waits for an event like that. */
async function watch(path, opts = {}) {
  const events = [];
  let exited;
  const exit = new Promise((r) => (exited = r));
  const handle = await sbx.files.watchDir(path, (e) => events.push(e), { onExit: (e) => exited({ error: e }), ...opts });
  const until = (type, name) => poll(`${type} of ${name}, seen ${JSON.stringify(events)}`, () => events.find((e) => e.type === type && e.name === name));
  return { handle, events, until, exit };
}

test('events have a type and a name', async () => {
  await sbx.files.makeDir('w');
  const w = await watch('w');
  await sbx.files.write('w/new.txt', 'x');
  await w.until('create', 'new.txt');
  await w.until('write', 'new.txt');
  await sbx.files.write('w/large', new Blob([Buffer.alloc(1 << 20)]));
  await w.until('create', 'large');
  await w.until('write', 'large');
  await sh('chmod 600 ~/w/new.txt');
  await w.until('chmod', 'new.txt');
  await sbx.files.rename('w/new.txt', 'w/other.txt');
  await w.until('rename', 'new.txt');
  await w.until('create', 'other.txt');
  await sbx.files.remove('w/other.txt');
  await w.until('remove', 'other.txt');
  await sbx.files.makeDir('w/dir');
  await w.until('create', 'dir');
  assert.ok(w.events.every((e) => e.entry === undefined));
  await w.handle.stop();
  await w.exit;
});

test('an overwritten file is written, under its own name', async () => {
  await sbx.files.write('over/f', 'old');
  const w = await watch('over');
  await sbx.files.write('over/f', 'new');
  await w.until('write', 'f');
  await sbx.files.write('over/f', new Blob([Buffer.alloc(1 << 20)]));
  await poll('a second write', () => w.events.filter((e) => e.type === 'write').length >= 2);
  assert.deepEqual([...new Set(w.events.map((e) => e.name))], ['f']);
  await w.handle.stop();
});

test('only a recursive watch reports subdirectories, including new ones', async () => {
  await sbx.files.makeDir('rec/a');
  const flat = await watch('rec');
  const deep = await watch('rec', { recursive: true });
  await sbx.files.write('rec/a/f', '1');
  await deep.until('write', 'a/f');
  await sbx.files.write('rec/b/c/g', '2');
  await deep.until('create', 'b/c/g');
  await flat.until('create', 'b');
  assert.ok(flat.events.every((e) => !e.name.includes('/')));
  await flat.handle.stop();
  await deep.handle.stop();
});

test('events have the entry of an existing file', async () => {
  await sbx.files.makeDir('ent');
  const w = await watch('ent', { includeEntry: true });
  await sbx.files.write('ent/f', 'four', { metadata: { k: 'v' } });
  await w.until('write', 'f');
  await sh('ln -s f ~/ent/l');
  const link = await w.until('create', 'l');
  assert.deepEqual([link.entry.type, link.entry.symlinkTarget], ['file', '/home/user/ent/f']);
  await sbx.files.remove('ent/f');
  const removed = await w.until('remove', 'f');
  assert.equal(removed.entry, undefined);
  const written = w.events.filter((e) => e.name === 'f' && e.entry).at(-1);
  assert.equal(written.entry.path, '/home/user/ent/f');
  assert.equal(written.entry.owner, 'user');
  await w.handle.stop();
});

test('a watch ends when its directory is removed', async () => {
  await sbx.files.makeDir('going');
  const w = await watch('going');
  await sbx.files.write('going/x', '');
  await sbx.files.remove('going');
  assert.equal((await w.exit).error, undefined);
  assert.ok(w.events.some((e) => e.type === 'remove' && e.name === 'x'));
});

test('it ends with the time that the client gives', async () => {
  await sbx.files.makeDir('timed');
  const w = await watch('timed', { timeoutMs: 300 });
  assert.ok((await w.exit).error instanceof sdk.TimeoutError);
});

test('a watch of a missing path or a file fails', async () => {
  await sbx.files.write('plain', '');
  await assert.rejects(sbx.files.watchDir('nowhere', () => {}), sdk.FileNotFoundError);
  await assert.rejects(sbx.files.watchDir('plain', () => {}), sdk.InvalidArgumentError);
  await assert.rejects(sbx.files.watchDir('~root', () => {}), sdk.InvalidArgumentError);
  await assert.rejects(sbx.files.watchDir('/', () => {}, { user: 'nobody-here' }), sdk.AuthenticationError);
});

test('a watch works in a directory of root and in the home of the given user', async () => {
  await sh('mkdir -m 700 -p /root/w', { user: 'root' });
  const w = await watch('/root/w');
  const home = await watch('', { user: 'root' });
  await sh('touch /root/w/f /root/g', { user: 'root' });
  await w.until('create', 'f');
  await home.until('create', 'g');
  await w.handle.stop();
  await home.handle.stop();
});

test('a watch reports the end of its sandbox', async () => {
  const other = await sdk.Sandbox.create();
  await other.files.makeDir('w');
  let exited;
  const exit = new Promise((r) => (exited = r));
  await other.files.watchDir('w', () => {}, { onExit: exited });
  await other.kill();
  const e = await exit;
  assert.ok(e instanceof sdk.TimeoutError, `${e}`);
  assert.match(e.message, /killed or reached its end of life/);
});

test('stopped watches leave no process', async () => {
  await sbx.files.makeDir('many');
  for (let i = 0; i < 40; i++) {
    const w = await watch('many');
    await w.handle.stop();
  }
  await poll('no helper runs any more', async () => !(await sh('ps -eo comm')).includes('cove-helper'));
});

// ---- polling, as the Python SDK does ----

function rpc(method, body) {
  return d.call('POST', `/filesystem.Filesystem/${method}`, body, {
    key: null,
    headers: { 'e2b-sandbox-id': id, 'e2b-sandbox-port': '49983', 'x-access-token': sbx.envdAccessToken },
  });
}

async function gather(watcherId, type, name) {
  const all = [];
  await poll(`${type} of ${name}`, async () => {
    all.push(...((await rpc('GetWatcherEvents', { watcherId })).json.events ?? []));
    return all.some((e) => e.type === type && e.name === name);
  });
  return all;
}

test('a watcher is polled: each event once', async () => {
  await sbx.files.makeDir('polled/sub');
  const { watcherId } = (await rpc('CreateWatcher', { path: 'polled', recursive: true, includeEntry: true })).json;
  assert.deepEqual((await rpc('GetWatcherEvents', { watcherId })).json, {});
  await sbx.files.write('polled/sub/f', 'x');
  const first = await gather(watcherId, 'EVENT_TYPE_WRITE', 'sub/f');
  assert.equal(first.find((e) => e.type === 'EVENT_TYPE_WRITE').entry.path, '/home/user/polled/sub/f');
  await sbx.files.remove('polled/sub/f');
  const second = await gather(watcherId, 'EVENT_TYPE_REMOVE', 'sub/f');
  assert.ok(!second.some((e) => e.type === 'EVENT_TYPE_CREATE'));
  // a new front has forgotten what was read, and tells it again rather than losing any
  await d.kill9('front');
  await d.back();
  await sbx.files.write('polled/late', 'x');
  await gather(watcherId, 'EVENT_TYPE_WRITE', 'late');
  assert.deepEqual((await rpc('RemoveWatcher', { watcherId })).json, {});
  for (const method of ['GetWatcherEvents', 'RemoveWatcher']) {
    const a = await rpc(method, { watcherId });
    assert.deepEqual([a.status, a.json.code], [404, 'not_found'], method);
  }
});

test('events that do not fit into one poll are in the next one', { timeout: 120_000 }, async () => {
  const files = 350;
  await sbx.files.makeDir('much');
  const { watcherId } = (await rpc('CreateWatcher', { path: 'much', includeEntry: true })).json;
  await sbx.commands.run(`cd much && python3 -c "
import os
for i in range(${files}):
  f = 'f%03d' % i
  open(f, 'w').close()
  os.setxattr(f, 'user.e2b.words', b'w' * 15000)
for i in range(40): os.setxattr('f000', 'user.e2b.more%d' % i, b'w' * 15000)
os.mkdir('last')
"`);
  const sizes = [], seen = [];
  while (!seen.includes('EVENT_TYPE_CREATE last')) {
    const a = await rpc('GetWatcherEvents', { watcherId });
    assert.equal(a.status, 200, a.text);
    sizes.push(a.text.length);
    seen.push(...(a.json.events ?? []).map((e) => `${e.type} ${e.name}`));
  }
  const creates = seen.filter((e) => e.startsWith('EVENT_TYPE_CREATE f'));
  assert.deepEqual(creates, Array.from({ length: files }, (_, i) => `EVENT_TYPE_CREATE f${String(i).padStart(3, '0')}`));
  assert.ok(sizes.length > 1 && Math.max(...sizes) <= 8 << 20 && Math.max(...sizes) > 7 << 20, `${sizes}`);
  await rpc('RemoveWatcher', { watcherId });
  await sbx.files.remove('much');
});

test('a watcher of another sandbox is not there', async () => {
  const other = await sdk.Sandbox.create();
  const { watcherId } = (await rpc('CreateWatcher', { path: '/tmp' })).json;
  const a = await d.call('POST', '/filesystem.Filesystem/GetWatcherEvents', { watcherId }, {
    key: null,
    headers: { 'e2b-sandbox-id': other.sandboxId, 'e2b-sandbox-port': '49983', 'x-access-token': other.envdAccessToken },
  });
  assert.deepEqual([a.status, a.json.code], [404, 'not_found']);
  assert.equal((await rpc('GetWatcherEvents', { watcherId: '' })).json.code, 'not_found');
  assert.equal((await rpc('GetWatcherEvents', { watcherId: 'x'.repeat(500) })).json.code, 'not_found');
  assert.equal((await rpc('CreateWatcher', { path: '/nowhere' })).json.code, 'not_found');
  assert.equal((await rpc('CreateWatcher', { path: '/etc/passwd' })).json.code, 'invalid_argument');
});

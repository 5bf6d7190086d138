// The published client of the OpenAI Agents SDK, unmodified, with our URL and a key:
// every method its session offers, and what it refuses by itself.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Manifest, dir, file, r2Mount, s3Mount } from '@openai/agents-core/sandbox';
import { CloudflareBucketMountStrategy, CloudflareSandboxClient } from '@openai/agents-extensions/sandbox/cloudflare';
import { Cloudflare, eventsOf } from '../../lib/cloudflare.mjs';
import { poll, startDaemon } from '../../lib/cove.mjs';

let d;
let client;
let s; // one session that most tests share
const open = [];
let quiet; // a command that says nothing for longer than a proxy would wait

async function create(options = {}, manifest = new Manifest({})) {
  const made = await client.create({ manifest, options });
  open.push(made);
  return made;
}

before(async () => {
  d = await startDaemon();
  client = new CloudflareSandboxClient({ workerUrl: d.url, apiKey: d.key });
  quiet = new Cloudflare(d).call('POST', '/exec', { argv: ['bash', '-c', 'sleep 16; echo at last'] });
  s = await create({}, new Manifest({
    environment: { GREETING: 'it is "set"' },
    entries: {
      'README.md': file({ content: 'hello\n' }),
      src: dir({ children: { 'a.txt': file({ content: 'a' }), deep: dir({ children: { 'b.bin': file({ content: new Uint8Array([0, 255, 10]) }) } }) } }),
    },
  }));
});
after(async () => {
  for (const x of open) await x.close();
  await d?.stop();
});

const cmd = async (session, text, more = {}) => {
  const out = await session.execCommand({ cmd: text, ...more });
  return { out, code: Number(/Process exited with code (\d+)/.exec(out)?.[1]), text: out.slice(out.indexOf('Output:\n') + 8) };
};

test('a manifest is materialised: files, directories, environment', async () => {
  const r = await cmd(s, 'cat README.md src/a.txt; echo; od -An -tx1 src/deep/b.bin; echo "$GREETING"; pwd; id -un; echo $HOME');
  assert.equal(r.code, 0);
  assert.equal(r.text.trim(), 'hello\na\n 00 ff 0a\nit is "set"\n/workspace\nroot\n/root');
});

test('execCommand: exit codes, both streams, a directory, many bytes, UTF-8 in pieces', async () => {
  const r = await cmd(s, 'echo out; echo err >&2; exit 3');
  assert.equal(r.code, 3);
  assert.ok(r.text.includes('out') && r.text.includes('err'));
  assert.equal((await cmd(s, 'pwd', { workdir: 'src/deep' })).text.trim(), '/workspace/src/deep');
  assert.equal((await cmd(s, 'pwd', { workdir: 'nowhere' })).code, 2);
  assert.equal((await cmd(s, 'seq 50000 | sha256sum; seq 50000')).text.split('\n')[0], (await cmd(s, 'seq 50000 | sha256sum')).text.trim());
  assert.ok((await cmd(s, 'for i in 1 2 3 4 5 6 7 8; do printf "\\342\\202"; sleep 0.02; printf "\\254"; done')).text.includes('€'.repeat(8)));
  assert.equal((await cmd(s, "echo 'quo\"tes' \\$HOME \"$((6*7))\" '\n' é")).text.trim(), 'quo"tes $HOME 42 \n é');
});

test('execCommand runs as another user', async () => {
  assert.equal((await cmd(s, 'id -un; pwd', { runAs: 'user' })).text.trim(), 'user\n/workspace');
  assert.notEqual((await cmd(s, 'id', { runAs: 'nobody-there' })).code, 0);
});

test('execCommand: the time limit of the client is enforced', async () => {
  const quick = await create({ timeoutMs: 400 });
  const r = await cmd(quick, 'echo before; sleep 60; echo after');
  assert.equal(r.code, 124);
  assert.equal(r.text.trim(), 'before');
});

test('execCommand runs on a tty, and writeStdin types into it', async () => {
  assert.equal(s.supportsPty(), true);
  const first = await s.execCommand({ cmd: 'stty size; read -p "name? " n; echo "hi $n"', tty: true, yieldTimeMs: 2000 });
  assert.match(first, /24 80/);
  const id = Number(/session ID (\d+)/i.exec(first)?.[1]);
  assert.ok(Number.isInteger(id), first);
  assert.match(await s.writeStdin({ sessionId: id, chars: 'cove\n', yieldTimeMs: 1000 }), /hi cove/);
  assert.match(await s.writeStdin({ sessionId: id, chars: 'exit 5\n', yieldTimeMs: 5000 }), /exited with code 5/);
});

test('a tty that is running can be interrupted', async () => {
  const first = await s.execCommand({ cmd: 'sleep 300; echo unreached', tty: true, yieldTimeMs: 1000 });
  const id = Number(/session ID (\d+)/i.exec(first)?.[1]);
  const said = await s.writeStdin({ sessionId: id, chars: '\u0003', yieldTimeMs: 2000 });
  assert.ok(!said.includes('unreached\r\n'), said);
});

test('readFile has a maximum, fails for missing files, and reads as another user', async () => {
  assert.equal(new TextDecoder().decode(await s.readFile({ path: 'README.md' })), 'hello\n');
  assert.deepEqual([...await s.readFile({ path: 'src/deep/b.bin' })], [0, 255, 10]);
  assert.equal((await s.readFile({ path: 'README.md', maxBytes: 2 })).length, 2);
  await assert.rejects(s.readFile({ path: 'none' }), /not found/i);
  await cmd(s, 'echo secret >secret; chmod 600 secret');
  assert.equal(new TextDecoder().decode(await s.readFile({ path: 'README.md', runAs: 'user' })), 'hello\n');
  await assert.rejects(s.readFile({ path: 'secret', runAs: 'user' }));
  await assert.rejects(s.readFile({ path: '../etc/passwd' }));
});

test('the client writes and reads a file of 40 MB', async () => {
  await cmd(s, 'head -c 40000000 /dev/urandom >big; sha256sum big >big.sum');
  const bytes = await s.readFile({ path: 'big' });
  assert.equal(bytes.length, 40_000_000);
  assert.equal((await cmd(s, 'sha256sum -c big.sum && rm big big.sum')).text.trim(), 'big: OK');
});

test('pathExists and directoryExists tell what is there, also as another user', async () => {
  assert.equal(await s.pathExists('README.md'), true);
  assert.equal(await s.pathExists('none'), false);
  assert.equal(await s.pathExists('secret', 'user'), true);
  assert.equal(await s.directoryExists('src'), true);
  assert.equal(await s.directoryExists('README.md'), false);
  assert.equal(await s.directoryExists('src', 'user'), true);
});

test('the editor creates, updates, moves and deletes', async () => {
  const e = s.createEditor();
  await e.createFile({ type: 'create_file', path: 'edit/new.txt', diff: '+one\n+two\n' });
  assert.equal((await cmd(s, 'cat edit/new.txt')).text.trim(), 'one\ntwo');
  await assert.rejects(e.createFile({ type: 'create_file', path: 'edit/new.txt', diff: '+x\n' }), /already exists/);
  await e.updateFile({ type: 'update_file', path: 'edit/new.txt', diff: '@@\n one\n-two\n+three é\n' });
  assert.equal((await cmd(s, 'cat edit/new.txt')).text.trim(), 'one\nthree é');
  await e.updateFile({ type: 'update_file', path: 'edit/new.txt', moveTo: 'edit/moved.txt', diff: '@@\n-one\n+uno\n three é\n' });
  assert.equal((await cmd(s, 'ls edit; cat edit/moved.txt')).text.trim(), 'moved.txt\nuno\nthree é');
  await e.deleteFile({ type: 'delete_file', path: 'edit/moved.txt' });
  assert.equal(await s.pathExists('edit/moved.txt'), false);
  await assert.rejects(e.createFile({ type: 'create_file', path: '/etc/outside', diff: '+x\n' }));
});

test('the editor works as another user and is refused other users\' files', async () => {
  await cmd(s, 'mkdir -p theirs; chown user theirs');
  const e = s.createEditor('user');
  await e.createFile({ type: 'create_file', path: 'theirs/f', diff: '+mine\n' });
  assert.equal((await cmd(s, 'stat -c %U theirs/f; cat theirs/f')).text.trim(), 'user\nmine');
  await e.updateFile({ type: 'update_file', path: 'theirs/f', diff: '@@\n-mine\n+still mine\n' });
  await assert.rejects(e.updateFile({ type: 'update_file', path: 'secret', diff: '@@\n-secret\n+open\n' }));
  await e.deleteFile({ type: 'delete_file', path: 'theirs/f' });
  assert.equal(await s.pathExists('theirs/f'), false);
});

test('viewImage returns an image and refuses other files', async () => {
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  await cmd(s, `echo ${png} | base64 -d >dot.png; chmod 644 dot.png`);
  for (const runAs of [undefined, 'user']) assert.match(JSON.stringify(await s.viewImage({ path: 'dot.png', runAs })), /image\/png|iVBOR/);
  await assert.rejects(s.viewImage({ path: 'README.md' }));
});

test('materializeEntry and applyManifest add files to the workspace', async () => {
  await s.materializeEntry({ path: 'added/one', entry: file({ content: '1' }) });
  await s.applyManifest(new Manifest({ entries: { 'added/two': file({ content: '2' }) } }));
  assert.equal((await cmd(s, 'cat added/one added/two')).text.trim(), '12');
});

test('persistWorkspace and hydrateWorkspace carry everything into another sandbox', async () => {
  const long = 'x'.repeat(120);
  await cmd(s, `mkdir -p ${long}/${long}; echo deep >${long}/${long}/f; ln -sf README.md link; ln -f README.md hard; mkfifo fifo; chmod 750 src; printf '#!/bin/sh\\necho ran\\n' >run; chmod +x run`);
  const bytes = await s.persistWorkspace(); // the client's own validator accepts it
  const other = await create();
  await other.hydrateWorkspace(bytes);
  const r = await cmd(other, `./run; cat ${long}/${long}/f hard; readlink link; stat -c %a src; ls fifo`);
  assert.match(r.text, /^ran\ndeep\nhello\nREADME\.md\n750\n/);
  assert.match(r.text, /No such file/);
  await assert.rejects(other.hydrateWorkspace(new TextEncoder().encode('no tar')));
});

test('persistWorkspace omits ephemeral entries of the manifest', async () => {
  const m = await create({}, new Manifest({ entries: { keep: file({ content: 'k' }), 'cache/a b*': file({ content: 'c', ephemeral: true }) } }));
  await cmd(m, 'touch "cache/a bX" "cache/b X"'); // (a name is a pattern, as for the reference's tar)
  const other = await create();
  await other.hydrateWorkspace(await m.persistWorkspace());
  assert.equal((await cmd(other, 'find . -type f | sort')).text.trim(), './cache/b X\n./keep');
  // as many as one likes
  const passing = Array.from({ length: 130 }, (_, i) => [`skills/number-${i}.md`, file({ content: `${i}`, ephemeral: true })]);
  const many = await create({}, new Manifest({ entries: { keep: file({ content: 'k' }), ...Object.fromEntries(passing) } }));
  await other.hydrateWorkspace(await many.persistWorkspace());
  assert.equal((await cmd(other, 'find . -name "number-*" | wc -l')).text.trim(), '0');
});

test('mounts of buckets are refused with our words, in a call and in a manifest', async () => {
  await assert.rejects(s.mountBucket({ bucket: 'b', mountPath: 'mnt', options: { endpoint: 'https://x.example', provider: 's3', readOnly: true } }), (e) => /mount/i.test(e.message) && /mounts no buckets/.test(JSON.stringify(e)));
  await assert.rejects(s.unmountBucket('mnt'), /unmount/i);
  const strategy = new CloudflareBucketMountStrategy();
  for (const entry of [s3Mount({ bucket: 'b', mountStrategy: strategy }), r2Mount({ bucket: 'b', accountId: 'a', mountStrategy: strategy })]) {
    await assert.rejects(create({}, new Manifest({ entries: { data: entry } })));
  }
});

test('running, and resume of a live state', async () => {
  const unused = await create();
  assert.equal(await unused.running(), true);
  assert.equal((await cmd(await client.resume(unused.state), 'pwd')).text.trim(), '/workspace');
  assert.equal(await s.running(), true);
  const again = await client.resume(s.state);
  assert.equal((await cmd(again, 'cat README.md')).text.trim(), 'hello');
  const gone = await create();
  await cmd(gone, 'true');
  await gone.close();
  assert.equal(await gone.running(), false);
  await assert.rejects(client.resume(gone.state), /no longer running/);
  await gone.close(); // once more is fine
});

test('the client refuses invalid arguments itself', async () => {
  await assert.rejects(s.resolveExposedPort(8080));
  const ports = await create({ exposedPorts: [8080] });
  await assert.rejects(ports.resolveExposedPort(8080), /does not support exposed port/);
  await assert.rejects(client.create({ manifest: new Manifest({}), snapshot: { type: 'remote', client: {} } }));
  assert.equal(client.canPersistOwnedSessionState(), false);
  const state = await client.deserializeSessionState(JSON.parse(JSON.stringify(await client.serializeSessionState(s.state))));
  assert.equal(state.sandboxId, s.state.sandboxId);
  await assert.rejects(client.resume(state), /cannot safely resume/);
  await assert.rejects(client.create({ manifest: new Manifest({ root: '/elsewhere' }) }), /\/workspace/);
});

test('a wrong key and a wrong server are told apart', async () => {
  await assert.rejects(new CloudflareSandboxClient({ workerUrl: d.url, apiKey: 'wrong' }).create({ manifest: new Manifest({}) }), /unauthorized/);
  await assert.rejects(new CloudflareSandboxClient({ workerUrl: 'http://127.0.0.1:9', apiKey: 'x' }).create({ manifest: new Manifest({}) }));
});

test('two dozen sessions work at once', async () => {
  const all = await Promise.all(Array.from({ length: 24 }, (_, i) => create({}, new Manifest({ entries: { n: file({ content: String(i) }) } }))));
  const seen = await Promise.all(all.map((x) => cmd(x, 'cat n; sleep 0.1; cat n')));
  seen.forEach((r, i) => assert.equal(r.text.trim(), `${i}${i}`));
});

test('a quiet command gets comments, which are no events', async () => {
  const a = await quiet;
  assert.ok(a.text.startsWith(':'), JSON.stringify(a.text));
  assert.deepEqual(eventsOf(a.text).map((e) => e.event), ['stdout', 'exit']);
});

test('close, shutdown and delete end the sandbox', async () => {
  for (const how of ['close', 'shutdown', 'delete']) {
    const x = await client.create({ manifest: new Manifest({}) });
    await cmd(x, 'true');
    const b = new Cloudflare(d, x.state.sandboxId);
    assert.equal(await b.running(), true);
    await x[how]();
    assert.equal(await b.running(), false);
  }
  await poll('only the open ones are left', async () => (await d.get('/v1/sandboxes?limit=100')).sandboxes.length <= open.length + 1);
});

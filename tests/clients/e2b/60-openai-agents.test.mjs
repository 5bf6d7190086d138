// OpenAI's Agents SDK with its E2B provider: every method its session offers.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { poll } from '../../lib/cove.mjs';
import { startE2b } from './lib.mjs';

let d, sdk, client, session, Manifest, sandbox;
before(async () => {
  ({ d, sdk } = await startE2b());
  sandbox = await import('@openai/agents-core/sandbox');
  ({ Manifest } = sandbox);
  const { E2BSandboxClient } = await import('@openai/agents-extensions/sandbox/e2b');
  client = new E2BSandboxClient({ template: 'base', exposedPorts: [8123], workspacePersistence: 'tar', metadata: { by: 'agents' } });
});
after(() => d.stop());

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=', 'base64');

test('a manifest gives a new sandbox files, directories and variables', async () => {
  session = await client.create(new Manifest({
    entries: {
      'README.md': { type: 'file', content: '# hello\n' },
      src: { type: 'dir', children: { 'main.py': { type: 'file', content: 'print("hi")\n' } } },
    },
    environment: { GREETING: 'hello there' },
  }));
  assert.ok(session.state.sandboxId);
  assert.match(await session.execCommand({ cmd: 'cat README.md src/main.py; echo "$GREETING"; pwd' }), /# hello\nprint\("hi"\)\nhello there\n\/workspace/);
});

test('exec returns output and exit code, with cwd and user', async () => {
  assert.match(await session.execCommand({ cmd: 'echo out; echo err >&2; exit 3' }), /exited with code 3[\s\S]*out[\s\S]*err/);
  assert.match(await session.execCommand({ cmd: 'pwd', workdir: 'src' }), /\/workspace\/src/);
  assert.match(await session.execCommand({ cmd: 'whoami', runAs: 'root' }), /root/);
  assert.match(await session.execCommand({ cmd: 'no-such-program' }), /exited with code 127/);
});

test('a terminal: typed into, read from', async () => {
  assert.equal(session.supportsPty(), true);
  const first = await session.execCommand({ cmd: 'cat', tty: true, yieldTimeMs: 1000 });
  const id = Number(/session ID (\d+)/i.exec(first)?.[1]);
  assert.ok(id, first);
  let seen = '';
  seen += await session.writeStdin({ sessionId: id, chars: 'marco\n', yieldTimeMs: 500 });
  await poll('an echo', async () => {
    seen += await session.writeStdin({ sessionId: id, chars: '', yieldTimeMs: 300 });
    return /marco[\s\S]*marco/.test(seen);
  });
  await session.writeStdin({ sessionId: id, chars: '\u0004exit\n', yieldTimeMs: 500 });
});

test('files are tested, read and shown as images', async () => {
  assert.equal(await session.pathExists('README.md'), true);
  assert.equal(await session.pathExists('nothing'), false);
  assert.equal(await session.directoryExists('src'), true);
  assert.equal(await session.directoryExists('README.md'), false);
  assert.equal(Buffer.from(await session.readFile({ path: 'README.md' })).toString(), '# hello\n');
  await assert.rejects(session.readFile({ path: 'nothing' }));
  await session.materializeEntry({ path: 'pixel.png', entry: { type: 'file', content: new Uint8Array(PNG) } });
  const image = await session.viewImage({ path: 'pixel.png' });
  assert.equal(image.type, 'image');
  assert.deepEqual(Buffer.from(await session.readFile({ path: 'pixel.png' })), PNG);
});

test('the editor creates, updates and deletes files', async () => {
  const editor = session.createEditor();
  await editor.createFile({ type: 'create_file', path: 'notes/a.txt', diff: '+one\n+two\n' });
  assert.match(Buffer.from(await session.readFile({ path: 'notes/a.txt' })).toString(), /^one\ntwo/);
  await editor.updateFile({ type: 'update_file', path: 'notes/a.txt', diff: '@@\n one\n-two\n+three\n' });
  assert.match(Buffer.from(await session.readFile({ path: 'notes/a.txt' })).toString(), /^one\nthree/);
  await editor.deleteFile({ type: 'delete_file', path: 'notes/a.txt' });
  assert.equal(await session.pathExists('notes/a.txt'), false);
});

test('a manifest is applied over existing files', async () => {
  await session.applyManifest(new Manifest({ entries: { 'more.txt': { type: 'file', content: 'more' } } }));
  assert.equal(Buffer.from(await session.readFile({ path: 'more.txt' })).toString(), 'more');
  assert.equal(await session.pathExists('README.md'), true);
});

test('a port has an address that reaches its server', async () => {
  await session.execCommand({ cmd: 'nohup python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 &' });
  const end = await session.resolveExposedPort(8123);
  assert.equal(end.port, d.port);
  assert.match(end.host, new RegExp(`^8123-${session.state.sandboxId}\\.`));
  assert.equal(end.tls, false);
  const get = () => new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port: d.port, path: '/README.md', headers: { host: `${end.host}:${end.port}` } }, (res) => {
      let text = '';
      res.on('data', (p) => (text += p));
      res.on('end', () => resolve({ status: res.statusCode, text }));
    }).on('error', reject);
  });
  const a = await poll('it listens', async () => {
    const r = await get();
    return r.status === 200 && r;
  });
  assert.equal(a.text, '# hello\n');
  await assert.rejects(session.resolveExposedPort(9999));
});

test('it runs, and a workspace is carried to another one', async () => {
  assert.equal(await session.running(), true);
  const tar = await session.persistWorkspace();
  assert.ok(tar.length > 1024);
  const other = await client.create(new Manifest({}));
  await other.hydrateWorkspace(tar);
  assert.equal(Buffer.from(await other.readFile({ path: 'src/main.py' })).toString(), 'print("hi")\n');
  assert.deepEqual(Buffer.from(await other.readFile({ path: 'pixel.png' })), PNG);
  await other.close();
});

test('a session is found again by its state', async () => {
  const state = await client.deserializeSessionState(await client.serializeSessionState(session.state));
  const again = await client.resume(state);
  assert.equal(again.state.sandboxId, session.state.sandboxId);
  assert.equal(Buffer.from(await again.readFile({ path: 'more.txt' })).toString(), 'more');
});

test('closing it ends the sandbox', async () => {
  const id = session.state.sandboxId;
  await session.close();
  await assert.rejects(sdk.Sandbox.getInfo(id), sdk.SandboxNotFoundError);
});

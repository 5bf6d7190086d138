// apt, pip and npm work in the default template, as `user`, as `user` with sudo and as root, with mirrors
// that the operator named; they are at a private address, which the firewall lets through for that reason.
// apt's mirror hands out what this machine's own apt would fetch, signatures included.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '../lib/cove.mjs';
import { DB, Internet, tries } from '../lib/internet.mjs';

const SUITE = /^VERSION_CODENAME=(.*)$/m.exec(fs.readFileSync('/etc/os-release', 'utf8'))?.[1];
const AT = `http://${DB}`;

let net;
let d;
let id;
let mirror;
let origins;

/** The mirrors that apt uses for a release: { bookworm: URI, ... }. */
async function aptOrigins() {
  const r = await run('apt-get', ['indextargets', '--format', '$(REPO_URI) $(RELEASE)', 'Created-By: Packages']);
  return Object.fromEntries(r.stdout.split('\n').map((l) => l.split(' ')).filter(([uri]) => uri?.startsWith('http')).map(([uri, release]) => [release, uri]));
}

const WHEEL = 'cove_hello-1-py3-none-any.whl';
async function makeWheel(dir) {
  const file = path.join(dir, WHEEL);
  await run('python3', ['-c', `
import sys, zipfile
z = zipfile.ZipFile(sys.argv[1], 'w')
z.writestr('cove_hello.py', 'def main():\\n    print("hello from pip")\\n')
z.writestr('cove_hello-1.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: cove-hello\\nVersion: 1\\n')
z.writestr('cove_hello-1.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
z.writestr('cove_hello-1.dist-info/entry_points.txt', '[console_scripts]\\ncove-hello = cove_hello:main\\n')
z.writestr('cove_hello-1.dist-info/RECORD', '')
z.close()`, file]);
  return fs.readFileSync(file);
}

async function makeTarball(dir) {
  fs.mkdirSync(path.join(dir, 'package'));
  fs.writeFileSync(path.join(dir, 'package/package.json'), '{"name":"cove-hello","version":"1.0.0","bin":{"cove-hello-js":"run.js"}}');
  fs.writeFileSync(path.join(dir, 'package/run.js'), '#!/usr/bin/env node\nconsole.log("hello from npm");\n', { mode: 0o755 });
  await run('tar', ['-C', dir, '-czf', path.join(dir, 'hello.tgz'), 'package']);
  return fs.readFileSync(path.join(dir, 'hello.tgz'));
}

before(async () => {
  net = await new Internet().open();
  origins = await aptOrigins();
  const reachable = origins[SUITE] && (await fetch(`${origins[SUITE]}dists/${SUITE}/InRelease`).then((r) => r.ok, () => false));
  if (!reachable) origins = null;
  const wheel = await makeWheel(net.dir);
  const tarball = await makeTarball(net.dir);
  const manifest = {
    name: 'cove-hello', 'dist-tags': { latest: '1.0.0' },
    versions: { '1.0.0': { name: 'cove-hello', version: '1.0.0', bin: { 'cove-hello-js': 'run.js' }, dist: { tarball: `${AT}/npm/hello.tgz`, shasum: createHash('sha1').update(tarball).digest('hex') } } },
  };
  const pages = {
    '/simple/cove-hello/': `<a href="/simple/${WHEEL}">${WHEEL}</a>`,
    [`/simple/${WHEEL}`]: wheel,
    '/npm/cove-hello': JSON.stringify(manifest),
    '/npm/hello.tgz': tarball,
  };
  mirror = http.createServer(async (req, res) => {
    const [, kind, rest] = /^\/([^/]*)\/(.*)$/.exec(req.url);
    const from = origins && { debian: origins[SUITE], 'debian-security': origins[`${SUITE}-security`] }[kind];
    const r = from ? await fetch(from + rest).catch(() => null) : null;
    const body = r ? (r.ok ? Buffer.from(await r.arrayBuffer()) : Buffer.alloc(0)) : Buffer.from(pages[req.url] ?? '');
    res.writeHead(r?.status ?? (pages[req.url] ? 200 : 404), { 'content-length': body.length, 'content-type': kind === 'simple' && rest.endsWith('/') ? 'text/html' : kind === 'npm' ? 'application/json' : 'application/octet-stream' }).end(body);
  });
  await new Promise((resolve) => mirror.listen(path.join(net.dir, 'mirror.sock'), resolve));
  d = await net.daemon({ args: ['--base', path.join(net.dir, 'base'), '--apt-mirror', `${AT}/debian/,${AT}/debian-security/`, '--pip-index', `${AT}/simple/`, '--npm-registry', `${AT}/npm/`] });
  id = (await d.sandbox()).id;
});
after(async () => {
  mirror?.close();
  await d?.stop();
  await net?.close();
});

async function sh(command, user = 'user') {
  const r = await d.exec(id, ['bash', '-c', command], { user, timeout_ms: 240_000 });
  assert.equal(r.exit_code, 0, `${command}\n${r.stdout}${r.stderr}`);
  return r.stdout;
}

test('a mirror at a private address is reached at its port, and no other port of it', async () => {
  assert.deepEqual(await tries(d, id, [['tcp', DB, 80]]), ['ok']);
  assert.notDeepEqual(await tries(d, id, [['tcp', DB, 5432]]), ['ok']);
});

test('apt sources are the distribution\'s, with the mirrors the operator named and no credentials', async () => {
  const text = await sh('cat /etc/apt/sources.list.d/*');
  const uris = text.split('\n').filter((l) => l.startsWith('URIs:')).map((l) => l.slice(6));
  assert.deepEqual([...new Set(uris)].sort(), [`${AT}/debian-security/`, `${AT}/debian/`].filter((u) => text.includes(u)));
  assert.ok(!text.includes('@'));
});

test('every user and group that the dpkg database names exists inside', async () => {
  await sh('while read -r user group mode file; do id -u "$user" >/dev/null && getent group "$group" >/dev/null || { echo "$user $group"; exit 1; }; done </var/lib/dpkg/statoverride');
  assert.equal(await sh('sudo dpkg --audit'), '');
});

test('apt-get update and install work with sudo and as root', { timeout: 400_000 }, async (t) => {
  if (!origins) return t.skip('no mirror can be reached');
  await sh('sudo apt-get -q update && sudo apt-get -q install -y hello');
  assert.equal(await sh('hello'), 'Hello, world!\n');
  await sh('apt-get -q install -y sl', 'root');
  assert.match(await sh('dpkg-query -W sl'), /^sl\t/);
});

test('pip install works as user and as root, and its programs are on PATH', async (t) => {
  if ((await d.exec(id, ['bash', '-c', 'command -v pip'])).exit_code !== 0) return t.skip('this host has no pip');
  await sh('pip install cove-hello');
  assert.equal(await sh('cove-hello'), 'hello from pip\n');
  await sh('sudo pip uninstall -y cove-hello && pip install cove-hello', 'root');
  assert.equal(await sh('cove-hello; python3 -c "import cove_hello"'), 'hello from pip\n');
});

test('npm install works in a project and globally as user, and its programs are on PATH', async (t) => {
  if ((await d.exec(id, ['bash', '-c', 'command -v npm'])).exit_code !== 0) return t.skip('this host has no npm');
  assert.equal(await sh('mkdir p && cd p && npm install cove-hello >&2 && npx cove-hello-js'), 'hello from npm\n');
  await sh('npm install -g cove-hello');
  assert.equal(await sh('cove-hello-js'), 'hello from npm\n');
});

test('a mirror that is not a URL is refused before anything is made', async () => {
  for (const setting of ['--apt-mirror', '--pip-index', '--npm-registry', '--package-proxy']) {
    await assert.rejects(net.daemon({ args: [setting, 'ftp://x y'] }), (e) => /is not an http:\/\/ or https:\/\/ URL/.test(e.message));
  }
});

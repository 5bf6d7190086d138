// A template from Debian's packages, built by debootstrap in a temporary sandbox
// with a network. The mirror serves the packages of this machine's own apt sources; the
// tests are skipped if those cannot be reached.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { run } from '../lib/cove.mjs';
import { Internet, WEB } from '../lib/internet.mjs';

const SUITE = /^VERSION_CODENAME=(.*)$/m.exec(fs.readFileSync('/etc/os-release', 'utf8'))?.[1];
const MIRROR = `http://${WEB}/debian/`;

let net;
let d;
let mirror;
let reachable = false;

/** The mirror that apt uses for this release. */
async function origin() {
  const r = await run('apt-get', ['indextargets', '--format', '$(REPO_URI) $(RELEASE)', 'Created-By: Packages']);
  return r.stdout.split('\n').map((l) => l.split(' ')).find(([uri, release]) => release === SUITE && uri?.startsWith('http'))?.[0];
}

before(async () => {
  const from = await origin();
  reachable = from !== undefined && (await fetch(`${from}dists/${SUITE}/InRelease`).then((r) => r.ok, () => false));
  if (!reachable) return;
  net = await new Internet().open();
  mirror = http.createServer(async (req, res) => {
    const r = await fetch(from + req.url.slice('/debian/'.length)).catch(() => null);
    const body = r?.ok ? Buffer.from(await r.arrayBuffer()) : Buffer.alloc(0);
    res.writeHead(r?.status ?? 502, { 'content-length': body.length }).end(body);
  });
  await new Promise((resolve) => mirror.listen(path.join(net.dir, 'mirror.sock'), resolve));
  // a base of its own: one that others made before debootstrap was installed lacks it
  d = await net.daemon({ args: ['--base', path.join(net.dir, 'base')] });
});
after(async () => {
  mirror?.close();
  await d?.stop();
  await net?.close();
});

test('a template is built from packages, with progress, and works', { timeout: 400_000 }, async (t) => {
  if (!reachable) return t.skip('no mirror can be reached');
  const events = await d.sse('/v1/templates/tiny/build', {
    method: 'POST',
    body: { debootstrap: { suite: SUITE, mirror: MIRROR, packages: ['hello'] } },
  });
  const seen = [];
  for await (const e of events) seen.push(e);
  assert.ok(seen.filter((e) => e.event === 'progress').length > 20, JSON.stringify(seen.slice(-3)));
  assert.ok(seen.some((e) => JSON.stringify(e.data).includes('hello')), 'the package is named on the way');
  assert.notEqual(seen.at(-1).event, 'error', JSON.stringify(seen.at(-1)));
  const s = await d.sandbox({ template: 'tiny' });
  const r = await d.exec(s.id, "hello; dpkg-query -W -f '${Status}\\n' hello; test ! -e /usr/bin/git && echo small", { user: 'root', cwd: '/' });
  assert.equal(r.stdout, 'Hello, world!\ninstall ok installed\nsmall\n', r.stderr);
  await d.del(`/v1/sandboxes/${s.id}`);
});

test('an unknown suite is an error and leaves nothing', { timeout: 120_000 }, async (t) => {
  if (!reachable) return t.skip('no mirror can be reached');
  const r = await d.cli(['template', 'build', 'nope', '--debootstrap', 'bookwurm', '--mirror', MIRROR]);
  assert.notEqual(r.status, 0);
  assert.match(r.stderr, /bookwurm|suite|script/i);
  assert.ok(!(await d.get('/v1/templates')).templates.some((x) => x.name === 'nope'));
  assert.equal((await d.get('/v1/sandboxes')).sandboxes.length, 0);
});

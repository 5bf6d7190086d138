// Files of a sandbox over HTTP: directories and trees.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';

let d, s;
before(async () => {
  d = await startDaemon({});
  s = await d.sandbox();
});
after(() => d?.stop());

const query = (o) => Object.entries(o).map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join('&');
const url = (what, o) => `/v1/sandboxes/${s.id}/files${what}?${query(o)}`;
const put = (path, body = '', o = {}) => d.api('PUT', url('', { path, ...o }), Buffer.from(body));
const post = (what, o) => d.api('POST', url(`/${what}`, o));
const list = (path, o = {}) => d.get(url('/list', { path, ...o }));
const stat = (path, o = {}) => d.get(url('/stat', { path, ...o }));
const names = async (path, o) => (await list(path, o)).files.map((f) => f.path.slice(path.length + 1));
const sh = async (command, opts) => {
  const r = await d.exec(s.id, command, opts);
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};

test('mkdir makes a directory, and missing parents if asked', async () => {
  const f = await post('mkdir', { path: 'm', mode: '0700' });
  assert.deepEqual([f.path, f.type, f.mode, f.owner], ['/workspace/m', 'directory', '0700', 'user']);
  await d.fails(409, 'conflict', 'POST', url('/mkdir', { path: 'm' }));
  await d.fails(404, 'not_found', 'POST', url('/mkdir', { path: 'm/a/b' }));
  assert.equal((await post('mkdir', { path: 'm/a/b', parents: 1 })).type, 'directory');
  await post('mkdir', { path: 'm/a/b', parents: 1 });
  await put('m/file');
  await d.fails(409, 'conflict', 'POST', url('/mkdir', { path: 'm/file', parents: 1 }));
  await d.fails(403, 'denied', 'POST', url('/mkdir', { path: '/etc/mine' }));
  await sh('ln -s nowhere m/dangling; ln -s loop m/loop; ln -s a m/link');
  for (const path of ['m/dangling', 'm/loop']) await d.fails(409, 'conflict', 'POST', url('/mkdir', { path, parents: 1 }));
  await post('mkdir', { path: 'm/link', parents: 1 });
});

test('list sorts by name, goes as deep as asked, omits hidden files if asked, and has pages', async () => {
  await sh('mkdir -p l/b/c l/a l/.h; touch l/b/c/deep l/b/x l/a/y l/.h/z l/b.txt l/a-b; ln -s nowhere l/link');
  const top = '/workspace/l';
  assert.deepEqual(await names(top), ['.h', 'a', 'a-b', 'b', 'b.txt', 'link']);
  assert.deepEqual(await names(top, { hidden: 0 }), ['a', 'a-b', 'b', 'b.txt', 'link']);
  const all = await names(top, { depth: 9 });
  assert.deepEqual(all, ['.h', '.h/z', 'a', 'a/y', 'a-b', 'b', 'b/c', 'b/c/deep', 'b/x', 'b.txt', 'link']);
  assert.deepEqual(await names(top, { depth: 2, hidden: 0 }), ['a', 'a/y', 'a-b', 'b', 'b/c', 'b/x', 'b.txt', 'link']);
  for (const limit of [1, 2, 3, 10]) {
    const seen = [];
    for (let after; ; ) {
      const page = await list(top, { depth: 9, limit, ...(after ? { after } : {}) });
      assert.ok(page.files.length <= limit);
      seen.push(...page.files.map((f) => f.path.slice(top.length + 1)));
      if (!(after = page.next)) break;
    }
    assert.deepEqual(seen, all);
  }
  const link = (await list(top)).files.at(-1);
  assert.deepEqual([link.type, link.target], ['symlink', 'nowhere']);
  await d.fails(404, 'not_found', 'GET', url('/list', { path: 'l/none' }));
  await d.fails(400, 'invalid', 'GET', url('/list', { path: 'l/b.txt' }));
  await d.fails(400, 'invalid', 'GET', url('/list', { path: 'l', after: '%%%' }));
  await d.fails(400, 'invalid', 'GET', url('/list', { path: 'l', sort: 'colour' }));
  await d.fails(403, 'denied', 'GET', url('/list', { path: '/root' }));
});

test('files that appear or vanish do not fail a list or a copy', async () => {
  await sh('mkdir -p flux');
  await d.process(s.id, ['python3', '-c', `
import os
os.chdir("flux")
while True:
    for f in os.mkdir, os.rmdir:
        for i in range(30):
            f(str(i))
            os.close(os.open("f%d" % i, os.O_CREAT)); os.unlink("f%d" % i)`], { id: 'flux' });
  for (let i = 0; i < 150; i++) {
    assert.equal((await d.call('GET', url('/list', { path: 'flux', depth: 3 }))).status, 200);
    if (i % 3 === 0) await post('copy', { path: 'flux', to: `flux${i}` });
  }
  await d.post(`/v1/sandboxes/${s.id}/processes/flux/kill`, { grace_ms: 0 });
});

test('list sorts by size and by time, also across pages', async () => {
  await sh('mkdir o; for i in 1 2 3 4; do head -c $((i * 100)) /dev/zero > o/$i; touch -d @$((2000000000 - i)) o/$i; done');
  assert.deepEqual(await names('/workspace/o', { sort: 'size' }), ['1', '2', '3', '4']);
  assert.deepEqual(await names('/workspace/o', { sort: 'size', reverse: 1 }), ['4', '3', '2', '1']);
  assert.deepEqual(await names('/workspace/o', { sort: 'modified' }), ['4', '3', '2', '1']);
  const first = await list('/workspace/o', { sort: 'size', limit: 3 });
  const second = await list('/workspace/o', { sort: 'size', limit: 3, after: first.next });
  assert.deepEqual(second.files.map((f) => f.name), ['4']);
  assert.equal(second.next, null);
  await d.fails(400, 'invalid', 'GET', url('/list', { path: 'o', sort: 'size', after: Buffer.from('nonsense').toString('base64') }));
  await d.fails(400, 'invalid', 'GET', url('/list', { path: 'o', reverse: 1 }));
});

test('listing a hundred thousand entries does not delay other requests', { timeout: 120_000 }, async () => {
  await sh('mkdir many; cd many; python3 -c "for i in range(100000): open(\'f%06d\' % i, \'w\').close()"');
  const listing = list('/workspace/many', { limit: 100000 });
  let others = 0;
  let done = false;
  listing.then(() => (done = true), () => (done = true));
  for (; !done; others++) await d.get(`/v1/sandboxes/${s.id}`);
  const page = await listing;
  assert.equal(page.files.length, 100000);
  assert.equal(page.next, null);
  assert.equal(page.files[99999].name, 'f099999');
  assert.ok(others >= 3, `${others} other requests were answered meanwhile`); // however slow the machine is
  assert.equal((await d.call('DELETE', url('', { path: 'many', recursive: 1 }))).status, 204);
});

test('move renames, also across filesystems, and overwrites only if asked', async () => {
  await put('mv/a', 'one', { parents: 1 });
  const f = await post('move', { path: 'mv/a', to: 'mv/b' });
  assert.equal(f.path, '/workspace/mv/b');
  await d.fails(404, 'not_found', 'POST', url('/move', { path: 'mv/a', to: 'mv/c' }));
  await put('mv/c', 'two');
  await d.fails(409, 'conflict', 'POST', url('/move', { path: 'mv/b', to: 'mv/c' }));
  await post('move', { path: 'mv/b', to: 'mv/c', overwrite: 1 });
  assert.equal((await d.call('GET', url('', { path: 'mv/c' }))).text, 'one');
  await post('move', { path: 'mv/c', to: 'mv/x/y/c', parents: 1 });
  await sh('mkdir -p mv/t/u; echo hi > mv/t/u/f; ln -s f mv/t/u/l; chmod 750 mv/t/u');
  await post('move', { path: 'mv/t', to: '/dev/shm/t' });
  assert.equal(await sh('cat /dev/shm/t/u/l; stat -c %a /dev/shm/t/u; ls mv'), 'hi\n750\nx\n');
  await post('move', { path: '/dev/shm/t', to: 'mv/back' });
  assert.equal(await sh('cat mv/back/u/l; ls -A /dev/shm'), 'hi\n');
  await d.fails(400, 'invalid', 'POST', url('/move', { path: 'mv', to: 'mv/inside' }));
  await d.fails(400, 'invalid', 'POST', url('/move', { path: '/', to: '/workspace/root' }));
});

test('copy copies files and trees, with modes, times, links and attributes', async () => {
  await sh(`mkdir -p cp/d/e; echo one > cp/d/f; ln -s f cp/d/l; chmod 640 cp/d/f; touch -d @1234567890 cp/d/f; mkfifo cp/d/p
python3 -c "import os; os.setxattr('cp/d/f', 'user.k', b'v')"`);
  await post('copy', { path: 'cp/d', to: 'cp/d2' });
  assert.equal(await sh('cd cp/d2; cat l; stat -c "%a %Y" f; find . | sort | tr "\\n" " "; python3 -c "import os; print(os.getxattr(\'f\', \'user.k\'))"'),
    "one\n640 1234567890\n. ./e ./f ./l ./p b'v'\n");
  await d.fails(409, 'conflict', 'POST', url('/copy', { path: 'cp/d', to: 'cp/d2' }));
  await put('cp/d/g', 'new');
  await post('copy', { path: 'cp/d', to: 'cp/d2', overwrite: 1 });
  assert.equal(await sh('cat cp/d2/g; stat -c %F cp/d2/p cp/d2/l'), 'newfifo\nsymbolic link\n');
  await d.fails(400, 'invalid', 'POST', url('/copy', { path: 'cp/d', to: 'cp/d/e/inside' }));
  await d.fails(400, 'invalid', 'POST', url('/copy', { path: 'cp/d/f', to: 'cp/d/f', overwrite: 1 }));
  await put('cp/big', Buffer.alloc(8 << 20, 'b'));
  await post('copy', { path: 'cp/big', to: 'cp/big2' });
  assert.equal(await sh('cmp cp/big cp/big2 && echo same'), 'same\n');
  await sh('python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'cp/d/s\')"');
  await d.fails(400, 'invalid', 'POST', url('/copy', { path: 'cp/d', to: 'cp/d3' }));
  assert.equal(await sh('ls -A cp'), 'big\nbig2\nd\nd2\n', 'a failed copy leaves nothing');
});

test('a failed copy leaves nothing, also with read-only directories', async () => {
  await sh('mkdir -p cf/from/a/b cf/from/z; touch cf/from/a/b/f; chmod 555 cf/from/a/b cf/from/a; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'cf/from/z/s\')"');
  await d.fails(400, 'invalid', 'POST', url('/copy', { path: 'cf/from', to: 'cf/to' }));
  assert.equal(await sh('ls -A cf'), 'from\n');
});

test('a kill of the front during a copy leaves nothing of it', async () => {
  await sh('mkdir -p ck/from/t; cd ck/from/t; seq 30000 | xargs touch');
  const answer = d.call('POST', url('/copy', { path: 'ck/from', to: 'ck/to' })).catch(() => {});
  await poll('it is being copied', async () => (await d.exec(s.id, 'ls -dA ck/.cove*/t')).exit_code === 0);
  await d.kill9('front');
  await d.back();
  await answer;
  await poll('the helper is gone', async () => (await d.exec(s.id, 'pgrep cove-helper')).exit_code === 1);
  assert.equal(await sh('ls -A ck'), 'from\n');
});

test('delete removes files, and trees if asked, and follows no link', async () => {
  await sh('mkdir -p rm/a/b; echo x > rm/a/b/f; ln -s /etc/passwd rm/a/l; ln -s /etc rm/a/e; touch rm/one');
  assert.equal((await d.call('DELETE', url('', { path: 'rm/one' }))).status, 204);
  await d.fails(404, 'not_found', 'DELETE', url('', { path: 'rm/one' }));
  await d.fails(409, 'conflict', 'DELETE', url('', { path: 'rm' }));
  assert.equal((await d.call('DELETE', url('', { path: 'rm', recursive: 1 }))).status, 204);
  assert.equal(await sh('ls -d rm 2>/dev/null; head -c 4 /etc/passwd'), 'root');
  await d.fails(403, 'denied', 'DELETE', url('', { path: '/etc/passwd' }));
  await d.fails(403, 'denied', 'DELETE', url('', { path: '/etc', recursive: 1 }));
  await d.fails(400, 'invalid', 'DELETE', url('', { path: '/', recursive: 1 }));
});

test('chmod, chown and symlink change modes, owners and links, recursively if asked', async () => {
  await sh('mkdir -p ch/d; touch ch/d/f; ln -s /etc/passwd ch/d/l');
  assert.equal((await post('chmod', { path: 'ch', mode: '0750', recursive: 1 })).mode, '0750');
  assert.equal(await sh('stat -c %a ch/d ch/d/f; stat -L -c %a ch/d/l'), '750\n750\n644\n');
  await d.fails(403, 'denied', 'POST', url('/chown', { path: 'ch', owner: 'root' }));
  const f = await post('chown', { path: 'ch', owner: 'root:user', recursive: 1, user: 'root' });
  assert.deepEqual([f.owner, f.group], ['root', 'user']);
  assert.equal(await sh('stat -c %U ch/d/f ch/d/l; stat -L -c %U ch/d/l'), 'root\nroot\nroot\n');
  const l = await post('symlink', { path: 'sl', target: '../any thing' });
  assert.deepEqual([l.type, l.target], ['symlink', '../any thing']);
  await d.fails(409, 'conflict', 'POST', url('/symlink', { path: 'sl', target: 'x' }));
  assert.equal((await post('symlink', { path: 'sl', target: 'x', overwrite: 1 })).target, 'x');
  await d.fails(400, 'invalid', 'POST', url('/chmod', { path: 'sl', mode: 'rwx' }));
});

test('extended attributes are set, removed and listed under a prefix', async () => {
  await put('at', 'x');
  const set = (o) => d.api('PUT', url('/xattrs', { path: 'at', ...o }));
  let a = await set({ prefix: 'user.mine.', 'set.one': 'eins', 'set.two': 'zwei' });
  assert.deepEqual(a.attributes.map((x) => [x.name, x.value]).sort(), [['one', 'eins'], ['two', 'zwei']]);
  await set({ prefix: 'user.', 'set.other': 'o' });
  a = await set({ prefix: 'user.mine.', remove: 'one' });
  assert.deepEqual(a.attributes, [{ name: 'two', value: 'zwei' }]);
  a = await d.get(url('/xattrs', { path: 'at' }));
  assert.deepEqual(a.attributes.map((x) => x.name).sort(), ['mine.two', 'other']);
  await d.fails(400, 'invalid', 'PUT', url('/xattrs', { path: 'at', prefix: 'security.' }));
  await d.fails(400, 'invalid', 'PUT', url('/xattrs', { path: 'at', prefix: 'trusted.x.', 'set.a': 'b', user: 'root' }));
  await d.fails(404, 'not_found', 'GET', url('/xattrs', { path: 'none' }));
});

test('search finds files by name and lines by text or regex', async () => {
  await sh(`mkdir -p se/src/.git se/lib; printf 'int main\\nreturn 0;\\nthe END\\n' > se/src/a.c; printf 'x\\nfoo.bar\\ny\\nfooXbar\\n' > se/lib/b.txt
printf 'foo.bar\\0' > se/lib/bin; echo foo.bar > se/src/.git/c; printf 'bad \\377 foo.bar\\r\\n' > se/lib/odd`);
  const search = (o) => post('search', { path: 'se', ...o });
  let r = await search({ name: '*.c' });
  assert.deepEqual([r.files.map((f) => f.path), r.count, r.truncated], [['/workspace/se/src/a.c'], 1, false]);
  assert.equal((await search({ name: 'lib/*' })).count, 3);
  r = await search({ text: 'foo.bar' });
  assert.deepEqual(r.lines.map((l) => [l.path.slice(14), l.line, l.column, l.kind]), [['lib/b.txt', 2, 1, 'match'], ['lib/odd', 1, 7, 'match']]);
  assert.equal(r.lines[1].text_encoding, 'base64');
  assert.equal((await search({ text: 'foo.bar', hidden: 1 })).count, 3);
  assert.equal((await search({ regex: 'foo.bar', name: '*.txt' })).count, 2);
  assert.equal((await search({ regex: '^(the|nobody) end$', ignore_case: 1 })).count, 1);
  assert.equal((await search({ text: 'THE', ignore_case: 1 })).count, 1);
  r = await search({ text: 'foo.bar', name: 'b.txt', context: 1 });
  assert.deepEqual(r.lines.map((l) => [l.kind, l.line, l.text]), [['before', 1, 'x'], ['match', 2, 'foo.bar'], ['after', 3, 'y']]);
  r = await search({ regex: '.', limit: 2 });
  assert.deepEqual([r.count, r.truncated], [2, true]);
  assert.match((await d.fails(400, 'invalid', 'POST', url('/search', { path: 'se', regex: '(' }))).message, /regex/);
  await d.fails(400, 'invalid', 'POST', url('/search', { path: 'se' }));
  await d.fails(400, 'invalid', 'POST', url('/search', { path: 'se', text: 'a', regex: 'b' }));
  const events = await d.sse(url('/search', { path: 'se', text: 'foo.bar' }), { method: 'POST' });
  const seen = [];
  for await (const e of events) {
    seen.push(e.event);
    if (e.event === 'done') break;
  }
  await events.close();
  assert.deepEqual(seen, ['line', 'line', 'done']);
});

test('a regular expression that never ends is ended', async () => {
  await sh(`python3 -c "open('/workspace/se/slow', 'w').write('a' * 30000 + '\\n')"`);
  await d.fails(408, 'timeout', 'POST', url('/search', { path: 'se', regex: '(a*)*(a*)*(a*)*\\1\\2\\3b', timeout: 1 }));
});

test('a tenant cannot place a link where a temporary file is made', async () => {
  // names that a guess would find: of every process that there may be
  await sh(`mkdir -p w/d w/e /dev/shm/w; echo kept > w/kept; touch w/a w/b; python3 -c "
import os
for n in range(1, 4000):
  for at in ('w/.cove-', 'w/b.cove-', '/dev/shm/w/.cove-'): os.symlink('kept', at + str(n))
"`);
  const laid = 'for d in w /dev/shm/w; do find $d -name "*.cove-*" -type l | wc -l; done; cat w/kept';
  await put('w/a', 'x'.repeat(100_000), { atomic: 1 });
  await put('w/b', 'new', { atomic: 1 });
  await post('copy', { path: 'w/a', to: 'w/b', overwrite: 1 });
  await post('copy', { path: 'w/d', to: 'w/f' });
  await post('symlink', { path: 'w/b', target: 'a', overwrite: 1 });
  await post('move', { path: 'w/e', to: '/dev/shm/w/e' });
  assert.equal(await sh(laid), '7998\n3999\nkept\n');
  assert.equal(await sh('readlink w/b; wc -c < w/a; ls -d w/f /dev/shm/w/e; rm -rf w /dev/shm/w'), 'a\n100000\n/dev/shm/w/e\nw/f\n');
});

test('a search ends when its client leaves', async () => {
  const ac = new AbortController();
  const gone = fetch(d.url + url('/search', { path: '/', regex: '(x*)*\\1yy', timeout: 300 }), { method: 'POST', headers: { authorization: `Bearer ${d.key}` }, signal: ac.signal }).catch(() => {});
  const helpers = async () => (await d.exec(s.id, 'pgrep -x cove-helper || true', { user: 'root' })).stdout.trim();
  await poll('the search runs', async () => (await helpers()) !== '');
  ac.abort();
  await gone;
  await poll('the search is over', async () => (await helpers()) === '');
});

test('limits have names', async () => {
  const over = { depth: 401, limit: 100001 };
  for (const [name, value] of Object.entries(over)) {
    assert.match((await d.fails(400, 'invalid', 'GET', url('/list', { path: '.', [name]: value }))).message, new RegExp(name));
    assert.match((await d.fails(400, 'invalid', 'POST', url('/search', { path: '.', name: '*', [name]: value }))).message, new RegExp(name));
  }
  for (const o of [{ context: 11 }, { timeout: 601 }, { timeout: 0 }, { text: 'x'.repeat(4097) }, { name: 'y'.repeat(1025) }]) await d.fails(400, 'invalid', 'POST', url('/search', { path: '.', text: 'a', ...o }));
  await d.fails(400, 'invalid', 'GET', url('/xattrs', { path: '.', prefix: `user.${'p'.repeat(200)}` }));
  await put('attr');
  await d.fails(400, 'invalid', 'PUT', url('/xattrs', { path: 'attr', [`set.${'n'.repeat(255)}`]: 'v' }));
  // directories in each other: walks end with a word, not with a crash
  await sh(`python3 -c "
import os
os.mkdir('deep'); os.chdir('deep')
for i in range(420): os.mkdir('d'); os.chdir('d')
"`);
  assert.equal((await list('/workspace/deep', { depth: 400, limit: 1000 })).files.length, 400);
  await d.fails(429, 'limit', 'DELETE', url('', { path: 'deep', recursive: 1 }));
  await d.fails(429, 'limit', 'POST', url('/copy', { path: 'deep', to: 'deep2' }));
  assert.equal(await sh('ls -d deep*; rm -rf deep'), 'deep\n');
});

// The git of a sandbox, as JSON.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';

let d, s, G;
before(async () => {
  d = await startDaemon({});
  s = await d.sandbox();
  G = `/v1/sandboxes/${s.id}/git`;
  await sh('git config --global user.name Tester; git config --global user.email t@example.com; git config --global init.defaultBranch main');
});
after(() => d?.stop());

const sh = async (command, user) => {
  const r = await d.exec(s.id, command, { user });
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};
const get = (what, query = {}) => d.get(`${G}/${what}?${new URLSearchParams(query)}`);
const fails = (status, code, what, query) => d.fails(status, code, 'GET', `${G}/${what}?${new URLSearchParams(query)}`);
const entry = (e) => `${e.kind} ${e.index}${e.worktree} ${e.path}${e.from === undefined ? '' : ` <- ${e.from}`}`;

test('status shows an unborn branch, a clean one and a detached head', async () => {
  await sh('git init -q st');
  const unborn = await get('status', { path: 'st' });
  assert.deepEqual(unborn, { branch: 'main', commit: null, detached: false, unborn: true, upstream: null, ahead: 0, behind: 0, clean: true, entries: [], truncated: false });
  await sh('cd st; echo 1 > f; git add f; git commit -qm one');
  const clean = await get('status', { path: 'st' });
  assert.match(clean.commit, /^[0-9a-f]{40}$/);
  assert.equal(clean.clean, true);
  await sh('cd st; git checkout -q --detach');
  const detached = await get('status', { path: '/workspace/st' });
  assert.equal(detached.branch, null);
  assert.equal(detached.detached, true);
  assert.equal(detached.commit, clean.commit);
});

test('status: staged, changed, deleted, renamed, untracked, ignored, and names of every kind', async () => {
  await sh(`git init -q all; cd all; seq 100 > big; echo x > mod; echo x > del; echo x > both; printf '*.log\\n' > .gitignore; git add .; git commit -qm one;
    git mv big 'new name'; echo y >> mod; rm del; echo 1 >> both; git add both; echo 2 >> both; echo n > $'line\\nbreak'; echo n > $'\\xff\\xfe'; git add $'line\\nbreak'; echo z > un; echo z > x.log`);
  const st = await get('status', { path: 'all', ignored: 1 });
  assert.deepEqual(st.entries.map(entry).sort(), [
    'changed .D del', 'changed .M mod', 'changed A. line\nbreak', 'changed MM both', 'ignored .. x.log',
    'renamed R. new name <- big', 'untracked .. //4=', 'untracked .. un'].sort());
  assert.equal(st.entries.find((e) => e.kind === 'renamed').score, 100);
  assert.equal(st.entries.find((e) => e.path_encoding === 'base64').path, '//4=');
  const few = await get('status', { path: 'all', limit: 2, untracked: 'no' });
  assert.equal(few.entries.length, 2);
  assert.equal(few.truncated, true);
  await fails(400, 'invalid', 'status', { path: 'all', untracked: 'some' });
});

test('status shows conflicts, and how many commits the branch is ahead and behind', async () => {
  await sh(`git init -q up; cd up; echo base > f; git add f; git commit -qm base; git clone -q . ../down 2>/dev/null;
    echo theirs > f; git commit -qam theirs; cd ../down; echo ours > f; git commit -qam ours; echo more > g; git add g; git commit -qm more; git fetch -q; git merge -q origin/main || true`);
  const st = await get('status', { path: 'down' });
  assert.deepEqual([st.upstream, st.ahead, st.behind], ['origin/main', 2, 1]);
  assert.deepEqual(st.entries.map(entry), ['unmerged UU f']);
  const diff = await get('diff', { path: 'down' });
  assert.deepEqual(diff.files.map((f) => [f.path, f.conflict, f.status]), [['f', true, 'modified']]);
  assert.match(diff.files[0].patch, /\+<<<<<<< HEAD/);
  const staged = await get('diff', { path: 'down', staged: 1 });
  assert.deepEqual(staged.files.map((f) => [f.path, f.conflict, f.status]), [['f', true, 'unmerged']]);
  await d.fails(409, 'conflict', 'POST', `${G}/commit`, { path: 'down', message: 'no' });
});

test('status and diff show a changed submodule', async () => {
  await sh(`git init -q lib; cd lib; echo 1 > l; git add l; git commit -qm l; cd ..; git init -q sup; cd sup; git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm sub; echo 2 > lib/l; echo n > lib/new`);
  const st = await get('status', { path: 'sup' });
  assert.deepEqual(st.entries.map((e) => [e.path, e.submodule]), [['lib', { commit: false, modified: true, untracked: true }]]);
  await sh('cd sup/lib; git commit -qam two');
  const diff = await get('diff', { path: 'sup' });
  assert.deepEqual(diff.files.map((f) => [f.path, f.old_mode, f.new_mode]), [['lib', '160000', '160000']]);
  assert.match(diff.files[0].patch, /\+Subproject commit [0-9a-f]{40}/);
});

test('diff shows the worktree, the index and commits, with renames, binaries, modes and types', async () => {
  await sh(`git init -q df; cd df; seq 50 > big; echo a > f; printf 'a\\0b' > bin; echo t > type; git add .; git commit -qm one;
    git mv big large; echo 51 >> large; echo b >> f; printf 'a\\0c' > bin; chmod +x type; git add -A; echo c >> f; rm type; ln -s f type; echo 'diff --git a/x b/x' > fake; git add -N fake`);
  const staged = await get('diff', { path: 'df', staged: 1 });
  const by = Object.fromEntries(staged.files.map((f) => [f.path, f]));
  assert.deepEqual(Object.keys(by).sort(), ['bin', 'f', 'large', 'type']);
  assert.deepEqual([by.large.status, by.large.from, by.large.added, by.large.deleted, by.large.score > 80], ['renamed', 'big', 1, 0, true]);
  assert.deepEqual([by.bin.binary, by.bin.added], [true, 0]);
  assert.deepEqual([by.type.old_mode, by.type.new_mode, by.type.added], ['100644', '100755', 0]);
  assert.match(by.f.patch, /^diff --git a\/f b\/f\n[^]*\n\+b\n$/);
  const work = await get('diff', { path: 'df' });
  assert.deepEqual(work.files.map((f) => `${f.status} ${f.path} ${f.added}`), ['modified f 1', 'added fake 1', 'type_changed type 1']);
  assert.match(work.files[1].patch, /\n\+diff --git a\/x b\/x\n$/);
  assert.equal(work.files[2].patch.match(/^diff --git/gm).length, 2);
  await sh('cd df; git add -A; git commit -qm two');
  const between = await get('diff', { path: 'df', from: 'HEAD~1', to: 'HEAD', context: 0 });
  assert.equal(between.files.length, 5);
  const one = await d.get(`${G}/diff?path=df&from=HEAD~1&to=HEAD&file=f&patch=0`);
  assert.deepEqual(one.files.map((f) => [f.path, f.added, f.patch]), [['f', 2, undefined]]);
  await fails(404, 'not_found', 'diff', { path: 'df', from: 'nope' });
  await fails(400, 'invalid', 'diff', { path: 'df', from: '--output=/tmp/x' });
  await fails(400, 'invalid', 'diff', { path: 'df', to: 'HEAD' });
});

test('diff reports where the bound of a file or of all files is reached', async () => {
  await sh('git init -q bd; cd bd; for i in 1 2 3; do echo > f$i; done; git add .; git commit -qm one; for i in 1 2 3; do seq 10000 > f$i; done; echo x > f4; git add f4');
  const each = await get('diff', { path: 'bd', from: 'HEAD', max_file_bytes: 1000 });
  assert.deepEqual(each.files.map((f) => [f.path, f.patch.length <= 1000, f.patch_truncated ?? false, f.added]), [['f1', true, true, 10000], ['f2', true, true, 10000], ['f3', true, true, 10000], ['f4', true, false, 1]]);
  assert.equal(each.truncated, true);
  const all = await get('diff', { path: 'bd', from: 'HEAD', max_bytes: 60000 });
  assert.equal(all.truncated, true);
  assert.ok(all.files.reduce((n, f) => n + (f.patch?.length ?? 0), 0) <= 60000);
  assert.equal(all.files.length, 4);
});

test('log has stable pages, files, ranges, and works in an empty repository', async () => {
  await sh(`git init -q lg; cd lg`);
  assert.deepEqual(await get('log', { path: 'lg' }), { commits: [], next: null });
  await sh(`cd lg; for i in $(seq 7); do echo $i > f$((i % 2)); git add .; git commit -qm "c$i" -m "body of $i"; done; git tag v1; git checkout -q -b side HEAD~3; echo s > s; git add s; GIT_AUTHOR_NAME=$'J\\xc3\\xbcrgen' git commit -qm side; git checkout -q main`);
  const first = await get('log', { path: 'lg', limit: 3 });
  assert.deepEqual(first.commits.map((c) => c.message.split('\n')[0]), ['c7', 'c6', 'c5']);
  assert.deepEqual(first.commits[0].refs, ['HEAD -> main', 'tag: v1']);
  assert.equal(first.commits[0].message, 'c7\n\nbody of 7\n');
  assert.deepEqual(first.commits[0].parents, [first.commits[1].commit]);
  assert.deepEqual([first.commits[0].author.name, first.commits[0].author.email], ['Tester', 't@example.com']);
  assert.ok(Math.abs(Date.parse(first.commits[0].committer.at) - Date.now()) < 3600_000);
  await sh('cd lg; echo new > new; git add new; git commit -qm c8');
  const second = await get('log', { path: 'lg', limit: 3, after: first.next });
  assert.deepEqual(second.commits.map((c) => c.message.split('\n')[0]), ['c4', 'c3', 'c2']);
  const last = await get('log', { path: 'lg', limit: 3, after: second.next });
  assert.deepEqual([last.commits.length, last.next], [1, null]);
  const side = await get('log', { path: 'lg', ref: 'side', exclude: 'main' });
  assert.deepEqual(side.commits.map((c) => [c.message, c.author.name]), [['side\n', 'Jürgen']]);
  assert.deepEqual((await get('log', { path: 'lg', file: 'new' })).commits.map((c) => c.message), ['c8\n']);
  await fails(404, 'not_found', 'log', { path: 'lg', ref: 'nope' });
  await fails(400, 'invalid', 'log', { path: 'lg', ref: '--all' });
  await fails(400, 'invalid', 'log', { path: 'lg', after: 'x' });
});

test('show has a commit and its changes, also of the first commit and of a merge', async () => {
  await sh(`git init -q sh; cd sh; echo 1 > a; git add a; git commit -qm first; git checkout -q -b b; echo 2 > b; git add b; git commit -qm onb; git checkout -q main; echo 3 > c; git add c; git commit -qm onmain; git merge -q --no-edit b`);
  const merge = await get('show', { path: 'sh' });
  assert.equal(merge.commit.parents.length, 2);
  assert.deepEqual(merge.files.map((f) => [f.path, f.status]), [['b', 'added']]);
  const root = await get('show', { path: 'sh', ref: 'HEAD~2' });
  assert.equal(root.commit.message, 'first\n');
  assert.deepEqual(root.files.map((f) => [f.path, f.status, f.added]), [['a', 'added', 1]]);
  assert.match(root.files[0].patch, /\+1\n/);
  await fails(404, 'not_found', 'show', { path: 'sh', ref: 'deadbeef' });
});

test('commit takes all changes, some files or the index, and refuses an empty commit', async () => {
  await sh('git init -q cm; cd cm; echo 1 > a; echo 1 > b; echo 1 > c');
  const all = await d.post(`${G}/commit`, { path: 'cm', message: 'all\n\nwith "quotes" and ümlauts\n# no comment', all: true, author: { name: 'Ada', email: 'ada@example.com' } });
  assert.equal(all.message.trim(), 'all\n\nwith "quotes" and ümlauts\n# no comment');
  assert.deepEqual([all.author.name, all.committer.email, all.parents], ['Ada', 'ada@example.com', []]);
  await sh("cd cm; echo 2 > a; echo 2 > b; git add b; rm c; echo 2 > 'new file'");
  const some = await d.post(`${G}/commit`, { path: 'cm', message: 'some', paths: ['a', 'new file', 'c'] });
  assert.deepEqual((await get('show', { path: 'cm', ref: some.commit })).files.map((f) => `${f.status} ${f.path}`), ['modified a', 'deleted c', 'added new file']);
  assert.deepEqual((await get('status', { path: 'cm' })).entries.map(entry), ['changed M. b']);
  await d.post(`${G}/commit`, { path: 'cm', message: 'staged' });
  await d.fails(409, 'conflict', 'POST', `${G}/commit`, { path: 'cm', message: 'nothing' });
  await d.post(`${G}/commit`, { path: 'cm', message: 'empty', allow_empty: true });
  assert.equal((await get('log', { path: 'cm' })).commits.length, 4);
  await d.fails(400, 'invalid', 'POST', `${G}/commit`, { path: 'cm', message: 'x', all: true, paths: ['a'] });
  await d.fails(404, 'not_found', 'POST', `${G}/commit`, { path: 'cm', message: 'x', paths: ['nowhere'] });
  await d.fails(400, 'invalid', 'POST', `${G}/commit`, { path: 'cm', message: 'x', author: { name: 'x' } });
  await sh("cd cm; printf '#!/bin/sh\\necho refused by the hook >&2; exit 1\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
  const e = await d.fails(409, 'conflict', 'POST', `${G}/commit`, { path: 'cm', message: 'x', allow_empty: true });
  assert.match(e.message, /refused by the hook/);
  await d.post(`${G}/commit`, { path: 'cm', message: 'x', allow_empty: true, no_verify: true });
});

test('errors of the repository are reported', async () => {
  await sh('mkdir -p none');
  await fails(404, 'not_found', 'status', { path: 'none' });
  await fails(404, 'not_found', 'status', { path: 'missing' });
  await sh('mkdir -m 700 /root/repo; git init -q /root/repo', 'root');
  await fails(403, 'denied', 'status', { path: '/root/repo' });
  assert.equal((await get('status', { path: '/root/repo', user: 'root' })).clean, true);
  await sh("git init -q /workspace/roots; cd /workspace/roots; echo x > f; chmod -R a+rX .", 'root');
  assert.equal((await get('status', { path: 'roots' })).entries.length, 1); // another user's, and git does not refuse it
  await sh('cd ~; git init -q home');
  assert.equal((await get('status', { path: '~/home' })).clean, true);
});

test('settings of the repository do not change the output and run no program', async () => {
  await sh(`git init -q evil; cd evil; echo 1 > f; git add f; git commit -qm one; echo 2 > f;
    git config core.fsmonitor 'touch /workspace/ran-fsmonitor; false'; git config diff.external 'touch /workspace/ran-external; false'; git config core.pager 'touch /workspace/ran-pager';
    git config diff.noprefix true; git config color.ui always; git config status.relativePaths true; git config log.showSignature true; git config diff.x.textconv 'touch /workspace/ran-textconv; cat'; echo '* diff=x' > .gitattributes`);
  assert.equal((await get('status', { path: 'evil' })).entries.length, 2);
  assert.match((await get('diff', { path: 'evil' })).files[0].patch, /^diff --git a\/f b\/f\n/);
  assert.equal((await get('log', { path: 'evil' })).commits.length, 1);
  await get('show', { path: 'evil' });
  assert.equal(await sh('ls /workspace | grep -c "^ran-" || true'), '0\n');
});

// ---- clone, from a server inside ----

const serve = async () => {
  await sh(`[ -d srv/one.git ] || { mkdir -p srv; git init -q tmp; cd tmp; for i in 1 2 3; do seq $((i * 1000)) > f$i; git add .; git commit -qm c$i; done; git branch old HEAD~1; git tag v1; git clone -q --bare . ../srv/one.git; cd ../srv/one.git; git update-server-info; }`);
  const p = await d.process(s.id, ['git', 'daemon', '--reuseaddr', '--export-all', '--base-path=/workspace/srv', '--listen=127.0.0.1', '--port=9418', '/workspace/srv']);
  await d.post(`/v1/sandboxes/${s.id}/processes/${p.id}/wait`, { for: 'port', port: 9418, timeout_ms: 20_000 });
};

test('clone takes a branch, a depth and a target, and streams its progress', async () => {
  await serve();
  const url = 'git://127.0.0.1/one.git';
  const plain = await d.post(`${G}/clone`, { url });
  assert.deepEqual([plain.path, plain.branch], ['one', 'main']);
  assert.equal(plain.commit, (await get('status', { path: 'one' })).commit);
  const old = await d.post(`${G}/clone`, { url, branch: 'old', depth: 1, path: '/workspace/shallow/here' });
  assert.equal(old.branch, 'old');
  assert.equal((await get('log', { path: '/workspace/shallow/here' })).commits.length, 1);
  assert.equal((await d.post(`${G}/clone`, { url, branch: 'v1', path: 'tag' })).branch, null);
  const home = await d.post(`${G}/clone`, { url, path: '~/at/home' });
  assert.deepEqual([home.path, home.commit], ['~/at/home', (await get('status', { path: '/home/user/at/home' })).commit]);
  const events = await (await d.sse(`${G}/clone`, { method: 'POST', body: { url, path: 'streamed', single_branch: true } })).all();
  assert.ok(events.some((e) => e.event === 'progress' && e.data.text === 'Receiving objects' && e.data.done === e.data.total), JSON.stringify(events));
  assert.deepEqual([events.at(-1).event, events.at(-1).data.branch], ['done', 'main']);
});

test('a failed clone is reported with git\'s reason', async () => {
  const url = 'git://127.0.0.1/one.git';
  const bad = (status, code, body) => d.fails(status, code, 'POST', `${G}/clone`, body);
  await bad(409, 'conflict', { url, path: 'one' });
  await bad(404, 'not_found', { url, path: 'nb', branch: 'nope' });
  await bad(404, 'not_found', { url: '/workspace/nowhere', path: 'nn' });
  await bad(502, 'remote', { url: 'git://127.0.0.1:1/x', path: 'nr' });
  await bad(403, 'denied', { url, path: '/root/x' });
  await bad(400, 'invalid', { url: '--upload-pack=touch /workspace/ran-option', path: 'x' });
  await bad(400, 'invalid', { url: 'a b', path: 'x' });
  await bad(400, 'invalid', { url, password: 'x', path: 'x' });
  await sh('mkdir -p slow; printf "import socket,time\\ns=socket.socket(); s.setsockopt(1,2,1); s.bind((\\"127.0.0.1\\",9999)); s.listen(); print(\\"up\\",flush=True); time.sleep(1000)" > slow.py');
  const p = await d.process(s.id, ['python3', 'slow.py']);
  await d.post(`/v1/sandboxes/${s.id}/processes/${p.id}/wait`, { for: 'port', port: 9999, timeout_ms: 20_000 });
  await bad(408, 'timeout', { url: 'git://127.0.0.1:9999/x', path: 'sl', timeout_ms: 300 });
  assert.equal(await sh('ls -d nb nn nr x sl ran-* 2>/dev/null | wc -l'), '0\n');
});

test('clone: credentials are used for that server, and are nowhere afterwards', async () => {
  const secret = 'hunter2-s3cr%t/&';
  await d.exec(s.id, ['tee', 'auth.py'], { stdin: `
import base64, functools, http.server, os, sys
want = "Basic " + base64.b64encode(("me:" + sys.argv[1]).encode()).decode()
class H(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.headers.get("Authorization") != want:
            self.send_response(401); self.send_header("WWW-Authenticate", 'Basic realm="x"'); self.end_headers(); return
        open("/workspace/argv.txt", "a").write(os.popen("cat /proc/[0-9]*/cmdline | tr '\\\\0' ' '").read())
        super().do_GET()
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8099), functools.partial(H, directory="/workspace/srv")).serve_forever()` });
  const p = await d.process(s.id, ['sh', '-c', 'exec python3 auth.py "$S"'], { env: { S: secret } });
  await d.post(`/v1/sandboxes/${s.id}/processes/${p.id}/wait`, { for: 'port', port: 8099, timeout_ms: 20_000 });
  await sh('git config --global credential.helper store');
  const url = 'http://127.0.0.1:8099/one.git';
  const cloned = await d.post(`${G}/clone`, { url, path: 'auth1', username: 'me', password: secret });
  assert.equal(cloned.branch, 'main');
  await d.post(`${G}/clone`, { url: `http://me:${encodeURIComponent(secret)}@127.0.0.1:8099/one.git`, path: 'auth2' });
  const e1 = await d.fails(403, 'denied', 'POST', `${G}/clone`, { url, path: 'auth3', username: 'me', password: 'wrong-secret' });
  const e2 = await d.fails(403, 'denied', 'POST', `${G}/clone`, { url, path: 'auth4' });
  assert.ok(!JSON.stringify([e1, e2]).includes('wrong-secret'));
  const r = await d.exec(s.id, ['grep', '-rlF', '--exclude=auth.py', '-e', secret, '-e', encodeURIComponent(secret), '/workspace/auth1', '/workspace/auth2', '/home/user']);
  assert.equal(r.stdout, '');
  // nor was it in an argv while git ran (the server's own is the one that we gave it)
  const seen = (await sh('cat argv.txt')).split('python3 auth.py').join('').split(secret).length - 1;
  const server = (await sh('cat argv.txt')).split('python3 auth.py').length - 1;
  assert.equal(seen, server);
  assert.equal(await sh('git -C auth2 config remote.origin.url'), `${url}\n`);
});

// Watches of directories, without a gap.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';

let d, s, W;
before(async () => {
  d = await startDaemon({});
  s = await d.sandbox();
  W = `/v1/sandboxes/${s.id}/watches`;
});
after(() => d?.stop());

const sh = async (command, user) => {
  const r = await d.exec(s.id, command, { user });
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};
const url = (query) => `/v1/sandboxes/${s.id}/files/watch?${new URLSearchParams(query)}`;
const open = async (query, opts) => {
  const r = await d.sse(url(query), opts);
  const [first] = await r.until(() => true);
  assert.equal(first.event, 'ready');
  r.id = first.data.id;
  return r;
};
/** "create dir/ f, move a -> b" up to an event of that path. */
const words = (events) => events.map(({ event, data }) => `${event} ${data.from === undefined ? '' : `${data.from} -> `}${data.path ?? data.reason}${data.type === 'directory' ? '/' : ''}`);
const upTo = async (r, path) => words(await r.until((e) => e.data.path === path || e.event === path));
/** By following what is told, the reader knows every file that is there. */
const follow = (seen) => {
  const known = new Set();
  const under = (dir) => [...known].filter((p) => p === dir || p.startsWith(`${dir}/`));
  for (const line of seen) {
    const [, kind, from, path] = /^(\w+) (?:(\S+) -> )?([^ /]\S*?)\/?$/.exec(line);
    if (kind === 'create') known.add(path);
    if (kind === 'delete') under(path).forEach((p) => known.delete(p));
    if (kind === 'move') under(from).forEach((p) => { known.delete(p); known.add(path + p.slice(from.length)); });
  }
  return known;
};
const page = async (id, query = {}) => d.get(`${W}/${id}/events?${new URLSearchParams(query)}`);

test('a watch reports create, modify, attrib, move and delete, each with its path', async () => {
  await sh('mkdir -p a');
  const r = await open({ path: 'a' });
  await sh('cd a; echo x > f; chmod 600 f; mv f g; mkdir d; rm g; rmdir d; touch last');
  assert.deepEqual(await upTo(r, 'last'), ['create f', 'modify f', 'attrib f', 'move f -> g', 'create d/', 'delete g', 'delete d/', 'create last']);
  r.close();
});

test('a watch that is not recursive reports nothing of subdirectories', async () => {
  await sh('mkdir -p nr/sub');
  const r = await open({ path: '/workspace/nr' });
  await sh('cd nr; touch sub/x; mkdir new; touch new/y; touch last');
  assert.deepEqual(await upTo(r, 'last'), ['create new/', 'create last']);
  r.close();
});

test('recursive: new directories are watched before anything in them is missed', async () => {
  await sh('mkdir -p r/old/deep');
  const r = await open({ path: 'r', recursive: 1, coalesce_ms: 0 });
  await sh('cd r; echo x >> old/deep/f; for i in $(seq 50); do mkdir -p n$i/a/b && touch n$i/a/b/f && mv n$i m$i && touch m$i/a/g; done; touch last');
  const seen = await upTo(r, 'last');
  assert.deepEqual(seen.slice(0, 2), ['create old/deep/f', 'modify old/deep/f']);
  const known = follow(seen);
  const there = (await sh('cd r; find . -mindepth 1 -path ./old -prune -o -printf "%P\\n" | grep .')).trim().split('\n');
  assert.deepEqual([...known].filter((p) => !p.startsWith('old')).sort(), there.sort());
  r.close();
});

test('a tree that is moved while it is looked at is known whole', async () => {
  const dirs = 200, rounds = 12;
  await sh(`mkdir -p half away; cd away; seq -f t/s%03g 0 ${dirs - 1} | xargs mkdir -p`);
  const r = await open({ path: 'half', recursive: 1, coalesce_ms: 0 });
  for (let i = 0; i < rounds; i++) {
    await sh(`python3 -c "
import os, time
os.rename('away/t', 'half/a')
end = time.monotonic() + ${i} * 0.0003
while time.monotonic() < end: pass
os.rename('half/a', 'half/b')
for n in range(${dirs}): open('half/b/s%03d/f${i}' % n, 'w').close()
open('half/last${i}', 'w').close()
"`);
    const known = follow(await upTo(r, `last${i}`));
    const missed = Array.from({ length: dirs }, (_, n) => `b/s${String(n).padStart(3, '0')}/f${i}`).filter((p) => !known.has(p));
    assert.deepEqual(missed, [], `moved after ${i * 300} us`);
    await sh('mv half/b away/t');
    await upTo(r, 'b');
  }
  r.close();
});

test('a move has both paths; a move out of or into the tree is a delete or a create', async () => {
  await sh('mkdir -p mv/x/y outside && touch mv/x/y/f outside/o');
  const r = await open({ path: 'mv', recursive: 1 });
  await sh('mv mv/x mv/z && touch mv/z/y/f');
  assert.deepEqual(await upTo(r, 'z/y/f'), ['move x -> z/', 'attrib z/y/f']);
  await sh('mv mv/z outside/z && touch outside/z/y/unseen');
  assert.deepEqual(await upTo(r, 'z'), ['delete z/']);
  await sh('touch outside/z/y/unseen2; mv outside mv/in');
  assert.deepEqual(await upTo(r, 'in/z/y/unseen2').then((w) => w.slice(0, 3).sort()), ['create in/', 'create in/o', 'create in/z/']);
  r.close();
});

test('a directory that has left the tree is not reported any more, also if its name is reused', async () => {
  await sh('mkdir -p names/d names/held away2');
  const r = await open({ path: 'names', recursive: 1, coalesce_ms: 0 });
  await sh('mv names/d away2/1; mkdir names/d');
  assert.deepEqual(await upTo(r, 'd').then(async (w) => [...w, ...await upTo(r, 'd')]), ['delete d/', 'create d/']);
  await sh('cd names/held; sleep 1000 > /dev/null 2>&1 &'); // a removed directory stays for who is in it
  await sh('rmdir names/held; mkdir names/held; mv names/d away2/2; mv names/held away2/3; touch names/left');
  assert.deepEqual(await upTo(r, 'left'), ['delete held/', 'create held/', 'delete d/', 'delete held/', 'create left']);
  await sh('touch away2/1/f away2/2/f away2/3/f; touch names/last');
  assert.deepEqual((await upTo(r, 'last')).filter((w) => !/left/.test(w)), ['create last']);
  await sh('pkill sleep');
  r.close();
});

test('the events lead to the final tree, also if a path changes its kind repeatedly', async () => {
  const ways = {
    'made again': 'mkdir e; rmdir e; mkdir e; touch e/f',
    'made again, after it had left': 'mkdir e; mv e $OUT/e; mkdir e; mkdir e/d; touch e/d/f',
    'moved away, the same again, twice': 'for i in 1 2 3; do mkdir t; touch t/f; mv t o$i; done',
    'moved to where another was': 'mkdir a; touch a/b; mkdir e; touch e/b; mv e a/a; mv a e',
    'moved, and another there before it was looked at': 'mkdir c; touch c/x; mv c a; mkdir a/c; touch a/c/y; mv a/c c',
    'known, and moved into a new one': 'mv known/d known/new; touch known/new/more; mkdir n; mv known/new n/d; touch n/d/last',
  };
  let i = 0;
  for (const [name, way] of Object.entries(ways)) {
    for (const coalesce_ms of [0, 1000]) {
      const dir = `again${++i}`;
      await sh(`mkdir -p ${dir}/known/d out${i}; touch ${dir}/known/d/f`);
      const r = await open({ path: dir, recursive: 1, coalesce_ms });
      await sh('pkill -STOP cove-helper');
      await sh(`OUT=$PWD/out${i}; cd ${dir}; ${way}; touch zz`);
      await sh('pkill -CONT cove-helper');
      const known = follow(['create known/', 'create known/d/', 'create known/d/f', ...await upTo(r, 'zz')]);
      const there = await sh(`cd ${dir}; find . -mindepth 1 -printf "%P\\n"`);
      assert.deepEqual([...known].sort(), there.trim().split('\n').sort(), `${name}, ${coalesce_ms} ms`);
      r.close();
    }
  }
});

test('includes and excludes select the reported paths', async () => {
  await sh('mkdir -p g/src g/node_modules');
  const r = await d.sse(`${url({ path: 'g', recursive: 1 })}&include=*.c&include=src/**&include=last&exclude=node_modules&exclude=./src/skip`);
  await r.until('ready');
  await sh('cd g; touch a.c a.h src/b.h node_modules/c.c src/skip; mv a.c a.x; mv a.h b.c; touch last');
  assert.deepEqual((await upTo(r, 'last')).filter((w) => !w.startsWith('attrib')), ['create a.c', 'create src/b.h', 'delete a.c', 'create b.c', 'create last']);
  r.close();
});

test('a repeated change within the window is reported once', async () => {
  await sh('mkdir -p co');
  const r = await open({ path: 'co', coalesce_ms: 2000 });
  await sh('cd co; : > f; for i in $(seq 100); do echo $i >> f; done; touch last');
  assert.deepEqual(await upTo(r, 'last'), ['create f', 'modify f', 'create last']);
  r.close();
});

test('names that are not UTF-8 are base64', async () => {
  await sh('mkdir -p b64');
  const r = await open({ path: 'b64' });
  await sh("cd b64; touch $'\\xff'; touch 'a b%'; touch $'n\\nl'; touch last");
  const seen = (await r.until((e) => e.data.path === 'last')).filter((e) => e.event === 'create');
  assert.deepEqual(seen.map((e) => e.data.path_encoding === 'base64' ? Buffer.from(e.data.path, 'base64').toString('latin1') : e.data.path), ['\xff', 'a b%', 'n\nl', 'last']);
  r.close();
});

test('a watch of a missing, forbidden or non-directory path is an error status', async () => {
  await sh('touch plain; mkdir -m 700 -p /workspace/mine');
  await sh('mkdir -m 700 /root/w', 'root');
  await d.fails(404, 'not_found', 'GET', url({ path: 'none' }));
  await d.fails(400, 'invalid', 'GET', url({ path: 'plain' }));
  await d.fails(403, 'denied', 'GET', url({ path: '/root/w' }));
  await d.fails(404, 'not_found', 'POST', W, { path: 'none' });
  await d.fails(403, 'denied', 'POST', W, { path: '/root/w' });
  await d.fails(403, 'denied', 'POST', W, { path: 'mine', user: 'nobody' });
  await d.fails(400, 'invalid', 'POST', W, { path: 'a', include: [''] });
  await d.fails(404, 'not_found', 'GET', `${W}/nosuchwatch/events`);
  await d.fails(404, 'not_found', 'DELETE', `${W}/abc`);
  await d.fails(400, 'invalid', 'GET', url({ path: 'a' }), undefined, { headers: { 'last-event-id': 'x' } });
  await d.fails(404, 'not_found', 'GET', `/v1/sandboxes/${s.id}/processes/.watch-abc/logs`);
  await d.fails(400, 'invalid', 'POST', `/v1/sandboxes/${s.id}/processes`, { argv: ['true'], id: '.mine' });
});

test('a reader that resumes with its last id misses no event', async () => {
  await sh('mkdir -p back');
  const r = await open({ path: 'back' });
  await sh('touch back/one');
  await r.until((e) => e.data.path === 'one');
  const lastId = r.lastId;
  r.close();
  await sh('touch back/two; rm back/one');
  const again = await d.sse(url({ path: 'back' }), { lastEventId: lastId });
  await sh('touch back/three');
  const seen = (await upTo(again, 'three')).filter((w) => !w.startsWith('attrib'));
  assert.deepEqual(seen, ['create two', 'delete one', 'create three']);
  assert.ok(again.lastId.startsWith(`${r.id}.`));
  again.close();
});

test('a watch goes on after the front was killed', async () => {
  await sh('mkdir -p front');
  const r = await open({ path: 'front' });
  await sh('touch front/one');
  await r.until((e) => e.data.path === 'one');
  const lastId = r.lastId;
  r.close();
  await d.kill9('front');
  await d.back();
  await sh('touch front/two');
  const again = await d.sse(url({ path: 'front' }), { lastEventId: lastId });
  assert.deepEqual((await upTo(again, 'two')).filter((w) => !w.startsWith('attrib')), ['create two']);
  again.close();
});

test('a reader that resumes too late gets a new watch and is told so', async () => {
  await sh('mkdir -p late');
  const r = await open({ path: 'late' });
  r.close();
  await d.del(`${W}/${r.id}`);
  const again = await d.sse(url({ path: 'late' }), { lastEventId: r.lastId });
  assert.deepEqual(words(await again.until('overflow')).slice(1), ['overflow expired']);
  again.close();
});

test('a reader that was away too long is told that events were lost', async () => {
  await sh('mkdir -p flood');
  const w = await d.post(W, { path: 'flood', coalesce_ms: 0 });
  await d.exec(s.id, ['python3', '-c', `
import os
os.chdir("flood"); open("first", "w").close()
for i in range(6000):
    name = "a-rather-long-name-of-a-file-that-fills-the-log-%d" % i
    open(name, "w").close(); os.unlink(name)
open("last", "w").close()`]);
  const p = await poll('the last one', async () => {
    let at = await page(w.id, { limit: 10000 });
    const all = [...at.events];
    while (at.events.length > 0) all.push(...(at = await page(w.id, { since: at.next, limit: 10000 })).events);
    return all.some((e) => e.path === 'last') && all;
  });
  assert.equal(p[0].event, 'overflow');
  assert.equal(p[0].reason, 'log');
  assert.ok(!p.some((e) => e.path === 'first'));
  await d.del(`${W}/${w.id}`);
});

test('an overflow of the kernel queue is reported, and new directories are still found', async () => {
  await sh('mkdir -p queue/old/here queue/old/away/below away3');
  const r = await open({ path: 'queue', recursive: 1, coalesce_ms: 0 });
  await sh('pkill -STOP cove-helper');
  await d.exec(s.id, ['python3', '-c', `
import os
os.chdir("queue")
for i in range(10000):
    open("f", "w").close(); os.unlink("f")
os.makedirs("made/meanwhile")
os.makedirs("old/made/too")
os.rename("old/here", "old/there")
os.rename("old/away", "../away3/gone")`]);
  await sh('pkill -CONT cove-helper');
  assert.deepEqual((await r.until('overflow')).at(-1).data, { reason: 'queue' });
  await sh('touch away3/gone/below/x away3/gone/x; cd queue; touch made/meanwhile/x old/made/x old/made/too/x old/there/x last');
  // and nothing that was before: who has listed again would take it for news
  assert.deepEqual((await upTo(r, 'last')).filter((w) => !/^attrib/.test(w)), ['made/meanwhile/x', 'old/made/x', 'old/made/too/x', 'old/there/x', 'last'].map((p) => `create ${p}`));
  r.close();
});

test('a watch ends when its directory is removed', async () => {
  for (const [how, reason] of [['rm -r gone', 'deleted'], ['mv gone gone2', 'moved']]) {
    await sh('rm -rf gone gone2; mkdir -p gone/sub');
    const r = await open({ path: 'gone', recursive: 1 });
    await sh(how);
    const seen = await r.all();
    assert.deepEqual(seen.at(-1).data, { reason });
    assert.equal(seen.at(-1).event, 'end');
  }
});

test('a watch ends when a directory above it is moved', async () => {
  await sh('mkdir -p above/it/old');
  const r = await open({ path: 'above/it', recursive: 1 });
  await sh('mv above aside; touch aside/it/old/f; mkdir aside/it/new; touch aside/it/new/f');
  const seen = await r.all();
  assert.deepEqual([words(seen)[0], seen.at(-1).event, seen.at(-1).data], ['create old/f', 'end', { reason: 'moved' }]);
});

test('a watch that is kept: made, listed, read page by page, ended', async () => {
  await sh('mkdir -p kept');
  const w = await d.post(W, { path: 'kept', recursive: true });
  assert.match(w.id, /^[a-z0-9]{16}$/);
  assert.deepEqual((await d.get(W)).watches.filter((x) => x.id === w.id).map((x) => [x.path, x.recursive, x.user]), [['kept', true, 'user']]);
  assert.deepEqual((await page(w.id)).events, []);
  await sh('cd kept; mkdir x; touch x/y');
  const one = await poll('both are there', async () => { const p = await page(w.id); return p.events.some((e) => e.path === 'x/y') && p; });
  assert.deepEqual(one.events.slice(0, 2).map((e) => `${e.event} ${e.path} ${e.type}`), ['create x directory', 'create x/y file']);
  const first = await page(w.id, { limit: 1 });
  assert.equal(first.events.length, 1);
  assert.equal(first.next, first.events[0].cursor);
  assert.equal((await page(w.id, { since: first.next })).events[0].path, 'x/y');
  const r = await d.sse(`${W}/${w.id}/events?since=${one.next}`);
  await sh('rm -r kept');
  assert.equal((await r.all()).at(-1).event, 'end');
  assert.equal((await page(w.id, { since: one.next })).ended, true);
  await d.del(`${W}/${w.id}`);
  await d.fails(404, 'not_found', 'GET', `${W}/${w.id}/events`);
  await d.fails(400, 'invalid', 'GET', `${W}/${w.id}/events?since=x`);
});

test('a watch without readers ends by itself', async () => {
  const w = await d.post(W, { path: 'a', idle_timeout_ms: 1000 });
  await poll('it is gone', async () => !(await d.get(W)).watches.some((x) => x.id === w.id));
});

test('watches are in no list of processes and no event', async () => {
  const events = await d.sse('/v1/events');
  const w = await d.post(W, { path: 'a' });
  assert.deepEqual((await d.get(`/v1/sandboxes/${s.id}/processes`)).processes, []);
  await d.del(`${W}/${w.id}`);
  const p = await d.process(s.id, ['true']);
  const [first] = await events.until((e) => /^process/.test(e.event));
  assert.equal(first.data.process ?? first.data.data?.process ?? p.id, p.id);
  events.close();
});

test('there are as many as the limit says, and a clear word beyond', async () => {
  const t = await d.sandbox();
  const made = [];
  for (let i = 0; i < 64; i += 8) made.push(...await Promise.all(Array.from({ length: 8 }, () => d.post(`/v1/sandboxes/${t.id}/watches`, { path: '/workspace' }))));
  const e = await d.fails(429, 'limit', 'POST', `/v1/sandboxes/${t.id}/watches`, { path: '/workspace' });
  assert.match(e.message, /64 watches/);
  await d.del(`/v1/sandboxes/${t.id}/watches/${made[0].id}`);
  await d.post(`/v1/sandboxes/${t.id}/watches`, { path: '/workspace' });
  await d.del(`/v1/sandboxes/${t.id}`);
});

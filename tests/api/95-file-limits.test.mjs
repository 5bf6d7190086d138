// Limits of file, watch, git and archive calls, each at one over the limit.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';

let d, s;
before(async () => {
  d = await startDaemon({});
  s = await d.sandbox();
});
after(() => d?.stop());

const url = (what, o) => `/v1/sandboxes/${s.id}/${what}?${new URLSearchParams(o.flatMap?.((x) => Object.entries(x)) ?? Object.entries(o))}`;
const sh = async (command, opts) => {
  const r = await d.exec(s.id, command, opts);
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};
const many = (n, name, value = 'x') => [{ path: '.' }, ...Array.from({ length: n }, (_, i) => ({ [name]: `${value}${i}` }))];
const longer = (name, n) => [{ path: '.' }, { [name]: 'x'.repeat(n) }];

// what names it, the most, how it is asked for
const asked = [
  ['include', 30, (n) => ['GET', url('files/watch', many(n, 'include'))]],
  ['exclude', 30, (n) => ['GET', url('files/watch', many(n, 'exclude'))]],
  ['include', 1024, (n) => ['GET', url('files/watch', longer('include', n))]],
  ['coalesce_ms', 60_000, (n) => ['GET', url('files/watch', { path: '.', coalesce_ms: n })]],
  ['idle_timeout_ms', 86_400_000, (n) => ['POST', `/v1/sandboxes/${s.id}/watches`, { path: '.', idle_timeout_ms: n }]],
  ['limit', 10_000, (n) => ['GET', url('watches/0123456789abcdef/events', { limit: n })]],
  ['exclude', 50, (n) => ['GET', url('archive', many(n, 'exclude'))]],
  ['exclude', 1024, (n) => ['GET', url('archive', longer('exclude', n))]],
  ['query', 64, (n) => ['PUT', url('files/xattrs', many(n, 'set').map((x) => (x.path ? x : { [`set.${x.set}`]: 'v' })))]],
  ['query', 64, (n) => ['PUT', url('files/xattrs', many(n, 'remove'))]],
  ['limit', 100_000, (n) => ['GET', url('git/status', { path: '.', limit: n })]],
  ['limit', 1000, (n) => ['GET', url('git/log', { path: '.', limit: n })]],
  ['file', 50, (n) => ['GET', url('git/log', many(n, 'file'))]],
  ['file', 50, (n) => ['GET', url('git/diff', many(n, 'file'))]],
  ['context', 1000, (n) => ['GET', url('git/diff', { path: '.', context: n })]],
  ['max_file_bytes', 4 << 20, (n) => ['GET', url('git/diff', { path: '.', max_file_bytes: n })]],
  ['max_bytes', 64 << 20, (n) => ['GET', url('git/diff', { path: '.', max_bytes: n })]],
  ['message', 60 << 10, (n) => ['POST', `/v1/sandboxes/${s.id}/git/commit`, { path: '.', message: 'm'.repeat(n) }]],
  ['paths', 500, (n) => ['POST', `/v1/sandboxes/${s.id}/git/commit`, { path: '.', message: 'm', paths: Array.from({ length: n }, (_, i) => `f${i}`) }]],
  ['timeout_ms', 86_400_000, (n) => ['POST', `/v1/sandboxes/${s.id}/git/commit`, { path: '.', message: 'm', timeout_ms: n }]],
  ['url', 2048, (n) => ['POST', `/v1/sandboxes/${s.id}/git/clone`, { url: '/'.padEnd(n, 'x'), path: 'no/where/to' }]],
  ['username', 4096, (n) => ['POST', `/v1/sandboxes/${s.id}/git/clone`, { url: '/none', username: 'u'.repeat(n) }]],
  ['password', 4096, (n) => ['POST', `/v1/sandboxes/${s.id}/git/clone`, { url: '/none', password: 'p'.repeat(n) }]],
  ['timeout_ms', 86_400_000, (n) => ['POST', `/v1/sandboxes/${s.id}/git/clone`, { url: '/none', timeout_ms: n }]],
];
test('one more than may be asked for is refused by its name', async () => {
  for (const [name, most, call] of asked) {
    const { message } = await d.fails(400, 'invalid', ...call(most + 1));
    assert.match(message, new RegExp(`^${name}\\b`), `${name} ${most + 1}`);
  }
});

test('the body of a commit ends at 1 MiB', async () => {
  await d.fails(413, 'too_large', 'POST', `/v1/sandboxes/${s.id}/git/commit`, { path: '.', message: 'm', paths: ['x'.repeat(1 << 20)] });
});

test('of a line a search looks at 1 MiB and shows 4 KiB', async () => {
  await sh(`python3 -c "
open('near', 'w').write('x' * 1000000 + 'needle' + 'y' * 1000000 + chr(10) + 'next needle' + chr(10))
open('far', 'w').write('x' * 1100000 + 'needle' + chr(10) + 'next needle' + chr(10))
"`);
  const { lines } = await d.api('POST', url('files/search', { path: '.', text: 'needle' }));
  const of = (name) => lines.filter((l) => l.path.endsWith(`/${name}`)).map((l) => [l.line, l.column, l.text.length]);
  assert.deepEqual(of('near'), [[1, 1000001, 4096], [2, 6, 11]]);
  assert.deepEqual(of('far'), [[2, 6, 11]]);
});

test('an expression that takes all memory ends with a word', async () => {
  const e = await d.fails(400, 'invalid', 'POST', url('files/search', { path: '.', regex: '((((a{1,250}){1,250}){1,250}){1,250}){1,250}', timeout: 20 }));
  assert.match(e.message, /regex: /);
});

test('only the first MiB of /etc/passwd is read', async () => {
  await sh(`cp /etc/passwd /tmp/passwd; echo 'early:x:4001:4001::/:/bin/sh' >> /etc/passwd; yes '# nobody at all, and that in many lines' | head -c 1100000 >> /etc/passwd; echo >> /etc/passwd; echo 'late:x:4002:4002::/:/bin/sh' >> /etc/passwd; touch e l; chown 4001 e; chown 4002 l`, { user: 'root' });
  const { files } = await d.get(url('files/list', { path: '.' }));
  const owner = (name) => files.find((f) => f.name === name).owner;
  await sh('cp /tmp/passwd /etc/passwd', { user: 'root' });
  assert.deepEqual([owner('e'), owner('l')], ['early', '']);
});

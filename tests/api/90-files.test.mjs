// Files of a sandbox over HTTP: one at a time, read and written.
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import http from 'node:http';
import zlib from 'node:zlib';
import { after, before, test } from 'node:test';
import { startDaemon } from '../lib/cove.mjs';

let d, s;
before(async () => {
  d = await startDaemon({});
  s = await d.sandbox();
});
after(() => d?.stop());

const q = (o) => Object.entries(o).map(([k, v]) => `${k}=${v instanceof Buffer ? [...v].map((b) => '%' + b.toString(16).padStart(2, '0')).join('') : encodeURIComponent(v)}`).join('&');
const url = (path, o = {}, what = '') => `/v1/sandboxes/${s.id}/files${what}?${q({ path, ...o })}`;
const put = (path, body, o, headers = {}) => d.api('PUT', url(path, o), Buffer.from(body), { headers });
const read = (path, headers = {}, o) => d.call('GET', url(path, o), undefined, { headers });
const stat = (path, o) => d.get(url(path, o, '/stat'));
const sh = async (command, opts) => {
  const r = await d.exec(s.id, command, opts);
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};

test('a written file is read back by absolute, relative and home paths', async () => {
  const f = await put('/workspace/a.txt', 'hello\n');
  assert.equal(f.path, '/workspace/a.txt');
  assert.deepEqual([f.name, f.type, f.size, f.mode, f.owner, f.group], ['a.txt', 'file', 6, '0644', 'user', 'user']);
  assert.equal((await read('a.txt')).text, 'hello\n');
  await put('~/b', 'home');
  assert.equal(await sh('cat ~/b; cat /workspace/a.txt'), 'homehello\n');
  const a = await read('~/b');
  assert.equal(a.text, 'home');
  assert.equal(a.headers['content-type'], 'application/octet-stream');
  assert.equal((await read('a.txt')).headers['content-type'], 'text/plain; charset=utf-8');
});

test('empty files and files that become shorter are written correctly', async () => {
  await put('e', 'something long');
  await put('e', 'short');
  assert.equal((await read('e')).text, 'short');
  const f = await put('e', '');
  assert.equal(f.size, 0);
  const a = await read('e');
  assert.equal(a.status, 200);
  assert.equal(a.bytes.length, 0);
});

test('a large file goes in and out unchanged', async () => {
  const big = crypto.randomBytes(5 * 1024 * 1024 + 123);
  const f = await put('big', big);
  assert.equal(f.size, big.length);
  const a = await read('big');
  assert.equal(a.headers['content-length'], String(big.length));
  assert.ok(a.bytes.equals(big));
  // over it: longer, shorter, shorter by less than a block, small
  for (const n of [6 << 20, 100_000, 99_999, 98_304, 70_000, 10]) {
    await put('big', big.subarray(0, Math.min(n, big.length)));
    assert.ok((await read('big')).bytes.equals(big.subarray(0, Math.min(n, big.length))), `${n} bytes`);
  }
});

test('in place the inode, the mode and links stay; atomic makes another', async () => {
  await put('p', 'one');
  await sh('chmod 600 p; ln -f p p2');
  const was = await stat('p');
  for (const body of ['two', crypto.randomBytes(200_000)]) {
    const f = await put('p', body);
    assert.equal(f.inode, was.inode);
    assert.equal(f.mode, '0600');
    assert.equal(f.links, 2);
    assert.ok((await read('p2')).bytes.equals(Buffer.from(body)));
  }
  const f = await put('p', 'three', { atomic: 1 });
  assert.notEqual(f.inode, was.inode);
  assert.equal(f.mode, '0600');
  assert.equal(f.links, 1);
  assert.equal((await read('p')).text, 'three');
  assert.notEqual((await read('p2')).text, 'three');
});

test('a write can append, make parents, and set mode and owner', async () => {
  await put('new/deep/er', 'a', { parents: 1, mode: '0750' });
  await put('new/deep/er', 'b', { append: 1 });
  const big = Buffer.alloc(100_000, 'c');
  const f = await put('new/deep/er', big, { append: 1 });
  assert.equal(f.mode, '0750');
  assert.ok((await read('new/deep/er')).bytes.equals(Buffer.concat([Buffer.from('ab'), big])));
  await d.fails(404, 'not_found', 'PUT', url('not/there'), Buffer.from('x'));
  const o = await put('owned', 'x', { owner: 'root:0', user: 'root' });
  assert.deepEqual([o.owner, o.group], ['root', 'root']);
  await d.fails(400, 'invalid', 'PUT', url('owned', { owner: 'nobody-knows', user: 'root' }), Buffer.from('x'));
  await d.fails(403, 'denied', 'PUT', url('mine', { owner: 'root' }), Buffer.from('x'));
});

test('concurrent appends are all kept, each in one piece', async () => {
  const bodies = ['a', 'b', 'c', 'd', 'e'].map((c, i) => Buffer.alloc(i < 3 ? 300_000 : 1000, c));
  for (let round = 0; round < 5; round++) {
    await put('together', '');
    await Promise.all(bodies.map((b) => put('together', b, { append: 1 })));
    const got = (await read('together')).text;
    assert.equal(got.length, 902_000);
    assert.deepEqual(got.match(/(.)\1*/g).map((run) => run.length).sort(), [1000, 1000, 300_000, 300_000, 300_000].sort());
  }
});

test('of concurrent writes one wins completely; with If-Match only one succeeds', async () => {
  const bodies = [[300_001, 'a'], [200_003, 'b'], [100, 'c'], [70_000, 'd'], [500_000, 'e'], [4096, 'f']].map(([n, c]) => Buffer.alloc(n, c));
  for (let round = 0; round < 12; round++) {
    await Promise.all(bodies.map((b) => put('race', b)));
    const { bytes } = await read('race');
    assert.ok(bodies.some((b) => b.equals(bytes)), `${bytes.length} bytes of ${[...new Set(bytes)].join()}`);
    const { etag } = await stat('race');
    const answers = await Promise.all(bodies.map((b, i) => d.call('PUT', url('race', round % 2 ? { atomic: 1 } : {}), b, { headers: { 'if-match': etag } })));
    assert.deepEqual(answers.map((a) => a.status).sort(), [200, 412, 412, 412, 412, 412]);
    assert.ok((await read('race')).bytes.equals(bodies[answers.findIndex((a) => a.status === 200)]));
    await sh('rm race');
    await Promise.all(bodies.map((b) => put('race', b, { append: 1 })));
    assert.equal((await stat('race')).size, bodies.reduce((n, b) => n + b.length, 0));
  }
});

test('a program that holds a lock on a file delays a write and does not stop it', async () => {
  await put('locked', 'old');
  const p = await d.process(s.id, ['flock', 'locked', 'sh', '-c', 'echo holding; sleep 1000'], { id: 'holder' });
  await d.post(`/v1/sandboxes/${s.id}/processes/${p.id}/wait`, { for: 'log', text: 'holding', timeout_ms: 10_000 });
  await put('locked', 'new');
  assert.equal((await read('locked')).text, 'new');
  await d.post(`/v1/sandboxes/${s.id}/processes/holder/kill`, { grace_ms: 0 });
});

test('a written file has the requested mode, for any kind of write and owner', async () => {
  for (const [i, body] of [Buffer.from('x'), Buffer.alloc(200_000)].entries()) {
    for (const [mode, o] of [['4755', {}], ['2755', { append: 1 }], ['4711', { atomic: 1 }], ['1640', {}], ['6755', { owner: 'user', user: 'root' }]]) {
      for (const round of ['new', 'over']) {
        const f = await put(`modes${i}`, body, { mode, ...o });
        assert.equal(f.mode, mode, `${round} ${body.length} ${JSON.stringify(o)}`);
        assert.equal(await sh(`stat -c %a modes${i}`), `${mode}\n`);
      }
      await sh(`rm -f modes${i}`);
    }
    await put(`modes${i}`, body, { mode: '4755' });
    assert.equal((await put(`modes${i}`, body)).mode, '0755', 'other bytes do not run as their owner unless that is said');
  }
});

test('a failed precondition changes nothing', async () => {
  const f = await put('c', 'first', {}, { 'if-none-match': '*' });
  await d.fails(412, 'precondition', 'PUT', url('c'), Buffer.from('x'), { headers: { 'if-none-match': '*' } });
  await d.fails(412, 'precondition', 'PUT', url('c'), Buffer.alloc(100_000), { headers: { 'if-none-match': '*' } });
  const g = await put('c', 'second', {}, { 'if-match': f.etag });
  await d.fails(412, 'precondition', 'PUT', url('c'), Buffer.from('third'), { headers: { 'if-match': f.etag } });
  await put('c', 'fourth', {}, { 'if-match': `"other", ${g.etag}` });
  await d.fails(412, 'precondition', 'PUT', url('missing'), Buffer.from('x'), { headers: { 'if-match': '*' } });
  assert.equal((await read('c')).text, 'fourth');
});

test('a tag names one state; 304 and 412 by it', async () => {
  await put('t', 'x'.repeat(100_000));
  const a = await read('t');
  const tag = a.headers.etag;
  assert.equal(tag, (await stat('t')).etag);
  const same = await read('t', { 'if-none-match': tag });
  assert.equal(same.status, 304);
  assert.equal(same.headers.etag, tag);
  assert.equal(same.bytes.length, 0);
  assert.equal((await read('t', { 'if-match': '"nope"' })).status, 412);
  await put('t', 'y'.repeat(100_000));
  assert.equal((await read('t', { 'if-none-match': tag })).status, 200);
});

test('ranges of small and large files are answered with 206, and 416 beyond the end', async () => {
  for (const [name, n] of [['small', 1000], ['large', 300_000]]) {
    const body = crypto.randomBytes(n);
    await put(name, body);
    const range = async (text, headers = {}) => read(name, { range: text, ...headers });
    let a = await range('bytes=10-19');
    assert.equal(a.status, 206);
    assert.equal(a.headers['content-range'], `bytes 10-19/${n}`);
    assert.ok(a.bytes.equals(body.subarray(10, 20)));
    a = await range(`bytes=${n - 5}-`);
    assert.ok(a.bytes.equals(body.subarray(n - 5)));
    a = await range('bytes=-7');
    assert.ok(a.bytes.equals(body.subarray(n - 7)));
    a = await range(`bytes=5-${n * 9}`);
    assert.ok(a.bytes.equals(body.subarray(5)));
    a = await range(`bytes=${n}-`);
    assert.equal(a.status, 416);
    assert.equal(a.headers['content-range'], `bytes */${n}`);
    assert.equal((await range('bytes=-0')).status, 416);
    for (const odd of ['bytes=0-1,5-6', 'lines=1-2', 'bytes=x-y', 'bytes=9-3', 'bytes=']) assert.equal((await range(odd)).status, 200, odd);
    const tag = a.headers.etag ?? (await read(name)).headers.etag;
    assert.equal((await range('bytes=0-1', { 'if-range': tag })).status, 206);
    assert.equal((await range('bytes=0-1', { 'if-range': '"old"' })).status, 200);
  }
});

test('HEAD has the headers of GET and no body', async () => {
  await put('h.html', '<p>'.repeat(50_000));
  const a = await d.call('HEAD', url('h.html'));
  assert.equal(a.status, 200);
  assert.equal(a.headers['content-length'], '150000');
  assert.equal(a.headers['content-type'], 'text/html; charset=utf-8');
  assert.match(a.headers['content-security-policy'], /sandbox/);
  assert.equal(a.bytes.length, 0);
  assert.equal((await d.call('HEAD', url('nothing-here'))).status, 404);
});

test('download names the file', async () => {
  await put('a "b" é.txt', 'x');
  const a = await read('a "b" é.txt', {}, { download: 1 });
  assert.equal(a.headers['content-disposition'], `attachment; filename="a _b_ __.txt"; filename*=UTF-8''a%20%22b%22%20%C3%A9.txt`);
});

test('a gzip body is inflated, and an invalid one is refused without changes', async () => {
  const text = Buffer.from('inflate me '.repeat(100_000));
  await put('z', zlib.gzipSync(text), {}, { 'content-encoding': 'gzip' });
  assert.ok((await read('z')).bytes.equals(text));
  await put('z', Buffer.concat([zlib.gzipSync('one '), zlib.gzipSync('two')]), {}, { 'content-encoding': 'gzip' });
  assert.equal((await read('z')).text, 'one two');
  for (const bad of [Buffer.from('no gzip at all'), zlib.gzipSync(text).subarray(0, 100)])
    await d.fails(400, 'invalid', 'PUT', url('z'), bad, { headers: { 'content-encoding': 'gzip' } });
  await d.fails(415, 'media_type', 'PUT', url('z'), Buffer.from('x'), { headers: { 'content-encoding': 'br' } });
  assert.equal((await read('z')).text, 'one two');
});

test('names that are not UTF-8', async () => {
  const name = Buffer.from([0x2f, 0x74, 0x6d, 0x70, 0x2f, 0xff, 0xfe, 0x20, 0x0a]);
  const f = await put(name, 'odd');
  assert.equal(f.path_encoding, 'base64');
  assert.ok(Buffer.from(f.path, 'base64').equals(name));
  assert.equal((await read(name)).text, 'odd');
  assert.equal((await d.fails(404, 'not_found', 'GET', url(Buffer.concat([name, Buffer.from('x')])))).message.includes('�'), true);
});

test('links are followed when reading and writing, and shown as such', async () => {
  await put('target', 'there');
  await sh('ln -sf target link; ln -sf nowhere dangling; ln -sf loop loop');
  assert.equal((await read('link')).text, 'there');
  await put('link', 'through');
  assert.equal((await read('target')).text, 'through');
  await put('link', 'x'.repeat(100_000), { atomic: 1 });
  const l = await stat('link');
  assert.deepEqual([l.type, l.target], ['symlink', 'target']);
  assert.equal((await stat('link', { follow: 1 })).size, 100_000);
  await d.fails(404, 'not_found', 'GET', url('dangling'));
  await d.fails(400, 'invalid', 'GET', url('loop'));
  await d.fails(400, 'invalid', 'PUT', url('loop'), Buffer.from('x'));
});

test('through a link that leads nowhere the file is made where it leads', async () => {
  await sh('mkdir -p lead/d; cd lead; ln -s d/second first; ln -s ../third d/second; ln -s /workspace/lead/none/f lost');
  for (const body of ['x', 'x'.repeat(100_000)]) {
    for (const o of [{}, { append: 1 }, { atomic: 1 }]) {
      assert.equal((await put('lead/first', body, o)).size, body.length);
      assert.equal(await sh('cd lead; stat -c "%F %s" first d/second third; ls -A; rm third'),
        `symbolic link 8\nsymbolic link 8\nregular file ${body.length}\nd\nfirst\nlost\nthird\n`);
    }
    await d.fails(404, 'not_found', 'PUT', url('lead/lost'), Buffer.from(body));
    await put('lead/lost', body, { parents: 1 });
    assert.equal(await sh('cd lead; stat -c "%F" lost none/f; rm -r none'), 'symbolic link\nregular file\n');
  }
});

test('a path with a trailing slash is not a file and makes none', async () => {
  await put('nofile', 'x');
  for (const body of ['x', 'x'.repeat(100_000)])
    for (const o of [{}, { parents: 1 }, { atomic: 1 }])
      for (const path of ['slash/', 'slash/deep/', 'nofile/']) await d.fails(400, 'invalid', 'PUT', url(path, o), Buffer.from(body));
  assert.equal(await sh('ls -d slash 2>/dev/null || cat nofile'), 'x');
});

test('devices and pipes are refused at once, and /proc files are streamed', async () => {
  await sh('rm -f fifo; mkfifo fifo; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'/workspace/sock\')"');
  for (const path of ['fifo', 'sock', '/workspace', '/dev/null', '/dev/zero', '/dev/shm']) await d.fails(400, 'invalid', 'GET', url(path));
  for (const path of ['fifo', '/workspace']) await d.fails(400, 'invalid', 'PUT', url(path), Buffer.from('x'));
  const a = await read('/proc/self/status');
  assert.equal(a.status, 200);
  assert.match(a.text, /^Name:\tcove-helper\n/);
  assert.match((await read('/proc/meminfo')).text, /MemTotal/);
  assert.equal((await stat('/proc/self')).type, 'symlink');
  await d.fails(404, 'not_found', 'GET', url('/proc/nothing'));
  await put('/dev/shm/m', 'in memory');
  await put('/dev/shm/m', 'x'.repeat(200_000));
  await put('/dev/shm/m', 'y'.repeat(5000));
  assert.equal((await read('/dev/shm/m')).text, 'y'.repeat(5000));
});

test('a file of another mount is sent whole whatever its size; one of /proc that hardly ends is cut off at 1 GiB', { timeout: 120_000 }, async () => {
  const size = (path) =>
    new Promise((resolve, reject) => {
      const q = http.get(d.url + url(path), { headers: { authorization: `Bearer ${d.key}` } }, (r) => {
        let n = 0;
        r.on('data', (p) => (n += p.length));
        r.on('close', () => resolve([r.statusCode, n, r.complete]));
        r.on('error', () => {});
      });
      q.on('error', reject);
    });
  const GiB = 2 ** 30;
  await sh(`truncate -s ${GiB + 12345} /dev/shm/hole`);
  assert.deepEqual(await size('/dev/shm/hole'), [200, GiB + 12345, true]);
  await sh('rm /dev/shm/hole');
  const { pid } = await d.process(s.id, ['sleep', '1000'], { id: 'mapped' });
  assert.deepEqual(await size(`/proc/${pid}/pagemap`), [200, GiB, false]); // eight bytes for every page that there could be
  await d.post(`/v1/sandboxes/${s.id}/processes/mapped/kill`, { grace_ms: 0 });
});

test('wrong paths, options and users are refused with the status that fits', async () => {
  await put('file', 'x');
  await d.fails(404, 'not_found', 'GET', url('no'));
  await d.fails(400, 'invalid', 'GET', url('file/below'));
  await d.fails(400, 'invalid', 'GET', url('n'.repeat(256)));
  await d.fails(400, 'invalid', 'GET', url('/' + 'n/'.repeat(2100)));
  await d.fails(400, 'invalid', 'GET', `/v1/sandboxes/${s.id}/files?path=a%00b`);
  await d.fails(400, 'invalid', 'GET', `/v1/sandboxes/${s.id}/files`);
  await d.fails(400, 'invalid', 'GET', url('', {}));
  await d.fails(400, 'invalid', 'GET', url('file', { user: 'no-such-user' }));
  await d.fails(400, 'invalid', 'PUT', url('file', { mode: '99' }), Buffer.from('x'));
  await d.fails(400, 'invalid', 'PUT', url('file', { append: 1, atomic: 1 }), Buffer.from('x'));
  await d.fails(404, 'not_found', 'GET', `/v1/sandboxes/none/files?path=x`);
  await d.fails(403, 'denied', 'PUT', url('/etc/new'), Buffer.from('x'));
  await d.fails(403, 'denied', 'PUT', url('/etc/passwd'), Buffer.from('x'));
  await d.fails(403, 'denied', 'PUT', url('/etc/passwd'), Buffer.alloc(100_000));
  await d.fails(403, 'denied', 'GET', url('/etc/shadow'));
  assert.equal((await read('/etc/shadow', {}, { user: 'root' })).status, 200);
});

test('a client that disconnects during an upload leaves no file', async () => {
  await put('kept', 'old');
  await new Promise((resolve, reject) => {
    const r = http.request(d.url + url('kept'), { method: 'PUT', headers: { authorization: `Bearer ${d.key}`, 'content-length': 10 << 20 } });
    r.on('error', resolve);
    r.on('response', reject);
    let sent = 0;
    const more = () => {
      if (sent >= 4 << 20) return r.destroy();
      sent += 65536;
      r.write(Buffer.alloc(65536, 'n'), more);
    };
    more();
  });
  assert.equal((await read('kept')).text, 'old');
  assert.equal(await sh('ls -a /workspace | grep -c "^.cove" || true'), '0\n');
});

test('a file that is cut while it is sent cuts the connection', async () => {
  await sh('truncate -s 64M hole');
  const ended = await new Promise((resolve, reject) => {
    const r = http.get(d.url + url('hole'), { headers: { authorization: `Bearer ${d.key}` } }, (res) => {
      res.once('data', () => {
        res.pause();
        sh('truncate -s 1M hole').then(() => res.resume(), reject);
      });
      res.on('aborted', () => resolve('cut'));
      res.on('error', () => resolve('cut'));
      res.on('end', () => resolve('whole'));
    });
    r.on('error', () => resolve('cut'));
  });
  assert.equal(ended, 'cut');
});

// Ports of a sandbox over HTTP: by host, by headers; streaming, upgrades, and servers
// inside that break the protocol.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { initOf } from '../lib/attack.mjs';
import { poll, run, startDaemon } from '../lib/cove.mjs';
import { answers, rawConnection, rawRequest, rawServer, serveInside } from '../lib/ports.mjs';

let d, box;
before(async () => {
  d = await startDaemon({ args: ['--hosts', 'example.org'] });
  box = await d.sandbox();
});
after(() => d.stop());

const hostOf = (port, id = box.id) => `${port}-${id}.localhost:${d.port}`;

function ask(port, { method = 'GET', path = '/', headers = {}, body, host = hostOf(port) } = {}) {
  return d.call(method, path, body, { key: null, headers: { host, ...headers } });
}

test('a service on 127.0.0.1 inside is reached by host, by headers, and with an id that has a suffix', async () => {
  await serveInside(d, box.id, 8000, rawServer(8000, `
h = read_head(c)
c.sendall(b'HTTP/1.1 200 OK\\r\\nX-Here: yes\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(h) + h)`));
  const a = await ask(8000, { path: '/a/b?q=%20x&y', headers: { 'x-mine': 'v', connection: 'x-gone, close', 'x-gone': '1', te: 'trailers' } });
  assert.equal(a.status, 200);
  assert.equal(a.headers['x-here'], 'yes');
  assert.match(a.text, /^GET \/a\/b\?q=%20x&y HTTP\/1\.1\r\n/);
  assert.match(a.text, new RegExp(`\\r\\nHost: ${hostOf(8000)}\\r\\n`));
  assert.match(a.text, /\r\nx-mine: v\r\n/i);
  assert.match(a.text, /\r\nX-Forwarded-For: 127\.0\.0\.1\r\n/);
  assert.doesNotMatch(a.text, /x-gone|trailers/i, 'what is for this connection only stays here');
  assert.match(a.text, /\r\nConnection: keep-alive\r\n/);
  for (const id of [box.id, `${box.id}-cove`]) {
    const b = await d.call('GET', '/x', undefined, { key: null, headers: { 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': '8000' } });
    assert.equal(b.status, 200, b.text);
    assert.match(b.text, /^GET \/x HTTP/);
  }
  assert.equal((await ask(8000, { host: hostOf(8000, `${box.id}-cove`) })).status, 200);
});

test('a port that headers name does not see the keys that the request has for this server', async () => {
  const mine = { authorization: `Bearer ${d.key}`, 'x-api-key': d.key, 'x-mine': 'v', cookie: 'a=b' };
  const byHeaders = await d.call('GET', '/', undefined, { key: null, headers: { ...mine, 'E2b-Sandbox-Id': box.id, 'E2b-Sandbox-Port': '8000' } });
  assert.equal(byHeaders.status, 200, byHeaders.text);
  assert.doesNotMatch(byHeaders.text, /authorization|x-api-key/i);
  assert.ok(!byHeaders.text.includes(d.key));
  assert.match(byHeaders.text, /x-mine: v/i);
  assert.match(byHeaders.text, /cookie: a=b/i);
  // a host of the sandbox's own is not ours: its visitors have passwords of their own
  assert.match((await ask(8000, { headers: { authorization: 'Basic eDp5' } })).text, /authorization: Basic eDp5/i);
});

test('no page of another site reaches a port or the API by a name of its own', async () => {
  for (const host of ['evil.example', `8000-${box.id}.evil.example`, `sandbox.evil.example`, `localhost.evil.example:${d.port}`, '127.0.0.1.nip.example'])
    for (const path of ['/', '/v1/sandboxes', '/health', '/files']) {
      const a = await d.call('GET', path, undefined, { headers: { host, 'e2b-sandbox-id': box.id, 'e2b-sandbox-port': '8000' } });
      assert.equal(a.status, 403, `${host}${path}`);
      assert.equal(a.json.error.code, 'denied');
      assert.match(a.json.error.message, /is not a name of this server.*setting `hosts`/);
    }
  for (const host of [`8000-${box.id}.example.org`, `8000-${box.id}.localhost`, hostOf(8000)]) assert.equal((await ask(8000, { host })).status, 200, host);
  for (const host of ['127.0.0.1', '[::1]:80', 'localhost', 'example.org', 'api.example.org:80'])
    assert.equal((await d.call('GET', '/health', undefined, { key: null, headers: { host } })).status, 200, host);
});

test('a query is relayed unchanged, also an empty one', async () => {
  for (const path of ['/?', '/a?', '/a??', '/a?b', '/a']) {
    const text = await rawRequest(d, `GET ${path} HTTP/1.1\r\nHost: ${hostOf(8000)}\r\nConnection: close\r\n\r\n`);
    assert.equal(text.split('\r\n\r\n')[1].split(' HTTP')[0], `GET ${path}`);
  }
});

test('a server on ::1 is reached', async () => {
  await serveInside(d, box.id, 8006, rawServer(8006, `read_head(c)\nc.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nv6')`, '::1'));
  assert.equal((await ask(8006)).text, 'v6');
});

test('a host names a sandbox whatever headers say, and headers count only where no page can be', async () => {
  const other = await d.sandbox();
  const named = await ask(8000, { headers: { 'e2b-sandbox-id': other.id, 'e2b-sandbox-port': '1' } });
  assert.equal(named.status, 200, 'the host wins');
  const ignored = await d.call('GET', '/', undefined, { key: null, headers: { host: 'example.org', 'e2b-sandbox-id': box.id, 'e2b-sandbox-port': '8000' } });
  assert.equal(ignored.status, 404);
  assert.equal((await ask(8000, { host: 'sandbox.example.org', headers: { 'e2b-sandbox-id': box.id, 'e2b-sandbox-port': '8000' } })).status, 200);
  await d.del(`/v1/sandboxes/${other.id}`);
});

test('a malformed host, an unknown sandbox and a closed port are JSON errors', async () => {
  const cases = [
    [400, { 'e2b-sandbox-id': box.id }, /missing header E2b-Sandbox-Port/],
    [400, { 'e2b-sandbox-port': '80' }, /missing header E2b-Sandbox-Id/],
    [400, { 'e2b-sandbox-id': box.id, 'e2b-sandbox-port': '0' }, /invalid/],
    [400, { 'e2b-sandbox-id': box.id, 'e2b-sandbox-port': '65536' }, /invalid/],
    [400, { 'e2b-sandbox-id': '../x', 'e2b-sandbox-port': '80' }, /invalid/],
    [502, { 'e2b-sandbox-id': 'nosuch', 'e2b-sandbox-port': '80' }, /^The sandbox was not found$/],
    [502, { 'e2b-sandbox-id': box.id, 'e2b-sandbox-port': '9' }, /^The sandbox is running but port is not open$/],
  ];
  for (const [status, headers, message] of cases) {
    const a = await d.call('GET', '/', undefined, { key: null, headers });
    assert.equal(a.status, status, a.text);
    assert.equal(a.json.code, status);
    assert.match(a.json.message, message);
  }
  const closed = (await ask(9)).json;
  assert.deepEqual(closed, { sandboxId: box.id, message: 'The sandbox is running but port is not open', port: 9, code: 502 });
  assert.deepEqual((await ask(80, { host: hostOf(80, 'nosuch') })).json, { sandboxId: 'nosuch', message: 'The sandbox was not found', code: 502 });
});

test('a port without a listener is refused, also when the kernel chooses it as our source port', async () => {
  const port = 45_678;
  const choose = (range) => run('nsenter', [`--net=/proc/${initOf(d, box.id).pid}/ns/net`, 'sh', '-c', `echo ${range} >/proc/sys/net/ipv4/ip_local_port_range`]);
  const p = await d.process(box.id, ['sleep', '1000']);
  await choose(`${port} ${port}`);
  await d.fails(408, 'timeout', 'POST', `/v1/sandboxes/${box.id}/processes/${p.id}/wait`, { for: 'port', port, timeout_ms: 300 });
  assert.equal((await ask(port)).json.message, 'The sandbox is running but port is not open');
  await choose('32768 60999');
  await serveInside(d, box.id, port, `
import socket
s = socket.socket(); s.bind(('127.0.0.1', ${port})); s.listen(8)
while True:
    c, _ = s.accept()
    if c.recv(65536): c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\nfree')
    c.close()`);
  assert.equal((await ask(port)).text, 'free');
});

test('bodies go in with a length and in chunks, come out the same, and are never held whole', async () => {
  await serveInside(d, box.id, 8001, `
import http.server, hashlib
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_POST(self):
        h, n = hashlib.sha256(), 0
        if self.headers.get('Transfer-Encoding') == 'chunked':
            while True:
                k = int(self.rfile.readline(), 16)
                b = self.rfile.read(k); h.update(b); n += k
                self.rfile.readline()
                if k == 0: break
        else:
            left = int(self.headers['Content-Length'])
            while left:
                b = self.rfile.read(min(left, 65536)); h.update(b); n += len(b); left -= len(b)
        out = ('%d %s' % (n, h.hexdigest())).encode()
        self.send_response(201); self.send_header('Content-Length', str(len(out))); self.end_headers(); self.wfile.write(out)
    def do_GET(self):
        self.send_response(200); self.send_header('Transfer-Encoding', 'chunked'); self.end_headers()
        for i in range(400):
            self.wfile.write(b'10000\\r\\n' + bytes([i % 256]) * 65536 + b'\\r\\n')
        self.wfile.write(b'0\\r\\n\\r\\n')
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('127.0.0.1', 8001), H).serve_forever()`);
  const { createHash } = await import('node:crypto');
  const body = Buffer.alloc(20 << 20, 'x');
  const want = `${body.length} ${createHash('sha256').update(body).digest('hex')}`;
  const sized = await ask(8001, { method: 'POST', body });
  assert.equal(sized.status, 201);
  assert.equal(sized.text, want);
  assert.equal(await chunked(8001, body), want);
  const out = await ask(8001);
  assert.equal(out.bytes.length, 400 * 65536);
  for (let i = 0; i < 400; i++) assert.equal(out.bytes[i * 65536 + 7], i % 256);
});

function chunked(port, body) {
  return new Promise((resolve, reject) => {
    const req = http.request(d.url, { method: 'POST', headers: { host: hostOf(port), 'transfer-encoding': 'chunked' } }, (res) => {
      let text = '';
      res.on('data', (b) => (text += b)).on('end', () => resolve(text));
    });
    req.on('error', reject);
    for (let i = 0; i < body.length; i += 100_000) req.write(body.subarray(i, i + 100_000));
    req.end();
  });
}

test('a stream is passed on as it comes, and a client that reads slowly holds up its server only', async () => {
  await serveInside(d, box.id, 8002, rawServer(8002, `
read_head(c)
c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\n\\r\\n')
c.sendall(b'data: first\\n\\n')
n = 0
c.settimeout(1)
try:
    while n < 400:
        c.sendall(b'x' * 65536)
        n += 1
except OSError: pass
open('/tmp/sent', 'w').write(str(n))`));
  const res = await new Promise((resolve, reject) => http.get(d.url, { headers: { host: hostOf(8002) } }, resolve).on('error', reject));
  const first = await new Promise((resolve) => res.once('data', resolve));
  assert.match(String(first), /^data: first\n\n/);
  res.pause();
  const sent = await poll('the server gives up', async () => (await d.exec(box.id, 'cat /tmp/sent')).stdout, { deadline: 20_000, every: 200 });
  assert.ok(Number(sent) < 400, `${sent} pieces of 64 KiB went out although the server did not read`);
  assert.equal((await ask(8000)).status, 200, 'everybody else is served meanwhile');
  res.destroy();
});

test('a client that leaves is noticed inside', async () => {
  await serveInside(d, box.id, 8003, rawServer(8003, `
read_head(c)
c.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\nhello')
c.recv(1)
open('/tmp/left', 'w').write('yes')`));
  const res = await new Promise((resolve) => http.get(d.url, { headers: { host: hostOf(8003) } }, resolve));
  await new Promise((resolve) => res.once('data', resolve));
  res.destroy();
  await poll('the server sees it', async () => (await d.exec(box.id, 'cat /tmp/left')).stdout === 'yes');
});

test('an upgrade becomes a tunnel, including bytes sent right after the head', async () => {
  await serveInside(d, box.id, 8004, rawServer(8004, `
h = read_head(c)
if b'Upgrade: echo' not in h or b'Connection: Upgrade' not in h:
    c.sendall(b'HTTP/1.1 400 Bad\\r\\nContent-Length: 0\\r\\n\\r\\n')
else:
    c.sendall(b'HTTP/1.1 101 Sure\\r\\nUpgrade: echo\\r\\nConnection: Upgrade\\r\\nX-Key: k\\r\\n\\r\\nearly;')
    while True:
        b = c.recv(65536)
        if not b: break
        c.sendall(b)
    c.sendall(b';bye')`));
  const c = await rawConnection(d, `GET / HTTP/1.1\r\nHost: ${hostOf(8004)}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\n\r\n`);
  await c.until('101', (t) => /early;$/.test(t));
  assert.match(c.text, /^HTTP\/1\.1 101 Switching Protocols\r\n/);
  assert.match(c.text, /\r\nUpgrade: echo\r\n/);
  assert.match(c.text, /\r\nX-Key: k\r\n/);
  c.socket.write('ping');
  await c.until('the echo', (t) => t.endsWith('early;ping'));
  const much = 'z'.repeat(1 << 20);
  c.socket.write(much);
  await c.until('a megabyte', (t) => t.length >= much.length && t.endsWith('zzz'));
  c.socket.end(); // half closed: the server still has a word
  await poll('the end', () => c.ended && c.text.endsWith(';bye'));
  assert.match(await rawRequest(d, `GET / HTTP/1.1\r\nHost: ${hostOf(8004)}\r\nConnection: close\r\nUpgrade: echo\r\n\r\n`), /^HTTP\/1\.1 400/, 'an Upgrade that Connection does not name is none');
});

test('answers of HTTP/1.0, without a length, to HEAD, 204 and 304 are passed on correctly', async () => {
  await serveInside(d, box.id, 8005, rawServer(8005, `
h = read_head(c)
if h.startswith(b'HEAD'): c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 1000\\r\\n\\r\\n')
elif b'/204' in h: c.sendall(b'HTTP/1.1 204 No\\r\\nContent-Length: 5\\r\\n\\r\\nhello')
elif b'/304' in h: c.sendall(b'HTTP/1.1 304 Not\\r\\nETag: "x"\\r\\n\\r\\n')
elif b'/100' in h: c.sendall(b'HTTP/1.1 100 Go\\r\\n\\r\\nHTTP/1.1 103 Early\\r\\nLink: x\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\ndone')
elif b'/hops' in h: c.sendall(b'HTTP/1.1 200 OK\\r\\nConnection: X-One, close\\r\\nX-One: 1\\r\\nX-Two: 2\\r\\nX-Stays: yes\\r\\nConnection: x-two\\r\\nContent-Length: 0\\r\\n\\r\\n')
elif b'/cookies' in h: c.sendall(b'HTTP/1.1 200 OK\\r\\nSet-Cookie: a=1\\r\\nSet-Cookie: b=2\\r\\nContent-Length: 0\\r\\n\\r\\n')
else: c.sendall(b'HTTP/1.0 200 OK\\r\\n\\r\\nold')`));
  assert.equal((await ask(8005)).text, 'old');
  const head = await ask(8005, { method: 'HEAD' });
  assert.equal(head.headers['content-length'], '1000');
  assert.equal((await ask(8005, { path: '/204' })).status, 204);
  assert.equal((await ask(8005, { path: '/304' })).headers.etag, '"x"');
  assert.equal((await ask(8005, { path: '/100' })).text, 'done');
  assert.deepEqual((await ask(8005, { path: '/cookies' })).headers['set-cookie'], ['a=1', 'b=2']);
  const hops = (await ask(8005, { path: '/hops' })).headers;
  assert.deepEqual([hops['x-one'], hops['x-two'], hops['x-stays']], [undefined, undefined, 'yes']);
});

test('a server inside that speaks nonsense is a 502, and never two answers', async () => {
  const bad = {
    'nothing at all': '',
    'no HTTP': 'hello\r\n\r\n',
    'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    'length and chunks': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'another coding': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx',
    'a folded line': 'HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 0\r\n\r\n',
    'a bare line feed': 'HTTP/1.1 200 OK\nContent-Length: 0\n\n',
    'a control character': 'HTTP/1.1 200 OK\r\nA: b\x01\r\nContent-Length: 0\r\n\r\n',
    'a protocol that was not requested': 'HTTP/1.1 101 Sure\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n',
    'a head without end': `HTTP/1.1 200 OK\r\nA: ${'x'.repeat(40_000)}`,
    'too many headers': `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(200)}\r\n`,
    'interim answers for ever': 'HTTP/1.1 102 Wait\r\n\r\n'.repeat(50),
  };
  await serveInside(d, box.id, 8100, answers(8100, Object.values(bad)));
  for (const [i, name] of Object.keys(bad).entries()) {
    const text = await rawRequest(d, `GET /${i} HTTP/1.1\r\nHost: ${hostOf(8100)}\r\nConnection: close\r\n\r\n`);
    assert.match(text, /^HTTP\/1\.1 502 /, name);
    assert.equal(text.match(/HTTP\/1\.1/g).length, 1, name);
  }
});

test('an incomplete answer is cut, and bytes after an answer are dropped', async () => {
  const cut = [
    'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
  ];
  const two = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil';
  await serveInside(d, box.id, 8204, answers(8204, [...cut, two]));
  for (const i of cut.keys()) {
    const text = await rawRequest(d, `GET /${i} HTTP/1.1\r\nHost: ${hostOf(8204)}\r\n\r\n`);
    assert.match(text, /^HTTP\/1\.1 200 /);
    assert.doesNotMatch(text, /\r\n0\r\n\r\n$/, 'it is seen to be incomplete');
  }
  const c = await rawConnection(d, `GET /3 HTTP/1.1\r\nHost: ${hostOf(8204)}\r\n\r\n`);
  await c.until('the answer', (t) => t.endsWith('ok'));
  c.socket.write(`GET / HTTP/1.1\r\nHost: ${hostOf(8000)}\r\nConnection: close\r\n\r\n`);
  await poll('the second answer', () => c.ended);
  assert.doesNotMatch(c.text, /evil/);
  assert.match(c.text, /X-Here: yes/);
});

test('an answer before the end of the body says Connection: close', async () => {
  await serveInside(d, box.id, 8205, rawServer(8205, `read_head(c)\nc.sendall(b'HTTP/1.1 413 No\\r\\nContent-Length: 4\\r\\n\\r\\nmuch')`));
  for (const framing of ['Content-Length: 1000000', 'Transfer-Encoding: chunked']) {
    const c = await rawConnection(d, `POST / HTTP/1.1\r\nHost: ${hostOf(8205)}\r\n${framing}\r\n\r\n`);
    await c.until('the answer', (t) => t.endsWith('much'));
    assert.match(c.text, /^HTTP\/1\.1 413 /);
    assert.match(c.text, /\r\nConnection: close\r\n/);
    c.socket.destroy();
  }
  const none = await rawConnection(d, `POST / HTTP/1.1\r\nHost: ${hostOf(9, 'nosuch')}\r\nTransfer-Encoding: chunked\r\n\r\n`);
  await none.until('the answer', (t) => t.endsWith('}'));
  assert.match(none.text, /^HTTP\/1\.1 502 [^]*\r\nConnection: close\r\n/, 'so is a body that the server does not read');
  none.socket.destroy();
});

test('a sandbox that is deleted takes its connections with it', async () => {
  const mine = await d.sandbox();
  await serveInside(d, mine.id, 8000, rawServer(8000, `read_head(c)\nc.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\nhello')\ntime.sleep(600)`));
  const res = await new Promise((resolve) => http.get(d.url, { headers: { host: hostOf(8000, mine.id) } }, resolve));
  const cut = new Promise((resolve) => res.on('error', resolve).on('close', resolve));
  await new Promise((resolve) => res.once('data', resolve));
  await d.del(`/v1/sandboxes/${mine.id}`);
  await cut;
  assert.equal((await ask(8000, { host: hostOf(8000, mine.id) })).status, 502);
});

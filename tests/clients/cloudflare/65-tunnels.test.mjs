// A URL for a port, by host or path, only for clients with its token.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Cloudflare } from '../../lib/cloudflare.mjs';
import { poll, startDaemon } from '../../lib/cove.mjs';
import { rawConnection } from '../../lib/ports.mjs';

let d;
let b;
let t;

const SERVER = `
import http.server, json
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        body = json.dumps({'path': self.path, 'headers': {k.lower(): v for k, v in self.headers.items()}, 'body': self.rfile.read(int(self.headers.get('content-length') or 0)).decode()}).encode()
        self.send_response(200)
        self.send_header('Set-Cookie', 'theirs=1')
        self.send_header('Content-Security-Policy', 'default-src *')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_GET
    def log_message(self, *a): pass
http.server.ThreadingHTTPServer(('127.0.0.1', 8080), H).serve_forever()
`;

before(async () => {
  d = await startDaemon({ args: ['--cloudflare-idle', '900ms'] });
  b = new Cloudflare(d);
  await b.call('PUT', '/file/workspace/server.py', Buffer.from(SERVER));
  await b.call('POST', '/processes', { argv: ['python3', 'server.py'] });
  const a = await b.call('POST', '/tunnel/8080', { name: 'app' });
  assert.equal(a.status, 200, a.text);
  t = a.json;
  await poll('it listens', async () => (await byHost()).status === 200);
});
after(() => d?.stop());

const byHost = (path = '/', host = new URL(t.url).host, opts = {}) => d.call('GET', path, undefined, { key: '', ...opts, headers: { host, ...opts.headers } });
const rawHead = async (path) => {
  const c = await rawConnection(d, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await c.until('an answer', (text) => /^HTTP\/1.1 \d+/.test(text));
  c.socket.destroy();
  return Number(c.text.slice(9, 12));
};
const byPath = (path = '', opts = {}) => d.call(opts.method ?? 'GET', t.path + path, opts.body, { key: '', ...opts });

test('it says where, and says the same again', async () => {
  assert.deepEqual(Object.keys(t), ['id', 'port', 'url', 'hostname', 'createdAt', 'name', 'path']);
  assert.match(t.url, new RegExp(`^http://8080-[a-z0-9]{20}-[a-z0-9]{16}\\.localhost:${d.port}$`));
  assert.equal(t.hostname, new URL(t.url).hostname);
  assert.deepEqual([t.port, t.name], [8080, 'app']);
  assert.deepEqual((await b.call('POST', '/tunnel/8080', { name: 'app' })).json, t);
  await b.fails(502, 'tunnel_error', 'POST', '/tunnel/8080', { name: 'other' });
  const quick = (await b.call('POST', '/tunnel/9090')).json;
  assert.equal(quick.name, undefined);
  assert.notEqual(quick.url.split('-')[2], t.url.split('-')[2]);
});

test('by host it is the server\'s own site', async () => {
  const a = await byHost('/x?y=1', undefined, { headers: { cookie: 'mine=1' } });
  const seen = JSON.parse(a.text);
  assert.deepEqual([seen.path, seen.headers.cookie], ['/x?y=1', 'mine=1']);
  assert.deepEqual(a.headers['set-cookie'], ['theirs=1']);
});

test('a tunnel by path has its own origin, does not see our keys and sets no cookies', async () => {
  const a = await byPath('deep/x?y=1', { headers: { cookie: 'ours=1', authorization: `Bearer ${d.key}`, 'x-api-key': d.key } });
  assert.equal(a.status, 200, a.text);
  const seen = JSON.parse(a.text);
  assert.equal(seen.path, '/deep/x?y=1');
  assert.deepEqual([seen.headers.cookie, seen.headers.authorization, seen.headers['x-api-key']], [undefined, undefined, undefined]);
  assert.equal(seen.headers['x-forwarded-prefix'], t.path.slice(0, -1));
  assert.equal(a.headers['set-cookie'], undefined);
  assert.equal(a.headers['content-security-policy'], 'sandbox allow-scripts allow-forms allow-popups');
  assert.equal(JSON.parse((await byPath('', { method: 'POST', body: Buffer.from('posted') })).text).body, 'posted');
  assert.equal(JSON.parse((await d.call('GET', t.path.slice(0, -1), undefined, { key: '' })).text).path, '/');
});

test('a tunnel by path drops host-wide headers, and no header replaces our policy', async () => {
  const many = Array.from({ length: 60 }, (_, i) => `x${i}:${'y'.repeat(500)}`);
  const whole = ['Strict-Transport-Security', 'Alt-Svc', 'NEL', 'Report-To', 'Reporting-Endpoints', 'WWW-Authenticate', 'Clear-Site-Data', 'Service-Worker-Allowed', 'Accept-CH', 'set-cookie', 'CONTENT-SECURITY-POLICY'];
  const head = ['HTTP/1.1 200 OK', 'Content-Length:2', ...whole.map((n) => `${n}: theirs`), ...many].join('\r\n');
  const pad = `x:${'z'.repeat(32 * 1024 - head.length - 8)}`;
  const code = `import socket\ns = socket.create_server(('127.0.0.1', 8081))\nwhile True:\n  c = s.accept()[0]\n  c.recv(65536)\n  c.sendall(open('answer', 'rb').read())\n  c.close()`;
  await b.call('PUT', '/file/workspace/answer', Buffer.from(`${head}\r\n${pad}\r\n\r\nhi`));
  await b.call('POST', '/processes', { argv: ['python3', '-c', code] });
  const { path } = (await b.call('POST', '/tunnel/8081')).json;
  const a = await poll('it answers', async () => {
    const r = await d.call('GET', path, undefined, { key: '', maxHeaderSize: 1 << 20 });
    return r.status === 200 && r;
  });
  assert.equal(a.text, 'hi');
  assert.equal(a.headers['content-security-policy'], 'sandbox allow-scripts allow-forms allow-popups');
  for (const name of whole.slice(0, -1)) assert.equal(a.headers[name.toLowerCase()], undefined, name);
});

test('closing a tunnel ends its connections', async () => {
  const code = `import socket\ns = socket.create_server(('127.0.0.1', 8082))\nwhile True:\n  c = s.accept()[0]\n  c.recv(65536)\n  c.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\nand then')\n  globals().setdefault('all', []).append(c)`;
  await b.call('POST', '/processes', { argv: ['python3', '-c', code] });
  const { path } = (await b.call('POST', '/tunnel/8082')).json;
  await poll('it listens', async () => (await rawHead(path)) === 200);
  const c = await rawConnection(d, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await c.until('it answers', (text) => /and then/.test(text));
  assert.equal((await b.call('DELETE', '/tunnel/8082')).status, 204);
  await poll('it ends', () => c.ended);
});

test('a missing or wrong token, or another port, is 404', async () => {
  const [, port, id, token] = /^http:\/\/(\d+)-(\w+)-(\w+)\./.exec(t.url);
  const refused = async (a) => {
    assert.deepEqual([a.status, JSON.parse(a.text).code], [404, 'INVALID_TOKEN'], a.text);
  };
  for (const label of [`${port}-${id}`, `${port}-${id}-`, `${port}-${id}-${'x'.repeat(16)}`, `${port}-${id}-${token}x`, `${port}-${id}-${token.slice(1)}`, `8081-${id}-${token}`, `9090-${id}-${token}`]) {
    await refused(await byHost('/', `${label}.localhost:${d.port}`));
    await refused(await d.call('GET', `/preview/${label}/`, undefined, { key: '' }));
  }
  await refused(await d.call('GET', '/', undefined, { key: '', headers: { 'e2b-sandbox-id': id, 'e2b-sandbox-port': '8080' } }));
  const other = await d.sandbox();
  await refused(await d.call('GET', `/preview/8080-${other.id}-x/`, undefined, { key: '' }));
  assert.equal((await d.call('GET', '/preview/', undefined, { key: '' })).status, 404);
  assert.equal((await d.call('GET', '/preview/x', undefined, { key: '' })).status, 404);
});

test('a visitor wakes it, and an open connection keeps it awake', async () => {
  const { sandboxes } = await d.get('/v1/sandboxes');
  const { id } = sandboxes.find((s) => t.url.includes(s.id));
  await poll('it sleeps', async () => (await d.get(`/v1/sandboxes/${id}`)).state === 'paused');
  assert.equal((await byHost()).status, 200);
});

test('ports that cannot be, and names that cannot be, are refused', async () => {
  const never = new Cloudflare(d);
  for (const port of ['80', '1023', '3000', '65536', 'x', '-1', '8080.5']) {
    await never.fails(400, 'invalid_request', 'POST', `/tunnel/${port}`);
    await never.fails(400, 'invalid_request', 'DELETE', `/tunnel/${port}`);
  }
  for (const name of ['', 'A', 'a.b', '-a', 'a-', 'x'.repeat(64), 5]) await never.fails(400, 'invalid_request', 'POST', '/tunnel/8080', { name });
  assert.equal((await never.call('DELETE', '/tunnel/8080')).status, 204);
  assert.equal(await never.running(), false);
});

test('it outlives front and keeper, and ends with a delete, also of the sandbox', async () => {
  await d.kill9('both');
  await d.restart();
  assert.equal((await byHost()).status, 200);
  assert.equal((await b.call('DELETE', '/tunnel/8080')).status, 204);
  assert.equal((await byHost()).status, 404);
  const anew = (await b.call('POST', '/tunnel/8080')).json;
  assert.notEqual(anew.url, t.url);
  assert.equal((await byHost()).status, 404, 'the old one stays dead');
  await b.delete();
  assert.notEqual((await d.call('GET', '/', undefined, { key: '', headers: { host: new URL(anew.url).host } })).status, 200);
});

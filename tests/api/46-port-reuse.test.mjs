// Connections to servers inside are used again, and never in a way that a client would notice.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';
import { rawServer, serveInside } from '../lib/ports.mjs';

const S = '/v1/sandboxes';
// Each answer says on which connection it came, how many requests that had, and how many there were in all.
const SERVER = rawServer(8000, `
global conns, total
c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1) # sent means: there to be read
with lock:
    conns += 1
    mine = conns
n = 0
while True:
    h = read_head(c)
    if not h: return
    n += 1
    with lock: total += 1
    path = h.split()[1].decode()
    body = ('%d %d %d' % (mine, n, total)).encode()
    if path == '/drop' and n > 1: return
    more = b'Connection: close\\r\\n' if path == '/close' else b''
    c.sendall(b'HTTP/1.1 200 OK\\r\\n' + more + b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)
    if path == '/close' or path == '/leave': return
    if path == '/unasked':
        while not os.path.exists('/tmp/go'): time.sleep(0.01)
        c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\nevil')
        open('/tmp/sent', 'w')
`).replace('def handle(c):', 'lock = threading.Lock(); conns = total = 0\nimport os\ndef handle(c):');

let d, box;
before(async () => {
  d = await startDaemon();
  box = await d.sandbox();
  await serveInside(d, box.id, 8000, SERVER);
});
after(() => d.stop());

async function ask(path = '/', { method = 'GET', body, id = box.id } = {}) {
  const r = await d.call(method, path, body, { key: null, headers: { host: `8000-${id}.localhost:${d.port}` } });
  const [conn, nth, total] = r.text.split(' ').map(Number);
  return { status: r.status, text: r.text, conn, nth, total };
}

test('requests one after another use one connection to the server inside', async () => {
  const first = await ask();
  for (let i = 1; i <= 5; i++) {
    const r = await ask();
    assert.deepEqual([r.conn, r.nth], [first.conn, first.nth + i]);
  }
  const posted = await ask('/', { method: 'POST', body: { a: 1 } });
  assert.equal(posted.conn, first.conn, 'also one with a body, a moment later');
});

test('requests at the same time have a connection each, and get their own answers', async () => {
  const all = await Promise.all(Array.from({ length: 20 }, () => ask()));
  assert.ok(all.every((r) => r.status === 200));
  assert.equal(new Set(all.map((r) => r.total)).size, 20);
});

test('a connection that the server ends, with or without a word, is not used again', async () => {
  for (const path of ['/close', '/leave']) {
    const ended = await ask(path);
    const next = await ask();
    assert.equal(next.status, 200);
    assert.notEqual(next.conn, ended.conn, path);
  }
});

test('a GET on an idle connection that the server drops is repeated on a new one', async () => {
  const one = await ask();
  const r = await ask('/drop'); // dropped where it is not the first request of its connection
  assert.equal(r.status, 200);
  assert.deepEqual([r.nth, r.conn > one.conn], [1, true]);
});

test('a POST is never sent twice', async () => {
  const before = await ask();
  const r = await ask('/drop', { method: 'POST', body: { pay: 1 } });
  assert.equal(r.status, 502);
  assert.equal((await ask()).total, before.total + 2);
});

test('bytes that no request asked for are never the answer of the next request', async () => {
  const hold = await ask('/unasked');
  await d.exec(box.id, 'touch /tmp/go');
  await poll('the bytes were sent', async () => (await d.exec(box.id, 'test -e /tmp/sent')).exit_code === 0);
  for (let i = 0; i < 20; i++) {
    const r = await ask();
    assert.match(r.text, /^\d+ \d+ \d+$/);
    assert.notEqual(r.conn, hold.conn);
  }
});

test('a sandbox that was paused gets no bytes on a connection from before', async () => {
  const before = await ask();
  await d.post(`${S}/${box.id}/pause`);
  await d.post(`${S}/${box.id}/resume`);
  const r = await ask();
  assert.equal(r.status, 200);
  assert.equal(r.nth, 1, `connection ${r.conn}, before ${before.conn}`);
});

test('a deleted sandbox does not live on in an idle connection', async () => {
  const other = await d.sandbox();
  await serveInside(d, other.id, 8000, SERVER);
  assert.equal((await ask('/', { id: other.id })).status, 200);
  await d.del(`${S}/${other.id}`);
  assert.equal((await ask('/', { id: other.id })).status, 502);
});

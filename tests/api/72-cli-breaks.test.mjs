// The command line when its connection to the daemon breaks.
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, test } from 'node:test';
import { finished, poll, startDaemon } from '../lib/cove.mjs';

let d;
let id;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox()).id;
});
after(() => d?.stop());

/** A way to the daemon. `fate` sees the first line of each request; where it returns a function,
 *  that is called when the daemon has answered, and the client never hears the answer. */
async function byWayOf(fate, fn) {
  const way = net.createServer((client) => {
    client.on('error', () => {});
    client.once('data', (head) => {
      const server = net.connect(d.port, '127.0.0.1');
      const cut = fate(head.toString('latin1').split('\r\n')[0], way);
      const end = () => {
        client.destroy();
        server.destroy();
      };
      server.on('error', end);
      server.write(head);
      client.pipe(server);
      if (cut) server.once('data', () => Promise.resolve(cut()).then(end));
      else server.pipe(client);
    });
  });
  await new Promise((resolve) => way.listen(0, '127.0.0.1', resolve));
  const env = { COVE_URL: `http://127.0.0.1:${way.address().port}` };
  try {
    return await fn((args, opts) => d.cli(args, { env, deadline: 60_000, ...opts }));
  } finally {
    way.close();
  }
}

/** The first request that looks like this breaks. */
function first(pattern, cut = () => {}) {
  let done = false;
  return (line, way) => {
    if (done || !pattern.test(line)) return undefined;
    done = true;
    return () => cut(way);
  };
}

/** Each of these breaks, once. */
const each = (...fates) => (line, way) => fates.map((f) => f(line, way)).find(Boolean);

test('a command whose start was not answered is found again when the daemon is back', async () => {
  const daemonGoes = async (way) => {
    const { port } = way.address();
    way.close();
    await d.kill9('both');
    d.restart().then(() => way.listen(port, '127.0.0.1'));
  };
  const r = await byWayOf(first(/^POST \S+\/processes /, daemonGoes), (cove) =>
    cove(['exec', id, 'sh', '-c', 'echo once >> count; cat count; exit 3']));
  assert.deepEqual([r.status, r.stdout, r.stderr], [3, 'once\n', '']);
});

test('the end of stdin is sent again after a break', async () => {
  let told = 0;
  const fate = (line) => {
    if (!/stdin\?close=1 /.test(line)) return undefined;
    if (++told === 1) return () => {};
    d.exec(id, 'touch /tmp/told-again');
    return undefined;
  };
  const r = await byWayOf(fate, (cove) =>
    cove(['exec', id, 'sh', '-c', 'cat; until [ -e /tmp/told-again ]; do sleep 0.01; done']));
  assert.deepEqual([r.status, r.stdout, r.stderr], [0, '', '']);
});

test('stdin that may be lost is reported, also after another break', async () => {
  const r = await byWayOf(each(first(/^POST \S+\/processes /), first(/\/stdin /)), (cove) =>
    cove(['exec', id, 'sh', '-c', 'cat; exec sleep 1000'], { input: 'half' }));
  assert.equal(r.status, 211, r.stderr);
  assert.match(r.stderr, /^cove exec: a part of stdin may be lost: /);
});

test('run deletes its sandbox when the daemon is back', async () => {
  const r = await byWayOf(first(/^DELETE /), (cove) => cove(['run', 'echo', 'ok']));
  assert.deepEqual([r.status, r.stdout, r.stderr], [0, 'ok\n', '']);
});

test('Ctrl-C ends a command that waits for an answer or for its request to be sent', async () => {
  const half = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{';
  const asked = [];
  const stuck = net.createServer((c) => {
    c.on('error', () => {});
    c.once('data', (head) => {
      if (head.includes('/sessions/')) c.pause();
      else c.write(half);
      asked.push(c);
    });
  });
  await new Promise((resolve) => stuck.listen(0, '127.0.0.1', resolve));
  const env = { COVE_URL: `http://127.0.0.1:${stuck.address().port}` };
  try {
    for (const args of [['exec', id, 'true'], ['run', 'true'], ['session', 'exec', '-i', id, 's', 'cat']]) {
      const child = d.cliSpawn(args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
      const end = finished(child, { input: Buffer.alloc(15 << 20), deadline: 30_000 });
      await poll('it asks', () => asked.pop());
      child.kill('SIGINT');
      const r = await end;
      assert.equal(r.status, 211, `${args}: ${r.stderr}`);
      assert.match(r.stderr, /interrupted: the server does not answer/, `${args}`);
    }
  } finally {
    stuck.close();
  }
});

// Shells over a WebSocket, stable and next.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Cloudflare } from '../../lib/cloudflare.mjs';
import { poll, startDaemon } from '../../lib/cove.mjs';
import { Ws } from '../../lib/ws.mjs';

let d;
let b;

before(async () => {
  d = await startDaemon();
  b = new Cloudflare(d);
});
after(() => d?.stop());

const pty = (query = '', opts = {}, box = b) => Ws.connect(d, `/v1/sandbox/${box.id}/pty${query}`, opts);
const refused = async (status, code, promise) => {
  const e = await promise.then(() => assert.fail('it was opened'), (x) => x);
  assert.equal(e.status, status, e.message);
  assert.equal(JSON.parse(e.text).code, code);
};

test('without an upgrade, with bad numbers or ids, it is refused before a sandbox is made', async () => {
  const never = new Cloudflare(d);
  await never.fails(400, 'invalid_request', 'GET', '/pty');
  for (const query of ['?cols=x', '?rows=0', '?cols=1.5', '?cols=1001', '?session=a..b', '?session=a%20b']) await refused(400, 'invalid_request', pty(query, {}, never));
  await refused(400, 'invalid_request', pty('', { headers: { 'session-id': 'no/way' } }, never));
  await refused(401, 'unauthorized', pty('', { key: '' }, never));
  assert.equal(await never.running(), false);
});

test('a terminal says ready, passes bytes both ways, is resized, and says its exit', async () => {
  const ws = await pty('?cols=100&rows=30');
  await ws.says('ready', 30_000);
  ws.send('stty size; id -u; pwd; echo $TERM\r');
  await ws.shows(/30 100\r\n0\r\n\/workspace\r\nxterm/);
  ws.tell({ type: 'resize', cols: 120, rows: 40 });
  ws.send('stty size\r');
  await ws.shows('40 120\r\n');
  ws.send('printf "\\377\\xe2\\x82\\xac"; exit 7\r');
  const exit = await ws.says('exit');
  assert.equal(exit.code, 7);
  assert.ok(ws.bytes.includes(Buffer.from([0xff, 0xe2, 0x82, 0xac])));
  assert.equal((await ws.closed()).code, 1000);
  assert.ok(!ws.texts.some((t) => !['ready', 'exit', 'error'].includes(t.type)), 'clients print what they do not know');
});

test('the key may be a query parameter', async () => {
  const ws = await pty(`?authorization=${encodeURIComponent(`Bearer ${d.key}`)}`, { key: '' });
  await ws.says('ready');
  await ws.close();
  await refused(401, 'unauthorized', pty('?authorization=Bearer%20wrong', { key: '' }));
  assert.equal((await d.call('GET', `/v1/sandbox/${b.id}/running?authorization=${encodeURIComponent(`Bearer ${d.key}`)}`, undefined, { key: '' })).status, 401);
});

test('another shell can be chosen, and a missing one is an error', async () => {
  const ws = await pty('?shell=/bin/sh');
  await ws.says('ready');
  ws.send('echo "$0"\r');
  await ws.shows(/(\n|# )\/bin\/sh\r\n/); // typed before the prompt came, or after
  await ws.close();
  await refused(502, 'exec_transport_error', pty('?shell=/no/such'));
});

test('the terminal of a session is made once, kept and replayed', async () => {
  const first = await pty('?session=work.1');
  await first.says('ready');
  first.send('x=kept; echo first-$((40+2))\r');
  await first.shows('first-42');
  first.cut();
  const again = await pty('', { headers: { 'session-id': 'work.1' } });
  await again.shows('first-42');
  again.send('echo again-$x\r');
  await again.shows('again-kept');
  const both = await pty('?session=work.1');
  again.send('echo for-both-$((1+1))\r');
  await both.shows('for-both-2');
  const all = await Promise.all(Array.from({ length: 10 }, () => pty(`?session=${'s'.repeat(128)}`)));
  await Promise.all(all.map((w) => w.says('ready')));
  assert.equal((await b.call('GET', '/terminals')).json.filter((t) => t.status === 'running' && /^pty-[0-9a-f]{40}$/.test(t.id)).length, 1);
  for (const w of all) w.cut();
});

test('a terminal without a session ends after its connection, with all that it started', async () => {
  const ws = await pty();
  await ws.says('ready');
  ws.send('sleep 4711 & sleep 4712\r');
  await poll('both run', async () => (await b.sh('pgrep -fc "sleep 471[12]$"')).stdout === '2\n');
  ws.cut();
  await poll('nothing of it runs', async () => (await b.sh('pgrep -fc "sleep 471[12]$"')).stdout === '0\n', { deadline: 20_000, every: 200 });
});

test('all output arrives before the exit event', async () => {
  const ws = await pty();
  await ws.says('ready');
  ws.send('seq 200000; exit 3\r');
  await ws.says('exit', 60_000);
  await ws.closed();
  assert.ok(ws.text.includes('\r\n200000\r\n'));
});

// ---- next ----

test('next: reading makes no sandbox', async () => {
  const never = new Cloudflare(d);
  assert.deepEqual((await never.call('GET', '/terminals')).json, []);
  await never.fails(404, 'not_found', 'GET', '/terminals/x');
  await never.fails(404, 'not_found', 'POST', '/terminals/x/interrupt');
  await never.fails(400, 'invalid_request', 'GET', '/terminals/a..b');
  assert.equal(await never.running(), false);
});

test('terminals of the next API are created, connected from a cursor, interrupted and terminated', async () => {
  const a = await b.call('POST', '/terminals', { argv: ['bash', '--norc'], cwd: '/tmp', env: { PS1: 'go> ', A: 'b' }, cols: 90, rows: 20 });
  assert.equal(a.status, 200, a.text);
  assert.deepEqual(Object.keys(a.json), ['id', 'pid', 'command', 'cwd', 'status']);
  assert.deepEqual([a.json.command, a.json.cwd, a.json.status], [['bash', '--norc'], '/tmp', 'running']);
  const at = `/v1/sandbox/${b.id}/terminals/${a.json.id}`;
  const ws = await Ws.connect(d, `${at}/connect`);
  assert.equal(typeof (await ws.says('ready')).cursor, 'string');
  ws.send('echo $A; stty size\r');
  await ws.shows(/b\r\n20 90\r\n/);
  const chunks = ws.texts.filter((t) => t.type === 'chunk');
  assert.equal(chunks.reduce((n, c) => n + c.byteLength, 0), ws.count);
  const { cursor } = chunks.at(-1);
  ws.cut();
  const back = await Ws.connect(d, `${at}/connect?cursor=${cursor}&cols=70&rows=21`);
  await back.says('ready');
  back.send('echo later; stty size; sleep 4713\r');
  await back.shows(/later\r\n21 70\r\n/);
  assert.ok(!back.text.includes('20 90'));
  await poll('it sleeps', async () => (await b.sh('pgrep -fc "sleep 4713$"')).stdout === '1\n');
  assert.equal((await b.call('POST', `/terminals/${a.json.id}/interrupt`)).status, 204);
  back.send('echo after-$?\r');
  await back.shows('after-130');
  assert.equal((await b.call('POST', `/terminals/${a.json.id}/terminate`)).status, 204);
  const exit = await back.says('exit');
  assert.equal(typeof exit.exit.code, 'number');
  const seen = (await b.call('GET', `/terminals/${a.json.id}`)).json;
  assert.equal(seen.status, 'exited');
  assert.equal((await b.call('POST', `/terminals/${a.json.id}/terminate`)).status, 204);
});

test('next: bad words are refused', async () => {
  for (const body of [{}, { argv: [] }, { argv: 'sh' }, { argv: [''] }, { argv: ['sh'], cols: 0 }, { argv: ['sh'], rows: 1.5 }, { argv: ['sh'], env: { A: 1 } }, { argv: ['sh'], cwd: 4 }]) {
    await b.fails(400, 'invalid_request', 'POST', '/terminals', body);
  }
  await b.fails(502, 'exec_transport_error', 'POST', '/terminals', { argv: ['/no/such'] });
  const p = (await b.call('POST', '/processes', { argv: ['sleep', '100'] })).json;
  await b.fails(404, 'not_found', 'GET', `/terminals/${p.id}`);
  await b.fails(404, 'not_found', 'POST', `/terminals/${p.id}/terminate`);
  await b.fails(400, 'invalid_request', 'GET', `/terminals/${p.id}/connect`);
  await refused(404, 'not_found', Ws.connect(d, `/v1/sandbox/${b.id}/terminals/none/connect`));
  await refused(400, 'invalid_request', Ws.connect(d, `/v1/sandbox/${b.id}/terminals/none/connect?cursor=x`));
});

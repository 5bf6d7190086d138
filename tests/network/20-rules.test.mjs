// Allow and deny lists of one sandbox: their meaning, that they change at once and
// completely, keep allowed connections open, and persist.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DB, GATEWAY, HOST_OUT, Internet, METADATA, poll, tries, WEB, WEB2 } from '../lib/internet.mjs';

let net;
let d;
before(async () => {
  net = await new Internet().open();
  d = await net.daemon({ args: ['--allow-ranges', `db=10.1.2.0/24:5432,more=172.16.5.5`] });
});
after(async () => {
  await d?.stop();
  await net?.close();
});

const rule = (id, lists) => d.api('PUT', `/v1/sandboxes/${id}/network`, lists);
const log = async (id, pid) => (await d.get(`/v1/sandboxes/${id}/processes/${pid}/logs?max_bytes=100000`)).chunks.map((c) => c.data).join('');

/** A connection that stays open; every drop() of the world is one more line in its log. */
async function drip(id, to) {
  const p = await d.process(id, ['curl', '-sN', `http://${to}/drip`]);
  await d.post(`/v1/sandboxes/${id}/processes/${p.id}/wait`, { for: 'log', text: 'first', timeout_ms: 5000 });
  return p.id;
}

test('only the denied network is refused', async () => {
  const s = await d.sandbox({ network: { deny: ['25.1.1.11'] } });
  assert.equal(s.network, 'egress');
  assert.deepEqual(await tries(d, s.id, [['tcp', WEB, 80], ['tcp', WEB2, 80], ['udp', WEB2, 9999]]), ['ok', 'ECONNREFUSED', 'timeout']);
});

test('an allow decides before a deny', async () => {
  const s = await d.sandbox({ network: { mode: 'egress', allow: [`${WEB}:80-443`], deny: ['0.0.0.0/0'] } });
  assert.deepEqual(
    await tries(d, s.id, [['tcp', WEB, 80], ['tcp', WEB, 443], ['tcp', WEB, 8080], ['tcp', WEB2, 80], ['tcp', GATEWAY, 53], ['udp', WEB, 9999]]),
    ['ok', 'ok', 'ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED', 'timeout']);
  await rule(s.id, { allow: [WEB, GATEWAY], deny: ['0.0.0.0/0'] });
  const r = await d.exec(s.id, 'curl -s -m 5 http://www.example.test/ -o /dev/null -w %{http_code}');
  assert.equal(r.stdout, '200');
});

test('rules are shown as they were given', async () => {
  const lists = { allow: ['25.1.1.0/24:80', '25.1.1.7'], deny: ['0.0.0.0/0', '25.2.2.0/24:1-1024'] };
  const s = await d.sandbox({ network: lists });
  const n = await d.get(`/v1/sandboxes/${s.id}/network`);
  assert.deepEqual({ allow: n.allow, deny: n.deny }, lists);
  const shown = await d.cli(['network', s.id]);
  assert.equal(shown.stdout.split('\n').slice(2).join('\n'), 'allow    25.1.1.0/24:80\nallow    25.1.1.7\ndeny     0.0.0.0/0\ndeny     25.2.2.0/24:1-1024\n');
  const changed = await d.cli(['network', '--deny', '25.1.1.9', '--json', s.id]);
  assert.deepEqual(JSON.parse(changed.stdout).deny, ['25.1.1.9']);
  assert.deepEqual(JSON.parse((await d.cli(['network', '--open', '--json', s.id])).stdout).deny, []);
  const c = await d.cli(['create', '--network', 'egress', '--allow', WEB, '--deny', '0.0.0.0/0']);
  assert.equal(c.status, 0, c.stderr);
  assert.deepEqual((await d.get(`/v1/sandboxes/${c.stdout.trim()}/network`)).allow, [WEB]);
});

test('an invalid rule is refused and the rules stay', async () => {
  const s = await d.sandbox({ network: { deny: [WEB2] } });
  for (const bad of ['', 'example.com', '1.2.3', '1.2.3.4/33', '1.2.3.4/8', '01.2.3.4', '1.2.3.4:0', '1.2.3.4:9-8', '1.2.3.4:70000', '1.2.3.4 ', '::1', '1.2.3.4; flush ruleset', '1.2.3.4:80 accept']) {
    await d.fails(400, 'invalid', 'PUT', `/v1/sandboxes/${s.id}/network`, { allow: [bad] });
    await d.fails(400, 'invalid', 'POST', '/v1/sandboxes', { network: { deny: [bad] } });
  }
  await d.fails(400, 'invalid', 'PUT', `/v1/sandboxes/${s.id}/network`, { mode: 'none' });
  await d.fails(400, 'invalid', 'PUT', `/v1/sandboxes/${s.id}/network`, { allow: Array(200).fill('1.2.3.4'), deny: Array(100).fill('1.2.3.4') });
  await d.fails(400, 'invalid', 'POST', '/v1/sandboxes', { network: { mode: 'none', deny: ['1.2.3.4'] } });
  await d.fails(404, 'not_found', 'PUT', '/v1/sandboxes/nosuch/network', {});
  assert.deepEqual((await d.get(`/v1/sandboxes/${s.id}/network`)).deny, [WEB2]);
  assert.deepEqual(await tries(d, s.id, [['tcp', WEB, 80], ['tcp', WEB2, 80]]), ['ok', 'ECONNREFUSED']);
});

test('as many rules as are allowed work', async () => {
  const deny = Array.from({ length: 255 }, (_, i) => `198.51.${i}.0/24:${i + 1}-${i + 2}`);
  const s = await d.sandbox({ network: { allow: [WEB], deny } });
  assert.deepEqual(await tries(d, s.id, [['tcp', WEB, 80], ['tcp', WEB2, 80]]), ['ok', 'ok']);
});

test('a tenant cannot allow ranges that the operator refuses', async () => {
  const s = await d.sandbox({ network: { allow: ['0.0.0.0/0', METADATA, '10.0.0.0/8', DB] } });
  assert.deepEqual(await tries(d, s.id, [['tcp', METADATA, 80], ['tcp', DB, 80], ['tcp', '192.168.77.7', 80]]), Array(3).fill('ECONNREFUSED'));
});

test('the ranges that the operator opened are open, and can be denied', async () => {
  const s = await d.sandbox();
  const to = [['tcp', DB, 5432], ['tcp', DB, 80], ['tcp', '172.16.5.5', 80], ['tcp', '172.16.5.6', 80]];
  assert.deepEqual(await tries(d, s.id, to), ['ok', 'ECONNREFUSED', 'ok', 'ECONNREFUSED']);
  await rule(s.id, { deny: ['10.0.0.0/8'] });
  assert.deepEqual(await tries(d, s.id, to), ['ECONNREFUSED', 'ECONNREFUSED', 'ok', 'ECONNREFUSED']);
});

test('a rule change ends denied connections and keeps allowed ones', async () => {
  const { id } = await d.sandbox();
  const [stays, ends] = [await drip(id, WEB), await drip(id, WEB2)];
  await rule(id, { allow: [WEB], deny: ['0.0.0.0/0'] });
  await net.drop();
  const gone = await d.post(`/v1/sandboxes/${id}/processes/${ends}/wait`, { timeout_ms: 10_000 });
  assert.notEqual(gone.exit_code, 0);
  await poll('the other goes on', async () => (await log(id, stays)) === 'first\nnext\n');
  for (let i = 0; i < 10; i++) await rule(id, i % 2 ? { deny: [WEB2] } : { allow: [WEB], deny: ['0.0.0.0/0'] });
  await net.drop();
  await poll('and on', async () => (await log(id, stays)) === 'first\nnext\nnext\n');
});

test('packets from a denied peer are dropped', async () => {
  const { id } = await d.sandbox();
  const p = await d.process(id, ['python3', '-c', `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', 40001)); s.setblocking(False)
s.sendto(b'hello', ('${WEB}', 7778)); print('said', flush=True); input()
# an answer that came the same way, later
e = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); e.sendto(b'echo', ('${WEB2}', 9999)); e.recv(100)
try: print('heard', s.recv(100))
except BlockingIOError: print('heard nothing')`], { stdin: true });
  const P = `/v1/sandboxes/${id}/processes/${p.id}`;
  await d.post(`${P}/wait`, { for: 'log', text: 'said', timeout_ms: 10_000 });
  await rule(id, { deny: [`${WEB}:7000-8000`] });
  await net.sh(net.world, 'python3', '-c', `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('${WEB}', 7778))
s.sendto(b'still there?', ('${HOST_OUT}', 40001))`);
  await d.call('POST', `${P}/stdin`, '\n');
  await d.post(`${P}/wait`, { timeout_ms: 10_000 });
  assert.equal(await log(id, p.id), 'said\nheard nothing\n');
});

test('rules change whole: no packet slips through between two lists', async () => {
  const { id } = await d.sandbox({ network: { deny: [WEB2] } });
  const p = await d.process(id, ['python3', '-c', `
import socket, time
open_ = 0
end = time.time() + 3
while time.time() < end:
    try: socket.create_connection(('${WEB2}', 80), 1).close(); open_ += 1
    except OSError: pass
print('reached', open_)`]);
  for (let i = 0; i < 40; i++) await rule(id, { allow: [`25.1.1.${20 + i}`], deny: i % 2 ? [WEB2] : ['25.1.1.11:80', '25.2.2.77'] });
  await d.post(`/v1/sandboxes/${id}/processes/${p.id}/wait`, { timeout_ms: 10_000 });
  assert.equal(await log(id, p.id), 'reached 0\n');
});

test('rules are there after stop and resume, also those set in between', async () => {
  const { id } = await d.sandbox({ network: { deny: [WEB2] }, timeout_ms: 300, on_timeout: 'stop' });
  await poll('it is stopped', async () => (await d.get(`/v1/sandboxes/${id}`)).state === 'stopped');
  assert.equal((await d.get(`/v1/sandboxes/${id}/network`)).address, null);
  await rule(id, { deny: [WEB2, `${WEB}:443`] });
  await poll('it can be resumed', async () => (await d.call('POST', `/v1/sandboxes/${id}/resume`, { timeout_ms: 0 })).status === 200);
  assert.deepEqual(await tries(d, id, [['tcp', WEB, 80], ['tcp', WEB, 443], ['tcp', WEB2, 80]]), ['ok', 'ECONNREFUSED', 'ECONNREFUSED']);
});

test('rules and connections outlive the daemon', async () => {
  const { id } = await d.sandbox({ network: { deny: [WEB2] } });
  const stays = await drip(id, WEB);
  await d.kill9('both');
  await net.drop();
  await d.restart();
  assert.deepEqual((await d.get(`/v1/sandboxes/${id}/network`)).deny, [WEB2]);
  assert.deepEqual(await tries(d, id, [['tcp', WEB, 80], ['tcp', WEB2, 80]]), ['ok', 'ECONNREFUSED']);
  await net.drop();
  await poll('the connection goes on', async () => (await log(id, stays)) === 'first\nnext\nnext\n');
  await d.kill9('front');
  await d.back();
  assert.deepEqual(await tries(d, id, [['tcp', WEB, 80], ['tcp', WEB2, 80]]), ['ok', 'ECONNREFUSED']);
});

test('rules are restored after the firewall is flushed', async () => {
  const { id } = await d.sandbox({ network: { deny: [WEB2] } });
  const to = [['tcp', WEB, 80], ['tcp', WEB2, 80], ['tcp', METADATA, 80]];
  await net.sh(net.host, 'nft', 'flush', 'ruleset');
  await poll('the table is back', async () => /jump sandbox_/.test(await net.sh(net.host, 'nft', 'list', 'ruleset')));
  assert.deepEqual(await tries(d, id, to), ['ok', 'ECONNREFUSED', 'ECONNREFUSED']);
  assert.match(d.log, /the firewall table of Cove was removed/);
  // also for those that an earlier daemon made
  await d.kill9('both');
  await net.sh(net.host, 'nft', 'flush', 'ruleset');
  await d.restart();
  assert.deepEqual(await tries(d, id, to), ['ok', 'ECONNREFUSED', 'ECONNREFUSED']);
});

test('rules set while the firewall is flushed take effect', async () => {
  const { id } = await d.sandbox({ network: { deny: [WEB2] } });
  process.kill(d.keeperPid(), 'SIGSTOP'); // who then hears of both at once, and of the rules first
  const given = d.call('PUT', `/v1/sandboxes/${id}/network`, { deny: [WEB] });
  await d.get('/v1/sandboxes?limit=1');
  await net.sh(net.host, 'nft', 'flush', 'ruleset');
  process.kill(d.keeperPid(), 'SIGCONT');
  assert.equal((await given).status, 200);
  await poll('the table is back', async () => /jump sandbox_/.test(await net.sh(net.host, 'nft', 'list', 'ruleset')));
  assert.deepEqual((await d.get(`/v1/sandboxes/${id}/network`)).deny, [WEB]);
  assert.deepEqual(await tries(d, id, [['tcp', WEB, 80], ['tcp', WEB2, 80]]), ['ECONNREFUSED', 'ok']);
});

test('a deleted sandbox leaves no firewall rules', async () => {
  for (const s of (await d.get('/v1/sandboxes?limit=100')).sandboxes) await d.del(`/v1/sandboxes/${s.id}`);
  await poll('its chain is gone', async () => !/chain sandbox_/.test(await net.sh(net.host, 'nft', 'list', 'ruleset')));
  assert.doesNotMatch(await net.sh(net.host, 'nft', 'list', 'ruleset'), /jump sandbox_/);
});

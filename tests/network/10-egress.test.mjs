// A sandbox with egress reaches the internet by address and by name, and peers
// see only the host's address. When the daemon ends, the host's network is restored.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BASE, BIN, run, startDaemon } from '../lib/cove.mjs';
import { cgroupsNamed, statusOf } from '../lib/host.mjs';
import { GATEWAY, HOST_OUT, Internet, poll, tries, WEB } from '../lib/internet.mjs';

let net;
let clean;
let d;
let id;
before(async () => {
  net = await new Internet().open();
  clean = await net.traces();
  d = await net.daemon();
  id = (await d.sandbox()).id;
});
after(async () => {
  await d?.stop();
  await net?.close();
});

/** What a daemon says that does not start. */
async function refusal(args) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-test-'));
  const [file, ...all] = net.in(net.host, BIN, 'serve', '--state', dir, '--base', BASE, '--listen', '127.0.0.1:0', ...args);
  const r = await run(file, all);
  assert.deepEqual(cgroupsNamed(`cove-${fs.readFileSync(path.join(dir, 'tag'), 'utf8')}`), []);
  fs.rmSync(dir, { recursive: true, force: true });
  assert.notEqual(r.status, 0, args.join(' '));
  return r.stderr;
}

/** The file where daemons of this host write which interfaces they turned on. */
async function ledger() {
  return `/run/cove/net-${(await net.sh(net.host, 'stat', '-Lc', '%i', '/proc/self/ns/net')).trim()}`;
}

test('egress is the default and shown in the sandbox', async () => {
  const s = await d.get(`/v1/sandboxes/${id}`);
  assert.equal(s.network, 'egress');
  const n = await d.get(`/v1/sandboxes/${id}/network`);
  assert.deepEqual({ ...n, address: undefined }, { mode: 'egress', address: undefined, allow: [], deny: [] });
  assert.match(n.address, /^10\.200\.\d+\.\d+$/);
});

test('a server of the internet is reached by address, and sees the host', async () => {
  const r = await d.exec(id, `curl -s -m 5 http://${WEB}/`);
  assert.deepEqual(JSON.parse(r.stdout), { local: WEB, remote: HOST_OUT });
});

test('a server is reached by name', async () => {
  const r = await d.exec(id, 'curl -s -m 5 http://www.example.test:8080/');
  assert.equal(JSON.parse(r.stdout).local, WEB);
});

test('names are answered over UDP and TCP, by either of our addresses', async () => {
  for (const server of [GATEWAY, '169.254.1.2']) assert.deepEqual(await tries(d, id, [['tcp', server, 53]]), ['ok']);
  const r = await d.exec(id, ['python3', '-c', `
import socket, struct
q = struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + b'\\x01a\\x04test\\x00' + struct.pack('>HH', 1, 1)
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(3); u.sendto(q, ('169.254.1.2', 53)); print(u.recv(512)[-4:].hex())
t = socket.create_connection(('${GATEWAY}', 53), 3); t.sendall(struct.pack('>H', len(q)) + q); print(t.recv(512)[-4:].hex())`]);
  assert.equal(r.stdout, '1901010a\n1901010a\n', r.stderr);
  const who = new Set((await net.seen()).filter((s) => s.proto.startsWith('dns')).map((s) => s.remote));
  assert.deepEqual([...who], [HOST_OUT]);
});

test('UDP and ping work', async () => {
  assert.deepEqual(await tries(d, id, [['udp', WEB, 9999]]), ['ok']);
  const r = await d.exec(id, ['python3', '-c', `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); s.settimeout(3)
s.sendto(b'\\x08\\x00\\xf7\\xfe\\x00\\x01\\x00\\x00', ('${WEB}', 0)); print(s.recv(100)[20])`], { user: 'root' });
  assert.equal(r.stdout, '0\n', r.stderr);
});

test('much data arrives whole', async () => {
  const r = await d.exec(id, `curl -s -m 20 http://${WEB}/bytes | sha256sum`);
  assert.equal(r.stdout.slice(0, 64), createHash('sha256').update(Buffer.alloc(32 << 20, 'cove')).digest('hex'));
});

test('a sandbox without a network has a loopback only', async () => {
  for (const network of ['none', { mode: 'none' }]) {
    const s = await d.sandbox({ network });
    assert.equal(s.network, 'none');
    const r = await d.exec(s.id, `cat /proc/net/dev | tail -n +3 | cut -d: -f1; curl -s -m 2 http://${WEB}/; echo $?`);
    assert.match(r.stdout, /^ *lo\n7\n$/);
    assert.equal((await d.get(`/v1/sandboxes/${s.id}/network`)).address, null);
    await d.fails(409, 'conflict', 'PUT', `/v1/sandboxes/${s.id}/network`, { deny: ['0.0.0.0/0'] });
    await d.del(`/v1/sandboxes/${s.id}`);
  }
});

test('network traffic is counted', async () => {
  const values = async () => Object.fromEntries([...(await d.call('GET', '/metrics')).text.matchAll(new RegExp(`^cove_sandbox_network_(\\w+)_total\\{sandbox="${id}"\\} (\\d+)$`, 'gm'))].map((m) => [m[1], Number(m[2])]));
  const was = await values();
  assert.deepEqual(Object.keys(was).sort(), ['in_bytes', 'in_packets', 'out_bytes', 'out_packets']);
  await d.exec(id, `head -c 300000 /dev/zero | curl -s -m 5 --data-binary @- http://${WEB}/ -o /dev/null`);
  const is = await values();
  assert.ok(is.out_bytes - was.out_bytes > 300_000 && is.out_bytes - was.out_bytes < 400_000, JSON.stringify([was, is]));
  assert.ok(is.in_packets > was.in_packets && is.in_bytes > was.in_bytes);
});

test('a delete takes seconds, also with unacknowledged data to a silent peer', async () => {
  const s = await d.sandbox();
  const { address } = await d.get(`/v1/sandboxes/${s.id}/network`);
  const route = () => net.sh(net.host, 'ip', 'route', 'show', address);
  assert.match(await route(), /dev cv/);
  const p = await d.process(s.id, ['python3', '-c', `
import socket
s = socket.create_connection(('${WEB}', 443)); print('connected', flush=True); input()
s.sendall(b'x' * 10000); print('sent', flush=True); input()`], { stdin: true });
  const P = `/v1/sandboxes/${s.id}/processes/${p.id}`;
  await d.post(`${P}/wait`, { for: 'log', text: 'connected', timeout_ms: 10_000 });
  await net.sh(net.world, 'nft', 'add table inet silence; add chain inet silence heard { type filter hook prerouting priority -400; }; add rule inet silence heard tcp dport 443 drop');
  await d.call('POST', `${P}/stdin`, '\n');
  await d.post(`${P}/wait`, { for: 'log', text: 'sent', timeout_ms: 10_000 });
  await d.del(`/v1/sandboxes/${s.id}`);
  await poll('its interface is gone, and the route with it', async () => (await route()) === '');
  await net.sh(net.world, 'nft', 'delete table inet silence');
});

test('settings that cannot work are refused with the reason', async () => {
  for (const [args, why] of [
    [['--network', 'maybe'], /not auto, egress or none/],
    [['--subnet', '10.200.0.0/24'], /not a network of \/20 or larger/],
    [['--subnet', '192.168.48.0/20'], /overlaps a route of this host/],
    [['--resolvers', '127.0.0.53'], /not an IPv4 address that sandboxes can reach/],
    [['--allow-ranges', '10.0.0.0/8'], /not NAME=CIDR/],
    [['--allow-ranges', 'a=10.0.0.1/8'], /not NAME=CIDR/],
  ]) {
    assert.match(await refusal(args), why);
  }
});

test('a server that gives no egress says why, and gives none', async () => {
  const plain = await startDaemon({ args: ['--network', 'none', '--pool', '0'] });
  try {
    assert.equal((await plain.sandbox()).network, 'none');
    const e = await plain.fails(501, 'unsupported', 'POST', '/v1/sandboxes', { network: 'egress' });
    assert.match(e.message, /network = none/);
    const NET_ADMIN = 1n << 12n;
    const NET_RAW = 1n << 13n;
    assert.equal(BigInt(`0x${statusOf(plain.keeperPid()).CapPrm}`) & (NET_ADMIN | NET_RAW), 0n, 'and has no power over networks');
    assert.notEqual(BigInt(`0x${statusOf(d.keeperPid()).CapPrm}`) & NET_ADMIN, 0n);
  } finally {
    await plain.stop();
  }
});

test('the host\'s network settings are restored by stop --all', async () => {
  const during = await net.traces();
  assert.notDeepEqual(during.ruleset, clean.ruleset);
  assert.ok(during.links.some((l) => l.startsWith('cv')));
  await d.stop();
  d = undefined;
  const left = await net.traces();
  for (const what of Object.keys(clean)) assert.deepEqual(left[what], clean[what], what);
});

test('two daemons share a host, and the last to leave puts it back', async () => {
  const a = await net.daemon({ args: ['--pool', '0'] });
  const b = await net.daemon({ args: ['--pool', '0'] });
  const [one, two] = [await a.sandbox(), await b.sandbox()];
  await a.stop();
  const r = await b.exec(two.id, `curl -s -m 5 http://${WEB}/`);
  assert.equal(JSON.parse(r.stdout).remote, HOST_OUT);
  assert.notEqual(one.id, two.id);
  await b.stop();
  const left = await net.traces();
  for (const what of Object.keys(clean)) assert.deepEqual(left[what], clean[what], what);
});

test('settings left by a killed daemon are restored', async () => {
  const a = await net.daemon();
  await a.sandbox({ network: { deny: ['0.0.0.0/0'] } });
  await a.kill9('both');
  const during = await net.traces();
  assert.ok(during.links.some((l) => l.startsWith('cv')));
  assert.match(JSON.stringify(during.ruleset), /sandbox_/);
  await a.stop();
  const left = await net.traces();
  for (const what of Object.keys(clean)) assert.deepEqual(left[what], clean[what], what);
});

test('a daemon that gives no network any more keeps the walls of the sandboxes that have one', async () => {
  const a = await net.daemon({ args: ['--pool', '0'] });
  const s = await a.sandbox({ network: { deny: ['25.1.1.11'] } });
  await a.end();
  a.args = ['--network', 'none', '--pool', '0'];
  await a.restart();
  assert.equal((await a.sandbox()).network, 'none');
  assert.deepEqual(await tries(a, s.id, [['tcp', WEB, 80], ['tcp', '25.1.1.11', 80], ['tcp', '10.0.0.53', 80]]), ['ok', 'ECONNREFUSED', 'ECONNREFUSED']);
  await a.del(`/v1/sandboxes/${s.id}`);
  await poll('its rules are gone', async () => !/sandbox_/.test(JSON.stringify((await net.traces()).ruleset)));
  await a.stop();
  const left = await net.traces();
  for (const what of Object.keys(clean)) assert.deepEqual(left[what], clean[what], what);
});

test('without a way out, auto gives none and egress does not start', async () => {
  await net.sh(net.host, 'ip', 'route', 'del', 'default');
  const c = await net.daemon({ args: ['--network', 'auto', '--pool', '0'] });
  assert.match(c.log, /sandboxes get `none`: the host has no default route/);
  assert.equal((await c.sandbox()).network, 'none');
  assert.match((await c.fails(501, 'unsupported', 'POST', '/v1/sandboxes', { network: 'egress' })).message, /no default route/);
  await c.stop();
  assert.match(await refusal(['--network', 'egress']), /no default route/);
});

test('a daemon that cannot start leaves nothing on the host', async () => {
  await net.sh(net.host, 'ip', 'route', 'add', 'default', 'via', '25.2.2.1');
  const before = await net.traces();
  assert.match(await refusal(['--network', 'egress', '--pip-index', 'ftp://x']), /is not an http/);
  assert.deepEqual(await net.traces(), before);
  assert.equal(fs.existsSync(await ledger()), false);
});

test('a file of a network namespace that is gone does not keep forwarding on', async () => {
  const file = await ledger();
  fs.writeFileSync(file, 'ns 1\nif out0\ntag gone0000\n');
  const before = await net.traces();
  const a = await net.daemon({ args: ['--pool', '0'] });
  await a.stop();
  assert.deepEqual(await net.traces(), before);
  assert.equal(fs.existsSync(file), false);
});

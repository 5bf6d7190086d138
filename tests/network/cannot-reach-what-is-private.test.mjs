// A tenant reaches no private address, no metadata, no port of the gateway but DNS,
// no broadcast address, no other sandbox, and no address of the host. Each of them
// answers the host itself, which is checked first. A tenant cannot be reached from outside.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { run } from '../lib/cove.mjs';
import { GATEWAY, HOST_LAN, HOST_OUT, Internet, poll, PRIVATE, tries, WEB } from '../lib/internet.mjs';

const PORTS = [22, 53, 80, 443, 5432, 8080];
const NO = ['ECONNREFUSED', 'timeout', 'EHOSTUNREACH', 'ENETUNREACH', 'EACCES', 'EINVAL'];
let net;
let d;
let other; // another daemon on the same host
let a;
let b;
let c;
before(async () => {
  net = await new Internet().open();
  d = await net.daemon();
  other = await net.daemon({ args: ['--pool', '0'] });
  [a, b, c] = [await d.sandbox(), await d.sandbox(), await other.sandbox()];
  for (const [daemon, s] of [[d, b], [other, c]]) {
    const p = await daemon.process(s.id, ['python3', '-m', 'http.server', '8080']);
    await daemon.post(`/v1/sandboxes/${s.id}/processes/${p.id}/wait`, { for: 'port', port: 8080, timeout_ms: 10_000 });
    s.address = (await daemon.get(`/v1/sandboxes/${s.id}/network`)).address;
  }
});
after(async () => {
  await other?.stop();
  await d?.stop();
  await net?.close();
});

const refusedAll = (got) => assert.deepEqual([...new Set(got)].filter((r) => !NO.includes(r)), []);

test('the host itself reaches all of them', async () => {
  for (const to of [...PRIVATE, HOST_OUT, HOST_LAN]) assert.match(await net.sh(net.host, 'curl', '-s', '-m', '3', `http://${to}/`), /"remote"/);
});

test('private and special ranges are not reached, on any port', async () => {
  refusedAll(await tries(d, a.id, PRIVATE.flatMap((to) => PORTS.map((port) => ['tcp', to, port]))));
  refusedAll(await tries(d, a.id, PRIVATE.flatMap((to) => [['udp', to, 53], ['udp', to, 9999]])));
});

test('a network that the host joins later is not reached either, and one that it leaves is reached again', async () => {
  const NEW = '25.7.7.2';
  const one = async () => (await tries(d, a.id, [['tcp', NEW, 80]]))[0];
  await net.sh(net.world, 'ip', 'addr', 'add', `${NEW}/32`, 'dev', 'lo');
  assert.equal(await one(), 'ok');
  await net.sh(net.host, 'ip', 'addr', 'add', '25.7.7.1/24', 'dev', 'lan0');
  await poll('it is refused', async () => NO.includes(await one()));
  await net.sh(net.host, 'ip', 'addr', 'del', '25.7.7.1/24', 'dev', 'lan0');
  await poll('it is reached', async () => (await one()) === 'ok');
});

test('the resolver that answers our names is not reached directly', async () => {
  refusedAll(await tries(d, a.id, [['udp', '10.0.0.53', 53], ['tcp', '10.0.0.53', 53]]));
  assert.deepEqual(await tries(d, a.id, [['tcp', GATEWAY, 53]]), ['ok']);
});

test('the gateway has no port but DNS', async () => {
  refusedAll(await tries(d, a.id, [1, 22, 80, 443, 5353, 7878, d.port, other.port].flatMap((port) => [['tcp', GATEWAY, port], ['udp', GATEWAY, port]])));
  refusedAll(await tries(d, a.id, [['tcp', '169.254.1.3', 53], ['udp', '169.254.1.0', 53]]));
});

test('the host is not reached by any of its addresses', async () => {
  const was = (await net.seen('host')).length;
  refusedAll(await tries(d, a.id, [HOST_OUT, HOST_LAN, '127.0.0.1', '0.0.0.0'].flatMap((to) => [...PORTS, d.port].map((port) => ['tcp', to, port]))));
  refusedAll(await tries(d, a.id, [HOST_OUT, HOST_LAN].flatMap((to) => [53, 9999].map((port) => ['udp', to, port]))));
  assert.deepEqual((await net.seen('host')).slice(was), []);
});

test('no error shows an address of the host: not of a packet whose hops are used up, nor of one without a route', async () => {
  const NOWHERE = '25.8.8.8';
  await net.sh(net.host, 'ip', 'route', 'add', 'unreachable', `${NOWHERE}/32`);
  const r = await d.exec(a.id, ['python3', '-c', `
import socket, select, struct
for to, ttl in [('${WEB}', 1), ('${WEB}', 64), ('${NOWHERE}', 64)]:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, 11, 1)  # IP_RECVERR
    s.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
    for i in range(5):  # port 1: the world answers that nothing is there
        try: s.sendto(b'x', (to, 1))
        except OSError: pass
    p = select.poll(); p.register(s, select.POLLERR)
    if not p.poll(1500): print(to, ttl, 'nothing'); continue
    for kind, level, data in [c for c in s.recvmsg(1, 512, 0x2000)[1]]:  # MSG_ERRQUEUE
        print(to, ttl, 'from', socket.inet_ntoa(data[20:24]))
`]);
  await net.sh(net.host, 'ip', 'route', 'del', 'unreachable', `${NOWHERE}/32`);
  assert.deepEqual(r.stdout.trim().split('\n'), [`${WEB} 1 nothing`, `${WEB} 64 from ${WEB}`, `${NOWHERE} 64 nothing`], r.stderr);
});

test('broadcast and multicast packets do not leave the sandbox', async () => {
  const r = await d.exec(a.id, ['python3', '-c', `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'eth0')
sent = 0
for to in ['224.0.0.251', '224.0.0.1', '239.1.2.3', '255.255.255.255', '25.2.2.255', '192.168.50.255', '240.0.0.1']:
    for port in [5353, 9999, 53]:
        try: s.sendto(b'everybody', (to, port)); sent += 1
        except OSError: pass
print(sent)`], { user: 'root' });
  assert.ok(Number(r.stdout) >= 15, r.stderr);
  assert.deepEqual(await tries(d, a.id, [['udp', WEB, 9999]]), ['ok']); // whatever was sent before has arrived by now
  for (const who of ['world', 'host']) assert.deepEqual((await net.seen(who)).filter((s) => s.text === 'everybody'), [], who);
});

test('another sandbox is not reached, of this daemon or another', async () => {
  for (const s of [b, c]) {
    assert.equal((await (s === b ? d : other).exec(s.id, 'curl -s -m 2 -o /dev/null -w %{http_code} http://127.0.0.1:8080/')).stdout, '200');
    refusedAll(await tries(d, a.id, [['tcp', s.address, 8080], ['udp', s.address, 8080], ['tcp', s.address, 80]]));
  }
});

test('a sandbox cannot be reached from outside or from the host', async () => {
  for (const ns of [net.world, net.host]) {
    const [file, ...args] = net.in(ns, 'curl', '-s', '-m', '2', `http://${b.address}:8080/`);
    assert.notEqual((await run(file, args)).status, 0, ns);
  }
});

test('an unsolicited datagram is dropped', async () => {
  const p = await d.process(b.id, ['python3', '-c', `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', 7777)); s.settimeout(1.5); print('bound', flush=True)
try: print('got', s.recv(100))
except socket.timeout: print('nothing')`]);
  const P = `/v1/sandboxes/${b.id}/processes/${p.id}`;
  await d.post(`${P}/wait`, { for: 'log', text: 'bound' });
  for (const ns of [net.world, net.host]) await net.sh(ns, 'python3', '-c', `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try: s.sendto(b'hello', ('${b.address}', 7777))
except PermissionError: pass`);
  await d.post(`${P}/wait`, {});
  assert.match((await d.get(`${P}/logs`)).chunks.map((x) => x.data).join(''), /nothing/);
});

test('the host does not become a router for others', async () => {
  // the world would go from one of its interfaces to the other through the host
  await net.sh(net.host, 'ip', 'route', 'add', '192.0.2.0/24', 'via', '192.168.50.2', 'dev', 'lan0');
  await net.sh(net.world, 'ip', 'route', 'add', '192.0.2.0/24', 'via', HOST_OUT, 'dev', 'out0');
  await net.sh(net.world, 'python3', '-c', `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(5): s.sendto(b'routed', ('192.0.2.9', 9999))`);
  await poll('the packets are through', async () => (await tries(d, a.id, [['udp', WEB, 9999]]))[0] === 'ok');
  assert.equal(await net.counted('routed'), 0);
});

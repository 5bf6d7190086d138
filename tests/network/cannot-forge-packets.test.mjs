// Root inside has raw sockets. With them a tenant cannot send with another source address,
// answer for the gateway or a neighbour, or get a fragment, an IPv6 packet or any other
// frame past the host's end of its veth.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { GATEWAY, HOST_LAN, HOST_OUT, Internet, tries, WEB } from '../lib/internet.mjs';

let net;
let d;
let a;
let b;
before(async () => {
  net = await new Internet().open();
  d = await net.daemon();
  [a, b] = [await d.sandbox(), await d.sandbox()];
  for (const s of [a, b]) s.address = (await d.get(`/v1/sandboxes/${s.id}/network`)).address;
});
after(async () => {
  await d?.stop();
  await net?.close();
});

const PACKETS = `
import socket, struct, sys, time
MAC = bytes.fromhex('02636f766501')
def total(b):
    if len(b) % 2: b += b'\\0'
    s = sum(struct.unpack('>%dH' % (len(b) // 2), b))
    while s >> 16: s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff
def ip(src, dst, proto, body, frag=0, ident=7, ttl=64):
    h = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 20 + len(body), ident, frag, ttl, proto, 0, socket.inet_aton(src), socket.inet_aton(dst))
    return h[:10] + struct.pack('>H', total(h)) + h[12:] + body
def udp(text, port=9999, sport=4000): return struct.pack('>HHHH', sport, port, 8 + len(text), 0) + text
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); wire.bind(('eth0', 0))
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
def frame(kind, body, to=MAC, src=MAC): wire.send(to + src + struct.pack('>H', kind) + body)
def send(p, dst): frame(0x800, p); raw.sendto(p, (dst, 0))
`;

async function forge(s, script) {
  const r = await d.exec(s.id, ['python3', '-c', PACKETS + script], { user: 'root', timeout_ms: 30_000 });
  assert.equal(r.exit_code, 0, r.stderr);
  // what was sent before this answer has arrived, or never will
  assert.deepEqual(await tries(d, s.id, [['udp', WEB, 9999]]), ['ok']);
  return r.stdout;
}
const heard = async (text) => (await net.seen()).filter((s) => s.text.startsWith(text)).length;

test('an honest packet, made by hand, arrives', async () => {
  await forge(a, `send(ip('${a.address}', '${WEB}', 17, udp(b'honest')), '${WEB}')`);
  assert.equal(await heard('honest'), 2);
});

test('a tenant cannot send packets with another source address', async () => {
  const others = [b.address, HOST_OUT, HOST_LAN, GATEWAY, '25.1.1.99', '127.0.0.1', '0.0.0.0', '10.200.9.9', '255.255.255.255', WEB];
  await forge(a, `
for src in ${JSON.stringify(others)}:
    for dst in ['${WEB}', '${b.address}', '${HOST_OUT}']:
        p = ip(src, dst, 17, udp(b'forged'))
        frame(0x800, p)
        try: src == '0.0.0.0' or raw.sendto(p, (dst, 0)) # for 0.0.0.0 the kernel puts in the true one
        except OSError: pass`);
  assert.equal(await heard('forged'), 0);
  assert.deepEqual((await net.seen('host')).filter((s) => s.text === 'forged'), []);
  assert.equal(await net.counted('strangers'), 0);
});

test('loopback, the host and neighbours are not reached by a packet made by hand', async () => {
  await forge(a, `
for dst in ['127.0.0.1', '${HOST_OUT}', '${HOST_LAN}', '${b.address}', '10.0.0.53', '169.254.169.254', '224.0.0.251', '255.255.255.255']:
    for to in [MAC, b'\\xff' * 6, bytes.fromhex('01005e0000fb')]:
        frame(0x800, ip('${a.address}', dst, 17, udp(b'by hand')), to)
        frame(0x800, ip('${a.address}', dst, 17, udp(b'by hand', 5353)), to)`);
  assert.equal(await heard('by hand'), 0);
  assert.deepEqual((await net.seen('host')).filter((s) => s.text === 'by hand'), []);
});

test('a tenant cannot send ARP for the gateway or a neighbour', async () => {
  const was = await net.sh(net.host, 'ip', 'neigh');
  const answers = await forge(a, `
ear = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x806)); ear.bind(('eth0', 0x806)); ear.settimeout(0.5)
evil = bytes.fromhex('02deadbeef02')
for who in ['${GATEWAY}', '${b.address}', '${HOST_OUT}', '25.2.2.1']:
    for op in [1, 2]:
        for target in ['${GATEWAY}', '${a.address}', '${b.address}', '${HOST_OUT}']:
            body = struct.pack('>HHBBH', 1, 0x800, 6, 4, op) + evil + socket.inet_aton(who) + b'\\0' * 6 + socket.inet_aton(target)
            frame(0x806, body, b'\\xff' * 6, evil); frame(0x806, body)
try: print('answered', len(ear.recv(100)))
except socket.timeout: print('silence')`);
  assert.equal(answers, 'silence\n');
  assert.doesNotMatch(await net.sh(net.host, 'ip', 'neigh'), /02:de:ad:be:ef:02/);
  assert.equal((was.match(/out0/g) ?? []).length, ((await net.sh(net.host, 'ip', 'neigh')).match(/out0/g) ?? []).length);
  for (const s of [a, b]) assert.equal((await d.exec(s.id, `curl -s -m 3 -o /dev/null -w %{http_code} http://${WEB}/`)).stdout, '200');
});

test('no fragment passes, whole or in pieces', async () => {
  await forge(a, `
whole = udp(b'fragment' + b'x' * 56)
for dst in ['${WEB}', '10.0.0.53', '${HOST_OUT}']:
    send(ip('${a.address}', dst, 17, whole[:32], 0x2000, 99), dst)
    send(ip('${a.address}', dst, 17, whole[32:], 4, 99), dst)
    send(ip('${a.address}', dst, 17, whole[8:], 1, 98), dst)
    send(ip('${a.address}', dst, 6, whole[:8], 0x2000, 97), dst)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, 10, 0)
s.sendto(b'fragment' + b'y' * 4000, ('${WEB}', 9999))`);
  assert.equal(await heard('fragment'), 0);
  assert.equal(await net.counted('fragments'), 0);
});

test('no IPv6 leaves, and inside there is only ::1', async () => {
  const out = await forge(a, `
six = struct.pack('>IHBB', 0x60000000, 8 + 3, 17, 64) + socket.inet_pton(socket.AF_INET6, '2001:db8::77') + socket.inet_pton(socket.AF_INET6, '2001:db8::1') + struct.pack('>HHHH', 4000, 9999, 11, 0) + b'six'
for to in [MAC, bytes.fromhex('333300000001'), b'\\xff' * 6]: frame(0x86dd, six, to)
print(open('/proc/net/if_inet6').read().split())
for to in ['2001:db8::1', 'fe80::1%eth0', 'ff02::1%eth0', '::1']:
    try: s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.connect(socket.getaddrinfo(to, 9)[0][4]); s.send(b'x'); print(to, 'sent')
    except OSError as e: print(to, e.strerror)`);
  assert.match(out, /^\['0{31}1', '01', '80', '10', '80', 'lo'\]\n/);
  assert.doesNotMatch(out, /(2001|fe80|ff02).* sent/);
  assert.match(out, /::1 sent/);
  assert.equal(await net.counted('six'), 0);
});

test('frames of other kinds and mad headers do not pass or hurt', async () => {
  await forge(a, `
import os
good = ip('${a.address}', '${WEB}', 17, udp(b'mad'))
for kind in [0x8100, 0x88a8, 0x8864, 0x88cc, 0x8847, 0x0004, 0x9000]: frame(kind, b'\\0\\x01\\x08\\0' + good)
for n in range(0, 28): frame(0x800, good[:n])
for i in range(500): frame(0x800, os.urandom(60))
for proto in [4, 41, 47, 50, 51, 89, 112, 132, 255]: frame(0x800, ip('${a.address}', '10.0.0.53', proto, good))
frame(0x800, b'\\x46' + good[1:20] + bytes([131, 3, 4, 0]) + good[20:])`);
  assert.equal(await heard('mad'), 0);
  assert.equal(await net.counted('strangers'), 0);
});

test('a tenant cannot change the interface and its routes', async () => {
  const r = await d.exec(a.id, `
for c in 'link set eth0 down' 'addr add ${b.address}/32 dev eth0' 'route add 10.0.0.0/8 dev eth0' 'link set eth0 arp on' 'link set eth0 address 02:00:00:00:00:01' 'link add x type dummy'; do ip $c 2>/dev/null && echo "did $c"; done
echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6; echo end`, { user: 'root' });
  assert.equal(r.stdout, 'end\n');
});

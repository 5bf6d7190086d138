// internet-world.mjs ROLE DIR - a program in a namespace of internet.mjs.
//
// world: answers HTTP on 80, 443, 5432 and 8080 of every address with who asked,
// `/bytes` with 32 MiB, what a package manager asks for through DIR/mirror.sock, `/drip` with a line whenever `/drop` was asked for; DNS on 53 (every name is WEB);
// UDP echo on 9999. host: answers the same on the host itself, where nothing of it
// must be reached, and lets the test reach what listens on the host's loopback.
import dgram from 'node:dgram';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

const [role, dir] = process.argv.slice(2);
const addresses = Object.values(os.networkInterfaces()).flat().filter((a) => a.family === 'IPv4').map((a) => a.address);
const seen = [];
const drips = new Set();

function saw(proto, local, remote, text = '') {
  if (seen.length < 10_000) seen.push({ proto, local, remote, text });
}

function page(req, res) {
  const { localAddress, localPort, remoteAddress } = req.socket;
  saw('http', `${localAddress}:${localPort}`, remoteAddress, req.url);
  if (req.url === '/drip') {
    res.writeHead(200, { 'content-type': 'text/plain' });
    res.write('first\n');
    drips.add(res);
    res.on('close', () => drips.delete(res));
    res.on('error', () => {});
    return;
  }
  if (/^\/(debian|debian-security|simple|npm)\//.test(req.url)) { // a test may bring a mirror
    http.get({ socketPath: path.join(dir, 'mirror.sock'), path: req.url }, (r) => {
      res.writeHead(r.statusCode, { 'content-length': r.headers['content-length'], 'content-type': r.headers['content-type'] ?? 'application/octet-stream' });
      r.pipe(res);
    }).on('error', () => res.writeHead(502).end());
    return;
  }
  if (req.url === '/bytes') {
    res.end(Buffer.alloc(32 << 20, 'cove'));
    return;
  }
  req.resume().on('end', () => res.end(`${JSON.stringify({ local: localAddress, remote: remoteAddress })}\n`));
}

/** The question with one A record after it: 25.1.1.10. */
function answer(q) {
  let end = 12;
  while (q[end] !== 0) end += q[end] + 1;
  end += 5;
  const isA = q.readUInt16BE(end - 4) === 1;
  const head = Buffer.from(q.subarray(0, end));
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(isA ? 1 : 0, 6);
  head.writeUInt32BE(0, 8);
  return isA ? Buffer.concat([head, Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 25, 1, 1, 10])]) : head;
}

function listening(server, ...args) {
  return new Promise((resolve) => server.listen(...args, resolve));
}

async function answers() {
  for (const port of [22, 80, 443, 5432, 8080]) await listening(http.createServer(page), port, '0.0.0.0');
  await listening(net.createServer((s) => {
    let got = Buffer.alloc(0);
    s.on('error', () => {});
    s.on('data', (b) => {
      got = Buffer.concat([got, b]);
      if (got.length < 2 || got.length < got.readUInt16BE(0) + 2) return;
      saw('dns-tcp', s.localAddress, s.remoteAddress);
      const a = answer(got.subarray(2));
      s.end(Buffer.concat([Buffer.from([a.length >> 8, a.length & 255]), a]));
    });
  }), 53, '0.0.0.0');
  // a socket per address: one for all would answer from the wrong address
  const udp = (port, fn) => Promise.all(addresses.map((address) => new Promise((resolve) => {
    const s = dgram.createSocket('udp4', (b, from) => fn(s, b, from));
    s.bind(port, address, resolve);
  })));
  await udp(53, (s, b, from) => {
    saw('dns', '', from.address);
    s.send(answer(b), from.port, from.address);
  });
  await udp(9999, (s, b, from) => {
    saw('udp', '', from.address, b.toString().slice(0, 100));
    s.send(b, from.port, from.address);
  });
  // broadcasts arrive at none of these addresses
  await new Promise((resolve) => {
    const s = dgram.createSocket({ type: 'udp4', reuseAddr: true }, (b, from) => saw('udp', 'any', from.address, b.toString().slice(0, 100)));
    s.bind(5353, '0.0.0.0', () => {
      for (const a of addresses.filter((x) => !x.startsWith('127.'))) try { s.addMembership('224.0.0.251', a); } catch { /* one per interface */ }
      resolve();
    });
  });
  await listening(http.createServer((req, res) => {
    if (req.url === '/drop') for (const r of drips) r.write('next\n');
    res.end(JSON.stringify(req.url === '/seen' ? seen : { drips: drips.size }));
  }), path.join(dir, `${role}.sock`));
}

async function relay() {
  const file = path.join(dir, 'relay.sock');
  await listening(net.createServer((s) => {
    s.on('error', () => {});
    s.once('data', (first) => {
      const at = first.indexOf('\n');
      const to = net.connect(Number(first.subarray(0, at)), '127.0.0.1');
      const bye = () => {
        s.destroy();
        to.destroy();
      };
      to.on('error', bye);
      s.on('error', bye);
      s.on('close', bye);
      to.on('close', bye);
      if (first.length > at + 1) to.write(first.subarray(at + 1));
      s.pipe(to);
      to.pipe(s);
    });
  }), file);
  fs.chmodSync(file, 0o600);
}

process.stdin.resume().on('end', () => process.exit()); // the test has ended
await answers();
if (role === 'host') await relay();
process.stdout.write('ready\n');

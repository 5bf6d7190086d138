// strict.test.mjs - the same raw bytes to our server and to nginx.
//
// We refuse everything that nginx refuses (4xx, 5xx, or closing without an answer), and
// both accept well-formed requests. Cases where we are stricter than nginx are listed as
// malformed. nginx proxies to a second server of its own, so that it reads bodies;
// without nginx installed our half still runs.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

const NGINX = ['/usr/sbin/nginx', '/usr/local/sbin/nginx'].find(existsSync);
const ANSWER_MS = 5000; // an answer that takes longer is none

const get = (rest) => `GET / HTTP/1.1\r\nHost: x\r\n${rest}\r\n`;
const post = (headers, body) => `POST / HTTP/1.1\r\nHost: x\r\n${headers}\r\n${body}`;
const chunked = (body) => post('Transfer-Encoding: chunked\r\n', body);
const line = (first, host = 'Host: x\r\n') => `${first}\r\n${host}\r\n`;

const wellFormed = {
  'a GET': get(''),
  'no blank before a value': line('GET / HTTP/1.1', 'Host:x\r\n'),
  'blanks around a value': get('A: \t b \t\r\n'),
  'an empty value': get('A:\r\n'),
  'a high byte in a value': get('A: caf\xe9\r\n'),
  'a port in Host': line('GET / HTTP/1.1', 'Host: x:80\r\n'),
  'an IPv6 Host': line('GET / HTTP/1.1', 'Host: [::1]:80\r\n'),
  'a query': line('GET /a%20b?c=d&e HTTP/1.1'),
  'an absolute target': line('GET http://x/y HTTP/1.1'),
  'HTTP/1.0 without Host': line('GET / HTTP/1.0', ''),
  'an empty line before the request': `\r\n${get('')}`,
  'a body by length': post('Content-Length: 5\r\n', 'hello'),
  'a length of zero': post('Content-Length: 0\r\n', ''),
  'a length with leading zeros': post('Content-Length: 005\r\n', 'hello'),
  'a chunked body': chunked('5\r\nhello\r\n0\r\n\r\n'),
  'upper and lower case in the coding': post('transfer-ENCODING: Chunked\r\n', '0\r\n\r\n'),
  'several chunks, hex, zeros': chunked('00a\r\n0123456789\r\nF\r\n0123456789abcde\r\n0\r\n\r\n'),
  'a chunk extension': chunked('5;a=b\r\nhello\r\n0\r\n\r\n'),
  'Expect: 100-continue': post('Content-Length: 5\r\nExpect: 100-continue\r\n', 'hello'),
  'an unknown method': line('PROPFIND / HTTP/1.1'),
};

const malformed = {
  'no version': line('GET /'),
  'HTTP/2.0': line('GET / HTTP/2.0'),
  'HTTP/1.2': line('GET / HTTP/1.2'),
  'HTTP/0.9 by name': line('GET / HTTP/0.9'),
  'a version of letters': line('GET / HTTP/a.b'),
  'a version in lower case': line('GET / http/1.1'),
  'a version with a third part': line('GET / HTTP/1.1.1'),
  'a method in lower case': line('get / HTTP/1.1'),
  'a method with a bracket': line('G(T / HTTP/1.1'),
  'a method that is empty': line(' / HTTP/1.1'),
  'a method after a tab': line('\tGET / HTTP/1.1'),
  'CONNECT': line('CONNECT x:80 HTTP/1.1'),
  TRACE: line('TRACE / HTTP/1.1'),
  'a target that is no path': line('GET x HTTP/1.1'),
  'a target that is a star': line('GET * HTTP/1.1'),
  'a blank in the target': line('GET /a b HTTP/1.1'),
  'two blanks before the target': line('GET  / HTTP/1.1'),
  'two blanks before the version': line('GET /  HTTP/1.1'),
  'a blank after the version': line('GET / HTTP/1.1 '),
  'a control character in the target': line('GET /\x01 HTTP/1.1'),
  'a NUL in the target': line('GET /\0 HTTP/1.1'),
  'a NUL in a value': get('A: b\0c\r\n'),
  'a NUL in a name': get('A\0: b\r\n'),
  'a control character in a name': get('A\x01: b\r\n'),
  'a control character in a value': get('A: \x01\r\n'),
  'a blank before the colon': get('A : b\r\n'),
  'a blank before the colon of a length': post('Content-Length : 5\r\n', 'hello'),
  'a tab before the colon of a coding': post('Transfer-Encoding\t: chunked\r\n', '0\r\n\r\n'),
  'a name that is empty': get(': b\r\n'),
  'a line without a colon': get('abc\r\n'),
  'a folded line': get('A: b\r\n c\r\n'),
  'a folded line first': `GET / HTTP/1.1\r\n Host: x\r\n\r\n`,
  'a folded length': post('Content-Length:\r\n 5\r\n', 'hello'),
  'bare LF everywhere': 'GET / HTTP/1.1\nHost: x\n\n',
  'bare LF after one header': 'GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n',
  'bare LF at the end': 'GET / HTTP/1.1\r\nHost: x\r\n\n',
  'bare CR in a value': get('A: b\rC: d\r\n'),
  'bare CR between headers': 'GET / HTTP/1.1\r\nHost: x\rA: b\r\n\r\n',
  'no Host': line('GET / HTTP/1.1', ''),
  'two Hosts': get('Host: x\r\n'),
  'two different Hosts': get('Host: y\r\n'),
  'an empty Host': line('GET / HTTP/1.1', 'Host:\r\n'),
  'a slash in Host': line('GET / HTTP/1.1', 'Host: x/y\r\n'),
  'a blank in Host': line('GET / HTTP/1.1', 'Host: x y\r\n'),
  'a NUL in Host': line('GET / HTTP/1.1', 'Host: x\0\r\n'),
  'two dots in Host': line('GET / HTTP/1.1', 'Host: x..y\r\n'),
  'an IPv6 Host that does not end': line('GET / HTTP/1.1', 'Host: [::1\r\n'),
  'a Host unlike the target': line('GET http://y/ HTTP/1.1'),
  'a target with an empty host': line('GET http:///x HTTP/1.1'),
  'a length with a sign': post('Content-Length: +5\r\n', 'hello'),
  'a negative length': post('Content-Length: -5\r\n', 'hello'),
  'a hexadecimal length': post('Content-Length: 0x5\r\n', 'hello'),
  'a length with a comma': post('Content-Length: 5,5\r\n', 'hello'),
  'a length with a blank inside': post('Content-Length: 5 5\r\n', 'hello'),
  'a length with a trailing blank': post('Content-Length: 5 \r\n', 'hello'),
  'a length of nothing': post('Content-Length:\r\n', 'hello'),
  'a length beyond counting': post('Content-Length: 99999999999999999999\r\n', 'hello'),
  'two equal lengths': post('Content-Length: 5\r\nContent-Length: 5\r\n', 'hello'),
  'two lengths': post('Content-Length: 5\r\nContent-Length: 6\r\n', 'hello!'),
  'a length and a coding': post('Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
  'a coding and a length': post('Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', '0\r\n\r\n'),
  'two codings': post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
  'an unknown coding': post('Transfer-Encoding: gzip\r\n', 'x'),
  'identity': post('Transfer-Encoding: identity\r\n', ''),
  'a list of codings': post('Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'),
  'chunked first': post('Transfer-Encoding: chunked, gzip\r\n', '0\r\n\r\n'),
  'chunked misspelt': post('Transfer-Encoding: xchunked\r\n', '0\r\n\r\n'),
  'chunked with a vertical tab': post('Transfer-Encoding: \x0bchunked\r\n', '0\r\n\r\n'),
  'a coding in HTTP/1.0': 'POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  'a chunk size of letters': chunked('xyz\r\nhello\r\n0\r\n\r\n'),
  'a chunk size with a sign': chunked('+5\r\nhello\r\n0\r\n\r\n'),
  'a negative chunk size': chunked('-5\r\nhello\r\n0\r\n\r\n'),
  'a chunk size with 0x': chunked('0x5\r\nhello\r\n0\r\n\r\n'),
  'a chunk size that is empty': chunked('\r\nhello\r\n0\r\n\r\n'),
  'a chunk size beyond counting': chunked('ffffffffffffffffff\r\nhello\r\n0\r\n\r\n'),
  'a chunk longer than it says': chunked('5\r\nhello!\r\n0\r\n\r\n'),
  'no line end after a chunk': chunked('5\r\nhello0\r\n\r\n'),
  'bare LF after a chunk size': chunked('5\nhello\r\n0\r\n\r\n'),
  'bare LF after a chunk': chunked('5\r\nhello\n0\r\n\r\n'),
  'a chunk line that never ends': chunked(`5;${'e'.repeat(300)}\r\nhello\r\n0\r\n\r\n`),
  'a target too long': line(`GET /${'a'.repeat(70000)} HTTP/1.1`),
  'a header too long': get(`A: ${'a'.repeat(140000)}\r\n`),
  'headers too many': get('A: b\r\n'.repeat(20000)),
  'a TLS hello': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  'an HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
};

let dir, ours, nginx;
const children = [];

// Ends with us even if we are killed.
function start(command, args, stdio) {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', command, ...args], { stdio });
  children.push(child);
  return child;
}

async function startOurs() {
  assert.ok(process.env.ECHO_SERVER, 'ECHO_SERVER names the echo_server binary');
  const child = start(process.env.ECHO_SERVER, ['0'], ['pipe', 'pipe', 'inherit']);
  const port = await new Promise((resolve, reject) => {
    child.stdout.once('data', (d) => resolve(Number(d)));
    child.once('exit', () => reject(new Error('echo_server ended')));
  });
  return { port, host: '127.0.0.1' };
}

const nginxConf = (d) => `
daemon off; master_process off; pid ${d}/pid; error_log ${d}/error.log;
events { worker_connections 512; }
http {
  access_log off; large_client_header_buffers 4 32k;
  client_body_temp_path ${d}/b; proxy_temp_path ${d}/p; fastcgi_temp_path ${d}/f;
  uwsgi_temp_path ${d}/u; scgi_temp_path ${d}/s;
  server { listen unix:${d}/front; location / { proxy_pass http://unix:${d}/back; } }
  server { listen unix:${d}/back; location / { return 200 "ok"; } }
}`;

async function startNginx() {
  writeFileSync(join(dir, 'conf'), nginxConf(dir));
  const child = start(NGINX, ['-p', dir, '-c', join(dir, 'conf')], ['ignore', 'ignore', 'ignore']);
  const path = join(dir, 'front');
  for (;;) {
    assert.equal(child.exitCode, null, 'nginx ended');
    if (existsSync(path) && (await canConnect(path))) return { path };
    await new Promise((r) => setImmediate(r));
  }
}

const canConnect = (path) =>
  new Promise((resolve) => {
    const s = net.connect({ path }, () => resolve(true));
    s.on('error', () => resolve(false));
    s.on('connect', () => s.destroy());
  });

// The final status, 0 for a close without one, -1 for silence.
function say(address, text) {
  return new Promise((resolve) => {
    const s = net.connect(address);
    let heard = '';
    const done = (status) => {
      clearTimeout(timer);
      s.destroy();
      resolve(status);
    };
    const timer = setTimeout(() => done(-1), ANSWER_MS);
    s.on('connect', () => s.write(Buffer.from(text, 'latin1')));
    s.on('data', (d) => {
      heard += d.toString('latin1');
      const m = heard.match(/^(?:HTTP\/1\.1 100 [^]*?\r\n\r\n)?HTTP\/1\.1 ([2-5]\d\d) /);
      if (m) done(Number(m[1]));
      else if (heard.startsWith('<html>')) done(400); // nginx to HTTP/0.9
    });
    s.on('close', () => done(0));
    s.on('error', () => done(0));
  });
}

const refused = (status) => status === 0 || status >= 400;

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'cove-strict-'));
  ours = await startOurs();
  nginx = NGINX && spawnSync('setpriv', ['--version']).status === 0 ? await startNginx() : null;
});

after(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

for (const [name, text] of Object.entries(wellFormed)) {
  test(`a well-formed request is accepted: ${name}`, async () => {
    assert.equal(await say(ours, text), 200);
    if (nginx) assert.ok(!refused(await say(nginx, text)), 'nginx refuses it');
  });
}

for (const [name, text] of Object.entries(malformed)) {
  test(`a malformed request is refused: ${name}`, async () => {
    const status = await say(ours, text);
    assert.ok(refused(status), `we answered ${status}`);
  });
}

test('whatever nginx refuses, we refuse', { skip: !NGINX }, async () => {
  let strict = 0;
  for (const [name, text] of Object.entries({ ...wellFormed, ...malformed })) {
    const [us, them] = [await say(ours, text), await say(nginx, text)];
    if (refused(them)) assert.ok(refused(us), `${name}: nginx ${them}, we ${us}`);
    strict += refused(us) && !refused(them);
  }
  console.log(`# in ${strict} cases we are stricter than nginx`);
});

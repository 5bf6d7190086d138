// ports.mjs - servers inside a sandbox, and raw HTTP to them from outside.
import net from 'node:net';
import { poll } from './cove.mjs';

/** A server in python inside the sandbox; resolves when its port is open. */
export async function serveInside(d, id, port, code) {
  const p = await d.process(id, ['python3', '-u', '-c', code]);
  await d.post(`/v1/sandboxes/${id}/processes/${p.id}/wait`, { for: 'port', port, timeout_ms: 20_000 }, { timeout: 30_000 });
  return p;
}

/** Accepts connections until it is killed and lets `handle(c)`, which is python, answer each in a thread. */
export function rawServer(port, handle, host = '127.0.0.1') {
  return `
import socket, threading, time, sys
def read_head(c):
    b = b''
    while b'\\r\\n\\r\\n' not in b:
        d = c.recv(65536)
        if not d: break
        b += d
    return b
def handle(c):
${handle.trim().split('\n').map((l) => '    ' + l).join('\n')}
def run(c):
    try: handle(c)
    finally:
        try: c.shutdown(socket.SHUT_RDWR)
        except OSError: pass
        c.close()
s = socket.socket(socket.AF_INET${host.includes(':') ? '6' : ''})
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((${JSON.stringify(host)}, ${port}))
s.listen(64)
while True:
    c, _ = s.accept()
    threading.Thread(target=run, args=(c,), daemon=True).start()
`;
}

/** Answers GET /N with the Nth of these texts, byte for byte, then closes. */
export function answers(port, texts) {
  const all = texts.map((t) => `bytes.fromhex('${Buffer.from(t, 'latin1').toString('hex')}')`);
  return rawServer(port, `c.sendall([${all.join(', ')}][int(read_head(c).split()[1][1:])])`);
}

/** A connection to the daemon for raw bytes. */
export async function rawConnection(d, text) {
  const socket = net.connect(d.port, '127.0.0.1');
  const c = { socket, text: '', ended: false };
  socket.on('data', (b) => (c.text += b.toString('latin1')));
  socket.on('error', () => (c.ended = true));
  socket.on('close', () => (c.ended = true));
  if (text) socket.write(text, 'latin1');
  c.until = (what, fn) => poll(what, () => fn(c.text));
  return c;
}

/** One request and everything that comes back until the connection closes. */
export async function rawRequest(d, text) {
  const c = await rawConnection(d, text);
  await poll('the connection closes', () => c.ended, { deadline: 20_000 });
  return c.text;
}

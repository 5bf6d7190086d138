// A daemon that is killed during an upload leaves the old file or the new one, and nothing else.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';

const SIZE = 24 << 20;
let d, s;
before(async () => {
  d = await startDaemon({});
  s = await d.sandbox();
});
after(() => d?.stop());

const url = (o) => `/v1/sandboxes/${s.id}/files?${Object.entries(o).map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join('&')}`;

// Sends a file of one letter; resolves with the status, or 0 if the connection broke.
function upload(o, letter, onSent) {
  return new Promise((resolve) => {
    const r = http.request(d.url + url(o), { method: 'PUT', headers: { authorization: `Bearer ${d.key}`, 'content-length': SIZE } });
    r.on('error', () => resolve(0));
    r.on('response', (res) => res.resume().on('end', () => resolve(res.statusCode)).on('error', () => resolve(0)));
    const piece = Buffer.alloc(1 << 20, letter);
    let sent = 0;
    const more = () => {
      onSent(sent);
      if (r.destroyed) return;
      if (sent === SIZE) r.end();
      else {
        sent += piece.length;
        r.write(piece, more);
      }
    };
    more();
  });
}

const content = async (name) => (await d.exec(s.id, `stat -c %s ${name}; head -c 1 ${name}; tail -c 1 ${name}; tr -d "$(head -c 1 ${name})" < ${name} | wc -c`)).stdout;
const whole = (letter) => `${SIZE}\n${letter}${letter}0\n`;

for (const who of ['front', 'both'])
  for (const atomic of [0, 1])
    for (const when of [2 << 20, SIZE]) {
      test(`a file is old or new after ${who} was killed at ${when >> 20} of ${SIZE >> 20} MiB${atomic ? ' of an atomic write' : ''}`, async () => {
        await d.exec(s.id, `head -c ${SIZE} /dev/zero | tr '\\0' o > up`);
        let killed;
        const status = await upload({ path: 'up', atomic }, 'n', (sent) => {
          if (sent === when && !killed) killed = d.kill9(who);
        });
        await killed;
        if (who === 'front') await d.back();
        else await d.restart();
        await poll('the writer has ended', async () => (await d.exec(s.id, 'pgrep -x cove-helper || true', { user: 'root' })).stdout === '');
        const now = await content('up');
        assert.ok(now === whole('o') || now === whole('n'), now);
        if (status === 200) assert.equal(now, whole('n'), 'what was acknowledged survives');
        if (when < SIZE) assert.equal(now, whole('o'), 'half an upload is none');
        assert.equal((await d.exec(s.id, 'ls -A /workspace')).stdout, 'up\n');
      });
    }

// Clients of the data plane may disconnect at any moment: other clients are not affected, nothing leaks.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { poll } from '../../lib/cove.mjs';
import { startE2b } from './lib.mjs';

let d, sdk, sbx;
before(async () => {
  ({ d, sdk } = await startE2b());
  sbx = await sdk.Sandbox.create();
  await d.exec(sbx.sandboxId, 'mkdir ~/full && cd ~/full && seq -f f%.0f 1 3000 | xargs touch && head -c 3000000 /dev/zero > ~/big');
});
after(() => d.stop());

const envelope = (message) => {
  const json = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(json.length, 1);
  return Buffer.concat([head, json]);
};
const json = (message) => Buffer.from(JSON.stringify(message));
const part = (name, n) => Buffer.from(`--B\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n${'x'.repeat(n)}\r\n`);

const KINDS = [
  ['POST', '/filesystem.Filesystem/Stat', 'application/json', [json({ path: '~' })]],
  ['POST', '/filesystem.Filesystem/ListDir', 'application/json', [json({ path: 'full', depth: 2 })]],
  ['POST', '/filesystem.Filesystem/MakeDir', 'application/json', [json({ path: 'made/here' })]],
  ['POST', '/filesystem.Filesystem/WatchDir', 'application/connect+json', [envelope({ path: '~', recursive: true, includeEntry: true })]],
  ['POST', '/filesystem.Filesystem/GetWatcherEvents', 'application/json', [json({ watcherId: '0123456789abcdef' })]],
  ['GET', '/files?path=big', undefined, []],
  ['GET', '/files?path=/proc/self/maps', undefined, []],
  ['POST', '/files?path=up', 'application/octet-stream', [Buffer.alloc(10), Buffer.alloc(200_000), Buffer.alloc(200_000)]],
  ['POST', '/files', 'multipart/form-data; boundary=B', [part('p1', 100), part('p2', 200_000), part('p3', 10), Buffer.from('--B--')]],
  ['POST', '/files/compose', 'application/json', [json({ source_paths: ['up'], destination: 'composed' })]],
];

/** Sends piece by piece and leaves after some of them, or some time into the answer. */
function leave([method, url, type, pieces], step, ms) {
  return new Promise((resolve) => {
    const req = http.request(d.url + url, {
      method,
      agent: false,
      headers: {
        'e2b-sandbox-id': sbx.sandboxId,
        'e2b-sandbox-port': '49983',
        'x-access-token': sbx.envdAccessToken,
        ...(type ? { 'content-type': type } : {}),
      },
    });
    req.on('error', () => {});
    req.on('close', resolve);
    req.on('response', (res) => res.on('error', () => {}).on('data', () => {}));
    for (const p of pieces.slice(0, step)) req.write(p);
    if (step >= pieces.length) req.end();
    setTimeout(() => req.destroy(), ms);
  });
}

test('a client may disconnect at every step of every call', async () => {
  const all = [];
  for (const kind of KINDS)
    for (let step = 0; step <= kind[3].length; step++)
      for (const ms of [0, 1, 3, 8, 20]) all.push(() => leave(kind, step, ms));
  await Promise.all(Array.from({ length: 8 }, async () => {
    while (all.length > 0) await all.shift()();
  }));
  await sbx.files.write('after', 'all');
  assert.equal(await sbx.files.read('after'), 'all');
  assert.equal((await sbx.files.list('full')).length, 3000);
  await poll('no helper is left', async () => !(await d.exec(sbx.sandboxId, 'ps -eo comm')).stdout.includes('cove-helper'), { deadline: 20_000 });
});

test('calls to a sandbox that is deleted meanwhile end', async () => {
  const gone = await sdk.Sandbox.create();
  await gone.files.makeDir('w');
  const calls = [
    gone.files.list('/', { depth: 5 }), gone.files.write('x', new Blob([Buffer.alloc(3_000_000)])), gone.files.read('/proc/version'),
    gone.files.getInfo('w'), gone.files.remove('/usr/share'), gone.files.watchDir('w', () => {}),
  ].map((p) => p.then(() => 'fine', (e) => e));
  await gone.kill();
  for (const r of await Promise.all(calls)) assert.ok(r === 'fine' || r instanceof Error, `${r}`);
});

// A damaged sandbox with a network: its rules stay and its address is not reused until it is recovered.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { recordsOf } from '../lib/chaos.mjs';
import { Internet, poll, tries, WEB, WEB2 } from '../lib/internet.mjs';

const S = '/v1/sandboxes';
let net;
let d;
before(async () => {
  net = await new Internet().open();
  d = await net.daemon();
});
after(async () => {
  await d?.stop();
  await net?.close();
});

test('a damaged sandbox shares its address with no other, and recovered has its connections and rules', async () => {
  const s = await d.sandbox({ network: { deny: [WEB2] } });
  const log = async () => (await d.get(`${S}/${s.id}/processes/drip/logs`)).chunks.map((c) => c.data).join('');
  const address = async (id) => (await d.exec(id, ['cat', '/proc/net/fib_trie'])).stdout.match(/10\.\d+\.\d+\.\d+/)[0];
  await d.process(s.id, ['curl', '-sN', `http://${WEB}/drip`], { id: 'drip' });
  await d.post(`${S}/${s.id}/processes/drip/wait`, { for: 'log', text: 'first', timeout_ms: 5000 });
  const [own, seen] = [await address(s.id), await log()];
  await d.kill9('both');
  const fd = fs.openSync(path.join(d.dir, 'sandboxes'), 'r+');
  fs.writeSync(fd, Buffer.alloc(2048), 0, 2048, recordsOf(d.dir).get(s.id));
  fs.closeSync(fd);
  await d.restart();
  assert.equal((await d.get(`${S}/${s.id}`)).state, 'damaged');
  const others = await Promise.all(Array.from({ length: 6 }, () => d.sandbox()));
  for (const o of others) assert.notEqual(await address(o.id), own);

  assert.equal((await d.post(`${S}/${s.id}/recover`)).state, 'running');
  await net.drop();
  await poll('one more line comes over the old connection', async () => (await log()).length > seen.length);
  assert.deepEqual(await tries(d, s.id, [['tcp', WEB, 80], ['tcp', WEB2, 80]]), ['ok', 'ECONNREFUSED']);
  for (const o of [s, ...others]) await d.del(`${S}/${o.id}`);
});

// Beside Docker, whose daemon sets the host's FORWARD policy to DROP.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Docker } from '../lib/docker.mjs';
import { Internet } from '../lib/internet.mjs';

let net;
let docker;

before(async () => {
  net = await new Internet().open();
  docker = await new Docker(net).start();
});
after(async () => {
  await docker?.stop();
  await net?.close();
});

test('Docker drops what the host forwards for others', async () => {
  assert.match(await net.sh(net.host, 'iptables', '-S', 'FORWARD'), /^-P FORWARD DROP$/m);
});

test('a daemon beside Docker leaves Docker\'s rules as they were', async () => {
  const before = await net.traces();
  const d = await net.daemon();
  await d.sandbox();
  await d.stop();
  assert.deepEqual(await net.traces(), before);
});

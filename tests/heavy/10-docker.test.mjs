// Beside Docker, whose daemon sets the host's FORWARD policy to DROP.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { tagOf } from '../lib/cove.mjs';
import { Docker } from '../lib/docker.mjs';
import { Internet, WEB, poll, tries } from '../lib/internet.mjs';

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

const iptables = (...args) => net.sh(net.host, 'iptables', ...args);
const userRules = async () => (await iptables('-S', 'DOCKER-USER')).trim().split('\n').slice(1);
const isOnline = async (d, id) => (await tries(d, id, [['tcp', WEB, 80]]))[0] === 'ok';
const ready = async (d) => (await d.call('GET', '/ready', undefined, { key: '' })).json;

test('Docker drops what the host forwards for others', async () => {
  assert.match(await iptables('-S', 'FORWARD'), /^-P FORWARD DROP$/m);
});

test('sandboxes have a network beside Docker, and cove stop --all leaves Docker\'s rules as they were', async () => {
  const traces = async () => JSON.stringify(await net.traces()).replace(/"(packets|bytes)":\d+/g, ''); // its rules count
  const before = await traces();
  const d = await net.daemon();
  const { id } = await d.sandbox();
  assert.equal(await isOnline(d, id), true);
  assert.equal((await tries(d, id, [['tcp', '172.17.0.1', 80]]))[0] === 'ok', false, 'our own rules still hold');
  assert.equal((await ready(d)).firewall, undefined);
  await d.stop();
  assert.equal(await traces(), before);
});

test('rules of the operator in DOCKER-USER come before ours', async () => {
  await iptables('-I', 'DOCKER-USER', '-d', WEB, '-j', 'DROP');
  const d = await net.daemon();
  const { id } = await d.sandbox();
  assert.equal(await isOnline(d, id), false);
  await d.stop();
  await iptables('-D', 'DOCKER-USER', '-d', WEB, '-j', 'DROP');
});

test('a killed daemon leaves the network of its sandboxes, the next one takes the rules over', async () => {
  const before = await userRules();
  const d = await net.daemon();
  const { id } = await d.sandbox();
  const with2 = await userRules();
  assert.equal(with2.length, before.length + 2);
  await d.kill9('both');
  await d.restart();
  assert.deepEqual(await userRules(), with2, 'once');
  assert.equal(await isOnline(d, id), true);
  await d.stop();
  assert.deepEqual(await userRules(), before);
});

test('sandboxes keep their network when Docker starts, restarts, or its chain is emptied', async () => {
  await docker.stop();
  for (const t of ['filter', 'nat']) await iptables('-t', t, '-F').then(() => iptables('-t', t, '-X'));
  await iptables('-P', 'FORWARD', 'ACCEPT');
  const d = await net.daemon();
  const { id } = await d.sandbox();
  assert.equal(await isOnline(d, id), true);
  docker = await new Docker(net).start();
  await poll('Docker has come, and our rules too', async () => (await userRules()).length >= 2);
  assert.equal(await isOnline(d, id), true);
  await iptables('-F', 'DOCKER-USER');
  await poll('the rules are back', async () => (await userRules()).length === 2);
  assert.equal(await isOnline(d, id), true);
  await d.stop();
});

test('Docker with the older iptables is served too', async () => {
  const other = await new Internet().open();
  const old = await new Docker(other, { legacy: true }).start();
  try {
    const list = () => other.sh(other.host, 'iptables-legacy', '-S', 'DOCKER-USER');
    const before = await list();
    assert.match(await other.sh(other.host, 'iptables-legacy', '-S', 'FORWARD'), /^-P FORWARD DROP$/m);
    const d = await other.daemon();
    const { id } = await d.sandbox();
    assert.equal(await isOnline(d, id), true);
    assert.match(await list(), new RegExp(`-i cv${tagOf(d.dir)}\\+ -j ACCEPT`));
    await d.stop();
    assert.equal(await list(), before);
  } finally {
    await old.stop();
    await other.close();
  }
});

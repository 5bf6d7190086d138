// Other firewalls of the host that drop what it forwards: doctor and /ready name the rule. Docker is in tests/heavy.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { BIN, run, tagOf } from '../lib/cove.mjs';
import { Internet, WEB, poll, tries } from '../lib/internet.mjs';

let net;
let d;
let id;
before(async () => {
  net = await new Internet().open();
  d = await net.daemon();
  ({ id } = await d.sandbox());
});
after(async () => {
  await d?.stop();
  await net?.close();
});

const host = (...argv) => net.sh(net.host, ...argv);
const isOnline = async () => (await tries(d, id, [['tcp', WEB, 80]]))[0] === 'ok';
const named = async () => (await d.call('GET', '/ready', undefined, { key: '' })).json.firewall;
const doctor = async () => {
  const [file, ...args] = net.in(net.host, BIN, 'doctor');
  return (await run(file, args)).stdout.split('\n').find((l) => /\bfirewalls\b/.test(l));
};

test('without another firewall nothing is named', async () => {
  assert.equal(await isOnline(), true);
  assert.equal(await named(), undefined);
  assert.match(await doctor(), /no other firewall is in the way/);
});

test('a policy of iptables that drops is named, and so is the way out, which works', async () => {
  await host('iptables', '-P', 'FORWARD', 'DROP');
  assert.match(await poll('it is noticed', named), /^iptables-nft: chain FORWARD of table filter drops by default/);
  assert.match(await doctor(), /chain FORWARD of table filter drops by default/);
  assert.equal(await isOnline(), false);
  for (const way of ['-i', '-o']) await host('iptables-nft', '-A', 'FORWARD', way, `cv${tagOf(d.dir)}+`, '-j', 'ACCEPT');
  await poll('it is noticed', async () => (await named()) === undefined);
  assert.equal(await isOnline(), true);
  await host('iptables', '-F', 'FORWARD');
});

test('ufw is recognised by its chain', async () => {
  await host('iptables', '-N', 'ufw-user-forward');
  assert.match(await poll('it is noticed', async () => /ufw/.test(await named()) && named()), new RegExp(`ufw route allow in on cv${tagOf(d.dir)}\\+`));
  assert.match(await doctor(), /ufw route allow in on cv\+/);
  await host('iptables', '-P', 'FORWARD', 'ACCEPT');
  await host('iptables', '-X', 'ufw-user-forward');
  await poll('it is noticed', async () => (await named()) === undefined);
});

test('a chain of nftables that drops is named', async () => {
  const file = path.join(net.dir, 'strict.nft');
  fs.writeFileSync(file, 'table inet strict { chain forward { type filter hook forward priority 0; policy drop; ct state established,related accept; }; }');
  await host('nft', '-f', file);
  assert.match(await poll('it is noticed', named), /^chain forward of nftables' table inet strict drops by default/);
  assert.equal(await isOnline(), false);
  await host('nft', 'add', 'rule', 'inet', 'strict', 'forward', 'iifname', `cv${tagOf(d.dir)}*`, 'accept');
  await poll('it is noticed', async () => (await named()) === undefined);
  assert.equal(await isOnline(), true);
  await host('nft', 'delete', 'table', 'inet', 'strict');
});

test('firewalld is recognised by its table', async () => {
  await host('nft', 'add', 'table', 'inet', 'firewalld');
  assert.match(await doctor(), /firewall-cmd --permanent --zone=trusted --add-interface=cv\+/);
  await host('nft', 'delete', 'table', 'inet', 'firewalld');
});

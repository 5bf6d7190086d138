// /run/cove is removed while daemons run: the kernel's state decides. `cove stop --all` leaves
// nothing, the host does not become a router, and no two sandboxes get the same ids.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { initsOf } from '../lib/chaos.mjs';
import { tagOf } from '../lib/cove.mjs';
import { Internet, WEB } from '../lib/internet.mjs';

let net;
let clean;
let holder;
let inside;
let daemons;
before(async () => {
  net = await new Internet().open();
  clean = await net.traces();
});
after(() => net?.close());

// a /run of our own: that of the machine belongs to other daemons too
beforeEach(async () => {
  holder = spawn('unshare', ['-m', 'sh', '-c', 'mount -t tmpfs -o mode=755 none /run && echo ready && exec cat'], { stdio: ['pipe', 'pipe', 'inherit'] });
  await new Promise((resolve, reject) => {
    holder.stdout.once('data', resolve);
    holder.once('exit', (c) => reject(new Error(`no /run of our own: ${c}`)));
  });
  inside = ['nsenter', `--mount=/proc/${holder.pid}/ns/mnt`];
  daemons = [];
});
afterEach(async () => {
  for (const d of daemons) await d.stop();
  holder.stdin.end();
});

async function daemon() {
  const d = await net.daemon({ args: ['--pool', '0'], inside });
  daemons.push(d);
  return d;
}

/** `cove stop --all`, and that it leaves nothing of the daemon. */
async function stop(d) {
  daemons.splice(daemons.indexOf(d), 1);
  await d.stop();
}

const lose = () => net.sh(net.host, ...inside, 'rm', '-rf', '/run/cove');
const guards = async (d) => (await net.sh(net.host, 'nft', 'list', 'chain', 'inet', `cove_${tagOf(d.dir)}`, 'forward'))
  .split('\n').filter((l) => /oifname != "cv\*" drop/.test(l)).map((l) => /iifname "(\w+)"/.exec(l)[1]).sort();
const reaches = async (d, id) => (await d.exec(id, `curl -s -m 5 -o /dev/null -w %{http_code} http://${WEB}/`)).stdout;
const forwards = (dev) => net.sh(net.host, 'cat', `/proc/sys/net/ipv4/conf/${dev}/forwarding`);

/** The first id of every sandbox that runs, as the host sees it. */
function firstIds() {
  return daemons.flatMap((d) => [...initsOf(d.dir).values()].map((pid) => Number(fs.readFileSync(`/proc/${pid}/uid_map`, 'utf8').trim().split(/\s+/)[1])));
}

test('after a kill, stop --all removes the table and puts forwarding back', async () => {
  const d = await daemon();
  await d.sandbox();
  await lose();
  await d.kill9('keeper');
  await stop(d);
  assert.deepEqual(await net.traces(), clean);
});

test('stop --all without a kill removes the table too', async () => {
  const d = await daemon();
  await d.sandbox();
  await lose();
  await stop(d);
  assert.deepEqual(await net.traces(), clean);
});

test('a daemon that is started again still keeps the host from routing for others', async () => {
  const d = await daemon();
  const s = await d.sandbox();
  const before = await guards(d);
  assert.deepEqual(before, ['lan0', 'out0']);
  await lose();
  await d.kill9('keeper');
  await d.restart();
  assert.deepEqual(await guards(d), before);
  assert.match(d.log, /is lost; the interfaces to restore are read from the firewall/);
  assert.equal(await reaches(d, s.id), '200');
  await stop(d);
  assert.deepEqual(await net.traces(), clean);
});

test('forwarding stays on while another daemon needs it', async () => {
  const [a, b] = [await daemon(), await daemon()];
  const s = await b.sandbox();
  await lose();
  await stop(a);
  assert.equal(await forwards('out0'), '1\n');
  assert.equal(await reaches(b, s.id), '200');
  await stop(b);
  assert.deepEqual(await net.traces(), clean);
});

test('sandboxes of two daemons never get the same ids', async () => {
  const a = await daemon();
  const old = [await a.sandbox(), await a.sandbox()];
  await lose();
  const b = await daemon();
  await b.sandbox();
  await a.sandbox();
  await b.sandbox();
  await a.del(`/v1/sandboxes/${old[0].id}`);
  await b.sandbox();
  await a.sandbox();
  const ids = firstIds();
  assert.equal(ids.length, 6);
  assert.equal(new Set(ids).size, ids.length, `first ids: ${ids}`);
  assert.doesNotMatch(a.log + b.log, /has the same user ids/);
});

// A host whose links come and go all the time: the kernel cuts its lists short and says so.
// Sandboxes are made and deleted, traffic is counted, rules are written, and every call succeeds.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Internet, WEB } from '../lib/internet.mjs';

const STANDING = 150; // pairs of links that stay: a list of them comes in many pieces
const CHURN = 20; // pairs that come and go, in one batch
const LIVES = 60; // of sandboxes, while it lasts
let net;
let d;
let churn = [];
before(async () => {
  net = await new Internet().open();
  const batch = (name, lines) => {
    const file = path.join(net.dir, name);
    fs.writeFileSync(file, lines.map((l) => `${l}\n`).join(''));
    return file;
  };
  const names = (prefix, n) => Array.from({ length: n }, (_, i) => `${prefix}${i}`);
  await net.sh(net.host, 'ip', '-batch', batch('standing', names('stay', STANDING).map((l) => `link add ${l} type veth peer name ${l}p`)));
  d = await net.daemon({ args: ['--pool', '0'] });
  const links = batch('churn', names('go', CHURN).flatMap((l) => [`link add ${l} type veth peer name ${l}p`, `link del ${l}`]));
  const tables = batch('tables', ['add table inet elsewhere', 'add chain inet elsewhere c', 'add rule inet elsewhere c accept', 'delete table inet elsewhere']);
  churn = [['ip', '-batch', links], ['nft', '-f', tables]].map((argv) => {
    const [file, ...args] = net.in(net.host, 'sh', '-c', 'while "$@"; do :; done', 'sh', ...argv);
    return spawn(file, args, { stdio: ['ignore', 'ignore', 'inherit'], detached: true });
  });
});
after(async () => {
  const ended = churn.map((c) => new Promise((r) => c.once('exit', r)));
  for (const c of churn) if (c.exitCode === null) process.kill(-c.pid, 'SIGKILL');
  await Promise.all(ended);
  await d?.stop();
  await net?.close();
});

/** Counts while `work` goes on, so that both use the keeper's socket in turn. */
async function counting(id, work) {
  let over = false;
  let asked = 0;
  const poll = (async () => {
    for (; !over; asked++) {
      assert.equal((await d.call('GET', '/metrics')).status, 200);
      assert.equal((await d.call('GET', `/v1/sandboxes/${id}/metrics`)).status, 200);
    }
  })();
  poll.catch(() => {}); // told below
  await work().finally(() => (over = true));
  await poll;
  return asked;
}

test('every create succeeds, and traffic is counted, while links come and go', async () => {
  const first = await d.sandbox();
  await d.exec(first.id, `curl -s -m 5 http://${WEB}/`);
  const asked = await counting(first.id, async () => {
    for (let i = 0; i < LIVES; i++) {
      const s = await d.sandbox(i % 3 === 0 ? { network: { allow: [`${WEB}/32`], deny: ['0.0.0.0/0'] } } : {});
      await d.del(`/v1/sandboxes/${s.id}`);
    }
  });
  assert.ok(asked > 10, `counted ${asked} times`);
  assert.ok(churn.every((c) => c.exitCode === null), 'links and tables came and went all the time');
  const text = (await d.call('GET', '/metrics')).text;
  const sent = new RegExp(`^cove_sandbox_network_out_bytes_total\\{sandbox="${first.id}"\\} (\\d+)$`, 'm').exec(text);
  assert.ok(Number(sent?.[1]) > 0, text);
  assert.doesNotMatch(d.log, /Protocol error|Interrupted system call|the counters of links/);
});

// e2b.mjs - the cost of E2B's published SDK over the native API, in turn, in one run.
//
// Both sides are clients in this process: node's own time is in both numbers, so the
// ratio is the overhead of E2B's protocol and SDK.
import { createRequire } from 'node:module';

const { COVE_URL, COVE_API_KEY } = process.env;
Object.assign(process.env, { E2B_API_KEY: COVE_API_KEY, E2B_API_URL: COVE_URL, E2B_SANDBOX_URL: COVE_URL });
const require = createRequire(new URL('../tests/clients/package.json', import.meta.url));
const { Sandbox } = require('e2b');

const TURNS = 40;
const BURST = 100;
const COMMAND = ['/bin/bash', '-l', '-c', 'true']; // what commands.run('true') runs

async function native(method, path, body) {
  const res = await fetch(COVE_URL + path, {
    method,
    headers: { authorization: `Bearer ${COVE_API_KEY}`, ...(body ? { 'content-type': 'application/json' } : {}) },
    body: body && JSON.stringify(body),
  });
  if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`);
  return res.status === 204 ? undefined : res.json();
}

async function time(fn) {
  const from = performance.now();
  await fn();
  return performance.now() - from;
}

const median = (v) => v.sort((a, b) => a - b)[v.length >> 1];

/** Medians of two functions called in turn. */
async function turns(n, ours, theirs) {
  const a = [];
  const b = [];
  for (let i = 0; i < n; i++) {
    a.push(await time(ours));
    b.push(await time(theirs));
  }
  return [median(a), median(b)];
}

function row(what, [ours, theirs], next, wanted) {
  const ratio = ours / theirs;
  console.log(['row', what, `${ours.toFixed(2)} ms`, `${next} ${theirs.toFixed(2)} ms`, `${ratio.toFixed(2)} x`, `<= ${wanted} x`, ratio <= wanted ? 'yes' : 'no'].join('\t'));
}

async function sdkLife() {
  const sbx = await Sandbox.create();
  await sbx.commands.run('true');
  await sbx.kill();
}

async function nativeLife() {
  const { id } = await native('POST', '/v1/sandboxes', { timeout_ms: 300_000 });
  await native('POST', `/v1/sandboxes/${id}/exec`, { argv: COMMAND });
  await native('DELETE', `/v1/sandboxes/${id}`);
}

await sdkLife(); // once, to initialize everything
await nativeLife();
row('E2B SDK: create, first commands.run, kill', await turns(TURNS, sdkLife, nativeLife), 'native', 2);

const sbx = await Sandbox.create();
row(
  "E2B SDK: commands.run('true')",
  await turns(5 * TURNS, () => sbx.commands.run('true'), () => native('POST', `/v1/sandboxes/${sbx.sandboxId}/exec`, { argv: COMMAND })),
  'native',
  1.5,
);
await sbx.kill();

let made = [];
const burst = await time(async () => (made = await Promise.all(Array.from({ length: BURST }, () => Sandbox.create()))));
await Promise.all(made.map((s) => s.kill()));
let ids = [];
const plain = await time(async () => (ids = await Promise.all(Array.from({ length: BURST }, () => native('POST', '/v1/sandboxes', { timeout_ms: 300_000 })))));
await Promise.all(ids.map((s) => native('DELETE', `/v1/sandboxes/${s.id}`)));
row(`E2B SDK: ${BURST} creates at once, each`, [burst / BURST, plain / BURST], 'native', 1.5);
console.log(`note\tE2B SDK: by turns with the native API, both from node ${process.version}; the machine's page faults and node's own time are in both`);
process.exit(0);

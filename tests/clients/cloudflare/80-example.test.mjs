// The example in examples/agents-sdk, as a user would run it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { ROOT_DIR, run, startDaemon } from '../../lib/cove.mjs';

let d;
let dir; // below node_modules, where the packages are found
before(async () => {
  d = await startDaemon();
  dir = fs.mkdtempSync(path.join(ROOT_DIR, 'tests/clients/node_modules/.example-'));
  fs.cpSync(path.join(ROOT_DIR, 'examples/agents-sdk'), dir, { recursive: true });
});
after(async () => {
  if (dir) fs.rmSync(dir, { recursive: true });
  await d?.stop();
});

const environments = {
  cloudflare: () => ({ CLOUDFLARE_SANDBOX_WORKER_URL: d.url, CLOUDFLARE_SANDBOX_API_KEY: d.key }),
  e2b: () => ({ E2B_API_KEY: d.key, E2B_API_URL: d.url, E2B_SANDBOX_URL: d.url }),
};

for (const [name, environment] of Object.entries(environments)) {
  test(`an agent continues in another sandbox after losing its own, through ${name}`, async () => {
    const r = await run('node', ['agent.mjs'], { cwd: dir, env: { ...process.env, SANDBOX: name, ...environment() } });
    assert.equal(r.status, 0, r.stdout + r.stderr);
    assert.match(r.stdout, /The tests pass\.\n {2}kept \d+ bytes[^]*Signs are left out now\./);
    assert.deepEqual((await d.get('/v1/sandboxes')).sandboxes, []);
  });
}

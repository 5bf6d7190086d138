// The published CLI.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startE2b } from './lib.mjs';

let d, sdk, cli;
before(async () => {
  ({ d, sdk, cli } = await startE2b());
});
after(() => d.stop());

test('the CLI creates, lists, inspects, uses and kills a sandbox', async () => {
  const made = await cli(['sandbox', 'create', '--detach', '--timeout', '600']);
  assert.equal(made.status, 0, made.stderr);
  const id = /([a-z0-9]{20,32})/.exec(made.stdout)[1];

  const listed = JSON.parse((await cli(['sandbox', 'list', '--format', 'json'])).stdout);
  assert.deepEqual(listed.map((s) => [s.sandboxId, s.templateId, s.state]), [[id, 'base', 'running']]);
  assert.match((await cli(['sandbox', 'list'])).stdout, new RegExp(`${id}.*Running`));
  assert.match((await cli(['sandbox', 'info', id])).stdout, new RegExp(`Sandbox domain: localhost:${d.port}`));

  const said = await cli(['sandbox', 'exec', id, 'echo', 'hi there']);
  assert.equal(said.stdout, 'hi there\n');
  const failed = await cli(['sandbox', 'exec', id, '--', 'bash', '-c', 'echo err >&2; exit 4']);
  assert.equal(failed.status, 4);
  assert.match(failed.stderr, /^err\n/);
  assert.equal((await cli(['sandbox', 'exec', id, 'cat'], { input: 'piped\n' })).stdout, 'piped\n');

  assert.match((await cli(['sandbox', 'kill', id])).stdout, /has been killed/);
  assert.match((await cli(['sandbox', 'kill', id])).stderr, /wasn't found/);
  assert.match((await cli(['sandbox', 'list'])).stdout, /No sandboxes found/);
  assert.equal((await cli(['sandbox', 'exec', id, 'true'])).status, 1);
});

test('the CLI lists the templates', async () => {
  const r = await cli(['template', 'list']);
  assert.equal(r.status, 0, r.stderr);
  assert.match(r.stdout, /Public\s+base\s+base/);
});

test('an invalid key is refused', async () => {
  const r = await cli(['sandbox', 'list'], { env: { E2B_API_KEY: 'e2b_0000000000000000000000000000000000000000' } });
  assert.notEqual(r.status, 0);
  assert.match(r.stderr + r.stdout, /401|nauthorized|not known/);
  assert.ok(sdk.AuthenticationError);
});

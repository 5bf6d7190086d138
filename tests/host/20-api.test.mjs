// The files of tests/api that apply, unchanged, in host mode (files.txt).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ROOT_DIR, run } from '../lib/cove.mjs';

const here = path.join(ROOT_DIR, 'tests/host');
const files = [];
for (const line of fs.readFileSync(path.join(here, 'files.txt'), 'utf8').split('\n')) {
  const [word, ...rest] = line.split(' ');
  if (word === 'apply') files.push({ name: rest.join(' '), except: [] });
  if (word === 'except') files.at(-1).except.push(/^(.*): [^:]+$/.exec(rest.join(' '))[1]);
}

const env = { ...process.env, COVE_HOST: '1' };
delete env.NODE_TEST_CONTEXT; // node runs no tests within tests otherwise

for (const { name, except } of files)
  test(`tests/api/${name} in host mode`, async () => {
    const r = await run(path.join(here, 'inside.sh'), ['node', '--test', '--test-reporter=tap', `tests/api/${name}.test.mjs`],
      { env,  cwd: ROOT_DIR, deadline: 300_000 });
    // the names are escaped for TAP: \# and \\
    const tests = [...r.stdout.matchAll(/^ *(not )?ok \d+ - (.*?)(?: # (SKIP|TODO).*)?$/gm)]
      .map(([, bad, text]) => ({ ok: !bad, text: text.replace(/\\([\\#])/g, '$1') }));
    assert.ok(tests.length > 1, r.stdout + r.stderr);
    const failed = tests.filter((t) => !t.ok && !t.text.endsWith('.test.mjs')).map((t) => t.text);
    assert.deepEqual(failed.sort(), [...except].sort(), r.stdout.slice(-8000));
  });

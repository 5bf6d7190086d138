// docs/e2b.md lists every public method; methods listed as supported are tested here, and
// the server refuses those listed as missing.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { ROOT_DIR } from '../../lib/cove.mjs';
import { raw, startE2b } from './lib.mjs';

const doc = fs.readFileSync(path.join(ROOT_DIR, 'docs/e2b.md'), 'utf8');
const INTERNAL = new Set([
  'constructor', 'length', 'name', 'prototype', 'resolveOpts', 'boundOpts', 'createSandbox', 'forkSandbox', 'connectSandbox',
  'defaultTemplate', 'defaultMcpTemplate', 'resolveApiOpts', 'fileUrl', 'supportsStdinClose', 'start', 'toJSON', 'toDockerfile',
]);
let d, sdk;
before(async () => {
  ({ d, sdk } = await startE2b());
});
after(() => d.stop());

function rows(header) {
  const [, table] = doc.split(`| ${header} |`);
  return table
    .split('\n')
    .slice(2)
    .slice(0, table.split('\n').slice(2).findIndex((l) => !l.startsWith('|')))
    .map((l) => l.split('|').slice(1, -1).map((c) => c.trim()));
}

const names = (o, stop) => {
  const found = new Set();
  for (; o && o !== stop; o = Object.getPrototypeOf(o)) for (const k of Object.getOwnPropertyNames(o)) if (!INTERNAL.has(k)) found.add(k);
  return [...found];
};

test('the table has exactly the public methods of the SDK', () => {
  const sbx = new sdk.Sandbox({ sandboxId: 'x', envdVersion: '0.6.13' });
  const expected = [
    ...names(sdk.Sandbox, Function.prototype).map((m) => `Sandbox.${m}`),
    ...names(Object.getPrototypeOf(sbx), Object.prototype).map((m) => `sandbox.${m}`),
    ...['commands', 'pty', 'files'].flatMap((part) => names(Object.getPrototypeOf(sbx[part]), Object.prototype).map((m) => `${part}.${m}`)),
    ...names(sdk.Template, Function.prototype).map((m) => `Template.${m}`),
    ...names(sdk.Volume, Function.prototype).map((m) => `Volume.${m}`),
  ];
  const documented = rows('method | offered | what to know').map(([m]) => m.replaceAll('`', ''));
  assert.deepEqual([...documented].sort(), [...new Set(expected)].sort());
});

test('every supported method has a test here', () => {
  const untested = new Set(['Sandbox.getFullInfo', 'sandbox.getMcpUrl', 'sandbox.getMcpToken', 'Template.aliasExists']);
  const dir = path.join(ROOT_DIR, 'tests/clients/e2b');
  const tests = fs.readdirSync(dir).filter((f) => f.endsWith('.test.mjs') && !f.startsWith('90')).map((f) => fs.readFileSync(path.join(dir, f), 'utf8')).join('\n');
  for (const [method, offered] of rows('method | offered | what to know')) {
    const name = method.replaceAll('`', '');
    if (offered !== 'yes' || untested.has(name)) continue;
    const [part, verb] = name.split('.');
    const call = /^(Sandbox|sandbox)$/.test(part) ? new RegExp(`\\.${verb}\\(`) : new RegExp(`${part}\\.${verb}\\(`);
    assert.match(tests, call, `${name} is offered, and no test calls it`);
  }
});

test('supported routes answer, and others are 501', async () => {
  for (const [routes, offered] of rows('route | offered')) {
    for (const [, method, url] of routes.matchAll(/`([A-Z]+) ([^`]+)`/g)) {
      const a = await raw(d, method, url.replace(/\{[a-z]+\}/g, 'x'), method === 'GET' || method === 'DELETE' ? undefined : {});
      if (offered === 'yes') assert.ok(a.status !== 501 && a.json?.message !== 'no such path', `${method} ${url}: ${a.status} ${a.text}`);
      else assert.match(`${a.status} ${a.json.code} ${a.json.message}`, /^501 501 .* not supported by this server$/, `${method} ${url}`);
    }
  }
});

test('the data plane serves exactly the routes in the table', async () => {
  const sbx = await sdk.Sandbox.create();
  for (const [routes, offered] of rows('data plane | offered')) {
    for (const [, method, url] of routes.matchAll(/`([A-Z]+) ([^`]+)`/g)) {
      const a = await d.call(method, url, method === 'GET' ? undefined : {}, {
        key: null,
        headers: { 'e2b-sandbox-id': sbx.sandboxId, 'e2b-sandbox-port': '49983', 'x-access-token': sbx.envdAccessToken },
      });
      const known = !(a.status === 404 && /no such path/.test(a.text)) && a.status !== 405;
      assert.equal(known, offered === 'yes', `${method} ${url}: ${a.status} ${a.text}`);
    }
  }
  await sbx.kill();
});

test('serve prints the variables of E2B', () => {
  assert.match(d.output, new RegExp(`export E2B_API_KEY=\\$\\(cat ${d.dir}/api-key\\) E2B_API_URL=${d.url} E2B_SANDBOX_URL=${d.url}\n`));
});

// templates: any image in, sandboxes out. The archives are written here, by hand.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';
import { dockerSave, gzip, ociLayout, staticProbe, tar, zstd } from '../lib/image.mjs';

let d;
let probe;
before(async () => {
  probe = { name: 'p', data: staticProbe(), mode: 0o755 };
  d = await startDaemon();
});
after(() => d?.stop());

const add = (name, bytes, opts) => d.api('PUT', `/v1/templates/${name}`, bytes, opts);
const refused = (bytes, code = 'invalid', status = 400) => d.fails(status, code, 'PUT', '/v1/templates/refused', bytes);
const on = (template, opts = {}) => d.sandbox({ template, ...opts });
const p = async (id, ...args) => {
  const r = await d.exec(id, ['/p', ...args]);
  assert.equal(r.exit_code, 0, r.stderr);
  return r.stdout;
};
const lines = (text) => text.split('\n').filter((l) => l !== '');
const storesOf = () => fs.readdirSync(path.join(`/proc/${d.keeperPid()}/root`, d.dir, 'disk')).filter((n) => n.startsWith('.image-'));
const layersOf = (store) => fs.readdirSync(path.join(`/proc/${d.keeperPid()}/root`, d.dir, 'disk', store, 'root/layers'));

test('a rootfs tar becomes a template, and a sandbox starts from it', async () => {
  const t = await add('tiny', tar([probe, { name: 'etc/' }, { name: 'etc/hello', data: 'hello\n', mode: 0o600, uid: 7, gid: 8 }]));
  assert.equal(t.name, 'tiny');
  assert.equal(t.format, 'rootfs');
  assert.equal(t.layers, 1);
  assert.equal(t.files, 2);
  assert.equal(t.state, 'ready');
  const { id, template } = await on('tiny');
  assert.equal(template, 'tiny');
  assert.equal(await p(id, 'cat', '/etc/hello'), 'hello\n');
  assert.match(await p(id, 'stat', '/etc/hello'), /^100600 7:8 6 1 /);
  assert.deepEqual(lines(await p(id, 'ls', '/')), ['dev', 'etc', 'p', 'proc', 'sys']);
  await d.del(`/v1/sandboxes/${id}`);
});

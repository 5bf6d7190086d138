// kill -9 of the front, the keeper or both while templates are added, replaced and
// deleted: a name has the complete old or new version, and incomplete ones are
// removed.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Dice, instant, isBroken, settled } from '../lib/chaos.mjs';
import { poll, startDaemon } from '../lib/cove.mjs';
import { dockerSave, staticProbe, tar } from '../lib/image.mjs';

const ROUNDS = Number(process.env.COVE_CHAOS_ROUNDS ?? 20);
const FILES = 400;
let d;
let shared;
before(async () => {
  d = await startDaemon();
  shared = tar([{ name: 'p', data: staticProbe(), mode: 0o755 }]);
});
after(() => d?.stop());

const image = (version) => dockerSave([shared, tar(Array.from({ length: FILES }, (_, i) => ({ name: `f${i}`, data: `${version}` })))]);

async function versionOf(name) {
  const { id } = await d.sandbox({ template: name });
  const r = await d.exec(id, ['/p', 'cat', `/f${FILES - 1}`]);
  const all = await d.exec(id, ['/p', 'ls', '/']);
  assert.equal(r.exit_code, 0, r.stderr);
  assert.equal(all.stdout.split('\n').filter((n) => /^f\d+$/.test(n)).length, FILES);
  await d.del(`/v1/sandboxes/${id}`);
  return Number(r.stdout);
}

const dirOf = (...p) => fs.readdirSync(path.join(d.dir, ...p)).sort();

/** What is stored must be exactly what the listed templates stand on. */
async function nothingElse() {
  await settled(d);
  await poll('only what templates need is stored', async () => {
    const { templates } = await d.get('/v1/templates');
    const ours = templates.filter((t) => t.name !== 'base');
    assert.deepEqual(dirOf('images/names').filter((n) => !n.startsWith('.')), ours.map((t) => t.name).sort());
    assert.deepEqual(dirOf('images/versions').filter((n) => !n.startsWith('.')), [...new Set(ours.map((t) => t.id))].sort());
    const disk = `/proc/${d.keeper.pid}/root${d.dir}/disk`;
    const stores = fs.readdirSync(disk).filter((n) => n.startsWith('.image-'));
    const layers = stores.flatMap((s) => fs.readdirSync(path.join(disk, s, 'root/layers')));
    // the shared one once, and one for each version
    assert.equal(layers.length, ours.length === 0 ? 0 : new Set(ours.map((t) => t.id)).size + 1, `${stores}: ${layers}`);
    return true;
  });
}

test('a kill during a refresh leaves the old or the new template', async (t) => {
  const dice = new Dice();
  t.diagnostic(`COVE_CHAOS_SEED=${dice.seed}`);
  await d.api('PUT', '/v1/templates/t', image(0));
  let told = 0;
  for (let round = 1; round <= ROUNDS; round++) {
    const who = dice.pick(['front', 'keeper', 'both']);
    const put = d.api('PUT', '/v1/templates/t', image(round)).then(() => true, (e) => {
      if (isBroken(e) || e.status >= 500) return false;
      throw e;
    });
    await instant(dice.below(150));
    await d.kill9(who);
    const done = await put;
    if (who === 'front') await d.back();
    else await d.restart();
    const got = await versionOf('t');
    if (done) assert.equal(got, round, 'what was acknowledged is there');
    else assert.ok(got === told || got === round, `version ${got} instead of ${told} or ${round}`);
    told = got;
  }
  await nothingElse();
  await d.del('/v1/templates/t');
  await nothingElse();
});

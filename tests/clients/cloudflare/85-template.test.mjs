// Sandboxes of the Cloudflare plane from the operator's own image, which may lack programs of ours.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Cloudflare } from '../../lib/cloudflare.mjs';
import { startDaemon } from '../../lib/cove.mjs';
import { staticProbe, tar } from '../../lib/image.mjs';

let d;
before(async () => {
  d = await startDaemon({ args: ['--cloudflare-template', 'bare'] });
  await d.api('PUT', '/v1/templates/bare', tar([{ name: 'p', data: staticProbe(), mode: 0o755 }]));
});
after(() => d?.stop());

test('an image without /workspace and without any program gets a workspace, which is root\'s', async () => {
  const b = new Cloudflare(d);
  const first = await b.exec(['/p', 'pwd']);
  assert.deepEqual([first.exit, first.stdout], [0, '/workspace\n']);
  const { sandboxes } = await d.get('/v1/sandboxes?limit=100');
  const at = await d.get(`/v1/sandboxes/${sandboxes.at(-1).id}/files/stat?path=/workspace`);
  assert.deepEqual([at.uid, at.gid, at.mode], [0, 0, '0755']);
  assert.equal((await b.call('POST', '/processes', { argv: ['/p', 'pwd'] })).json.cwd, '/workspace');
  await b.delete();
});

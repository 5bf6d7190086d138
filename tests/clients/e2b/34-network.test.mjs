// Access to a sandbox's ports, and its network settings. tests/network has the effect of
// rules on packets.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll } from '../../lib/cove.mjs';
import { raw, startE2b } from './lib.mjs';

let d, sdk, Sandbox;
before(async () => {
  ({ d, sdk } = await startE2b());
  ({ Sandbox } = sdk);
});
after(() => d.stop());

const port = (sbx, headers = {}) => d.call('GET', '/', undefined, { key: null, headers: { host: `8000-${sbx.sandboxId}.localhost:${d.port}`, ...headers } });

/** A server that answers with the Host it was asked for. */
async function serve(sbx) {
  const code = `
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        b = (self.headers['Host'] + ' ' + str(self.headers.get('E2B-Traffic-Access-Token'))).encode()
        self.send_response(200); self.send_header('Content-Length', str(len(b))); self.end_headers(); self.wfile.write(b)
http.server.HTTPServer(('127.0.0.1', 8000), H).serve_forever()`;
  await sbx.files.write('/home/user/s.py', code);
  await sbx.commands.run('python3 /home/user/s.py', { background: true, timeoutMs: 0 }).then((h) => h.disconnect());
}

test('ports of a private sandbox want its traffic token, which the server inside does not see', async () => {
  const sbx = await Sandbox.create({ network: { allowPublicTraffic: false } });
  assert.match(sbx.trafficAccessToken, /^cvp_[\w-]+\.[\w-]{43}$/);
  assert.notEqual(sbx.trafficAccessToken, sbx.envdAccessToken);
  await serve(sbx);
  const open = await poll('it answers', async () => {
    const a = await port(sbx, { 'e2b-traffic-access-token': sbx.trafficAccessToken });
    return a.status === 200 && a;
  });
  assert.equal(open.text, `8000-${sbx.sandboxId}.localhost:${d.port} None`);
  for (const headers of [{}, { 'e2b-traffic-access-token': 'x' }, { 'e2b-traffic-access-token': (await raw(d, 'GET', `/sandboxes/${sbx.sandboxId}`)).json.envdAccessToken }]) {
    const a = await port(sbx, headers);
    assert.equal(a.status, 403);
    assert.deepEqual(a.json.code, 403);
    assert.match(a.json.message, /traffic access token/);
  }
  assert.equal((await Sandbox.connect(sbx.sandboxId)).trafficAccessToken, sbx.trafficAccessToken);
  assert.equal((await sbx.commands.run('echo still')).stdout, 'still\n', 'commands have their own token');
  await sbx.kill();
});

test('a public one has none; Host is masked where that was asked for', async () => {
  const sbx = await Sandbox.create({ network: { maskRequestHost: 'app.internal:${PORT}' } });
  assert.equal(sbx.trafficAccessToken, undefined);
  await serve(sbx);
  await poll('it answers', async () => (await port(sbx)).text === 'app.internal:8000 None');
  await sbx.kill();
});

test('rules are accepted without a network; invalid and unsupported rules are refused', async () => {
  const sbx = await Sandbox.create({ allowInternetAccess: false, network: { denyOut: ['198.51.100.0/24'] } });
  const info = await sbx.getInfo();
  assert.equal(info.allowInternetAccess, false);
  await sbx.updateNetwork({ denyOut: ['0.0.0.0/0'] });
  await assert.rejects(Sandbox.create({ network: { allowOut: ['192.0.2.7'] } }), /400: .*this sandbox gets `none`/);
  for (const [status, network] of [
    [400, { denyOut: ['example.org'] }],
    [400, { denyOut: ['10.0.0.0/33'] }],
    [400, { allowOut: ['10.0.0.1:80'] }],
    [400, { allowOut: 'x' }],
    [501, { allowOut: ['*.example.org'], denyOut: ['0.0.0.0/0'] }],
    [501, { egressProxy: { address: 'proxy.example.org:1080' } }],
    [501, { rules: { 'example.org': [{}] } }],
    [400, { maskRequestHost: 'a\r\nb' }],
  ]) {
    const a = await raw(d, 'POST', '/v2/sandboxes', { templateID: 'base', network });
    assert.equal(a.status, status, `${JSON.stringify(network)}: ${a.text}`);
  }
  assert.match((await raw(d, 'POST', '/v2/sandboxes', { templateID: 'base', network: { denyOut: ['nonsense'] } })).json.message, /^invalid denied CIDR nonsense$/);
  assert.equal((await raw(d, 'POST', '/sandboxes', { templateID: 'base', network: { allowPublicTraffic: false } })).status, 400);
  assert.equal((await raw(d, 'PUT', '/sandboxes/nothing/network', {})).status, 404);
  await sbx.kill();
});

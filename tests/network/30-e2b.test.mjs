// Rules as E2B's API gives them: at creation, and changed while the sandbox runs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Internet, tries, WEB, WEB2 } from '../lib/internet.mjs';

let net, d;
before(async () => {
  net = await new Internet().open();
  d = await net.daemon();
});
after(async () => {
  await d?.stop();
  await net?.close();
});

const e2b = (method, url, body) => d.call(method, url, body, { key: null, headers: { 'x-api-key': d.key } });
const web = (id) => tries(d, id, [['tcp', WEB, 80], ['tcp', WEB2, 80]]);

async function create(more) {
  const a = await e2b('POST', '/v2/sandboxes', { templateID: 'base', ...more });
  assert.equal(a.status, 201, a.text);
  return a.json.sandboxID;
}

test('allowOut wins over denyOut; without internet only allowed ranges are reached', async () => {
  assert.deepEqual(await web(await create({})), ['ok', 'ok']);
  assert.deepEqual(await web(await create({ network: { denyOut: [WEB2] } })), ['ok', 'ECONNREFUSED']);
  assert.deepEqual(await web(await create({ allow_internet_access: false })), ['ECONNREFUSED', 'ECONNREFUSED']);
  assert.deepEqual(await web(await create({ allow_internet_access: false, network: { allowOut: [WEB2] } })), ['ECONNREFUSED', 'ok']);
});

test('PUT replaces all of it, at once', async () => {
  const id = await create({ network: { denyOut: [WEB] } });
  const put = async (body) => assert.equal((await e2b('PUT', `/sandboxes/${id}/network`, body)).status, 204);
  await put({ denyOut: ['0.0.0.0/0', '::/0'], allowOut: [WEB] });
  const { network, allowInternetAccess } = (await e2b('GET', `/sandboxes/${id}`)).json;
  assert.deepEqual(network, { allowOut: [WEB], denyOut: ['0.0.0.0/0'], allowPublicTraffic: true });
  assert.equal(allowInternetAccess, false);
  assert.deepEqual(await web(id), ['ok', 'ECONNREFUSED']);
  await put({ allow_internet_access: false });
  assert.deepEqual(await web(id), ['ECONNREFUSED', 'ECONNREFUSED']);
  await put({});
  assert.deepEqual(await web(id), ['ok', 'ok']);
});

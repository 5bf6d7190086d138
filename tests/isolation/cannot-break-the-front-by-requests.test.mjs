// Requests made from the API's own description, each with a chance of something wrong: none makes the
// front fail in a way that the documents do not promise, holds its loop, or leaves memory or files behind.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzz } from '../../fuzz/api/run.mjs';

test('requests of all planes make no undocumented 5xx, hold the loop for at most 5 ms, and leave nothing', { timeout: 180_000 }, async (t) => {
  const r = await fuzz({ seconds: 15, seed: Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31) });
  t.diagnostic(JSON.stringify(r));
  assert.ok(r.sent > 100, `${r.sent} requests were sent`);
  assert.ok(r.statuses[200] > 0 && r.statuses[400] > 0);
});

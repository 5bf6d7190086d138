// `cove serve` as a person starts and ends it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { BASE, BIN, run } from '../lib/cove.mjs';
import { Pane } from '../lib/pane.mjs';

test('a --listen that cannot be is refused before anything is made', async () => {
  const state = path.join(os.tmpdir(), `cove-listen-${process.pid}`);
  for (const [listen, why] of [['nonsense', /ADDRESS:PORT/], ['127.0.0.1', /ADDRESS:PORT/], ['127.0.0.1:99999', /ADDRESS:PORT/], ['192.0.2.1:80', /Cannot assign/], ['no such host:80', /listen/]]) {
    const r = await run(BIN, ['serve', '--listen', listen, '--state', state, '--network', 'none']);
    assert.equal(r.status, 200, `${listen}: ${r.stderr}`);
    assert.match(r.stderr, why);
    assert.equal(fs.existsSync(state), false, listen);
  }
  const other = net.createServer();
  await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
  const taken = `127.0.0.1:${other.address().port}`;
  const r = await run(BIN, ['serve', '--listen', taken, '--state', state, '--network', 'none']);
  other.close();
  assert.equal(r.status, 211, r.stderr);
  assert.match(r.stderr, new RegExp(`listen on ${taken}: the port is in use`));
  assert.equal(fs.existsSync(state), false, 'of a port in use');
});

test('Ctrl-C ends `cove serve` without a warning', async () => {
  const state = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-ctrl-c-'));
  const p = new Pane(`${BIN} serve --listen 127.0.0.1:0 --state ${state} --base ${BASE} --network none --pool 1 2>${state}.log; echo "status=$?"`, { cols: 150 });
  await p.shows(/ready on http/, 120_000);
  p.press('C-c');
  await p.shows('status=0', 60_000);
  p.close();
  assert.doesNotMatch(fs.readFileSync(`${state}.log`, 'utf8'), /warn|error/);
  const r = await run(BIN, ['stop', '--all', '--state', state]);
  assert.equal(r.status, 0, r.stderr);
  fs.rmSync(state, { recursive: true });
  fs.rmSync(`${state}.log`);
});

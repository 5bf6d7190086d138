// An idle sandbox is paused; the next call resumes it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Cloudflare } from '../../lib/cloudflare.mjs';
import { poll, startDaemon } from '../../lib/cove.mjs';
import { Ws } from '../../lib/ws.mjs';

let d;
before(async () => {
  d = await startDaemon({ args: ['--cloudflare-idle', '700ms'] });
});
after(() => d?.stop());

const used = async () => {
  const b = new Cloudflare(d);
  await b.sh('echo $$ >pid; echo x >ticks; (while :; do echo x >>ticks; sleep 0.05; done) >/dev/null 2>&1 & echo $! >bg');
  const { sandboxes } = await d.get('/v1/sandboxes?limit=100');
  return [b, sandboxes.at(-1).id];
};
const stateOf = async (id) => (await d.get(`/v1/sandboxes/${id}`)).state;
const asleep = (id) => poll('it sleeps', async () => (await stateOf(id)) === 'paused');

test('an idle sandbox is paused with its processes, and the next call resumes it', async () => {
  const [b, id] = await used();
  await asleep(id);
  assert.equal(await b.running(), true, 'asleep is not gone');
  assert.equal(await stateOf(id), 'paused', 'and a look does not wake it');
  const r = await b.sh('kill -0 $(cat bg) && echo alive; wc -l <ticks');
  assert.match(r.stdout, /^alive\n\d+\n$/);
  assert.equal(await stateOf(id), 'running');
  await b.delete();
});

test('forks of a bridge sandbox are paused when idle', async () => {
  const [b, id] = await used();
  const { forks } = await d.post(`/v1/sandboxes/${id}/fork`);
  await asleep(forks[0].sandbox.id);
  assert.equal((await d.exec(forks[0].sandbox.id, 'true')).exit_code, 0, 'and wakes as it does');
  await d.del(`/v1/sandboxes/${forks[0].sandbox.id}`);
  await b.delete();
});

test('every kind of call wakes a sleeping sandbox', async () => {
  const [b, id] = await used();
  for (const call of [
    () => b.call('GET', '/file/workspace/pid'),
    () => b.call('PUT', '/file/workspace/new', Buffer.from('x')),
    () => b.call('POST', '/persist'),
    () => b.call('POST', '/processes', { argv: ['true'] }),
    () => b.call('GET', '/processes'),
  ]) {
    await asleep(id);
    const a = await call();
    assert.equal(a.status, 200, a.text);
  }
  await asleep(id);
  const all = await Promise.all(Array.from({ length: 10 }, () => b.exec(['true'])));
  assert.ok(all.every((r) => r.exit === 0));
  await b.delete();
});

test('an open stream keeps its sandbox awake', async () => {
  const [b, id] = await used();
  const r = await b.sh('sleep 2; echo through');
  assert.equal(r.stdout, 'through\n');
  const ws = await Ws.connect(d, `/v1/sandbox/${b.id}/pty`);
  await ws.says('ready');
  const until = Date.now() + 1500;
  await poll('some time has passed', async () => {
    assert.equal(await stateOf(id), 'running');
    return Date.now() > until;
  }, { every: 50 });
  ws.cut();
  await asleep(id);
  await b.delete();
});

test('a stopped sandbox is booted again with its files', async () => {
  const [b, id] = await used();
  await d.post(`/v1/sandboxes/${id}/pause`, { memory: false });
  assert.equal(await b.running(), false);
  assert.equal((await b.sh('test -s ticks && echo kept')).stdout, 'kept\n');
  await b.delete();
});

test('a sleeping sandbox survives a kill of front and keeper', async () => {
  const [b, id] = await used();
  await asleep(id);
  await d.kill9('both');
  await d.restart();
  assert.equal(await stateOf(id), 'paused');
  assert.equal((await b.sh('kill -0 $(cat bg) && echo alive')).stdout, 'alive\n');
  await asleep(id);
  await b.delete();
});

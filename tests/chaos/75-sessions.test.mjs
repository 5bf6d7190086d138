// Sessions live in init: kill -9 of front and keeper loses neither their state nor the
// result of a command that runs.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isBroken } from '../lib/chaos.mjs';
import { poll, startDaemon } from '../lib/cove.mjs';
import { openSession } from '../lib/session.mjs';

let d;
let id;
before(async () => {
  d = await startDaemon();
  id = (await d.sandbox()).id;
});
after(() => d?.stop());

const LINES = 20_000;
const BODY = `for ((i = 0; i < ${LINES}; i++)); do echo "line $i"; ((i == 5000)) && read x < /tmp/gate; done; v=after; (exit 9)`;

const ways = {
  'the front': () => d.kill9('front').then(() => d.back()),
  'the keeper': () => d.kill9('keeper').then(() => d.restart()),
  both: () => d.kill9('both').then(() => d.restart()),
};

for (const [who, kill] of Object.entries(ways)) {
  test(`the complete result of a command can be read by its id after a kill of ${who}`, async () => {
    await d.exec(id, 'rm -f /tmp/gate; mkfifo /tmp/gate; chmod 666 /tmp/gate', { user: 'root' });
    const s = await openSession(d, id);
    await s.exec('v=before; cd /usr; f() { echo "$v"; }');
    const asked = d.call('POST', `${s.url}/exec`, { command: BODY, id: 'long' }).catch((e) => {
      if (!isBroken(e)) throw e;
    });
    const waiting = d.call('POST', `${s.url}/exec`, { command: 'f; pwd', id: 'next' }).catch((e) => {
      if (!isBroken(e)) throw e;
    });
    await poll('it waits at the gate', async () => (await s.command('long')).output_end > 40_000 && (await s.get()).queued === 1);
    await kill();
    await Promise.all([asked, waiting]);
    await poll('the daemon is back', async () => (await s.get()).command === 'long');
    await d.exec(id, 'echo > /tmp/gate');
    const c = await d.post(`${s.url}/commands/long/wait`, { timeout_ms: 30_000 });
    assert.equal(c.exit.code, 9);
    let text = '';
    for (let since = 0, page; !page?.exited; since = page.next) {
      page = await d.get(`${s.url}/commands/long/output?since=${since}`);
      assert.equal(page.truncated, undefined);
      text += page.chunks.map((x) => x.data).join('');
    }
    assert.equal(text, Array.from({ length: LINES }, (_, i) => `line ${i}\n`).join(''));
    await d.post(`${s.url}/commands/next/wait`, { timeout_ms: 30_000 });
    assert.equal((await d.get(`${s.url}/commands/next/output`)).chunks[0].data, 'after\n/usr\n');
    assert.equal(await s.out('f'), 'after\n');
    await s.delete();
  });
}

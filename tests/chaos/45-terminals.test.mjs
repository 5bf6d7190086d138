// kill -9 of the front, the keeper or both while terminals run: viewers resume
// with their cursor without a gap, and earlier input reaches the program.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Dice, instant, isBroken } from '../lib/chaos.mjs';
import { poll, startDaemon } from '../lib/cove.mjs';
import { Ws } from '../lib/ws.mjs';

const ROUNDS = Number(process.env.COVE_CHAOS_ROUNDS ?? 12);
const COUNT = 'import time\ni = 0\nwhile True:\n  print(i, flush=True)\n  i += 1\n  time.sleep(0.002)\n';
const dice = new Dice();

let d;
const viewers = [];
before(async () => {
  d = await startDaemon();
});
after(async () => {
  for (const v of viewers) await v.stop().catch(() => {});
  await d?.stop();
});

/** A viewer that stays to the end, and checks that no byte is missing. */
class Viewer {
  constructor(url) {
    this.url = url;
    this.cursor = 0;
    this.cuts = 0;
    this.rest = '';
    this.next = 0;
    this.done = this.#look();
    this.done.catch(() => {});
  }

  async #look() {
    while (!this.stopped) {
      try {
        this.ws = await Ws.connect(d, `${this.url}/connect?since=${this.cursor}`);
        if (this.stopped) this.ws.cut();
        const from = this.cursor;
        this.#take(this.ws.bytes); // came with the handshake
        this.ws.keep = false;
        this.ws.onBytes = (b) => this.#take(b);
        const ready = await this.ws.says('ready');
        assert.equal(ready.cursor, from);
        const end = await this.ws.closed(120_000);
        assert.ok([1001, 1006, 1011].includes(end.code), JSON.stringify(end));
        assert.ok(!this.ws.texts.some((t) => t.type === 'truncated'), 'it fell behind');
      } catch (e) {
        if (!isBroken(e) && !/closed \(1006|not within/.test(e.message) && !(e.status >= 500)) throw e;
      }
      this.cuts++;
      await instant(10);
    }
  }

  #take(b) {
    this.cursor += b.length;
    const lines = (this.rest + b).split('\r\n');
    this.rest = lines.pop();
    for (const line of lines) {
      if (line !== String(this.next)) this.wrong ??= `${line} instead of ${this.next}, after ${this.cuts} cuts`;
      this.next++;
    }
  }

  /** Until it has seen so much, all of it right. */
  async reaches(n) {
    await poll(`a viewer sees ${n}`, async () => this.wrong || this.next >= n, { deadline: 30_000 });
    assert.equal(this.wrong, undefined);
    await Promise.race([this.done, instant(0)]);
  }

  async stop() {
    this.stopped = true;
    this.ws?.cut();
    await this.done;
  }
}

test('viewers resume with their cursor without a gap after any kill', () => dice.guard(async () => {
  const s = await d.sandbox();
  const T = `/v1/sandboxes/${s.id}/terminals`;
  await d.post(T, { id: 'count', argv: ['python3', '-c', COUNT], ring: 1 << 20 });
  await d.post(T, { id: 'sh', argv: ['bash', '--norc', '--noprofile'], env: { PS1: '' } });
  viewers.push(new Viewer(`${T}/count`), new Viewer(`${T}/count`));
  const typist = await Ws.connect(d, `${T}/sh/connect`);
  await typist.says('ready');
  typist.send('remembered=$((20 + 22)); echo s""et\n');
  await typist.shows('set');
  const { pid } = await d.get(`${T}/sh`);
  for (let i = 0; i < ROUNDS; i++) {
    const before_ = viewers[0].next;
    await instant(dice.below(200));
    const who = dice.pick(['front', 'keeper', 'both']);
    await d.kill9(who);
    if (who === 'front') await d.back();
    else await d.restart();
    await Promise.all(viewers.map((v) => v.reaches(before_ + 20)));
  }
  assert.ok(viewers.every((v) => v.cuts >= ROUNDS / 2), 'they were cut off');
  for (const v of viewers) await v.stop();
  const again = await Ws.connect(d, `${T}/sh/connect?since=now`);
  await again.says('ready');
  again.send('echo "still $remembered"; exit 5\n');
  await again.shows('still 42');
  assert.equal((await again.says('exit')).code, 5);
  assert.equal((await d.get(`${T}/sh`)).pid, pid);
  await d.del(`/v1/sandboxes/${s.id}`);
}));

test('get_or_create while the front dies makes one terminal', () => dice.guard(async () => {
  const s = await d.sandbox();
  const T = `/v1/sandboxes/${s.id}/terminals`;
  for (let i = 0; i < 4; i++) {
    const body = { id: `t${i}`, get_or_create: true, command: `echo up >> /tmp/t${i}; exec sleep 1000` };
    const calls = Array.from({ length: 10 }, () => d.call('POST', T, body).catch((e) => e));
    await instant(dice.below(15));
    await d.kill9('front');
    await Promise.all(calls);
    await d.back();
    const t = await d.call('POST', T, body);
    assert.ok([200, 201].includes(t.status), t.text);
    assert.equal((await d.exec(s.id, `cat /tmp/t${i}`)).stdout, 'up\n');
  }
  await d.del(`/v1/sandboxes/${s.id}`);
}));

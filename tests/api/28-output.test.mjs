// Output of commands in the log of a sandbox (log_output): by line, bounded, also when the
// client or the daemon is gone.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { poll, startDaemon } from '../lib/cove.mjs';

const KEPT = 3000;

let d;
before(async () => {
  d = await startDaemon({ args: ['--logs-output-max', String(KEPT)] });
});
after(() => d?.stop());

const S = '/v1/sandboxes';
const isOutput = (e) => e.fields.event === 'process.output';

/** Every entry, oldest first. */
async function log(id) {
  const all = [];
  for (let cursor = ''; ;) {
    const page = await d.get(`${S}/${id}/logs?direction=forward&limit=1000${cursor && `&cursor=${cursor}`}`);
    if (page.entries.length === 0) return all;
    all.push(...page.entries);
    cursor = page.next_cursor;
  }
}
const lines = async (id) => (await log(id)).filter(isOutput);
const texts = async (id) => (await lines(id)).map((e) => e.message);
const has = (id, text) => poll(`"${text}" is in the log`, async () => (await texts(id)).includes(text));

test('output of an exec, a process and a session is logged by line, in order, with its source', async () => {
  const s = await d.sandbox({ log_output: true });
  assert.equal(s.log_output, true);
  await d.exec(s.id, 'echo one; echo two; echo bad >&2; printf "no end"');
  await d.process(s.id, 'echo in a process; exit 3', { id: 'job' });
  await d.post(`${S}/${s.id}/sessions`, { id: 'sh' });
  await d.post(`${S}/${s.id}/sessions/sh/exec`, { id: 'cmd', command: 'x=5; echo in a session $x' });
  await d.post(`${S}/${s.id}/sessions/sh/processes`, { id: 'bg', command: 'echo from the session $x' });
  await has(s.id, 'from the session 5');
  // its end may come a moment later, and would be in some of what is read below
  const ended = (e) => e.fields.process === 'bg' && e.fields.event === 'process.exited';
  const all = await poll('its end is in the log', async () => {
    const entries = await log(s.id);
    return entries.some(ended) && entries;
  });
  const out = all.filter(isOutput);
  assert.deepEqual(out.filter((e) => e.fields.process === out[0].fields.process && e.fields.stream === 'stdout').map((e) => e.message), ['one', 'two', 'no end']);
  const find = (message) => out.find((e) => e.message === message);
  assert.deepEqual([find('bad').level, find('bad').fields.stream, find('one').level], ['warn', 'stderr', 'info']);
  assert.equal(find('in a process').fields.process, 'job');
  assert.ok(find('in a process').fields.pid > 1);
  assert.equal(find('in a session 5').fields.process, 'sh/cmd');
  assert.equal(find('from the session 5').fields.process, 'bg');
  const job = all.filter((e) => e.fields.process === 'job').map((e) => e.fields.event);
  assert.deepEqual(job, ['process.started', 'process.output', 'process.exited'], 'what it said comes before its end');
  assert.deepEqual(all.map((e) => e.at), all.map((e) => e.at).sort());
  const backward = (await d.get(`${S}/${s.id}/logs?limit=1000`)).entries;
  assert.deepEqual(backward.reverse(), all, 'the same in both directions');
  const found = (await d.get(`${S}/${s.id}/logs?search=IN%20A%20`)).entries;
  assert.deepEqual(found.filter(isOutput).map((e) => e.message), ['in a session 5', 'in a process']);
  assert.ok(found.every((e) => /in a /.test(e.message)), 'the rest are command lines with these words');
  const worse = (await d.get(`${S}/${s.id}/logs?level=warn&direction=forward`)).entries;
  assert.deepEqual(worse.map((e) => e.fields.event), ['process.output', 'process.exited']);
  const behind = await d.get(`${S}/${s.id}/logs?direction=forward&cursor=${all[2].cursor}`);
  assert.deepEqual(behind.entries, all.slice(3), 'a cursor is after any entry');
  await d.del(`${S}/${s.id}`);
});

test('output of terminals, git, file calls and sandboxes without log_output is not logged', async () => {
  const [s, off] = [await d.sandbox({ log_output: true }), await d.sandbox()];
  assert.equal(off.log_output, false);
  await d.post(`${S}/${s.id}/terminals`, { id: 't', command: 'echo on a screen; sleep 100' });
  await d.exec(off.id, 'echo unheard');
  await d.call('PUT', `${S}/${s.id}/files/content?path=/workspace/f`, 'in a file');
  await d.get(`${S}/${s.id}/files/list?path=/workspace`);
  await d.exec(s.id, 'git init -q /workspace/r 2>/dev/null; cd /workspace/r && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m first');
  await d.get(`${S}/${s.id}/git/log?path=/workspace/r`);
  await d.exec(s.id, 'echo the last');
  await has(s.id, 'the last');
  assert.deepEqual(await texts(s.id), ['the last']);
  await d.exec(off.id, 'true');
  assert.deepEqual(await lines(off.id), []);
  for (const x of [s, off]) await d.del(`${S}/${x.id}`);
});

test('long lines are logged in pieces, and bytes that are not UTF-8 verbatim', async () => {
  const s = await d.sandbox({ log_output: true });
  await d.exec(s.id, `head -c 10000 /dev/zero | tr '\\0' x; echo; printf 'a\\xff\\0\\033[31mb\\n'; printf '\\r\\n'; printf 'ä%.0s' $(seq 3000); echo; echo end`);
  await has(s.id, 'end');
  const all = await texts(s.id);
  assert.deepEqual(all.slice(0, 3).map((t) => t.length), [4096, 4096, 10000 - 8192]);
  assert.deepEqual(all.slice(3, 5), ['a\ufffd\ufffd\u001b[31mb', '']);
  assert.equal(all.slice(5, -1).join(''), 'ä'.repeat(3000), 'no character is cut in half');
  await d.exec(s.id, "head -c 400000 /dev/zero | tr '\\0' '\\001'; echo; echo end2");
  await has(s.id, 'end2');
  const long = (await texts(s.id)).slice(all.length); // a page is cut after 4 ms of reading: all pages
  assert.equal(long.slice(0, -1).map((t) => t.length).reduce((a, b) => a + b), 400_000, 'no piece of a line is lost');
  await d.del(`${S}/${s.id}`);
});

test('output is logged without a reader and across kills of front and keeper', { timeout: 60_000 }, async () => {
  const s = await d.sandbox({ log_output: true });
  const gone = new AbortController();
  const exec = fetch(`${d.url}${S}/${s.id}/exec`, { method: 'POST', signal: gone.signal, headers: { authorization: `Bearer ${d.key}`, 'content-type': 'application/json' }, body: JSON.stringify({ command: 'echo begun; until [ -e /tmp/go ]; do sleep 0.05; done; echo alone' }) }).catch(() => {});
  await has(s.id, 'begun');
  gone.abort();
  await exec;
  await d.process(s.id, 'i=0; until [ -e /tmp/stop ]; do echo "n $((i++))"; sleep 0.02; done; echo done', { id: 'counts' });
  await has(s.id, 'n 3');
  for (const who of ['front', 'both', 'front']) {
    const { message } = (await lines(s.id)).pop();
    await d.kill9(who);
    await (who === 'front' ? d.back() : d.restart());
    await poll('it goes on', async () => (await lines(s.id)).pop().message !== message);
  }
  await d.exec(s.id, 'touch /tmp/go /tmp/stop');
  await has(s.id, 'done');
  await has(s.id, 'alone');
  const all = await log(s.id);
  const counted = all.filter((e) => e.fields.process === 'counts' && isOutput(e)).map((e) => e.message);
  assert.deepEqual(counted, [...Array.from({ length: counted.length - 1 }, (_, i) => `n ${i}`), 'done'], 'nothing is lost and nothing told twice');
  assert.equal(all.filter((e) => e.fields.event === 'process.dropped').length, 0);
  await d.del(`${S}/${s.id}`);
});

test('logging continues after a boot, a pause and in a fork', async () => {
  const s = await d.sandbox({ log_output: true });
  await d.exec(s.id, 'echo before; touch /workspace/f');
  await has(s.id, 'before');
  await d.post(`${S}/${s.id}/pause`, { memory: false });
  await d.post(`${S}/${s.id}/resume`);
  await d.exec(s.id, 'echo after');
  await has(s.id, 'after');
  await d.post(`${S}/${s.id}/pause`);
  await d.kill9('front');
  await d.back();
  await d.post(`${S}/${s.id}/resume`);
  await d.exec(s.id, 'echo at last');
  await has(s.id, 'at last');
  assert.deepEqual(await texts(s.id), ['before', 'after', 'at last']);
  const { forks: [{ sandbox: fork }] } = await d.post(`${S}/${s.id}/fork`, { count: 1 });
  assert.equal(fork.log_output, true);
  await d.exec(fork.id, 'echo forked');
  await has(fork.id, 'forked');
  assert.deepEqual(await texts(fork.id), ['forked']);
  for (const x of [s, fork]) await d.del(`${S}/${x.id}`);
});

test('a stop right after a command does not lose its logged output, once the log of that boot has begun', async () => {
  const s = await d.sandbox({ log_output: true });
  await d.exec(s.id, 'echo first');
  await has(s.id, 'first');
  await d.exec(s.id, 'echo of an exec');
  await d.post(`${S}/${s.id}/pause`, { memory: false });
  await d.post(`${S}/${s.id}/resume`);
  await d.post(`${S}/${s.id}/sessions`, { id: 'sh' });
  await d.exec(s.id, 'echo second');
  await has(s.id, 'second');
  await d.post(`${S}/${s.id}/sessions/sh/exec`, { command: 'echo of a session' });
  await d.post(`${S}/${s.id}/pause`, { memory: false });
  assert.deepEqual(await texts(s.id), ['first', 'of an exec', 'second', 'of a session']);
  await d.del(`${S}/${s.id}`);
});

test('a flood of output is cut with a count of dropped lines, and does not hurt other sandboxes', { timeout: 90_000 }, async () => {
  const [s, other] = [await d.sandbox({ log_output: true }), await d.sandbox({ log_output: true })];
  const LINES = 400_000;
  await d.exec(other.id, 'echo mine');
  await has(other.id, 'mine');
  await d.process(s.id, `yes 'a line of some length' | head -${LINES}; echo over >&2`, { id: 'flood' });
  await d.post(`${S}/${s.id}/processes/flood/wait`, { timeout_ms: 60_000 });
  const dropped = await poll('it is said', async () => {
    const e = (await log(s.id)).filter((x) => x.fields.event === 'process.dropped');
    return e.length > 0 && e;
  });
  assert.match(dropped[0].message, /^\d+ lines of output dropped$/);
  assert.equal(dropped[0].level, 'warn');
  const lost = dropped.reduce((n, e) => n + e.fields.lines, 0);
  assert.ok(lost > LINES / 2 && lost < LINES, `${lost}`);
  await d.exec(s.id, 'echo calm again');
  await has(s.id, 'calm again');
  const all = await log(s.id);
  assert.ok(all.filter((e) => isOutput(e) || e.fields.event === 'process.dropped').length <= KEPT + 1100, `${all.length}`);
  assert.match(all[0].message, /^sandbox created/, 'what happened is kept, what was printed goes first');
  assert.deepEqual(await texts(other.id), ['mine']);
  for (const x of [s, other]) await d.del(`${S}/${x.id}`);
});

test('the server may want it of all; a sandbox has the last word', async () => {
  const e = await startDaemon({ args: ['--logs-output', '1'] });
  try {
    const [yes, no] = [await e.sandbox(), await e.sandbox({ log_output: false })];
    assert.deepEqual([yes.log_output, no.log_output], [true, false]);
  } finally {
    await e.stop();
  }
  const none = await startDaemon({ args: ['--logs-keep', '0', '--logs-output', '1'] });
  try {
    const s = await none.sandbox();
    assert.equal(s.log_output, false, 'where no logs are kept, neither is output');
    assert.equal((await none.exec(s.id, 'echo x')).stdout, 'x\n');
  } finally {
    await none.stop();
  }
});

test('the CLI shows the log of a sandbox, and follows it', async () => {
  const made = await d.cli(['create', '--log-output']);
  const id = made.stdout.trim();
  await d.exec(id, 'echo first; printf "\\033]0;evil\\a\\n" >&2');
  await has(id, 'first');
  const now = await d.cli(['logs', id]);
  assert.match(now.stdout, /^\S+Z info {2}sandbox created: template=base\n\S+Z info {2}\[p\d+\] first\n\S+Z warn {2}\[p\d+\] \\x1b\]0;evil\\x07\n$/);
  assert.match((await d.cli(['logs', '-n', '1', '--level', 'warn', id])).stdout, /^\S+ warn .*evil.*\n$/);
  assert.match((await d.cli(['logs', '--search', 'FIRST', id])).stdout, /^\S+ info .*first\n$/);
  const one = JSON.parse((await d.cli(['logs', '--search', 'FIRST', '--json', id])).stdout);
  assert.deepEqual([one.level, one.fields.event], ['info', 'process.output']);
  assert.equal((await d.cli(['logs', '--json', id, 'p1'])).status, 200);
  assert.equal((await d.cli(['logs', '-n', '0', id])).status, 200);
  assert.equal((await d.cli(['logs', '--since', '0', id])).status, 200);
  assert.equal((await d.cli(['logs', '-n', '5', id, 'p1'])).status, 200);
  assert.equal((await d.cli(['logs', 'nothing'])).status, 202);
  const child = d.cliSpawn(['logs', '-f', '-n', '1', id]);
  let seen = '';
  child.stdout.on('data', (x) => { seen += x; });
  await poll('it has begun', () => seen !== '');
  await d.kill9('front');
  await d.exec(id, 'echo later').catch(() => {});
  await d.back();
  await d.exec(id, 'echo last');
  await poll('it goes on', () => /\] last\n/.test(seen), { deadline: 20_000 });
  child.kill();
  assert.equal(seen.split('\n').filter((l) => /\] last$/.test(l)).length, 1);
  await d.del(`${S}/${id}`);
});

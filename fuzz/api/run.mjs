// run.mjs - requests from grammars against a daemon: no undocumented 5xx, nothing holds the loop, and
// afterwards memory and files are what they were.
//
//   node fuzz/api/run.mjs [SECONDS [SEED]]      tools/fuzz.sh calls it; tests call fuzz()
import assert from 'node:assert/strict';
import http from 'node:http';
import { poll, SANITIZED, startDaemon } from '../../tests/lib/cove.mjs';
import { fdCount, rssOf } from '../../tests/lib/host.mjs';
import { holdsOf } from '../../tests/lib/metrics.mjs';
import { Grammar, random, routesOf } from './grammar.mjs';
import { e2b, envd } from './tables.mjs';

const TOGETHER = 12;
const REQUEST_MS = 1500; // then the client leaves: streams do not end by themselves
const S = '/v1/sandboxes';

/* Failures that the documents promise (docs/errors.md): a full or starting server, what another server or the
 * tenant's own did, and what this host lacks. 500 is never one of them. */
const DOCUMENTED = { native: [501, 502, 503, 504, 507], e2b: [501, 502, 503, 504, 507], envd: [501, 502, 503, 504, 507], cloudflare: [501, 502, 503, 504, 507] };
/* What would end the run itself, or takes minutes. */
const NOT = [/^DELETE \/v1\/keys/, /^PATCH \/v1\/keys/, /^POST \/v1\/keys/, /^POST \/v1\/tokens/, /^(PUT|DELETE|POST) \/v1\/templates/, /\/v1\/templates.*refresh/, /^POST \/v3\/templates/];

function send(d, key, r, sandbox) {
  return new Promise((resolve) => {
    const headers = { ...r.headers };
    if (sandbox === undefined) Object.assign(headers, { authorization: `Bearer ${key}`, 'x-api-key': key });
    else headers.host = `49983-${sandbox.id}.localhost:${d.port}`;
    if (sandbox?.token !== undefined) headers['x-access-token'] = sandbox.token;
    if (r.body !== undefined) headers['content-length'] = r.body.length;
    let req;
    try {
      req = http.request({ port: d.port, host: '127.0.0.1', method: r.method, path: r.path, headers, agent: d.agent });
    } catch {
      resolve({ status: 0, text: '' }); // the client itself refuses to send that
      return;
    }
    const timer = setTimeout(() => req.destroy(), REQUEST_MS);
    let text = '';
    const done = (status) => {
      clearTimeout(timer);
      resolve({ status, text });
    };
    req.on('error', () => done(0));
    req.on('upgrade', (res, socket) => {
      socket.destroy();
      done(101);
    });
    req.on('response', (res) => {
      res.on('data', (c) => (text.length < 65536 ? (text += c) : 0));
      res.on('end', () => done(res.statusCode));
      res.on('error', () => done(res.statusCode));
      res.on('close', () => done(res.statusCode));
    });
    req.end(r.body);
  });
}

const NAMES = { id: ['sandbox', 'sandboxID', 'sandbox_ids', 'id'], snapshot: ['snapshot', 'snapshotID'], pid: ['pid', 'process'], sid: ['sid', 'session'], tid: ['tid'], cid: ['cid'], watch: ['watch'] };

/** Ids in an answer become parameters of later requests. */
function learn(g, route, text) {
  const kind = /processes/.test(route.path) ? 'pid' : /sessions\/\{sid\}\/exec/.test(route.path) ? 'cid' : /session/.test(route.path) ? 'sid' : /terminals/.test(route.path) ? 'tid'
    : /watches/.test(route.path) ? 'watch' : /snapshots/.test(route.path) ? 'snapshot' : undefined;
  if (kind === undefined || !text.startsWith('{')) return;
  try {
    for (const name of NAMES[kind]) g.learn(name, JSON.parse(text).id ?? JSON.parse(text).snapshotID);
  } catch { /* cut off */ }
}

export async function fuzz({ seconds, seed = Date.now() % 2 ** 31, args = [] }) {
  const d = await startDaemon({ args: ['--pool', '0', ...args] });
  const problems = [];
  try {
    const rnd = random(seed);
    const g = new Grammar(await d.get('/v1/openapi.json'), rnd);
    const routes = [...routesOf(g.document), ...e2b, ...envd].filter((r) => !NOT.some((x) => x.test(`${r.method} ${r.path}`)));
    const { key } = await d.post('/v1/keys', { admin: true, quotas: { sandboxes: 10, memory: 2 ** 31, disk: 2 ** 36, snapshots: 6 } });
    const as = { key };
    let kept = [], open;
    /** The sandboxes that most requests are about; requests may delete them. */
    const make = async () => {
      kept = [];
      for (const body of [{ name: 'fuzz-one' }, { auto_resume: true }])
        kept.push((await d.api('POST', S, { ...body, limits: { memory: 2 ** 28 } }, as)).id);
      open = (await d.call('POST', '/sandboxes', { templateID: 'base', timeout: 3600 }, { key: null, headers: { 'x-api-key': key } })).json;
      for (const name of NAMES.id) for (const id of [...kept, 'fuzz-one', open.sandboxID]) g.learn(name, id);
    };
    await make();
    for (const [name, value] of [['path', '/workspace/f'], ['to', '/workspace/g'], ['path', '/workspace'], ['name', 'base'], ['key', 'self'], ['id', 'abcdefghijklmnop'], ['port', '8080'], ['user', 'user']]) g.learn(name, value);
    const routeOf = () => rnd.pick(routes);
    const clean = async (all) => {
      const mine = [...kept, open.sandboxID];
      const there = (await d.get(`${S}?limit=100`, as)).sandboxes;
      const gone = mine.some((id) => !there.some((s) => s.id === id && s.state === 'running'));
      for (const s of there) if (all || gone || !mine.includes(s.id)) await d.call('DELETE', `${S}/${s.id}`, undefined, as);
      for (const s of (await d.get('/v1/snapshots?limit=100', as)).snapshots) await d.call('DELETE', `/v1/snapshots/${s.id}`, undefined, as);
      if (gone && !all) await make().catch(() => {}); // another worker made one meanwhile: next time
    };
    const front = d.frontPid();
    let begin, sent = 0;
    const statuses = {};
    const one = async () => {
      const route = routeOf();
      const r = g.request(route);
      const a = await send(d, key, r, route.data ? { id: open.sandboxID, token: open.envdAccessToken } : undefined);
      sent++;
      statuses[a.status] = (statuses[a.status] ?? 0) + 1;
      if (a.status === 500 || (a.status > 500 && !DOCUMENTED[route.plane].includes(a.status)))
        problems.push(`${a.status}: ${route.plane} ${r.method} ${r.path} ${String(r.body ?? '').slice(0, 500)} -> ${a.text.slice(0, 300)}`);
      if (a.status === 200 || a.status === 201) learn(g, route, a.text);
    };
    const rounds = async (ms) => {
      const end = Date.now() + ms;
      const worker = async (first) => {
        for (let i = 1; Date.now() < end && problems.length < 20; i++) {
          await one();
          if (first && i % 60 === 0) await clean(false);
        }
      };
      await Promise.all(Array.from({ length: TOGETHER }, (_, i) => worker(i === 0)));
    };
    const quiet = async () => {
      await clean(true);
      d.agent.destroy();
      d.agent = new http.Agent({ keepAlive: true, maxSockets: 512 });
    };
    await rounds(Math.min(3000, seconds * 200)); // warm: caches and buffers that stay
    begin = { holds: await holdsOf(d), rss: rssOf(front), fds: fdCount(front) };
    await rounds(seconds * 1000);
    assert.equal(d.frontPid(), front, `the front is the one that was started\n${d.log.slice(-3000)}`);
    const end = await holdsOf(d);
    await quiet();
    if (!SANITIZED) {
      if (end.above(5) > begin.holds.above(5)) {
        // What a request does takes as long again; what the machine did meanwhile does not.
        const first = heldBy(d, 0);
        const at = d.log.length;
        await rounds(seconds * 1000);
        const again = heldBy(d, at).filter((what) => first.includes(what));
        if (again.length > 0) problems.push(`callbacks held the loop for over 5 ms, and again the same: ${again}, the longest for ${end.longest} s`);
        await quiet();
      }
      await poll('the front is as small as before', () => rssOf(front) < begin.rss + (12 << 10) || Promise.reject(new Error(`${begin.rss} -> ${rssOf(front)} KiB`)), { deadline: 30_000, every: 200 });
    }
    await poll('the front has no more files open', () => fdCount(front) <= begin.fds + 8 || Promise.reject(new Error(`${begin.fds} -> ${fdCount(front)}`)), { deadline: 30_000, every: 200 });
    assert.deepEqual(problems, [], `seed ${seed}`);
    return { seed, sent, statuses, longest: end.longest };
  } catch (e) {
    e.message = `seed ${seed}: ${e.message}`;
    throw e;
  } finally {
    await d.stop();
  }
}

/** What held the loop for longer than it may, by the log from that place on. */
function heldBy(d, from) {
  return [...d.log.slice(from).matchAll(/event loop was held for \d+ ms \((.*?)\)/g)].map((m) => m[1]);
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const [seconds = '60', seed] = process.argv.slice(2);
  console.log(JSON.stringify(await fuzz({ seconds: Number(seconds), seed: seed === undefined ? undefined : Number(seed) })));
}

// Host mode itself: what outlives what, what is refused, and what commands see of the server. These
// run on the machine as an ordinary user and as root; the files of tests/api that apply run in it too
// (tests/host/files.txt).
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { BIN, finished, poll, run, within } from '../lib/cove.mjs';

const NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--'];

class Host {
  constructor({ as = [], args = [], env = {}, dir } = {}) {
    this.as = as;
    this.args = args;
    this.env = env;
    this.dir = dir ?? path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'cove-host-')), 'state');
    fs.chmodSync(path.dirname(this.dir), 0o777);
  }

  async start() {
    const argv = [...this.as, BIN, 'host', '--listen', `127.0.0.1:${this.port ?? 0}`, '--state', this.dir, ...this.args];
    this.child = spawn(argv[0], argv.slice(1), { env: { PATH: process.env.PATH, HOME: '/', ...this.env }, cwd: '/', stdio: ['ignore', 'pipe', 'pipe'] });
    this.exited = new Promise((r) => this.child.on('exit', (code, signal) => r({ code, signal })));
    this.out = '';
    this.log = '';
    this.child.stderr.on('data', (b) => { this.log += b; });
    await within(20_000, 'ready', new Promise((resolve, reject) => {
      this.child.stdout.on('data', (b) => { this.out += b; if (/process trees: .*\n/.test(this.out)) resolve(); });
      this.exited.then(() => reject(new Error(`ended: ${this.log}`)));
    }));
    this.url = /ready on (\S+)/.exec(this.out)[1];
    this.port = new URL(this.url).port;
    this.key = fs.readFileSync(`${this.dir}/api-key`, 'utf8').trim();
    return this;
  }

  call(method, at, body) {
    return new Promise((resolve, reject) => {
      const req = http.request(this.url + at, { method, agent: false, headers: { authorization: `Bearer ${this.key}`, ...(body ? { 'content-type': 'application/json' } : {}) } }, (res) => {
        const parts = [];
        res.on('data', (d) => parts.push(d));
        res.on('end', () => {
          const text = Buffer.concat(parts).toString();
          resolve({ status: res.statusCode, text, json: /^[[{]/.test(text) ? JSON.parse(text) : undefined });
        });
      });
      req.on('error', reject);
      req.end(body ? JSON.stringify(body) : undefined);
    });
  }

  async exec(command, more = {}) {
    const a = await this.call('POST', '/v1/sandboxes/host/exec', { command, ...more });
    assert.equal(a.status, 200, a.text);
    return a.json;
  }

  async end(signal = 'SIGTERM') {
    this.child.kill(signal);
    return within(20_000, 'the server ends', this.exited);
  }
}

/** Pids of this machine whose command line has these words. */
const having = async (words) => (await run('pgrep', ['-f', words])).stdout.trim().split('\n').filter(Boolean).map(Number);
const children = (pid, title) => fs.readdirSync('/proc').filter((p) => /^\d+$/.test(p)).map(Number).filter((p) => {
  try {
    return Number(/\nPPid:\s+(\d+)/.exec(fs.readFileSync(`/proc/${p}/status`, 'utf8'))[1]) === pid
      && fs.readFileSync(`/proc/${p}/cmdline`, 'utf8').startsWith(title);
  } catch {
    return false;
  }
});
let next = 7_000_000 + process.pid % 100_000;

for (const [name, opts] of [
  ['an ordinary user, isolated', { as: NOBODY }],
  ['an ordinary user, not isolated', { as: NOBODY, args: ['--isolation', 'off'] }],
  ['root, isolated', {}],
  ['root without cgroups, not isolated', { args: ['--isolation', 'off', '--no-cgroup'] }],
]) {
  describe(name, () => {
    const isolated = !name.includes('not');
    let h;
    before(async () => { h = await new Host(opts).start(); });
    after(async () => { if (h.child.exitCode === null) await h.end(); });

    test('the start says what was obtained', () => {
      assert.match(h.out, isolated ? /isolation: PID and mount namespaces/ : /isolation: none/);
      assert.match(h.out, /process trees: (a cgroup for each command|marks)/);
      assert.match(h.out, /this is no sandbox/);
    });

    test('commands run as the user of the server, with its environment, and without its key', async () => {
      const uid = opts.as ? '65534' : '0';
      assert.equal((await h.exec('id -u')).stdout, `${uid}\n`);
      await h.end();
      h.env = { FROM_SERVER: 'yes', COVE_API_KEY: 'secret' };
      await h.start();
      assert.equal((await h.exec('echo $FROM_SERVER-$COVE_API_KEY')).stdout, 'yes-\n');
    });

    test('other users are refused unless root serves', async () => {
      const a = await h.call('POST', '/v1/sandboxes/host/exec', { argv: ['id', '-un'], user: 'daemon' });
      if (!opts.as) return assert.equal(a.json.stdout, 'daemon\n');
      assert.equal(a.status, 422);
      assert.match(a.json.error.message, /runs as uid 65534 and cannot act for other users/);
    });

    test('a timeout kills the whole tree, also what left its session and its parent', async () => {
      const n = next++;
      const r = await h.exec(`(setsid sleep ${n} &) ; (setsid sh -c 'sleep ${n} & sleep ${n}' &) ; sleep ${n}`, { timeout_ms: 400 });
      assert.equal(r.timed_out, true);
      assert.equal(r.exit_code, 124);
      await poll('no process of it is left', async () => (await having(`^sleep ${n}$`)).length === 0);
    });

    test('a session remembers, and what a command of it started dies with that command only', async () => {
      const S = '/v1/sandboxes/host/sessions';
      const { id } = (await h.call('POST', S, {})).json;
      const [stays, goes] = [next++, next++];
      const ex = async (command, more) => (await h.call('POST', `${S}/${id}/exec`, { command, ...more })).json;
      await ex(`cd /tmp; A=1; sleep ${stays} & true`);
      const late = await ex(`(setsid sleep ${goes} &); sleep ${goes}`, { timeout_ms: 400 });
      assert.equal(late.timed_out, true);
      assert.equal((await ex('echo $A $PWD')).stdout, '1 /tmp\n');
      await poll('the processes of the second are gone', async () => (await having(`^sleep ${goes}$`)).length === 0);
      assert.equal((await having(`^sleep ${stays}$`)).length, 1);
      await h.call('DELETE', `${S}/${id}`);
      await poll('the processes of the session are gone', async () => (await having(`^sleep ${stays}$`)).length === 0);
    });

    test('files are read on every mount, small, large and of /proc', async () => {
      const file = path.join(path.dirname(h.dir), 'a file');
      fs.writeFileSync(file, Buffer.alloc(300_000, 'x'));
      const get = async (p) => h.call('GET', `/v1/sandboxes/host/files?${new URLSearchParams({ path: p })}`);
      assert.equal((await get(file)).text.length, 300_000);
      assert.match((await get('/proc/version')).text, /^Linux/);
    });

    test('kill -9 of the front loses nothing', async () => {
      const p = (await h.call('POST', '/v1/sandboxes/host/processes', { command: 'echo first; read x < /dev/null; sleep 1; echo last; sleep 1000' })).json;
      process.kill(children(h.child.pid, 'cove: front')[0], 'SIGKILL');
      await poll('another front answers', async () => (await h.call('GET', '/v1/sandboxes/host').catch(() => ({}))).status === 200);
      const logs = () => h.call('GET', `/v1/sandboxes/host/processes/${p.id}/logs`);
      await poll('all of its output is there', async () => /first[\s\S]*last/.test((await logs()).text));
      await h.call('POST', `/v1/sandboxes/host/processes/${p.id}/kill`, {});
    });

    test('kill -9 of the server loses nothing: the next one adopts init', async () => {
      const n = next++;
      const p = (await h.call('POST', '/v1/sandboxes/host/processes', { argv: ['sleep', `${n}`] })).json;
      await h.end('SIGKILL');
      await h.start();
      assert.match(h.log, /adopted init/);
      const again = (await h.call('GET', `/v1/sandboxes/host/processes/${p.id}`)).json;
      assert.deepEqual([again.pid, again.state], [p.pid, 'running']);
      assert.equal((await h.exec('echo $FROM_SERVER')).stdout, 'yes\n');
    });

    test('an init that is killed takes what it started with it, and a resume starts another', async () => {
      const n = next++;
      await h.call('POST', '/v1/sandboxes/host/processes', { argv: ['setsid', 'sleep', `${n}`] });
      const init = (await poll('init is found', async () => (await having('^cove: init')).filter((p) => fs.readFileSync(`/proc/${p}/cmdline`, 'utf8') === 'cove: init\0host\0')));
      const mine = [];
      for (const p of init)
        if ((await run('sh', ['-c', `ss -xlp 2>/dev/null | grep -q "pid=${p},"; ls /proc/${p}/task`])).status === 0) mine.push(p);
      // of several servers on this machine: ours is the one that our process waits for
      const ours = mine.filter((p) => fs.readdirSync(`/proc/${h.child.pid}/fdinfo`).some((f) => {
        try { return new RegExp(`^Pid:\\s+${p}$`, 'm').test(fs.readFileSync(`/proc/${h.child.pid}/fdinfo/${f}`, 'utf8')); } catch { return false; }
      }));
      assert.equal(ours.length, 1);
      process.kill(ours[0], 'SIGKILL');
      await poll('it is stopped', async () => (await h.call('GET', '/v1/sandboxes/host')).json?.state === 'stopped');
      if (!/adopted/.test(h.log) || isolated) await poll('its processes are gone', async () => (await having(`^(setsid )?sleep ${n}$`)).length === 0);
      assert.equal((await h.call('POST', '/v1/sandboxes/host/resume')).status, 200);
      assert.equal((await h.exec('echo again')).stdout, 'again\n');
    });

    test('what makes or deletes sandboxes is unsupported, and says why', async () => {
      for (const [method, at] of [['POST', '/v1/sandboxes'], ['DELETE', '/v1/sandboxes/host'], ['POST', '/v1/sandboxes/host/fork'], ['POST', '/v1/sandboxes/host/snapshots']]) {
        const a = await h.call(method, at, method === 'POST' ? {} : undefined);
        assert.equal(a.status, 501, `${method} ${at}: ${a.text}`);
        assert.match(a.json.error.message, /host/);
      }
      assert.equal((await h.exec('echo alive')).stdout, 'alive\n');
    });

    test('isolated commands do not see, signal or read the server', async () => {
      if (!isolated) return;
      assert.equal((await h.exec('ps ax | grep -c "cove[- :]\\(host\\|front\\)" || true')).stdout, '0\n');
      assert.notEqual((await h.exec(`kill -9 ${h.child.pid}`)).exit_code, 0);
      assert.equal((await h.exec(`ls -A ${h.dir}; cat ${h.dir}/api-key 2>/dev/null; echo .`)).stdout, 'sessions\n.\n');
      assert.notEqual((await h.exec(`cat /proc/${h.child.pid}/environ`)).exit_code, 0);
      assert.equal((await h.call('GET', '/v1/sandboxes/host')).status, 200);
    });

    test('SIGTERM ends the server and every process it started', async () => {
      const n = next++;
      await h.call('POST', '/v1/sandboxes/host/processes', { command: `(setsid sleep ${n} &); sleep ${n}` });
      await poll('they run', async () => (await having(`^sleep ${n}$`)).length === 2);
      assert.deepEqual(await h.end(), { code: 0, signal: null });
      assert.deepEqual(await having(`^sleep ${n}$`), []);
      fs.rmSync(path.dirname(h.dir), { recursive: true });
    });
  });
}

test('--isolation require fails where it cannot be had, and says why', async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-host-'));
  const off = `echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all ${BIN} host --listen 127.0.0.1:0 --state ${dir}/s --isolation require`;
  fs.chmodSync(dir, 0o777);
  const r = await finished(spawn('unshare', ['--user', '--map-root-user', 'sh', '-c', off]));
  assert.notEqual(r.status, 0);
  assert.match(r.stderr, /isolation require.*namespaces/s);
  fs.rmSync(dir, { recursive: true });
});

test('a state directory of another server, or of another user, is refused', async () => {
  const h = await new Host({ as: NOBODY }).start();
  const twice = await run(NOBODY[0], [...NOBODY.slice(1), BIN, 'host', '--listen', '127.0.0.1:0', '--state', h.dir]);
  assert.match(twice.stderr, /in use by another server/);
  await h.end();
  const other = await run(BIN, ['host', '--listen', '127.0.0.1:0', '--state', h.dir]);
  assert.match(other.stderr, /belongs to uid 65534/);
  fs.rmSync(path.dirname(h.dir), { recursive: true });
});

// internet.mjs - a simulated internet: network namespaces with a host, on which a
// daemon runs, and all its peers. No packet leaves them. The addresses that
// stand for the internet have no special purpose: sandboxes are refused all others.
//
//   sandbox -- veth -- [host: out0 25.2.2.2, lan0 192.168.50.1] -- [world: out0 25.2.2.1, and all addresses below]
//
// internet-world.mjs is the server of the world: HTTP, DNS, UDP echo, on every address;
// its answers have the client's address. The world also counts packets that must not come.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Daemon, poll, run } from './cove.mjs';

export const WEB = '25.1.1.10';
export const WEB2 = '25.1.1.11';
export const DNS = '10.0.0.53';
export const METADATA = '169.254.169.254';
export const DB = '10.1.2.3';
export const HOST_OUT = '25.2.2.2';
export const HOST_LAN = '192.168.50.1';
/** A server answers at each of these addresses, and a sandbox must not reach it. */
export const PRIVATE = [
  DNS, METADATA, DB, '172.16.5.5', '192.168.77.7', '100.64.1.1', '198.18.0.1', '192.0.0.10', '192.168.50.2', '10.200.255.7',
  '168.63.129.16', '192.0.2.77', '198.51.100.7', '203.0.113.7', '192.88.99.1', '192.31.196.1', '192.52.193.1', '192.175.48.1',
  '25.2.2.9', // beside the host, in the network of its uplink
];
export const GATEWAY = '169.254.1.1';

const HERE = path.dirname(new URL(import.meta.url).pathname);
let made = 0;

async function sh(...argv) {
  const r = await run(argv[0], argv.slice(1));
  assert.equal(r.status, 0, `${argv.join(' ')}: ${r.stderr}`);
  return r.stdout;
}

export class Internet {
  constructor() {
    const name = `cvt${process.pid}-${made++}`;
    this.host = `${name}-host`;
    this.world = `${name}-world`;
    this.dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-net-'));
  }

  /** A command line in one of the namespaces. Not `ip netns exec`: that hides the cgroups. */
  in(ns, ...argv) {
    return ['nsenter', `--net=/run/netns/${ns}`, ...argv];
  }

  sh(ns, ...argv) {
    return sh(...this.in(ns, ...argv));
  }

  async open() {
    const { host, world } = this;
    for (const ns of [host, world]) {
      await sh('ip', 'netns', 'add', ns);
      // addresses of IPv6 come late, by themselves, and would look like leftovers
      await this.sh(ns, 'sh', '-c', 'echo 1 >/proc/sys/net/ipv6/conf/default/accept_dad; echo 1 >/proc/sys/net/ipv6/conf/default/addr_gen_mode');
      await this.sh(ns, 'ip', 'link', 'set', 'lo', 'up');
    }
    await this.sh(host, 'ip', 'link', 'add', 'out0', 'type', 'veth', 'peer', 'name', 'out0', 'netns', world);
    await this.sh(host, 'ip', 'link', 'add', 'lan0', 'type', 'veth', 'peer', 'name', 'lan0', 'netns', world);
    await this.#addresses(host, { out0: [`${HOST_OUT}/24`], lan0: [`${HOST_LAN}/24`] });
    await this.#addresses(world, { out0: ['25.2.2.1/24'], lan0: ['192.168.50.2/24'], lo: [WEB, WEB2, ...PRIVATE.filter((a) => a !== '192.168.50.2')].map((a) => `${a}/32`) });
    await this.sh(host, 'ip', 'route', 'add', 'default', 'via', '25.2.2.1');
    await this.sh(world, 'ip', 'route', 'add', 'default', 'via', HOST_OUT);
    // so that IPv6 would work if it were not filtered
    await this.sh(host, 'sh', '-c', 'echo 1 >/proc/sys/net/ipv6/conf/all/forwarding');
    await this.sh(host, 'ip', 'addr', 'add', '2001:db8::2/64', 'dev', 'out0', 'nodad');
    await this.sh(world, 'ip', 'addr', 'add', '2001:db8::1/64', 'dev', 'out0', 'nodad');
    await this.#modules();
    await this.#hostRules();
    await this.#watch();
    await this.#people();
    return this;
  }

  async #addresses(ns, all) {
    for (const [dev, addresses] of Object.entries(all)) {
      for (const a of addresses) await this.sh(ns, 'ip', 'addr', 'add', a, 'dev', dev);
      await this.sh(ns, 'ip', 'link', 'set', dev, 'up');
    }
  }

  /** On a host that has just started the first rules of their kind load modules, and those bring sysctls of their own. */
  async #modules() {
    const file = path.join(this.dir, 'modules.nft');
    fs.writeFileSync(file, `table inet modules {
      chain nat { type nat hook postrouting priority 100; masquerade; }
      chain count { type filter hook forward priority 0; ct state new ct count over 1024 accept; }
    }
    delete table inet modules`);
    await this.sh(this.host, 'nft', '-f', file);
  }

  /** Rules of other programs; they count what the host forwards for others. */
  async #hostRules() {
    const file = path.join(this.dir, 'host.nft');
    fs.writeFileSync(file, `table inet filter {
      counter routed { }
      chain forward { type filter hook forward priority 10; policy accept;
        iifname { "out0", "lan0" } oifname { "out0", "lan0" } counter name routed
      }
      chain input { type filter hook input priority 0; policy accept;
        tcp dport 4444 drop
      }
    }`);
    await this.sh(this.host, 'nft', '-f', file);
  }

  /** Counts what must not come: fragments, IPv6 but for the world's own, senders that are not the host. */
  async #watch() {
    const file = path.join(this.dir, 'watch.nft');
    fs.writeFileSync(file, `table inet watch {
      counter strangers { }
      counter fragments { }
      counter six { }
      chain seen { type filter hook prerouting priority -500;
        iifname { "out0", "lan0" } ip saddr != { ${HOST_OUT}, ${HOST_LAN} } counter name strangers
        iifname { "out0", "lan0" } ip frag-off & 0x3fff != 0 counter name fragments
        iifname { "out0", "lan0" } meta nfproto ipv6 ip6 daddr 2001:db8::/32 counter name six
      }
    }`);
    await this.sh(this.world, 'nft', '-f', file);
  }

  async counted(name) {
    const [ns, table] = name === 'routed' ? [this.host, 'filter'] : [this.world, 'watch'];
    const all = JSON.parse(await this.sh(ns, 'nft', '-j', 'list', 'counter', 'inet', table, name)).nftables;
    return all.find((o) => o.counter).counter.packets;
  }

  async #people() {
    this.socket = path.join(this.dir, 'relay.sock');
    this.people = [];
    for (const [ns, role] of [[this.world, 'world'], [this.host, 'host']]) {
      const [file, ...args] = this.in(ns, process.execPath, path.join(HERE, 'internet-world.mjs'), role, this.dir);
      const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] }); // it ends when its stdin does
      this.people.push(child);
      await new Promise((resolve, reject) => {
        child.stdout.once('data', resolve);
        child.once('exit', (c) => reject(new Error(`${role} ended: ${c}`)));
      });
      for (const o of [child, child.stdin, child.stdout]) o.unref(); // a test that forgets to close does not wait for it
    }
  }

  /** What the world, or the host, has seen: [{proto, local, remote, text}]. */
  seen(who = 'world') {
    return this.#ask(who, '/seen');
  }

  /** Sends one more line to all clients of /drip. */
  drop() {
    return this.#ask('world', '/drop');
  }

  #ask(who, url) {
    return new Promise((resolve, reject) => {
      http.get({ socketPath: path.join(this.dir, `${who}.sock`), path: url }, (res) => {
        let text = '';
        res.on('data', (d) => (text += d));
        res.on('end', () => resolve(JSON.parse(text)));
      }).on('error', reject);
    });
  }

  /** A daemon on the host, with egress unless `args` say otherwise; `inside`: a command that runs it and all its tools. */
  daemon({ args = [], inside = [], bin } = {}) {
    const relay = this.socket;
    let port = 0;
    const d = new Daemon({
      bin,
      args: [...(args.includes('--network') ? [] : ['--network', 'egress']), ...(args.includes('--resolvers') ? [] : ['--resolvers', DNS]), ...args],
      inside: this.in(this.host, ...inside),
      agent: {
        createConnection: (o) => {
          const s = net.connect(relay);
          s.write(`${o.port}\n`);
          return s;
        },
      },
    });
    return d.start();
  }

  /** All state of the host that a daemon may change. */
  async traces() {
    const ruleset = JSON.parse(await this.sh(this.host, 'nft', '-j', 'list', 'ruleset')).nftables.filter((o) => !o.metainfo);
    for (const o of ruleset) for (const v of Object.values(o)) if (v && typeof v === 'object') delete v.handle;
    return {
      ruleset,
      links: JSON.parse(await this.sh(this.host, 'ip', '-j', 'link')).map((l) => l.ifname).sort(),
      routes: await this.sh(this.host, 'ip', 'route', 'show', 'table', 'all'),
      rules: await this.sh(this.host, 'ip', 'rule'),
      sysctls: await this.sh(this.host, 'sh', '-c', 'cd /proc/sys/net && grep -r . ipv4 ipv6 netfilter 2>/dev/null | grep -v -e nf_conntrack_count -e stable_secret -e tcp_fastopen_key | sort'),
    };
  }

  async close() {
    for (const p of this.people ?? []) p.kill('SIGKILL');
    for (const ns of [this.host, this.world]) await run('ip', ['netns', 'del', ns]);
    fs.rmSync(this.dir, { recursive: true, force: true });
  }
}

/** A TCP connection inside a sandbox to its end: 'ok', or the name of what came instead. */
export async function tries(d, id, targets, { user = 'user', timeout = 1.2 } = {}) {
  const r = await d.exec(id, ['python3', '-c', `
import errno, json, socket, sys
from concurrent.futures import ThreadPoolExecutor
def one(t):
    proto, host, port = t
    try:
        if proto == 'tcp':
            s = socket.create_connection((host, port), timeout=${timeout}); s.close(); return 'ok'
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(${timeout})
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        s.connect((host, port)); s.send(b'ping'); s.recv(100); return 'ok'
    except socket.timeout: return 'timeout'
    except OSError as e: return errno.errorcode.get(e.errno, str(e))
with ThreadPoolExecutor(32) as p: print(json.dumps(list(p.map(one, json.loads(sys.argv[1])))))
`, JSON.stringify(targets)], { user, timeout_ms: 60_000 });
  assert.equal(r.exit_code, 0, r.stderr);
  return JSON.parse(r.stdout);
}

export { poll };

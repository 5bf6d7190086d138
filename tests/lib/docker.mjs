// docker.mjs - Debian's dockerd in the host namespace of a simulated internet: its rules come and
// go there, and this machine's own are not touched.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { poll, run } from './cove.mjs';

export class Docker {
  /** `net`: an open Internet; `legacy`: dockerd finds the older iptables. */
  constructor(net, { legacy = false } = {}) {
    this.net = net;
    this.dir = fs.mkdtempSync(path.join(net.dir, 'docker-'));
    this.socket = `unix://${path.join(this.dir, 'sock')}`;
    this.tools = path.join(this.dir, 'tools');
    fs.mkdirSync(this.tools);
    if (legacy) for (const t of ['iptables', 'ip6tables']) fs.symlinkSync(`/usr/sbin/${t}-legacy`, path.join(this.tools, t));
  }

  async start() {
    const at = (name) => path.join(this.dir, name);
    const [file, ...args] = this.net.in(this.net.host, 'dockerd', '--data-root', at('data'), '--exec-root', at('exec'),
      '--pidfile', at('pid'), '--host', this.socket, '--storage-driver', 'vfs');
    this.log = '';
    this.child = spawn(file, args, { env: { ...process.env, PATH: `${this.tools}:${process.env.PATH}` }, stdio: ['ignore', 'pipe', 'pipe'] });
    this.ended = new Promise((resolve) => this.child.once('exit', resolve));
    for (const s of [this.child.stdout, this.child.stderr]) s.on('data', (b) => (this.log = (this.log + b).slice(-65536)));
    await poll(`dockerd answers: ${this.log.slice(-500)}`, async () => (await this.docker('version')).status === 0, { deadline: 60_000, every: 200 });
    return this;
  }

  docker(...args) {
    return run('docker', ['--host', this.socket, ...args]);
  }

  async stop() {
    if (this.child?.exitCode === null) this.child.kill('SIGTERM');
    await this.ended;
  }
}

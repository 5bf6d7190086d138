// host.mjs - the kernel's state: processes, cgroups, mounts, loop devices.
import fs from 'node:fs';
import path from 'node:path';

function read(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Every process: pid, parent, title (as ps shows it), cgroups. */
export function processes() {
  const all = [];
  for (const name of fs.readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const stat = read(`/proc/${name}/stat`);
    if (stat === '') continue;
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    all.push({
      pid: Number(name),
      state: fields[0],
      ppid: Number(fields[1]),
      comm: stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')')),
      title: read(`/proc/${name}/cmdline`).replace(/\0/g, ' ').trim(),
      cgroup: read(`/proc/${name}/cgroup`),
    });
  }
  return all;
}

/** False also for one that has ended and only waits for its parent to notice. One whose first thread has ended still has its sockets while another, say in a flush, has not. */
export function isAlive(pid) {
  const stat = read(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return stat !== '' && (fields[0] !== 'Z' || Number(fields[17]) > 1);
}

/** The children of a process. */
export function processesOf(ppid) {
  return processes().filter((p) => p.ppid === ppid);
}

/** Directories of any cgroup hierarchy whose name is exactly this. */
export function cgroupsNamed(name, root = '/sys/fs/cgroup', depth = 6) {
  const found = [];
  let entries = [];
  try {
    entries = fs.readdirSync(root, { withFileTypes: true });
  } catch {
    return found;
  }
  for (const e of entries) {
    if (!e.isDirectory()) continue;
    const at = path.join(root, e.name);
    if (e.name === name) found.push(at);
    else if (depth > 0) found.push(...cgroupsNamed(name, at, depth - 1));
  }
  return found;
}

/** Cgroup directories below (and with) the given ones: what one daemon has made. */
export function countCgroups(dirs) {
  let n = 0;
  for (const dir of dirs) {
    n++;
    for (const e of fs.readdirSync(dir, { withFileTypes: true })) if (e.isDirectory()) n += countCgroups([path.join(dir, e.name)]);
  }
  return n;
}

export function mountsUnder(dir) {
  return read('/proc/self/mountinfo').split('\n').filter((l) => l.includes(` ${dir}/`) || l.includes(` ${dir} `));
}

/** Loop devices whose backing file lies in `dir`. */
export function loopsOf(dir) {
  return fs.readdirSync('/sys/block').filter((b) => b.startsWith('loop') && read(`/sys/block/${b}/loop/backing_file`).startsWith(`${dir}/`));
}

/** Network namespaces that some process is in. */
export function netnsCount() {
  const seen = new Set();
  for (const p of processes()) {
    try {
      seen.add(fs.readlinkSync(`/proc/${p.pid}/ns/net`));
    } catch {
      // it has just ended
    }
  }
  return seen.size;
}

export function fdCount(pid) {
  return fs.readdirSync(`/proc/${pid}/fd`).length;
}

/** Resident memory in KiB. */
export function rssOf(pid) {
  return Number(/^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0);
}

/** /proc/PID/status as an object. */
export function statusOf(pid) {
  return Object.fromEntries(read(`/proc/${pid}/status`).split('\n').filter(Boolean).map((l) => {
    const [k, ...v] = l.split(':');
    return [k, v.join(':').trim()];
  }));
}

/** Everything left of a daemon that should be gone. */
export async function leftovers(dir, tag) {
  const left = [];
  for (const p of processes()) {
    if (p.pid === process.pid || p.state === 'Z') continue;
    if (p.title.includes(dir)) left.push(`process ${p.pid} (${p.title.slice(0, 80)})`);
    else if (tag && p.cgroup.includes(`cove-${tag}`)) left.push(`process ${p.pid} in a cgroup of ours`);
  }
  if (tag) for (const c of cgroupsNamed(`cove-${tag}`)) left.push(`cgroup ${c}`);
  for (const m of mountsUnder(dir)) left.push(`mount ${m.split(' ')[4]}`);
  for (const l of loopsOf(dir)) left.push(`loop device ${l}`);
  return left;
}

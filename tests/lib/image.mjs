// image.mjs - makes archives: tar, `docker save`, OCI layouts. Names and contents
// are not checked: tests make hostile ones.
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import zlib from 'node:zlib';

const BLOCK = 512;
const TYPES = { file: '0', hard: '1', symlink: '2', char: '3', block: '4', dir: '5', fifo: '6' };

function field(buf, text, at, size) {
  Buffer.from(text, 'latin1').copy(buf, at, 0, Math.min(size, text.length));
}

const octal = (n, digits) => `${n.toString(8).padStart(digits, '0')}\0`;

function header(name, e, size, type) {
  const h = Buffer.alloc(BLOCK);
  field(h, name, 0, 100);
  field(h, octal(e.mode ?? (type === '5' ? 0o755 : 0o644), 7), 100, 8);
  field(h, e.uid > 0o7777777 ? octal(0, 7) : octal(e.uid ?? 0, 7), 108, 8);
  field(h, octal(e.gid ?? 0, 7), 116, 8);
  field(h, octal(size, 11), 124, 12);
  field(h, octal(e.mtime ?? 1_700_000_000, 11), 136, 12);
  field(h, '        ', 148, 8);
  field(h, type, 156, 1);
  field(h, e.link ?? '', 157, 100);
  field(h, 'ustar\x0000', 257, 8);
  field(h, octal(e.major ?? 0, 7), 329, 8);
  field(h, octal(e.minor ?? 0, 7), 337, 8);
  field(h, `${h.reduce((a, b) => a + b, 0).toString(8).padStart(6, '0')}\0 `, 148, 8);
  return h;
}

const padded = (b) => Buffer.concat([b, Buffer.alloc((BLOCK - (b.length % BLOCK)) % BLOCK)]);

function pax(records) {
  const lines = Object.entries(records).map(([k, v]) => {
    const body = Buffer.from(` ${k}=${v}\n`);
    let n = body.length + 1;
    while (`${n}`.length + body.length !== n) n = `${n}`.length + body.length;
    return Buffer.concat([Buffer.from(`${n}`), body]);
  });
  const body = Buffer.concat(lines);
  return Buffer.concat([header('pax', {}, body.length, 'x'), padded(body)]);
}

/** entries: { name, type, data, mode, uid, gid, link, major, minor, pax } */
export function tar(entries, { end = true } = {}) {
  const out = [];
  for (const e of entries) {
    const type = TYPES[e.type ?? (e.name.endsWith('/') ? 'dir' : 'file')];
    const data = Buffer.from(e.data ?? '');
    const long = { ...e.pax };
    if (Buffer.byteLength(e.name) > 100 || /[^\x00-\x7f]/.test(e.name)) long.path = e.name;
    if (Buffer.byteLength(e.link ?? '') > 100) long.linkpath = e.link;
    if (e.uid > 0o7777777) long.uid = e.uid;
    if (Object.keys(long).length) out.push(pax(long));
    out.push(header(e.name, e, e.size ?? (type === '0' ? data.length : 0), type));
    if (type === '0') out.push(padded(data));
  }
  if (end) out.push(Buffer.alloc(2 * BLOCK));
  return Buffer.concat(out);
}

export const sha256 = (b) => crypto.createHash('sha256').update(b).digest('hex');
export const gzip = (b) => zlib.gzipSync(b);
export const zstd = (b) => execFileSync('zstd', ['-q', '-c'], { input: b, maxBuffer: 1 << 30 });

export function configOf(layers, config = {}, extra = {}) {
  return Buffer.from(JSON.stringify({
    architecture: 'amd64',
    os: 'linux',
    config,
    rootfs: { type: 'layers', diff_ids: layers.map((l) => `sha256:${sha256(l)}`) },
    ...extra,
  }));
}

/** layers: uncompressed tars. `change` may alter any file before it is packed. */
export function dockerSave(layers, { config = {}, extra, pack = (b) => b, change = (f) => f, links = {} } = {}) {
  const text = configOf(layers, config, extra);
  const files = { [`${sha256(text)}.json`]: text };
  const names = layers.map((l, i) => {
    files[`layer${i}/layer.tar`] = pack(l);
    return `layer${i}/layer.tar`;
  });
  files['manifest.json'] = Buffer.from(JSON.stringify([
    { Config: `${sha256(text)}.json`, RepoTags: ['test:latest'], Layers: names }]));
  return tar(Object.entries(change(files)).map(([name, data]) => (links[name] ? { name, type: 'symlink', link: links[name] } : { name, data })));
}

const GZ = 'application/vnd.oci.image.layer.v1.tar+gzip';
export function ociLayout(layers, { config = {}, extra, pack = gzip, mediaType = GZ, nested = false, change = (f) => f } = {}) {
  const files = { 'oci-layout': Buffer.from('{"imageLayoutVersion":"1.0.0"}') };
  const blob = (b, type, more = {}) => {
    files[`blobs/sha256/${sha256(b)}`] = b;
    return { mediaType: type, digest: `sha256:${sha256(b)}`, size: b.length, ...more };
  };
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: blob(configOf(layers, config, extra), 'application/vnd.oci.image.config.v1+json'),
    layers: layers.map((l) => blob(pack(l), mediaType)),
  };
  let ref = blob(Buffer.from(JSON.stringify(manifest)), manifest.mediaType, { platform: { os: 'linux', architecture: 'amd64' } });
  if (nested) {
    const other = { ...ref, digest: `sha256:${'0'.repeat(64)}`, platform: { os: 'linux', architecture: 's390x' } };
    const index = Buffer.from(JSON.stringify({ schemaVersion: 2, manifests: [other, ref] }));
    ref = blob(index, 'application/vnd.oci.image.index.v1+json');
  }
  files['index.json'] = Buffer.from(JSON.stringify({ schemaVersion: 2, manifests: [ref] }));
  return tar(Object.entries(change(files)).map(([name, data]) => ({ name, data })));
}

let probe;
/** A static program: `probe cat F`, `probe ls D`, `probe env`, `probe id`, `probe pwd`, `probe stat F`. */
export function staticProbe() {
  if (probe) return probe;
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'cove-probe-'));
  fs.writeFileSync(path.join(dir, 'p.c'), `
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
extern char **environ;
static int cat(const char *f) { char b[65536]; ssize_t n; int fd = open(f, O_RDONLY); if (fd < 0) { perror(f); return 1; }
  while ((n = read(fd, b, sizeof(b))) > 0) fwrite(b, 1, (size_t)n, stdout); return 0; }
static int cmp(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static int ls(const char *d) { char *v[4096]; int n = 0; DIR *D = opendir(d); struct dirent *e; if (!D) { perror(d); return 1; }
  while ((e = readdir(D))) if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && n < 4096) v[n++] = strdup(e->d_name);
  qsort(v, (size_t)n, sizeof(*v), cmp); for (int i = 0; i < n; i++) puts(v[i]); return 0; }
static int st(const char *f) { struct stat s; char t[4096] = ""; if (lstat(f, &s)) { perror(f); return 1; }
  if (S_ISLNK(s.st_mode) && readlink(f, t, sizeof(t) - 1) < 0) return 1;
  printf("%o %d:%d %lld %ld %s\\n", s.st_mode, s.st_uid, s.st_gid, (long long)s.st_size, (long)s.st_nlink, t); return 0; }
int main(int c, char **v) {
  if (c > 2 && !strcmp(v[1], "cat")) return cat(v[2]);
  if (c > 2 && !strcmp(v[1], "ls")) return ls(v[2]);
  if (c > 2 && !strcmp(v[1], "stat")) return st(v[2]);
  if (c > 3 && !strcmp(v[1], "xattr")) { char b[256]; ssize_t n = getxattr(v[2], v[3], b, sizeof(b)); if (n < 0) { perror(v[2]); return 1; } fwrite(b, 1, (size_t)n, stdout); return 0; }
  if (c > 3 && !strcmp(v[1], "write")) { FILE *f = fopen(v[2], "w"); if (!f) { perror(v[2]); return 1; } fputs(v[3], f); return fclose(f); }
  if (c > 2 && !strcmp(v[1], "rm")) return unlink(v[2]) ? perror(v[2]), 1 : 0;
  if (c > 1 && !strcmp(v[1], "env")) { for (char **e = environ; *e; e++) puts(*e); return 0; }
  if (c > 1 && !strcmp(v[1], "pwd")) { char b[4096]; puts(getcwd(b, sizeof(b))); return 0; }
  if (c > 1 && !strcmp(v[1], "id")) { printf("%d:%d\\n", getuid(), getgid()); return 0; }
  return 64; }
`);
  execFileSync('gcc', ['-O1', '-static', '-s', '-o', path.join(dir, 'p'), path.join(dir, 'p.c')]);
  probe = fs.readFileSync(path.join(dir, 'p'));
  fs.rmSync(dir, { recursive: true });
  return probe;
}

// fingerprint.mjs - everything that can be read of the files of a sandbox, to compare two of them byte
// for byte: types, modes, owners, times in nanoseconds, sizes, contents, links, hard links, holes,
// extended attributes.
import assert from 'node:assert/strict';

const PROGRAM = `
import hashlib, os, stat, sys
root, dev = sys.argv[1], os.lstat(sys.argv[1]).st_dev
mounts = {l.split()[4] for l in open('/proc/self/mountinfo')} - {'/'}
groups = {}
# what has not been changed since the sandbox started is the template's: its content is not read
stat1 = open('/proc/1/stat').read().rsplit(')', 1)[1].split()
started = float([l.split()[1] for l in open('/proc/stat') if l.startswith('btime')][0]) + int(stat1[19]) / os.sysconf('SC_CLK_TCK') - 1.1
def content(fd, size):
    h, at = hashlib.sha256(), 0
    while at < size:
        try: at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError: break
        end = os.lseek(fd, at, os.SEEK_HOLE)
        while at < end:
            b = os.pread(fd, min(1 << 20, end - at), at); h.update(b); at += len(b)
    return h.hexdigest()
def holes(fd, size):
    out, at = [], 0
    while at < size:
        try: d = os.lseek(fd, at, os.SEEK_DATA)
        except OSError: break
        h = os.lseek(fd, d, os.SEEK_HOLE)
        out.append('%d-%d' % (d, h)); at = h
    return ','.join(out)
def show(path):
    st = os.lstat(path)
    kind, more = stat.S_IFMT(st.st_mode), ''
    if kind == stat.S_IFREG:
        if st.st_ctime >= started:
            with open(path, 'rb') as f:
                more = content(f.fileno(), st.st_size) + ' ' + holes(f.fileno(), st.st_size)
        if st.st_nlink > 1:
            more += ' same as ' + repr(groups.setdefault((st.st_dev, st.st_ino), path))
    elif kind == stat.S_IFLNK: more = repr(os.readlink(path))
    xs = [] if kind in (stat.S_IFLNK, stat.S_IFIFO) else sorted(os.listxattr(path))
    more += ''.join(' %r=%r' % (x, os.getxattr(path, x)) for x in xs)
    size = st.st_size if kind != stat.S_IFDIR else 0
    if path != '/': print('%r %o %d:%d %d %d %s' % (path, st.st_mode, st.st_uid, st.st_gid, size, st.st_mtime_ns, more))
def walk(path):
    show(path)
    if stat.S_ISDIR(os.lstat(path).st_mode):
        for name in sorted(os.listdir(path)):
            sub = os.path.join(path, name)
            if os.fsencode(sub).decode(errors='replace') not in mounts and not stat.S_ISSOCK(os.lstat(sub).st_mode): walk(sub)
sys.stdout.reconfigure(errors='surrogateescape')
walk(root)
`;

/** One line per file below `root`. Reads as root, without writing anything into the sandbox. */
export async function fingerprint(d, url, root = '/') {
  const r = await d.post(`${url}/exec`, { argv: ['sudo', 'python3', '-B', '-c', PROGRAM, root], max_output: 64 << 20 });
  assert.equal(r.exit_code, 0, r.stderr);
  assert.ok(!r.stdout_truncated, 'the fingerprint is longer than one answer');
  return r.stdout.trimEnd().split('\n');
}

/** Fails with the first lines that differ. */
export function sameFiles(got, want) {
  const a = new Set(got);
  const b = new Set(want);
  const missing = want.filter((l) => !a.has(l));
  const extra = got.filter((l) => !b.has(l));
  assert.deepEqual([missing.slice(0, 20), extra.slice(0, 20)], [[], []], `${missing.length} missing, ${extra.length} not expected`);
}

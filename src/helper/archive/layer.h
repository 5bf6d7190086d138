/* layer.h - the writable layer of a root: what differs from its template. See wire/archive.h.
 *
 * Nothing inside a sandbox shows the layer itself, so it is found by comparing: the same walk over
 * a root made from the template gives the base, and a file is unchanged if everything the kernel
 * says of it is the same. That includes the time of its last change (ctime), which nothing inside
 * can set, and the number of its inode: a file that was written, renamed, linked or given another
 * mode has been copied up and so has a new ctime.
 *
 * Other mounts are left out, as are sockets and device nodes. */
#ifndef HELPER_ARCHIVE_LAYER_H
#define HELPER_ARCHIVE_LAYER_H

#include <stdint.h>

#include "base/err.h"
#include "base/sha256.h"

/* What the kernel says of a file; followed by its path when written. Both ends are one program. */
struct layer_file {
    uint64_t ino, size;
    int64_t mtime_s, ctime_s;
    uint32_t mtime_ns, ctime_ns, mode, uid, gid, len; /* len: of the path */
};

/* `dir` and `name` lead to it; `path` is below the root, "" for the root itself. */
struct layer_entry {
    struct layer_file is;
    int dir;
    const char *name, *path;
};

typedef int layer_each(void *arg, const struct layer_entry *en, struct err *e);
/* Every file of this root, a directory before its content, names in byte order. */
int layer_walk(layer_each *each, void *arg, struct err *e);

/* The digest of a list: what another server can compare. Times of directories and changes of inodes
 * are not in it. */
struct layer_digest {
    struct sha256 hash;
};
void layer_digest_begin(struct layer_digest *d);
void layer_digest_add(struct layer_digest *d, const struct layer_file *f, const char *path);

/* Exit statuses. */
int layer_list_main(int argc, char **argv);
int layer_pack_main(int argc, char **argv);
int layer_put_main(int argc, char **argv);

#endif

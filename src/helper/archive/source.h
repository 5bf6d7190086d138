/* source.h - reads a file and decompresses it.
 *
 * gzip and zstd are recognized by their first bytes. Both the stored bytes (the digest of a
 * blob) and the decompressed bytes (the diff id of a layer) are hashed on the way, so nothing
 * is read twice. A truncated file, or bytes after its end, are errors. */
#ifndef HELPER_ARCHIVE_SOURCE_H
#define HELPER_ARCHIVE_SOURCE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/sha256.h"

struct source;

/* `fd` is borrowed and read from its current offset. If `stop` is not NULL and a signal
 * handler sets *stop, reading fails with ERR_GONE: the client is gone, and end of file does
 * not mean that the archive is complete. NULL with `e`. */
struct source *source_open(int fd, const volatile sig_atomic_t *stop, struct err *e);
/* Nothing is hashed, and source_digests() means nothing: for bytes that were checked before. */
void source_no_digests(struct source *s);
/* What was read is given back to the file system, for a file that is read only this once: `fd` must
 * be writable. Where a file cannot have holes nothing is given back. */
void source_eat(struct source *s);
#define SOURCE_PIECE (4u << 20) /* given back at once */
/* Called after each read of the fd, for progress. */
void source_watch(struct source *s, void (*on_read)(void *arg), void *arg);
void source_close(struct source *s); /* NULL is fine */
#define autosource __attribute__((cleanup(source_drop)))
void source_drop(struct source **s);

/* Up to `n` decompressed bytes; 0 at the end. ERR_INVALID if the data is damaged. */
ssize_t source_read(struct source *s, void *to, size_t n, struct err *e);
/* Reads to the end, so that the digests cover everything. */
int source_finish(struct source *s, struct err *e);
/* Of the stored and of the decompressed bytes. Call once, after source_finish(). */
void source_digests(struct source *s, char stored[SHA256_HEX], char plain[SHA256_HEX]);

/* Stored bytes read so far. */
unsigned long long source_done(const struct source *s);
/* Zero bytes at the end of the decompressed bytes so far. */
size_t source_zeros(const struct source *s);

#endif

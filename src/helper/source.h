/* source.h - the bytes of a file, decompressed if they are compressed.
 *
 * gzip and zstd are told by their first bytes. Both sides are hashed on the way:
 * what is stored (a blob's digest) and what comes out of it (a layer's diff id),
 * so nothing is read twice to be verified. What ends too early, or has bytes
 * behind its end, is an error. */
#ifndef HELPER_SOURCE_H
#define HELPER_SOURCE_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/sha256.h"

struct source;

/* `fd` is borrowed, and read from where it stands. NULL when out of memory. Once
 * *stop (or NULL) is set, by a signal, reading ends with ERR_GONE: whoever wrote the
 * other end is gone, and the end is not the end. */
struct source *source_open(int fd, const volatile sig_atomic_t *stop, struct err *e);
void source_close(struct source *s); /* NULL is fine */
#define autosource __attribute__((cleanup(source_drop)))
void source_drop(struct source **s);

/* Up to `n` decompressed bytes; 0 at the end. ERR_INVALID: not what it claims. */
ssize_t source_read(struct source *s, void *to, size_t n, struct err *e);
/* Reads to the end: only then are the digests those of everything. */
int source_finish(struct source *s, struct err *e);
/* Of what was stored, and of what came out. Once, after source_finish(). */
void source_digests(struct source *s, char stored[SHA256_HEX], char plain[SHA256_HEX]);

/* How many of the stored bytes were read. */
unsigned long long source_done(const struct source *s);
/* How many zero bytes the decompressed ones end with. */
size_t source_zeros(const struct source *s);

#endif

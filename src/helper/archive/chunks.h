/* chunks.h - cuts a stream into chunks at places that its content decides, compresses each and
 * writes it as a frame (wire/archive.h).
 *
 * A rolling hash over the last 64 bytes decides: bytes that were inserted or removed change the
 * chunk they are in and at most the next one. */
#ifndef HELPER_ARCHIVE_CHUNKS_H
#define HELPER_ARCHIVE_CHUNKS_H

#include <stddef.h>

#include "base/err.h"
#include "wire/archive.h"

struct chunks;

/* Frames of that kind go to stdout. NULL with `e`. */
struct chunks *chunks_new(enum archive_frame kind, struct err *e);
void chunks_free(struct chunks *c); /* NULL is fine */
int chunks_add(struct chunks *c, const void *p, size_t n, struct err *e);
/* The rest is the last chunk. */
int chunks_end(struct chunks *c, struct err *e);

int frame_write(enum archive_frame kind, const void *p, size_t n, struct err *e);

#endif

/* base.h - the list of a template's files (layer-list), in memory and searched by path. */
#ifndef HELPER_ARCHIVE_BASE_H
#define HELPER_ARCHIVE_BASE_H

#include "base/buf.h"
#include "helper/archive/layer.h"

struct base;

/* Reads all of the fd. NULL with `e`. */
struct base *base_read(int fd, struct err *e);
void base_free(struct base *b); /* NULL is fine */
/* The digest of the list. */
void base_digest(const struct base *b, char out[SHA256_HEX]);

/* True: the base has the same file. Marks the path as still there either way. */
bool base_has(struct base *b, const struct layer_entry *en);
/* The paths that are gone or of another type now, each with its NUL, without those below another
 * one of them. *ret_n counts them. */
int base_gone(struct base *b, struct buf *to, uint64_t *ret_n, struct err *e);

#endif

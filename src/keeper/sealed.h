/* sealed.h - the form of every record on disk.
 *
 *   u32 magic, u32 version, u32 len, u32 0, u64 sum, then `len` bytes of fields
 *
 * The fields are a row of a wire table (wire/wire.h), so they are only appended: an older release
 * skips fields it does not know, a newer one reads missing ones as zero or empty. A change that an
 * older release must not ignore raises `version`. The head never changes: the sum over head and
 * fields tells a record of a newer release from a damaged one. */
#ifndef KEEPER_SEALED_H
#define KEEPER_SEALED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/wire.h"

#define SEALED_HEAD 24u

enum sealed { SEALED_WHOLE, SEALED_DAMAGED, SEALED_NEWER };

struct sealed_kind {
    uint32_t magic, version;
    const struct wire_msg *fields;
};

/* Appends the record to `out`. */
int sealed_put(struct buf *out, const struct sealed_kind *kind, const void *msg, struct err *e);

/* Fills `msg`, whose strings then point into `p`. Bytes after the record are ignored. */
enum sealed sealed_get(const struct sealed_kind *kind, const char *p, size_t n, void *msg);

#endif

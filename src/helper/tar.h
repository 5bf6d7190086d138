/* tar.h - libarchive's tar reader over a source, and nothing else of libarchive. */
#ifndef HELPER_TAR_H
#define HELPER_TAR_H

#include <archive.h>
#include <archive_entry.h>

#include "base/err.h"
#include "helper/source.h"

struct tar {
    struct archive *a;
    struct source *from; /* borrowed */
    struct err e;        /* what the source said, if it failed */
    bool failed;
    char piece[64 << 10];
};

int tar_open(struct tar *t, struct source *from, struct err *e);
void tar_close(struct tar *t);
/* 1: an entry, which dies with the next call. 0: the end, which is also the end
 * of the source: the digests are complete. */
int tar_next(struct tar *t, struct archive_entry **ret, struct err *e);
/* The bytes of the entry, at `off`; 1, or 0 at the end. */
int tar_data(struct tar *t, const void **ret, size_t *ret_n, int64_t *ret_off, struct err *e);

#endif

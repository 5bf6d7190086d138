/* tar.h - the tar reader of libarchive on a source; no other format is enabled. */
#ifndef HELPER_ARCHIVE_TAR_H
#define HELPER_ARCHIVE_TAR_H

#include <archive.h>
#include <archive_entry.h>

#include "base/err.h"
#include "helper/archive/source.h"

struct tar {
    struct archive *a;
    struct source *from; /* borrowed */
    struct err e;        /* of the source, if `failed` */
    bool failed;
    char piece[64 << 10];
};

int tar_open(struct tar *t, struct source *from, struct err *e);
void tar_close(struct tar *t);
/* 1: an entry, valid until the next call. 0: the end; the source was read to its end too, so
 * its digests are complete. */
int tar_next(struct tar *t, struct archive_entry **ret, struct err *e);
/* 1: the next bytes of the entry, at offset *ret_off; 0: the end. */
int tar_data(struct tar *t, const void **ret, size_t *ret_n, int64_t *ret_off, struct err *e);

#endif

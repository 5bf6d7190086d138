/* members.h - the files of an outer archive (docker save, OCI layout), each in a
 * file of its own on the spool, found by name. */
#ifndef HELPER_MEMBERS_H
#define HELPER_MEMBERS_H

#include "base/err.h"
#include "helper/source.h"

#define MEMBERS_MAX 2048u     /* files of an outer archive */
#define MEMBERS_NAME_MAX 512u /* bytes of the name of one */

struct member;
struct members {
    int dir; /* where the files go; borrowed */
    struct member *list;
    unsigned n;
};

enum outer { OUTER_ROOTFS, OUTER_DOCKER, OUTER_OCI };

/* What is in the archive, by its names alone. */
int members_detect(struct source *from, enum outer *ret, struct err *e);
int members_extract(struct members *m, int dir, struct source *from, struct err *e);
void members_free(struct members *m);

/* An fd to read it from; belongs to the caller. ERR_INVALID if it is not there. */
int members_open(const struct members *m, const char *name, struct err *e);
/* The whole of a small one; belongs to the caller. `digest` (or "") is checked. */
int members_read(const struct members *m, const char *name, const char *digest, char **ret,
                 size_t *ret_len, struct err *e);
/* No longer needed: its disk space is. */
void members_remove(const struct members *m, const char *name);

#endif

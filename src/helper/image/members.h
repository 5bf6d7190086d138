/* members.h - the files of an outer archive (docker save, OCI layout): each is stored in a
 * file of its own in the spool, and found by name. */
#ifndef HELPER_IMAGE_MEMBERS_H
#define HELPER_IMAGE_MEMBERS_H

#include "base/err.h"
#include "helper/archive/source.h"

#define MEMBERS_MAX 2048u     /* files of an outer archive */
#define MEMBERS_NAME_MAX 512u /* bytes of the name of one */

struct member;
struct members {
    int dir; /* the spool; borrowed */
    struct member *list;
    unsigned n;
};

enum outer { OUTER_ROOTFS, OUTER_DOCKER, OUTER_OCI };

/* Detects the format by the names in the archive. */
int members_detect(struct source *from, enum outer *ret, struct err *e);
int members_extract(struct members *m, int dir, struct source *from, struct err *e);
void members_free(struct members *m);

/* Opens a file for reading, and for source_eat(); the fd belongs to the caller. ERR_INVALID if it
 * does not exist. */
int members_open(const struct members *m, const char *name, struct err *e);
/* Reads a small file whole; *ret belongs to the caller. `digest` is verified unless "". */
int members_read(const struct members *m, const char *name, const char *digest, char **ret,
                 size_t *ret_len, struct err *e);
/* Whether both names mean the same file: `docker save` stores equal layers once, and links. */
bool members_same(const struct members *m, const char *a, const char *b);
/* Removes a file that is not needed any more, to free disk space. */
void members_remove(const struct members *m, const char *name);

#endif

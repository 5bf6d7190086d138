/* vault.h - where the bytes of archives are: named blobs, in a directory or a bucket.
 *
 * All calls block and are made from threads (JOB_STORE), several at a time. Each ends after the
 * time limits of its kind at the latest. Names are SPACE/KIND/NAME, made by us only.
 *
 * EXTEND  Another store: a file like vault_dir.c, and a row in vault.c. */
#ifndef FRONT_ENGINE_ARCHIVES_VAULT_H
#define FRONT_ENGINE_ARCHIVES_VAULT_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/err.h"
#include "config/config.h"

#define VAULT_NAME_MAX 160u

struct vault;
struct vault_kind {
    const char *name;
    /* Durable, and whole or not at all, when it returns. Replaces a blob of that name. */
    int (*put)(struct vault *v, const char *name, const void *p, size_t n, struct err *e);
    /* All of it, appended to `to`; ERR_NOT_FOUND; ERR_INTERNAL if it is larger than to->max. */
    int (*get)(struct vault *v, const char *name, struct buf *to, struct err *e);
    /* One that is missing is fine. */
    int (*remove)(struct vault *v, const char *name, struct err *e);
    /* The names of SPACE/KIND, without those. Removes what was left by puts that did not end: no
     * put may be under way in that space. `each` returns -1 to end it. */
    int (*list)(struct vault *v, const char *space, const char *kind,
                int (*each)(void *arg, const char *name, struct err *e), void *arg, struct err *e);
    void (*free)(struct vault *v);
};

struct vault {
    const struct vault_kind *kind;
    atomic_uint refs;
};

/* By the settings. `state_fd` is DIR/front. The last vault_unref() frees it. */
int vault_open(const struct config *c, int state_fd, struct vault **ret, struct err *e);
struct vault *vault_ref(struct vault *v);
void vault_unref(struct vault *v); /* NULL is fine */

#define VAULT_S3 "s3://"
int vault_s3_open(const struct config *c, struct vault **ret, struct err *e);
int vault_dir_open(const char *path, int state_fd, struct vault **ret, struct err *e);

#endif

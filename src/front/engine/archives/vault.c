/* vault.c - see vault.h: which store the settings mean. */
#include "front/engine/archives/vault.h"

#include <string.h>

struct vault *vault_ref(struct vault *v)
{
    atomic_fetch_add(&v->refs, 1);
    return v;
}

void vault_unref(struct vault *v)
{
    if (v != NULL && atomic_fetch_sub(&v->refs, 1) == 1)
        v->kind->free(v);
}

int vault_open(const struct config *c, int state_fd, struct vault **ret, struct err *e)
{
    if (c->archives[0] == '\0' || c->archives[0] == '/')
        return vault_dir_open(c->archives, state_fd, ret, e);
    if (strncmp(c->archives, VAULT_S3, strlen(VAULT_S3)) == 0)
        return vault_s3_open(c, ret, e);
    return err_set(e, ERR_INVALID, "archives: '%.100s' is neither an absolute path nor s3://BUCKET",
                   c->archives);
}

/* blob.c - chunks and manifests in the store, each checked by its digest. Called from threads. */
#include <string.h>

#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/archives/internal.h"

void blob_name(char out[VAULT_NAME_MAX], const char *space, const char *kind, const char *digest)
{
    str_fmt(out, VAULT_NAME_MAX, "%s/%s/%s", space, kind, digest);
}

int blob_get(struct vault *v, const char *space, const char *kind, const char *digest,
             struct buf *to, struct err *e)
{
    char name[VAULT_NAME_MAX], have[SHA256_HEX];

    blob_name(name, space, kind, digest);
    if (v->kind->get(v, name, to, e) < 0)
        return -1;
    manifest_digest(buf_data(to), to->len, have);
    if (strcmp(have, digest) == 0)
        return 0;
    return err_set(e, ERR_INTERNAL, "%s is damaged: its SHA-256 is %.16s..., in %zu bytes", name,
                   have, to->len);
}

/* Reading back proves what the store acknowledged. */
int blob_put(struct vault *v, const char *space, const char *kind, const void *p, size_t n,
             char digest[SHA256_HEX], struct err *e)
{
    autobuf struct buf back = BUF_INIT(n + 1);
    char name[VAULT_NAME_MAX];

    manifest_digest(p, n, digest);
    blob_name(name, space, kind, digest);
    if (blob_get(v, space, kind, digest, &back, e) == 0)
        return 0;
    if (e->kind == ERR_INTERNAL)
        log_warn("archives: stored again: %s", e->msg);
    else if (e->kind != ERR_NOT_FOUND)
        return -1;
    if (v->kind->put(v, name, p, n, e) < 0)
        return -1;
    buf_free(&back);
    return blob_get(v, space, kind, digest, &back, e) < 0
               ? err_wrap(e, "read back what was just stored")
               : 0;
}

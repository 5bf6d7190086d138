/* adopt.c - takes an archive that is in the store but has no row here. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/archives/internal.h"
#include "mem/mem.h"

struct adopt {
    struct list link;
    struct job job;
    struct archives *as; /* on the loop only, like the next ones */
    struct space *own;   /* counted in its puts; or NULL */
    archive_cb *cb;
    void *arg;
    struct vault *vault;
    char key[ENGINE_KEY_MAX + 1], owner[ARCHIVE_OWNER_MAX + 1], space[ARCHIVE_SPACE + 1];
    char digest[SHA256_HEX];
    struct manifest m;
    struct loop_later later;
    bool failed;
    struct err e;
};

static void adopt_free(struct adopt *a)
{
    vault_unref(a->vault);
    manifest_free(&a->m);
    free(a);
}

static void run(struct job *w)
{
    struct adopt *a = CONTAINER_OF(w, struct adopt, job);
    autobuf struct buf text = BUF_INIT(MANIFEST_BYTES_MAX);

    a->failed = blob_get(a->vault, a->space, BLOB_MANIFESTS, a->digest, &text, &a->e) < 0 ||
                manifest_read(buf_data(&text), text.len, &a->m, &a->e) < 0;
}

static const struct archive *keep(struct adopt *a, struct err *e)
{
    struct store_archive row = {.key = a->key,
                                .owner = a->owner,
                                .digest = a->digest,
                                .space = a->space,
                                .template = a->m.template,
                                .base = a->m.base,
                                .entries = a->m.entries,
                                .bytes = a->m.bytes,
                                .stored = manifest_stored(&a->m),
                                .created_ms = a->m.created_ms};
    struct quotas more = {{[QUOTA_archives] = row.stored}};
    struct kept *k = kept_find(a->as, a->key, a->owner, a->digest);

    if (k != NULL)
        return &k->pub;
    if (quota_check(quota_user(a->as->g->o.quotas, a->key), &more, e) < 0)
        return NULL;
    return kept_add(a->as, &row, e);
}

static void end(struct adopt *a)
{
    struct archives *as = a->as;
    const struct archive *got = a->failed ? NULL : keep(a, &a->e);

    if (a->own != NULL)
        space_put_ended(a->own);
    list_del(&a->link);
    if (got == NULL)
        err_wrap(&a->e, "adopt the archive");
    a->cb(a->arg, got, got == NULL ? &a->e : NULL);
    adopt_free(a);
    packs_kick(as);
}

static void done(struct job *w)
{
    end(CONTAINER_OF(w, struct adopt, job));
}

static void drop(struct job *w)
{
    adopt_free(CONTAINER_OF(w, struct adopt, job));
}

static void fail_later(struct loop_later *l)
{
    end(CONTAINER_OF(l, struct adopt, later));
}

static int check(struct adopt *a, const char *space, const char *digest, struct err *e)
{
    struct space *sp;

    if (strlen(space) != ARCHIVE_SPACE ||
        strspn(space, "abcdefghijklmnopqrstuvwxyz0123456789") != ARCHIVE_SPACE ||
        strlen(digest) != SHA256_HEX - 1 || strspn(digest, "0123456789abcdef") != SHA256_HEX - 1)
        return err_set(e, ERR_INVALID,
                       "malformed: an archive has a space of %u characters and a "
                       "SHA-256 in hex",
                       ARCHIVE_SPACE);
    LIST_EACH (&a->as->spaces, sp, struct space, link) {
        if (strcmp(sp->name, space) != 0)
            continue;
        if (strcmp(sp->key, a->key) != 0)
            return err_set(e, ERR_NOT_FOUND, "the store has no such archive");
        if (sp->collecting)
            return err_set(e, ERR_UNAVAILABLE, "unused archives are being removed; try again");
        a->own = sp;
    }
    return archives_vault(a->as, e) == NULL ? -1 : 0;
}

void engine_archive_adopt(struct engine *g, const char *key, const char *owner, const char *space,
                          const char *digest, archive_cb *cb, void *arg)
{
    struct adopt *a = mem_zeroed(1, sizeof(*a));

    a->as = g->archives;
    a->cb = cb;
    a->arg = arg;
    str_fmt(a->key, sizeof(a->key), "%s", key);
    str_fmt(a->owner, sizeof(a->owner), "%.*s", (int)ARCHIVE_OWNER_MAX, owner);
    list_add_tail(&a->as->adopting, &a->link);
    a->failed = check(a, space, digest, &a->e) < 0;
    if (a->own != NULL)
        a->own->puts++;
    if (a->failed) {
        loop_defer(g->loop, &a->later, fail_later);
        return;
    }
    str_fmt(a->space, sizeof(a->space), "%s", space);
    str_fmt(a->digest, sizeof(a->digest), "%s", digest);
    a->vault = vault_ref(a->as->vault);
    a->job.lane = JOB_STORE;
    a->job.share = job_share(key);
    a->job.drop = drop;
    job_start(g->loop, &a->job, run, done);
}

/* Those whose job runs are freed with the loop. */
void adopts_free(struct archives *as)
{
    struct adopt *a;

    LIST_EACH (&as->adopting, a, struct adopt, link) {
        list_del(&a->link);
        loop_undefer(&a->later);
        if (a->vault == NULL)
            adopt_free(a);
    }
}

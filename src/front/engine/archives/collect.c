/* collect.c - removes from a key's part of the store what none of its archives uses.
 *
 * A chunk is used if a manifest of an archive that has a row, or that is being restored, has it. If
 * one of those manifests cannot be read, nothing is removed: what it uses is unknown. Nothing is put
 * into the part meanwhile, so what is not used now stays so. A kill in the middle leaves some of it
 * for the next time. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/archives/internal.h"
#include "mem/mem.h"

#define NAMES_MAX (64u << 20) /* bytes of names removed by one run; the next takes the rest */

struct collect {
    struct list link;
    struct job job;
    struct space *space; /* on the loop only */
    struct vault *vault;
    char name[ARCHIVE_SPACE + 1];
    struct buf manifests; /* digests of live ones, each with its NUL */
    struct buf chunks;    /* of live ones: SHA256_HEX bytes each, sorted before use */
    struct buf names;     /* to be removed */
    const struct buf *live;
    size_t removed;
    bool failed;
    struct err e;
};

static void collect_free(struct collect *c)
{
    vault_unref(c->vault);
    buf_free(&c->manifests);
    buf_free(&c->chunks);
    buf_free(&c->names);
    free(c);
}

/* ---- in a thread ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int add_chunks(struct collect *c, const char *digest, struct err *e)
{
    autobuf struct buf text = BUF_INIT(MANIFEST_BYTES_MAX);
    struct manifest m;

    if (blob_get(c->vault, c->name, BLOB_MANIFESTS, digest, &text, e) < 0 ||
        manifest_read(buf_data(&text), text.len, &m, e) < 0)
        return err_wrap(e, "nothing is collected, since an archive cannot be read");
    for (int i = 0; i < MANIFEST_PARTS; i++)
        for (size_t j = 0; j < m.parts[i].n; j++)
            buf_add(&c->chunks, m.parts[i].v[j].digest, SHA256_HEX);
    manifest_free(&m);
    return c->chunks.failed ? err_set(e, ERR_INTERNAL, "out of memory") : 0;
}

static int on_name(void *arg, const char *name, struct err *e)
{
    struct collect *c = arg;

    (void)e;
    if (c->live->len > 0 && strlen(name) == SHA256_HEX - 1 &&
        bsearch(name, buf_data(c->live), c->live->len / SHA256_HEX, SHA256_HEX, by_name) != NULL)
        return 0;
    if (c->names.len < NAMES_MAX / 2)
        buf_add(&c->names, name, strlen(name) + 1);
    return 0;
}

static int sweep(struct collect *c, const char *kind, struct buf *live, struct err *e)
{
    char path[VAULT_NAME_MAX];
    const char *p;

    if (live->len > 0)
        qsort(buf_data(live), live->len / SHA256_HEX, SHA256_HEX, by_name);
    c->live = live;
    buf_clear(&c->names);
    if (c->vault->kind->list(c->vault, c->name, kind, on_name, c, e) < 0)
        return -1;
    p = buf_data(&c->names);
    for (size_t at = 0; at < c->names.len; at += strlen(p + at) + 1) {
        if (strlen(p + at) > SHA256_HEX)
            continue; /* not ours */
        blob_name(path, c->name, kind, p + at);
        if (c->vault->kind->remove(c->vault, path, e) < 0)
            return -1;
        c->removed++;
    }
    return 0;
}

static void run(struct job *w)
{
    struct collect *c = CONTAINER_OF(w, struct collect, job);
    const char *p = buf_data(&c->manifests);

    for (size_t at = 0; !c->failed && at < c->manifests.len; at += SHA256_HEX)
        c->failed = add_chunks(c, p + at, &c->e) < 0;
    if (!c->failed)
        c->failed = sweep(c, BLOB_MANIFESTS, &c->manifests, &c->e) < 0 ||
                    sweep(c, BLOB_CHUNKS, &c->chunks, &c->e) < 0;
}

/* ---- on the loop ---- */

static void done(struct job *w)
{
    struct collect *c = CONTAINER_OF(w, struct collect, job);
    struct space *sp = c->space;

    space_collected(sp);
    if (c->failed)
        log_error("archives of key %s: %s", sp->key, c->e.msg);
    else if (c->removed > 0)
        log_debug("archives of key %s: %zu unused files were removed", sp->key, c->removed);
    list_del(&c->link);
    collect_free(c);
    packs_kick(sp->as);
}

static void drop(struct job *w)
{
    collect_free(CONTAINER_OF(w, struct collect, job));
}

void collect_begin(struct space *sp)
{
    struct archives *as = sp->as;
    struct collect *c;
    struct kept *k;
    struct err e;

    sp->dirty = false;
    if (archives_vault(as, &e) == NULL) {
        log_error("archives: %s", e.msg);
        return;
    }
    c = mem_zeroed(1, sizeof(*c));
    buf_init(&c->manifests, NAMES_MAX);
    buf_init(&c->chunks, 1u << 30);
    buf_init(&c->names, NAMES_MAX);
    LIST_EACH (&as->all, k, struct kept, link)
        if (strcmp(k->pub.space, sp->name) == 0)
            buf_add(&c->manifests, k->pub.digest, SHA256_HEX);
    c->space = sp;
    c->vault = vault_ref(as->vault);
    str_fmt(c->name, sizeof(c->name), "%s", sp->name);
    sp->collecting = true;
    list_add_tail(&as->collecting, &c->link);
    c->job.lane = JOB_STORE;
    c->job.share = job_share(sp->key);
    c->job.drop = drop;
    job_start(as->g->loop, &c->job, run, done);
}

/* Those that run are freed with the loop. */
void collects_free(struct archives *as)
{
    struct collect *c;

    LIST_EACH (&as->collecting, c, struct collect, link)
        list_del(&c->link);
}

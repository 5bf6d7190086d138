/* archives.c - see archives.h: which archives there are, whose, and where. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/archives/internal.h"
#include "mem/mem.h"

#define TIDY_MS 20000u /* after the start, what a killed front left is collected */

/* ---- spaces ---- */

struct vault *archives_vault(struct archives *as, struct err *e)
{
    struct engine *g = as->g;

    if (as->vault == NULL && vault_open(g->o.config, g->o.state_fd, &as->vault, e) < 0)
        return NULL;
    return as->vault;
}

static struct space *space_add(struct archives *as, const char *key, const char *name)
{
    struct space *sp = mem_zeroed(1, sizeof(*sp));

    sp->as = as;
    str_fmt(sp->key, sizeof(sp->key), "%s", key);
    str_fmt(sp->name, sizeof(sp->name), "%s", name);
    list_add_tail(&as->spaces, &sp->link);
    return sp;
}

struct space *space_of(struct archives *as, const char *key, bool make, struct err *e)
{
    char name[ARCHIVE_SPACE + 1];
    struct space *sp;

    LIST_EACH (&as->spaces, sp, struct space, link)
        if (strcmp(sp->key, key) == 0)
            return sp;
    if (!make)
        return NULL;
    id_random(name, ARCHIVE_SPACE);
    if (store_space_put(as->g->o.store, key, name, e) < 0)
        return NULL;
    return space_add(as, key, name);
}

static void collect_soon(struct loop_later *l)
{
    struct space *sp = CONTAINER_OF(l, struct space, soon);

    if (sp->dirty && sp->puts == 0 && !sp->collecting)
        collect_begin(sp);
}

static void space_dirty(struct space *sp)
{
    sp->dirty = true;
    if (!sp->soon.queued)
        loop_defer(sp->as->g->loop, &sp->soon, collect_soon);
}

void space_collected(struct space *sp)
{
    sp->collecting = false;
    if (sp->dirty)
        space_dirty(sp);
}

void space_put_ended(struct space *sp)
{
    sp->puts--;
    space_dirty(sp);
}

/* ---- archives in memory ---- */

static const char *keep(char **at, const char *text)
{
    char *to = *at;

    *at = stpcpy(to, text) + 1;
    return to;
}

static struct quotas cost(uint64_t stored)
{
    return (struct quotas){{[QUOTA_archives] = stored}};
}

static struct kept *kept_new(struct archives *as, const struct store_archive *row)
{
    size_t len = strlen(row->key) + strlen(row->owner) + strlen(row->digest) + strlen(row->space) +
                 strlen(row->template) + strlen(row->base) + 6;
    struct kept *k = mem_zeroed(1, sizeof(*k) + len);
    struct quotas charge = cost(row->stored);
    char *at = k->text;

    k->seq = row->seq;
    k->pub = (struct archive){.key = keep(&at, row->key),
                              .owner = keep(&at, row->owner),
                              .digest = keep(&at, row->digest),
                              .space = keep(&at, row->space),
                              .template = keep(&at, row->template),
                              .base = keep(&at, row->base),
                              .entries = row->entries,
                              .bytes = row->bytes,
                              .stored = row->stored,
                              .created_ms = row->created_ms};
    k->user = quota_user(as->g->o.quotas, row->key);
    quota_add(k->user, &charge);
    list_add_tail(&as->all, &k->link);
    return k;
}

static void kept_free(struct kept *k)
{
    list_del(&k->link);
    free(k);
}

/* Its row is deleted. */
static void kept_gone(struct kept *k)
{
    struct quotas charge = cost(k->pub.stored);

    quota_drop(k->user, &charge);
    k->gone = true;
    if (k->users == 0)
        kept_free(k);
}

void kept_unuse(struct archives *as, struct kept *k)
{
    struct space *sp;
    struct err e;

    if (--k->users > 0 || !k->gone)
        return;
    sp = space_of(as, k->pub.key, false, &e);
    kept_free(k);
    if (sp != NULL)
        space_dirty(sp);
}

struct kept *kept_find(struct archives *as, const char *key, const char *owner, const char *digest)
{
    struct kept *k, *newest = NULL;

    LIST_EACH (&as->all, k, struct kept, link)
        if (!k->gone && strcmp(k->pub.key, key) == 0 && strcmp(k->pub.owner, owner) == 0 &&
            (digest == NULL || strcmp(k->pub.digest, digest) == 0))
            newest = k;
    return newest;
}

static bool is_of(const struct kept *k, const char *key, const char *owner)
{
    return !k->gone && strcmp(k->pub.key, key) == 0 && strcmp(k->pub.owner, owner) == 0;
}

/* How many of that owner there are. */
static size_t kept_count(struct archives *as, const char *key, const char *owner)
{
    struct kept *k;
    size_t n = 0;

    LIST_EACH (&as->all, k, struct kept, link)
        n += is_of(k, key, owner);
    return n;
}

/* Calls `each` for all but the newest `most`. */
static int kept_older(struct archives *as, const char *key, const char *owner, size_t most,
                      int (*each)(struct archives *as, struct kept *k, struct err *e),
                      struct err *e)
{
    size_t n = kept_count(as, key, owner);
    struct list *l = as->all.next;

    while (n > most && l != &as->all) {
        struct kept *k = CONTAINER_OF(l, struct kept, link);

        l = l->next;
        if (!is_of(k, key, owner))
            continue;
        if (each(as, k, e) < 0)
            return -1;
        n--;
    }
    return 0;
}

static int drop_row(struct archives *as, struct kept *k, struct err *e)
{
    return store_archive_delete(as->g->o.store, k->seq, e);
}

static int drop_kept(struct archives *as, struct kept *k, struct err *e)
{
    (void)as;
    (void)e;
    kept_gone(k);
    return 0;
}

const struct archive *kept_add(struct archives *as, const struct store_archive *row, struct err *e)
{
    struct store *s = as->g->o.store;
    struct store_archive new = *row;

    if (store_begin(s, e) < 0)
        return NULL;
    if (store_archive_insert(s, &new, e) < 0 ||
        kept_older(as, row->key, row->owner, ARCHIVE_KEPT - 1, drop_row, e) < 0 ||
        store_commit(s, e) < 0) {
        store_rollback(s);
        return NULL;
    }
    kept_older(as, row->key, row->owner, ARCHIVE_KEPT - 1, drop_kept, e);
    return &kept_new(as, &new)->pub;
}

/* ---- what callers ask ---- */

const struct archive *engine_archive_get(struct engine *g, const char *key, const char *owner,
                                         const char *digest)
{
    struct kept *k = kept_find(g->archives, key, owner, digest);

    return k == NULL ? NULL : &k->pub;
}

void engine_archives(struct engine *g, const char *key, const char *owner,
                     void (*each)(void *arg, const struct archive *a), void *arg)
{
    struct archives *as = g->archives;

    for (struct list *l = as->all.prev; l != &as->all; l = l->prev) {
        struct kept *k = CONTAINER_OF(l, struct kept, link);

        if (is_of(k, key, owner))
            each(arg, &k->pub);
    }
}

const char *engine_archive_store(const struct engine *g)
{
    const char *where = g->o.config->archives;

    return where[0] == '\0' || where[0] == '/' ? "directory" : "s3";
}

static int delete_rows(struct archives *as, const char *key, const char *owner, const char *digest,
                       struct err *e)
{
    struct store *s = as->g->o.store;
    struct kept *k;

    if (store_begin(s, e) < 0)
        return -1;
    LIST_EACH (&as->all, k, struct kept, link)
        if (is_of(k, key, owner) && (digest == NULL || strcmp(k->pub.digest, digest) == 0) &&
            drop_row(as, k, e) < 0) {
            store_rollback(s);
            return -1;
        }
    if (store_commit(s, e) == 0)
        return 0;
    store_rollback(s);
    return -1;
}

void engine_archives_delete(struct engine *g, const char *key, const char *owner,
                            const char *digest, engine_done_cb *cb, void *arg)
{
    struct waiter *w = waiter_new(g, cb, NULL, arg);
    struct archives *as = g->archives;
    struct space *sp;
    struct kept *k;
    struct err e;

    if (delete_rows(as, key, owner, digest, &e) < 0) {
        waiter_answer(w, "", &e);
        return;
    }
    LIST_EACH (&as->all, k, struct kept, link)
        if (is_of(k, key, owner) && (digest == NULL || strcmp(k->pub.digest, digest) == 0))
            kept_gone(k);
    sp = space_of(as, key, false, &e);
    if (sp != NULL)
        space_dirty(sp);
    waiter_answer(w, "", NULL);
}

/* ---- start and end ---- */

static int on_row(void *arg, const struct store_archive *row, struct err *e)
{
    (void)e;
    kept_new(arg, row);
    return 0;
}

static void on_space(void *arg, const char *key, const char *name)
{
    space_add(arg, key, name);
}

static void on_tidy(struct loop_timer *t)
{
    struct archives *as = CONTAINER_OF(t, struct archives, tidy);
    struct space *sp;

    LIST_EACH (&as->spaces, sp, struct space, link)
        space_dirty(sp);
}

int archives_new(struct engine *g, struct err *e)
{
    struct archives *as = g->archives = mem_zeroed(1, sizeof(*as));

    as->g = g;
    list_init(&as->all);
    list_init(&as->spaces);
    list_init(&as->packing);
    list_init(&as->packs_waiting);
    list_init(&as->restoring);
    list_init(&as->restores_waiting);
    list_init(&as->collecting);
    list_init(&as->adopting);
    if (store_archive_each(g->o.store, on_row, as, e) < 0 ||
        store_space_each(g->o.store, on_space, as, e) < 0)
        return -1;
    if (!list_empty(&as->spaces))
        loop_timer_set(g->loop, &as->tidy, TIDY_MS, on_tidy);
    return 0;
}

void archives_free(struct engine *g)
{
    struct archives *as = g->archives;
    struct space *sp;
    struct kept *k;

    if (as == NULL)
        return;
    loop_timer_stop(g->loop, &as->tidy);
    packs_free(as);
    restores_free(as);
    collects_free(as);
    adopts_free(as);
    LIST_EACH (&as->all, k, struct kept, link)
        kept_free(k);
    LIST_EACH (&as->spaces, sp, struct space, link) {
        loop_undefer(&sp->soon);
        list_del(&sp->link);
        free(sp);
    }
    vault_unref(as->vault);
    free(as);
    g->archives = NULL;
}

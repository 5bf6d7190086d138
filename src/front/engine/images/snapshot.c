/* snapshot.c - see snapshot.h.
 *
 * The keeper takes a snapshot before its row is written. One without a row, after a crash in
 * between, is deleted at the next start. */
#include "front/engine/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

struct snap {
    struct list link; /* oldest first */
    struct snapshot pub;
    uint64_t seq;
    bool seen; /* by the join: the keeper has it */
    struct quota_user *user;
    char text[];
};

static const char *keep(char **at, const char *text)
{
    char *to = *at;

    *at = stpcpy(to, text) + 1;
    return to;
}

static struct quotas cost(uint64_t bytes)
{
    return (struct quotas){{[QUOTA_snapshots] = 1, [QUOTA_disk] = bytes}};
}

int snap_may_add(const struct quota_user *u, uint64_t bytes, struct err *e)
{
    struct quotas more = cost(bytes);

    return quota_check(u, &more, e) < 0 ? err_wrap(e, "a snapshot") : 0;
}

static struct snap *snap_add(struct engine *g, const struct store_snapshot *row)
{
    size_t len = strlen(row->id) + strlen(row->key) + strlen(row->name) + strlen(row->sandbox) +
                 strlen(row->template) + 5;
    struct snap *s = mem_zeroed(1, sizeof(*s) + len);
    char *at = s->text;
    struct quotas charge = cost(row->bytes);

    s->user = quota_user(g->o.quotas, row->key);
    quota_add(s->user, &charge);
    s->seq = row->seq;
    s->pub = (struct snapshot){.id = keep(&at, row->id),
                               .key = keep(&at, row->key),
                               .name = keep(&at, row->name),
                               .sandbox = keep(&at, row->sandbox),
                               .template = keep(&at, row->template),
                               .bytes = row->bytes,
                               .created_ms = row->created_ms};
    list_add_tail(&g->snaps, &s->link);
    return s;
}

static void snap_free(struct snap *s)
{
    struct quotas charge = cost(s->pub.bytes);

    quota_drop(s->user, &charge);
    list_del(&s->link);
    free(s);
}

void snapshots_free(struct engine *g)
{
    struct snap *s;

    LIST_EACH (&g->snaps, s, struct snap, link)
        snap_free(s);
}

static struct snap *snap_by_id(struct engine *g, const char *id)
{
    struct snap *s;

    LIST_EACH (&g->snaps, s, struct snap, link)
        if (strcmp(s->pub.id, id) == 0)
            return s;
    return NULL;
}

const struct snapshot *snap_pub(struct engine *g, const char *id)
{
    struct snap *s = snap_by_id(g, id);

    return s == NULL ? NULL : &s->pub;
}

const struct snapshot *engine_snapshot_get(struct ref ref)
{
    struct snap *s = snap_by_id(ref.engine, ref.id);
    const struct snapshot *newest = NULL;

    if (s != NULL && strcmp(s->pub.key, ref.key) == 0)
        return &s->pub;
    if (*ref.id == '\0')
        return NULL;
    LIST_EACH (&ref.engine->snaps, s, struct snap, link)
        if (strcmp(s->pub.name, ref.id) == 0 && strcmp(s->pub.key, ref.key) == 0)
            newest = &s->pub;
    return newest;
}

/* ---- taking ---- */

struct take {
    struct engine *g;
    struct waiter *waiter;   /* NULL once the client was told that the snapshot timed out */
    struct quota_user *user; /* charged while it is under way */
    struct quotas charged;
    char key[ENGINE_KEY_MAX + 1], name[SNAPSHOT_NAME_MAX + 1];
};

static void on_forgotten(void *arg, const void *msg, const struct err *e)
{
    (void)arg;
    (void)msg;
    if (e != NULL && e->kind != ERR_NOT_FOUND)
        log_error("cannot delete an unused snapshot: %s", e->msg);
}

void snap_forget(struct engine *g, const char *id)
{
    static const struct keeper_asker asker = {.last = on_forgotten};

    keeper_ask(g->keeper, KEEPER_UNSNAP, &(struct keeper_unsnap){.id = id}, &asker, NULL);
}

static int keep_row(struct take *t, const struct keeper_snap *m, struct err *e)
{
    struct store_snapshot row = {.id = m->id,
                                 .key = t->key,
                                 .name = t->name,
                                 .sandbox = m->sandbox,
                                 .template = m->template,
                                 .bytes = m->bytes,
                                 .created_ms = m->created_ms};
    struct box *b = box_find(t->g, m->sandbox);

    if (t->waiter == NULL)
        return err_set(e, ERR_UNAVAILABLE, "the snapshot timed out");
    if (!id_is_valid(m->id, KEEPER_ID_MAX) || snap_by_id(t->g, m->id) != NULL)
        return err_set(e, ERR_INTERNAL, "invalid snapshot id '%s' from the keeper", m->id);
    if (store_snapshot_insert(t->g->o.store, &row, e) < 0)
        return -1;
    snap_add(t->g, &row);
    if (b != NULL)
        events_say(t->g, b, "sandbox.snapshot", "snapshot", m->id);
    return 0;
}

static void on_taken(void *arg, const void *msg, const struct err *why)
{
    const struct keeper_snap *m = msg;
    struct take *t = arg;
    struct err e;

    quota_drop(t->user, &t->charged);
    if (why != NULL) {
        waiter_answer(t->waiter, "", why);
    } else if (keep_row(t, m, &e) == 0) {
        join_told(t->g, m->id);
        waiter_answer(t->waiter, m->id, NULL);
    } else {
        snap_forget(t->g, m->id);
        waiter_answer(t->waiter, "", &e);
    }
    free(t);
}

static void on_take_late(void *arg, const struct err *e)
{
    struct take *t = arg;

    waiter_answer(take_ptr(&t->waiter), "", e);
}

static void take_drop(void *arg)
{
    free(((struct take *)arg)->waiter);
    free(arg);
}

/* The sandbox if a snapshot can be taken of it now. */
struct box *box_to_snapshot(struct ref ref, struct err *e)
{
    struct box *b = box_of(ref);

    if (b == NULL)
        err_set(e, ERR_NOT_FOUND, "no sandbox %.64s", ref.id);
    else if (b->life == LIFE_DAMAGED)
        life_fail_damaged(b, e);
    else if (b->life != LIFE_RUNNING && b->life != LIFE_PAUSED && b->life != LIFE_STOPPED)
        err_set(e, ERR_CONFLICT, "sandbox %s is %s; try again", ref.id, life_doing(b));
    else
        return b;
    return NULL;
}

int snap_check_name(const char *name, struct err *e)
{
    if (strlen(name) > SNAPSHOT_NAME_MAX)
        return err_set(e, ERR_INVALID, "name: more than %u bytes", SNAPSHOT_NAME_MAX);
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return err_set(e, ERR_INVALID, "name: must not contain spaces or control characters");
    return 0;
}

void engine_snapshot(struct ref ref, const char *name, snapshot_cb *cb, void *arg)
{
    static const struct keeper_asker asker = {
        .last = on_taken, .late = on_take_late, .drop = take_drop};
    struct waiter *w = waiter_new(ref.engine, NULL, NULL, arg);
    struct take *t;
    struct err e;
    struct box *b = box_to_snapshot(ref, &e);

    w->snapped = cb;
    if (b == NULL || snap_check_name(name == NULL ? "" : name, &e) < 0 ||
        snap_may_add(b->user, b->metric.disk, &e) < 0) {
        waiter_answer(w, "", &e);
        return;
    }
    t = mem_zeroed(1, sizeof(*t));
    t->g = ref.engine;
    t->waiter = w;
    t->user = b->user;
    t->charged = cost(b->metric.disk); /* its size is known when it is there */
    quota_add(t->user, &t->charged);
    str_fmt(t->key, sizeof(t->key), "%s", b->pub.key);
    str_fmt(t->name, sizeof(t->name), "%s", name == NULL ? "" : name);
    keeper_ask(ref.engine->keeper, KEEPER_SNAPSHOT, &(struct keeper_snapshot){.id = b->pub.id},
               &asker, t);
}

const struct snapshot *snap_imported(struct engine *g, const char *key, const char *name,
                                     const char *id, uint64_t bytes, struct err *e)
{
    struct store_snapshot row = {.id = id,
                                 .key = key,
                                 .name = name,
                                 .sandbox = "",
                                 .template = "imported",
                                 .bytes = bytes,
                                 .created_ms = clock_real_ms()};

    if (store_snapshot_insert(g->o.store, &row, e) < 0)
        return NULL;
    join_told(g, id);
    return &snap_add(g, &row)->pub;
}

/* ---- deleting ---- */

/* The row first: a snapshot without one is let go at the next start. */
void engine_snapshot_delete(struct ref ref, engine_done_cb *cb, void *arg)
{
    struct waiter *w = waiter_new(ref.engine, cb, NULL, arg);
    struct snap *s = snap_by_id(ref.engine, ref.id);
    struct err e;

    if (s == NULL || strcmp(s->pub.key, ref.key) != 0) {
        waiter_fail(w, ERR_NOT_FOUND, "no snapshot %.64s", ref.id);
        return;
    }
    if (store_snapshot_delete(ref.engine->o.store, ref.id, &e) < 0) {
        waiter_answer(w, "", &e);
        return;
    }
    snap_forget(ref.engine, s->pub.id);
    snap_free(s);
    waiter_answer(w, "", NULL);
}

/* ---- list ---- */

#define CURSOR_LEN 17 /* 's' and the last seq of the page in hex */

static int cursor_read(const char *text, uint64_t *ret, struct err *e)
{
    *ret = UINT64_MAX;
    if (text == NULL)
        return 0;
    if (strlen(text) != CURSOR_LEN || text[0] != 's' ||
        strspn(text + 1, "0123456789abcdef") != CURSOR_LEN - 1)
        return err_set(e, ERR_INVALID, "cursor: expected next_cursor of the previous page");
    *ret = strtoull(text + 1, NULL, 16);
    return 0;
}

static bool is_listed(const struct snap *s, const struct snapshot_list_opts *o, uint64_t before)
{
    return s->seq < before && strcmp(s->pub.key, o->key) == 0 &&
           (o->sandbox == NULL || strcmp(s->pub.sandbox, o->sandbox) == 0) &&
           (o->name == NULL || strcmp(s->pub.name, o->name) == 0);
}

int engine_snapshots(struct engine *g, const struct snapshot_list_opts *o,
                     void (*each)(void *arg, const struct snapshot *s), void *arg, char **ret_next,
                     struct err *e)
{
    uint64_t before, last = 0;
    size_t told = 0;

    *ret_next = NULL;
    if (cursor_read(o->after, &before, e) < 0)
        return -1;
    for (struct list *l = g->snaps.prev; l != &g->snaps; l = l->prev) {
        struct snap *s = CONTAINER_OF(l, struct snap, link);

        if (!is_listed(s, o, before))
            continue;
        if (told == o->limit) {
            *ret_next = mem_format("s%016llx", (unsigned long long)last);
            return 0;
        }
        each(arg, &s->pub);
        last = s->seq;
        told++;
    }
    return 0;
}

/* ---- at start ---- */

static int on_row(void *arg, const struct store_snapshot *row, struct err *e)
{
    (void)e;
    snap_add(arg, row);
    return 0;
}

/* As join.c does it for sandboxes. */
static struct snap *rescue(struct engine *g, const struct keeper_snap *m)
{
    struct store_snapshot row = {.id = m->id,
                                 .key = g->o.first_key,
                                 .name = "",
                                 .sandbox = m->sandbox,
                                 .template = m->template,
                                 .bytes = m->bytes,
                                 .created_ms = m->created_ms};
    struct err e;

    if (store_snapshot_insert(g->o.store, &row, &e) < 0) {
        log_error("join: %s", e.msg);
        return NULL;
    }
    return snap_add(g, &row);
}

static void on_there(void *arg, const void *msg)
{
    const struct keeper_snap *m = msg;
    struct engine *g = arg;
    struct snap *s = snap_by_id(g, m->id);

    if (s == NULL && join_is_orphan(g, m->told != 0)) {
        s = g->joined || g->rescue ? rescue(g, m) : NULL;
        if (s == NULL)
            return;
    }
    if (s != NULL && !m->told)
        join_told(g, m->id);
    if (s != NULL) {
        s->seen = true;
        s->pub.damaged = m->damaged != 0;
    } else {
        snap_forget(g, m->id);
    }
}

static void on_all(void *arg, const void *msg, const struct err *why)
{
    struct engine *g = arg;
    struct snap *s;
    struct err e;

    (void)msg;
    if (why != NULL) {
        e = *why;
        err_wrap(&e, "the keeper's snapshots");
        g->o.on_lost(g->o.arg, &e);
        return;
    }
    LIST_EACH (&g->snaps, s, struct snap, link) {
        if (s->seen)
            continue;
        log_warn("snapshot %s is gone", s->pub.id);
        if (store_snapshot_delete(g->o.store, s->pub.id, &e) < 0)
            log_error("join: %s", e.msg);
        snap_free(s);
    }
    join_done(g);
}

int snapshots_join(struct engine *g, struct err *e)
{
    static const struct keeper_asker asker = {.each = on_there, .last = on_all};
    struct keeper_snapshots ask = {0};

    if (store_snapshot_each(g->o.store, on_row, g, e) < 0)
        return -1;
    keeper_ask(g->keeper, KEEPER_SNAPSHOTS, &ask, &asker, g);
    return 0;
}

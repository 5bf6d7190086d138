/* join.c - at start: what clients were told meets what exists.
 *
 * The rows are read first, then the keeper is asked for its list. Every pair of
 * what a row says and what the keeper has is a cell of the table below. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/own.h"
#include "front/engine/life.h"

enum join_row { ROW_NONE, ROW_RUNNING, ROW_PAUSED, ROW_STOPPED, ROW_DELETING, ROW_COUNT };
enum join_has { HAS_NOTHING, HAS_RUNNING, HAS_PAUSED, HAS_STOPPED, HAS_COUNT };

/* A row that says deleting is no sandbox any more; only its id is kept. */
struct doomed {
    struct map_node node;
    struct doomed *next;
    bool seen;
    char id[KEEPER_ID_MAX + 1];
};

struct join {
    struct engine *g;
    struct map deleting;
    struct doomed *doomed;
};

struct pair {
    struct join *j;
    struct box *b;
    const char *id;
    const struct keeper_sandbox *m;
};

typedef void join_action(const struct pair *p);

static void record(struct box *b, enum store_state state, const char *boot_id, const char *reason)
{
    static const enum sandbox_state states[STORE_STATE_COUNT] = {[STORE_RUNNING] = SANDBOX_RUNNING,
                                                                 [STORE_PAUSED] = SANDBOX_PAUSED,
                                                                 [STORE_STOPPED] = SANDBOX_STOPPED,
                                                                 [STORE_DELETING] =
                                                                     SANDBOX_STOPPED};
    struct err e;

    box_set_state(b, states[state], boot_id, reason);
    b->pub.changed_ms = clock_real_ms();
    if (life_save(b, state, &e) < 0)
        log_error("join: %s", e.msg);
}

/* It has an init: we are on speaking terms with it again. */
static void meet(const struct pair *p)
{
    p->b->pub.address = p->m->address;
    if (p->b->pub.nrules > 0)
        network_reapply(p->b);
    monitor_start(p->b);
    journal_start(p->b);
}

static void adopt(const struct pair *p)
{
    p->b->life = LIFE_RUNNING;
    if (p->b->pub.state != SANDBOX_RUNNING || strcmp(p->b->boot_id, p->m->boot_id) != 0)
        record(p->b, STORE_RUNNING, p->m->boot_id, "");
    meet(p);
}

/* A paused one has no end. */
static void adopt_paused(const struct pair *p)
{
    p->b->life = LIFE_PAUSED;
    if (p->b->pub.state != SANDBOX_PAUSED) {
        p->b->pub.ends_ms = 0;
        record(p->b, STORE_PAUSED, p->m->boot_id, "");
    }
    meet(p);
}

/* We were killed between a resume and its row, and know no more for how long. One that is
 * stopped may have been given an end; a paused one has none. */
static void adopt_resumed(const struct pair *p)
{
    struct sandbox *s = &p->b->pub;

    if (s->ends_ms == 0 && s->timeout_ms != 0)
        s->ends_ms = clock_real_ms() + s->timeout_ms;
    adopt(p);
}

static void stop(const struct pair *p)
{
    const char *reason = p->m != NULL ? p->m->reason : "the sandbox was gone when Cove started";

    p->b->life = LIFE_STOPPED;
    record(p->b, STORE_STOPPED, p->b->boot_id, reason);
    events_say(p->b->g, p->b, "sandbox.stopped", "reason", p->b->reason);
}

/* It was paused with its memory, which is gone. */
static void lose_memory(const struct pair *p)
{
    struct keeper_sandbox m = {.reason = "it is gone"};
    char reason[ENGINE_REASON_MAX];

    snprintf(reason, sizeof(reason), "%.400s while it was paused: its processes are lost",
             p->m != NULL ? p->m->reason : m.reason);
    m.reason = reason;
    stop(&(struct pair){.j = p->j, .b = p->b, .id = p->id, .m = &m});
}

static void leave(const struct pair *p)
{
    (void)p;
}

static void destroy(const struct pair *p)
{
    log_info("join: sandbox %s is not to be: destroyed", p->id);
    life_destroy_leftover(p->j->g, p->id);
}

static void forget(const struct pair *p)
{
    struct err e;

    if (store_sandbox_delete(p->j->g->o.store, p->id, &e) < 0)
        log_error("join: %s", e.msg);
}

/* ROW_STOPPED with a running sandbox: we were killed between its boot and the
 * row. Whether one is paused the kernel says, and the row follows. Nothing and
 * nothing never meet. */
/* clang-format off */
static join_action *const actions[ROW_COUNT][HAS_COUNT] = {
    [ROW_NONE]     = {[HAS_NOTHING] = leave,  [HAS_RUNNING] = destroy,     [HAS_PAUSED] = destroy,      [HAS_STOPPED] = destroy},
    [ROW_RUNNING]  = {[HAS_NOTHING] = stop,   [HAS_RUNNING] = adopt,       [HAS_PAUSED] = adopt_paused, [HAS_STOPPED] = stop},
    [ROW_PAUSED]   = {[HAS_NOTHING] = lose_memory, [HAS_RUNNING] = adopt_resumed, [HAS_PAUSED] = adopt_paused, [HAS_STOPPED] = lose_memory},
    [ROW_STOPPED]  = {[HAS_NOTHING] = leave,  [HAS_RUNNING] = adopt_resumed, [HAS_PAUSED] = adopt_paused, [HAS_STOPPED] = leave},
    [ROW_DELETING] = {[HAS_NOTHING] = forget, [HAS_RUNNING] = destroy,     [HAS_PAUSED] = destroy,      [HAS_STOPPED] = destroy},
};
/* clang-format on */

/* ---- the rows ---- */

static int add_deleting(struct join *j, const char *id, struct err *e)
{
    struct doomed *d = calloc(1, sizeof(*d));

    if (d == NULL)
        return err_set(e, ERR_INTERNAL, "join: out of memory");
    strncpy(d->id, id, KEEPER_ID_MAX);
    d->next = j->doomed;
    j->doomed = d;
    return map_put(&j->deleting, &d->node, d->id) < 0
               ? err_set(e, ERR_INTERNAL, "join: out of memory")
               : 0;
}

static int on_row(void *arg, const struct store_sandbox *row, struct err *e)
{
    struct join *j = arg;

    if (row->state >= STORE_STATE_COUNT || row->on_timeout >= SANDBOX_END_COUNT ||
        !id_is_valid(row->id, KEEPER_ID_MAX))
        return err_set(e, ERR_INTERNAL, "database: row %llu is not a sandbox",
                       (unsigned long long)row->seq);
    if (rules_check(&(struct wire_bytes){row->rules.p, (uint32_t)row->rules.len}, e) < 0)
        return err_wrap(e, "database: sandbox %s", row->id);
    if (row->state == STORE_DELETING)
        return add_deleting(j, row->id, e);
    return box_add(j->g, row) == NULL ? err_set(e, ERR_INTERNAL, "join: out of memory") : 0;
}

/* ---- the keeper's list ---- */

static enum join_row row_of(const struct box *b)
{
    static const enum join_row rows[SANDBOX_STATE_COUNT] = {[SANDBOX_RUNNING] = ROW_RUNNING,
                                                            [SANDBOX_PAUSED] = ROW_PAUSED,
                                                            [SANDBOX_STOPPED] = ROW_STOPPED};

    return rows[b->pub.state];
}

static void on_sandbox(void *arg, const void *msg)
{
    static const enum join_has has[] = {[KEEPER_RUNNING] = HAS_RUNNING,
                                        [KEEPER_STOPPED] = HAS_STOPPED,
                                        [KEEPER_PAUSED] = HAS_PAUSED};
    const struct keeper_sandbox *m = msg;
    struct join *j = arg;
    struct map_node *n = map_get(&j->deleting, m->id);
    struct pair p = {.j = j, .b = box_find(j->g, m->id), .id = m->id, .m = m};
    enum join_row row = ROW_NONE;

    if (n != NULL) {
        row = ROW_DELETING;
        CONTAINER_OF(n, struct doomed, node)->seen = true;
    } else if (p.b != NULL) {
        row = row_of(p.b);
        p.b->seen = true;
    }
    actions[row][has[m->state]](&p);
}

/* Rows of which the keeper said nothing. */
static void sweep(struct join *j)
{
    struct engine *g = j->g;

    for (struct doomed *d = j->doomed; d != NULL; d = d->next) {
        struct pair p = {.j = j, .id = d->id};

        if (!d->seen)
            actions[ROW_DELETING][HAS_NOTHING](&p);
    }
    for (size_t i = 0; i < g->norder; i++) {
        struct box *b = g->order[i];
        struct pair p = {.j = j, .b = b, .id = b->pub.id};

        if (!b->seen)
            actions[row_of(b)][HAS_NOTHING](&p);
    }
}

static void join_free(void *arg)
{
    struct join *j = arg;

    for (struct doomed *d = j->doomed, *next; d != NULL; d = next) {
        next = d->next;
        free(d);
    }
    map_free(&j->deleting);
    free(j);
}

static void on_end(void *arg, const void *msg, const struct err *why)
{
    struct join *j = arg;
    struct engine *g = j->g;
    struct err e;

    (void)msg;
    if (why != NULL) {
        e = *why;
        err_wrap(&e, "the keeper's list");
        join_free(j);
        g->o.on_lost(g->o.arg, &e);
        return;
    }
    /* One flush for all; without it each change is flushed alone. */
    if (store_begin(g->o.store, &e) < 0)
        log_warn("join: %s", e.msg);
    sweep(j);
    if (store_commit(g->o.store, &e) < 0)
        log_warn("join: %s", e.msg);
    join_free(j);
    join_done(g);
}

void join_done(struct engine *g)
{
    if (--g->joining > 0)
        return;
    /* Only now: an end that passed while nobody watched deletes at once. */
    for (size_t i = 0; i < g->norder; i++)
        life_arm(g->order[i]);
    g->ready = true;
    metrics_start(g);
    log_info("%zu sandboxes", g->norder);
    g->o.on_ready(g->o.arg);
}

int join_start(struct engine *g, struct err *e)
{
    static const struct keeper_asker asker = {
        .each = on_sandbox, .last = on_end, .drop = join_free};
    struct join *j = calloc(1, sizeof(*j));
    struct keeper_list ask = {0};

    if (j == NULL)
        return err_set(e, ERR_INTERNAL, "join: out of memory");
    j->g = g;
    map_init(&j->deleting);
    if (store_sandbox_each(g->o.store, on_row, j, e) < 0) {
        join_free(j);
        return -1;
    }
    g->joining = 2;
    keeper_ask(g->keeper, KEEPER_LIST, &ask, &asker, j);
    return snapshots_join(g, e);
}

/* join.c - at start: what clients were told meets what exists.
 *
 * The rows are read first, then the keeper is asked for its list. Every pair of
 * what a row says and what the keeper has is a cell of the table below.
 *
 * A database that has never been joined and yet meets sandboxes is one that was lost and made anew.
 * Nothing is destroyed then: the start is refused, or, if the operator accepts the loss, rows
 * are made from what the keeper knows. A row alone may be lost too (a damaged log of SQLite, an
 * older database put back): a sandbox that a client was told of gets such a row in any case. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/own.h"
#include "front/engine/image.h"
#include "front/engine/sandbox/life.h"
#include "mem/mem.h"

enum join_row { ROW_NONE, ROW_RUNNING, ROW_PAUSED, ROW_STOPPED, ROW_DELETING, ROW_COUNT };
enum join_has { HAS_NOTHING, HAS_RUNNING, HAS_PAUSED, HAS_STOPPED, HAS_DAMAGED, HAS_COUNT };

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

/* The row stays as it is: it is what the sandbox may become again. */
static void quarantine(const struct pair *p)
{
    log_error("join: sandbox %s is damaged: %s", p->id, p->m->reason);
    p->b->life = LIFE_DAMAGED;
    box_set_state(p->b, SANDBOX_DAMAGED, p->b->boot_id, p->m->reason);
    events_say(p->b->g, p->b, "sandbox.damaged", "reason", p->b->reason);
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

/* A client is told of a sandbox when its row is on the disk: one without a row is one that no
 * client knows. ROW_STOPPED with a running sandbox: we were killed between its boot and the
 * row. Whether one is paused the kernel says, and the row follows. Nothing and
 * nothing never meet. */
/* clang-format off */
static join_action *const actions[ROW_COUNT][HAS_COUNT] = {
    [ROW_NONE]     = {[HAS_NOTHING] = leave,  [HAS_RUNNING] = destroy,     [HAS_PAUSED] = destroy,      [HAS_STOPPED] = destroy, [HAS_DAMAGED] = destroy},
    [ROW_RUNNING]  = {[HAS_NOTHING] = stop,   [HAS_RUNNING] = adopt,       [HAS_PAUSED] = adopt_paused, [HAS_STOPPED] = stop, [HAS_DAMAGED] = quarantine},
    [ROW_PAUSED]   = {[HAS_NOTHING] = lose_memory, [HAS_RUNNING] = adopt_resumed, [HAS_PAUSED] = adopt_paused, [HAS_STOPPED] = lose_memory, [HAS_DAMAGED] = quarantine},
    [ROW_STOPPED]  = {[HAS_NOTHING] = leave,  [HAS_RUNNING] = adopt_resumed, [HAS_PAUSED] = adopt_paused, [HAS_STOPPED] = leave, [HAS_DAMAGED] = quarantine},
    [ROW_DELETING] = {[HAS_NOTHING] = forget, [HAS_RUNNING] = destroy,     [HAS_PAUSED] = destroy,      [HAS_STOPPED] = destroy, [HAS_DAMAGED] = destroy},
};
/* clang-format on */

/* ---- the rows ---- */

static void add_deleting(struct join *j, const char *id)
{
    struct doomed *d = mem_zeroed(1, sizeof(*d));

    strncpy(d->id, id, KEEPER_ID_MAX);
    d->next = j->doomed;
    j->doomed = d;
    mem_put(&j->deleting, &d->node, d->id);
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
        add_deleting(j, row->id);
    else
        box_add(j->g, row);
    return 0;
}

/* ---- a lost database ---- */

void join_told(struct engine *g, const char *id)
{
    keeper_tell(g->keeper, KEEPER_TOLD, &(struct keeper_told){.id = id});
}

bool join_is_orphan(struct engine *g, bool told)
{
    g->norphans += !g->joined;
    return !g->joined || told;
}

/* Its name, metadata, environment and rules were in the database. */
static struct box *rescue(struct engine *g, const struct keeper_sandbox *m, struct err *e)
{
    static const enum store_state states[] = {[KEEPER_RUNNING] = STORE_RUNNING,
                                              [KEEPER_STOPPED] = STORE_STOPPED,
                                              [KEEPER_PAUSED] = STORE_PAUSED,
                                              [KEEPER_DAMAGED] = STORE_STOPPED};
    autobuf struct buf image = BUF_INIT(IMAGE_SETTINGS_MAX);
    struct store_sandbox row = {.id = m->id,
                                .key = g->o.first_key,
                                .state = states[m->state],
                                .template = m->template,
                                .network = m->network,
                                .metadata = "{}",
                                .env = {"", 0},
                                .created_ms = m->created_ms,
                                .changed_ms = m->created_ms,
                                .boot_id = m->boot_id,
                                .reason = m->reason,
                                .rules = {"", 0},
                                .plane = "",
                                .name = "",
                                .snapshot = "",
                                .log_boot = "",
                                .relaxed = m->relaxed,
                                .lost_ms = m->lost_ms};

    LIMITS_COPY(&row, m);
    LIMITS_DEFAULT(&row, g->o.config); /* those of a damaged one are not known */
    if (m->settings.len > 0 && image_defaults(m->settings.p, m->settings.len, &image, e) < 0)
        return NULL;
    row.image = (struct store_bytes){buf_data(&image), image.len};
    if (store_sandbox_insert(g->o.store, &row, e) < 0)
        return NULL;
    if (!g->o.host)
        log_warn("join: sandbox %s has no row: it is given to key %s", m->id, g->o.first_key);
    return box_add(g, &row);
}

/* Host mode: a server that is started again may have another user, directory and environment. */
static void take_machine(struct box *b, const struct keeper_sandbox *m)
{
    struct buf *to = &b->g->machine;
    struct err e;

    buf_free(to);
    buf_init(to, 2 * IMAGE_SETTINGS_MAX);
    if (image_defaults(m->settings.p, m->settings.len, to, &e) < 0 || to->failed) {
        log_error("join: settings of the machine: %s", e.msg);
        return;
    }
    b->pub.image = buf_data(to);
    b->pub.image_len = to->len;
}

/* ---- the keeper's list ---- */

static enum join_row row_of(const struct box *b)
{
    static const enum join_row rows[SANDBOX_STATE_COUNT] = {[SANDBOX_RUNNING] = ROW_RUNNING,
                                                            [SANDBOX_PAUSED] = ROW_PAUSED,
                                                            [SANDBOX_STOPPED] = ROW_STOPPED,
                                                            [SANDBOX_DAMAGED] = ROW_STOPPED};

    return rows[b->pub.state];
}

static void on_sandbox(void *arg, const void *msg)
{
    static const enum join_has has[] = {[KEEPER_RUNNING] = HAS_RUNNING,
                                        [KEEPER_STOPPED] = HAS_STOPPED,
                                        [KEEPER_PAUSED] = HAS_PAUSED,
                                        [KEEPER_DAMAGED] = HAS_DAMAGED};
    const struct keeper_sandbox *m = msg;
    struct join *j = arg;
    struct map_node *n = map_get(&j->deleting, m->id);
    struct pair p = {.j = j, .b = box_find(j->g, m->id), .id = m->id, .m = m};
    enum join_row row = ROW_NONE;
    struct err e;

    if (n == NULL && p.b == NULL && join_is_orphan(j->g, m->told != 0)) {
        p.b = j->g->joined || j->g->rescue ? rescue(j->g, m, &e) : NULL;
        if (p.b == NULL) { /* the start is refused, or the next one tries again */
            log_error("join: sandbox %s has no row and is left alone%s%s", m->id,
                      j->g->rescue ? ": " : "", j->g->rescue ? e.msg : "");
            return;
        }
    }
    if (p.b != NULL && j->g->o.host)
        take_machine(p.b, m);
    if (p.b != NULL && !m->told)
        join_told(j->g, m->id);
    if (n != NULL) {
        row = ROW_DELETING;
        CONTAINER_OF(n, struct doomed, node)->seen = true;
    } else if (p.b != NULL) {
        row = row_of(p.b);
        p.b->seen = true;
    }
    actions[row][has[m->state]](&p);
    if (n == NULL && p.b != NULL)
        life_note_lost(p.b, m->lost_ms);
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

/* Durable before anything is made: from then on what has no row was never told of. */
static int end_join(struct engine *g, struct err *e)
{
    if (g->joined)
        return 0;
    if (g->norphans > 0 && !g->rescue)
        return err_set(
            e, ERR_CONFLICT,
            "database: it is new, but %zu sandboxes and snapshots exist: the old one was "
            "lost. Put DIR/front/cove.db back from a backup, or give them to the first "
            "key, without names, metadata and environment: `cove serve --accept "
            "lost-database`",
            g->norphans);
    return store_set_joined(g->o.store, e);
}

void join_done(struct engine *g)
{
    struct err e;

    if (--g->joining > 0)
        return;
    if (end_join(g, &e) < 0) {
        g->o.on_lost(g->o.arg, &e);
        return;
    }
    /* Only now: a lifetime that ended while the front was down deletes at once. */
    for (size_t i = 0; i < g->norder; i++) {
        box_charge(g->order[i]);
        life_arm(g->order[i]);
    }
    g->ready = true;
    logbook_start(g);
    metrics_start(g);
    log_info("%zu sandboxes", g->norder);
    g->o.on_ready(g->o.arg);
}

int join_start(struct engine *g, struct err *e)
{
    static const struct keeper_asker asker = {
        .each = on_sandbox, .last = on_end, .drop = join_free};
    struct join *j = mem_zeroed(1, sizeof(*j));
    struct keeper_list ask = {0};

    j->g = g;
    if (store_is_joined(g->o.store, &g->joined, e) < 0) {
        free(j);
        return -1;
    }
    g->rescue = !g->joined && (g->o.host || config_accepts(g->o.config, "lost-database"));
    ask.settings = g->rescue || g->o.host;
    map_init(&j->deleting);
    if (store_sandbox_each(g->o.store, on_row, j, e) < 0 || templates_join(g, e) < 0) {
        join_free(j);
        return -1;
    }
    g->joining = 2;
    keeper_ask(g->keeper, KEEPER_LIST, &ask, &asker, j);
    return snapshots_join(g, e);
}

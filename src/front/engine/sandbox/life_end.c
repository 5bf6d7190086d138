/* life_end.c - deletes a sandbox: the row says `deleting`, durably; then the keeper destroys it; then
 * the row is deleted. A crash in between ends the same way. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/own.h"
#include "front/engine/sandbox/life.h"
#include "mem/mem.h"

#define LIFE_BURY_MS 300        /* rows of the deleted are removed together */
#define LIFE_BURY_AGAIN_MS 1000 /* after the store refused */

static void on_destroyed(void *arg, const void *msg, const struct err *e)
{
    struct life_news n = {.err = e};
    bool gone = e == NULL || e->kind == ERR_NOT_FOUND;

    (void)msg;
    life_event(arg, gone ? LIFE_DESTROYED : LIFE_DESTROY_FAILED, &n);
}

static const struct keeper_asker destroyer = {.last = on_destroyed, .late = life_late};

static void on_durable(struct flush *w, const struct err *e)
{
    struct box *b = CONTAINER_OF(w, struct box, flush);
    struct keeper_destroy ask = {.id = b->pub.id};

    if (e != NULL)
        on_destroyed(b, NULL, e);
    else
        keeper_ask(b->g->keeper, KEEPER_DESTROY, &ask, &destroyer, b);
}

void life_destroy(struct box *b, const struct life_news *n)
{
    (void)n;
    b->life = LIFE_DELETING;
    flush_then(b->g->flusher, &b->flush, on_durable);
}

static int mark_deleting(struct box *b, const struct life_news *n)
{
    struct store *s = b->g->o.store;
    struct err e;

    list_del(&b->unsaved);
    if (store_begin_light(s, &e) == 0 && life_save(b, STORE_DELETING, &e) == 0 &&
        store_commit(s, &e) == 0)
        return 0;
    store_rollback(s);
    log_error("delete: %s", e.msg);
    waiter_answer(n->waiter, b->pub.id, &e);
    return -1;
}

void life_silence(struct box *b, const char *what)
{
    struct err why;

    err_set(&why, ERR_GONE, "sandbox %s %s", b->pub.id, what);
    box_leave(b);
    monitor_stop(b);
    journal_stop(b);
    talk_peer_reset(&b->peer, &why);
}

/* Before its row says `deleting`, from which there is no way back. */
static void refuse_machine(struct box *b, const struct life_news *n)
{
    struct err e;

    err_set(
        &e, ERR_UNSUPPORTED,
        "delete sandbox %s: it is the machine that this server runs on; stop `cove host` to end "
        "what it started",
        b->pub.id);
    waiter_answer(n->waiter, b->pub.id, &e);
}

void life_end_it(struct box *b, const struct life_news *n)
{
    if (b->g->o.host) {
        refuse_machine(b, n);
        return;
    }
    if (mark_deleting(b, n) < 0)
        return;
    name_detach(b);
    loop_timer_stop(b->g->loop, &b->end);
    life_silence(b, "was deleted");
    life_wait(b, n);
    life_destroy(b, n);
}

void life_doom(struct box *b, const struct life_news *n)
{
    struct err e;

    if (mark_deleting(b, n) < 0)
        return;
    name_detach(b);
    loop_timer_stop(b->g->loop, &b->end);
    err_set(&e, ERR_GONE, "sandbox %s was deleted", b->pub.id);
    life_call_next(b);
    life_answer(b, &e);
    life_silence(b, "was deleted");
    life_wait(b, n);
    b->life = LIFE_DOOMED;
}

static void on_bury(struct loop_timer *t);

/* A row that cannot be removed yet still says `deleting`: the next start would do it, too. */
static void remove_rows(struct flush *w, const struct err *why)
{
    struct engine *g = CONTAINER_OF(w, struct engine, burying);
    struct wire_strv ids = wire_strv_of(&g->graves_flushed);
    const char *id;
    uint32_t at = 0;
    struct err e;
    int r = -1;

    if (why != NULL)
        e = *why;
    else
        r = store_begin_light(g->o.store, &e);
    while (r == 0 && (id = wire_strv_next(&ids, &at)) != NULL)
        r = store_sandbox_delete(g->o.store, id, &e);
    r = r == 0 ? store_commit(g->o.store, &e) : r;
    if (r == 0) {
        buf_clear(&g->graves_flushed);
    } else {
        store_rollback(g->o.store);
        log_warn("rows of deleted sandboxes: %s", e.msg);
    }
    if (g->graves.len + g->graves_flushed.len > 0)
        loop_timer_set(g->loop, &g->bury, r == 0 ? LIFE_BURY_MS : LIFE_BURY_AGAIN_MS, on_bury);
}

/* Not before the keeper's records are on the disk: should the host fail, a record from before
 * the delete beside no row at all would be that of a sandbox whose row was lost. */
static void on_bury(struct loop_timer *t)
{
    struct engine *g = CONTAINER_OF(t, struct engine, bury);
    struct buf empty = BUF_INIT(ENGINE_GRAVES_MAX);

    if (g->graves_flushed.len == 0) {
        buf_free(&g->graves_flushed);
        g->graves_flushed = g->graves;
        g->graves = empty;
    }
    g->burying.records = true;
    flush_then(g->flusher, &g->burying, remove_rows);
}

static void bury(struct engine *g, const char *id)
{
    wire_strv_add(&g->graves, id);
    if (g->bury.slot == 0 && list_empty(&g->burying.link))
        loop_timer_set(g->loop, &g->bury, LIFE_BURY_MS, on_bury);
}

void life_buried(struct box *b, const struct life_news *n)
{
    struct engine *g = b->g;

    (void)n;
    g->stats.deletes++;
    events_add(g, b, "sandbox.deleted", "{}");
    life_answer(b, NULL);
    bury(g, b->pub.id);
    box_free(b);
}

void life_stuck(struct box *b, const struct life_news *n)
{
    log_error("sandbox %s cannot be deleted: %s", b->pub.id, n->err->msg);
    b->life = LIFE_STUCK;
    box_set_state(b, SANDBOX_STOPPED, b->boot_id, "it could not be deleted yet");
    life_answer(b, n->err);
    life_again(b, LIFE_RETRY_MS);
}

/* ---- sandboxes without a row ---- */

struct leftover {
    struct engine *g;
    char id[KEEPER_ID_MAX + 1];
};

static void on_leftover(void *arg, const void *msg, const struct err *e)
{
    struct leftover *l = arg;

    (void)msg;
    if (e == NULL || e->kind == ERR_NOT_FOUND)
        bury(l->g, l->id);
    else
        log_error("cannot destroy sandbox %s, which has no row: %s", l->id, e->msg);
    free(l);
}

void life_destroy_leftover(struct engine *g, const char *id)
{
    static const struct keeper_asker asker = {.last = on_leftover, .drop = free};
    struct leftover *l = mem_zeroed(1, sizeof(*l));
    struct keeper_destroy ask = {.id = id};

    l->g = g;
    strncpy(l->id, id, KEEPER_ID_MAX);
    keeper_ask(g->keeper, KEEPER_DESTROY, &ask, &asker, l);
}

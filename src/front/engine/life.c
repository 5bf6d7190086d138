/* life.c - what happens to a sandbox when.
 *
 * One request to the keeper is under way for a sandbox at any time: what comes
 * in between waits, is refused, or is remembered as the state LIFE_DOOMED. The
 * order of deleting: the row says `deleting`, durably; then the keeper is asked;
 * then the row goes. A crash anywhere in between ends the same way. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "front/engine/inside.h"

#define LIFE_BURY_MS 50               /* rows of the deleted are removed together */
#define LIFE_ARM_MAX_MS (3600 * 1000) /* re-read the clock at least this often */
#define LIFE_LATER_MS 1000
#define LIFE_RETRY_MS 30000

typedef void reaction(struct box *b, const struct life_news *n);

static const char reason_timeout[] = "its timeout passed";

/* ---- who waits ---- */

static void wait_for_it(struct box *b, const struct life_news *n)
{
    if (n->waiter != NULL)
        list_add_tail(&b->waiters, &n->waiter->link);
}

static void answer_all(struct box *b, const struct err *e)
{
    struct waiter *w;

    while ((w = LIST_FIRST(&b->waiters, struct waiter, link)) != NULL)
        waiter_answer(w, b->pub.id, e);
}

static void on_late(void *arg, const struct err *e)
{
    answer_all(arg, e);
}

static void stale(struct box *b, const struct life_news *n)
{
    (void)b;
    (void)n;
}

static void refuse(struct box *b, const struct life_news *n)
{
    static const char *const doing[LIFE_COUNT] = {
        [LIFE_RUNNING] = "running",       [LIFE_STOPPED] = "stopped",
        [LIFE_BOOTING] = "being resumed", [LIFE_HALTING] = "being stopped",
        [LIFE_DOOMED] = "being deleted",  [LIFE_DELETING] = "being deleted",
        [LIFE_STUCK] = "being deleted",
    };

    waiter_fail(n->waiter, ERR_CONFLICT, "sandbox %s is %s", b->pub.id, doing[b->life]);
}

/* ---- time ---- */

static void on_end(struct loop_timer *t)
{
    struct box *b = CONTAINER_OF(t, struct box, end);
    struct life_news none = {0};

    if (b->life != LIFE_STUCK && clock_real_ms() < b->pub.ends_ms)
        life_arm(b);
    else
        life_event(b, LIFE_TIMEOUT, &none);
}

void life_arm(struct box *b)
{
    uint64_t now = clock_real_ms(), ms;

    loop_timer_stop(b->g->loop, &b->end);
    if (b->pub.ends_ms == 0)
        return;
    ms = b->pub.ends_ms > now ? b->pub.ends_ms - now : 0;
    loop_timer_set(b->g->loop, &b->end, ms > LIFE_ARM_MAX_MS ? LIFE_ARM_MAX_MS : ms, on_end);
}

static void later(struct box *b, const struct life_news *n)
{
    (void)n;
    loop_timer_set(b->g->loop, &b->end, LIFE_LATER_MS, on_end);
}

/* ---- deleting ---- */

static void on_destroyed(void *arg, const void *msg, const struct err *e)
{
    struct life_news n = {.err = e};
    bool gone = e == NULL || e->kind == ERR_NOT_FOUND;

    (void)msg;
    life_event(arg, gone ? LIFE_DESTROYED : LIFE_DESTROY_FAILED, &n);
}

static const struct keeper_asker destroyer = {.last = on_destroyed, .late = on_late};

static void destroy(struct box *b, const struct life_news *n)
{
    struct keeper_destroy ask = {.id = b->pub.id};

    (void)n;
    b->life = LIFE_DELETING;
    keeper_ask(b->g->keeper, KEEPER_DESTROY, &ask, &destroyer, b);
}

static int mark_deleting(struct box *b, const struct life_news *n)
{
    struct err e;

    if (store_sandbox_set_state(b->g->o.store, b->pub.id, STORE_DELETING, b->boot_id, b->reason,
                                &e) == 0)
        return 0;
    log_error("delete: %s", e.msg);
    waiter_answer(n->waiter, b->pub.id, &e);
    return -1;
}

static void silence(struct box *b, const char *what)
{
    struct err why;

    err_set(&why, ERR_GONE, "sandbox %s %s", b->pub.id, what);
    monitor_stop(b);
    talk_peer_reset(&b->peer, &why);
}

static void end_it(struct box *b, const struct life_news *n)
{
    if (mark_deleting(b, n) < 0)
        return;
    name_detach(b);
    loop_timer_stop(b->g->loop, &b->end);
    silence(b, "was deleted");
    wait_for_it(b, n);
    destroy(b, n);
}

static void doom(struct box *b, const struct life_news *n)
{
    struct err e;

    if (mark_deleting(b, n) < 0)
        return;
    name_detach(b);
    loop_timer_stop(b->g->loop, &b->end);
    err_set(&e, ERR_GONE, "sandbox %s was deleted", b->pub.id);
    answer_all(b, &e);
    wait_for_it(b, n);
    b->life = LIFE_DOOMED;
}

static void on_bury(struct loop_timer *t)
{
    life_bury_now(CONTAINER_OF(t, struct engine, bury));
}

/* A row that cannot be removed now still says `deleting`: the next start does it. */
void life_bury_now(struct engine *g)
{
    struct wire_strv ids = wire_strv_of(&g->graves);
    const char *id;
    uint32_t at = 0;
    struct err e;
    int r;

    if (ids.count == 0)
        return;
    r = store_begin(g->o.store, &e);
    while (r == 0 && (id = wire_strv_next(&ids, &at)) != NULL)
        r = store_sandbox_delete(g->o.store, id, &e);
    if (r == 0)
        r = store_commit(g->o.store, &e);
    if (r < 0) {
        store_rollback(g->o.store);
        log_warn("rows of deleted sandboxes: %s", e.msg);
    }
    buf_clear(&g->graves);
}

static void bury(struct engine *g, const char *id)
{
    wire_strv_add(&g->graves, id);
    if (g->bury.slot == 0)
        loop_timer_set(g->loop, &g->bury, LIFE_BURY_MS, on_bury);
}

static void buried(struct box *b, const struct life_news *n)
{
    struct engine *g = b->g;

    (void)n;
    g->stats.deletes++;
    events_add(g, b, "sandbox.deleted", "{}");
    answer_all(b, NULL);
    bury(g, b->pub.id);
    box_free(b);
}

static void stuck(struct box *b, const struct life_news *n)
{
    log_error("sandbox %s cannot be deleted: %s", b->pub.id, n->err->msg);
    b->life = LIFE_STUCK;
    box_set_state(b, SANDBOX_STOPPED, b->boot_id, "it could not be deleted yet");
    answer_all(b, n->err);
    loop_timer_set(b->g->loop, &b->end, LIFE_RETRY_MS, on_end);
}

/* ---- stopping ---- */

static void note_state(struct box *b, enum sandbox_state state, const char *boot_id,
                       const char *reason)
{
    enum store_state row = state == SANDBOX_RUNNING ? STORE_RUNNING : STORE_STOPPED;
    struct err e;

    box_set_state(b, state, boot_id, reason);
    /* The keeper's record is the same in any case, and the next join repeats this. */
    if (store_sandbox_set_state(b->g->o.store, b->pub.id, row, b->boot_id, b->reason, &e) < 0)
        log_error("%s", e.msg);
}

static void went_down(struct box *b, const struct life_news *n)
{
    log_info("sandbox %s stopped: %s", b->pub.id, n->reason);
    b->life = LIFE_STOPPED;
    b->pub.address = 0;
    note_state(b, SANDBOX_STOPPED, b->boot_id, n->reason);
    silence(b, "was stopped");
    events_say(b->g, b, "sandbox.stopped", "reason", n->reason);
}

static void on_halted(void *arg, const void *msg, const struct err *e)
{
    struct life_news n = {.err = e, .reason = reason_timeout};

    (void)msg;
    life_event(arg, e == NULL ? LIFE_HALTED : LIFE_HALT_FAILED, &n);
}

static const struct keeper_asker halter = {.last = on_halted};

static void halt(struct box *b)
{
    struct keeper_halt ask = {.id = b->pub.id};

    b->life = LIFE_HALTING;
    keeper_ask(b->g->keeper, KEEPER_HALT, &ask, &halter, b);
}

static void end_never(struct box *b)
{
    struct err e;

    b->pub.ends_ms = 0;
    loop_timer_stop(b->g->loop, &b->end);
    if (store_sandbox_set_ends(b->g->o.store, b->pub.id, 0, &e) < 0)
        log_error("%s", e.msg);
}

static void halted(struct box *b, const struct life_news *n)
{
    end_never(b);
    went_down(b, n);
}

static void halt_failed(struct box *b, const struct life_news *n)
{
    log_warn("sandbox %s cannot be stopped: %s", b->pub.id, n->err->msg);
    b->life = LIFE_RUNNING;
    loop_timer_set(b->g->loop, &b->end, LIFE_RETRY_MS, on_end);
}

static void time_over(struct box *b, const struct life_news *n)
{
    log_info("sandbox %s: its time is over: %s", b->pub.id, sandbox_end_name(b->pub.on_timeout));
    events_say(b->g, b, "sandbox.timeout", "action", sandbox_end_name(b->pub.on_timeout));
    if (b->pub.on_timeout == SANDBOX_END_DELETE) {
        end_it(b, n);
        if (b->life != LIFE_DELETING)
            later(b, n);
    } else if (b->life == LIFE_RUNNING) {
        halt(b);
    } else {
        end_never(b);
    }
}

/* ---- booting ---- */

static void on_booted(void *arg, const void *msg, const struct err *e)
{
    struct life_news n = {.err = e, .sandbox = msg};

    life_event(arg, e == NULL ? LIFE_BOOTED : LIFE_BOOT_FAILED, &n);
}

static const struct keeper_asker booter = {.last = on_booted, .late = on_late};

static void boot(struct box *b, const struct life_news *n)
{
    autobuf struct buf rules = BUF_INIT(WIRE_RULES_BYTES);
    struct keeper_boot ask = {.id = b->pub.id};

    box_pack_rules(&rules, b->pub.rules, b->pub.nrules);
    ask.rules = (struct wire_bytes){buf_data(&rules), (uint32_t)rules.len};
    wait_for_it(b, n);
    b->life = LIFE_BOOTING;
    keeper_ask(b->g->keeper, KEEPER_BOOT, &ask, &booter, b);
}

static void booted(struct box *b, const struct life_news *n)
{
    b->life = LIFE_RUNNING;
    b->pub.address = n->sandbox->address;
    note_state(b, SANDBOX_RUNNING, n->sandbox->boot_id, "");
    life_begin(b);
    events_add(b->g, b, "sandbox.resumed", "{}");
    answer_all(b, NULL);
}

static void boot_failed(struct box *b, const struct life_news *n)
{
    b->life = LIFE_STOPPED;
    answer_all(b, n->err);
}

void life_begin(struct box *b)
{
    life_arm(b);
    monitor_start(b);
}

/* ---- the table ---- */

/* Every cell is a decision; `stale` is one too. test_engine.c walks it. */
/* clang-format off */
static reaction *const react[LIFE_COUNT][LIFE_EVENT_COUNT] = {
    [LIFE_RUNNING]  = {[LIFE_DELETE] = end_it,      [LIFE_RESUME] = refuse,      [LIFE_DIED] = went_down,
                       [LIFE_TIMEOUT] = time_over,  [LIFE_BOOTED] = stale,       [LIFE_BOOT_FAILED] = stale,
                       [LIFE_HALTED] = stale,       [LIFE_HALT_FAILED] = stale,
                       [LIFE_DESTROYED] = stale,    [LIFE_DESTROY_FAILED] = stale},
    [LIFE_STOPPED]  = {[LIFE_DELETE] = end_it,      [LIFE_RESUME] = boot,        [LIFE_DIED] = stale,
                       [LIFE_TIMEOUT] = time_over,  [LIFE_BOOTED] = stale,       [LIFE_BOOT_FAILED] = stale,
                       [LIFE_HALTED] = stale,       [LIFE_HALT_FAILED] = stale,
                       [LIFE_DESTROYED] = stale,    [LIFE_DESTROY_FAILED] = stale},
    [LIFE_BOOTING]  = {[LIFE_DELETE] = doom,        [LIFE_RESUME] = wait_for_it, [LIFE_DIED] = stale,
                       [LIFE_TIMEOUT] = later,      [LIFE_BOOTED] = booted,      [LIFE_BOOT_FAILED] = boot_failed,
                       [LIFE_HALTED] = stale,       [LIFE_HALT_FAILED] = stale,
                       [LIFE_DESTROYED] = stale,    [LIFE_DESTROY_FAILED] = stale},
    [LIFE_HALTING]  = {[LIFE_DELETE] = doom,        [LIFE_RESUME] = refuse,      [LIFE_DIED] = stale,
                       [LIFE_TIMEOUT] = later,      [LIFE_BOOTED] = stale,       [LIFE_BOOT_FAILED] = stale,
                       [LIFE_HALTED] = halted,      [LIFE_HALT_FAILED] = halt_failed,
                       [LIFE_DESTROYED] = stale,    [LIFE_DESTROY_FAILED] = stale},
    [LIFE_DOOMED]   = {[LIFE_DELETE] = wait_for_it, [LIFE_RESUME] = refuse,      [LIFE_DIED] = stale,
                       [LIFE_TIMEOUT] = stale,      [LIFE_BOOTED] = destroy,     [LIFE_BOOT_FAILED] = destroy,
                       [LIFE_HALTED] = destroy,     [LIFE_HALT_FAILED] = destroy,
                       [LIFE_DESTROYED] = stale,    [LIFE_DESTROY_FAILED] = stale},
    [LIFE_DELETING] = {[LIFE_DELETE] = wait_for_it, [LIFE_RESUME] = refuse,      [LIFE_DIED] = stale,
                       [LIFE_TIMEOUT] = stale,      [LIFE_BOOTED] = stale,       [LIFE_BOOT_FAILED] = stale,
                       [LIFE_HALTED] = stale,       [LIFE_HALT_FAILED] = stale,
                       [LIFE_DESTROYED] = buried,   [LIFE_DESTROY_FAILED] = stuck},
    [LIFE_STUCK]    = {[LIFE_DELETE] = end_it,      [LIFE_RESUME] = refuse,      [LIFE_DIED] = stale,
                       [LIFE_TIMEOUT] = end_it,     [LIFE_BOOTED] = stale,       [LIFE_BOOT_FAILED] = stale,
                       [LIFE_HALTED] = stale,       [LIFE_HALT_FAILED] = stale,
                       [LIFE_DESTROYED] = stale,    [LIFE_DESTROY_FAILED] = stale},
};
/* clang-format on */

bool life_is_decided(void)
{
    for (size_t s = 0; s < LIFE_COUNT; s++)
        for (size_t ev = 0; ev < LIFE_EVENT_COUNT; ev++)
            if (react[s][ev] == NULL)
                return false;
    return true;
}

void life_event(struct box *b, enum life_event ev, const struct life_news *news)
{
    react[b->life][ev](b, news);
}

/* ---- what nobody owns ---- */

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
        log_error("sandbox %s, which nobody was told of, cannot be destroyed: %s", l->id, e->msg);
    free(l);
}

void life_destroy_leftover(struct engine *g, const char *id)
{
    static const struct keeper_asker asker = {.last = on_leftover, .drop = free};
    struct leftover *l = calloc(1, sizeof(*l));
    struct keeper_destroy ask = {.id = id};

    if (l == NULL)
        return; /* the next start finds it again */
    l->g = g;
    strncpy(l->id, id, KEEPER_ID_MAX);
    keeper_ask(g->keeper, KEEPER_DESTROY, &ask, &asker, l);
}

/* life_pause.c - pauses, stops and resumes a sandbox.
 *
 * The kernel's freezer has the true state. The row follows a moment after the answer, together with
 * other rows; after a crash in between, the join corrects the row. While a pause or resume is under
 * way nothing is sent to the init: calls wait. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "front/engine/sandbox/life.h"

#define LIFE_SAVE_MS 2
#define LIFE_SAVE_AGAIN_MS 1000 /* after the store refused: it may have room by then */
#define LIFE_FLUSH_MS 200

static const char reason_timeout[] = "its timeout passed";
static const char reason_no_memory[] = "it was paused without its memory";
static const char reason_cold[] = "it boots anew, without what it had in memory";

static void set_state(struct box *b, enum sandbox_state state, const char *boot_id,
                      const char *reason)
{
    box_set_state(b, state, boot_id, reason);
    b->pub.changed_ms = clock_real_ms();
}

static int save(struct box *b, struct err *e)
{
    static const enum store_state rows[SANDBOX_STATE_COUNT] = {[SANDBOX_RUNNING] = STORE_RUNNING,
                                                               [SANDBOX_PAUSED] = STORE_PAUSED,
                                                               [SANDBOX_STOPPED] = STORE_STOPPED,
                                                               [SANDBOX_DAMAGED] = STORE_STOPPED};

    return life_save(b, rows[b->pub.state], e);
}

/* ---- rows that follow ---- */

static void on_flushed(struct flush *w, const struct err *e)
{
    (void)w;
    (void)e; /* the next join says it again */
}

static void on_flush(struct loop_timer *t)
{
    struct engine *g = CONTAINER_OF(t, struct engine, flush_soon);

    if (list_empty(&g->flush.link))
        flush_then(g->flusher, &g->flush, on_flushed);
}

static void on_save(struct loop_timer *t)
{
    life_save_now(CONTAINER_OF(t, struct engine, save));
}

static int save_all(struct engine *g, struct err *e)
{
    struct box *b;
    int r = store_begin_light(g->o.store, e);

    LIST_EACH (&g->unsaved, b, struct box, unsaved)
        r = r < 0 ? r : save(b, e);
    if (r == 0 && store_commit(g->o.store, e) == 0)
        return 0;
    store_rollback(g->o.store);
    return -1;
}

/* Rows that the store refuses are saved later. After a crash of the front the join corrects them;
 * after a restart of the host it cannot. */
void life_save_now(struct engine *g)
{
    struct box *b;
    struct err e;

    loop_timer_stop(g->loop, &g->save);
    if (list_empty(&g->unsaved))
        return;
    if (save_all(g, &e) < 0) {
        log_error("%s", e.msg);
        loop_timer_set(g->loop, &g->save, LIFE_SAVE_AGAIN_MS, on_save);
        return;
    }
    while ((b = LIST_FIRST(&g->unsaved, struct box, unsaved)) != NULL)
        list_del(&b->unsaved);
    if (g->flush_soon.slot == 0)
        loop_timer_set(g->loop, &g->flush_soon, LIFE_FLUSH_MS, on_flush);
}

static void save_soon(struct box *b)
{
    if (list_empty(&b->unsaved))
        list_add_tail(&b->g->unsaved, &b->unsaved);
    if (b->g->save.slot == 0)
        loop_timer_set(b->g->loop, &b->g->save, LIFE_SAVE_MS, on_save);
}

void life_note_state(struct box *b, enum sandbox_state state, const char *boot_id,
                     const char *reason)
{
    struct err e;

    set_state(b, state, boot_id, reason);
    list_del(&b->unsaved);
    /* The keeper has it so in any case, and the next join repeats this. */
    if (save(b, &e) == 0)
        return;
    log_error("%s", e.msg);
    save_soon(b);
}

static void end_never(struct box *b)
{
    struct err e;

    b->pub.ends_ms = 0;
    loop_timer_stop(b->g->loop, &b->end);
    if (store_sandbox_set_ends(b->g->o.store, b->pub.id, 0, &e) == 0)
        return;
    log_error("%s", e.msg);
    save_soon(b);
}

/* ---- how long it lives then ---- */

static uint64_t end_after(uint64_t ms)
{
    return ms == 0 ? 0 : clock_real_ms() + ms;
}

static uint64_t wished_end(const struct box *b, const struct life_news *n)
{
    uint64_t made = b->pub.timeout_ms;

    if (n->end == RESUME_FOR || n->end == RESUME_COLD_FOR)
        return end_after(n->timeout_ms);
    if (n->end == RESUME_WAKE)
        return end_after(made == 0 || made > ENGINE_WAKE_MS ? made : ENGINE_WAKE_MS);
    /* One that is stopped may have been given an end. The end of one that is only about to
     * be ends with that, and may be what brought it about. */
    if ((b->life == LIFE_STOPPED || b->life == LIFE_BOOTING) && b->pub.ends_ms != 0)
        return b->pub.ends_ms;
    return end_after(made);
}

/* Of several the longest counts. */
static void wish(struct box *b, const struct life_news *n)
{
    uint64_t end = wished_end(b, n);

    if (!b->wished || end == 0 || (b->wished_end != 0 && end > b->wished_end))
        b->wished_end = end;
    b->wished = true;
}

void life_resume_too(struct box *b, const struct life_news *n)
{
    wish(b, n);
    life_wait(b, n);
}

static void take_wish(struct box *b)
{
    if (b->wished)
        b->pub.ends_ms = b->wished_end;
    b->wished = false;
}

void life_resume_after(struct box *b, const struct life_news *n)
{
    wish(b, n);
    if (n->waiter != NULL)
        list_add_tail(&b->next, &n->waiter->link);
    b->wanted = true;
    b->cold = b->cold || n->end == RESUME_COLD_FOR;
}

/* The operation has ended: is a resume waiting? */
static void go_on(struct box *b)
{
    struct life_news none = {.end = b->cold ? RESUME_COLD_FOR : RESUME_AS_MADE};
    bool wanted = b->wanted;

    b->cold = false;
    life_call_next(b);
    if (b->life == LIFE_PAUSED && wanted)
        life_thaw(b, &none);
    else if (b->life == LIFE_STOPPED && wanted)
        life_boot(b, &none);
    else
        life_answer(b, NULL);
    b->wished = b->wished && b->life != LIFE_RUNNING;
}

/* ---- pausing ---- */

static void on_frozen(void *arg, const void *msg, const struct err *e)
{
    struct life_news n = {.err = e};

    (void)msg;
    life_event(arg, e == NULL ? LIFE_FROZE : LIFE_FREEZE_FAILED, &n);
}

/* No process is about to be started: one that is frozen before it has begun would hold
 * up its init, and end. */
static void freeze_now(struct talk_peer *p)
{
    static const struct keeper_asker asker = {.last = on_frozen, .late = life_late};
    struct box *b = CONTAINER_OF(p, struct box, peer);
    struct keeper_pause ask = {.id = b->pub.id};
    struct err e;

    p->on_quiet = NULL;
    if (b->life == LIFE_PAUSING) {
        keeper_ask(b->g->keeper, KEEPER_PAUSE, &ask, &asker, b);
    } else if (b->life == LIFE_DOOMED) {
        err_set(&e, ERR_GONE, "sandbox %s was deleted", b->pub.id);
        on_frozen(b, NULL, &e);
    }
}

static void freeze(struct box *b)
{
    b->life = LIFE_PAUSING;
    talk_peer_hold(&b->peer, true);
    if (b->peer.nstarts == 0)
        freeze_now(&b->peer);
    else
        b->peer.on_quiet = freeze_now;
}

static void halt(struct box *b, const char *reason);

void life_pause(struct box *b, const struct life_news *n)
{
    life_wait(b, n);
    if (n->no_memory)
        halt(b, reason_no_memory);
    else
        freeze(b);
}

/* Reads of its init are allowed; other calls fail with the reason. */
static void let_look(struct box *b, const struct err *why)
{
    talk_peer_refuse(&b->peer, why);
    talk_peer_hold(&b->peer, false);
}

void life_froze(struct box *b, const struct life_news *n)
{
    struct err e;

    (void)n;
    err_set(&e, ERR_CONFLICT, "sandbox %s is paused; resume it first", b->pub.id);
    b->life = LIFE_PAUSED;
    b->pub.ends_ms = 0;
    loop_timer_stop(b->g->loop, &b->end);
    set_state(b, SANDBOX_PAUSED, b->boot_id, "");
    save_soon(b);
    if (b->pub.auto_resume && talk_peer_waits(&b->peer))
        life_resume_after(b, &(struct life_news){.end = RESUME_WAKE});
    if (!b->wanted) /* else what is queued waits for the resume that follows */
        let_look(b, &e);
    events_add(b->g, b, "sandbox.paused", "{}");
    life_answer(b, NULL);
    go_on(b);
}

/* By itself it tries again; a client may. */
static void runs_again(struct box *b, const struct life_news *n, const char *what)
{
    log_warn("sandbox %s cannot be %s: %s", b->pub.id, what, n->err->msg);
    b->life = LIFE_RUNNING;
    life_answer(b, n->err);
    if (b->pub.ends_ms != 0 && b->pub.ends_ms <= clock_real_ms())
        life_again(b, n->err->kind == ERR_CONFLICT ? LIFE_LATER_MS : LIFE_RETRY_MS);
    go_on(b);
}

void life_freeze_failed(struct box *b, const struct life_news *n)
{
    talk_peer_hold(&b->peer, false);
    runs_again(b, n, "paused");
}

/* ---- going on ---- */

static void on_thawed(void *arg, const void *msg, const struct err *e)
{
    struct life_news n = {.err = e};

    (void)msg;
    life_event(arg, e == NULL ? LIFE_THAWED : LIFE_THAW_FAILED, &n);
}

/* A cold resume: halt it, then boot it. */
static void boot_anew(struct box *b, const struct life_news *n)
{
    struct waiter *w;

    if (!b->wished)
        wish(b, n);
    life_wait(b, n);
    while ((w = LIST_FIRST(&b->waiters, struct waiter, link)) != NULL) {
        list_del(&w->link);
        list_add_tail(&b->next, &w->link);
    }
    b->wanted = true;
    halt(b, reason_cold);
}

void life_thaw(struct box *b, const struct life_news *n)
{
    static const struct keeper_asker asker = {.last = on_thawed, .late = life_late};
    struct keeper_thaw ask = {.id = b->pub.id};

    if (n->end == RESUME_COLD_FOR) {
        boot_anew(b, n);
        return;
    }
    life_wait(b, n);
    if (!b->wished)
        wish(b, n);
    b->life = LIFE_THAWING;
    talk_peer_hold(&b->peer, true);
    keeper_ask(b->g->keeper, KEEPER_THAW, &ask, &asker, b);
}

void life_thawed(struct box *b, const struct life_news *n)
{
    (void)n;
    b->life = LIFE_RUNNING;
    take_wish(b);
    set_state(b, SANDBOX_RUNNING, b->boot_id, "");
    save_soon(b);
    talk_peer_hold(&b->peer, false);
    life_arm(b);
    events_add(b->g, b, "sandbox.resumed", "{}");
    life_answer(b, NULL);
}

/* What stood still stands still. */
void life_thaw_failed(struct box *b, const struct life_news *n)
{
    log_warn("sandbox %s cannot be resumed: %s", b->pub.id, n->err->msg);
    b->life = LIFE_PAUSED;
    b->wished = false;
    let_look(b, n->err);
    life_answer(b, n->err);
}

/* ---- stopping ---- */

static void go_down(struct box *b, const char *reason)
{
    log_info("sandbox %s stopped: %s", b->pub.id, reason);
    b->life = LIFE_STOPPED;
    b->pub.address = 0;
    life_note_state(b, SANDBOX_STOPPED, b->boot_id, reason);
    life_silence(b, "was stopped");
    events_say(b->g, b, "sandbox.stopped", "reason", reason);
}

void life_died(struct box *b, const struct life_news *n)
{
    struct err e;

    err_set(&e, ERR_CONFLICT, "sandbox %s stopped: %s", b->pub.id, n->reason);
    b->wished = false;
    go_down(b, n->reason);
    life_answer(b, &e);
    go_on(b);
}

static void on_halted(void *arg, const void *msg, const struct err *e)
{
    struct box *b = arg;
    struct life_news n = {.err = e, .reason = b->halt_reason};

    (void)msg;
    life_event(b, e == NULL ? LIFE_HALTED : LIFE_HALT_FAILED, &n);
}

static void halt(struct box *b, const char *reason)
{
    static const struct keeper_asker asker = {.last = on_halted, .late = life_late};
    struct keeper_halt ask = {.id = b->pub.id};

    b->life = LIFE_HALTING;
    b->halt_reason = reason;
    keeper_ask(b->g->keeper, KEEPER_HALT, &ask, &asker, b);
}

void life_halted(struct box *b, const struct life_news *n)
{
    b->pub.ends_ms = 0;
    loop_timer_stop(b->g->loop, &b->end);
    go_down(b, n->reason);
    life_answer(b, NULL);
    go_on(b);
}

void life_halt_failed(struct box *b, const struct life_news *n)
{
    if (b->pub.state == SANDBOX_PAUSED) { /* it was to boot anew */
        b->life = LIFE_PAUSED;
        b->wished = false;
        life_call_next(b);
        life_answer(b, n->err);
        return;
    }
    runs_again(b, n, "stopped");
}

void life_time_over(struct box *b, const struct life_news *n)
{
    log_info("sandbox %s: its time is over: %s", b->pub.id, sandbox_end_name(b->pub.on_timeout));
    events_say(b->g, b, "sandbox.timeout", "action", sandbox_end_name(b->pub.on_timeout));
    if (b->pub.on_timeout == SANDBOX_END_DELETE) {
        life_end_it(b, n);
        if (b->life != LIFE_DELETING)
            life_again(b, LIFE_RETRY_MS);
    } else if (b->life != LIFE_RUNNING) {
        end_never(b);
    } else if (b->pub.on_timeout == SANDBOX_END_PAUSE) {
        freeze(b);
    } else {
        halt(b, reason_timeout);
    }
}

/* ---- booting ---- */

static void on_booted(void *arg, const void *msg, const struct err *e)
{
    struct life_news n = {.err = e, .sandbox = msg};

    life_event(arg, e == NULL ? LIFE_BOOTED : LIFE_BOOT_FAILED, &n);
}

void life_boot(struct box *b, const struct life_news *n)
{
    static const struct keeper_asker asker = {.last = on_booted, .late = life_late};
    autobuf struct buf rules = BUF_INIT(WIRE_RULES_BYTES);
    struct keeper_boot ask = {.id = b->pub.id, .relaxed = b->pub.fsync == FSYNC_RELAXED};

    box_pack_rules(&rules, b->pub.rules, b->pub.nrules);
    ask.rules = (struct wire_bytes){buf_data(&rules), (uint32_t)rules.len};
    life_wait(b, n);
    if (!b->wished)
        wish(b, n);
    b->life = LIFE_BOOTING;
    keeper_ask(b->g->keeper, KEEPER_BOOT, &ask, &asker, b);
}

/* The event comes once: at the join after the host failed, or here if the disk did. */
void life_note_lost(struct box *b, uint64_t lost_ms)
{
    struct err e;

    if (lost_ms == b->pub.lost_ms)
        return;
    b->pub.lost_ms = lost_ms;
    if (store_sandbox_set_lost(b->g->o.store, b->pub.id, lost_ms, &e) < 0)
        log_error("sandbox %s: %s", b->pub.id, e.msg);
    events_say(b->g, b, "sandbox.writes_lost", "reason",
               "the host failed while fsync was relaxed: the last writes may be missing");
}

void life_booted(struct box *b, const struct life_news *n)
{
    b->life = LIFE_RUNNING;
    b->pub.address = n->sandbox->address;
    take_wish(b);
    life_note_state(b, SANDBOX_RUNNING, n->sandbox->boot_id, "");
    life_begin(b);
    life_note_lost(b, n->sandbox->lost_ms);
    events_add(b->g, b, "sandbox.resumed", "{}");
    life_answer(b, NULL);
}

void life_boot_failed(struct box *b, const struct life_news *n)
{
    b->life = LIFE_STOPPED;
    b->wished = false;
    life_answer(b, n->err);
}

/* life_recover.c - recovers a damaged sandbox.
 *
 * The keeper reports damage at start; it is not stored: the row is unchanged until the sandbox is
 * recovered or deleted. Its lifetime does not end meanwhile. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "front/engine/sandbox/life.h"

static void on_recovered(void *arg, const void *msg, const struct err *e)
{
    struct life_news n = {.err = e, .sandbox = msg};

    life_event(arg, e == NULL ? LIFE_RECOVERED : LIFE_RECOVER_FAILED, &n);
}

/* An end that passed in quarantine must not delete what was just recovered: it lives as long as
 * it was made for, from now on. Its row says so before the keeper is asked: the next join after
 * a kill in between finds it recovered, and goes by the row. */
static int put_end_off(struct box *b, struct err *e)
{
    uint64_t now = clock_real_ms();

    if (b->pub.ends_ms == 0 || b->pub.ends_ms > now)
        return 0;
    if (store_sandbox_set_ends(b->g->o.store, b->pub.id, now + b->pub.timeout_ms, e) < 0)
        return -1;
    b->pub.ends_ms = now + b->pub.timeout_ms;
    return 0;
}

void life_recover(struct box *b, const struct life_news *n)
{
    static const struct keeper_asker asker = {.last = on_recovered, .late = life_late};
    struct keeper_recover ask = {.id = b->pub.id,
                                 .boot_id = b->boot_id,
                                 .network = b->pub.network,
                                 .created_ms = b->pub.created_ms,
                                 .relaxed = b->pub.fsync == FSYNC_RELAXED};

    struct err e;

    LIMITS_COPY(&ask, &b->pub.limits);
    life_wait(b, n);
    if (put_end_off(b, &e) < 0) {
        life_answer(b, &e);
        return;
    }
    b->life = LIFE_RECOVERING;
    keeper_ask(b->g->keeper, KEEPER_RECOVER, &ask, &asker, b);
}

void life_recovered(struct box *b, const struct life_news *n)
{
    static const struct {
        enum life life;
        enum sandbox_state state;
    } becomes[] = {
        [KEEPER_RUNNING] = {LIFE_RUNNING, SANDBOX_RUNNING},
        [KEEPER_STOPPED] = {LIFE_STOPPED, SANDBOX_STOPPED},
        [KEEPER_PAUSED] = {LIFE_PAUSED, SANDBOX_PAUSED},
        [KEEPER_DAMAGED] = {LIFE_DAMAGED, SANDBOX_DAMAGED},
    };
    const struct keeper_sandbox *m = n->sandbox;
    enum life life = becomes[m->state].life;

    log_info("sandbox %s is recovered and %s", b->pub.id,
             sandbox_state_name(becomes[m->state].state));
    b->life = life;
    if (life == LIFE_PAUSED)
        b->pub.ends_ms = 0;
    life_note_state(b, becomes[m->state].state, b->boot_id, m->reason);
    if (life == LIFE_RUNNING || life == LIFE_PAUSED) {
        b->pub.address = m->address;
        if (b->pub.nrules > 0)
            network_reapply(b);
        life_begin(b);
    } else {
        life_arm(b);
    }
    events_say(b->g, b, "sandbox.recovered", "state", sandbox_state_name(b->pub.state));
    life_answer(b, NULL);
}

void life_recover_failed(struct box *b, const struct life_news *n)
{
    log_warn("sandbox %s cannot be recovered: %s", b->pub.id, n->err->msg);
    b->life = LIFE_DAMAGED;
    life_answer(b, n->err);
}

/* proof.c - whether sandboxes can be made, told from one that was: the last refill of the pool. Only if
 * that is long ago, and someone asks, is a sandbox built for it. */
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/life/reactions.h"
#include "keeper/ops.h"

#define PROOF_OK_MS 60000    /* so long a refill that went well is believed */
#define PROOF_FAILED_MS 1000 /* ...and one that failed */
#define PROOF_WAIT_MS 2000   /* for a build; then the stage that it is in is the failing one */

static bool is_recent(const struct proof *p)
{
    return p->at_ms != 0 && clock_mono_ms() - p->at_ms < (p->ok ? PROOF_OK_MS : PROOF_FAILED_MS);
}

static void answer_all(struct keeper *k)
{
    struct proof *p = &k->proof;
    size_t n = p->nwaiting;

    loop_timer_stop(k->loop, &p->late);
    p->nwaiting = 0;
    for (size_t i = 0; i < n; i++)
        link_stats(k, p->waiting[i]);
}

void proof_done(struct keeper *k, const char *failed)
{
    struct proof *p = &k->proof;

    p->ok = failed == NULL;
    p->at_ms = clock_mono_ms();
    str_fmt(p->stage, sizeof(p->stage), "%s", p->ok ? "" : failed);
    answer_all(k);
}

static void is_late(struct loop_timer *t)
{
    struct keeper *k = CONTAINER_OF(t, struct keeper, proof.late);
    const char *stage = NULL;
    struct sandbox *sb;

    SANDBOX_EACH(k, sb)
    if (sb->state == STATE_FILLING)
        stage = stage_name(sb->rec.stage);
    if (stage != NULL)
        proof_done(k, stage);
    else
        answer_all(k);
}

bool proof_wait(struct keeper *k, uint32_t seq)
{
    struct proof *p = &k->proof;
    struct err e;

    if (is_recent(p) || p->nwaiting == PROOF_WAITERS || *sandbox_lacks(k, &e) != '\0')
        return false;
    if (k->counts[COUNT_FILLING] == 0) {
        if (!pool_has_place(k))
            return false;
        p->builds++;
        if (pool_fill(k, &e) < 0) {
            log_error("build a sandbox to see whether that works: %s", e.msg);
            return false;
        }
    }
    if (p->nwaiting == 0 && loop_timer_set(k->loop, &p->late, PROOF_WAIT_MS, is_late) < 0)
        return false;
    p->waiting[p->nwaiting++] = seq;
    return true;
}

void proof_forget(struct keeper *k)
{
    loop_timer_stop(k->loop, &k->proof.late);
    k->proof.nwaiting = 0;
}

/* teardown.c - how a sandbox ends: its init dies, it is buried, and a queue in the
 * background takes its stages down until the last is gone. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "keeper/closer.h"
#include "keeper/image.h"
#include "keeper/internal.h"
#include "keeper/ops.h"

#define TEARDOWN_FIRST_MS 2
#define TEARDOWN_LAST_MS 100

/* It may have been the last on a version of a template that no name means. */
static void free_gone(struct sandbox *sb)
{
    struct keeper *k = sb->k;
    char version[sizeof(sb->rec.layer)];

    memcpy(version, sb->rec.layer, sizeof(version));
    sandbox_free(sb);
    image_left(k, version);
}

static void gone(struct sandbox *sb)
{
    struct keeper *k = sb->k;

    list_del(&sb->link);
    k->ndying--;
    if (sb->reboot) {
        sandbox_boot_now(sb);
        return;
    }
    sandbox_answer_ok(sb);
    if (sb->rec.phase == PHASE_STOPPED || sb->rec.phase == PHASE_DAMAGED)
        sb->keep_disk = true; /* what is there stays until it is deleted */
    else
        free_gone(sb);
    pool_refill(k);
}

static void try_down(struct loop_timer *t)
{
    struct sandbox *sb = CONTAINER_OF(t, struct sandbox, timer);
    uint64_t wait = TEARDOWN_FIRST_MS << (sb->retries < 6 ? sb->retries : 6);

    if (closer_is_closing()) {
        loop_timer_set(sb->k->loop, &sb->timer, TEARDOWN_FIRST_MS, try_down);
        return;
    }
    if (sandbox_down(sb) == 0) {
        gone(sb);
        return;
    }
    if (++sb->retries == 100)
        log_warn("sandbox %s: its %s stage does not go down; still trying", sb->rec.id,
                 stages[sb->rec.stage - 1].name);
    if (wait > TEARDOWN_LAST_MS)
        wait = TEARDOWN_LAST_MS;
    loop_timer_set(sb->k->loop, &sb->timer, wait, try_down);
}

/* Its record must already say what is wanted. */
void sandbox_bury(struct sandbox *sb, bool keep_disk)
{
    struct keeper *k = sb->k;

    sandbox_count_asked(sb, false);
    k->nimports -= sb->import;
    sb->import = false;
    loop_io_stop(k->loop, &sb->pid_io);
    loop_io_stop(k->loop, &sb->boot_io);
    list_del(&sb->link);
    sb->keep_disk = keep_disk;
    sb->rising = sb->paused = false;
    sb->retries = 0;
    list_add_tail(&k->dying, &sb->link);
    k->ndying++;
    if (!birth_is_over(sb))
        cgroup_kill(sb);
    /* Not at once: the caller's answer goes first, and the dead are still warm. */
    loop_timer_set(k->loop, &sb->timer, 1, try_down);
}

/* Nothing but the queue has a sandbox's disk removed. */
void sandbox_disk_removed(struct keeper *k, const char *name)
{
    struct sandbox *sb = sandbox_find(k, name);

    if (sb != NULL)
        loop_timer_set(k->loop, &sb->timer, 0, try_down);
}

static void say_why(struct sandbox *sb, char *out, size_t room)
{
    if (cgroup_oom_kills(sb) > 0)
        snprintf(out, room, "its init ended: the sandbox ran out of memory");
    else
        snprintf(out, room, "its init ended");
}

/* Nothing runs in it any more: what it unpacked is final. */
static void import_ended(struct sandbox *sb)
{
    struct keeper_commit m;
    struct err e;

    if (sb->commit == NULL)
        err_set(&e, ERR_GONE, "the sandbox that unpacked the template ended");
    else if (wire_get(keeper_msg(KEEPER_COMMIT), sb->commit, sb->commit_len, &m, &e) == 0 &&
             image_commit(sb->k, sb->rec.id, &m, &e) == 0)
        sandbox_answer_ok(sb);
    if (sb->ask != 0)
        link_fail(sb->k, sb->ask, &e);
    sb->ask = 0;
    sb->rec.phase = PHASE_DYING;
    sandbox_bury(sb, false);
}

/* It was being paused, or some such. */
static void fail_ask(struct sandbox *sb)
{
    struct err e;

    err_set(&e, ERR_GONE, "sandbox %s: %s", sb->rec.id, sb->rec.reason);
    if (sb->ask != 0)
        link_fail(sb->k, sb->ask, &e);
    sb->ask = 0;
}

static void init_died(struct loop_io *io, uint32_t events)
{
    struct sandbox *sb = CONTAINER_OF(io, struct sandbox, pid_io);
    struct keeper_died news = {.id = sb->rec.id, .reason = sb->rec.reason};
    struct err e;

    (void)events;
    loop_io_stop(sb->k->loop, &sb->pid_io);
    if (sb->rec.phase == PHASE_DYING) {
        sandbox_answer_ok(sb);
        sandbox_bury(sb, false);
        return;
    }
    if (sb->rec.phase == PHASE_DAMAGED)
        return; /* its files are what it was kept for */
    if (sb->rec.phase == PHASE_IMPORT) {
        import_ended(sb);
        return;
    }
    if (sb->rec.phase == PHASE_POOLED) {
        sb->k->npool--;
        sb->rec.phase = PHASE_DYING;
        sandbox_bury(sb, false);
        return;
    }
    if (sb->rec.phase == PHASE_GIVEN) {
        sb->k->ngiven--;
        say_why(sb, sb->rec.reason, sizeof(sb->rec.reason));
        log_warn("sandbox %s: %s", sb->rec.id, sb->rec.reason);
        link_send(sb->k, KEEPER_DIED, 0, &news);
        fail_ask(sb);
    }
    sb->rec.phase = PHASE_STOPPED;
    if (record_save(sb, true, &e) < 0)
        log_error("sandbox %s: %s", sb->rec.id, e.msg);
    sandbox_bury(sb, true);
}

int sandbox_watch_init(struct sandbox *sb, struct err *e)
{
    return loop_io_start(sb->k->loop, &sb->pid_io, sb->pidfd, EPOLLIN, init_died, e);
}

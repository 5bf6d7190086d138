/* teardown.c - how a sandbox ends: it is stopped or deleted, or its init dies; then a queue in
 * the background takes its stages down until the last is gone. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/closer.h"
#include "keeper/image.h"
#include "keeper/life/reactions.h"
#include "keeper/ops.h"
#include "keeper/quarantine.h"

#define TEARDOWN_FIRST_MS 2
#define TEARDOWN_LAST_MS 100
#define TEARDOWN_WARN 100 /* attempts */

/* ---- the queue ---- */

static void try_down(struct loop_timer *t)
{
    struct sandbox *sb = CONTAINER_OF(t, struct sandbox, timer);
    uint64_t wait = TEARDOWN_FIRST_MS << (sb->retries < 6 ? sb->retries : 6);

    if (closer_is_closing()) {
        loop_timer_set(sb->k->loop, &sb->timer, TEARDOWN_FIRST_MS, try_down);
        return;
    }
    if (stages_down(sb) == 0) {
        sandbox_tell(sb, EV_DOWN);
        return;
    }
    if (++sb->retries == TEARDOWN_WARN)
        log_warn("sandbox %s: its stage %s is not down after %d attempts; still trying", sb->rec.id,
                 sb->rec.stage == 0 ? "disk" : stage_name(sb->rec.stage), TEARDOWN_WARN);
    loop_timer_set(sb->k->loop, &sb->timer, wait > TEARDOWN_LAST_MS ? TEARDOWN_LAST_MS : wait,
                   try_down);
}

void sandbox_take_down(struct sandbox *sb, enum state to)
{
    struct keeper *k = sb->k;

    sandbox_enter(sb, to);
    loop_io_stop(k->loop, &sb->pid_io);
    loop_io_stop(k->loop, &sb->boot_io);
    sb->retries = 0;
    if (!birth_is_over(sb))
        cgroup_kill(sb);
    /* Not at once: the caller's answer goes first, and what was killed needs a moment. */
    loop_timer_set(k->loop, &sb->timer, 1, try_down);
}

void sandbox_disk_removed(struct keeper *k, const char *name)
{
    struct sandbox *sb = sandbox_find(k, name);

    if (sb != NULL)
        loop_timer_set(k->loop, &sb->timer, 0, try_down);
}

/* ---- all stages are down ---- */

int react_stopped(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    (void)e;
    sandbox_enter(sb, STATE_STOPPED);
    sandbox_answer_ok(sb);
    pool_refill(sb->k);
    return 0;
}

int react_stopped_for_boot(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    (void)e;
    sandbox_enter(sb, STATE_STOPPED);
    sandbox_boot_now(sb);
    return 0;
}

int react_damaged_stopped(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    (void)e;
    sandbox_enter(sb, STATE_DAMAGED);
    sandbox_answer_ok(sb);
    return 0;
}

/* It may have been the last that used its version of a template. */
int react_deleted(struct sandbox *sb, const struct news *n, struct err *e)
{
    struct keeper *k = sb->k;
    char version[sizeof(sb->rec.layer)];

    (void)n;
    (void)e;
    sandbox_answer_ok(sb);
    memcpy(version, sb->rec.layer, sizeof(version));
    sandbox_free(sb);
    image_released(k, version);
    pool_refill(k);
    return 0;
}

/* ---- stopping ---- */

int react_stop(struct sandbox *sb, const struct news *n, struct err *e)
{
    if (sandbox_check_free(sb, e) < 0)
        return -1;
    str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "it was stopped");
    if (sandbox_enter_saved(sb, STATE_STOPPING, true, e) < 0)
        return -1;
    sb->ask = n->seq;
    sandbox_take_down(sb, STATE_STOPPING);
    return 0;
}

int react_stop_all(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "cove stop --all");
    sandbox_enter(sb, STATE_STOPPING);
    if (record_save(sb, true, e) < 0)
        log_warn("%s", e->msg);
    sandbox_take_down(sb, STATE_STOPPING);
    return 0;
}

int react_stop_all_damaged(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    (void)e;
    sandbox_take_down(sb, STATE_DAMAGED_STOPPING);
    return 0;
}

/* ---- deleting ---- */

/* The record says so before anything is done. It need not be durable: a front deletes when its
 * own row is, and would ask again. */
static int begin_delete(struct sandbox *sb, const struct news *n, enum state to, struct err *e)
{
    struct err deleted = {.kind = ERR_GONE};

    if (sandbox_enter_saved(sb, to, false, e) < 0)
        return -1;
    err_set(&deleted, ERR_GONE, "sandbox %s was deleted", sb->rec.id);
    sandbox_answer_fail(sb, &deleted);
    sb->ask = n->seq;
    return 0;
}

/* The answer comes when its init, and with it everything in its pid namespace, is dead. */
int react_delete_running(struct sandbox *sb, const struct news *n, struct err *e)
{
    if (begin_delete(sb, n, STATE_KILLED, e) < 0)
        return -1;
    cgroup_kill(sb);
    return 0;
}

int react_delete_stopped(struct sandbox *sb, const struct news *n, struct err *e)
{
    if (begin_delete(sb, n, STATE_DELETING, e) < 0)
        return -1;
    sandbox_answer_ok(sb);
    sandbox_take_down(sb, STATE_DELETING);
    return 0;
}

/* In the queue already, which now removes the disk too. */
int react_delete_stopping(struct sandbox *sb, const struct news *n, struct err *e)
{
    if (begin_delete(sb, n, STATE_DELETING, e) < 0)
        return -1;
    quarantine_forget(sb->k, sb->rec.id);
    sandbox_answer_ok(sb);
    return 0;
}

int react_delete_damaged(struct sandbox *sb, const struct news *n, struct err *e)
{
    bool runs = sb->pidfd >= 0 && !birth_is_over(sb);

    if ((runs ? react_delete_running(sb, n, e) : react_delete_stopped(sb, n, e)) < 0)
        return -1;
    quarantine_forget(sb->k, sb->rec.id);
    return 0;
}

int react_drop(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    (void)e;
    sandbox_take_down(sb, STATE_DELETING);
    return 0;
}

/* ---- its init is dead ---- */

static void on_init_death(struct loop_io *io, uint32_t events)
{
    struct sandbox *sb = CONTAINER_OF(io, struct sandbox, pid_io);

    (void)events;
    loop_io_stop(sb->k->loop, &sb->pid_io);
    sandbox_tell(sb, EV_INIT_DIED);
}

int sandbox_watch_init(struct sandbox *sb, struct err *e)
{
    return loop_io_start(sb->k->loop, &sb->pid_io, sb->pidfd, EPOLLIN, on_init_death, e);
}

int react_init_died(struct sandbox *sb, const struct news *n, struct err *e)
{
    struct keeper_died news = {.id = sb->rec.id, .reason = sb->rec.reason};

    (void)n;
    str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "%s",
            cgroup_oom_kills(sb) > 0 ? "its init ended: the sandbox ran out of memory"
                                     : "its init ended");
    log_warn("sandbox %s: %s", sb->rec.id, sb->rec.reason);
    link_send(sb->k, KEEPER_DIED, 0, &news);
    err_set(e, ERR_GONE, "sandbox %s: %s", sb->rec.id, sb->rec.reason);
    sandbox_answer_fail(sb, e);
    sandbox_enter(sb, STATE_STOPPING);
    if (record_save(sb, true, e) < 0)
        log_error("sandbox %s: %s", sb->rec.id, e->msg);
    sandbox_take_down(sb, STATE_STOPPING);
    return 0;
}

int react_init_died_killed(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    (void)e;
    sandbox_answer_ok(sb);
    sandbox_take_down(sb, STATE_DELETING);
    return 0;
}

/* ---- the end of an import ---- */

/* The message is kept as a frame: it must outlive the front's buffer, and wire.h can encode
 * and decode it. */
int react_commit_import(struct sandbox *sb, const struct news *n, struct err *e)
{
    autobuf struct buf b = BUF_INIT(WIRE_FRAME_MAX);

    if (wire_put(&b, keeper_msg(KEEPER_COMMIT), 1, n->msg, e) < 0)
        return -1;
    sb->commit_len = b.len - WIRE_HEAD;
    sb->commit = malloc(sb->commit_len);
    if (sb->commit == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    memcpy(sb->commit, buf_data(&b) + WIRE_HEAD, sb->commit_len);
    sb->ask = n->seq;
    sandbox_enter(sb, STATE_COMMITTING);
    cgroup_kill(sb);
    return 0;
}

/* Nothing runs in it any more: what it unpacked is final. */
int react_import_died(struct sandbox *sb, const struct news *n, struct err *e)
{
    struct keeper_commit m;

    (void)n;
    if (sb->state != STATE_COMMITTING)
        err_set(e, ERR_GONE, "add a template: the sandbox that unpacked it ended early");
    else if (wire_get(keeper_msg(KEEPER_COMMIT), sb->commit, sb->commit_len, &m, e) == 0 &&
             image_commit(sb->k, sb->rec.id, &m, e) == 0)
        sandbox_answer_ok(sb);
    sandbox_answer_fail(sb, e); /* unless it was answered */
    sandbox_take_down(sb, STATE_DELETING);
    return 0;
}

/* start.c - how a sandbox starts: made for a client, the pool or an import, or booted again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/freezer.h"
#include "keeper/io.h"
#include "keeper/life/reactions.h"
#include "keeper/network.h"
#include "keeper/ops.h"
#include "keeper/snapshot.h"
#include "keeper/template.h"

#define TEARDOWN_MAX 1000 /* in the queue: creates are answered 503 */

struct sandbox *sandbox_new(struct keeper *k, const char *id, struct err *e)
{
    struct sandbox *sb = calloc(1, sizeof(*sb));

    if (sb == NULL) {
        err_set(e, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    sb->k = k;
    str_fmt(sb->rec.id, sizeof(sb->rec.id), "%s", id);
    sb->place = PLACE_NONE;
    sb->pidfd = sb->boot_fd = sb->userns_fd = sb->root_fd = -1;
    for (int i = 0; i < FREEZE_COUNT; i++)
        sb->freezer[i].set = sb->freezer[i].events = -1;
    sb->pid_io.fd = sb->boot_io.fd = -1;
    sb->rec.range = RANGE_NONE;
    atomic_init(&sb->root_closed, 1);
    list_init(&sb->pool_link);
    list_init(&sb->birth_link);
    if (map_put(&k->sandboxes, &sb->by_id, sb->rec.id) < 0) {
        free(sb);
        err_set(e, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    return sb;
}

void sandbox_free(struct sandbox *sb)
{
    loop_io_stop(sb->k->loop, &sb->pid_io);
    loop_io_stop(sb->k->loop, &sb->boot_io);
    loop_timer_stop(sb->k->loop, &sb->timer);
    sandbox_enter(sb, STATE_NEW); /* counted nowhere */
    map_del(&sb->k->sandboxes, &sb->by_id);
    drop_fd(&sb->userns_fd);
    drop_fd(&sb->root_fd);
    freezer_close(sb);
    drop_fd(&sb->boot_fd);
    drop_fd(&sb->pidfd);
    free(sb->commit);
    free(sb->rules.mem);
    free(sb);
}

/* ---- making one ---- */

static int check_deletes(struct keeper *k, struct err *e)
{
    if (k->counts[COUNT_TEARDOWN] <= TEARDOWN_MAX)
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "%zu sandboxes are still being deleted; try again",
                   k->counts[COUNT_TEARDOWN]);
}

static int check_number(struct keeper *k, struct err *e)
{
    if (k->counts[COUNT_GIVEN] + k->counts[COUNT_STARTING] < k->nsandboxes_max)
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "this host runs %llu sandboxes, its maximum",
                   (unsigned long long)k->nsandboxes_max);
}

/* Of which the host may have too little left. */
static const struct {
    const char *what;
    int (*check)(struct keeper *k, struct err *e);
} room[] = {{"deletes", check_deletes},
            {"sandboxes", check_number},
            {"memory", memory_check},
            {"disk", disk_check}};

const char *sandbox_lacks(struct keeper *k, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(room); i++)
        if (room[i].check(k, e) < 0)
            return room[i].what;
    return "";
}

int sandbox_check_room(struct keeper *k, struct err *e)
{
    return *sandbox_lacks(k, e) == '\0' ? 0 : -1;
}

struct limits sandbox_defaults(const struct keeper *k)
{
    const struct config *c = &k->config;
    struct limits l;

    LIMITS_COPY(&l, c);
    return l;
}

static bool is_outside(uint64_t n, uint64_t min, uint64_t max)
{
    return n < min || n > max;
}

/* The front has checked these for its clients; this is for a front that has been taken over. */
int sandbox_check_limits(const struct limits *l, struct err *e)
{
#define CHECK(limits, e, member, name, type, def, min, max, ...)                                   \
    if (is_outside((limits)->member, min, max))                                                    \
        return err_set(e, ERR_INVALID, "%s limit %llu is not between %llu and %llu", name,         \
                       (unsigned long long)(limits)->member, (unsigned long long)(min),            \
                       (unsigned long long)(max));
    LIMITS(CHECK, l, e)
#undef CHECK
    return 0;
}

struct sandbox *sandbox_build(struct keeper *k, const struct order *o, enum state as, uint32_t ask,
                              struct err *e)
{
    const char *layer = "";
    char id[ID_LEN + 1];
    struct sandbox *sb;

    if (o->template != NULL && o->snapshot == NULL)
        layer = template_current(k, o->template, e);
    if (layer == NULL)
        return NULL;
    id_random(id, ID_LEN);
    sb = sandbox_new(k, id, e);
    if (sb == NULL)
        return NULL;
    sandbox_enter(sb, as);
    sb->ask = ask;
    sb->rec.limits = o->limits;
    sb->rec.network = o->network;
    sb->rec.relaxed = o->relaxed;
    sb->rec.created_ms = clock_real_ms();
    str_fmt(sb->rec.template, sizeof(sb->rec.template), "%s",
            o->template == NULL ? "" : o->template);
    str_fmt(sb->rec.layer, sizeof(sb->rec.layer), "%s", layer);
    if (o->snapshot != NULL)
        snapshot_use(o->snapshot, sb);
    if (network_keep_rules(sb, &o->rules, e) == 0 && stages_up(sb, e) == 0)
        return sb;
    sb->ask = 0;
    if (as == STATE_FILLING)
        proof_done(k, stage_name(sb->rec.stage));
    sandbox_take_down(sb, STATE_DELETING);
    return NULL;
}

/* The kernel gets the limits of the record; it has those of `old`. */
static int apply_limits(struct sandbox *sb, const struct limits *old, struct err *e)
{
    const struct limits *l = &sb->rec.limits;

    if (memcmp(old, l, sizeof(*old)) != 0 && cgroup_limit(sb, e) < 0)
        return -1;
    return old->disk == l->disk ? 0 : disk_limit(sb, e);
}

/* A pooled one serves any limits except those that its init has already applied: the open
 * files, the bandwidth and, through the memory, the size of /dev/shm. Its root is mounted. NULL:
 * none serves. */
static struct sandbox *take_pooled(struct keeper *k, const struct order *o)
{
    const struct limits *l = &o->limits;
    struct sandbox *sb = LIST_FIRST(&k->pool, struct sandbox, pool_link);
    struct limits d = sandbox_defaults(k), old;
    struct err e;

    if (sb == NULL || o->snapshot != NULL || strcmp(o->template, sb->rec.template) != 0 ||
        l->nofile != d.nofile || l->memory != d.memory || o->network != sb->rec.network ||
        l->bandwidth != sb->rec.limits.bandwidth || o->relaxed != (sb->rec.relaxed != 0))
        return NULL;
    old = sb->rec.limits;
    sb->rec.limits = *l;
    if (strcmp(sb->rec.layer, template_current(k, o->template, &e)) == 0 &&
        apply_limits(sb, &old, &e) == 0 && network_set_rules(sb, &o->rules, &e) == 0)
        return sb;
    sandbox_tell(sb, EV_DROP);
    pool_refill(k);
    return NULL;
}

int sandbox_create(struct keeper *k, uint32_t seq, const struct keeper_create *m, struct err *e)
{
    struct order o = {.template = m->template, .rules = m->rules, .relaxed = m->relaxed != 0};
    struct limits defaults = sandbox_defaults(k);
    struct sandbox *sb;

    LIMITS_COPY(&o.limits, m);
    LIMITS_DEFAULT(&o.limits, &defaults);
    if (m->snapshot[0] != '\0') {
        o.snapshot = snapshot_find(k, m->snapshot);
        if (o.snapshot == NULL)
            return err_set(e, ERR_NOT_FOUND, "no snapshot %s", m->snapshot);
        if (o.snapshot->damaged)
            return err_set(e, ERR_CONFLICT, "snapshot %s is damaged: both copies of its record",
                           m->snapshot);
        o.template = o.snapshot->rec.template;
    }
    if (sandbox_check_limits(&o.limits, e) < 0 || io_check(k, o.limits.disk_io, e) < 0 ||
        rules_check(&o.rules, e) < 0 || network_choose(k, m->network, &o.network, e) < 0)
        return -1;
    if (o.rules.len > 0 && o.network == 0)
        return err_set(e, ERR_INVALID, "network: rules are for `egress`; this sandbox gets `none`");
    if (sandbox_check_room(k, e) < 0)
        return -1;
    sb = take_pooled(k, &o);
    if (sb != NULL)
        return sandbox_event(sb, EV_GIVE, &(struct news){.seq = seq}, e);
    return sandbox_build(k, &o, STATE_CREATING, seq, e) == NULL ? -1 : 0;
}

int sandbox_import(struct keeper *k, uint32_t seq, const struct keeper_import *m, struct err *e)
{
    struct order o = {.limits = sandbox_defaults(k)}; /* no template, no network */

    if (m->disk != 0)
        o.limits.disk = m->disk;
    if (sandbox_check_limits(&o.limits, e) < 0)
        return -1;
    if (k->counts[COUNT_IMPORTS] >= IMAGE_IMPORTS_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu templates are being added already; try again",
                       k->counts[COUNT_IMPORTS]);
    if (sandbox_check_room(k, e) < 0)
        return -1;
    return sandbox_build(k, &o, STATE_PREPARING, seq, e) == NULL ? -1 : 0;
}

int sandbox_rules(struct keeper *k, uint32_t seq, const struct keeper_rules *m, struct err *e)
{
    struct sandbox *sb = sandbox_find_given(k, m->id, e);

    if (sb == NULL || rules_check(&m->rules, e) < 0)
        return -1;
    if (sb->rec.phase == PHASE_GIVEN && network_set_rules(sb, &m->rules, e) < 0)
        return -1;
    link_ok(k, seq);
    return 0;
}

/* Limits that init applies when it starts. */
static int check_relimit(const struct sandbox *sb, const struct limits *l, struct err *e)
{
    const struct limits *old = &sb->rec.limits;
    const char *fixed = l->nofile != old->nofile         ? "nofile"
                        : l->bandwidth != old->bandwidth ? "bandwidth"
                                                         : NULL;

    if (sandbox_check_limits(l, e) < 0 || io_check(sb->k, l->disk_io, e) < 0)
        return -1;
    if (sb->rec.phase == PHASE_GIVEN && fixed != NULL)
        return err_set(e, ERR_CONFLICT,
                       "limits: %s cannot change while sandbox %s runs; stop it first", fixed,
                       sb->rec.id);
    return 0;
}

/* The kernel first, then the record: after a kill in between no client was told, and the old
 * limits come back with the next boot. After a failure they come back now. */
int sandbox_relimit(struct keeper *k, uint32_t seq, const struct keeper_relimit *m, struct err *e)
{
    struct sandbox *sb = sandbox_find_given(k, m->id, e);
    struct limits l, old;
    struct err ignored;
    int r;

    if (sb == NULL)
        return -1;
    old = sb->rec.limits;
    LIMITS_COPY(&l, m);
    LIMITS_DEFAULT(&l, &old);
    if (check_relimit(sb, &l, e) < 0)
        return -1;
    sb->rec.limits = l;
    if (sb->rec.phase == PHASE_GIVEN)
        r = apply_limits(sb, &old, e);
    else
        r = l.disk == old.disk ? 0 : disk_limit(sb, e);
    if (r < 0 && e->sys == EBUSY)
        err_set(e, ERR_CONFLICT, "limits: sandbox %s uses more memory than that", m->id);
    if (r == 0 && record_save(sb, true, e) == 0) {
        link_ok(k, seq);
        return 0;
    }
    sb->rec.limits = old;
    if (sb->rec.phase == PHASE_GIVEN)
        apply_limits(sb, &l, &ignored);
    else if (l.disk != old.disk)
        disk_limit(sb, &ignored);
    return -1;
}

/* ---- all stages are up ---- */

static int give(struct sandbox *sb)
{
    struct err e;

    sb->rec.reason[0] = '\0';
    /* Not durable: before it tells a client, a front asks for that, for many at a time. */
    if (sandbox_enter_saved(sb, STATE_RUNNING, false, &e) < 0) {
        sandbox_failed(sb, &e);
        return 0;
    }
    reserve_kick(sb->k);
    link_sandbox(sb->k, sb->ask, sb);
    sb->ask = 0;
    return 0;
}

int react_give_pooled(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)e;
    sb->ask = n->seq;
    sb->rec.created_ms = clock_real_ms();
    give(sb);
    pool_refill(sb->k);
    return 0;
}

/* False: it has failed, and is on its way down. */
static bool can_serve(struct sandbox *sb)
{
    struct err e;

    if (sandbox_watch_init(sb, &e) == 0 && sb->ask != ASK_FORGOTTEN)
        return true;
    if (sb->ask == ASK_FORGOTTEN) /* the next front has its list, and this one was not in it */
        err_set(&e, ERR_GONE, "sandbox %s: the front that asked for it is gone", sb->rec.id);
    sandbox_failed(sb, &e);
    return false;
}

int react_booted_for_client(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    (void)e;
    return can_serve(sb) ? give(sb) : 0;
}

int react_booted_for_import(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    (void)e;
    if (!can_serve(sb))
        return 0;
    sandbox_enter(sb, STATE_IMPORTING);
    link_sandbox(sb->k, sb->ask, sb);
    sb->ask = 0;
    return 0;
}

int react_booted_for_pool(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    if (!can_serve(sb))
        return 0;
    sandbox_enter(sb, STATE_POOLED);
    if (record_save(sb, false, e) < 0)
        log_warn("%s", e->msg);
    sb->k->refill_fails = 0;
    loop_timer_stop(sb->k->loop, &sb->k->refill_wait);
    proof_done(sb->k, NULL);
    pool_refill(sb->k);
    pool_trim(sb->k);
    return 0;
}

/* ---- a stage could not go up ---- */

void sandbox_failed(struct sandbox *sb, const struct err *why)
{
    struct err ignored;

    log_error("%s", why->msg);
    sandbox_event(sb, EV_FAILED, &(struct news){.why = why}, &ignored);
}

int react_create_failed(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)e;
    sandbox_answer_fail(sb, n->why);
    sandbox_take_down(sb, STATE_DELETING);
    return 0;
}

int react_fill_failed(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    (void)e;
    proof_done(sb->k, stage_name(sb->rec.stage));
    sandbox_take_down(sb, STATE_DELETING);
    pool_refill_failed(sb->k);
    return 0;
}

int react_boot_failed(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)e;
    sandbox_answer_fail(sb, n->why);
    sandbox_take_down(sb, STATE_STOPPING);
    return 0;
}

/* ---- booting a stopped one ---- */

/* Booting fails where a create would; the sandbox then stays stopped. */
void sandbox_boot_now(struct sandbox *sb)
{
    struct err e;

    if (sb->ask == ASK_FORGOTTEN) {
        sb->ask = 0;
        return;
    }
    if (sandbox_check_room(sb->k, &e) == 0) {
        sandbox_enter(sb, STATE_BOOTING);
        if (stages_up(sb, &e) == 0)
            return;
        sandbox_take_down(sb, STATE_STOPPING);
    }
    sandbox_answer_fail(sb, &e);
}

/* Keeps the request for when the sandbox is ready for it. */
static int keep_boot(struct sandbox *sb, const struct news *n, struct err *e)
{
    const struct keeper_boot *m = n->msg;

    if (rules_check(&m->rules, e) < 0)
        return -1;
    if (sandbox_is_busy(sb) && sb->taking != NULL)
        return err_set(e, ERR_CONFLICT, "a snapshot of sandbox %s is being taken; try again",
                       sb->rec.id);
    if (sandbox_is_busy(sb))
        return err_set(e, ERR_UNAVAILABLE, "sandbox %s is still stopping or booting; try again",
                       sb->rec.id);
    if (network_keep_rules(sb, &m->rules, e) < 0)
        return -1;
    sb->rec.relaxed = m->relaxed;
    sb->ask = n->seq;
    return 0;
}

int react_boot_stopped(struct sandbox *sb, const struct news *n, struct err *e)
{
    if (keep_boot(sb, n, e) < 0)
        return -1;
    sandbox_boot_now(sb);
    return 0;
}

/* As after the death of its init: it boots when its stages are down. */
int react_boot_after_stop(struct sandbox *sb, const struct news *n, struct err *e)
{
    if (keep_boot(sb, n, e) < 0)
        return -1;
    sandbox_enter(sb, STATE_REBOOTING);
    return 0;
}

/* A front that is gone had it booted already. */
int react_boot_taken_over(struct sandbox *sb, const struct news *n, struct err *e)
{
    return keep_boot(sb, n, e);
}

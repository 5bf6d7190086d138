/* requests.c - what the front asks for, one function per request; ops.c has the table. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/image.h"
#include "keeper/internal.h"
#include "keeper/io.h"
#include "keeper/network.h"
#include "keeper/ops.h"
#include "keeper/quarantine.h"
#include "keeper/snapshot.h"
#include "keeper/template.h"

#define DYING_MAX 1000 /* teardowns waiting: creations are answered 503 */

struct sandbox *sandbox_find_given(struct keeper *k, const char *id, struct err *e)
{
    struct sandbox *sb = sandbox_find(k, id);

    if (sb != NULL && (sb->rec.phase == PHASE_GIVEN || sb->rec.phase == PHASE_STOPPED))
        return sb;
    if (sb != NULL && sb->rec.phase == PHASE_DAMAGED)
        err_set(e, ERR_CONFLICT, "sandbox %s is damaged (%s); recover or delete it", id,
                sb->rec.reason);
    else
        err_set(e, ERR_NOT_FOUND, "no sandbox %s", id);
    return NULL;
}

bool sandbox_is_busy(const struct sandbox *sb)
{
    return sb->ask != 0 && sb->ask != ASK_FORGOTTEN;
}

static struct limits wanted(const struct keeper *k, const struct keeper_create *m)
{
    struct limits l, d = sandbox_defaults(k);

    LIMITS_COPY(&l, m);
    LIMITS_DEFAULT(&l, &d);
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

static int relimit(struct sandbox *sb, const struct limits *l, struct err *e)
{
    struct limits old = sb->rec.limits;

    if (memcmp(&old, l, sizeof(old)) == 0)
        return 0;
    sb->rec.limits = *l;
    if (cgroup_limit(sb, e) < 0)
        return -1;
    return old.disk == l->disk ? 0 : disk_limit(sb, e);
}

/* A pooled one serves whatever its limits, but for those init has already made
 * its own: the open files, the bandwidth and, through the memory, the size of /dev/shm. */
static struct sandbox *from_pool(struct keeper *k, const struct order *o)
{
    const struct limits *l = &o->limits;
    struct sandbox *sb = LIST_FIRST(&k->pool, struct sandbox, link);
    struct limits d = sandbox_defaults(k);
    struct err e;

    if (sb == NULL || strcmp(o->template, sb->rec.template) != 0 || l->nofile != d.nofile ||
        l->memory != d.memory || o->network != sb->rec.network ||
        l->bandwidth != sb->rec.limits.bandwidth)
        return NULL;
    list_del(&sb->link);
    k->npool--;
    pool_refill(k);
    if (strcmp(sb->rec.layer, template_current(k, o->template, &e)) == 0 &&
        relimit(sb, l, &e) == 0 && network_rule(sb, &o->rules, &e) == 0)
        return sb;
    sb->rec.phase = PHASE_DYING;
    sandbox_bury(sb, false);
    return NULL;
}

int sandbox_check_room(struct keeper *k, struct err *e)
{
    if (k->ndying > DYING_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu sandboxes are still being taken down", k->ndying);
    if (k->ngiven + k->nasked >= k->nsandboxes_max)
        return err_set(e, ERR_UNAVAILABLE, "this host holds %llu sandboxes and no more",
                       (unsigned long long)k->nsandboxes_max);
    return disk_check(k, e);
}

int sandbox_create(struct keeper *k, uint32_t seq, const struct keeper_create *m, struct err *e)
{
    struct order o = {.template = m->template, .limits = wanted(k, m), .rules = m->rules};
    struct sandbox *sb;

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
    sb = o.snapshot != NULL ? NULL : from_pool(k, &o);
    if (sb != NULL) {
        sb->ask = seq;
        sb->rec.created_ms = clock_real_ms();
        if (sandbox_give(sb, e) < 0) {
            sandbox_failed(sb, e);
            return 0;
        }
        sandbox_answer_given(sb);
        return 0;
    }
    return sandbox_build(k, &o, seq, e) == NULL ? -1 : 0;
}

int sandbox_import(struct keeper *k, uint32_t seq, struct err *e)
{
    struct order o = {.limits = sandbox_defaults(k)}; /* no template, no network */

    if (k->nimports >= IMAGE_IMPORTS_MAX)
        return err_set(e, ERR_UNAVAILABLE, "%zu templates are being added already; try again",
                       k->nimports);
    if (sandbox_check_room(k, e) < 0)
        return -1;
    return sandbox_build(k, &o, seq, e) == NULL ? -1 : 0;
}

/* The message is kept as a frame: it must outlive the front's buffer, and wire.h
 * knows how to put one together and take it apart. */
static int keep_commit(struct sandbox *sb, const struct keeper_commit *m, struct err *e)
{
    autobuf struct buf b = BUF_INIT(WIRE_FRAME_MAX);

    if (wire_put(&b, keeper_msg(KEEPER_COMMIT), 1, m, e) < 0)
        return -1;
    sb->commit_len = b.len - WIRE_HEAD;
    sb->commit = malloc(sb->commit_len);
    if (sb->commit == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    memcpy(sb->commit, buf_data(&b) + WIRE_HEAD, sb->commit_len);
    return 0;
}

int sandbox_commit(struct keeper *k, uint32_t seq, const struct keeper_commit *m, struct err *e)
{
    struct sandbox *sb = sandbox_find(k, m->id);

    if (sb == NULL || sb->rec.phase != PHASE_IMPORT || sb->commit != NULL)
        return err_set(e, ERR_NOT_FOUND, "no import %s", m->id);
    if (keep_commit(sb, m, e) < 0)
        return -1;
    sb->ask = seq;
    cgroup_kill(sb);
    return 0;
}

/* One that is being committed ends by itself; nobody hears of it but the next list. */
void sandbox_end_imports(struct keeper *k)
{
    for (size_t i = 0; i < k->sandboxes.nslots; i++)
        for (struct map_node *n = k->sandboxes.slots[i]; n != NULL; n = n->next) {
            struct sandbox *sb = CONTAINER_OF(n, struct sandbox, by_id);

            if (sb->rec.phase != PHASE_IMPORT || sb->commit != NULL)
                continue;
            sb->rec.phase = PHASE_DYING;
            sandbox_bury(sb, false);
        }
}

void sandbox_boot_now(struct sandbox *sb)
{
    struct err e;

    sb->reboot = false;
    sb->keep_disk = true;
    if (sb->ask == ASK_FORGOTTEN) {
        sb->ask = 0;
        return;
    }
    if (sandbox_check_room(sb->k, &e) == 0) {
        sandbox_count_asked(sb, true);
        if (sandbox_up(sb, &e) == 0)
            return;
        sandbox_bury(sb, true);
    }
    link_fail(sb->k, sb->ask, &e);
    sb->ask = 0;
}

/* One that is still on its way down, as after the death of its init, boots when it
 * is there; one that a front before this one booted is taken over. */
int sandbox_boot(struct keeper *k, uint32_t seq, const struct keeper_boot *m, struct err *e)
{
    const char *id = m->id;
    struct sandbox *sb = sandbox_find_given(k, id, e);

    if (sb == NULL || rules_check(&m->rules, e) < 0)
        return -1;
    if (sb->rec.phase != PHASE_STOPPED)
        return err_set(e, ERR_CONFLICT, "sandbox %s is running", id);
    if (sandbox_is_busy(sb) && sb->taking != NULL)
        return err_set(e, ERR_CONFLICT, "a snapshot of sandbox %s is being taken; try again", id);
    if (sandbox_is_busy(sb))
        return err_set(e, ERR_UNAVAILABLE, "sandbox %s is still stopping or booting", id);
    if (network_keep_rules(sb, &m->rules, e) < 0)
        return -1;
    sb->ask = seq;
    if (!list_empty(&sb->link))
        sb->reboot = true;
    else if (sb->rec.stage == 0)
        sandbox_boot_now(sb);
    return 0;
}

/* One that is stopped gets them with its next boot. */
int sandbox_rules(struct keeper *k, uint32_t seq, const struct keeper_rules *m, struct err *e)
{
    struct sandbox *sb = sandbox_find_given(k, m->id, e);
    struct keeper_ok ok = {0};

    if (sb == NULL || rules_check(&m->rules, e) < 0)
        return -1;
    if (sb->rec.phase == PHASE_GIVEN && network_rule(sb, &m->rules, e) < 0)
        return -1;
    link_send(k, KEEPER_OK, seq, &ok);
    return 0;
}

/* What cannot be recorded is not so: it may be asked for again. */
static int enter_phase(struct sandbox *sb, uint32_t phase, bool durable, struct err *e)
{
    uint32_t before = sb->rec.phase;

    sb->rec.phase = phase;
    if (record_save(sb, durable, e) == 0)
        return 0;
    sb->rec.phase = before;
    return -1;
}

/* The answer comes when init, and with it everything in its pid namespace, is
 * dead (init_died), and the record already says that nobody wants it back. That need not
 * be durable: a front asks when its own row is, and would ask again. */
int sandbox_destroy(struct keeper *k, uint32_t seq, const char *id, struct err *e)
{
    struct sandbox *sb = sandbox_find(k, id);
    uint32_t phase = sb == NULL ? PHASE_COUNT : sb->rec.phase;
    bool running;

    if (phase != PHASE_IMPORT && phase != PHASE_DAMAGED)
        sb = sandbox_find_given(k, id, e);
    if (sb == NULL)
        return -1;
    running = phase == PHASE_IMPORT || phase == PHASE_GIVEN ||
              (phase == PHASE_DAMAGED && sb->pidfd >= 0 && !birth_is_over(sb));
    if (enter_phase(sb, PHASE_DYING, false, e) < 0)
        return -1;
    if (phase == PHASE_DAMAGED)
        quarantine_end(sb);
    if (sb->ask != 0)
        link_fail(k, sb->ask, &(struct err){.kind = ERR_GONE, .msg = "it was deleted"});
    sb->ask = seq;
    sb->reboot = false;
    if (running) {
        k->ngiven -= phase == PHASE_GIVEN;
        cgroup_kill(sb);
        return 0;
    }
    sandbox_answer_ok(sb);
    if (!list_empty(&sb->link))
        sb->keep_disk = false; /* on its way down already */
    else
        sandbox_bury(sb, false);
    return 0;
}

int sandbox_halt(struct keeper *k, uint32_t seq, const char *id, struct err *e)
{
    struct sandbox *sb = sandbox_find_given(k, id, e);

    if (sb == NULL)
        return -1;
    if (sb->rec.phase == PHASE_STOPPED)
        return err_set(e, ERR_CONFLICT, "sandbox %s is stopped already", id);
    if (sandbox_is_busy(sb))
        return err_set(e, ERR_CONFLICT, "something else is being done with sandbox %s; try again",
                       id);
    str_fmt(sb->rec.reason, sizeof(sb->rec.reason), "it was stopped");
    if (enter_phase(sb, PHASE_STOPPED, true, e) < 0)
        return -1;
    k->ngiven--;
    sb->ask = seq;
    sandbox_bury(sb, true);
    return 0;
}

/* update.c - what a client may change of a sandbox that exists.
 *
 * All is checked first. Limits then go to the keeper, and when it has set them everything goes into
 * the row in one write: a client that was told of a change finds all of it after any crash. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

#define CHANGED_MAX 256u

struct update {
    struct engine *g;
    struct waiter *waiter; /* NULL once the client was told that it took too long */
    char id[KEEPER_ID_MAX + 1], key[ENGINE_KEY_MAX + 1];
    struct quota_user *user; /* charged with what it asks for, while the keeper sets it */
    struct quotas charged;
    struct update_opts o; /* its strings point to `name` and `metadata` */
    char *name, *metadata;
};

static void update_free(void *arg)
{
    struct update *u = arg;

    quota_drop(u->user, &u->charged);
    free(u->waiter);
    free(u->name);
    free(u->metadata);
    free(u);
}

static struct limits limits_after(const struct box *b, const struct update_opts *o)
{
    struct limits l = o->limits;

    LIMITS_DEFAULT(&l, &b->pub.limits);
    return l;
}

static bool sets_limits(const struct update_opts *o)
{
#define IS_SET(l, _, member, ...) || (l)->member != 0
    return false LIMITS(IS_SET, &o->limits, _);
#undef IS_SET
}

/* What changed, as the data of the event. */
static void say(struct box *b, const struct update_opts *o)
{
    autobuf struct buf names = BUF_INIT(CHANGED_MAX);

    buf_addf(&names, "%s%s%s%s%s%s%s", o->name != NULL ? " name" : "",
             o->metadata != NULL ? " metadata" : "", sets_limits(o) ? " limits" : "",
             o->set_timeout ? " timeout" : "", o->set_on_timeout ? " on_timeout" : "",
             o->set_auto_resume ? " auto_resume" : "", o->fsync != FSYNC_SETTING ? " fsync" : "");
    if (names.len > 0)
        events_say(b->g, b, "sandbox.updated", "changed", buf_cstr(&names) + 1);
}

/* The strings of `u` become the box's. */
static void take_name(struct box *b, struct update *u)
{
    name_detach(b);
    free(b->own_name);
    b->own_name = take_ptr(&u->name);
    b->pub.name = b->own_name;
    name_attach(b);
}

static int keep(struct box *b, struct update *u, struct err *e)
{
    const struct update_opts *o = &u->o;
    struct store_about row = {
        .name = o->name != NULL ? o->name : b->pub.name,
        .metadata = o->metadata != NULL ? o->metadata : b->pub.metadata,
        .on_timeout = o->set_on_timeout ? o->on_timeout : b->pub.on_timeout,
        .auto_resume = o->set_auto_resume ? o->auto_resume : b->pub.auto_resume,
        .relaxed = (o->fsync != FSYNC_SETTING ? o->fsync : b->pub.fsync) == FSYNC_RELAXED,
    };

    row.limits = limits_after(b, o);
    if (store_sandbox_set_about(u->g->o.store, u->id, &row, e) < 0)
        return -1;
    b->pub.limits = row.limits;
    box_charge(b);
    b->pub.on_timeout = (enum sandbox_end)row.on_timeout;
    b->pub.auto_resume = row.auto_resume != 0;
    b->pub.fsync = row.relaxed != 0 ? FSYNC_RELAXED : FSYNC_DURABLE;
    if (o->metadata != NULL) {
        free(b->own_metadata);
        b->own_metadata = take_ptr(&u->metadata);
        b->pub.metadata = b->own_metadata;
    }
    if (o->name != NULL)
        take_name(b, u);
    if (o->set_timeout)
        return box_set_end(b, o->timeout_ms == 0 ? 0 : clock_real_ms() + o->timeout_ms, e);
    return 0;
}

static bool may_have(const struct box *b, const struct update_opts *o, struct err *e)
{
    struct limits l = limits_after(b, o);
    struct quotas more = box_more(b, &l);

    return ceilings_check(b->g, &o->limits, e) == 0 && quota_check(b->user, &more, e) == 0;
}

static struct box *check(struct ref ref, const struct update_opts *o, struct err *e)
{
    struct box *b = box_of(ref);

    if (b == NULL)
        err_set(e, ERR_NOT_FOUND, "no sandbox %.64s", ref.id);
    else if (b->life == LIFE_DAMAGED)
        life_fail_damaged(b, e);
    else if (o->name != NULL && *o->name != '\0' && name_check(b->g, ref.key, o->name, b, e) < 0)
        return NULL;
    else if (o->metadata != NULL && strlen(o->metadata) > ENGINE_METADATA_MAX)
        err_set(e, ERR_TOO_LARGE, "metadata: more than %u bytes", ENGINE_METADATA_MAX);
    else if (o->set_timeout && box_with_end(ref, o->timeout_ms, e) == NULL)
        return NULL;
    else if (sets_limits(o) && !box_has_init(b) && b->life != LIFE_STOPPED)
        err_set(e, ERR_CONFLICT, "sandbox %s is %s; try again", ref.id, life_doing(b));
    else if (o->limits.memory != 0 && box_has_init(b) && b->metric.at_ms != 0 &&
             b->metric.memory - b->metric.cache > o->limits.memory)
        /* cgroup v2 would kill processes until the rest fits */
        err_set(e, ERR_CONFLICT,
                "limits: sandbox %s uses %llu bytes of memory, more than the new limit", ref.id,
                (unsigned long long)(b->metric.memory - b->metric.cache));
    else if (!sets_limits(o) || may_have(b, o, e))
        return b;
    return NULL;
}

static void finish(struct update *u)
{
    struct ref ref = {u->g, u->key, u->id};
    struct update_opts o = u->o;
    struct box *b;
    struct err e;

    quota_drop(u->user, &u->charged);
    u->charged = (struct quotas){0};
    b = check(ref, &u->o, &e); /* again: the keeper took its time */
    if (b == NULL || keep(b, u, &e) < 0) {
        waiter_answer(take_ptr(&u->waiter), u->id, &e);
        return;
    }
    say(b, &o);
    waiter_answer(take_ptr(&u->waiter), u->id, NULL);
}

static void on_relimited(void *arg, const void *msg, const struct err *e)
{
    struct update *u = arg;

    (void)msg;
    if (e == NULL)
        finish(u);
    else
        waiter_answer(take_ptr(&u->waiter), u->id, e);
    update_free(u);
}

static void on_late(void *arg, const struct err *e)
{
    struct update *u = arg;

    waiter_answer(take_ptr(&u->waiter), u->id, e);
}

static struct update *update_new(struct ref ref, const struct update_opts *o)
{
    struct update *u = mem_zeroed(1, sizeof(*u));

    u->g = ref.engine;
    u->o = *o;
    str_fmt(u->id, sizeof(u->id), "%s", ref.id);
    str_fmt(u->key, sizeof(u->key), "%s", ref.key);
    u->name = mem_text(o->name);
    u->metadata = mem_text(o->metadata);
    u->o.name = u->name;
    u->o.metadata = u->metadata;
    return u;
}

void engine_update(struct ref ref, const struct update_opts *o, engine_sandbox_cb *cb, void *arg)
{
    static const struct keeper_asker asker = {
        .last = on_relimited, .late = on_late, .drop = update_free};
    struct waiter *w = waiter_new(ref.engine, NULL, cb, arg);
    struct keeper_relimit ask;
    struct limits will;
    struct update *u;
    struct err e;
    struct box *b = check(ref, o, &e);

    if (b == NULL) {
        waiter_answer(w, "", &e);
        return;
    }
    u = update_new(ref, o);
    u->waiter = w;
    if (!sets_limits(o)) {
        finish(u);
        update_free(u);
        return;
    }
    will = limits_after(b, o);
    u->user = b->user;
    u->charged = box_more(b, &will);
    quota_add(u->user, &u->charged);
    ask = (struct keeper_relimit){.id = u->id};
    LIMITS_COPY(&ask, &o->limits);
    keeper_ask(ref.engine->keeper, KEEPER_RELIMIT, &ask, &asker, u);
}

/* box.c - sandboxes in memory: found by id, listed by age. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

const char *sandbox_state_name(enum sandbox_state s)
{
    static const char *const names[SANDBOX_STATE_COUNT] = {"running", "paused", "stopped",
                                                           "damaged"};

    return names[s];
}

const char *sandbox_end_name(enum sandbox_end s)
{
    static const char *const names[SANDBOX_END_COUNT] = {"delete", "stop", "pause"};

    return names[s];
}

struct box *box_find(struct engine *g, const char *id)
{
    struct map_node *n = map_get(&g->boxes, id);

    return n == NULL ? NULL : CONTAINER_OF(n, struct box, node);
}

struct box *box_of(struct ref ref)
{
    struct box *b = box_find(ref.engine, ref.id);

    if (b == NULL || strcmp(b->pub.key, ref.key) != 0)
        return NULL;
    return b->life == LIFE_DELETING || b->life == LIFE_DOOMED ? NULL : b;
}

bool box_has_init(const struct box *b)
{
    return b->life == LIFE_RUNNING || b->life == LIFE_PAUSED || b->life == LIFE_PAUSING ||
           b->life == LIFE_THAWING;
}

static int not_running(const struct box *b, struct err *e)
{
    if (b->life == LIFE_PAUSED)
        return err_set(e, ERR_CONFLICT, "sandbox %s is paused; resume it first", b->pub.id);
    if (b->life == LIFE_STOPPED)
        return err_set(e, ERR_CONFLICT, "sandbox %s is stopped (%s); resume it first", b->pub.id,
                       b->reason);
    if (b->life == LIFE_DAMAGED)
        return life_fail_damaged(b, e);
    return err_set(e, ERR_CONFLICT, "sandbox %s is %s; try again", b->pub.id, life_doing(b));
}

struct box *box_alive(struct ref ref, struct err *e)
{
    struct box *b = box_of(ref);

    if (b == NULL)
        err_set(e, ERR_NOT_FOUND, "no sandbox %.64s", ref.id);
    else if (box_has_init(b))
        return b;
    else
        not_running(b, e);
    return NULL;
}

struct box *box_running(struct ref ref, struct err *e)
{
    struct life_news wake = {.end = RESUME_WAKE};
    struct box *b = box_alive(ref, e);

    if (b == NULL || b->life == LIFE_RUNNING || b->life == LIFE_THAWING)
        return b;
    if (b->pub.auto_resume) {
        if (box_may_run(b, e) < 0)
            return NULL;
        life_event(b, LIFE_RESUME, &wake);
        return b;
    }
    not_running(b, e);
    return NULL;
}

size_t box_after(const struct engine *g, uint64_t after)
{
    size_t lo = 0, hi = g->norder;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (g->order[mid]->seq > after)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static void order_del(struct engine *g, const struct box *b)
{
    size_t i = box_after(g, b->seq - 1);

    if (i == g->norder || g->order[i] != b)
        return;
    g->norder--;
    memmove(&g->order[i], &g->order[i + 1], (g->norder - i) * sizeof(struct box *));
}

static const char *keep(char **at, const char *text)
{
    char *to = *at;

    *at = stpcpy(to, text) + 1;
    return to;
}

static struct box *box_new(const struct store_sandbox *row)
{
    size_t len = strlen(row->id) + strlen(row->key) + strlen(row->template) + strlen(row->network) +
                 strlen(row->metadata) + strlen(row->plane) + strlen(row->name) +
                 strlen(row->snapshot) + 8 + row->env.len + row->image.len;
    struct box *b = mem_zeroed(1, sizeof(*b) + len);
    char *at = (char *)(b + 1);

    b->pub.id = keep(&at, row->id);
    b->pub.key = keep(&at, row->key);
    b->pub.template = keep(&at, row->template);
    b->pub.network = keep(&at, row->network);
    b->pub.metadata = keep(&at, row->metadata);
    b->pub.plane = keep(&at, row->plane);
    b->pub.name = keep(&at, row->name);
    b->pub.snapshot = keep(&at, row->snapshot);
    b->pub.env = at;
    b->pub.env_len = row->env.len;
    if (row->env.len > 0)
        memcpy(at, row->env.p, row->env.len);
    b->pub.image = at + row->env.len;
    b->pub.image_len = row->image.len;
    if (row->image.len > 0)
        memcpy(at + row->env.len, row->image.p, row->image.len);
    return b;
}

static void box_fill(struct box *b, const struct store_sandbox *row)
{
    /* One that is being deleted is no box. */
    static const enum life lives[STORE_STATE_COUNT] = {[STORE_RUNNING] = LIFE_RUNNING,
                                                       [STORE_PAUSED] = LIFE_PAUSED,
                                                       [STORE_STOPPED] = LIFE_STOPPED,
                                                       [STORE_DELETING] = LIFE_STOPPED};
    static const enum sandbox_state states[STORE_STATE_COUNT] = {[STORE_RUNNING] = SANDBOX_RUNNING,
                                                                 [STORE_PAUSED] = SANDBOX_PAUSED,
                                                                 [STORE_STOPPED] = SANDBOX_STOPPED,
                                                                 [STORE_DELETING] =
                                                                     SANDBOX_STOPPED};

    b->seq = row->seq;
    LIMITS_COPY(&b->pub.limits, row);
    b->pub.created_ms = row->created_ms;
    b->pub.ends_ms = row->ends_ms;
    b->pub.changed_ms = row->changed_ms != 0 ? row->changed_ms : row->created_ms;
    b->pub.timeout_ms = row->timeout_ms;
    b->pub.on_timeout = (enum sandbox_end)row->on_timeout;
    b->pub.auto_resume = row->auto_resume != 0;
    b->pub.idle_ms = row->idle_ms;
    b->pub.guarded = row->guarded != 0;
    b->pub.fsync = row->relaxed != 0 ? FSYNC_RELAXED : FSYNC_DURABLE;
    b->pub.lost_ms = row->lost_ms;
    b->pub.log_output =
        row->log_output != 0 && b->g->o.config->logs_ms > 0 && b->g->o.config->logs_max > 0;
    b->journal.next = row->log_next;
    str_fmt(b->journal.boot, sizeof(b->journal.boot), "%.64s", row->log_boot);
    b->pub.boot_id = b->boot_id;
    b->pub.reason = b->reason;
    b->life = lives[row->state];
    box_set_state(b, states[row->state], row->boot_id, row->reason);
}

struct box *box_add(struct engine *g, const struct store_sandbox *row)
{
    struct box *b = box_find(g, row->id) != NULL ? NULL : box_new(row);

    if (b == NULL)
        return NULL;
    b->g = g;
    b->user = quota_user(g->o.quotas, row->key);
    box_fill(b, row);
    box_set_rules(b, &(struct wire_bytes){row->rules.p, (uint32_t)row->rules.len});
    list_init(&b->waiters);
    list_init(&b->next);
    list_init(&b->unsaved);
    list_init(&b->flush.link);
    list_init(&b->journal.waiting);
    talk_peer_init(&b->peer, g->hub, b->pub.id);
    if (g->norder == g->corder) {
        g->corder = g->corder ? g->corder * 2 : 64;
        g->order = mem_again(g->order, g->corder, sizeof(struct box *));
    }
    g->order[g->norder++] = b; /* the store gives ever higher numbers */
    mem_put(&g->boxes, &b->node, b->pub.id);
    name_attach(b);
    idle_watch(b);
    box_charge(b);
    return b;
}

void box_free(struct box *b)
{
    struct engine *g = b->g;
    struct err why;

    err_set(&why, ERR_GONE, "sandbox %s was deleted", b->pub.id);
    box_uncharge(b);
    box_leave(b);
    monitor_stop(b);
    journal_stop(b);
    talk_peer_reset(&b->peer, &why);
    loop_undefer(&b->peer.quiet);
    loop_timer_stop(g->loop, &b->end);
    loop_timer_stop(g->loop, &b->idle);
    map_del(&g->boxes, &b->node);
    list_del(&b->unsaved);
    list_del(&b->flush.link);
    name_detach(b);
    order_del(g, b);
    free(b->rules);
    free(b->own_name);
    free(b->own_metadata);
    free(b);
}

void box_leave(struct box *b)
{
    if (b->g->on_leave != NULL)
        b->g->on_leave(b->g->on_leave_arg, b->pub.id);
}

void box_set_state(struct box *b, enum sandbox_state state, const char *boot_id, const char *reason)
{
    b->pub.state = state;
    if (state != SANDBOX_RUNNING)
        box_leave(b);
    if (boot_id != b->boot_id)
        str_fmt(b->boot_id, sizeof(b->boot_id), "%.64s", boot_id);
    if (reason != b->reason)
        str_fmt(b->reason, sizeof(b->reason), "%.*s", ENGINE_REASON_MAX - 1, reason);
}

uint64_t box_time(const struct box *b, uint64_t at_ms)
{
    uint64_t now = clock_real_ms();

    return at_ms < b->pub.created_ms || at_ms > now ? now : at_ms;
}

/* holders.c - those who hold a workspace by name: acquire, heartbeat, release. */
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/internal.h"
#include "front/workspace/workspace.h"

#define TTL_MS 30000u
#define WAIT_MS 60000u
#define WAIT_MAX_MS 600000u

struct held_view {
    const char *role, *kind, *holder, *sandbox;
    uint64_t epoch, ends_ms;
};
/* clang-format off */
static const struct shape_field held_fields[] = {
    {"role", SHAPE_STR, offsetof(struct held_view, role), "spawner: its sandbox was made for this; attached: it ran; rearmed: it was being put away.", SHAPE_OMITTED},
    {"kind", SHAPE_STR, offsetof(struct held_view, kind), "turn or viewer."},
    {"holder", SHAPE_STR, offsetof(struct held_view, holder), "Its id, as given."},
    {"sandbox", SHAPE_STR, offsetof(struct held_view, sandbox), "Id of the sandbox behind the workspace.", SHAPE_OMITTED},
    {"epoch", SHAPE_U64, offsetof(struct held_view, epoch), "Epoch of that sandbox, for heartbeats and operations."},
    {"ends_at", SHAPE_TIME, offsetof(struct held_view, ends_ms), "When it ends without another heartbeat; null: with the connection.", SHAPE_NULLABLE},
};
static SHAPE(held_shape, "WorkspaceHolder", "Someone who holds a workspace.", held_fields);

struct hold_in {
    const char *kind, *holder;
    uint64_t ttl_ms, wait_ms, epoch;
};
static const struct json_field hold_fields[] = {
    {"holder", JSON_FIELD_STR, offsetof(struct hold_in, holder), 1, WORKSPACE_HOLDER_MAX, true, "Id of your choice, unique among the holders of that kind."},
    {"kind", JSON_FIELD_STR, offsetof(struct hold_in, kind), 1, 16, false, "turn (default) or viewer."},
    {"ttl_ms", JSON_FIELD_U64, offsetof(struct hold_in, ttl_ms), WORKSPACE_TTL_MIN, WORKSPACE_TTL_MAX, false, "Time until it ends without a heartbeat. Default: 30000."},
    {"wait_ms", JSON_FIELD_U64, offsetof(struct hold_in, wait_ms), 0, WAIT_MAX_MS, false, "How long to wait for the sandbox. Default: 60000."},
    {"epoch", JSON_FIELD_U64, offsetof(struct hold_in, epoch), 0, INT64_MAX, false, "Fail with `fenced` at any other epoch."},
};
static const struct json_field beat_fields[] = {
    {"kind", JSON_FIELD_STR, offsetof(struct hold_in, kind), 1, 16, false, "turn (default) or viewer."},
    {"ttl_ms", JSON_FIELD_U64, offsetof(struct hold_in, ttl_ms), WORKSPACE_TTL_MIN, WORKSPACE_TTL_MAX, false, "Time from now until it ends without another one. Default: 30000."},
    {"epoch", JSON_FIELD_U64, offsetof(struct hold_in, epoch), 1, INT64_MAX, true, "The epoch that was acquired."},
};
static const struct json_field release_fields[] = {
    {"kind", JSON_FIELD_STR, offsetof(struct hold_in, kind), 1, 16, false, "turn (default) or viewer."},
    {"epoch", JSON_FIELD_U64, offsetof(struct hold_in, epoch), 0, INT64_MAX, false, "The epoch that was acquired; 0: any."},
};
/* clang-format on */

static void hold_defaults(void *in, const struct config *c)
{
    (void)c;
    *(struct hold_in *)in = (struct hold_in){.kind = "turn", .ttl_ms = TTL_MS, .wait_ms = WAIT_MS};
}

#define HOLD_INPUT(var, table)                                                                     \
    static const struct surface_input var = {SURFACE_INPUT(table, struct hold_in),                 \
                                             .defaults = hold_defaults}
HOLD_INPUT(hold_input, hold_fields);
HOLD_INPUT(beat_input, beat_fields);
HOLD_INPUT(release_input, release_fields);

static int kind_of(const char *word, enum holder_kind *ret, struct err *e)
{
    for (int i = 0; i < HOLDER_KIND_COUNT; i++)
        if (strcmp(word, holder_kind_name(i)) == 0) {
            *ret = (enum holder_kind)i;
            return 0;
        }
    return err_set(e, ERR_INVALID, "kind: expected turn or viewer");
}

/* ---- acquire ---- */

struct acquire {
    struct call *c;
    struct workspace_holder h;
    char id[WORKSPACE_HOLDER_MAX + 1];
    struct workspace_use *use; /* NULL: it waits no more */
    struct loop_timer patience;
};

static void acquire_drop(void *state)
{
    struct acquire *a = state;

    loop_timer_stop(a->c->loop, &a->patience);
    workspace_leave(take_ptr(&a->use));
}

static void leave(void *handle)
{
    struct acquire *a = handle;

    acquire_drop(a);
}

/* A stream holds the use until it ends. */
static const struct call_source acquire_source = {.take_back = leave};

static void show(struct acquire *a, const struct workspace_grant *g, uint64_t ends_ms)
{
    struct held_view v = {workspace_role_name(g->role),
                          holder_kind_name((int)a->h.kind),
                          a->h.id,
                          g->sandbox,
                          g->epoch,
                          ends_ms};

    if (ends_ms == 0) {
        http_eof_is_gone(a->c->r);
        call_begin(a->c, CALL_SSE);
        call_event_shape(a->c, NULL, "held", &held_shape, &v);
        call_expect(a->c, &acquire_source, a);
    } else {
        call_reply_shape(a->c, &held_shape, &v);
        workspace_leave(take_ptr(&a->use));
    }
}

static void acquired(struct acquire *a, const struct workspace_grant *g)
{
    uint64_t ends_ms = clock_real_ms() + a->h.ttl_ms;
    struct call *c = a->c;
    struct err e;

    a->use = g->use;
    if (call_accept(c) == CALL_SSE) {
        workspace_use_as(g->use, a->h.kind, a->id);
        show(a, g, 0);
        return;
    }
    a->h.epoch = g->epoch;
    if (workspace_hold(native_workspaces(c), c->ref.key, call_param(c, 0), &a->h, &e) < 0)
        call_fail(c, &e);
    else
        show(a, g, ends_ms);
}

static void on_use(void *arg, const struct workspace_grant *g, const struct err *e)
{
    struct acquire *a = arg;

    loop_timer_stop(a->c->loop, &a->patience);
    a->use = NULL;
    if (call_got(a->c, e))
        acquired(a, g);
}

static void on_impatient(struct loop_timer *t)
{
    struct acquire *a = CONTAINER_OF(t, struct acquire, patience);
    struct call *c = a->c;
    struct err e;

    workspace_leave(take_ptr(&a->use));
    err_set(&e, ERR_TIMEOUT, "workspace %.64s: its sandbox is not ready yet; it goes on being made",
            call_param(c, 0));
    if (call_told(c))
        call_fail(c, &e);
}

static void holder_acquire(struct call *c, const void *in)
{
    const struct hold_in *h = in;
    struct acquire *a = call_state(c, sizeof(*a), acquire_drop);
    struct workspace_grant now;
    struct err e;
    int r;

    a->c = c;
    str_fmt(a->id, sizeof(a->id), "%s", h->holder);
    a->h = (struct workspace_holder){.id = a->id, .ttl_ms = h->ttl_ms};
    r = kind_of(h->kind, &a->h.kind, &e);
    if (r == 0)
        r = workspace_use(native_workspaces(c), c->ref.key, call_param(c, 0), h->epoch, on_use, a,
                          &a->use, &now, &e);
    if (r < 0) {
        call_fail(c, &e);
        return;
    }
    if (r == 1) {
        acquired(a, &now);
        return;
    }
    call_expect(c, &acquire_source, a);
    loop_timer_set(c->loop, &a->patience, h->wait_ms, on_impatient);
}

/* ---- heartbeat, release ---- */

static void holder_beat(struct call *c, const void *in)
{
    const struct hold_in *b = in;
    struct workspace_holder h = {.id = call_param(c, 1), .epoch = b->epoch, .ttl_ms = b->ttl_ms};
    struct err e;

    if (kind_of(b->kind, &h.kind, &e) < 0 ||
        workspace_beat(native_workspaces(c), c->ref.key, call_param(c, 0), &h, &e) < 0)
        call_fail(c, &e);
    else
        call_reply_shape(c, &held_shape,
                         &(struct held_view){NULL, holder_kind_name((int)h.kind), h.id, NULL,
                                             b->epoch, clock_real_ms() + b->ttl_ms});
}

static void holder_release(struct call *c, const void *in)
{
    const struct hold_in *b = in;
    struct workspace_holder h = {.id = call_param(c, 1), .epoch = b->epoch};
    struct err e;

    if (kind_of(b->kind, &h.kind, &e) < 0 ||
        workspace_release(native_workspaces(c), c->ref.key, call_param(c, 0), &h, &e) < 0)
        call_fail(c, &e);
    else
        call_reply_none(c);
}

/* clang-format off */
const struct surface_row surface_holders[] = {
    {{"POST",   "/v1/workspaces/{name}/holders"}, SCOPE_RUN, holder_acquire, "acquireWorkspace",
     "Holds a workspace, whose sandbox is made or resumed for it, until the time is over or it is released. As text/event-stream: as long as the connection is open.",
     .body = &hold_input, .status = 200, .answers = {&held_shape},
     .events = "held (WorkspaceHolder), once", .event_shapes = {&held_shape}},
    {{"PUT",    "/v1/workspaces/{name}/holders/{holder}"}, SCOPE_RUN, holder_beat, "heartbeatWorkspace",
     "Extends the time of a holder.",
     .body = &beat_input, .status = 200, .answers = {&held_shape}},
    {{"DELETE", "/v1/workspaces/{name}/holders/{holder}"}, SCOPE_RUN, holder_release, "releaseWorkspace",
     "Ends a holder; succeeds if there is none.",
     .query = &release_input, .status = 204},
    {.op = NULL},
};
/* clang-format on */

/* snapshots.c - E2B's snapshots and forks. A snapshot is deleted as a template is: see
 * templates.c. */
#include "front/engine/snapshot.h"

#include <string.h>

#include "base/own.h"
#include "front/planes/e2b/internal.h"
#include "http/http.h"
#include "json/write.h"

#define LIST_LIMIT_MAX 100u
#define LIST_BYTES_MAX (LIST_LIMIT_MAX * 1024u)
#define FORK_S 15 /* of a fork without a timeout */
#define FORK_BYTES_MAX (FORK_MAX * 4096u)

/* clang-format off */
struct snapshot_view {
    const char *id;
    struct shape_bytes names;
};
static const struct shape_field snapshot_fields[] = {
    {"snapshotID", SHAPE_STR, offsetof(struct snapshot_view, id), "Given as templateID when a sandbox is made."},
    {"names", SHAPE_STRV, offsetof(struct snapshot_view, names), "As given."},
};
static SHAPE(snapshot_shape, "SnapshotInfo", "A sandbox's files as they were at one moment.", snapshot_fields);
/* clang-format on */

static struct snapshot_view view_of(const struct snapshot *s)
{
    size_t n = strlen(s->name);

    return (struct snapshot_view){.id = s->id, .names = {s->name, n > 0 ? n + 1 : 0}};
}

/* ---- take ---- */

struct take_in {
    const char *name;
};
static const struct json_field take_fields[] = {
    {"name", JSON_FIELD_STR, offsetof(struct take_in, name), 1, SNAPSHOT_NAME_MAX, false, ""},
};
static const struct surface_input take_input = {SURFACE_INPUT(take_fields, struct take_in)};

static void taken(void *arg, const struct snapshot *s, const struct err *e)
{
    struct call *c = arg;
    struct snapshot_view v;

    if (!call_got(c, e))
        return;
    v = view_of(s);
    call_reply_shape(c, &snapshot_shape, &v);
}

static void snapshot_take(struct call *c, const void *in)
{
    const struct sandbox *s = e2b_named(c);

    if (s == NULL)
        return;
    call_expect(c, &call_pending, NULL);
    engine_snapshot(c->ref, ((const struct take_in *)in)->name, taken, c);
}

/* ---- list ---- */

struct list_in {
    const char *sandbox, *name, *token;
    uint64_t limit;
};
/* clang-format off */
static const struct json_field list_fields[] = {
    {"sandboxID", JSON_FIELD_STR, offsetof(struct list_in, sandbox), 0, 0, false, ""},
    {"name", JSON_FIELD_STR, offsetof(struct list_in, name), 0, 0, false, ""},
    {"limit", JSON_FIELD_U64, offsetof(struct list_in, limit), 1, 0, false, ""},
    {"nextToken", JSON_FIELD_STR, offsetof(struct list_in, token), 0, 0, false, ""},
};
/* clang-format on */

static void list_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct list_in *)in)->limit = LIST_LIMIT_MAX;
}

static const struct surface_input list_input = {SURFACE_INPUT(list_fields, struct list_in),
                                                .defaults = list_defaults};

static void add_snapshot(void *arg, const struct snapshot *s)
{
    struct snapshot_view v = view_of(s);

    shape_append(arg, &snapshot_shape, &v);
}

static void snapshot_list(struct call *c, const void *in)
{
    const struct list_in *l = in;
    autobuf struct buf rows = BUF_INIT(LIST_BYTES_MAX);
    autofree char *next = NULL;
    struct snapshot_list_opts o = {.key = c->ref.key,
                                   .sandbox = l->sandbox,
                                   .name = l->name,
                                   .after = l->token != NULL && *l->token != '\0' ? l->token : NULL,
                                   .limit = l->limit < LIST_LIMIT_MAX ? (size_t)l->limit
                                                                      : LIST_LIMIT_MAX};
    struct err e;

    if (engine_snapshots(c->plane->engine, &o, add_snapshot, &rows, &next, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (next != NULL)
        http_reply_header(c->r, "X-Next-Token", next);
    e2b_reply_list(c, 200, &rows);
}

/* ---- fork ---- */

struct fork_in {
    int64_t seconds, count;
};
static const struct json_field fork_fields[] = {
    {"timeout", JSON_FIELD_I64, offsetof(struct fork_in, seconds), 0, 0, false, ""},
    {"count", JSON_FIELD_I64, offsetof(struct fork_in, count), 0, 0, false, ""},
};

static void fork_defaults(void *in, const struct config *c)
{
    (void)c;
    *(struct fork_in *)in = (struct fork_in){.seconds = FORK_S, .count = 1};
}

static const struct surface_input fork_input = {SURFACE_INPUT(fork_fields, struct fork_in),
                                                .defaults = fork_defaults};

struct forks {
    struct call *c;
    struct buf rows;
};

static void forks_drop(void *state)
{
    buf_free(&((struct forks *)state)->rows);
}

static void add_fork(void *arg, const struct sandbox *s, const struct err *e)
{
    struct forks *f = arg;
    struct json_w w;

    if (f->rows.len > 0)
        buf_addc(&f->rows, ',');
    jw_init(&w, &f->rows);
    jw_open(&w);
    if (s != NULL) {
        jw_key(&w, "sandbox");
        e2b_put_sandbox(&w, e2b_of(f->c), s);
    } else {
        jw_key(&w, "error");
        jw_open(&w);
        jw_ku64(&w, "code", (uint64_t)err_http(e->kind));
        jw_kstr(&w, "message", e->kind == ERR_INTERNAL ? "internal error" : e->msg);
        jw_close(&w);
    }
    jw_close(&w);
}

static void forked(void *arg, const struct err *e)
{
    struct forks *f = arg;

    if (!call_told(f->c))
        return;
    if (e != NULL)
        call_fail(f->c, e);
    else
        e2b_reply_list(f->c, 201, &f->rows);
}

static void sandbox_fork(struct call *c, const void *arg)
{
    const struct fork_in *in = arg;
    struct forks *f = call_state(c, sizeof(*f), forks_drop);
    const struct sandbox *s = f == NULL ? NULL : e2b_named(c);
    struct fork_opts o = {.has_timeout = true, .timeout_ms = (uint64_t)in->seconds * 1000};
    struct err e;

    if (s == NULL)
        return;
    f->c = c;
    buf_init(&f->rows, FORK_BYTES_MAX);
    if (in->count < 1 || in->count > FORK_MAX)
        err_set(&e, ERR_INVALID, "count must be between 1 and %u", FORK_MAX);
    else if (s->state != SANDBOX_RUNNING)
        err_set(&e, ERR_CONFLICT, "sandbox \"%s\" is paused; resume it to fork it", s->id);
    else if (e2b_check_timeout(in->seconds, &e) == 0) {
        o.count = (unsigned)in->count;
        call_expect(c, &call_pending, NULL);
        engine_fork(c->ref, &o, add_fork, forked, f);
        return;
    }
    call_fail(c, &e);
}

/* clang-format off */
const struct surface_row e2b_snapshots[] = {
    {{"POST", "/sandboxes/{id}/snapshots"}, SCOPE_RUN, snapshot_take, "createSnapshot",
     "Keeps its files as they are now.", .body = &take_input, .status = 201, .answers = {&snapshot_shape}},
    {{"GET",  "/snapshots"}, SCOPE_READ, snapshot_list, "listSnapshots",
     "Lists snapshots, newest first.", .query = &list_input, .status = 200, .answers = {&snapshot_shape}},
    {{"POST", "/sandboxes/{id}/fork"}, SCOPE_RUN, sandbox_fork, "forkSandbox",
     "New sandboxes with the files of this one.", .body = &fork_input, .status = 201},
    {.op = NULL},
};
/* clang-format on */

/* forks.c - forks: several sandboxes from one. */
#include "base/own.h"
#include "front/engine/snapshot.h"
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/sandbox/sandbox_view.h"

#define FORK_BYTES_MAX (FORK_MAX * (ENGINE_METADATA_MAX + ENGINE_ENV_MAX + (8u << 10)))

struct fork_in {
    uint64_t count, timeout_ms; /* UINT64_MAX: not given */
};
static const struct json_field fork_fields[] = {
    {"count", JSON_FIELD_U64, offsetof(struct fork_in, count), 1, FORK_MAX, false,
     "Number of sandboxes. Default: 1."},
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct fork_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX,
     false, "Lifetime in milliseconds; 0: no limit. Default: that of the original."},
};

static void fork_defaults(void *in, const struct config *c)
{
    (void)c;
    *(struct fork_in *)in = (struct fork_in){.count = 1, .timeout_ms = UINT64_MAX};
}

static const struct surface_input fork_input = {SURFACE_INPUT(fork_fields, struct fork_in),
                                                .defaults = fork_defaults};

/* clang-format off */
struct failure_view {
    const char *code, *message;
};
static const struct shape_field failure_fields[] = {
    {"code", SHAPE_STR, offsetof(struct failure_view, code), "Error code."},
    {"message", SHAPE_STR, offsetof(struct failure_view, message), "Message for people."},
};
static SHAPE(failure_shape, "ForkFailure", "Why one of the sandboxes could not be created.", failure_fields);

struct forked_view {
    const struct sandbox_view *sandbox;
    const struct failure_view *error;
};
static const struct shape_field forked_fields[] = {
    {"sandbox", SHAPE_OBJECT, offsetof(struct forked_view, sandbox), "The new sandbox.", SHAPE_OMITTED, &sandbox_shape},
    {"error", SHAPE_OBJECT, offsetof(struct forked_view, error), "Error, if the sandbox could not be created.", SHAPE_OMITTED, &failure_shape},
};
static SHAPE(forked_shape, "Forked", "One of the results of a fork.", forked_fields);

struct forks_view {
    struct shape_bytes forks;
};
static const struct shape_field forks_fields[] = {
    {"forks", SHAPE_LIST, offsetof(struct forks_view, forks), "One result per requested sandbox; each succeeds or fails independently.", SHAPE_ALWAYS, &forked_shape},
};
static SHAPE(forks_shape, "Forks", "Result of a fork.", forks_fields);
/* clang-format on */

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
    autobuf struct buf names = BUF_INIT(ENGINE_ENV_MAX);
    struct forks *f = arg;
    struct sandbox_view v;
    struct failure_view why;
    struct forked_view one = {0};

    if (s != NULL) {
        sandbox_view_of(&v, s, &names);
        one.sandbox = &v;
    } else {
        why = (struct failure_view){err_code(e->kind),
                                    e->kind == ERR_INTERNAL ? "internal error" : e->msg};
        one.error = &why;
    }
    shape_append(&f->rows, &forked_shape, &one);
}

static void forked(void *arg, const struct err *e)
{
    struct forks *f = arg;

    if (!call_told(f->c))
        return;
    if (e != NULL)
        call_fail(f->c, e);
    else
        call_reply_shape(f->c, &forks_shape, &(struct forks_view){shape_list(&f->rows)});
}

static void sandbox_fork(struct call *c, const void *in)
{
    const struct fork_in *i = in;
    struct fork_opts o = {.count = (unsigned)i->count, .has_timeout = i->timeout_ms != UINT64_MAX};
    struct forks *f = call_state(c, sizeof(*f), forks_drop);

    f->c = c;
    buf_init(&f->rows, FORK_BYTES_MAX);
    o.timeout_ms = o.has_timeout ? i->timeout_ms : 0;
    call_expect(c, &call_pending, NULL);
    engine_fork(c->ref, &o, add_fork, forked, f);
}

/* clang-format off */
const struct surface_row surface_forks[] = {
    {{"POST",   "/v1/sandboxes/{id}/fork"}, SCOPE_RUN, sandbox_fork, "forkSandbox",
     "Creates new sandboxes with the files and options of this one. Processes are not copied.",
     .body = &fork_input, .status = 201, .answers = {&forks_shape}},
    {.op = NULL},
};
/* clang-format on */

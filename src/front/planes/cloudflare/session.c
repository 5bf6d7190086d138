/* session.c - shells that remember. One is made when a command first names it, so that
 * making it before is a courtesy; `exit` in it ends the command only. */
#include "front/engine/session.h"

#include "base/clock.h"
#include "base/own.h"
#include "front/plane/maps.h"
#include "front/planes/cloudflare/internal.h"

void cloudflare_session_make(struct call *c, const char *name, session_cb *cb, void *arg)
{
    struct session_opts o = {
        .id = name, .cwd = CLOUDFLARE_ROOT, .user = CLOUDFLARE_USER, .restart = true};

    call_expect(c, &call_pending, NULL);
    session_create(c->ref, &o, cb, arg);
}

/* ---- create ---- */

struct create_in {
    const char *id, *cwd;
    json_t *env;
};

struct id_view {
    const char *id;
};
static const struct shape_field id_fields[] = {
    {"id", SHAPE_STR, offsetof(struct id_view, id), "Id, for the header Session-Id."},
};
static SHAPE(id_shape, "CloudflareSession", "A shell that keeps its state between commands.",
             id_fields);

static void created(void *arg, const struct session_info *s, const struct err *e)
{
    struct call *c = arg;
    const struct create_in *in = c->in;

    if (call_got(c, e))
        call_reply_shape(c, &id_shape, &(struct id_view){in->id != NULL ? in->id : s->id});
}

static void create_go(struct call *c, const void *body)
{
    autobuf struct buf env = BUF_INIT(PROCESS_ARGS_MAX), cwd = BUF_INIT(2 * ENGINE_PATH_MAX);
    const struct create_in *in = body;
    char name[PROCESS_ID_MAX + 1] = "";
    struct session_opts o = {.id = name, .user = CLOUDFLARE_USER, .restart = true};
    struct err e;

    if (maps_env(in->env, &env, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (in->id != NULL)
        cloudflare_name("", in->id, name);
    /* anywhere, as the reference has it */
    buf_adds(&cwd, in->cwd == NULL || *in->cwd != '/' ? CLOUDFLARE_ROOT : "");
    cloudflare_resolve(&cwd, in->cwd != NULL ? in->cwd : "");
    o.cwd = cwd.len > 0 ? buf_cstr(&cwd) : "/";
    o.env = buf_data(&env);
    o.env_len = env.len;
    call_expect(c, &call_pending, NULL);
    session_create(c->ref, &o, created, c);
}

static void create_run(struct call *c, const void *body)
{
    const struct create_in *in = body;
    struct err e;

    if (in->id != NULL && cloudflare_check_session(in->id, &e) < 0)
        call_fail(c, &e);
    else
        cloudflare_enter(c, in, create_go);
}

/* clang-format off */
static const struct json_field create_fields[] = {
    {"id", JSON_FIELD_STR, offsetof(struct create_in, id), 1, CLOUDFLARE_SESSION_MAX, false, "Id. Default: the server chooses one. Refused if it is in use."},
    {"cwd", JSON_FIELD_STR, offsetof(struct create_in, cwd), 1, ENGINE_PATH_MAX, false, "Working directory at the start. Default: /workspace."},
    {"env", JSON_FIELD_STRMAP, offsetof(struct create_in, env), 0, MAPS_ENV_MAX, false, "Environment variables."},
};
/* clang-format on */
static const struct surface_input create_input = {SURFACE_INPUT(create_fields, struct create_in)};

/* ---- delete ---- */

struct deleted_view {
    bool success;
    const char *id;
    uint64_t at_ms;
};
static const struct shape_field deleted_fields[] = {
    {"success", SHAPE_BOOL, offsetof(struct deleted_view, success), "The session was deleted."},
    {"sessionId", SHAPE_STR, offsetof(struct deleted_view, id), "Id."},
    {"timestamp", SHAPE_TIME, offsetof(struct deleted_view, at_ms), "When."},
};
static SHAPE(deleted_shape, "CloudflareSessionDeleted", "A deleted session.", deleted_fields);

static void deleted(void *arg, const struct err *e)
{
    struct call *c = arg;

    if (call_got(c, e))
        call_reply_shape(c, &deleted_shape,
                         &(struct deleted_view){true, call_param(c, 1), clock_real_ms()});
}

static void delete_go(struct call *c, const void *in)
{
    char name[PROCESS_ID_MAX + 1];

    (void)in;
    cloudflare_name("", call_param(c, 1), name);
    call_expect(c, &call_pending, NULL);
    session_delete(c->ref, name, deleted, c);
}

static void delete_run(struct call *c, const void *in)
{
    struct err e;

    if (cloudflare_check_session(call_param(c, 1), &e) < 0)
        call_fail(c, &e);
    else
        cloudflare_look(c, in, delete_go);
}

/* clang-format off */
const struct surface_row cloudflare_session[] = {
    {{"POST", CLOUDFLARE_SANDBOX "/session"}, SCOPE_RUN, create_run, "cloudflareCreateSession",
     "Creates a session: a shell that keeps its state. exec with its id in the header Session-Id runs in it.",
     .body = &create_input, .status = 200, .answers = {&id_shape}, .failure = "session_error"},
    {{"DELETE", CLOUDFLARE_SANDBOX "/session/{sid}"}, SCOPE_RUN, delete_run, "cloudflareDeleteSession",
     "Deletes a session and kills everything it started.",
     .status = 200, .answers = {&deleted_shape}, .failure = "session_error"},
    {.op = NULL},
};
/* clang-format on */

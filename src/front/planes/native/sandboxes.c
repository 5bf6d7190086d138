/* sandboxes.c - make, see, find, keep and end sandboxes. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/planes/native/command.h"
#include "front/planes/native/inside.h"
#include "front/planes/native/network.h"

#define CREATE_BODY_MAX (256u << 10)
#define NAME_MAX_BYTES 128u
#define LIST_LIMIT 100u
#define LIST_LIMIT_MAX 1000u
#define LIST_BYTES_MAX (LIST_LIMIT_MAX * (ENGINE_METADATA_MAX + (8u << 10)))

/* The bounds of limits are those of the settings that give their defaults. */
enum limit_bounds {
#define X(type, member, name, def, min, max, doc)                                                  \
    MIN_##member = (uint64_t)(min), MAX_##member = (uint64_t)(max),
    CONFIG_KEYS(X)
#undef X
};

/* ---- answers ---- */

/* clang-format off */
static const struct shape_field limits_fields[] = {
    {"cpu_milli", SHAPE_U64, offsetof(struct sandbox_limits, cpu_milli), "Thousandths of a core."},
    {"memory", SHAPE_U64, offsetof(struct sandbox_limits, memory), "Bytes of memory."},
    {"pids", SHAPE_U64, offsetof(struct sandbox_limits, pids), "Processes and threads."},
    {"disk", SHAPE_U64, offsetof(struct sandbox_limits, disk), "Bytes it may write to its disk."},
    {"nofile", SHAPE_U64, offsetof(struct sandbox_limits, nofile), "Open files of each process."},
};
static SHAPE(limits_shape, "Limits", "What a sandbox may use at most.", limits_fields);

struct sandbox_view {
    const char *id, *state, *template, *network, *metadata, *on_timeout, *boot_id, *reason;
    uint64_t created_ms, changed_ms, ends_ms;
    bool auto_resume;
    const struct sandbox_limits *limits;
    struct shape_bytes env_names;
};

static const struct shape_field sandbox_fields[] = {
    {"id", SHAPE_STR, offsetof(struct sandbox_view, id), "Its name in every other call."},
    {"state", SHAPE_STR, offsetof(struct sandbox_view, state), "running, paused or stopped."},
    {"reason", SHAPE_STR, offsetof(struct sandbox_view, reason), "Why it is stopped.", SHAPE_OMITTED},
    {"template", SHAPE_STR, offsetof(struct sandbox_view, template), "What its root filesystem started as."},
    {"network", SHAPE_STR, offsetof(struct sandbox_view, network), "Its network: egress, or none: loopback only."},
    {"metadata", SHAPE_MAP, offsetof(struct sandbox_view, metadata), "As given at creation."},
    {"env_names", SHAPE_STRV, offsetof(struct sandbox_view, env_names),
     "Names of the variables given at creation; their values may be secrets and are never shown."},
    {"created_at", SHAPE_TIME, offsetof(struct sandbox_view, created_ms), "When it was made."},
    {"changed_at", SHAPE_TIME, offsetof(struct sandbox_view, changed_ms), "When it became what its state says."},
    {"ends_at", SHAPE_TIME, offsetof(struct sandbox_view, ends_ms), "When its timeout passes; null: never, or not while it is paused.", SHAPE_NULLABLE},
    {"on_timeout", SHAPE_STR, offsetof(struct sandbox_view, on_timeout), "What happens then: delete, stop or pause."},
    {"auto_resume", SHAPE_BOOL, offsetof(struct sandbox_view, auto_resume), "A command for it while it is paused resumes it."},
    {"limits", SHAPE_OBJECT, offsetof(struct sandbox_view, limits), "What it may use at most.", SHAPE_ALWAYS, &limits_shape},
    {"boot_id", SHAPE_STR, offsetof(struct sandbox_view, boot_id), "Another one after each resume from stopped."},
};
static SHAPE(sandbox_shape, "Sandbox", "An isolated computer.", sandbox_fields);

struct page_view {
    struct shape_bytes sandboxes;
    const char *next;
};
static const struct shape_field page_fields[] = {
    {"sandboxes", SHAPE_LIST, offsetof(struct page_view, sandboxes), "Oldest first.", SHAPE_ALWAYS, &sandbox_shape},
    {"next_cursor", SHAPE_STR, offsetof(struct page_view, next), "Give it as `cursor` for the next page; null: this was the last.", SHAPE_NULLABLE},
};
static SHAPE(page_shape, "SandboxPage", "One page of a list of sandboxes.", page_fields);
/* clang-format on */

/* NAME=value, NAME=value... to NAME, NAME... */
static void names_only(const char *env, size_t len, struct buf *out)
{
    for (size_t i = 0, n; i < len; i += n + 1) {
        n = strnlen(env + i, len - i);
        buf_add(out, env + i, strcspn(env + i, "="));
        buf_addc(out, '\0');
    }
}

/* The view points into the sandbox and `names`. */
static void view_of(struct sandbox_view *v, const struct sandbox *s, struct buf *names)
{
    names_only(s->env, s->env_len, names);
    *v = (struct sandbox_view){
        .id = s->id,
        .state = sandbox_state_name(s->state),
        .template = s->template,
        .network = s->network,
        .metadata = s->metadata,
        .on_timeout = sandbox_end_name(s->on_timeout),
        .boot_id = s->boot_id,
        .reason = s->state == SANDBOX_STOPPED ? s->reason : NULL,
        .created_ms = s->created_ms,
        .changed_ms = s->changed_ms,
        .auto_resume = s->auto_resume,
        .ends_ms = s->ends_ms,
        .limits = &s->limits,
        .env_names = shape_list(names),
    };
}

static void reply_sandbox(struct call *c, const struct sandbox *s)
{
    autobuf struct buf names = BUF_INIT(ENGINE_ENV_MAX);
    struct sandbox_view v;

    view_of(&v, s, &names);
    call_reply_shape(c, &sandbox_shape, &v);
}

static void sandbox_told(void *arg, const struct sandbox *s, const struct err *e)
{
    struct call *c = arg;

    if (!call_told(c))
        return;
    if (s == NULL)
        call_fail(c, e);
    else
        reply_sandbox(c, s);
}

/* ---- create ---- */

struct create_in {
    const char *template, *on_timeout;
    json_t *env, *metadata, *limits, *network;
    uint64_t timeout_ms;
    bool auto_resume;
};

/* clang-format off */
static const struct json_field limits_in[] = {
#define LIMIT(member, doc) {#member, JSON_FIELD_U64, offsetof(struct sandbox_limits, member), MIN_##member, MAX_##member, false, doc}
    LIMIT(cpu_milli, "Thousandths of a core."),
    LIMIT(memory, "Bytes of memory."),
    LIMIT(pids, "Processes and threads."),
    LIMIT(disk, "Bytes it may write to its disk."),
    LIMIT(nofile, "Open files of each process."),
#undef LIMIT
};

static const struct json_field create_fields[] = {
    {"template", JSON_FIELD_STR, offsetof(struct create_in, template), 1, NAME_MAX_BYTES, false, "What the root filesystem starts as; without it base."},
    {"env", JSON_FIELD_STRMAP, offsetof(struct create_in, env), 0, MAPS_ENV_MAX, false, "Variables of every command in it."},
    {"metadata", JSON_FIELD_STRMAP, offsetof(struct create_in, metadata), 0, MAPS_METADATA_MAX, false, "Your own names and values, shown and found again in lists."},
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct create_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX, false, "Lifetime in ms; 0: until it is deleted; without it the configured default."},
    {"on_timeout", JSON_FIELD_STR, offsetof(struct create_in, on_timeout), 1, NAME_MAX_BYTES, false, "What happens then: delete (the default), stop, which keeps the files, or pause, which keeps everything."},
    {"auto_resume", JSON_FIELD_BOOL, offsetof(struct create_in, auto_resume), 0, 0, false, "While it is paused, a command for it resumes it, for as long as it was made for and at least 5 minutes."},
    {"limits", JSON_FIELD_ANY, offsetof(struct create_in, limits), 0, 0, false, "What it may use at most; what is not given is the configured default."},
    {"network", JSON_FIELD_ANY, offsetof(struct create_in, network), 0, 0, false, "Its network; a string is taken as the mode. Without it: egress where the server can give it."},
};
/* clang-format on */

static const struct surface_nested create_nested[] = {
    {"limits", limits_in, ARRAY_LEN(limits_in)},
    {"network", network_create_fields, NETWORK_CREATE_FIELDS},
    {0}};

static void create_defaults(void *in, const struct config *c)
{
    ((struct create_in *)in)->timeout_ms = c->timeout_ms;
}

static const struct surface_input create_input = {
    SURFACE_INPUT(create_fields, struct create_in),
    .body_max = CREATE_BODY_MAX,
    .defaults = create_defaults,
    .nested = create_nested,
};

/* The place of `word` among the `n` names, or ERR_INVALID with all of them. */
static int choose(const char *field, const char *word, const char *(*name)(int i), int n, int *ret,
                  struct err *e)
{
    autobuf struct buf all = BUF_INIT(256);

    for (int i = 0; i < n; i++) {
        if (strcmp(word, name(i)) == 0) {
            *ret = i;
            return 0;
        }
        buf_addf(&all, "%s%s", i > 0 ? ", " : "", name(i));
    }
    return err_set(e, ERR_INVALID, "%s: expected one of %s", field, buf_cstr(&all));
}

static const char *end_name(int i)
{
    return sandbox_end_name((enum sandbox_end)i);
}

static const char *state_name(int i)
{
    return sandbox_state_name((enum sandbox_state)i);
}

static int decode_create(const struct create_in *in, struct create_opts *o, struct buf *env,
                         char **metadata, struct sandbox_rule *rules, struct err *e)
{
    int end = SANDBOX_END_DELETE;

    if (in->limits != NULL &&
        json_decode(in->limits, limits_in, ARRAY_LEN(limits_in), &o->limits, e) < 0)
        return err_wrap(e, "limits");
    if (in->on_timeout != NULL &&
        choose("on_timeout", in->on_timeout, end_name, SANDBOX_END_COUNT, &end, e) < 0)
        return -1;
    if (network_decode(in->network, &o->network, rules, &o->nrules, e) < 0)
        return -1;
    o->rules = rules;
    if (maps_metadata(in->metadata, metadata, e) < 0 || maps_env(in->env, env, e) < 0)
        return -1;
    o->template = in->template;
    o->metadata = *metadata;
    o->env = buf_data(env);
    o->env_len = env->len;
    o->timeout_ms = in->timeout_ms;
    o->on_timeout = (enum sandbox_end)end;
    o->auto_resume = in->auto_resume;
    return 0;
}

static void sandbox_create(struct call *c, const void *in)
{
    autobuf struct buf env = BUF_INIT(ENGINE_ENV_MAX);
    autofree char *metadata = NULL;
    struct create_opts o = {.key = c->key};
    struct sandbox_rule rules[ENGINE_RULES_MAX];
    struct err e;

    if (decode_create(in, &o, &env, &metadata, rules, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    engine_create(c->plane->engine, &o, sandbox_told, c);
}

/* ---- list ---- */

struct list_in {
    const char *state, *template, *cursor;
    json_t *metadata;
    uint64_t limit;
};

/* clang-format off */
static const struct json_field list_fields[] = {
    {"state", JSON_FIELD_STR, offsetof(struct list_in, state), 0, NAME_MAX_BYTES, false, "Only sandboxes in this state: running, paused or stopped."},
    {"template", JSON_FIELD_STR, offsetof(struct list_in, template), 0, NAME_MAX_BYTES, false, "Only sandboxes of this template."},
    {"metadata", JSON_FIELD_STRMAP, offsetof(struct list_in, metadata), 0, MAPS_METADATA_MAX, false, "Only sandboxes with this metadata: metadata.NAME=VALUE; all that are given must hold."},
    {"limit", JSON_FIELD_U64, offsetof(struct list_in, limit), 1, LIST_LIMIT_MAX, false, "Sandboxes on one page; without it 100."},
    {"cursor", JSON_FIELD_STR, offsetof(struct list_in, cursor), 0, 0, false, "next_cursor of the page before."},
};
/* clang-format on */

static void list_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct list_in *)in)->limit = LIST_LIMIT;
}

static const struct surface_input list_input = {SURFACE_INPUT(list_fields, struct list_in),
                                                .defaults = list_defaults};

static void add_sandbox(void *arg, const struct sandbox *s)
{
    autobuf struct buf names = BUF_INIT(ENGINE_ENV_MAX);
    struct sandbox_view v;

    view_of(&v, s, &names);
    shape_append(arg, &sandbox_shape, &v);
}

/* name, value, name, value... NULL. */
static void metadata_pairs(json_t *metadata, const char *out[2 * MAPS_METADATA_MAX + 1])
{
    const char *name;
    json_t *value;
    size_t n = 0;

    json_object_foreach(metadata, name, value)
    {
        out[n++] = name;
        out[n++] = json_string_value(value);
    }
    out[n] = NULL;
}

static int list(struct call *c, const struct list_in *in, struct buf *rows, char **next,
                struct err *e)
{
    const char *pairs[2 * MAPS_METADATA_MAX + 1];
    struct list_opts o = {.key = c->key,
                          .template = in->template,
                          .metadata = pairs,
                          .after = in->cursor,
                          .limit = (size_t)in->limit};

    int state;

    metadata_pairs(in->metadata, pairs);
    if (in->state != NULL &&
        choose("state", in->state, state_name, SANDBOX_STATE_COUNT, &state, e) < 0)
        return -1;
    if (in->state != NULL)
        o.states = SANDBOX_BIT(state);
    return engine_list(c->plane->engine, &o, add_sandbox, rows, next, e);
}

static void sandbox_list(struct call *c, const void *in)
{
    autobuf struct buf rows = BUF_INIT(LIST_BYTES_MAX);
    autofree char *next = NULL;
    struct err e;

    if (list(c, in, &rows, &next, &e) < 0)
        call_fail(c, &e);
    else
        call_reply_shape(c, &page_shape, &(struct page_view){shape_list(&rows), next});
}

/* ---- one of them ---- */

static void reply_current(struct call *c)
{
    const struct sandbox *s = engine_get(c->plane->engine, c->key, call_param(c, 0));
    struct err e;

    if (s != NULL) {
        reply_sandbox(c, s);
        return;
    }
    err_set(&e, ERR_NOT_FOUND, "no sandbox %.40s", call_param(c, 0));
    call_fail(c, &e);
}

static void sandbox_get(struct call *c, const void *in)
{
    (void)in;
    reply_current(c);
}

static void deleted(void *arg, const struct err *e)
{
    struct call *c = arg;

    if (!call_told(c))
        return;
    if (e != NULL)
        call_fail(c, e);
    else
        call_reply_none(c);
}

static void sandbox_delete(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    engine_delete(c->plane->engine, c->key, call_param(c, 0), deleted, c);
}

struct pause_in {
    bool memory;
};
static const struct json_field pause_fields[] = {
    {"memory", JSON_FIELD_BOOL, offsetof(struct pause_in, memory), 0, 0, false,
     "true (the default): its processes stand still and go on later. false: only its files are "
     "kept; it is stopped."},
};

static void pause_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct pause_in *)in)->memory = true;
}

static const struct surface_input pause_input = {SURFACE_INPUT(pause_fields, struct pause_in),
                                                 .defaults = pause_defaults};

static void sandbox_pause(struct call *c, const void *in)
{
    const struct pause_in *p = in;

    call_expect(c, &call_pending, NULL);
    engine_pause(c->plane->engine, c->key, call_param(c, 0), p->memory, sandbox_told, c);
}

struct resume_in {
    uint64_t timeout_ms; /* UINT64_MAX: not given */
};
static const struct json_field resume_fields[] = {
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct resume_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX,
     false,
     "Lifetime in ms from now on; 0: until it is deleted; without it what it was made with."},
};

static void resume_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct resume_in *)in)->timeout_ms = UINT64_MAX;
}

static const struct surface_input resume_input = {SURFACE_INPUT(resume_fields, struct resume_in),
                                                  .defaults = resume_defaults};

static void sandbox_resume(struct call *c, const void *in)
{
    const struct resume_in *r = in;
    bool given = r->timeout_ms != UINT64_MAX;

    call_expect(c, &call_pending, NULL);
    engine_resume(c->plane->engine, c->key, call_param(c, 0), given ? RESUME_FOR : RESUME_AS_MADE,
                  given ? r->timeout_ms : 0, sandbox_told, c);
}

struct timeout_in {
    uint64_t timeout_ms;
};
static const struct json_field timeout_fields[] = {
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct timeout_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX,
     true, "Lifetime in ms from now on; 0: until it is deleted."},
};
static const struct surface_input timeout_input = {
    SURFACE_INPUT(timeout_fields, struct timeout_in)};

static void sandbox_timeout(struct call *c, const void *in)
{
    const struct timeout_in *t = in;
    struct err e;

    if (engine_set_timeout(c->plane->engine, c->key, call_param(c, 0), t->timeout_ms, &e) < 0)
        call_fail(c, &e);
    else
        reply_current(c);
}

/* clang-format off */
const struct surface_row surface_sandboxes[] = {
    {{"POST",   "/v1/sandboxes"}, SCOPE_RUN, sandbox_create, "createSandbox",
     "Makes a sandbox and answers when commands can run in it.",
     .body = &create_input, .status = 201, .answers = {&sandbox_shape}},
    {{"GET",    "/v1/sandboxes"}, SCOPE_READ, sandbox_list, "listSandboxes",
     "Lists the sandboxes of your key, oldest first, in pages.",
     .query = &list_input, .status = 200, .answers = {&page_shape}},
    {{"GET",    "/v1/sandboxes/{id}"}, SCOPE_READ, sandbox_get, "getSandbox",
     "Shows a sandbox.",
     .status = 200, .answers = {&sandbox_shape}},
    {{"DELETE", "/v1/sandboxes/{id}"}, SCOPE_RUN, sandbox_delete, "deleteSandbox",
     "Ends a sandbox and everything in it; answers when nothing of it runs any more.",
     .status = 204},
    {{"POST",   "/v1/sandboxes/{id}/timeout"}, SCOPE_RUN, sandbox_timeout, "setSandboxTimeout",
     "Sets how long a sandbox lives, from now on.",
     .body = &timeout_input, .status = 200, .answers = {&sandbox_shape}},
    {{"POST",   "/v1/sandboxes/{id}/pause"}, SCOPE_RUN, sandbox_pause, "pauseSandbox",
     "Pauses a sandbox: nothing in it runs any more, and all of it is there to be resumed.",
     .body = &pause_input, .status = 200, .answers = {&sandbox_shape}},
    {{"POST",   "/v1/sandboxes/{id}/resume"}, SCOPE_RUN, sandbox_resume, "resumeSandbox",
     "A paused sandbox goes on where it was; a stopped one boots again, with its files and a new boot id.",
     .body = &resume_input, .status = 200, .answers = {&sandbox_shape}},
    {.op = NULL},
};
/* clang-format on */

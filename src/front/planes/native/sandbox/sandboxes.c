/* sandboxes.c - sandboxes: create, list, show, delete. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/planes/native/command.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/native.h"
#include "front/planes/native/sandbox/network.h"
#include "front/planes/native/sandbox/sandbox_view.h"

#define CREATE_BODY_MAX (256u << 10)
#define NAME_MAX_BYTES 128u
#define LIST_LIMIT 100u
#define LIST_LIMIT_MAX 1000u
#define LIST_BYTES_MAX (LIST_LIMIT_MAX * (ENGINE_METADATA_MAX + (8u << 10)))

/* ---- answers ---- */

/* clang-format off */
struct page_view {
    struct shape_bytes sandboxes;
    const char *next;
};
static const struct shape_field page_fields[] = {
    {"sandboxes", SHAPE_LIST, offsetof(struct page_view, sandboxes), "Oldest first.", SHAPE_ALWAYS, &sandbox_shape},
    {"next_cursor", SHAPE_STR, offsetof(struct page_view, next), "Pass it as `cursor` to get the next page; null on the last page.", SHAPE_NULLABLE},
};
static SHAPE(page_shape, "SandboxPage", "One page of a list of sandboxes.", page_fields);
/* clang-format on */

/* ---- create ---- */

struct create_in {
    const char *template, *snapshot, *on_timeout, *name, *fsync;
    json_t *env, *metadata, *limits, *network;
    uint64_t timeout_ms;
    bool auto_resume, log_output;
};

/* clang-format off */
#define LIMIT(A, B, member, name, type, def, min, max, setting, api, ...) \
    {#member, JSON_FIELD_U64, offsetof(struct limits, member), (min), (max), false, api},
static const struct json_field limits_in[] = {LIMITS(LIMIT, _, _)};
#undef LIMIT

static const struct json_field create_fields[] = {
    {"template", JSON_FIELD_STR, offsetof(struct create_in, template), 1, NAME_MAX_BYTES, false, "Name of the template. Default: base."},
    {"snapshot", JSON_FIELD_STR, offsetof(struct create_in, snapshot), 1, NAME_MAX_BYTES, false, "Id or name of a snapshot, instead of a template."},
    {"env", JSON_FIELD_STRMAP, offsetof(struct create_in, env), 0, MAPS_ENV_MAX, false, "Environment variables of every command in it."},
    {"metadata", JSON_FIELD_STRMAP, offsetof(struct create_in, metadata), 0, MAPS_METADATA_MAX, false, "Names and values of your own, shown and searchable in lists."},
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct create_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX, false, "Lifetime in milliseconds; 0: no limit. Default: the setting `timeout`."},
    {"on_timeout", JSON_FIELD_STR, offsetof(struct create_in, on_timeout), 1, NAME_MAX_BYTES, false, "Action when the lifetime ends: delete (default), stop (keeps the files) or pause (keeps files and processes)."},
    {"auto_resume", JSON_FIELD_BOOL, offsetof(struct create_in, auto_resume), 0, 0, false, "A command resumes it while it is paused, for the lifetime given at creation and at least 5 minutes."},
    {"log_output", JSON_FIELD_BOOL, offsetof(struct create_in, log_output), 0, 0, false, "Keep the output of commands in its log, except of terminals. Default: the setting `logs-output`."},
    {"limits", JSON_FIELD_ANY, offsetof(struct create_in, limits), 0, 0, false, "Resource limits. Defaults: the settings of the same names."},
    {"fsync", JSON_FIELD_STR, offsetof(struct create_in, fsync), 1, NAME_MAX_BYTES, false, "durable: fsync in it returns when the data is on the disk. relaxed: at once; survives everything except a failure of the host, which may lose the last writes. Default: the setting `fsync`."},
    {"network", JSON_FIELD_ANY, offsetof(struct create_in, network), 0, 0, false, "Network; a string is its mode. Default: egress if the server supports it."},
    {"name", JSON_FIELD_STR, offsetof(struct create_in, name), 1, ENGINE_CHOSEN_MAX, false, "Name, unique among the sandboxes of your key. Every call takes it in place of the id."},
};
/* clang-format on */

static const struct surface_nested create_nested[] = {
    {"limits", limits_in, ARRAY_LEN(limits_in)},
    {"network", network_create_fields, NETWORK_CREATE_FIELDS},
    {0}};

static void create_defaults(void *in, const struct config *c)
{
    ((struct create_in *)in)->timeout_ms = c->timeout_ms;
    ((struct create_in *)in)->log_output = c->logs_output != 0;
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

static const char *fsync_word(int i)
{
    return fsync_name((enum fsync)(FSYNC_DURABLE + i));
}

/* NULL: not given. */
static int choose_fsync(const char *word, enum fsync *ret, struct err *e)
{
    int i;

    *ret = FSYNC_SETTING;
    if (word == NULL)
        return 0;
    if (choose("fsync", word, fsync_word, FSYNC_COUNT - FSYNC_DURABLE, &i, e) < 0)
        return -1;
    *ret = (enum fsync)(FSYNC_DURABLE + i);
    return 0;
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
    if (choose_fsync(in->fsync, &o->fsync, e) < 0 ||
        network_decode(in->network, &o->network, rules, &o->nrules, e) < 0)
        return -1;
    o->rules = rules;
    if (maps_metadata(in->metadata, metadata, e) < 0 || maps_env(in->env, env, e) < 0)
        return -1;
    o->template = in->template;
    o->snapshot = in->snapshot;
    o->name = in->name;
    o->metadata = *metadata;
    o->env = buf_data(env);
    o->env_len = env->len;
    o->timeout_ms = in->timeout_ms;
    o->on_timeout = (enum sandbox_end)end;
    o->auto_resume = in->auto_resume;
    o->log_output = in->log_output ? CREATE_LOG_OUTPUT : CREATE_LOG_NO_OUTPUT;
    return 0;
}

int native_spec(const struct config *c, const char *spec,
                void (*use)(void *arg, const struct create_opts *o), void *arg, struct err *e)
{
    autobuf struct buf env = BUF_INIT(ENGINE_ENV_MAX);
    autofree char *metadata = NULL;
    autojson json_t *doc = NULL;
    struct create_in in = {0};
    struct create_opts o = {0};
    struct sandbox_rule rules[ENGINE_RULES_MAX];

    create_defaults(&in, c);
    if (json_parse(spec, strlen(spec), &doc, e) < 0 ||
        json_decode(doc, create_fields, ARRAY_LEN(create_fields), &in, e) < 0 ||
        decode_create(&in, &o, &env, &metadata, rules, e) < 0)
        return -1;
    use(arg, &o);
    return 0;
}

static void sandbox_create(struct call *c, const void *in)
{
    autobuf struct buf env = BUF_INIT(ENGINE_ENV_MAX);
    autofree char *metadata = NULL;
    struct create_opts o = {.key = c->ref.key};
    struct sandbox_rule rules[ENGINE_RULES_MAX];
    struct err e;

    if (decode_create(in, &o, &env, &metadata, rules, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    if (o.name != NULL)
        engine_create_named(c->plane->engine, &o, sandbox_told, c);
    else
        engine_create(c->plane->engine, &o, sandbox_told, c);
}

/* ---- list ---- */

struct list_in {
    const char *state, *template, *cursor;
    json_t *metadata;
    uint64_t limit;
    bool all_keys;
};

/* clang-format off */
static const struct json_field list_fields[] = {
    {"state", JSON_FIELD_STR, offsetof(struct list_in, state), 0, NAME_MAX_BYTES, false, "Only sandboxes in this state: running, paused or stopped."},
    {"template", JSON_FIELD_STR, offsetof(struct list_in, template), 0, NAME_MAX_BYTES, false, "Only sandboxes of this template."},
    {"metadata", JSON_FIELD_STRMAP, offsetof(struct list_in, metadata), 0, MAPS_METADATA_MAX, false, "metadata.NAME=VALUE: only sandboxes with this metadata. All given pairs must match."},
    {"limit", JSON_FIELD_U64, offsetof(struct list_in, limit), 1, LIST_LIMIT_MAX, false, "Maximum number of sandboxes. Default: 100."},
    {"cursor", JSON_FIELD_STR, offsetof(struct list_in, cursor), 0, 0, false, "next_cursor of the previous page."},
    {"all_keys", JSON_FIELD_BOOL, offsetof(struct list_in, all_keys), 0, 0, false, NATIVE_ALL_KEYS},
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
    sandbox_view_append(arg, s);
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
    struct list_opts o = {.template = in->template,
                          .metadata = pairs,
                          .after = in->cursor,
                          .limit = (size_t)in->limit};

    int state;

    metadata_pairs(in->metadata, pairs);
    if (native_all_keys(c, in->all_keys, &o.key, e) < 0)
        return -1;
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

static void sandbox_get(struct call *c, const void *in)
{
    const struct sandbox *s = engine_get(c->ref);
    struct err e;

    (void)in;
    if (s != NULL) {
        sandbox_reply(c, s);
        return;
    }
    err_set(&e, ERR_NOT_FOUND, "no sandbox %.40s", call_param(c, 0));
    call_fail(c, &e);
}

static void sandbox_delete(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    engine_delete(c->ref, call_told_done, c);
}

/* ---- change ---- */

struct update_in {
    const char *name, *on_timeout, *fsync;
    json_t *metadata, *limits, *auto_resume;
    uint64_t timeout_ms; /* UINT64_MAX: not given */
};
/* clang-format off */
static const struct json_field update_fields[] = {
    {"name", JSON_FIELD_STR, offsetof(struct update_in, name), 0, ENGINE_CHOSEN_MAX, false, "Its new name; an empty one removes it."},
    {"metadata", JSON_FIELD_STRMAP, offsetof(struct update_in, metadata), 0, MAPS_METADATA_MAX, false, "Replaces all its metadata."},
    {"timeout_ms", JSON_FIELD_U64, offsetof(struct update_in, timeout_ms), 0, COMMAND_TIMEOUT_MAX, false, "Lifetime in ms from now on; 0: until it is deleted."},
    {"on_timeout", JSON_FIELD_STR, offsetof(struct update_in, on_timeout), 1, NAME_MAX_BYTES, false, "What happens then: delete, stop or pause."},
    {"auto_resume", JSON_FIELD_ANY, offsetof(struct update_in, auto_resume), 0, 0, false, "true: a command for it while it is paused resumes it."},
    {"fsync", JSON_FIELD_STR, offsetof(struct update_in, fsync), 1, NAME_MAX_BYTES, false, "durable or relaxed; counts from its next boot."},
    {"limits", JSON_FIELD_ANY, offsetof(struct update_in, limits), 0, 0, false, "New limits, which apply at once; nofile and bandwidth only to a stopped sandbox."},
};
/* clang-format on */
static const struct surface_nested update_nested[] = {{"limits", limits_in, ARRAY_LEN(limits_in)},
                                                      {0}};

static void update_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct update_in *)in)->timeout_ms = UINT64_MAX;
}

static const struct surface_input update_input = {
    SURFACE_INPUT(update_fields, struct update_in),
    .defaults = update_defaults,
    .nested = update_nested,
};

static int decode_update(const struct update_in *in, struct update_opts *o, char **metadata,
                         struct err *e)
{
    int end = 0;

    if (in->limits != NULL &&
        json_decode(in->limits, limits_in, ARRAY_LEN(limits_in), &o->limits, e) < 0)
        return err_wrap(e, "limits");
    if (in->on_timeout != NULL &&
        choose("on_timeout", in->on_timeout, end_name, SANDBOX_END_COUNT, &end, e) < 0)
        return -1;
    if (in->auto_resume != NULL && !json_is_boolean(in->auto_resume))
        return err_set(e, ERR_INVALID, "auto_resume: expected true or false");
    if (choose_fsync(in->fsync, &o->fsync, e) < 0)
        return -1;
    if (in->metadata != NULL && maps_metadata(in->metadata, metadata, e) < 0)
        return -1;
    o->name = in->name;
    o->metadata = *metadata;
    o->set_timeout = in->timeout_ms != UINT64_MAX;
    o->timeout_ms = in->timeout_ms;
    o->set_on_timeout = in->on_timeout != NULL;
    o->on_timeout = (enum sandbox_end)end;
    o->set_auto_resume = in->auto_resume != NULL;
    o->auto_resume = json_is_true(in->auto_resume);
    return 0;
}

static void sandbox_update(struct call *c, const void *in)
{
    autofree char *metadata = NULL;
    struct update_opts o = {0};
    struct err e;

    if (decode_update(in, &o, &metadata, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    call_expect(c, &call_pending, NULL);
    engine_update(c->ref, &o, sandbox_told, c);
}

/* clang-format off */
const struct surface_row surface_sandboxes[] = {
    {{"POST",   "/v1/sandboxes"}, SCOPE_RUN, sandbox_create, "createSandbox",
     "Creates a sandbox; answers when commands can run in it.",
     .body = &create_input, .status = 201, .answers = {&sandbox_shape}},
    {{"GET",    "/v1/sandboxes"}, SCOPE_READ, sandbox_list, "listSandboxes",
     "Lists the sandboxes of your key, oldest first, in pages.",
     .query = &list_input, .status = 200, .answers = {&page_shape}},
    {{"GET",    "/v1/sandboxes/{id}"}, SCOPE_READ, sandbox_get, "getSandbox",
     "Shows a sandbox.",
     .status = 200, .answers = {&sandbox_shape}, .flags = SURFACE_ADMIN},
    {{"PATCH",  "/v1/sandboxes/{id}"}, SCOPE_RUN, sandbox_update, "updateSandbox",
     "Changes the name, metadata, lifetime or limits of a sandbox; everything else stays.",
     .body = &update_input, .status = 200, .answers = {&sandbox_shape}},
    {{"DELETE", "/v1/sandboxes/{id}"}, SCOPE_RUN, sandbox_delete, "deleteSandbox",
     "Deletes a sandbox and its files; answers when nothing of it runs any more.",
     .status = 204, .flags = SURFACE_ADMIN},
    {.op = NULL},
};
/* clang-format on */

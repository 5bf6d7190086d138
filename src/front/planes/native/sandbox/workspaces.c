/* workspaces.c - workspaces: make, list, show, change, delete. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/native.h"
#include "front/workspace/workspace.h"

#define LIST_LIMIT 100u
#define LIST_LIMIT_MAX 1000u
#define LIST_SPECS_MAX (2u << 20) /* bytes of specs on a page, which is then a short one */
#define LIST_BYTES_MAX (LIST_SPECS_MAX + WORKSPACE_SPEC_MAX + LIST_LIMIT_MAX * 4096)
#define NAME_MAX_BYTES 128u
#define POLICY_MAX (1ull << 40)
#define UNSET UINT64_MAX

/* ---- answers ---- */

struct view {
    struct workspace_info w;
    char *spec; /* without the values of its environment */
};

/* clang-format off */
static const struct shape_field workspace_fields[] = {
    {"name", SHAPE_STR, offsetof(struct view, w.name), "Its name, unique among the workspaces of your key."},
    {"state", SHAPE_STR, offsetof(struct view, w.state), "cold (no sandbox), warming, warm (runs), draining (not in use) or deleting."},
    {"stage", SHAPE_STR, offsetof(struct view, w.stage), "What that means now, in words."},
    {"sandbox", SHAPE_STR, offsetof(struct view, w.sandbox), "Id of its sandbox.", SHAPE_OMITTED},
    {"epoch", SHAPE_U64, offsetof(struct view, w.epoch), "How many sandboxes were made for it; " NATIVE_EPOCH " in a request refuses any other."},
    {"route", SHAPE_U64, offsetof(struct view, w.route), "How often its backend was changed."},
    {"backend", SHAPE_STR, offsetof(struct view, w.backend), "Where its sandbox is made."},
    {"uses", SHAPE_U64, offsetof(struct view, w.uses), "Operations and streams that use it now."},
    {"turns", SHAPE_U64, offsetof(struct view, w.turns), "Holders of kind turn."},
    {"viewers", SHAPE_U64, offsetof(struct view, w.viewers), "Holders of kind viewer."},
    {"grace_ms", SHAPE_U64, offsetof(struct view, w.policy.grace_ms), "Time without use after which its sandbox is paused."},
    {"archive_ms", SHAPE_U64, offsetof(struct view, w.policy.archive_ms), "Further time after which its sandbox is archived and deleted; 0: never."},
    {"background", SHAPE_BOOL, offsetof(struct view, w.policy.background), "A process that runs in the background counts as use."},
    {"archive", SHAPE_STR, offsetof(struct view, w.archive), "Digest of its newest archive.", SHAPE_OMITTED},
    {"reason", SHAPE_STR, offsetof(struct view, w.reason), "Why its last step failed.", SHAPE_OMITTED},
    {"spec", SHAPE_ANY, offsetof(struct view, spec), "Options of its sandboxes, with the names of environment variables only."},
    {"created_at", SHAPE_TIME, offsetof(struct view, w.created_ms), "Time of creation."},
    {"changed_at", SHAPE_TIME, offsetof(struct view, w.changed_ms), "Time of the last change of its state."},
    {"used_at", SHAPE_TIME, offsetof(struct view, w.used_ms), "Time of its last use."},
};
static SHAPE(workspace_shape, "Workspace", "A name with at most one live sandbox behind it.", workspace_fields);

struct page_view {
    struct shape_bytes workspaces;
    const char *next;
};
static const struct shape_field page_fields[] = {
    {"workspaces", SHAPE_LIST, offsetof(struct page_view, workspaces), "Oldest first.", SHAPE_ALWAYS, &workspace_shape},
    {"next_cursor", SHAPE_STR, offsetof(struct page_view, next), "Pass it as `cursor` to get the next page; null on the last page.", SHAPE_NULLABLE},
};
static SHAPE(page_shape, "WorkspacePage", "One page of a list of workspaces.", page_fields);
/* clang-format on */

static char *public_spec(const char *spec)
{
    json_t *doc = json_loads(spec, 0, NULL), *env = json_object_get(doc, "env"), *names;
    const char *name;
    json_t *value;
    char *text;

    if (env != NULL) {
        names = json_array();
        json_object_foreach(env, name, value) json_array_append_new(names, json_string(name));
        json_object_set_new(doc, "env_names", names);
        json_object_del(doc, "env");
    }
    text = json_dumps(doc, JSON_COMPACT);
    json_decref(doc);
    return text;
}

static void append(void *arg, const struct workspace_info *w)
{
    struct view v = {*w, public_spec(w->spec)};

    shape_append(arg, &workspace_shape, &v);
    free(v.spec);
}

static void reply(struct call *c, int status, const struct workspace_info *w)
{
    struct view v = {*w, public_spec(w->spec)};

    call_reply_shape_as(c, status, &workspace_shape, &v);
    free(v.spec);
}

static void reply_current(struct call *c)
{
    struct workspace_info w;
    struct err e;

    if (workspace_get(native_workspaces(c), c->ref.key, call_param(c, 0), &w, &e) < 0)
        call_fail(c, &e);
    else
        reply(c, 200, &w);
}

/* ---- make ---- */

struct put_in {
    const char *template, *snapshot, *fsync, *backend;
    json_t *env, *metadata, *limits, *network, *log_output;
    uint64_t grace_ms, archive_ms;
    json_t *background;
};

/* clang-format off */
static const struct json_field put_fields[] = {
    {"template", JSON_FIELD_STR, offsetof(struct put_in, template), 1, NAME_MAX_BYTES, false, "Name of the template. Default: base."},
    {"snapshot", JSON_FIELD_STR, offsetof(struct put_in, snapshot), 1, NAME_MAX_BYTES, false, "Id or name of a snapshot that its first sandbox is made from, instead of a template."},
    {"env", JSON_FIELD_ANY, offsetof(struct put_in, env), 0, 0, false, "Environment variables of every command in it: an object of strings."},
    {"metadata", JSON_FIELD_ANY, offsetof(struct put_in, metadata), 0, 0, false, "Names and values of your own, of each of its sandboxes."},
    {"limits", JSON_FIELD_ANY, offsetof(struct put_in, limits), 0, 0, false, "Resource limits, as for a sandbox."},
    {"network", JSON_FIELD_ANY, offsetof(struct put_in, network), 0, 0, false, "Network, as for a sandbox."},
    {"fsync", JSON_FIELD_STR, offsetof(struct put_in, fsync), 1, NAME_MAX_BYTES, false, "durable or relaxed, as for a sandbox."},
    {"log_output", JSON_FIELD_ANY, offsetof(struct put_in, log_output), 0, 0, false, "true: keep the output of commands in the log of the sandbox."},
    {"backend", JSON_FIELD_STR, offsetof(struct put_in, backend), 1, NAME_MAX_BYTES, false, "Where its sandbox is made. Default: cove, this server."},
    {"grace_ms", JSON_FIELD_U64, offsetof(struct put_in, grace_ms), 0, POLICY_MAX, false, "Time without use after which its sandbox is paused. Default: the setting `workspace-grace`."},
    {"archive_ms", JSON_FIELD_U64, offsetof(struct put_in, archive_ms), 0, POLICY_MAX, false, "Further time after which it is archived and deleted; 0: never. Default: the setting `workspace-archive`."},
    {"background", JSON_FIELD_ANY, offsetof(struct put_in, background), 0, 0, false, "true (default): a process that runs in the background counts as use."},
};
/* clang-format on */

static void put_defaults(void *in, const struct config *c)
{
    struct put_in *p = in;

    p->grace_ms = c->workspace_grace_ms;
    p->archive_ms = c->workspace_archive_ms;
}

static const struct surface_input put_input = {
    SURFACE_INPUT(put_fields, struct put_in),
    .body_max = WORKSPACE_SPEC_MAX,
    .defaults = put_defaults,
};

static void set_text(json_t *spec, const char *name, const char *value)
{
    if (value != NULL)
        json_object_set_new(spec, name, json_string(value));
}

static void set_any(json_t *spec, const char *name, json_t *value)
{
    if (value != NULL)
        json_object_set(spec, name, value);
}

/* The body of POST /v1/sandboxes that makes its sandboxes; NULL: nothing was given. */
static char *spec_of(const struct put_in *p)
{
    json_t *spec = json_object();
    char *text;

    set_text(spec, "template", p->template);
    set_text(spec, "snapshot", p->snapshot);
    set_text(spec, "fsync", p->fsync);
    set_any(spec, "env", p->env);
    set_any(spec, "metadata", p->metadata);
    set_any(spec, "limits", p->limits);
    set_any(spec, "network", p->network);
    set_any(spec, "log_output", p->log_output);
    text = json_object_size(spec) > 0 ? json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(spec);
    return text;
}

static void only_checked(void *arg, const struct create_opts *o)
{
    (void)arg;
    (void)o;
}

static int flag(json_t *value, bool def, const char *name, bool *ret, struct err *e)
{
    *ret = value != NULL ? json_is_true(value) : def;
    if (value != NULL && !json_is_boolean(value))
        return err_set(e, ERR_INVALID, "%s: expected true or false", name);
    return 0;
}

static void workspace_make_put(struct call *c, const void *in)
{
    const struct put_in *p = in;
    autofree char *spec = spec_of(p);
    struct workspace_make m = {.spec = spec != NULL ? spec : "{}",
                               .backend = p->backend,
                               .policy = {p->grace_ms, p->archive_ms, true},
                               .any_spec = spec == NULL};
    struct workspace_info w;
    struct err e;
    bool made;

    if (flag(p->background, true, "background", &m.policy.background, &e) < 0 ||
        native_spec(c->plane->config, m.spec, only_checked, NULL, &e) < 0 ||
        workspace_put(native_workspaces(c), c->ref.key, call_param(c, 0), &m, &w, &made, &e) < 0)
        call_fail(c, &e);
    else
        reply(c, made ? 201 : 200, &w);
}

/* ---- list, show, change, delete ---- */

struct list_in {
    const char *state, *cursor;
    uint64_t limit;
    bool all_keys;
};
/* clang-format off */
static const struct json_field list_fields[] = {
    {"state", JSON_FIELD_STR, offsetof(struct list_in, state), 1, NAME_MAX_BYTES, false, "Only workspaces in this state: cold, warming, warm, draining or deleting."},
    {"limit", JSON_FIELD_U64, offsetof(struct list_in, limit), 1, LIST_LIMIT_MAX, false, "Maximum number of workspaces. Default: 100."},
    {"cursor", JSON_FIELD_STR, offsetof(struct list_in, cursor), 0, 32, false, "next_cursor of the previous page."},
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

static void workspace_list_get(struct call *c, const void *in)
{
    const struct list_in *l = in;
    autobuf struct buf rows = BUF_INIT(LIST_BYTES_MAX);
    struct workspace_list o = {
        .state = l->state, .limit = (size_t)l->limit, .bytes = LIST_SPECS_MAX};
    char next[24] = "";
    uint64_t last;
    struct err e;

    if (native_all_keys(c, l->all_keys, &o.key, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (l->cursor != NULL && str_u64(l->cursor, INT64_MAX, &o.after) < 0) {
        err_set(&e, ERR_INVALID, "cursor: expected next_cursor of a page");
        call_fail(c, &e);
        return;
    }
    last = workspace_each(native_workspaces(c), &o, append, &rows);
    if (last != 0)
        str_fmt(next, sizeof(next), "%llu", (unsigned long long)last);
    call_reply_shape(c, &page_shape,
                     &(struct page_view){shape_list(&rows), last != 0 ? next : NULL});
}

static void workspace_show(struct call *c, const void *in)
{
    (void)in;
    reply_current(c);
}

struct patch_in {
    uint64_t grace_ms, archive_ms;
    json_t *background;
};
/* clang-format off */
static const struct json_field patch_fields[] = {
    {"grace_ms", JSON_FIELD_U64, offsetof(struct patch_in, grace_ms), 0, POLICY_MAX, false, "Time without use after which its sandbox is paused."},
    {"archive_ms", JSON_FIELD_U64, offsetof(struct patch_in, archive_ms), 0, POLICY_MAX, false, "Further time after which it is archived and deleted; 0: never."},
    {"background", JSON_FIELD_ANY, offsetof(struct patch_in, background), 0, 0, false, "A process that runs in the background counts as use."},
};
/* clang-format on */

static void patch_defaults(void *in, const struct config *c)
{
    (void)c;
    *(struct patch_in *)in = (struct patch_in){UNSET, UNSET, NULL};
}

static const struct surface_input patch_input = {SURFACE_INPUT(patch_fields, struct patch_in),
                                                 .defaults = patch_defaults};

static void workspace_change(struct call *c, const void *in)
{
    const struct patch_in *p = in;
    const char *name = call_param(c, 0);
    struct workspace_info w;
    struct err e;

    if (workspace_get(native_workspaces(c), c->ref.key, name, &w, &e) < 0 ||
        flag(p->background, w.policy.background, "background", &w.policy.background, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (p->grace_ms != UNSET)
        w.policy.grace_ms = p->grace_ms;
    if (p->archive_ms != UNSET)
        w.policy.archive_ms = p->archive_ms;
    if (workspace_set_policy(native_workspaces(c), c->ref.key, name, &w.policy, &e) < 0)
        call_fail(c, &e);
    else
        reply_current(c);
}

struct delete_in {
    bool force;
};
static const struct json_field delete_fields[] = {
    {"force", JSON_FIELD_BOOL, offsetof(struct delete_in, force), 0, 0, false,
     "Also while a turn holds it."},
};
static const struct surface_input delete_input = {SURFACE_INPUT(delete_fields, struct delete_in)};

static void workspace_remove(struct call *c, const void *in)
{
    call_expect(c, &call_pending, NULL);
    workspace_delete(native_workspaces(c), c->ref.key, call_param(c, 0),
                     ((const struct delete_in *)in)->force, call_told_done, c);
}

/* clang-format off */
const struct surface_row surface_workspaces[] = {
    {{"PUT",    "/v1/workspaces/{name}"}, SCOPE_RUN, workspace_make_put, "putWorkspace",
     "Creates a workspace, or returns it if it exists with the same options or if none are given. Its sandbox is made at its first use. exec, processes, sessions, terminals, files, archive, watches, git, snapshots, fork, ports, metrics and logs are below it as below a sandbox.",
     .body = &put_input, .status = 200, .answers = {&workspace_shape}},
    {{"GET",    "/v1/workspaces"}, SCOPE_READ, workspace_list_get, "listWorkspaces",
     "Lists the workspaces of your key, oldest first, in pages.",
     .query = &list_input, .status = 200, .answers = {&page_shape}},
    {{"GET",    "/v1/workspaces/{name}"}, SCOPE_READ, workspace_show, "getWorkspace",
     "Shows a workspace; never makes or resumes its sandbox.",
     .status = 200, .answers = {&workspace_shape}},
    {{"PATCH",  "/v1/workspaces/{name}"}, SCOPE_RUN, workspace_change, "updateWorkspace",
     "Changes when its sandbox is put away.",
     .body = &patch_input, .status = 200, .answers = {&workspace_shape}},
    {{"DELETE", "/v1/workspaces/{name}"}, SCOPE_RUN, workspace_remove, "deleteWorkspace",
     "Deletes a workspace with its sandbox and its archives.",
     .query = &delete_input, .status = 204},
    {.op = NULL},
};
/* clang-format on */

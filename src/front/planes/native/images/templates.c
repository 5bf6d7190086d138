/* templates.c - templates: list, show, add, build, alias, refresh, delete. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/internal.h"

#define LIST_BYTES_MAX (16u << 20) /* IMAGE_TEMPLATES_MAX of the largest */

static void cancel_import(void *handle)
{
    engine_import_cancel(handle);
}

static const struct call_source import_source = {.take_back = cancel_import};

/* clang-format off */
static const struct shape_field template_fields[] = {
    {"name", SHAPE_STR, offsetof(struct template_info, name), "Name, for `template` when creating a sandbox."},
    {"state", SHAPE_STR, offsetof(struct template_info, state), "Whether it can be used."},
    {"note", SHAPE_STR, offsetof(struct template_info, note), "Note.", SHAPE_OMITTED},
    {"bytes", SHAPE_U64, offsetof(struct template_info, bytes), "Size of its files."},
    {"files", SHAPE_U64, offsetof(struct template_info, files), "Number of its files."},
    {"created_at", SHAPE_TIME, offsetof(struct template_info, created_ms), "Time of creation.", SHAPE_NULLABLE},
    {"id", SHAPE_STR, offsetof(struct template_info, id), "Id of its version; names with the same id are aliases.", SHAPE_OMITTED},
    {"format", SHAPE_STR, offsetof(struct template_info, format), "Format it was created from: rootfs, docker or oci.", SHAPE_OMITTED},
    {"layers", SHAPE_U64, offsetof(struct template_info, layers), "Number of layers.", SHAPE_OMITTED},
    {"image", SHAPE_ANY, offsetof(struct template_info, settings), "Settings of the image: env, user, workdir (used by commands), entrypoint and cmd.", SHAPE_OMITTED},
};
static SHAPE(template_shape, "Template", "The initial root filesystem of a sandbox.", template_fields);

struct list_view {
    struct shape_bytes templates;
};
static const struct shape_field list_fields[] = {
    {"templates", SHAPE_LIST, offsetof(struct list_view, templates), "All of them.", SHAPE_ALWAYS, &template_shape},
};
static SHAPE(list_shape, "TemplateList", "The templates of this server.", list_fields);

static const struct shape_field progress_fields[] = {
    {"text", SHAPE_STR, offsetof(struct progress_view, text), "Current step."},
    {"done", SHAPE_U64, offsetof(struct progress_view, done), "Progress so far."},
    {"total", SHAPE_U64, offsetof(struct progress_view, total), "Total; 0: unknown."},
};
SHAPE(progress_shape, "Progress", "The progress event.", progress_fields);
/* clang-format on */

struct templates {
    struct call *c;
    const char *only; /* its name; NULL: all of them */
    struct buf rows;
    bool found;
    bool reading, sent; /* the archive: its first bytes were asked for; all are there */
    char name[64];
};

static void drop(void *state)
{
    buf_free(&((struct templates *)state)->rows);
}

static struct templates *new_state(struct call *c)
{
    struct templates *t = call_state(c, sizeof(*t), drop);

    if (t != NULL) {
        t->c = c;
        buf_init(&t->rows, LIST_BYTES_MAX);
    }
    return t;
}

static void each(void *arg, const struct template_info *info)
{
    struct templates *t = arg;

    if (t->only != NULL && strcmp(t->only, info->name) != 0)
        return;
    t->found = true;
    shape_append(&t->rows, &template_shape, info);
}

/* ---- list ---- */

static void listed(void *arg, const struct err *e)
{
    struct templates *t = arg;

    if (!call_told(t->c))
        return;
    if (e != NULL)
        call_fail(t->c, e);
    else
        call_reply_shape(t->c, &list_shape, &(struct list_view){shape_list(&t->rows)});
}

static void template_list(struct call *c, const void *in)
{
    struct templates *t = new_state(c);

    (void)in;
    if (t == NULL)
        return;
    call_expect(c, &call_pending, NULL);
    engine_templates(c->plane->engine, each, listed, t);
}

/* ---- refresh: made anew, then shown ---- */

static void shown(void *arg, const struct err *e)
{
    struct templates *t = arg;
    struct call *c = t->c;
    struct err gone;

    if (!call_told(c))
        return;
    if (e == NULL && !t->found) {
        err_set(&gone, ERR_NOT_FOUND, "no template '%.60s'; `cove template list` shows the names",
                t->only);
        e = &gone;
    }
    if (e != NULL) {
        call_fail(c, e);
    } else if (c->streaming) {
        call_event(c, NULL, "done", &t->rows);
        call_end(c);
    } else {
        call_reply(c, c->row->status, "application/json", &t->rows);
    }
}

static void refreshed(void *arg, const struct err *e)
{
    struct templates *t = arg;

    if (!call_told(t->c))
        return;
    if (e != NULL) {
        call_fail(t->c, e);
        return;
    }
    call_expect(t->c, &call_pending, NULL);
    engine_templates(t->c->plane->engine, each, shown, t);
}

static void progress(void *arg, const char *text, uint64_t done, uint64_t total)
{
    struct templates *t = arg;

    if (call_accept(t->c) != CALL_SSE)
        return;
    if (!t->c->streaming)
        call_begin(t->c, CALL_SSE);
    call_event_shape(t->c, NULL, "progress", &progress_shape,
                     &(struct progress_view){text, done, total});
}

static void template_refresh(struct call *c, const void *in)
{
    struct templates *t = new_state(c);

    (void)in;
    if (t == NULL)
        return;
    t->only = call_param(c, 0);
    call_expect(c, &call_pending, NULL);
    engine_template_refresh(c->plane->engine, t->only, progress, refreshed, t);
}

/* ---- one ---- */

static void template_get(struct call *c, const void *in)
{
    struct templates *t = new_state(c);

    (void)in;
    if (t == NULL)
        return;
    t->only = call_param(c, 0);
    call_expect(c, &call_pending, NULL);
    engine_templates(c->plane->engine, each, shown, t);
}

static void template_delete(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    engine_template_delete(c->plane->engine, call_param(c, 0), call_told_done, c);
}

/* ---- alias: named, then shown ---- */

struct alias_in {
    const char *alias;
};
/* clang-format off */
static const struct json_field alias_fields[] = {
    {"alias", JSON_FIELD_STR, offsetof(struct alias_in, alias), 1, 63, true, "The additional name."},
};
/* clang-format on */
static const struct surface_input alias_input = {SURFACE_INPUT(alias_fields, struct alias_in)};

static void template_alias(struct call *c, const void *body)
{
    const struct alias_in *in = body;
    struct templates *t = new_state(c);

    if (t == NULL)
        return;
    str_fmt(t->name, sizeof(t->name), "%.63s", in->alias);
    t->only = t->name;
    call_expect(c, &call_pending, NULL);
    engine_template_alias(c->plane->engine, call_param(c, 0), in->alias, refreshed, t);
}

/* ---- add: the body is the archive ---- */

static void add_data(struct http_req *r, const char *p, size_t n, void *arg)
{
    struct templates *t = arg;

    if (t->c->source == &import_source &&
        engine_import_feed(t->c->handle, p, n, false) > ENGINE_IMPORT_HIGH)
        http_body_pause(r, true);
}

static void add_end(struct http_req *r, void *arg)
{
    struct templates *t = arg;

    (void)r;
    if (t->c->source == &import_source)
        engine_import_feed(t->c->handle, NULL, 0, true);
    t->sent = true;
}

/* The body is asked for only now: a client that waits for 100 Continue has not
 * sent a byte when there is no room for another import. */
static void add_drain(void *arg)
{
    struct templates *t = arg;

    if (t->c->r == NULL)
        return;
    if (t->reading)
        http_body_pause(t->c->r, false);
    else
        http_body_stream(t->c->r, add_data, add_end, t);
    t->reading = true;
}

/* Not while bytes come in: few clients read an answer before their request ends. */
static void add_progress(void *arg, const char *text, uint64_t done, uint64_t total)
{
    struct templates *t = arg;

    if (t->sent)
        progress(arg, text, done, total);
}

static const struct import_ops add_ops = {
    .on_drain = add_drain, .on_progress = add_progress, .on_done = refreshed};

struct add_in {
    uint64_t disk;
};
static const struct json_field add_fields[] = {IMPORT_DISK_FIELD(struct add_in)};
static const struct surface_input add_input = {SURFACE_INPUT(add_fields, struct add_in)};

static void template_add(struct call *c, const void *in)
{
    uint64_t disk = ((const struct add_in *)in)->disk;
    struct templates *t = new_state(c);

    if (t == NULL)
        return;
    t->only = call_param(c, 0);
    call_expect(c, &import_source,
                engine_import(c->plane->engine, c->ref.key, t->only, disk, &add_ops, t));
}

/* ---- build ---- */

#define PACKAGES_MAX 200u

struct build_in {
    json_t *debootstrap;
};
struct debootstrap_in {
    const char *suite, *mirror;
    json_t *packages;
};
/* clang-format off */
static const struct json_field build_fields[] = {
    {"debootstrap", JSON_FIELD_ANY, offsetof(struct build_in, debootstrap), 0, 0, true,
     "Build from Debian packages, with debootstrap in a temporary sandbox of `base`."},
};
static const struct json_field debootstrap_fields[] = {
    {"suite", JSON_FIELD_STR, offsetof(struct debootstrap_in, suite), 1, 32, true, "Release, for example bookworm."},
    {"mirror", JSON_FIELD_STR, offsetof(struct debootstrap_in, mirror), 0, 256, false, "URL of the package mirror. Default: debootstrap's."},
    {"packages", JSON_FIELD_STRLIST, offsetof(struct debootstrap_in, packages), 0, PACKAGES_MAX, false, "Packages in addition to the minimal set."},
};
/* clang-format on */
static const struct surface_nested build_nested[] = {
    {"debootstrap", debootstrap_fields, ARRAY_LEN(debootstrap_fields)},
    {0},
};
static const struct surface_input build_input = {SURFACE_INPUT(build_fields, struct build_in),
                                                 .nested = build_nested};

static int join_packages(struct buf *out, const json_t *list, struct err *e)
{
    const json_t *s;
    size_t i;

    json_array_foreach(list, i, s)
    {
        const char *name = json_string_value(s);

        if (*name == '\0' || strchr(name, ',') != NULL)
            return err_set(e, ERR_INVALID, "packages: expected names of packages");
        buf_addf(out, "%s%s", i > 0 ? "," : "", name);
    }
    return out->failed ? err_set(e, ERR_TOO_LARGE, "packages: too many") : 0;
}

static void template_build(struct call *c, const void *body)
{
    const struct build_in *in = body;
    struct debootstrap_in deb = {.mirror = ""};
    autobuf struct buf packages = BUF_INIT(8192);
    struct templates *t = new_state(c);
    struct build_opts o;
    struct err e;

    if (t == NULL)
        return;
    if (json_decode(in->debootstrap, debootstrap_fields, ARRAY_LEN(debootstrap_fields), &deb, &e) <
            0 ||
        join_packages(&packages, deb.packages, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    o = (struct build_opts){deb.suite, deb.mirror, buf_cstr(&packages)};
    t->only = call_param(c, 0);
    call_expect(c, &call_pending, NULL);
    engine_template_build(c->plane->engine, c->ref.key, t->only, &o, progress, refreshed, t);
}

/* clang-format off */
const struct surface_row surface_templates[] = {
    {{"GET",  "/v1/templates"}, SCOPE_READ, template_list, "listTemplates",
     "Lists the templates.",
     .status = 200, .answers = {&list_shape}},
    {{"GET",  "/v1/templates/{name}"}, SCOPE_READ, template_get, "getTemplate",
     "Shows one template.",
     .status = 200, .answers = {&template_shape}},
    {{"PUT",  "/v1/templates/{name}"}, SCOPE_ADMIN, template_add, "addTemplate",
     "Creates a template from the body: a tar of a root filesystem, or an image from `docker save` or as an OCI layout; plain, gzip or zstd. An existing name then means the new template; existing sandboxes are unchanged.",
     .query = &add_input, .status = 200, .answers = {&template_shape},
     .events = "progress (Progress); at last done (Template) or error (Error)",
     .event_shapes = {&progress_shape}, .flags = SURFACE_RAW_BODY},
    {{"DELETE", "/v1/templates/{name}"}, SCOPE_ADMIN, template_delete, "deleteTemplate",
     "Deletes a name of a template, and the template with its last name. Refused while a sandbox uses it.",
     .status = 204},
    {{"POST", "/v1/templates/{name}/build"}, SCOPE_ADMIN, template_build, "buildTemplate",
     "Builds a template. The error says what the host lacks for it.",
     .body = &build_input, .status = 200, .answers = {&template_shape},
     .events = "progress (Progress); at last done (Template) or error (Error)",
     .event_shapes = {&progress_shape}},
    {{"POST", "/v1/templates/{name}/alias"}, SCOPE_ADMIN, template_alias, "aliasTemplate",
     "Adds a name to a template.",
     .body = &alias_input, .status = 200, .answers = {&template_shape}},
    {{"POST", "/v1/templates/{name}/refresh"}, SCOPE_ADMIN, template_refresh, "refreshTemplate",
     "Rebuilds a template. Existing sandboxes are unchanged.",
     .status = 200, .answers = {&template_shape},
     .events = "progress (Progress); at last done (Template) or error (Error)",
     .event_shapes = {&progress_shape}},
    {.op = NULL},
};
/* clang-format on */

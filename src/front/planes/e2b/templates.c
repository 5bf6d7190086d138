/* templates.c - lists E2B's templates. */
#include <string.h>

#include "base/own.h"
#include "front/engine/snapshot.h"
#include "front/planes/e2b/internal.h"
#include "json/write.h"

#define LIST_BYTES_MAX (4u << 20)

/* clang-format off */
struct template_view {
    const char *id, *version, *status;
    struct shape_bytes names;
    uint64_t cpus, memory_mb, disk_mb, created_ms, zero;
    bool public;
};
static const struct shape_field template_fields[] = {
    {"templateID", SHAPE_STR, offsetof(struct template_view, id), "Its name."},
    {"buildID", SHAPE_STR, offsetof(struct template_view, id), "Of its version."},
    {"cpuCount", SHAPE_U64, offsetof(struct template_view, cpus), "Cores of a sandbox."},
    {"memoryMB", SHAPE_U64, offsetof(struct template_view, memory_mb), "Memory of a sandbox."},
    {"diskSizeMB", SHAPE_U64, offsetof(struct template_view, disk_mb), "Disk of a sandbox."},
    {"public", SHAPE_BOOL, offsetof(struct template_view, public), "Every key may use it."},
    {"aliases", SHAPE_STRV, offsetof(struct template_view, names), "Its names."},
    {"names", SHAPE_STRV, offsetof(struct template_view, names), "Its names."},
    {"createdAt", SHAPE_TIME, offsetof(struct template_view, created_ms), "When it was made."},
    {"updatedAt", SHAPE_TIME, offsetof(struct template_view, created_ms), "When it was made."},
    {"createdBy", SHAPE_OBJECT, offsetof(struct template_view, zero), "Not known.", SHAPE_NULLABLE},
    {"lastSpawnedAt", SHAPE_TIME, offsetof(struct template_view, zero), "Not known.", SHAPE_NULLABLE},
    {"spawnCount", SHAPE_U64, offsetof(struct template_view, zero), "Not counted."},
    {"buildCount", SHAPE_U64, offsetof(struct template_view, zero), "Not counted."},
    {"envdVersion", SHAPE_STR, offsetof(struct template_view, version), "What the data plane can do."},
    {"buildStatus", SHAPE_STR, offsetof(struct template_view, status), "Of its version."},
};
static SHAPE(template_shape, "Template", "What sandboxes start as.", template_fields);

struct alias_view {
    const char *id;
    bool public;
};
static const struct shape_field alias_fields[] = {
    {"templateID", SHAPE_STR, offsetof(struct alias_view, id), "Its name."},
    {"public", SHAPE_BOOL, offsetof(struct alias_view, public), "Every key may use it."},
};
static SHAPE(alias_shape, "TemplateAlias", "A name that means a template.", alias_fields);
/* clang-format on */

struct lookup {
    struct call *c;
    struct buf rows;
    bool found;
};

static void lookup_drop(void *state)
{
    buf_free(&((struct lookup *)state)->rows);
}

static struct lookup *lookup_new(struct call *c)
{
    struct lookup *l = call_state(c, sizeof(*l), lookup_drop);

    l->c = c;
    buf_init(&l->rows, LIST_BYTES_MAX);
    call_expect(c, &call_pending, NULL);
    return l;
}

/* ---- list ---- */

static void add(void *arg, const struct template_info *t)
{
    struct lookup *l = arg;
    const struct config *config = l->c->plane->config;
    struct template_view v = {
        .id = t->name,
        .version = E2B_ENVD_VERSION,
        .status = strcmp(t->state, "ready") == 0 ? "ready" : "building",
        .names = {t->name, strlen(t->name) + 1},
        .cpus = (config->cpu_milli + 999) / 1000,
        .memory_mb = config->memory >> 20,
        .disk_mb = config->disk >> 20,
        .created_ms = t->created_ms,
        .public = true,
    };

    shape_append(&l->rows, &template_shape, &v);
}

static void listed(void *arg, const struct err *e)
{
    struct lookup *l = arg;

    if (!call_told(l->c))
        return;
    if (e != NULL) {
        call_fail(l->c, e);
        return;
    }
    e2b_reply_list(l->c, 200, &l->rows);
}

static void template_list(struct call *c, const void *in)
{
    struct lookup *l = lookup_new(c);

    (void)in;
    if (l != NULL)
        engine_templates(c->plane->engine, add, listed, l);
}

/* ---- does it exist? ---- */

static void compare(void *arg, const struct template_info *t)
{
    struct lookup *l = arg;

    l->found = l->found || strcmp(t->name, call_param(l->c, 0)) == 0;
}

static void compared(void *arg, const struct err *e)
{
    struct lookup *l = arg;
    const char *name = call_param(l->c, 0);

    if (!call_told(l->c))
        return;
    if (e != NULL)
        call_fail(l->c, e);
    else if (!l->found)
        e2b_not_found(l->c, "template", name);
    else
        call_reply_shape(l->c, &alias_shape, &(struct alias_view){name, true});
}

static void template_alias(struct call *c, const void *in)
{
    struct lookup *l = lookup_new(c);

    (void)in;
    if (l != NULL)
        engine_templates(c->plane->engine, compare, compared, l);
}

/* ---- delete ---- */

/* Also deletes snapshots, which belong to a key; templates are shared by all keys. */
static void template_delete(struct call *c, const void *in)
{
    const struct snapshot *s = engine_snapshot_get(ref_with(c->ref, call_param(c, 0)));
    struct err e;

    (void)in;
    if (s == NULL && auth_allows(c->plane->auth, c->key, SCOPE_ADMIN, &e) < 0) {
        e2b_not_found(c, "template", call_param(c, 0));
        return;
    }
    call_expect(c, &call_pending, NULL);
    if (s != NULL)
        engine_snapshot_delete(ref_with(c->ref, s->id), call_told_done, c);
    else
        engine_template_delete(c->plane->engine, call_param(c, 0), call_told_done, c);
}

/* clang-format off */
const struct surface_row e2b_templates[] = {
    {{"GET",    "/templates"}, SCOPE_READ, template_list, "listTemplates",
     "Lists templates.", .status = 200, .answers = {&template_shape}},
    {{"GET",    "/v2/templates"}, SCOPE_READ, template_list, "listTemplatesV2",
     "Lists templates.", .status = 200, .answers = {&template_shape}},
    {{"GET",    "/templates/aliases/{alias}"}, SCOPE_READ, template_alias, "getTemplateAlias",
     "Whether a name means a template.", .status = 200, .answers = {&alias_shape}},
    {{"DELETE", "/templates/{id}"}, SCOPE_RUN, template_delete, "deleteTemplate",
     "Deletes a snapshot, or, with an admin's key, a template.", .status = 204},
    {.op = NULL},
};
/* clang-format on */

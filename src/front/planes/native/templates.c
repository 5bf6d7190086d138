/* templates.c - what sandboxes start from. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/surface.h"

#define LIST_BYTES_MAX (4u << 20)

/* clang-format off */
static const struct shape_field template_fields[] = {
    {"name", SHAPE_STR, offsetof(struct template_info, name), "Given as template when a sandbox is made."},
    {"state", SHAPE_STR, offsetof(struct template_info, state), "Whether it can be used."},
    {"note", SHAPE_STR, offsetof(struct template_info, note), "What is worth knowing about it.", SHAPE_OMITTED},
    {"bytes", SHAPE_U64, offsetof(struct template_info, bytes), "Size of its files."},
    {"files", SHAPE_U64, offsetof(struct template_info, files), "Number of its files."},
    {"created_at", SHAPE_TIME, offsetof(struct template_info, created_ms), "When it was made.", SHAPE_NULLABLE},
};
static SHAPE(template_shape, "Template", "What a sandbox's root filesystem starts as.", template_fields);

struct list_view {
    struct shape_bytes templates;
};
static const struct shape_field list_fields[] = {
    {"templates", SHAPE_LIST, offsetof(struct list_view, templates), "All there are.", SHAPE_ALWAYS, &template_shape},
};
static SHAPE(list_shape, "TemplateList", "The templates of this server.", list_fields);

struct progress_view {
    const char *text;
    uint64_t done, total;
};
static const struct shape_field progress_fields[] = {
    {"text", SHAPE_STR, offsetof(struct progress_view, text), "What is being done."},
    {"done", SHAPE_U64, offsetof(struct progress_view, done), "How much of it."},
    {"total", SHAPE_U64, offsetof(struct progress_view, total), "Of how much; 0: not known."},
};
static SHAPE(progress_shape, "Progress", "The progress event.", progress_fields);
/* clang-format on */

struct templates {
    struct call *c;
    const char *only; /* its name; NULL: all of them */
    struct buf rows;
    bool found;
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
    call_expect(c, CALL_PENDING, NULL);
    engine_templates(c->n->engine, each, listed, t);
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
        err_set(&gone, ERR_NOT_FOUND, "no template %.60s", t->only);
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
    call_expect(t->c, CALL_PENDING, NULL);
    engine_templates(t->c->n->engine, each, shown, t);
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
    call_expect(c, CALL_PENDING, NULL);
    engine_template_refresh(c->n->engine, t->only, progress, refreshed, t);
}

/* clang-format off */
const struct surface_row surface_templates[] = {
    {{"GET",  "/v1/templates"}, SCOPE_READ, template_list, "listTemplates",
     "Lists what sandboxes can be made from.",
     .status = 200, .answers = {&list_shape}},
    {{"POST", "/v1/templates/{name}/refresh"}, SCOPE_ADMIN, template_refresh, "refreshTemplate",
     "Makes a template anew; sandboxes that exist keep the old one.",
     .status = 200, .answers = {&template_shape},
     .events = "progress (Progress); at last done (Template) or error (Error)",
     .event_shapes = {&progress_shape}},
    {.op = NULL},
};
/* clang-format on */

/* template.c - operations on templates; import.c adds one. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

struct template_call {
    struct engine *g;
    struct waiter *waiter;
    void (*each)(void *arg, const struct template_info *t);
    void (*progress)(void *arg, const char *text, uint64_t done, uint64_t total);
    void *arg;
    char forgets[KEEPER_NAME_MAX + 1]; /* a template; or "" */
};

static void on_template(void *arg, const void *msg)
{
    const struct keeper_template *m = msg;
    struct template_call *c = arg;
    autobuf struct buf settings = BUF_INIT(IMAGE_SETTINGS_MAX + 1);
    struct template_info t = {.name = m->name,
                              .state = m->state,
                              .note = m->note,
                              .bytes = m->bytes,
                              .files = m->files,
                              .created_ms = m->created_ms,
                              .id = m->id,
                              .format = m->format,
                              .layers = m->layers};

    buf_add(&settings, m->settings.p, m->settings.len);
    t.settings = buf_cstr(&settings);
    if (c->waiter != NULL)
        c->each(c->arg, &t);
}

static void on_progress(void *arg, const void *msg)
{
    const struct keeper_progress *m = msg;
    struct template_call *c = arg;

    if (c->waiter != NULL && c->progress != NULL)
        c->progress(c->arg, m->text, m->done, m->total);
}

static void on_template_last(void *arg, const void *msg, const struct err *e)
{
    struct template_call *c = arg;

    (void)msg;
    if (c->forgets[0] != '\0' && (e == NULL || e->kind == ERR_NOT_FOUND))
        template_disown(c->g, c->forgets);
    waiter_answer(c->waiter, "", e);
    free(c);
}

static void on_template_late(void *arg, const struct err *e)
{
    struct template_call *c = arg;

    waiter_answer(take_ptr(&c->waiter), "", e);
}

static void template_drop(void *arg)
{
    struct template_call *c = arg;

    free(c->waiter);
    free(c);
}

static struct template_call *template_call(struct engine *g, engine_done_cb *cb, void *arg)
{
    struct waiter *w = waiter_new(g, cb, NULL, arg);
    struct template_call *c = mem_zeroed(1, sizeof(*c));

    c->g = g;
    c->waiter = w;
    c->arg = arg;
    return c;
}

void engine_templates(struct engine *g, void (*each)(void *arg, const struct template_info *t),
                      engine_done_cb *cb, void *arg)
{
    static const struct keeper_asker asker = {.each = on_template,
                                              .last = on_template_last,
                                              .late = on_template_late,
                                              .drop = template_drop};
    struct template_call *c = template_call(g, cb, arg);
    struct keeper_templates ask = {0};

    c->each = each;
    keeper_ask(g->keeper, KEEPER_TEMPLATES, &ask, &asker, c);
}

void engine_template_refresh(struct engine *g, const char *name,
                             void (*progress)(void *arg, const char *text, uint64_t done,
                                              uint64_t total),
                             engine_done_cb *cb, void *arg)
{
    static const struct keeper_asker asker = {.each = on_progress,
                                              .last = on_template_last,
                                              .late = on_template_late,
                                              .drop = template_drop};
    struct template_call *c = template_call(g, cb, arg);
    struct keeper_refresh ask = {.name = name};

    if (strlen(name) > KEEPER_NAME_MAX) {
        waiter_fail(c->waiter, ERR_NOT_FOUND,
                    "no template '%.64s'; `cove template list` shows the names", name);
        free(c);
        return;
    }
    c->progress = progress;
    keeper_ask(g->keeper, KEEPER_REFRESH, &ask, &asker, c);
}

/* ---- names ---- */

static const struct keeper_asker plain_asker = {
    .last = on_template_last, .late = on_template_late, .drop = template_drop};

void engine_template_alias(struct engine *g, const char *name, const char *alias,
                           engine_done_cb *cb, void *arg)
{
    struct template_call *c = template_call(g, cb, arg);
    struct keeper_alias ask = {.name = name, .alias = alias};
    struct err e;

    if (strlen(name) > KEEPER_NAME_MAX)
        err_set(&e, ERR_NOT_FOUND, "no template '%.64s'; `cove template list` shows the names",
                name);
    else if (image_check_name(alias, &e) == 0) {
        keeper_ask(g->keeper, KEEPER_ALIAS, &ask, &plain_asker, c);
        return;
    }
    waiter_answer(c->waiter, "", &e);
    free(c);
}

void engine_template_delete(struct engine *g, const char *name, engine_done_cb *cb, void *arg)
{
    struct template_call *c = template_call(g, cb, arg);
    struct keeper_forget ask = {.name = name};

    if (strlen(name) > KEEPER_NAME_MAX) {
        waiter_fail(c->waiter, ERR_NOT_FOUND,
                    "no template '%.64s'; `cove template list` shows the names", name);
        free(c);
        return;
    }
    str_fmt(c->forgets, sizeof(c->forgets), "%s", name);
    keeper_ask(g->keeper, KEEPER_FORGET, &ask, &plain_asker, c);
}

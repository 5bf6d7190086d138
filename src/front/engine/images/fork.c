/* fork.c - forks: takes a snapshot without a row, creates the sandboxes from it, and deletes it. The
 * sandboxes keep its layer. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

#define FORK_AT_ONCE 8u /* creations under way */

struct child {
    struct fork *fork;
    char id[KEEPER_ID_MAX + 1]; /* "": it failed */
    struct err e;
};

struct fork {
    struct list link;
    struct engine *g;
    void (*each)(void *arg, const struct sandbox *s, const struct err *e);
    engine_done_cb *done; /* NULL once it was told that it took too long */
    void *arg;
    struct create_opts o; /* its strings are below */
    char key[ENGINE_KEY_MAX + 1], snapshot[KEEPER_ID_MAX + 1];
    char *text;
    struct sandbox_rule *rules;
    unsigned count, begun, ended;
    struct child children[];
};

static void fork_free(struct fork *f)
{
    list_del(&f->link);
    free(f->text);
    free(f->rules);
    free(f);
}

void forks_free(struct engine *g)
{
    struct fork *f;

    LIST_EACH (&g->forks, f, struct fork, link)
        fork_free(f);
}

/* ---- the children ---- */

static void tell(struct fork *f)
{
    for (unsigned i = 0; i < f->count; i++) {
        struct child *c = &f->children[i];
        const struct sandbox *s =
            c->id[0] == '\0' ? NULL : engine_get((struct ref){f->g, f->key, c->id});

        if (c->id[0] != '\0' && s == NULL)
            err_set(&c->e, ERR_GONE, "sandbox %s was deleted", c->id);
        f->each(f->arg, s, s == NULL ? &c->e : NULL);
    }
    f->done(f->arg, NULL);
}

static void begin_some(struct fork *f);

static void on_child(void *arg, const struct sandbox *s, const struct err *e)
{
    struct child *c = arg;
    struct fork *f = c->fork;

    if (s != NULL)
        str_fmt(c->id, sizeof(c->id), "%s", s->id);
    else
        c->e = *e;
    f->ended++;
    if (f->begun < f->count) {
        begin_some(f);
    } else if (f->ended == f->count) {
        snap_forget(f->g, f->snapshot);
        tell(f);
        fork_free(f);
    }
}

static void begin_some(struct fork *f)
{
    while (f->begun < f->count && f->begun - f->ended < FORK_AT_ONCE) {
        struct child *c = &f->children[f->begun++];

        c->fork = f;
        create_from(f->g, &f->o, f->snapshot, on_child, c);
    }
}

/* ---- the snapshot ---- */

static void on_snapped(void *arg, const void *msg, const struct err *e)
{
    const struct keeper_snap *m = msg;
    struct fork *f = arg;

    if (e == NULL && f->done != NULL) {
        str_fmt(f->snapshot, sizeof(f->snapshot), "%s", m->id);
        begin_some(f);
        return;
    }
    if (e == NULL)
        snap_forget(f->g, m->id);
    else if (f->done != NULL)
        f->done(f->arg, e);
    fork_free(f);
}

static void on_late(void *arg, const struct err *e)
{
    struct fork *f = arg;

    take_ptr (&f->done)(f->arg, e);
}

static void fork_drop(void *arg)
{
    fork_free(arg);
}

/* ---- what they are made of ---- */

static char *keep(char **at, const char *text)
{
    char *to = *at;

    *at = stpcpy(to, text) + 1;
    return to;
}

/* The original may be gone before the last of them is made. */
static void copy_all(struct fork *f, const struct sandbox *s)
{
    size_t len = strlen(s->network) + strlen(s->metadata) + strlen(s->plane) + 3 + s->env_len;
    char *at = f->text = mem_zeroed(1, len);

    f->rules = mem_zeroed(s->nrules + 1, sizeof(*f->rules));
    str_fmt(f->key, sizeof(f->key), "%s", s->key);
    f->o = (struct create_opts){.key = f->key,
                                .network = *s->network != '\0' ? keep(&at, s->network) : NULL,
                                .metadata = keep(&at, s->metadata),
                                .plane = keep(&at, s->plane),
                                .rules = f->rules,
                                .nrules = s->nrules,
                                .limits = s->limits,
                                .timeout_ms = s->timeout_ms,
                                .on_timeout = s->on_timeout,
                                .auto_resume = s->auto_resume,
                                .idle_ms = s->idle_ms,
                                .fsync = s->fsync,
                                .log_output =
                                    s->log_output ? CREATE_LOG_OUTPUT : CREATE_LOG_NO_OUTPUT};
    if (s->nrules > 0)
        memcpy(f->rules, s->rules, s->nrules * sizeof(*f->rules));
    f->o.env = at;
    f->o.env_len = s->env_len;
    if (s->env_len > 0)
        memcpy(at, s->env, s->env_len);
}

static struct fork *fork_new(struct engine *g, const struct sandbox *s, const struct fork_opts *o)
{
    struct fork *f = mem_zeroed(1, sizeof(*f) + o->count * sizeof(f->children[0]));

    f->g = g;
    f->count = o->count;
    list_add_tail(&g->forks, &f->link);
    copy_all(f, s);
    if (o->has_timeout)
        f->o.timeout_ms = o->timeout_ms;
    return f;
}

void engine_fork(struct ref ref, const struct fork_opts *o,
                 void (*each)(void *arg, const struct sandbox *s, const struct err *e),
                 engine_done_cb *done, void *arg)
{
    static const struct keeper_asker asker = {
        .last = on_snapped, .late = on_late, .drop = fork_drop};
    struct err e;
    struct box *b = box_to_snapshot(ref, &e);
    struct fork *f;

    if (b != NULL && (o->count == 0 || o->count > FORK_MAX)) {
        err_set(&e, ERR_INVALID, "count: expected 1 to %u", FORK_MAX);
        b = NULL;
    }
    if (b == NULL) {
        waiter_answer(waiter_new(ref.engine, done, NULL, arg), "", &e);
        return;
    }
    f = fork_new(ref.engine, &b->pub, o);
    f->each = each;
    f->done = done;
    f->arg = arg;
    keeper_ask(ref.engine->keeper, KEEPER_SNAPSHOT, &(struct keeper_snapshot){.id = b->pub.id},
               &asker, f);
}

/* temp.c - runs cove-helper in a sandbox that no client knows. It has no row, so a new front destroys
 * what a killed one left. */
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/archives/internal.h"
#include "front/engine/work.h"

int temp_take(struct temp *t, struct engine *g, const char *id, struct err *e)
{
    if (!id_is_valid(id, KEEPER_ID_MAX) || box_find(g, id) != NULL)
        return err_set(e, ERR_INTERNAL, "invalid sandbox id '%s' from the keeper", id);
    t->g = g;
    str_fmt(t->id, sizeof(t->id), "%s", id);
    talk_peer_init(&t->peer, g->hub, t->id);
    buf_init(&t->words, WORK_WORDS_MAX);
    return 0;
}

static void on_output(void *arg, const struct process_output *m)
{
    struct temp *t = arg;

    if (m->stream != PROCESS_STDOUT)
        work_words(&t->words, m);
    else if (t->ops->on_data != NULL)
        t->ops->on_data(t->arg, m->data.p, m->data.len);
}

static void on_exit_(void *arg, const struct process_exit *m)
{
    struct temp *t = arg;
    struct err e;

    t->stream = NULL;
    if (m->code == 0 && m->signal == 0) {
        t->ops->on_done(t->arg, NULL);
        return;
    }
    work_error(m, &t->words, &e);
    t->ops->on_done(t->arg, &e);
}

static void on_fail(void *arg, const struct err *e)
{
    struct temp *t = arg;
    struct err why = *e;

    t->stream = NULL;
    err_wrap(&why, "the helper");
    t->ops->on_done(t->arg, &why);
}

static void on_drain(void *arg)
{
    struct temp *t = arg;

    if (t->ops->on_drain != NULL)
        t->ops->on_drain(t->arg);
}

static void on_started(void *arg, const struct process_started *m)
{
    struct temp *t = arg;

    (void)m;
    if (t->ops->on_started != NULL)
        t->ops->on_started(t->arg);
}

static const struct process_ops helper_ops = {.on_started = on_started,
                                              .on_output = on_output,
                                              .on_exit = on_exit_,
                                              .on_fail = on_fail,
                                              .on_drain = on_drain};

void temp_run(struct temp *t, const struct wire_strv *argv, bool input, const struct temp_ops *ops,
              void *arg)
{
    struct init_start start = {.id = "archive",
                               .argv = *argv,
                               .env = {"", 0, 0},
                               .cwd = "/",
                               .user = "root",
                               .ring = (uint32_t)t->g->o.config->output,
                               .flags = INIT_START_OWN | INIT_START_FORGET | INIT_START_HELPER |
                                        (input ? INIT_START_STDIN : 0u)};

    t->ops = ops;
    t->arg = arg;
    t->stream = stream_run(t->g, &t->peer, &start, &helper_ops, t);
}

size_t temp_feed(struct temp *t, const void *p, size_t n, bool last)
{
    return t->stream == NULL ? 0 : process_feed(t->stream, p, n, last);
}

void temp_pause(struct temp *t, bool paused)
{
    if (t->stream != NULL)
        process_pause(t->stream, paused);
}

void temp_leave(struct temp *t)
{
    struct err gone;

    if (t->id[0] == '\0')
        return;
    if (t->stream != NULL)
        process_close(take_ptr(&t->stream));
    err_set(&gone, ERR_GONE, "the archive is done");
    talk_peer_reset(&t->peer, &gone);
    buf_free(&t->words);
    t->id[0] = '\0';
}

void temp_end(struct temp *t)
{
    if (t->id[0] != '\0')
        life_destroy_leftover(t->g, t->id);
    temp_leave(t);
}

void temp_drop(struct temp *t)
{
    if (t->stream != NULL)
        process_close(take_ptr(&t->stream));
    buf_free(&t->words);
    t->id[0] = '\0';
}

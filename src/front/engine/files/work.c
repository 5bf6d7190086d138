/* work.c - see work.h. */
#include "front/engine/work.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/str.h"
#include "mem/mem.h"

struct work {
    struct process_stream *stream;
    const struct work_ops *ops;
    void *arg;
    struct buf words;
};

/* What a helper may blame on its caller; anything else is our own fault. */
static const enum err_kind kinds[] = {
    ERR_INVALID, ERR_DENIED,    ERR_NOT_FOUND,   ERR_CONFLICT,     ERR_TOO_LARGE, ERR_LIMIT,
    ERR_GONE,    ERR_DISK_FULL, ERR_UNSUPPORTED, ERR_PRECONDITION, ERR_TIMEOUT};

static enum err_kind kind_of(const char *code)
{
    enum err_kind kind = err_from_code(code);

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i] == kind)
            return kind;
    return ERR_INTERNAL;
}

/* The last line, if it is one of ours. */
static bool read_words(struct buf *words, struct err *e)
{
    char *line, *space;

    while (words->len > 0 && buf_data(words)[words->len - 1] == '\n')
        words->len--;
    line = (char *)(uintptr_t)buf_cstr(words);
    if (strlen(line) != words->len || !str_is_utf8(line, words->len))
        return false;
    if (strrchr(line, '\n') != NULL)
        line = strrchr(line, '\n') + 1;
    if (strncmp(line, "E ", 2) != 0 || (space = strchr(line + 2, ' ')) == NULL)
        return false;
    *space = '\0';
    err_set(e, kind_of(line + 2), "%.400s", space + 1);
    return true;
}

static void ended(struct work *w, const struct err *e)
{
    const struct work_ops *ops = w->ops;
    void *arg = w->arg;

    buf_free(&w->words);
    free(w);
    ops->on_done(arg, e);
}

void work_error(const struct process_exit *m, struct buf *words, struct err *e)
{
    if (m->flags & PROCESS_EXIT_OOM)
        err_set(e, ERR_LIMIT, "cove-helper was killed: the sandbox is out of memory");
    else if (m->signal != 0)
        err_set(e, ERR_CONFLICT, "cove-helper was killed inside the sandbox by signal %u",
                m->signal);
    else if (!read_words(words, e))
        err_set(e, ERR_INTERNAL, "cove-helper exited with code %u", m->code);
}

void work_words(struct buf *words, const struct process_output *m)
{
    if (m->data.len > words->max)
        return;
    if (words->len + m->data.len > words->max)
        buf_clear(words);
    buf_add(words, m->data.p, m->data.len);
}

static void on_exit_(void *arg, const struct process_exit *m)
{
    struct work *w = arg;
    struct err e;

    if (m->code == 0 && m->signal == 0) {
        ended(w, NULL);
        return;
    }
    work_error(m, &w->words, &e);
    ended(w, &e);
}

static void on_fail(void *arg, const struct err *e)
{
    struct err why = *e;

    ended(arg, &why);
}

static void on_output(void *arg, const struct process_output *m)
{
    struct work *w = arg;

    if (m->stream == PROCESS_STDOUT) {
        if (w->ops->on_data != NULL)
            w->ops->on_data(w->arg, m->data.p, m->data.len);
        return;
    }
    work_words(&w->words, m);
}

static void on_drain(void *arg)
{
    struct work *w = arg;

    if (w->ops->on_drain != NULL)
        w->ops->on_drain(w->arg);
}

static void on_started(void *arg, const struct process_started *m)
{
    (void)m;
    on_drain(arg);
}

static const struct process_ops stream_ops = {.on_started = on_started,
                                              .on_output = on_output,
                                              .on_exit = on_exit_,
                                              .on_fail = on_fail,
                                              .on_drain = on_drain};

struct work *work_start(struct ref ref, const struct work_opts *o, const struct work_ops *ops,
                        void *arg)
{
    const char *argv[WORK_ARGS_MAX + 2] = {"cove-helper"};
    struct process_opts p = {.argv = argv,
                             .cwd = o->cwd,
                             .user = o->user,
                             .stdin_open = o->input,
                             .helper = true,
                             .leash = true};
    struct work *w = mem_zeroed(1, sizeof(*w));

    for (size_t i = 0; i < WORK_ARGS_MAX && o->argv[i] != NULL; i++)
        argv[i + 1] = o->argv[i];
    w->ops = ops;
    w->arg = arg;
    buf_init(&w->words, WORK_WORDS_MAX);
    w->stream = process_run(ref, &p, true, &stream_ops, w);
    return w;
}

size_t work_feed(struct work *w, const void *p, size_t n, bool last)
{
    return process_feed(w->stream, p, n, last);
}

void work_pause(struct work *w, bool paused)
{
    process_pause(w->stream, paused);
}

void work_close(struct work *w)
{
    if (w == NULL)
        return;
    process_close(w->stream);
    buf_free(&w->words);
    free(w);
}

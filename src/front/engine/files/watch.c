/* watch.c - see watch.h. */
#include "front/engine/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "front/engine/work.h"
#include "mem/mem.h"

#define PREFIX ".watch-"

struct watch {
    const struct watch_ops *ops; /* NULL: closed in a callback */
    void *arg;
    char id[WATCH_ID_LEN + 1];
    struct process_stream *stream;
    bool there; /* read only; else it is being made */
    bool telling;
    bool torn; /* what comes next begins in the middle of a line */
    uint64_t next;
    struct buf line, words;
};

static struct watch *watch_new(const struct watch_ops *ops, void *arg)
{
    struct watch *w = mem_zeroed(1, sizeof(*w));

    w->ops = ops;
    w->arg = arg;
    buf_init(&w->line, WATCH_LINE_MAX);
    buf_init(&w->words, WORK_WORDS_MAX);
    return w;
}

static void watch_free(struct watch *w)
{
    buf_free(&w->line);
    buf_free(&w->words);
    free(w);
}

static void process_id(char out[PROCESS_ID_MAX + 1], const char *id)
{
    snprintf(out, PROCESS_ID_MAX + 1, PREFIX "%s", id);
}

/* ---- the log ---- */

static void done(struct watch *w, const struct err *e)
{
    const struct watch_ops *ops = w->ops;
    uint64_t next = w->next;
    void *arg = w->arg;

    watch_free(w);
    ops->on_done(arg, next, e);
}

/* False: that was the last, and the watch is gone. */
static bool tell(struct watch *w, struct watch_event *ev, uint64_t next)
{
    struct process_stream *s = w->stream;

    w->next = ev->next = next;
    w->telling = true;
    w->ops->on_event(w->arg, ev);
    w->telling = false;
    if (w->ops == NULL) {
        watch_free(w);
        return false;
    }
    if (ev->kind != WATCH_END)
        return true;
    process_close(s);
    done(w, NULL);
    return false;
}

/* A line that is too long is none of the helper's: it is passed over like any other
 * that makes no sense. */
static bool take_line(struct watch *w, uint64_t next)
{
    struct watch_event ev = {.kind = WATCH_OVERFLOW, .path = "log"};
    bool torn = w->torn, failed = w->line.failed;
    char *text = (char *)(uintptr_t)buf_cstr(&w->line);
    bool known = torn || (!failed && strlen(text) == w->line.len && watch_line(text, &ev) == 0);

    w->torn = false;
    w->next = next;
    if (known && !tell(w, &ev, next))
        return false;
    w->line.failed = false;
    buf_clear(&w->line);
    return true;
}

static void on_output(void *arg, const struct process_output *m)
{
    struct watch *w = arg;
    const char *p = m->data.p, *end = p + m->data.len, *nl;

    if (m->stream != PROCESS_STDOUT) {
        work_words(&w->words, m);
        return;
    }
    for (; (nl = memchr(p, '\n', (size_t)(end - p))) != NULL; p = nl + 1) {
        buf_add(&w->line, p, (size_t)(nl - p));
        if (!take_line(w, m->pos + (uint64_t)(nl + 1 - (const char *)m->data.p)))
            return;
    }
    buf_add(&w->line, p, (size_t)(end - p));
}

static void on_truncated(void *arg, const struct process_truncated *m)
{
    struct watch *w = arg;

    (void)m;
    w->torn = true;
    w->line.failed = false;
    buf_clear(&w->line);
}

static void on_exit_(void *arg, const struct process_exit *m)
{
    struct err e;

    work_error(m, &((struct watch *)arg)->words, &e);
    done(arg, &e);
}

static void on_end(void *arg, const struct process_end *m)
{
    (void)m;
    done(arg, NULL);
}

static void on_fail(void *arg, const struct err *e)
{
    struct watch *w = arg;
    struct err why = *e;

    if (w->there && strncmp(why.msg, "no process", 10) == 0)
        err_set(&why, ERR_NOT_FOUND, "no watch %s: it ended or never existed", w->id);
    done(w, &why);
}

static const struct process_ops log_ops = {.on_output = on_output,
                                           .on_truncated = on_truncated,
                                           .on_exit = on_exit_,
                                           .on_end = on_end,
                                           .on_fail = on_fail};

/* ---- a new one ---- */

struct watch *watch_open(struct ref ref, const struct watch_opts *o, const struct watch_ops *ops,
                         void *arg)
{
    struct watch *w = watch_new(ops, arg);
    static char globs[WATCH_GLOBS_MAX][WATCH_GLOB_MAX + 2];
    const char *argv[5 + WATCH_GLOBS_MAX + 1] = {"cove-helper", "watch", o->path};
    char window[16], id[PROCESS_ID_MAX + 1];
    struct process_opts p = {.id = id,
                             .argv = argv,
                             .user = o->user,
                             .cwd = o->path[0] == '/' ? "/" : NULL,
                             .timeout_ms = o->keep_ms,
                             .helper = true,
                             .leash = true,
                             .own = true};
    size_t n = 0;

    id_random(w->id, WATCH_ID_LEN);
    process_id(id, w->id);
    argv[3] = o->recursive ? "r" : "-";
    str_fmt(window, sizeof(window), "%u", o->window_ms);
    argv[4] = window;
    for (size_t i = 0; i < o->ninclude && n < WATCH_GLOBS_MAX; i++, n++)
        snprintf(globs[n], sizeof(globs[n]), "+%s", o->include[i]);
    for (size_t i = 0; i < o->nexclude && n < WATCH_GLOBS_MAX; i++, n++)
        snprintf(globs[n], sizeof(globs[n]), "-%s", o->exclude[i]);
    for (size_t i = 0; i < n; i++)
        argv[5 + i] = globs[i];
    w->stream = process_run_own(ref, &p, WATCH_LOG, &log_ops, w);
    return w;
}

/* ---- one that is there ---- */

struct watch *watch_read(struct ref ref, const char *id, uint64_t since, bool follow,
                         const struct watch_ops *ops, void *arg)
{
    struct watch *w = watch_new(ops, arg);
    char process[PROCESS_ID_MAX + 1];

    snprintf(w->id, sizeof(w->id), "%s", id_is_valid(id, WATCH_ID_LEN) ? id : "-");
    process_id(process, w->id);
    w->next = since;
    w->there = true;
    w->stream = process_attach_own(ref, process, since, follow, &log_ops, w);
    return w;
}

const char *watch_id(const struct watch *w)
{
    return w->id;
}

void watch_pause(struct watch *w, bool paused)
{
    process_pause(w->stream, paused);
}

void watch_close(struct watch *w)
{
    if (w == NULL)
        return;
    w->ops = NULL;
    process_close(w->stream);
    if (!w->telling)
        watch_free(w);
}

/* ---- all of them ---- */

struct ask {
    void (*each)(void *arg, const struct watch_info *i);
    engine_done_cb *cb;
    void *arg;
    char id[WATCH_ID_LEN + 1];
};

static struct ask *ask_new(engine_done_cb *cb, void *arg)
{
    struct ask *a = mem_zeroed(1, sizeof(*a));

    a->cb = cb;
    a->arg = arg;
    return a;
}

static void on_deleted(void *arg, const struct process_exit *m, const struct err *e)
{
    struct ask *a = arg;
    struct err why;

    (void)m;
    if (e != NULL && strncmp(e->msg, "no process", 10) == 0)
        e = (err_set(&why, ERR_NOT_FOUND, "no watch %s", a->id), &why);
    a->cb(a->arg, e);
    free(a);
}

void watch_delete(struct ref ref, const char *id, engine_done_cb *cb, void *arg)
{
    struct ask *a = ask_new(cb, arg);
    char process[PROCESS_ID_MAX + 1];

    snprintf(a->id, sizeof(a->id), "%s", id_is_valid(id, WATCH_ID_LEN) ? id : "-");
    process_id(process, a->id);
    process_kill_own(ref, process, on_deleted, a);
}

static void on_each(void *arg, const struct process_info *p)
{
    struct ask *a = arg;
    struct watch_info i = {.user = p->user, .created_ms = p->started_ms};
    const char *words[4] = {"", "", "", ""};
    size_t at = 0;

    if (p->state != PROCESS_RUNNING || strncmp(p->id, PREFIX, strlen(PREFIX)) != 0)
        return;
    for (size_t n = 0;
         n < ARRAY_LEN(words) && (words[n] = engine_word_next(&p->argv, &at)) != NULL;)
        n++;
    i.id = p->id + strlen(PREFIX);
    i.path = words[2] != NULL ? words[2] : "";
    i.recursive = words[3] != NULL && strcmp(words[3], "r") == 0;
    a->each(a->arg, &i);
}

static void on_listed(void *arg, const struct err *e)
{
    struct ask *a = arg;

    a->cb(a->arg, e);
    free(a);
}

void watch_list(struct ref ref, void (*each)(void *arg, const struct watch_info *i),
                engine_done_cb *cb, void *arg)
{
    struct ask *a = ask_new(cb, arg);

    a->each = each;
    process_list_own(ref, on_each, on_listed, a);
}

/* watcher.c - see watcher.h. */
#include "front/planes/e2b/watcher.h"

#include <sys/stat.h>

#include "base/own.h"
#include "base/str.h"
#include "front/plane/transfer.h"

#define OUT_MAX (8u << 20) /* bytes of one answer of a poll */

static void drop(void *state)
{
    struct watcher *w = state;

    connect_drop(&w->stream);
    event_drop(&w->events);
    buf_free(&w->out);
}

struct watcher *watcher_new(struct call *c)
{
    struct watcher *w = call_state(c, sizeof(*w), drop);

    w->c = c;
    buf_init(&w->out, OUT_MAX);
    event_init(&w->events, c);
    w->events.dir = w->dir;
    return w;
}

/* ---- while it is under way ---- */

static void deleted(void *arg, const struct err *e)
{
    (void)arg;
    (void)e;
}

void watcher_delete(struct watcher *w)
{
    watch_delete(w->c->ref, w->id, deleted, NULL);
}

void watcher_stop(struct watcher *w)
{
    file_cancel(take_ptr(&w->looking));
    event_drop(&w->events);
    if (w->watch == NULL)
        return;
    if (w->ends)
        watcher_delete(w);
    watch_close(take_ptr(&w->watch));
}

static void take_back(void *handle)
{
    watcher_stop(handle);
}

void watcher_hold(struct watcher *w)
{
    if (w->watch != NULL)
        watch_pause(w->watch, w->slow || event_waits(&w->events));
}

static void pause_watch(void *handle, bool paused)
{
    struct watcher *w = handle;

    w->slow = paused;
    watcher_hold(w);
}

void watcher_expect(struct watcher *w)
{
    static const struct call_source source = {take_back, pause_watch};

    call_expect(w->c, &source, w);
}

void watcher_fail_lost(struct watcher *w)
{
    struct err e;

    err_set(&e, ERR_PRECONDITION, "events were lost; list the directory again");
    call_fail(w->c, &e);
}

/* ---- the directory first: where it is, and whether it is one ---- */

static void found(void *arg, const struct file_info *f, const struct err *e)
{
    struct watcher *w = arg;
    struct watch_opts o = {
        .path = w->dir, .user = "root", .recursive = w->recursive, .keep_ms = w->keep_ms};
    struct err why;

    w->looking = NULL;
    if (!call_told(w->c))
        return;
    if (e == NULL && !S_ISDIR(f->mode)) {
        err_set(&why, ERR_INVALID, "path %.200s is not a directory", f->path);
        e = &why;
    }
    if (e != NULL) {
        call_fail(w->c, e);
        return;
    }
    str_fmt(w->dir, sizeof(w->dir), "%s", f->path);
    w->watch = watch_open(w->c->ref, &o, w->ops, w);
    str_fmt(w->id, sizeof(w->id), "%s", watch_id(w->watch));
    watcher_expect(w);
}

void watcher_open(struct watcher *w, const struct watch_in *in)
{
    char path[E2B_PATH_MAX + 1] = "", user[E2B_USER_MAX + 1];
    struct file_at at = e2b_at(w->c, path, NULL);
    struct err e;

    if (e2b_user(w->c, user, &at.user, &e) < 0 || e2b_path(in->path, path, &e) < 0) {
        call_fail(w->c, &e);
        return;
    }
    w->recursive = in->recursive;
    w->events.entries = in->entries;
    w->looking = file_stat(&at, true, found, w);
    watcher_expect(w);
}

/* watcher.h - what a stream of events (watch.c) and a poll for them (poll.c) share. */
#ifndef FRONT_PLANES_E2B_WATCHER_H
#define FRONT_PLANES_E2B_WATCHER_H

#include "front/planes/e2b/connect.h"
#include "front/planes/e2b/event.h"

struct watch_in {
    const char *path;
    bool recursive, entries;
};
/* clang-format off */
#define WATCH_IN_FIELDS \
    {"path", JSON_FIELD_STR, offsetof(struct watch_in, path), 0, 0, false, ""}, \
    {"recursive", JSON_FIELD_BOOL, offsetof(struct watch_in, recursive), 0, 0, false, ""}, \
    {"includeEntry", JSON_FIELD_BOOL, offsetof(struct watch_in, entries), 0, 0, false, ""}, \
    {"include_entry", JSON_FIELD_BOOL, offsetof(struct watch_in, entries), 0, 0, false, ""}
/* clang-format on */

struct watcher { /* the state of a call */
    struct call *c;
    struct connect_stream stream; /* watch.c's */
    struct event_writer events;
    struct watch *watch;
    struct file_call *looking; /* at the directory */
    const struct watch_ops *ops;
    uint64_t keep_ms;
    bool ends; /* the watch, with the call */
    bool recursive;
    bool slow;          /* the client */
    bool over;          /* the watch; what waits is still told */
    bool lost;          /* an overflow was told; poll.c's */
    uint64_t next, end; /* where the next poll goes on, and where if all was told */
    size_t count;
    struct buf out;
    char id[WATCH_ID_LEN + 1], dir[E2B_PATH_MAX + 1];
};

/* NULL: the call is answered. */
struct watcher *watcher_new(struct call *c);
/* Finds the directory, then opens a watch of it with w->ops and w->keep_ms. */
void watcher_open(struct watcher *w, const struct watch_in *in);
/* The call waits for w->watch. */
void watcher_expect(struct watcher *w);
/* The watch stands still while the client is slow or an entry is looked up. */
void watcher_hold(struct watcher *w);
/* Reads no more. */
void watcher_stop(struct watcher *w);
/* Ends the watch itself, which outlives its readers. */
void watcher_delete(struct watcher *w);
/* More happened than could be told. */
void watcher_fail_lost(struct watcher *w);

#endif

/* watch.c - filesystem.Filesystem/WatchDir: streams changes in a directory.
 *
 * `start` is sent when later changes are not missed. The stream ends with the client's deadline or
 * when the directory is removed; when the sandbox ends the connection is cut. */
#include "base/own.h"
#include "front/planes/e2b/watcher.h"

#define KEEP_MS 10000u /* the watch ends with its stream; after a crash of the front, then */

static const struct json_field fields[] = {WATCH_IN_FIELDS};
static const struct surface_input input = {SURFACE_INPUT(fields, struct watch_in),
                                           .unwrap = connect_unwrap};

static void put_event(struct event_writer *ev, struct buf *event, uint64_t next)
{
    struct watcher *w = CONTAINER_OF(ev, struct watcher, events);
    autobuf struct buf message = BUF_INIT(CONNECT_MESSAGE_MAX);

    (void)next;
    buf_adds(&message, "{\"filesystem\":");
    buf_add(&message, buf_data(event), event->len);
    buf_adds(&message, "}");
    message.failed |= event->failed;
    connect_send(&w->stream, &message);
}

static void start(struct watcher *w)
{
    autobuf struct buf message = BUF_INIT(64);

    connect_begin(&w->stream, w->c, "{\"keepalive\":{}}", true);
    buf_adds(&message, "{\"start\":{}}");
    connect_send(&w->stream, &message);
}

static void on_event(void *arg, const struct watch_event *ev)
{
    struct watcher *w = arg;

    if (w->c->r == NULL)
        return;
    if (ev->kind == WATCH_READY)
        start(w);
    else if (ev->kind == WATCH_OVERFLOW)
        watcher_fail_lost(w);
    else
        event_add(&w->events, ev);
    if (w->c->r != NULL)
        watcher_hold(w);
}

/* The engine's end closes when the watch is over and nothing is looked up any more. */
static void end(struct watcher *w, const struct err *e)
{
    if (!call_told(w->c))
        return;
    if (e != NULL)
        call_fail(w->c, e);
    else
        connect_end(&w->stream);
}

static void on_idle(struct event_writer *ev, const struct err *e)
{
    struct watcher *w = CONTAINER_OF(ev, struct watcher, events);

    if (w->c->r == NULL)
        return;
    if (e != NULL)
        call_fail(w->c, e);
    else if (w->over)
        end(w, NULL);
    else
        watcher_hold(w);
}

static void on_done(void *arg, uint64_t next, const struct err *e)
{
    struct watcher *w = arg;

    (void)next;
    w->watch = NULL;
    w->over = true;
    watcher_delete(w); /* also one whose directory is gone is kept, for others than us */
    if (e != NULL)
        event_drop(&w->events);
    if (e != NULL || !event_waits(&w->events))
        end(w, e);
}

static void watch_dir(struct call *c, const void *in)
{
    static const struct watch_ops ops = {.on_event = on_event, .on_done = on_done};
    struct watcher *w = watcher_new(c);

    if (w == NULL)
        return;
    w->ops = &ops;
    w->keep_ms = KEEP_MS;
    w->ends = true;
    w->events.put = put_event;
    w->events.idle = on_idle;
    watcher_open(w, in);
}

/* clang-format off */
const struct surface_row e2b_watch[] = {
    {{"POST", "/filesystem.Filesystem/WatchDir"}, SCOPE_RUN, watch_dir, "filesystemWatchDir",
     "What happens in a directory, as it does.", .body = &input, .status = 200},
    {.op = NULL},
};
/* clang-format on */

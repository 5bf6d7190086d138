/* poll.c - watchers of filesystem.Filesystem for clients that poll: CreateWatcher,
 * GetWatcherEvents, RemoveWatcher.
 *
 * The watch outlives its reader (engine/watch.h); only this file knows how far it was read. So after
 * a restart of the front all events that the watch still keeps are sent again, rather than lost. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/e2b/watcher.h"
#include "mem/mem.h"

#define KEEP_MS 3600000u  /* a watcher ends this long after the last poll */
#define POLLERS_MAX 4096u /* remembered; then the oldest is forgotten, and told all again */

struct id_in {
    const char *id;
};
/* clang-format off */
static const struct json_field create_fields[] = {WATCH_IN_FIELDS};
static const struct json_field id_fields[] = {
    {"watcherId", JSON_FIELD_STR, offsetof(struct id_in, id), 0, 0, false, ""},
    {"watcher_id", JSON_FIELD_STR, offsetof(struct id_in, id), 0, 0, false, ""},
};
/* clang-format on */
static const struct surface_input create_input = {SURFACE_INPUT(create_fields, struct watch_in)};
static const struct surface_input id_input = {SURFACE_INPUT(id_fields, struct id_in)};

/* ---- pollers ---- */

struct poller {
    struct list link;
    char sandbox[ENGINE_ID_MAX + 1], id[WATCH_ID_LEN + 1];
    uint64_t next;
    bool entries;
    char dir[E2B_PATH_MAX + 1];
};

static struct poller *poller_of(const struct call *c, const char *id)
{
    struct poller *k;

    LIST_EACH (&e2b_of_data(c)->pollers, k, struct poller, link)
        if (strcmp(k->id, id) == 0 && strcmp(k->sandbox, c->ref.id) == 0)
            return k;
    return NULL;
}

static void poller_free(struct e2b *p, struct poller *k)
{
    if (k == NULL)
        return;
    list_del(&k->link);
    free(k);
    p->npollers--;
}

void e2b_pollers_free(struct e2b *p)
{
    struct poller *k;

    while ((k = LIST_FIRST(&p->pollers, struct poller, link)) != NULL)
        poller_free(p, k);
}

static void remember(struct watcher *w, uint64_t next)
{
    struct e2b *p = e2b_of_data(w->c);
    struct poller *k = mem_zeroed(1, sizeof(*k));

    if (p->npollers == POLLERS_MAX)
        poller_free(p, LIST_FIRST(&p->pollers, struct poller, link));
    str_fmt(k->sandbox, sizeof(k->sandbox), "%s", w->c->ref.id);
    str_fmt(k->id, sizeof(k->id), "%s", w->id);
    str_fmt(k->dir, sizeof(k->dir), "%s", w->dir);
    k->next = next;
    k->entries = w->events.entries;
    list_add_tail(&p->pollers, &k->link);
    p->npollers++;
}

static void reply_text(struct call *c, const char *json)
{
    autobuf struct buf body = BUF_INIT(1024);

    buf_adds(&body, json);
    call_reply(c, 200, "application/json", &body);
}

/* ---- a new one ---- */

static void ignore_event(struct event_writer *ev, struct buf *event, uint64_t next)
{
    (void)ev;
    (void)event;
    (void)next;
}

static void ignore_idle(struct event_writer *ev, const struct err *e)
{
    (void)ev;
    (void)e;
}

/* Ready: from here on it is a resource, and this call is over. */
static void created(void *arg, const struct watch_event *ev)
{
    struct watcher *w = arg;
    char text[64];

    if (ev->kind != WATCH_READY || w->c->r == NULL)
        return;
    remember(w, ev->next);
    str_fmt(text, sizeof(text), "{\"watcherId\":\"%s\"}", w->id);
    reply_text(w->c, text); /* takes the reader back, not the watch */
}

static void not_created(void *arg, uint64_t next, const struct err *e)
{
    struct watcher *w = arg;
    struct err gone;

    (void)next;
    w->watch = NULL;
    if (!call_told(w->c))
        return;
    err_set(&gone, ERR_NOT_FOUND, "the directory was removed");
    call_fail(w->c, e != NULL ? e : &gone);
}

static void create_watcher(struct call *c, const void *in)
{
    static const struct watch_ops ops = {.on_event = created, .on_done = not_created};
    struct watcher *w = watcher_new(c);

    if (w == NULL)
        return;
    w->ops = &ops;
    w->keep_ms = KEEP_MS;
    w->events.put = ignore_event;
    w->events.idle = ignore_idle;
    watcher_open(w, in);
}

/* ---- what happened since ---- */

/* The engine's end is closed, and so will be the client's. */
static void reply_events(struct watcher *w)
{
    struct poller *k = poller_of(w->c, w->id);

    if (!call_told(w->c))
        return;
    if (k != NULL)
        k->next = w->next;
    else
        remember(w, w->next); /* the watch is of a process before this one */
    if (w->lost) {
        watcher_fail_lost(w);
        return;
    }
    buf_adds(&w->out, w->count == 0 ? "{}" : "]}");
    call_reply(w->c, 200, "application/json", &w->out);
}

static void reply_all(struct watcher *w)
{
    w->next = w->end;
    reply_events(w);
}

/* What an answer has no room for is the next one's. */
static void put_event(struct event_writer *ev, struct buf *event, uint64_t next)
{
    struct watcher *w = CONTAINER_OF(ev, struct watcher, events);

    if (w->out.len + event->len + sizeof("{\"events\":[]}") > w->out.max) {
        w->over = false; /* whether it is will be seen then */
        watcher_stop(w);
        reply_events(w);
        return;
    }
    buf_adds(&w->out, w->count++ == 0 ? "{\"events\":[" : ",");
    buf_add(&w->out, buf_data(event), event->len);
    if (next != 0)
        w->next = next;
}

static void on_event(void *arg, const struct watch_event *ev)
{
    struct watcher *w = arg;

    w->lost |= ev->kind == WATCH_OVERFLOW;
    event_add(&w->events, ev);
    watcher_hold(w);
}

static void on_idle(struct event_writer *ev, const struct err *e)
{
    struct watcher *w = CONTAINER_OF(ev, struct watcher, events);

    w->lost |= e != NULL;
    if (w->over)
        reply_all(w);
    else
        watcher_hold(w);
}

static void on_done(void *arg, uint64_t next, const struct err *e)
{
    struct watcher *w = arg;

    w->watch = NULL;
    w->over = true;
    w->end = next;
    if (e == NULL) {
        if (!event_waits(&w->events))
            reply_all(w);
        return;
    }
    event_drop(&w->events);
    if (!call_told(w->c))
        return;
    if (e->kind == ERR_NOT_FOUND)
        poller_free(e2b_of_data(w->c), poller_of(w->c, w->id));
    call_fail(w->c, e);
}

static bool is_id(struct call *c, const char *id)
{
    struct err e;

    if (id != NULL && *id != '\0' && strlen(id) <= WATCH_ID_LEN)
        return true;
    err_set(&e, ERR_NOT_FOUND, "watcher with id %.64s not found", id != NULL ? id : "");
    call_fail(c, &e);
    return false;
}

static void get_events(struct call *c, const void *input)
{
    static const struct watch_ops ops = {.on_event = on_event, .on_done = on_done};
    const char *id = ((const struct id_in *)input)->id;
    struct watcher *w = is_id(c, id) ? watcher_new(c) : NULL;
    const struct poller *k;

    if (w == NULL)
        return;
    k = poller_of(c, id);
    str_fmt(w->id, sizeof(w->id), "%s", id);
    if (k != NULL) {
        w->next = k->next;
        w->events.entries = k->entries;
        str_fmt(w->dir, sizeof(w->dir), "%s", k->dir);
    }
    w->events.put = put_event;
    w->events.idle = on_idle;
    w->watch = watch_read(c->ref, id, w->next, false, &ops, w);
    watcher_expect(w);
}

/* ---- no more ---- */

static void removed(void *arg, const struct err *e)
{
    struct call *c = arg;

    if (call_got(c, e))
        reply_text(c, "{}");
}

static void remove_watcher(struct call *c, const void *input)
{
    const char *id = ((const struct id_in *)input)->id;

    if (!is_id(c, id))
        return;
    poller_free(e2b_of_data(c), poller_of(c, id));
    call_expect(c, &call_pending, NULL);
    watch_delete(c->ref, id, removed, c);
}

/* clang-format off */
#define RPC(method, input, handler, text) \
    {{"POST", "/filesystem.Filesystem/" method}, SCOPE_RUN, handler, "filesystem" method, text, .body = input, .status = 200}

const struct surface_row e2b_poll[] = {
    RPC("CreateWatcher",    &create_input, create_watcher, "Watches a directory for who asks now and then."),
    RPC("GetWatcherEvents", &id_input,     get_events,     "What happened since the last time."),
    RPC("RemoveWatcher",    &id_input,     remove_watcher, "Ends it."),
    {.op = NULL},
};
/* clang-format on */

/* watches.c - watches that outlive a connection: created once, read with the same key from any
 * cursor, as a page or as a stream, and ended by a delete or some time after the last read. */
#include <string.h>

#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/files/watch.h"

#define PAGE_DEFAULT 1000u
#define PAGE_MAX 10000u
#define PAGE_BYTES_MAX (64u << 20)

/* ---- make one ---- */

struct create_in {
    struct watch_in what;
    uint64_t idle_ms;
};
/* clang-format off */
static const struct json_field create_fields[] = {
    WATCH_FIELDS(struct create_in),
    {"idle_timeout_ms", JSON_FIELD_U64, offsetof(struct create_in, idle_ms), 1000, WATCH_IDLE_MAX, false,
     "Time in ms without a reader after which the watch ends. Default: ten minutes."},
};

struct info_view {
    const char *id, *user;
    struct shape_bytes path;
    bool recursive;
    uint64_t created_ms;
};
static const struct shape_field info_fields[] = {
    {"id", SHAPE_STR, offsetof(struct info_view, id), "Id."},
    {"path", SHAPE_BYTES, offsetof(struct info_view, path), "Directory, as given."},
    {"recursive", SHAPE_BOOL, offsetof(struct info_view, recursive), "Includes all directories below."},
    {"user", SHAPE_STR, offsetof(struct info_view, user), "User whose permissions it uses.", SHAPE_OMITTED},
    {"created_at", SHAPE_TIME, offsetof(struct info_view, created_ms), "Time of creation.", SHAPE_OMITTED},
};
static SHAPE(info_shape, "Watch", "A watch of a directory.", info_fields);
/* clang-format on */

static void create_defaults(void *in, const struct config *c)
{
    struct create_in *i = in;

    (void)c;
    i->what.coalesce_ms = WATCH_COALESCE_MS;
    i->idle_ms = WATCH_IDLE_MS;
}

static const struct surface_input create_input = {SURFACE_INPUT(create_fields, struct create_in),
                                                  .defaults = create_defaults};

struct create {
    struct call *c;
    char id[WATCH_ID_LEN + 1], path[ENGINE_PATH_MAX + 1];
    bool recursive;
};

static void create_ready(void *arg, const struct watch_event *ev)
{
    struct create *n = arg;
    struct info_view v = {
        .id = n->id, .path = {n->path, strlen(n->path)}, .recursive = n->recursive};

    if (ev->kind == WATCH_READY)
        call_reply_shape(n->c, &info_shape, &v);
}

static void create_done(void *arg, uint64_t next, const struct err *e)
{
    struct create *n = arg;
    struct err gone;

    (void)next;
    if (!call_told(n->c))
        return;
    if (e == NULL)
        e = (err_set(&gone, ERR_NOT_FOUND, "the directory was removed"), &gone);
    call_fail(n->c, e);
}

static void watch_create(struct call *c, const void *body)
{
    static const struct watch_ops ops = {.on_event = create_ready, .on_done = create_done};
    const struct create_in *in = body;
    struct create *n = call_state(c, sizeof(*n), NULL);
    struct watch_asked asked;
    struct watch *w;
    struct err e;

    if (watch_asked(&in->what, &asked, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    asked.o.keep_ms = in->idle_ms;
    n->c = c;
    n->recursive = in->what.recursive;
    str_fmt(n->path, sizeof(n->path), "%s", in->what.path);
    w = watch_open(c->ref, &asked.o, &ops, n);
    str_fmt(n->id, sizeof(n->id), "%s", watch_id(w));
    call_expect(c, &watch_reader, w);
}

/* ---- all of them ---- */

struct list_view {
    struct shape_bytes watches;
};
/* clang-format off */
static const struct shape_field list_fields[] = {
    {"watches", SHAPE_LIST, offsetof(struct list_view, watches), "All of them.", SHAPE_ALWAYS, &info_shape},
};
static SHAPE(list_shape, "WatchList", "The watches of a sandbox.", list_fields);
/* clang-format on */

struct rows {
    struct call *c;
    struct buf rows;
};

static void rows_drop(void *state)
{
    buf_free(&((struct rows *)state)->rows);
}

static struct rows *rows_new(struct call *c)
{
    struct rows *r = call_state(c, sizeof(*r), rows_drop);

    if (r != NULL) {
        r->c = c;
        buf_init(&r->rows, PAGE_BYTES_MAX);
    }
    return r;
}

static void list_each(void *arg, const struct watch_info *i)
{
    struct info_view v = {.id = i->id,
                          .path = {i->path, strlen(i->path)},
                          .user = i->user,
                          .recursive = i->recursive,
                          .created_ms = i->created_ms};

    shape_append(&((struct rows *)arg)->rows, &info_shape, &v);
}

static void list_done(void *arg, const struct err *e)
{
    struct rows *r = arg;

    if (!call_told(r->c))
        return;
    if (e != NULL)
        call_fail(r->c, e);
    else
        call_reply_shape(r->c, &list_shape, &(struct list_view){shape_list(&r->rows)});
}

static void watches_list(struct call *c, const void *in)
{
    struct rows *r = rows_new(c);

    (void)in;
    if (r == NULL)
        return;
    call_expect(c, &call_pending, NULL);
    watch_list(c->ref, list_each, list_done, r);
}

/* ---- end one ---- */

static void watch_end(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    watch_delete(c->ref, call_param(c, 1), call_told_done, c);
}

/* ---- read one ---- */

struct events_in {
    uint64_t since, limit;
};
struct page_view {
    struct shape_bytes events;
    uint64_t next;
    bool ended;
};
/* clang-format off */
static const struct json_field events_fields[] = {
    {"since", JSON_FIELD_U64, offsetof(struct events_in, since), 0, 0, false, "Cursor: `next` of the previous page. Default: Last-Event-ID, or the beginning."},
    {"limit", JSON_FIELD_U64, offsetof(struct events_in, limit), 1, PAGE_MAX, false, "Maximum number of events. Default: 1000."},
};
static const struct shape_field row_fields[] = {
    {"event", SHAPE_STR, offsetof(struct watch_view, event), "create, modify, delete, move, attrib, overflow or end."},
    {"path", SHAPE_BYTES, offsetof(struct watch_view, path), "Path relative to the directory.", SHAPE_OMITTED},
    {"type", SHAPE_STR, offsetof(struct watch_view, type), "file (anything but a directory) or directory.", SHAPE_OMITTED},
    {"from", SHAPE_BYTES, offsetof(struct watch_view, from), "Previous path, for a move.", SHAPE_OMITTED},
    {"reason", SHAPE_STR, offsetof(struct watch_view, reason), "Reason of overflow and end, as in WatchReason.", SHAPE_OMITTED},
    {"cursor", SHAPE_U64, offsetof(struct watch_view, cursor), "Cursor after this event."},
};
static SHAPE(row_shape, "WatchRow", "A change in a directory.", row_fields);
static const struct shape_field page_fields[] = {
    {"events", SHAPE_LIST, offsetof(struct page_view, events), "Events in order.", SHAPE_ALWAYS, &row_shape},
    {"next", SHAPE_U64, offsetof(struct page_view, next), "Pass it as `since` to continue without a gap."},
    {"ended", SHAPE_BOOL, offsetof(struct page_view, ended), "The directory was removed; no more events will follow."},
};
static SHAPE(page_shape, "WatchPage", "Changes in a directory.", page_fields);
/* clang-format on */

static void events_defaults(void *in, const struct config *c)
{
    (void)c;
    *(struct events_in *)in = (struct events_in){.since = UINT64_MAX, .limit = PAGE_DEFAULT};
}

static const struct surface_input events_input = {SURFACE_INPUT(events_fields, struct events_in),
                                                  .defaults = events_defaults};

struct page {
    struct rows r; /* first: rows_drop() */
    uint64_t room;
    bool ended;
};

static void page_reply(struct page *p, uint64_t next)
{
    struct page_view v = {shape_list(&p->r.rows), next, p->ended};

    call_reply_shape(p->r.c, &page_shape, &v);
}

static void page_event(void *arg, const struct watch_event *ev)
{
    struct page *p = arg;
    struct watch_view v;

    p->ended = ev->kind == WATCH_END;
    if (ev->kind == WATCH_READY)
        return;
    watch_view(&v, ev);
    shape_append(&p->r.rows, &row_shape, &v);
    if (--p->room == 0)
        page_reply(p, ev->next);
}

static void page_done(void *arg, uint64_t next, const struct err *e)
{
    struct page *p = arg;

    if (!call_told(p->r.c))
        return;
    if (e != NULL)
        call_fail(p->r.c, e);
    else
        page_reply(p, next);
}

static void read_page(struct call *c, uint64_t since, uint64_t limit)
{
    static const struct watch_ops ops = {.on_event = page_event, .on_done = page_done};
    struct page *p = call_state(c, sizeof(*p), rows_drop);

    p->r.c = c;
    p->room = limit;
    buf_init(&p->r.rows, PAGE_BYTES_MAX);
    call_expect(c, &watch_reader, watch_read(c->ref, call_param(c, 1), since, false, &ops, p));
}

/* Given both, the query is where the client wants to begin whatever it saw before. */
static int place_of(struct call *c, uint64_t *since, struct err *e)
{
    const char *last = http_header(c->r, "Last-Event-ID");
    char id[WATCH_ID_LEN + 1];

    if (*since != UINT64_MAX)
        return 0;
    *since = 0;
    if (last == NULL)
        return 0;
    if (watch_place_read(last, id, since, e) < 0)
        return -1;
    if (strcmp(id, call_param(c, 1)) != 0)
        return err_set(e, ERR_INVALID, "Last-Event-ID: the id of an event of another watch");
    return 0;
}

static void watch_events(struct call *c, const void *query)
{
    const struct events_in *in = query;
    uint64_t since = in->since;
    struct err e;

    if (place_of(c, &since, &e) < 0 ||
        (!id_is_valid(call_param(c, 1), WATCH_ID_LEN) &&
         err_set(&e, ERR_NOT_FOUND, "no watch %.64s", call_param(c, 1)) < 0))
        call_fail(c, &e);
    else if (call_accept(c) == CALL_SSE)
        watch_stream(c, call_param(c, 1), since, NULL);
    else
        read_page(c, since, in->limit);
}

#define WATCHES "/v1/sandboxes/{id}/watches"
/* clang-format off */
const struct surface_row surface_watches[] = {
    {{"POST", WATCHES}, SCOPE_RUN, watch_create, "createWatch",
     "Starts to watch a directory. Changes after the answer are not missed.",
     .body = &create_input, .status = 201, .answers = {&info_shape}},
    {{"GET", WATCHES}, SCOPE_RUN, watches_list, "listWatches",
     "Lists the watches of a sandbox, including those of streams.",
     .status = 200, .answers = {&list_shape}},
    {{"GET", WATCHES "/{watch}/events"}, SCOPE_RUN, watch_events, "getWatchEvents",
     "Shows changes since a cursor, as a page or as a stream.",
     .query = &events_input, .status = 200, .answers = {&page_shape},
     .events = WATCH_EVENTS,
     .event_shapes = {&watch_ready_shape, &watch_event_shape, &watch_reason_shape},
     .flags = SURFACE_RESUME},
    {{"DELETE", WATCHES "/{watch}"}, SCOPE_RUN, watch_end, "deleteWatch",
     "Ends a watch.",
     .status = 204},
    {.op = NULL},
};
/* clang-format on */

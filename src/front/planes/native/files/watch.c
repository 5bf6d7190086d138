/* watch.c - changes in a directory, as a stream that can be resumed.
 *
 * To resume, a watch is read up to now before it is followed: so a missing one is known before the
 * answer begins. */
#include "front/planes/native/files/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/own.h"
#include "base/str.h"
#include "mem/mem.h"

/* ---- the request ---- */

static int globs_of(const json_t *list, const char *name, const char **out, size_t *n,
                    struct err *e)
{
    *n = json_array_size(list);
    for (size_t i = 0; i < *n; i++) {
        out[i] = json_string_value(json_array_get(list, i));
        if (*out[i] == '\0' || strlen(out[i]) > WATCH_GLOB_MAX)
            return err_set(e, ERR_INVALID, "%s: expected patterns of 1 to %u bytes", name,
                           WATCH_GLOB_MAX);
    }
    return 0;
}

int watch_asked(const struct watch_in *in, struct watch_asked *ret, struct err *e)
{
    ret->o = (struct watch_opts){.path = in->path,
                                 .user = in->user,
                                 .recursive = in->recursive,
                                 .include = ret->include,
                                 .exclude = ret->exclude,
                                 .window_ms = (unsigned)in->coalesce_ms,
                                 .keep_ms = WATCH_AGAIN_MS};
    if (globs_of(in->include, "include", ret->include, &ret->o.ninclude, e) < 0)
        return -1;
    return globs_of(in->exclude, "exclude", ret->exclude, &ret->o.nexclude, e);
}

void watch_place(char out[WATCH_PLACE_MAX], const char *id, uint64_t cursor)
{
    str_fmt(out, WATCH_PLACE_MAX, "%s.%llu", id, (unsigned long long)cursor);
}

int watch_place_read(const char *text, char id[WATCH_ID_LEN + 1], uint64_t *cursor, struct err *e)
{
    size_t n = strcspn(text, ".");

    if (n != WATCH_ID_LEN || text[n] != '.' || str_u64(text + n + 1, UINT64_MAX, cursor) < 0)
        return err_set(e, ERR_INVALID, "Last-Event-ID: not the id of an event of a watch");
    memcpy(id, text, n);
    id[n] = '\0';
    return id_is_valid(id, WATCH_ID_LEN)
               ? 0
               : err_set(e, ERR_INVALID, "Last-Event-ID: not the id of an event of a watch");
}

/* ---- what is shown ---- */

/* clang-format off */
static const struct shape_field event_fields[] = {
    {"path", SHAPE_BYTES, offsetof(struct watch_view, path), "Path relative to the directory."},
    {"type", SHAPE_STR, offsetof(struct watch_view, type), "file (anything but a directory) or directory."},
    {"from", SHAPE_BYTES, offsetof(struct watch_view, from), "Previous path, for a move.", SHAPE_OMITTED},
};
SHAPE(watch_event_shape, "WatchEvent", "The create, modify, delete, move and attrib events.", event_fields);

static const struct shape_field ready_fields[] = {
    {"id", SHAPE_STR, offsetof(struct watch_view, id), "Id of the watch."},
};
SHAPE(watch_ready_shape, "WatchReady", "The ready event: later changes are not missed.", ready_fields);

static const struct shape_field reason_fields[] = {
    {"reason", SHAPE_STR, offsetof(struct watch_view, reason),
     "overflow: queue (the kernel's queue was full), watches (too many directories to watch), log (the reader was away too long), expired (the watch had ended; this is a new one). end: deleted, moved or unmounted."},
};
SHAPE(watch_reason_shape, "WatchReason", "The overflow event (events were lost: list the directory again) and the end event (the directory was removed).", reason_fields);
/* clang-format on */

void watch_view(struct watch_view *v, const struct watch_event *ev)
{
    *v = (struct watch_view){.event = watch_kind_name(ev->kind), .cursor = ev->next};
    if (ev->kind == WATCH_OVERFLOW || ev->kind == WATCH_END) {
        v->reason = ev->path;
    } else if (ev->kind != WATCH_READY) {
        v->path = (struct shape_bytes){ev->path, strlen(ev->path)};
        v->type = ev->dir ? "directory" : "file";
        if (ev->from != NULL)
            v->from = (struct shape_bytes){ev->from, strlen(ev->from)};
    }
}

const struct shape *watch_shape_of(enum watch_kind k)
{
    if (k == WATCH_READY)
        return &watch_ready_shape;
    return k == WATCH_OVERFLOW || k == WATCH_END ? &watch_reason_shape : &watch_event_shape;
}

static void close_watch(void *handle)
{
    watch_close(handle);
}

static void pause_watch(void *handle, bool paused)
{
    watch_pause(handle, paused);
}

const struct call_source watch_reader = {close_watch, pause_watch};

/* ---- a stream ---- */

struct stream {
    struct call *c;
    char id[WATCH_ID_LEN + 1];
    bool looking; /* up to now: following comes then */
    bool ended;
    bool expired; /* a new one stands in for one that is gone */
    bool may_renew;
    struct watch_asked asked;
    json_t *keep[2]; /* what `asked` points to... */
    char *path, *user;
};

static void stream_drop(void *state)
{
    struct stream *s = state;

    json_decref(s->keep[0]);
    json_decref(s->keep[1]);
    free(s->path);
    free(s->user);
}

static void send_event(struct stream *s, const struct watch_event *ev)
{
    char place[WATCH_PLACE_MAX];
    struct watch_view v;

    if (!s->c->streaming)
        call_begin(s->c, CALL_SSE);
    watch_view(&v, ev);
    v.id = s->id;
    watch_place(place, s->id, ev->next);
    call_event_shape(s->c, place, v.event, watch_shape_of(ev->kind), &v);
}

static void on_event(void *arg, const struct watch_event *ev)
{
    struct watch_event lost = {.kind = WATCH_OVERFLOW, .path = "expired", .next = ev->next};
    struct stream *s = arg;

    s->ended = s->ended || ev->kind == WATCH_END;
    send_event(s, ev);
    if (s->expired && ev->kind == WATCH_READY)
        send_event(s, &lost);
}

static void begin_new(struct stream *s);
static void on_done(void *arg, uint64_t next, const struct err *e);

static const struct watch_ops ops = {.on_event = on_event, .on_done = on_done};

static void on_done(void *arg, uint64_t next, const struct err *e)
{
    struct stream *s = arg;
    struct call *c = s->c;

    if (!call_told(c))
        return;
    if (e != NULL && e->kind == ERR_NOT_FOUND && s->looking && s->may_renew) {
        s->expired = true;
        begin_new(s);
    } else if (e != NULL) {
        call_fail(c, e);
    } else if (s->looking && !s->ended) {
        s->looking = false;
        if (!c->streaming)
            call_begin(c, CALL_SSE);
        call_expect(c, &watch_reader, watch_read(c->ref, s->id, next, true, &ops, s));
    } else {
        call_end(c);
    }
}

static void begin_new(struct stream *s)
{
    struct call *c = s->c;
    struct watch *w;

    s->looking = false;
    w = watch_open(c->ref, &s->asked.o, &ops, s);
    str_fmt(s->id, sizeof(s->id), "%s", watch_id(w));
    call_expect(c, &watch_reader, w);
}

/* The input may be needed when the request is gone. */
static int remember(struct stream *s, const struct watch_in *in, struct err *e)
{
    if (watch_asked(in, &s->asked, e) < 0)
        return -1;
    s->keep[0] = json_incref(in->include);
    s->keep[1] = json_incref(in->exclude);
    s->path = mem_text(in->path);
    s->user = mem_text(in->user);
    s->asked.o.path = s->path;
    s->asked.o.user = s->user;
    s->may_renew = true;
    return 0;
}

void watch_stream(struct call *c, const char *id, uint64_t since, const struct watch_in *asked)
{
    struct stream *s = call_state(c, sizeof(*s), stream_drop);
    struct err e;

    s->c = c;
    if (asked != NULL && remember(s, asked, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (id == NULL) {
        begin_new(s);
        return;
    }
    s->looking = true;
    str_fmt(s->id, sizeof(s->id), "%s", id);
    call_expect(c, &watch_reader, watch_read(c->ref, id, since, false, &ops, s));
}

/* ---- the surface of one stream ---- */

struct stream_in {
    struct watch_in what;
};
/* clang-format off */
static const struct json_field stream_fields[] = {WATCH_FIELDS(struct stream_in)};
/* clang-format on */

static void stream_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct stream_in *)in)->what.coalesce_ms = WATCH_COALESCE_MS;
}

static const struct surface_input stream_input = {SURFACE_INPUT(stream_fields, struct stream_in),
                                                  .defaults = stream_defaults};

static void files_watch(struct call *c, const void *query)
{
    const struct stream_in *in = query;
    const char *last = http_header(c->r, "Last-Event-ID");
    char id[WATCH_ID_LEN + 1];
    uint64_t since = 0;
    struct err e;

    if (last != NULL && watch_place_read(last, id, &since, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    watch_stream(c, last != NULL ? id : NULL, since, &in->what);
}

/* clang-format off */
const struct surface_row surface_watch[] = {
    {{"GET", "/v1/sandboxes/{id}/files/watch"}, SCOPE_RUN, files_watch, "watchFiles",
     "Streams changes in a directory while the connection is open. A client that reconnects within a minute misses nothing.",
     .query = &stream_input, .status = 200,
     .events = WATCH_EVENTS,
     .event_shapes = {&watch_ready_shape, &watch_event_shape, &watch_reason_shape},
     .flags = SURFACE_RESUME},
    {.op = NULL},
};
/* clang-format on */

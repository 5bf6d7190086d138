/* events.c - streams events of the key's sandboxes. A reader that is too slow is disconnected; it may
 * reconnect with the last id it saw. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/internal.h"
#include "front/workspace/workspace.h"

#define BACKLOG_MAX (1u << 20)

static void unwatch(void *handle)
{
    engine_unwatch(handle);
}

static const struct call_source watch_source = {.take_back = unwatch};

struct events_in {
    const char *sandbox;
};
static const struct json_field events_fields[] = {
    {"sandbox", JSON_FIELD_STR, offsetof(struct events_in, sandbox), 1, 64, false,
     "Only events of this sandbox: its id, its name or the beginning of its id."},
};
static const struct surface_input events_input = {SURFACE_INPUT(events_fields, struct events_in)};

struct watcher {
    struct call *c;
    char sandbox[65];                       /* "": all */
    char workspace[WORKSPACE_NAME_MAX + 1]; /* "": all; else its own and those of its sandbox */
};

/* clang-format off */
static const struct shape_field event_fields[] = {
    {"seq", SHAPE_U64, offsetof(struct engine_event, seq), "Number of the event; also its id."},
    {"at", SHAPE_TIME, offsetof(struct engine_event, at_ms), "Time of the event."},
    {"kind", SHAPE_STR, offsetof(struct engine_event, kind), "Kind, for example sandbox.created; also the name of the event."},
    {"sandbox", SHAPE_STR, offsetof(struct engine_event, sandbox), "Id of the sandbox."},
    {"data", SHAPE_ANY, offsetof(struct engine_event, data), "Details, depending on the kind."},
};
static SHAPE(event_shape, "Event", "An event.", event_fields);
/* clang-format on */

/* With an id, so that a client that resumes does not get it again. */
static void tell_gap(struct call *c, const char *id)
{
    autobuf struct buf data = BUF_INIT(16);

    buf_adds(&data, "{}");
    call_event(c, id, "truncated", &data);
}

static bool is_of_workspace(const struct watcher *w, const struct engine_event *ev)
{
    struct workspace_info now;
    char begin[WORKSPACE_NAME_MAX + 32];
    struct err e;

    str_fmt(begin, sizeof(begin), "{\"workspace\":\"%s\"", w->workspace);
    if (ev->kind == NULL || strncmp(ev->data, begin, strlen(begin)) == 0)
        return true;
    return workspace_get(native_workspaces(w->c), w->c->ref.key, w->workspace, &now, &e) == 0 &&
           *now.sandbox != '\0' && strcmp(now.sandbox, ev->sandbox) == 0 &&
           strncmp(ev->kind, "workspace.", strlen("workspace.")) != 0;
}

static void on_event(void *arg, const struct engine_event *ev)
{
    struct watcher *w = arg;
    char id[24];

    if (w->workspace[0] != '\0' && !is_of_workspace(w, ev))
        return;
    if (w->sandbox[0] != '\0' && ev->sandbox != NULL && strcmp(w->sandbox, ev->sandbox) != 0)
        return;
    str_fmt(id, sizeof(id), "%llu", (unsigned long long)ev->seq);
    if (ev->kind == NULL) {
        tell_gap(w->c, id);
        return;
    }
    call_event_shape(w->c, id, ev->kind, &event_shape, ev);
    if (w->c->r != NULL && http_backlog(w->c->r) > BACKLOG_MAX)
        call_end(w->c);
}

static int last_seen(struct call *c, uint64_t *ret, struct err *e)
{
    const char *last = http_header(c->r, "Last-Event-ID");

    *ret = UINT64_MAX;
    if (last != NULL && str_u64(last, UINT64_MAX - 1, ret) < 0)
        return err_set(e, ERR_INVALID, "Last-Event-ID: expected a number");
    return 0;
}

static void events_get(struct call *c, const void *query)
{
    const struct events_in *in = query;
    struct watcher *w = call_state(c, sizeof(*w), NULL);
    const char *id = in->sandbox != NULL ? in->sandbox : "";
    const struct sandbox *s = NULL;
    uint64_t after;
    struct err e;

    /* one that was deleted may still have events: not found is no error */
    if (last_seen(c, &after, &e) < 0 ||
        (*id != '\0' && engine_resolve(ref_with(c->ref, id), &s, &e) < 0)) {
        call_fail(c, &e);
        return;
    }
    w->c = c;
    str_fmt(w->sandbox, sizeof(w->sandbox), "%s", s != NULL ? s->id : id);
    call_begin(c, CALL_SSE);
    call_expect(c, &watch_source, engine_watch(c->ref.engine, c->ref.key, after, on_event, w));
}

static void workspace_events(struct call *c, const void *query)
{
    struct watcher *w = call_state(c, sizeof(*w), NULL);
    struct workspace_info now;
    uint64_t after;
    struct err e;

    (void)query;
    if (last_seen(c, &after, &e) < 0 ||
        workspace_get(native_workspaces(c), c->ref.key, call_param(c, 0), &now, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    w->c = c;
    str_fmt(w->workspace, sizeof(w->workspace), "%s", now.name);
    call_begin(c, CALL_SSE);
    call_expect(c, &watch_source, engine_watch(c->ref.engine, c->ref.key, after, on_event, w));
}

/* clang-format off */
const struct surface_row surface_events[] = {
    {{"GET", "/v1/events"}, SCOPE_READ, events_get, "watchEvents",
     "Streams events of the sandboxes and processes of your key, from now on or after Last-Event-ID.",
     .query = &events_input, .status = 200,
     .events = "named by kind (Event); truncated if earlier events may be missing",
     .event_shapes = {&event_shape}, .flags = SURFACE_RESUME},
    {{"GET", "/v1/workspaces/{name}/events"}, SCOPE_READ, workspace_events, "watchWorkspaceEvents",
     "Streams the transitions of a workspace and the events of its sandbox, from now on or after Last-Event-ID. Does not use the workspace.",
     .status = 200,
     .events = "named by kind (Event): workspace.changed, workspace.deleted and those of its sandbox; truncated if earlier events may be missing",
     .event_shapes = {&event_shape}, .flags = SURFACE_RESUME},
    {.op = NULL},
};
/* clang-format on */

/* snapshots.c - snapshots of a sandbox's files: take, list, show, delete, export, import. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/engine/snapshot.h"
#include "front/planes/native/internal.h"

#define LIST_LIMIT 100u
#define LIST_LIMIT_MAX 1000u
#define LIST_BYTES_MAX (LIST_LIMIT_MAX * 2048u)

/* clang-format off */
static const struct shape_field snapshot_fields[] = {
    {"id", SHAPE_STR, offsetof(struct snapshot, id), "Id, for `snapshot` when creating a sandbox."},
    {"name", SHAPE_STR, offsetof(struct snapshot, name), "Name. If several snapshots share a name, it means the newest.", SHAPE_OMITTED},
    {"sandbox", SHAPE_STR, offsetof(struct snapshot, sandbox), "Id of the original sandbox, which may have been deleted."},
    {"template", SHAPE_STR, offsetof(struct snapshot, template), "Template of that sandbox."},
    {"bytes", SHAPE_U64, offsetof(struct snapshot, bytes), "Upper bound of the bytes it needs beyond its template. Shared data is stored once."},
    {"created_at", SHAPE_TIME, offsetof(struct snapshot, created_ms), "Time of creation."},
    {"damaged", SHAPE_BOOL, offsetof(struct snapshot, damaged), "Its record is damaged; no sandbox can be created from it."},
};
static SHAPE(snapshot_shape, "Snapshot", "The files of a sandbox at one moment.", snapshot_fields);

struct page_view {
    struct shape_bytes snapshots;
    const char *next;
};
static const struct shape_field page_fields[] = {
    {"snapshots", SHAPE_LIST, offsetof(struct page_view, snapshots), "Newest first.", SHAPE_ALWAYS, &snapshot_shape},
    {"next_cursor", SHAPE_STR, offsetof(struct page_view, next), "Pass it as `cursor` to get the next page; null on the last page.", SHAPE_NULLABLE},
};
static SHAPE(page_shape, "SnapshotPage", "One page of a list of snapshots.", page_fields);
/* clang-format on */

/* ---- take ---- */

struct take_in {
    const char *name;
};
static const struct json_field take_fields[] = {
    {"name", JSON_FIELD_STR, offsetof(struct take_in, name), 1, SNAPSHOT_NAME_MAX, false,
     "Name; it need not be unique."},
};
static const struct surface_input take_input = {SURFACE_INPUT(take_fields, struct take_in)};

static void taken(void *arg, const struct snapshot *s, const struct err *e)
{
    struct call *c = arg;

    if (call_got(c, e))
        call_reply_shape(c, &snapshot_shape, s);
}

static void snapshot_take(struct call *c, const void *in)
{
    call_expect(c, &call_pending, NULL);
    engine_snapshot(c->ref, ((const struct take_in *)in)->name, taken, c);
}

/* ---- list ---- */

struct list_in {
    const char *sandbox, *name, *cursor;
    uint64_t limit;
};
/* clang-format off */
static const struct json_field list_fields[] = {
    {"sandbox", JSON_FIELD_STR, offsetof(struct list_in, sandbox), 0, SNAPSHOT_NAME_MAX, false, "Only snapshots of this sandbox."},
    {"name", JSON_FIELD_STR, offsetof(struct list_in, name), 0, SNAPSHOT_NAME_MAX, false, "Only snapshots of this name."},
    {"limit", JSON_FIELD_U64, offsetof(struct list_in, limit), 1, LIST_LIMIT_MAX, false, "Maximum number of snapshots. Default: 100."},
    {"cursor", JSON_FIELD_STR, offsetof(struct list_in, cursor), 0, 0, false, "next_cursor of the previous page."},
};
/* clang-format on */

static void list_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct list_in *)in)->limit = LIST_LIMIT;
}

static const struct surface_input list_input = {SURFACE_INPUT(list_fields, struct list_in),
                                                .defaults = list_defaults};

static void add_snapshot(void *arg, const struct snapshot *s)
{
    shape_append(arg, &snapshot_shape, s);
}

static void snapshot_list(struct call *c, const void *in)
{
    const struct list_in *l = in;
    autobuf struct buf rows = BUF_INIT(LIST_BYTES_MAX);
    autofree char *next = NULL;
    struct snapshot_list_opts o = {.key = c->ref.key,
                                   .sandbox = l->sandbox,
                                   .name = l->name,
                                   .after = l->cursor,
                                   .limit = (size_t)l->limit};
    const struct sandbox *s = NULL;
    struct err e;

    /* of one that is gone too, by its whole id */
    if (l->sandbox != NULL && engine_resolve(ref_with(c->ref, l->sandbox), &s, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (s != NULL)
        o.sandbox = s->id;
    if (engine_snapshots(c->plane->engine, &o, add_snapshot, &rows, &next, &e) < 0)
        call_fail(c, &e);
    else
        call_reply_shape(c, &page_shape, &(struct page_view){shape_list(&rows), next});
}

/* ---- one of them ---- */

static const struct snapshot *named(struct call *c)
{
    const struct snapshot *s = engine_snapshot_get(c->ref);
    struct err e;

    if (s != NULL)
        return s;
    err_set(&e, ERR_NOT_FOUND, "no snapshot %.64s", call_param(c, 0));
    call_fail(c, &e);
    return NULL;
}

static void snapshot_get(struct call *c, const void *in)
{
    const struct snapshot *s = named(c);

    (void)in;
    if (s != NULL)
        call_reply_shape(c, &snapshot_shape, s);
}

static void snapshot_delete(struct call *c, const void *in)
{
    const struct snapshot *s = named(c);

    (void)in;
    if (s == NULL)
        return;
    call_expect(c, &call_pending, NULL);
    engine_snapshot_delete(ref_with(c->ref, s->id), call_told_done, c);
}

/* ---- as one file ---- */

static void cancel_export(void *handle)
{
    engine_export_cancel(handle);
}

static void pause_export(void *handle, bool paused)
{
    engine_export_pause(handle, paused);
}

static const struct call_source export_source = {.take_back = cancel_export, .pause = pause_export};

static void export_data(void *arg, const char *p, size_t n)
{
    struct call *c = arg;
    char value[128];

    if (c->r == NULL)
        return;
    if (!c->streaming) {
        snprintf(value, sizeof(value), "attachment; filename=\"%.40s.tar.zst\"",
                 engine_snapshot_get(c->ref) == NULL ? "snapshot"
                                                     : engine_snapshot_get(c->ref)->id);
        http_reply_header(c->r, "Content-Disposition", value);
        call_begin_bytes(c, "application/zstd");
    }
    call_write(c, p, n);
}

static void exported(void *arg, const struct err *e)
{
    struct call *c = arg;

    if (call_got(c, e))
        call_end(c);
}

static void snapshot_export(struct call *c, const void *in)
{
    static const struct export_ops ops = {.on_data = export_data, .on_done = exported};

    (void)in;
    call_expect(c, &export_source, engine_export(c->ref, &ops, c));
}

struct import_in {
    const char *name;
    uint64_t disk;
};
static const struct json_field import_fields[] = {
    {"name", JSON_FIELD_STR, offsetof(struct import_in, name), 0, SNAPSHOT_NAME_MAX, false,
     "Name; it need not be unique."},
    IMPORT_DISK_FIELD(struct import_in),
};
static const struct surface_input import_input = {SURFACE_INPUT(import_fields, struct import_in)};

static void cancel_import(void *handle)
{
    engine_import_cancel(handle);
}

static const struct call_source import_source = {.take_back = cancel_import};

struct importing {
    struct call *c;
    bool reading, sent; /* sent: the whole body is here */
    char id[64];        /* of what it became */
};

static void import_data(struct http_req *r, const char *p, size_t n, void *arg)
{
    struct importing *i = arg;

    if (i->c->source == &import_source &&
        engine_import_feed(i->c->handle, p, n, false) > ENGINE_IMPORT_HIGH)
        http_body_pause(r, true);
}

static void import_end(struct http_req *r, void *arg)
{
    struct importing *i = arg;

    (void)r;
    if (i->c->source == &import_source)
        engine_import_feed(i->c->handle, NULL, 0, true);
    i->sent = true;
}

/* The body is asked for only now: a client that waits for 100 Continue has not sent a
 * byte when there is no room for another import. */
static void import_drain(void *arg)
{
    struct importing *i = arg;

    if (i->c->r == NULL)
        return;
    if (i->reading)
        http_body_pause(i->c->r, false);
    else
        http_body_stream(i->c->r, import_data, import_end, i);
    i->reading = true;
}

static void import_progress(void *arg, const char *text, uint64_t done, uint64_t total)
{
    struct importing *i = arg;

    /* not while bytes come in: few clients read an answer before their request ends */
    if (!i->sent || call_accept(i->c) != CALL_SSE)
        return;
    if (!i->c->streaming)
        call_begin(i->c, CALL_SSE);
    call_event_shape(i->c, NULL, "progress", &progress_shape,
                     &(struct progress_view){text, done, total});
}

static void import_became(void *arg, const struct snapshot *s)
{
    struct importing *i = arg;

    snprintf(i->id, sizeof(i->id), "%s", s->id);
}

static void imported(void *arg, const struct err *e)
{
    struct importing *i = arg;
    struct call *c = i->c;
    const struct snapshot *s = engine_snapshot_get(ref_with(c->ref, i->id));
    struct err gone;

    if (!call_told(c))
        return;
    if (e == NULL && s == NULL)
        e = (err_set(&gone, ERR_GONE, "snapshot %s was deleted", i->id), &gone);
    if (e != NULL) {
        call_fail(c, e);
    } else if (c->streaming) {
        call_event_shape(c, NULL, "done", &snapshot_shape, s);
        call_end(c);
    } else {
        call_reply_shape(c, &snapshot_shape, s);
    }
}

static void snapshot_import(struct call *c, const void *in)
{
    static const struct import_ops ops = {.on_drain = import_drain,
                                          .on_progress = import_progress,
                                          .on_snapshot = import_became,
                                          .on_done = imported};
    const struct import_in *q = in;
    const char *name = q->name == NULL ? "" : q->name;
    struct importing *i = call_state(c, sizeof(*i), NULL);

    i->c = c;
    call_expect(c, &import_source,
                engine_import_snapshot(c->ref.engine, c->ref.key, name, q->disk, &ops, i));
}

/* clang-format off */
const struct surface_row surface_snapshots[] = {
    {{"POST",   "/v1/sandboxes/{id}/snapshots"}, SCOPE_RUN, snapshot_take, "takeSnapshot",
     "Takes a snapshot of the files of a sandbox. The sandbox is frozen for a few milliseconds and otherwise unchanged.",
     .body = &take_input, .status = 201, .answers = {&snapshot_shape}},
    {{"GET",    "/v1/snapshots"}, SCOPE_READ, snapshot_list, "listSnapshots",
     "Lists the snapshots of your key, newest first, in pages.",
     .query = &list_input, .status = 200, .answers = {&page_shape}},
    {{"GET",    "/v1/snapshots/{snapshot}"}, SCOPE_READ, snapshot_get, "getSnapshot",
     "Shows a snapshot, by its id or name.",
     .status = 200, .answers = {&snapshot_shape}},
    {{"DELETE", "/v1/snapshots/{snapshot}"}, SCOPE_RUN, snapshot_delete, "deleteSnapshot",
     "Deletes a snapshot. Sandboxes created from it keep their files.",
     .status = 204},
    {{"GET",    "/v1/snapshots/{snapshot}/export"}, SCOPE_RUN, snapshot_export, "exportSnapshot",
     "Downloads all files of a snapshot, including those of its template, as an OCI image layout with one layer (tar.zst).",
     .status = 200, .flags = SURFACE_BYTES},
    {{"POST",   "/v1/snapshots/import"}, SCOPE_RUN, snapshot_import, "importSnapshot",
     "Creates a snapshot from the body: an exported snapshot, or any archive a template can be created from. All digests are checked.",
     .query = &import_input, .status = 201, .answers = {&snapshot_shape},
     .events = "progress (Progress); at last done (Snapshot) or error (Error)",
     .event_shapes = {&progress_shape}, .flags = SURFACE_RAW_BODY},
    {.op = NULL},
};
/* clang-format on */

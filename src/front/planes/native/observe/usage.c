/* usage.c - what all sandboxes of a key use now, and what the disk of the server holds. */
#include <string.h>

#include "base/own.h"
#include "front/engine/metrics.h"
#include "front/planes/native/internal.h"

#define USAGE_BYTES_MAX (64u << 20)

/* ---- all sandboxes, now ---- */

struct used_view {
    const char *id, *key, *name;
    uint64_t cpu_limit, memory_limit, disk_limit, pids_limit;
    struct metric m;
};
struct usage_view {
    struct shape_bytes sandboxes;
};
/* clang-format off */
#define METRIC(member) offsetof(struct used_view, m.member)
static const struct shape_field used_fields[] = {
    {"id", SHAPE_STR, offsetof(struct used_view, id), "The sandbox."},
    {"key", SHAPE_STR, offsetof(struct used_view, key), "Id of the API key that it belongs to."},
    {"name", SHAPE_STR, offsetof(struct used_view, name), "Its name.", SHAPE_OMITTED},
    {"at", SHAPE_TIME, METRIC(at_ms), "When it was measured."},
    {"cpu_milli", SHAPE_U64, METRIC(cpu_milli), "Thousandths of a core, on average since the last stored point."},
    {"cpu_limit", SHAPE_U64, offsetof(struct used_view, cpu_limit), "Thousandths of a core it may use."},
    {"memory", SHAPE_U64, METRIC(memory), "Bytes of memory, cached files included."},
    {"cache", SHAPE_U64, METRIC(cache), "Bytes of it that cache files and can be given back."},
    {"memory_limit", SHAPE_U64, offsetof(struct used_view, memory_limit), "Bytes of memory it may use."},
    {"disk", SHAPE_U64, METRIC(disk), "Bytes on its disk."},
    {"disk_limit", SHAPE_U64, offsetof(struct used_view, disk_limit), "Bytes it may have there."},
    {"pids", SHAPE_U64, METRIC(pids), "Processes and threads."},
    {"pids_limit", SHAPE_U64, offsetof(struct used_view, pids_limit), "Processes and threads it may have."},
    {"in_bytes", SHAPE_U64, METRIC(in_bytes), "Received over its network since its boot."},
    {"out_bytes", SHAPE_U64, METRIC(out_bytes), "Sent over its network since its boot."},
};
static SHAPE(used_shape, "SandboxUsage", "What a running sandbox uses.", used_fields);
static const struct shape_field usage_fields[] = {
    {"sandboxes", SHAPE_LIST, offsetof(struct usage_view, sandboxes), "Oldest first; only those that run.", SHAPE_ALWAYS, &used_shape},
};
static SHAPE(usage_shape, "Usage", "What the running sandboxes of your key use.", usage_fields);

struct usage_in {
    const char *sandbox;
    bool all_keys;
};
static const struct json_field usage_in_fields[] = {
    {"sandbox", JSON_FIELD_STR, offsetof(struct usage_in, sandbox), 1, ENGINE_NAME_MAX, false, "Only this one: its id, its name or the beginning of its id."},
    {"all_keys", JSON_FIELD_BOOL, offsetof(struct usage_in, all_keys), 0, 0, false, NATIVE_ALL_KEYS},
};
/* clang-format on */
static const struct surface_input usage_input = {SURFACE_INPUT(usage_in_fields, struct usage_in)};

struct adding {
    struct call *c;
    struct buf rows;
    const char *key;              /* NULL: all */
    char only[ENGINE_ID_MAX + 1]; /* "": all */
};

static void drop(void *state)
{
    buf_free(&((struct adding *)state)->rows);
}

static void add(void *arg, const char *id, const struct metric *m)
{
    struct adding *a = arg;
    const struct sandbox *s = engine_find(a->c->plane->engine, id);
    struct used_view v;

    if (s == NULL || (a->only[0] != '\0' && strcmp(a->only, id) != 0))
        return;
    v = (struct used_view){.id = id,
                           .key = s->key,
                           .name = s->name,
                           .cpu_limit = s->limits.cpu_milli,
                           .memory_limit = s->limits.memory,
                           .disk_limit = s->limits.disk,
                           .pids_limit = s->limits.pids,
                           .m = *m};
    shape_append(&a->rows, &used_shape, &v);
}

static void measured(void *arg, const struct err *e)
{
    struct adding *a = arg;
    struct call *c = a->c;

    if (!call_got(c, e))
        return;
    engine_last_metrics(c->ref.engine, a->key, add, a);
    call_reply_shape(c, &usage_shape, &(struct usage_view){shape_list(&a->rows)});
}

static void usage_get(struct call *c, const void *query)
{
    const struct usage_in *in = query;
    struct adding *a = call_state(c, sizeof(*a), drop);
    const struct sandbox *s = NULL;
    struct err e = {0};

    a->c = c;
    buf_init(&a->rows, USAGE_BYTES_MAX);
    if (native_all_keys(c, in->all_keys, &a->key, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (in->sandbox != NULL) {
        if (engine_resolve(ref_with(c->ref, in->sandbox), &s, &e) == 0 && s == NULL && in->all_keys)
            s = engine_find(c->plane->engine, in->sandbox);
        if (s == NULL && e.kind != ERR_CONFLICT)
            err_set(&e, ERR_NOT_FOUND, "no sandbox %.64s", in->sandbox);
        if (s == NULL) {
            call_fail(c, &e);
            return;
        }
        stpcpy(a->only, s->id);
    }
    call_expect(c, &call_pending, NULL);
    engine_measure_all(c->ref.engine, measured, a);
}

/* ---- the disk ---- */

/* clang-format off */
static const struct shape_field disk_fields[] = {
    {"total", SHAPE_U64, offsetof(struct engine_stats, disk_total), "Bytes that all disks of sandboxes, snapshots and templates may grow to together."},
    {"used", SHAPE_U64, offsetof(struct engine_stats, disk_used), "Bytes they use."},
    {"free", SHAPE_U64, offsetof(struct engine_stats, disk_free), "Bytes that can still be written: the reserve, and what the host can give."},
    {"allocated", SHAPE_U64, offsetof(struct engine_stats, disk_allocated), "Bytes taken on the host, used or reserved."},
};
/* clang-format on */
static SHAPE(disk_shape, "Disk", "The disk of this server.", disk_fields);

static void disk_told(void *arg, const struct engine_stats *s)
{
    struct call *c = arg;

    if (call_told(c))
        call_reply_shape(c, &disk_shape, s);
}

static void disk_get(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    engine_stat(c->plane->engine, disk_told, c);
}

/* clang-format off */
const struct surface_row surface_usage[] = {
    {{"GET", "/v1/usage"}, SCOPE_READ, usage_get, "getUsage",
     "Shows what the running sandboxes of your key use now.",
     .query = &usage_input, .status = 200, .answers = {&usage_shape}},
    {{"GET", "/v1/disk"}, SCOPE_READ, disk_get, "getDisk",
     "Shows how much disk space this server has and uses.",
     .status = 200, .answers = {&disk_shape}},
    {.op = NULL},
};
/* clang-format on */

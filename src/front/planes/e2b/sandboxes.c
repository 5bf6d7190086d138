/* sandboxes.c - E2B's sandboxes: list, get, connect, kill, lifetime. */
#include <string.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "front/plane/maps.h"
#include "front/plane/query.h"
#include "front/planes/e2b/internal.h"
#include "http/http.h"
#include "mem/mem.h"

#define TIMEOUT_V2_S 300
#define TIMEOUT_MAX_S (1ll << 40)
#define REFRESH_MIN_S 15
#define LIST_LIMIT_MAX 100u /* on one page, and when nothing is said */
#define LIST_BYTES_MAX (LIST_LIMIT_MAX * (ENGINE_METADATA_MAX + (8u << 10)))

/* ---- list ---- */

struct list_in {
    const char *metadata, *state, *order, *started_after, *template, *token;
    uint64_t limit;
};

/* clang-format off */
static const struct json_field list_fields[] = {
    {"metadata", JSON_FIELD_STR, offsetof(struct list_in, metadata), 0, 0, false, ""},
    {"state", JSON_FIELD_STR, offsetof(struct list_in, state), 0, 0, false, ""},
    {"order", JSON_FIELD_STR, offsetof(struct list_in, order), 0, 0, false, ""},
    {"startedAfter", JSON_FIELD_STR, offsetof(struct list_in, started_after), 0, 0, false, ""},
    {"template", JSON_FIELD_STR, offsetof(struct list_in, template), 0, 0, false, ""},
    {"limit", JSON_FIELD_U64, offsetof(struct list_in, limit), 1, 0, false, ""},
    {"nextToken", JSON_FIELD_STR, offsetof(struct list_in, token), 0, 0, false, ""},
};
static const struct json_field list_v1_fields[] = {
    {"metadata", JSON_FIELD_STR, offsetof(struct list_in, metadata), 0, 0, false, ""},
};
/* clang-format on */

static void list_defaults(void *in, const struct config *c)
{
    (void)c;
    ((struct list_in *)in)->limit = LIST_LIMIT_MAX;
}

static void list_v1_defaults(void *in, const struct config *c)
{
    list_defaults(in, c);
    ((struct list_in *)in)->state = "running";
}

static const struct surface_input list_input = {SURFACE_INPUT(list_fields, struct list_in),
                                                .defaults = list_defaults};
static const struct surface_input list_v1_input = {SURFACE_INPUT(list_v1_fields, struct list_in),
                                                   .defaults = list_v1_defaults};

/* "running", "paused" or both with a comma; a stopped or damaged one is paused to E2B. */
static int decode_states(const char *text, unsigned *ret, struct err *e)
{
    static const struct {
        const char *name;
        unsigned bits;
    } states[] = {
        {"running", SANDBOX_BIT(SANDBOX_RUNNING)},
        {"paused",
         SANDBOX_BIT(SANDBOX_PAUSED) | SANDBOX_BIT(SANDBOX_STOPPED) | SANDBOX_BIT(SANDBOX_DAMAGED)},
    };

    *ret = 0;
    while (text != NULL && *text != '\0') {
        size_t n = strcspn(text, ","), i = 0;

        while (i < ARRAY_LEN(states) &&
               (strlen(states[i].name) != n || strncmp(states[i].name, text, n) != 0))
            i++;
        if (i == ARRAY_LEN(states))
            return err_set(e, ERR_INVALID, "state: expected running or paused");
        *ret |= states[i].bits;
        text += n;
        text += *text == ',';
    }
    return 0;
}

/* The query was decoded once; what is left is a query again, whose names and
 * values are encoded twice. In place: `pairs` points into `text`. */
static int decode_metadata(char *text, const char **pairs, struct err *e)
{
    char *value, *name;
    size_t n = 0;

    while ((value = strsep(&text, "&")) != NULL) {
        if (*value == '\0')
            continue;
        if (n == MAPS_METADATA_MAX)
            return err_set(e, ERR_INVALID, "metadata: more than %u pairs", MAPS_METADATA_MAX);
        name = strsep(&value, "=");
        if (value == NULL)
            return err_set(e, ERR_INVALID, "metadata: expected name=value");
        if (query_unescape(name, e) < 0 || query_unescape(name, e) < 0 ||
            query_unescape(value, e) < 0 || query_unescape(value, e) < 0)
            return err_wrap(e, "metadata");
        pairs[2 * n] = name;
        pairs[2 * n + 1] = value;
        n++;
    }
    pairs[2 * n] = NULL;
    return 0;
}

static int decode_list(const struct list_in *in, struct list_opts *o, struct err *e)
{
    if (in->order != NULL && strcmp(in->order, "asc") != 0 && strcmp(in->order, "desc") != 0)
        return err_set(e, ERR_INVALID, "order: expected asc or desc");
    if (in->started_after != NULL && clock_read(in->started_after, &o->created_from_ms) < 0)
        return err_set(e, ERR_INVALID, "startedAfter: expected a time as 2026-01-31T12:00:00Z");
    o->newest_first = in->order == NULL || strcmp(in->order, "desc") == 0;
    o->template = in->template;
    o->after = in->token != NULL && *in->token != '\0' ? in->token : NULL;
    o->limit = in->limit < LIST_LIMIT_MAX ? (size_t)in->limit : LIST_LIMIT_MAX;
    return decode_states(in->state, &o->states, e);
}

static void add_listed(void *arg, const struct sandbox *s)
{
    e2b_add_listed(arg, s);
}

static int list(struct call *c, const struct list_in *in, struct buf *rows, char **next,
                struct err *e)
{
    autofree char *metadata = mem_text(in->metadata != NULL ? in->metadata : "");
    const char *pairs[2 * MAPS_METADATA_MAX + 1];
    struct list_opts o = {.key = c->ref.key, .metadata = pairs};

    if (decode_list(in, &o, e) < 0 || decode_metadata(metadata, pairs, e) < 0)
        return -1;
    return engine_list(c->plane->engine, &o, add_listed, rows, next, e);
}

struct census {
    const char *key;
    unsigned running;
};

static void take_census(void *arg, const struct sandbox *s)
{
    struct census *n = arg;

    n->running += s->state == SANDBOX_RUNNING && strcmp(s->key, n->key) == 0;
}

static void say_total(struct call *c)
{
    struct census n = {.key = c->ref.key};
    char text[16];

    engine_each(c->plane->engine, take_census, &n);
    str_fmt(text, sizeof(text), "%u", n.running);
    http_reply_header(c->r, "X-Total-Running", text);
}

static void sandbox_list(struct call *c, const void *in)
{
    autobuf struct buf rows = BUF_INIT(LIST_BYTES_MAX);
    autofree char *next = NULL;
    struct err e;

    if (list(c, in, &rows, &next, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    if (next != NULL)
        http_reply_header(c->r, "X-Next-Token", next);
    say_total(c);
    e2b_reply_list(c, 200, &rows);
}

/* ---- one of them ---- */

static void sandbox_get(struct call *c, const void *in)
{
    const struct sandbox *s = e2b_named(c);

    (void)in;
    if (s != NULL)
        e2b_reply_detail(c, s);
}

static void killed(void *arg, const struct err *e)
{
    struct call *c = arg;

    if (!call_told(c))
        return;
    if (e == NULL)
        call_reply_none(c);
    else if (e->kind == ERR_NOT_FOUND)
        e2b_not_found(c, "sandbox", call_param(c, 0));
    else
        call_fail(c, e);
}

static void sandbox_kill(struct call *c, const void *in)
{
    (void)in;
    call_expect(c, &call_pending, NULL);
    engine_delete(c->ref, killed, c);
}

/* ---- how long ---- */

int e2b_check_timeout(int64_t seconds, struct err *e)
{
    if (seconds <= 0)
        return err_set(e, ERR_INVALID, "Timeout must be greater than 0");
    if (seconds > TIMEOUT_MAX_S)
        return err_set(e, ERR_INVALID, "Timeout must be at most %lld", TIMEOUT_MAX_S);
    return 0;
}

struct timeout_in {
    int64_t seconds;
};
struct connect_in {
    int64_t seconds;
    bool memory;
};

/* clang-format off */
static const struct json_field timeout_fields[] = {
    {"timeout", JSON_FIELD_I64, offsetof(struct timeout_in, seconds), 0, 0, true, ""},
};
#define CONNECT_FIELDS(required) \
    {"timeout", JSON_FIELD_I64, offsetof(struct connect_in, seconds), 0, 0, required, ""}, \
    {"memory", JSON_FIELD_BOOL, offsetof(struct connect_in, memory), 0, 0, false, ""}
static const struct json_field connect_fields[] = {CONNECT_FIELDS(true)};
static const struct json_field connect_v2_fields[] = {CONNECT_FIELDS(false)};
static const struct json_field refresh_fields[] = {
    {"duration", JSON_FIELD_I64, offsetof(struct timeout_in, seconds), 0, 0, false, ""},
};
/* clang-format on */

static void connect_defaults(void *in, const struct config *c)
{
    (void)c;
    *(struct connect_in *)in = (struct connect_in){.seconds = TIMEOUT_V2_S, .memory = true};
}

static const struct surface_input timeout_input = {
    SURFACE_INPUT(timeout_fields, struct timeout_in)};
static const struct surface_input connect_input = {SURFACE_INPUT(connect_fields, struct connect_in),
                                                   .defaults = connect_defaults};
static const struct surface_input connect_v2_input = {
    SURFACE_INPUT(connect_v2_fields, struct connect_in), .defaults = connect_defaults};
static const struct surface_input refresh_input = {
    SURFACE_INPUT(refresh_fields, struct timeout_in)};

/* What is stopped is paused to E2B, and that has no end; to the engine it may have one. */
static int check_has_end(const struct sandbox *s, struct err *e)
{
    if (s->state != SANDBOX_STOPPED)
        return 0;
    return err_set(e, ERR_CONFLICT, "sandbox %s is paused and has no timeout; resume it with one",
                   s->id);
}

static void sandbox_timeout(struct call *c, const void *in)
{
    int64_t seconds = ((const struct timeout_in *)in)->seconds;
    const struct sandbox *s = e2b_named(c);
    /* 0 is at once, which to the engine is the shortest time there is. */
    uint64_t ms = seconds <= 0 ? 1 : (uint64_t)seconds * 1000;
    struct err e;

    if (s == NULL)
        return;
    if ((seconds > 0 && e2b_check_timeout(seconds, &e) < 0) || check_has_end(s, &e) < 0 ||
        engine_set_timeout(c->ref, ms, &e) < 0)
        call_fail(c, &e);
    else
        call_reply_none(c);
}

static void sandbox_refresh(struct call *c, const void *in)
{
    int64_t seconds = ((const struct timeout_in *)in)->seconds;
    const struct sandbox *s = e2b_named(c);
    struct err e;

    if (s == NULL)
        return;
    if (seconds < REFRESH_MIN_S)
        seconds = REFRESH_MIN_S;
    if (e2b_check_timeout(seconds, &e) < 0 || check_has_end(s, &e) < 0 ||
        engine_extend(c->ref, (uint64_t)seconds * 1000, &e) < 0)
        call_fail(c, &e);
    else
        call_reply_none(c);
}

/* ---- connect ---- */

struct connect {
    struct call *c;
    bool ran;
    uint64_t changed_ms; /* then */
};

static void connected(void *arg, const struct sandbox *s, const struct err *e)
{
    struct connect *k = arg;

    if (!call_told(k->c))
        return;
    if (s == NULL)
        call_fail(k->c, e);
    else
        e2b_reply_sandbox(k->c, k->ran && s->changed_ms == k->changed_ms ? 200 : 201, s);
}

static void sandbox_connect(struct call *c, const void *in)
{
    const struct connect_in *i = in;
    int64_t seconds = i->seconds;
    struct connect *k = call_state(c, sizeof(*k), NULL);
    const struct sandbox *s = k == NULL ? NULL : e2b_named(c);
    struct err e;

    if (s == NULL)
        return;
    if (e2b_check_timeout(seconds, &e) < 0) {
        call_fail(c, &e);
        return;
    }
    *k = (struct connect){.c = c, .ran = s->state == SANDBOX_RUNNING, .changed_ms = s->changed_ms};
    call_expect(c, &call_pending, NULL);
    engine_connect(c->ref, i->memory, (uint64_t)seconds * 1000, connected, k);
}

/* clang-format off */
const struct surface_row e2b_sandboxes[] = {
    {{"GET",    "/v2/sandboxes"}, SCOPE_READ, sandbox_list, "listSandboxesV2",
     "Lists sandboxes.", .query = &list_input, .status = 200, .answers = {&e2b_listed_shape}},
    {{"GET",    "/sandboxes"}, SCOPE_READ, sandbox_list, "listSandboxes",
     "Lists those that run.", .query = &list_v1_input, .status = 200, .answers = {&e2b_listed_shape}},
    {{"GET",    "/sandboxes/{id}"}, SCOPE_READ, sandbox_get, "getSandbox",
     "Shows one; changes nothing about it.", .status = 200, .answers = {&e2b_detail_shape}},
    {{"DELETE", "/sandboxes/{id}"}, SCOPE_RUN, sandbox_kill, "killSandbox",
     "Ends it.", .status = 204},
    {{"POST",   "/v2/sandboxes/{id}/connect"}, SCOPE_RUN, sandbox_connect, "connectSandboxV2",
     "Resumes it if it is paused, and gives it more time.", .body = &connect_v2_input, .status = 200,
     .answers = {&e2b_sandbox_shape}},
    {{"POST",   "/sandboxes/{id}/connect"}, SCOPE_RUN, sandbox_connect, "connectSandbox",
     "Resumes it if it is paused, and gives it more time.", .body = &connect_input, .status = 200,
     .answers = {&e2b_sandbox_shape}},
    {{"POST",   "/sandboxes/{id}/timeout"}, SCOPE_RUN, sandbox_timeout, "setTimeout",
     "How long it lives from now on.", .body = &timeout_input, .status = 204},
    {{"POST",   "/sandboxes/{id}/refreshes"}, SCOPE_RUN, sandbox_refresh, "refreshSandbox",
     "Gives it more time.", .body = &refresh_input, .status = 204},
    {.op = NULL},
};
/* clang-format on */

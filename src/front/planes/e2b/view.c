/* view.c - a sandbox as E2B's clients know it. */
#include <string.h>

#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/planes/e2b/internal.h"
#include "front/planes/e2b/network.h"
#include "json/read.h"
#include "json/write.h"

#define VIEW_NEVER_MS 253402300799000ull /* the last second of 9999: endAt must be a time */
#define VIEW_MEGABYTE (1ull << 20)

struct token_claims e2b_claims(const struct sandbox *s, enum token_kind kind)
{
    struct token_claims c = {.kind = kind};

    str_fmt(c.key, sizeof(c.key), "%s", s->key);
    str_fmt(c.subject, sizeof(c.subject), "%s", s->id);
    return c;
}

bool e2b_has_owner(const struct e2b *p, const struct sandbox *s)
{
    struct auth_info k;
    struct err e;

    return auth_get(p->o.auth, s->key, &k, &e) == 0;
}

bool e2b_opens(const struct e2b *p, const struct sandbox *s, enum token_kind kind,
               const char *presented)
{
    return token_opens(p->o.tokens, kind, s->id, presented) && e2b_has_owner(p, s);
}

/* ---- as create, connect and resume answer ---- */

struct sandbox_view {
    const char *id, *template, *client, *version, *token, *traffic, *domain, *alias;
};

/* clang-format off */
static const struct shape_field sandbox_fields[] = {
    {"sandboxID", SHAPE_STR, offsetof(struct sandbox_view, id), "Its id."},
    {"templateID", SHAPE_STR, offsetof(struct sandbox_view, template), "What it started as."},
    {"alias", SHAPE_STR, offsetof(struct sandbox_view, alias), "The template's name."},
    {"clientID", SHAPE_STR, offsetof(struct sandbox_view, client), "Of no meaning."},
    {"envdVersion", SHAPE_STR, offsetof(struct sandbox_view, version), "What the data plane can do."},
    {"envdAccessToken", SHAPE_STR, offsetof(struct sandbox_view, token), "Opens the data plane.", SHAPE_OMITTED},
    {"trafficAccessToken", SHAPE_STR, offsetof(struct sandbox_view, traffic), "Opens its ports.", SHAPE_OMITTED},
    {"domain", SHAPE_STR, offsetof(struct sandbox_view, domain), "Ports are <port>-<id>.<domain>."},
};
SHAPE(e2b_sandbox_shape, "Sandbox", "A sandbox that runs.", sandbox_fields);
/* clang-format on */

/* NULL: it cannot have one, as the log says. */
static const char *make_token(const struct e2b *p, const struct sandbox *s, enum token_kind kind,
                              char out[TOKEN_SIZE])
{
    struct token_claims claims = e2b_claims(s, kind);
    struct err e;

    if (token_make(p->o.tokens, &claims, out, &e) == 0)
        return out;
    log_error("sandbox %s: %s", s->id, e.msg);
    return NULL;
}

static const char *token_of(const struct e2b *p, const struct sandbox *s, char out[TOKEN_SIZE])
{
    return e2b_options_of(s).open ? NULL : make_token(p, s, TOKEN_SANDBOX, out);
}

void e2b_put_sandbox(struct json_w *w, const struct e2b *p, const struct sandbox *s)
{
    char token[TOKEN_SIZE], traffic[TOKEN_SIZE];
    struct sandbox_view v = {.id = s->id,
                             .template = s->template,
                             .alias = s->template,
                             .client = E2B_CLIENT_ID,
                             .version = E2B_ENVD_VERSION,
                             .token = token_of(p, s, token),
                             .domain = p->domain};

    if (e2b_options_of(s).private)
        v.traffic = make_token(p, s, TOKEN_PORT, traffic);
    shape_write(w, &e2b_sandbox_shape, &v);
}

void e2b_reply_sandbox(struct call *c, int status, const struct sandbox *s)
{
    autobuf struct buf body = BUF_INIT(SURFACE_BODY_MAX);
    struct json_w w;

    jw_init(&w, &body);
    e2b_put_sandbox(&w, e2b_of(c), s);
    call_reply(c, status, "application/json", &body);
}

void e2b_reply_list(struct call *c, int status, const struct buf *rows)
{
    autobuf struct buf body = BUF_INIT(rows->max + 2);

    buf_addc(&body, '[');
    buf_add(&body, buf_data(rows), rows->len);
    buf_addc(&body, ']');
    body.failed = body.failed || rows->failed;
    call_reply(c, status, "application/json", &body);
}

/* ---- as lists and details show it ---- */

struct lifecycle_view {
    const char *on_timeout;
    bool auto_resume;
};

struct listed_view {
    const char *id, *template, *client, *version, *state, *metadata, *token, *domain;
    uint64_t started_ms, ends_ms, cpus, memory_mb, disk_mb;
    bool internet;
    const char *network; /* JSON */
    const struct lifecycle_view *lifecycle;
};

/* clang-format off */
static const struct shape_field lifecycle_fields[] = {
    {"onTimeout", SHAPE_STR, offsetof(struct lifecycle_view, on_timeout), "kill or pause."},
    {"autoResume", SHAPE_BOOL, offsetof(struct lifecycle_view, auto_resume), "Whether traffic wakes it."},
};
static SHAPE(lifecycle_shape, "Lifecycle", "How it ends.", lifecycle_fields);

#define LISTED_FIELDS \
    {"sandboxID", SHAPE_STR, offsetof(struct listed_view, id), "Its id."}, \
    {"templateID", SHAPE_STR, offsetof(struct listed_view, template), "What it started as."}, \
    {"alias", SHAPE_STR, offsetof(struct listed_view, template), "The template's name."}, \
    {"clientID", SHAPE_STR, offsetof(struct listed_view, client), "Of no meaning."}, \
    {"startedAt", SHAPE_TIME, offsetof(struct listed_view, started_ms), "When it was made."}, \
    {"endAt", SHAPE_TIME, offsetof(struct listed_view, ends_ms), "When its time is over."}, \
    {"state", SHAPE_STR, offsetof(struct listed_view, state), "running or paused."}, \
    {"cpuCount", SHAPE_U64, offsetof(struct listed_view, cpus), "Cores."}, \
    {"memoryMB", SHAPE_U64, offsetof(struct listed_view, memory_mb), "Of memory."}, \
    {"diskSizeMB", SHAPE_U64, offsetof(struct listed_view, disk_mb), "It may write to its disk."}, \
    {"envdVersion", SHAPE_STR, offsetof(struct listed_view, version), "What the data plane can do."}, \
    {"metadata", SHAPE_MAP, offsetof(struct listed_view, metadata), "As given."}

static const struct shape_field listed_fields[] = {LISTED_FIELDS};
SHAPE(e2b_listed_shape, "ListedSandbox", "A sandbox in a list.", listed_fields);

static const struct shape_field detail_fields[] = {
    LISTED_FIELDS,
    {"envdAccessToken", SHAPE_STR, offsetof(struct listed_view, token), "Opens the data plane.", SHAPE_OMITTED},
    {"domain", SHAPE_STR, offsetof(struct listed_view, domain), "Ports are <port>-<id>.<domain>."},
    {"allowInternetAccess", SHAPE_BOOL, offsetof(struct listed_view, internet), "Whether it may reach more than is allowed."},
    {"network", SHAPE_ANY, offsetof(struct listed_view, network), "What it may reach, and who may reach it."},
    {"lifecycle", SHAPE_OBJECT, offsetof(struct listed_view, lifecycle), "How it ends.", SHAPE_ALWAYS, &lifecycle_shape},
};
SHAPE(e2b_detail_shape, "SandboxDetail", "Everything about a sandbox.", detail_fields);
/* clang-format on */

static struct listed_view listed_of(const struct sandbox *s)
{
    return (struct listed_view){
        .id = s->id,
        .template = s->template,
        .client = E2B_CLIENT_ID,
        .version = E2B_ENVD_VERSION,
        .state = s->state == SANDBOX_RUNNING ? "running" : "paused",
        .metadata = s->metadata,
        .started_ms = s->created_ms,
        .ends_ms = s->state != SANDBOX_RUNNING ? s->changed_ms
                   : s->ends_ms != 0           ? s->ends_ms
                                               : VIEW_NEVER_MS,
        .cpus = (s->limits.cpu_milli + 999) / 1000,
        .memory_mb = s->limits.memory / VIEW_MEGABYTE,
        .disk_mb = s->limits.disk / VIEW_MEGABYTE,
    };
}

void e2b_add_listed(struct buf *rows, const struct sandbox *s)
{
    struct listed_view v = listed_of(s);

    shape_append(rows, &e2b_listed_shape, &v);
}

void e2b_reply_detail(struct call *c, const struct sandbox *s)
{
    const struct e2b *p = e2b_of(c);
    struct listed_view v = listed_of(s);
    struct lifecycle_view life = {.on_timeout =
                                      s->on_timeout == SANDBOX_END_DELETE ? "kill" : "pause",
                                  .auto_resume = s->auto_resume};
    autobuf struct buf network = BUF_INIT(SURFACE_BODY_MAX);
    char token[TOKEN_SIZE];
    struct json_w w;

    jw_init(&w, &network);
    network_put(&w, s);
    v.network = buf_cstr(&network);
    v.token = token_of(p, s, token);
    v.domain = p->domain;
    v.internet = !network_is_closed(s);
    v.lifecycle = &life;
    call_reply_shape(c, &e2b_detail_shape, &v);
}

/* ---- options of a create that the engine does not know, stored with the sandbox as JSON ---- */

void e2b_options_write(const struct e2b_options *o, struct buf *out)
{
    struct json_w w;

    jw_init(&w, out);
    jw_open(&w);
    jw_kbool(&w, "open", o->open);
    jw_kbool(&w, "private", o->private);
    jw_kstr(&w, "mask_host", o->mask_host);
    jw_close(&w);
}

struct e2b_options e2b_options_of(const struct sandbox *s)
{
    struct e2b_options o = {0};
    autojson json_t *doc = NULL;
    const char *host;
    struct err ignored;

    if (*s->plane == '\0' || json_parse(s->plane, strlen(s->plane), &doc, &ignored) < 0)
        return o;
    o.open = json_is_true(json_object_get(doc, "open"));
    o.private = json_is_true(json_object_get(doc, "private"));
    host = json_string_value(json_object_get(doc, "mask_host"));
    if (host != NULL && strlen(host) < sizeof(o.mask_host))
        strcpy(o.mask_host, host);
    return o;
}

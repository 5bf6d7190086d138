/* cloudflare.c - how the Cloudflare plane speaks: ids before keys, errors as {"error","code"}. */
#include "front/planes/cloudflare/cloudflare.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/cloudflare/internal.h"
#include "http/http.h"
#include "mem/mem.h"

#define ID_MAX 128u
#define DOMAIN_MAX 254u
#define BEARER_MAX (AUTH_PRESENTED_MAX + 8u)

static const struct surface_row *const surfaces[] = {
#define X(name) cloudflare_##name,
    SURFACES(X)
#undef X
};

/* ---- authorization ---- */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int check_id(const struct call *c, struct err *e)
{
    const char *id = call_param(c, 0);
    size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz234567");

    if (!begins(c->row->route.path, CLOUDFLARE_SANDBOX) || (n > 0 && n <= ID_MAX && id[n] == '\0'))
        return 0;
    return err_set(e, ERR_INVALID, "Invalid sandbox ID format");
}

/* The scheme must be there; on the paths of the pool exactly as written here. A browser's
 * WebSocket has no headers of its own. */
static const char *bearer(const struct call *c, char room[BEARER_MAX])
{
    static const char scheme[] = "Bearer ";
    const char *value = http_header(c->r, "Authorization");
    struct err ignored;
    bool exact = begins(c->row->route.path, CLOUDFLARE_POOL);
    size_t n = sizeof(scheme) - 1;

    if (value == NULL && c->row->status == 101 &&
        route_query(http_head(c->r)->query.p, "authorization", room, BEARER_MAX, &ignored) == 1)
        value = room;
    if (value == NULL || (exact ? strncmp : strncasecmp)(value, scheme, n) != 0)
        return NULL;
    return value + n;
}

static int authorize(struct call *c, struct err *e)
{
    char room[BEARER_MAX];

    if (check_id(c, e) < 0)
        return -1;
    if (auth_key(c->plane->auth, bearer(c, room), &c->key, e) < 0)
        return -1;
    return auth_allows(c->plane->auth, c->key, c->row->scope, e);
}

/* ---- errors ---- */

/* What a kind is called. Kinds that are not here are failures of what the row does,
 * and the row has the word for them. */
/* clang-format off */
static const struct word {
    int status;
    const char *code;
} words[ERR_KIND_COUNT] = {
    [ERR_INVALID]      = {400, "invalid_request"},
    [ERR_UNAUTHORIZED] = {401, "unauthorized"},
    [ERR_DENIED]       = {403, "invalid_request"},
    [ERR_METHOD]       = {405, "invalid_request"},
    [ERR_TOO_LARGE]    = {413, "payload_too_large"},
    [ERR_LIMIT]        = {503, "capacity_exceeded"},
    [ERR_UNAVAILABLE]  = {503, "capacity_exceeded"},
};
/* clang-format on */

/* What a path or an archive turned out to be, inside: the request was well formed. */
static bool is_found_inside(const struct call *c, const struct err *e)
{
    return (e->kind == ERR_INVALID || e->kind == ERR_DENIED) && c->state != NULL &&
           c->row != NULL && (c->row->flags & (SURFACE_RAW_BODY | SURFACE_BYTES)) != 0;
}

static struct word word_of(const struct call *c, const struct err *e)
{
    const struct surface_row *row = c->row;

    if (words[e->kind].code != NULL && !is_found_inside(c, e))
        return words[e->kind];
    if (e->kind == ERR_NOT_FOUND && (row == NULL || row->missing != NULL))
        return (struct word){404, row == NULL ? "not_found" : row->missing};
    return (struct word){502, row != NULL && row->failure != NULL ? row->failure : "pool_error"};
}

static int status(const struct call *c, const struct err *e)
{
    return word_of(c, e).status;
}

struct error_view {
    const char *error, *code;
};
static const struct shape_field error_fields[] = {
    {"error", SHAPE_STR, offsetof(struct error_view, error), "Message for people."},
    {"code", SHAPE_STR, offsetof(struct error_view, code), "Error code for programs."},
};
static SHAPE(error_shape, "CloudflareError", "An error.", error_fields);

static void write_error(struct call *c, const struct err *e, struct buf *out)
{
    struct error_view v = {e->kind == ERR_INTERNAL ? "internal error" : e->msg, word_of(c, e).code};
    struct json_w w;

    jw_init(&w, out);
    shape_write(&w, &error_shape, &v);
}

/* ---- what most calls answer ---- */

struct ok_view {
    bool ok;
};
static const struct shape_field ok_fields[] = {
    {"ok", SHAPE_BOOL, offsetof(struct ok_view, ok), "Success."},
};
SHAPE(cloudflare_ok_shape, "CloudflareOk", "Success.", ok_fields);

void cloudflare_reply_ok(struct call *c)
{
    call_reply_shape(c, &cloudflare_ok_shape, &(struct ok_view){true});
}

void cloudflare_reply_list(struct call *c, const struct buf *rows, const struct err *e)
{
    autobuf struct buf list = BUF_INIT(rows->len + 2);

    if (e != NULL) {
        call_fail(c, e);
        return;
    }
    buf_addc(&list, '[');
    buf_add(&list, buf_data(rows), rows->len);
    buf_addc(&list, ']');
    list.failed = list.failed || rows->failed;
    call_reply(c, c->row->status, "application/json", &list);
}

/* ---- the plane ---- */

static const struct plane_manner manner = {
    .surfaces = surfaces,
    .nsurfaces = ARRAY_LEN(surfaces),
    .authorize = authorize,
    .resolve = cloudflare_resolve_name,
    .write_error = write_error,
    .status = status,
    .error = &error_shape,
    .lenient = true,
};

struct cloudflare {
    struct plane plane;
    struct cloudflare_issued issued;
    char domain[DOMAIN_MAX];
};

struct cloudflare_issued *cloudflare_issued(const struct call *c)
{
    return &CONTAINER_OF(c->plane, struct cloudflare, plane)->issued;
}

const char *cloudflare_domain(const struct call *c)
{
    return CONTAINER_OF(c->plane, struct cloudflare, plane)->domain;
}

/* As E2B's clients assume: a domain with a port is served by us, one without by a proxy that has
 * its certificate. */
const char *cloudflare_scheme(const struct call *c)
{
    const char *domain = CONTAINER_OF(c->plane, struct cloudflare, plane)->domain;

    return strchr(domain, ':') != NULL || strcmp(domain, "localhost") == 0 ? "http" : "https";
}

static int cloudflare_make(const struct plane_opts *o, struct plane **ret, struct err *e)
{
    const char *domain = o->config->domain;
    struct cloudflare *p = mem_zeroed(1, sizeof(*p));

    if (strlen(domain) >= sizeof(p->domain)) {
        free(p);
        return err_set(e, ERR_INVALID, "domain: at most %u bytes", DOMAIN_MAX - 1);
    }
    if (*domain != '\0')
        str_fmt(p->domain, sizeof(p->domain), "%s", domain);
    else
        str_fmt(p->domain, sizeof(p->domain), "localhost:%u", o->port);
    plane_init(&p->plane, &manner, o->engine, o->auth, o->config);
    *ret = &p->plane;
    return 0;
}

static void cloudflare_free(struct plane *p)
{
    plane_free(p);
    free(CONTAINER_OF(p, struct cloudflare, plane));
}

static const struct plane_door doors[] = {{"/v1/sandbox"}, {"/v1/pool"}, {0}};

const struct plane_kind cloudflare_kind = {
    .name = "Cloudflare's API",
    .doors = doors,
    .documented = true,
    .make = cloudflare_make,
    .free = cloudflare_free,
};

/* e2b.c - see e2b.h: the control plane's manner, and what its surfaces share. */
#include "front/planes/e2b/e2b.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/e2b/internal.h"
#include "http/http.h"
#include "mem/mem.h"
#include "json/write.h"

static const struct surface_row *const api_surfaces[] = {
#define X(name) e2b_##name,
    E2B_API_SURFACES(X)
#undef X
};

/* X-API-Key is what clients send; some tools send Authorization. */
static int authorize(struct call *c, struct err *e)
{
    const char *presented = http_header(c->r, "X-API-Key");

    if (presented == NULL)
        presented = http_header(c->r, "Authorization");
    if (auth_key(c->plane->auth, presented, &c->key, e) < 0)
        return -1;
    return auth_allows(c->plane->auth, c->key, c->row->scope, e);
}

/* The id in a path: what follows a dash is the client's, and ignored. Other paths name something
 * else, and their handlers take that from the path. */
static int resolve(struct call *c, struct err *e)
{
    const char *given = call_param(c, 0);
    size_t n = strcspn(given, "-");
    char id[ENGINE_ID_MAX + 1];

    str_fmt(id, sizeof(id), "%.*s", n > ENGINE_ID_MAX ? 0 : (int)n, given);
    call_aim(c, NULL, id);
    if (c->row->body != NULL && strstr(c->row->route.path, "/sandboxes/{") != NULL &&
        engine_get(c->ref) == NULL) /* no body is read for it */
        return err_set(e, ERR_NOT_FOUND, "sandbox \"%.64s\" not found", given);
    return 0;
}

/* A sandbox that has ended is one that is not there. */
static int status_of(const struct call *c, const struct err *e)
{
    (void)c;
    return err_http(e->kind == ERR_GONE ? ERR_NOT_FOUND : e->kind);
}

/* Clients branch on `code`, which must be there and be the status. */
void e2b_write_error(int status, const struct err *e, struct buf *out)
{
    struct json_w w;

    jw_init(&w, out);
    jw_open(&w);
    jw_ku64(&w, "code", (uint64_t)status);
    jw_kstr(&w, "message", e->kind == ERR_INTERNAL ? "internal error" : e->msg);
    jw_close(&w);
}

static void write_error(struct call *c, const struct err *e, struct buf *out)
{
    e2b_write_error(status_of(c, e), e, out);
}

static const struct plane_manner api_manner = {
    .surfaces = api_surfaces,
    .nsurfaces = ARRAY_LEN(api_surfaces),
    .authorize = authorize,
    .resolve = resolve,
    .write_error = write_error,
    .status = status_of,
    .lenient = true,
};

static int set_domain(struct e2b *p, struct err *e)
{
    const char *domain = p->o.config->domain;

    if (strlen(domain) >= sizeof(p->domain))
        return err_set(e, ERR_INVALID, "domain: at most %d bytes", E2B_DOMAIN_MAX - 1);
    if (*domain != '\0')
        str_fmt(p->domain, sizeof(p->domain), "%s", domain);
    else
        str_fmt(p->domain, sizeof(p->domain), "localhost:%u", p->o.port);
    return 0;
}

static int e2b_make(const struct plane_opts *o, struct plane **ret, struct err *e)
{
    struct e2b *p = mem_zeroed(1, sizeof(*p));

    p->o = *o;
    if (set_domain(p, e) < 0) {
        free(p);
        return -1;
    }
    plane_init(&p->api, &api_manner, o->engine, o->auth, o->config);
    e2b_data_init(p);
    *ret = &p->api;
    return 0;
}

static void e2b_free(struct plane *api)
{
    struct e2b *p = CONTAINER_OF(api, struct e2b, api);

    e2b_data_free(p);
    e2b_pollers_free(p);
    plane_free(api);
    free(p);
}

/* A signed URL says by its signature alone whose file it means. */
static void handle_signed(struct plane *p, struct http_req *r)
{
    e2b_data(p, r, NULL);
}

/* clang-format off */
static const struct plane_door doors[] = {
    {"/v2"}, {"/v3"}, {"/sandboxes"}, {"/snapshots"}, {"/templates"}, {"/volumes"}, {"/secrets"}, {"/teams"},
    {"/files", handle_signed},
    {0},
};
/* clang-format on */

const struct plane_kind e2b_kind = {
    .name = "E2B's API",
    .doors = doors,
    .make = e2b_make,
    .free = e2b_free,
};

/* ---- what surfaces share ---- */

void e2b_not_found(struct call *c, const char *what, const char *name)
{
    struct err e;

    err_set(&e, ERR_NOT_FOUND, "%s \"%.64s\" not found", what, name);
    call_fail(c, &e);
}

const struct sandbox *e2b_named(struct call *c)
{
    const struct sandbox *s = engine_get(c->ref);

    if (s == NULL)
        e2b_not_found(c, "sandbox", call_param(c, 0));
    return s;
}

/* ---- ports: who may reach them, and the Host the server inside sees ---- */

#define PORT_MARK "${PORT}"

/* The mask with the port in place of its mark. */
static void mask(const char *text, unsigned port, char out[E2B_HOST_MAX])
{
    const char *mark = strstr(text, PORT_MARK);

    if (mark == NULL)
        str_fmt(out, E2B_HOST_MAX, "%s", text);
    else
        str_fmt(out, E2B_HOST_MAX, "%.*s%u%s", (int)(mark - text), text, port,
                mark + strlen(PORT_MARK));
}

bool e2b_admit(void *plane, struct http_req *r, const struct sandbox *s, unsigned port,
               char host[E2B_HOST_MAX], const char **ret_why)
{
    const struct e2b *p = CONTAINER_OF((struct plane *)plane, struct e2b, api);
    struct e2b_options o = e2b_options_of(s);

    host[0] = '\0';
    *ret_why = "Sandbox is secured with traffic access token. Token header "
               "'e2b-traffic-access-token' is missing or invalid";
    if (o.private && !e2b_opens(p, s, TOKEN_PORT, http_header(r, "E2B-Traffic-Access-Token")))
        return false;
    if (o.mask_host[0] != '\0')
        mask(o.mask_host, port, host);
    return true;
}

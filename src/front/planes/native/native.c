/* native.c - the native plane: bearer keys, and errors with the id of the request. */
#include "front/planes/native/native.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "front/planes/native/enter.h"
#include "front/planes/native/internal.h"
#include "front/workspace/workspace.h"
#include "http/http.h"
#include "mem/mem.h"
#include "json/write.h"

#define OPENAPI_MAX (4u << 20)

static const struct surface_row *const surfaces[] = {
#define X(name) surface_##name,
    SURFACES(X)
#undef X
};

static bool takes_token(const struct surface_row *row)
{
    return row->query != NULL && row->query->n > 0 &&
           strcmp(row->query->fields[0].name, DOCUMENT_TOKEN) == 0;
}

static int authorize(struct call *c, struct err *e)
{
    const char *presented = http_header(c->r, "Authorization");
    char token[AUTH_PRESENTED_MAX];

    if (c->row->scope == SCOPE_PUBLIC)
        return 0;
    if (presented == NULL)
        presented = http_header(c->r, "X-API-Key");
    if (presented == NULL && takes_token(c->row) &&
        route_query(http_head(c->r)->query.p, DOCUMENT_TOKEN, token, sizeof(token), e) == 1)
        presented = token;
    if (auth_key(c->plane->auth, presented, &c->key, e) < 0)
        return -1;
    return auth_allows(c->plane->auth, c->key, c->row->scope, e);
}

/* Rows of one sandbox take its id, its name or the beginning of its id. */
#define SANDBOX_PATH "/v1/sandboxes/{"

static bool is_admin(const struct call *c)
{
    struct err e;

    return auth_allows(c->plane->auth, c->key, SCOPE_ADMIN, &e) == 0;
}

/* An admin acts as another key, which may be a revoked one that has left something. */
static int act_as(struct call *c, const char *key, struct err *e)
{
    struct auth_info k;
    struct err none;

    if (!is_admin(c))
        return err_set(e, ERR_DENIED, NATIVE_AS ": only an admin key may act as another key");
    if (strlen(key) > ENGINE_KEY_MAX ||
        (auth_get(c->plane->auth, key, &k, &none) < 0 &&
         !engine_has_any_of(c->plane->engine, key) && !workspace_any_of(native_workspaces(c), key)))
        return err_set(e, ERR_NOT_FOUND,
                       NATIVE_AS ": no API key %.64s; `cove key list` shows the ids", key);
    call_act_as(c, key);
    return 0;
}

static int find_sandbox(struct call *c, struct err *e)
{
    const struct sandbox *s = NULL;

    if (c->workspace[0] != '\0' ||
        strncmp(c->row->route.path, SANDBOX_PATH, strlen(SANDBOX_PATH)) != 0)
        return 0;
    if (engine_resolve(c->ref, &s, e) < 0)
        return -1;
    if (s == NULL && (c->row->flags & SURFACE_ADMIN) != 0 && is_admin(c))
        s = engine_find(c->plane->engine, c->ref.id);
    if (s != NULL)
        call_aim(c, s->key, s->id);
    else if (c->row->body != NULL) /* no body is read for it */
        return err_set(e, ERR_NOT_FOUND, "no sandbox %.64s", c->ref.id);
    return 0;
}

/* What an admin does with the sandboxes of others is in our log, and in that of the sandbox, where
 * its key sees it. Only looking at what is no tenant's is not. */
static void audit(const struct call *c, bool as)
{
    if (strcmp(c->ref.key, c->key) == 0 ||
        (!as && c->row->scope == SCOPE_READ && (c->row->flags & SURFACE_AUDIT) == 0))
        return;
    log_info("admin key %s acts for key %s: %s %.200s (%s)", c->key, c->ref.key, c->row->op,
             http_head(c->r)->path.p, http_request_id(c->r));
    engine_audit(c->ref, c->key, c->row->op);
}

static int resolve(struct call *c, struct err *e)
{
    const char *as = http_header(c->r, NATIVE_AS);

    c->ref.id = call_param(c, 0);
    if (c->key == NULL) /* a public row */
        return 0;
    if ((as != NULL && act_as(c, as, e) < 0) || find_sandbox(c, e) < 0)
        return -1;
    audit(c, as != NULL);
    return 0;
}

int native_all_keys(const struct call *c, bool asked, const char **ret_key, struct err *e)
{
    *ret_key = asked ? NULL : c->ref.key;
    if (!asked || is_admin(c))
        return 0;
    return err_set(e, ERR_DENIED, "all_keys: only an admin key sees the sandboxes of other keys");
}

const char *native_domain(const struct call *c)
{
    return CONTAINER_OF(c->plane, struct native, plane)->domain;
}

struct token_mint *native_tokens(const struct call *c)
{
    return CONTAINER_OF(c->plane, struct native, plane)->tokens;
}

struct workspaces *native_workspaces(const struct call *c)
{
    return CONTAINER_OF(c->plane, struct native, plane)->workspaces;
}

static void write_error(struct call *c, const struct err *e, struct buf *out)
{
    struct json_w w;

    jw_init(&w, out);
    jw_open(&w);
    jw_key(&w, "error");
    jw_open(&w);
    jw_kstr(&w, "code", err_code(e->kind));
    jw_kstr(&w, "message", e->kind == ERR_INTERNAL ? "internal error" : e->msg);
    jw_kstr(&w, "request_id", c->request_id);
    if (e->kind == ERR_CANNOT_START && e->sys != 0 && strerrorname_np(e->sys) != NULL)
        jw_kstr(&w, "errno", strerrorname_np(e->sys));
    jw_close(&w);
    jw_close(&w);
}

static const struct plane_manner manner = {
    .surfaces = surfaces,
    .nsurfaces = ARRAY_LEN(surfaces),
    .authorize = authorize,
    .resolve = resolve,
    .alias = workspace_alias,
    .enter = workspace_enter,
    .write_error = write_error,
};

static void native_free(struct plane *p)
{
    struct native *n = CONTAINER_OF(p, struct native, plane);

    plane_free(p);
    buf_free(&n->openapi);
    buf_free(&n->page);
    free(n);
}

/* The document has our rows first, then those of the planes that share it. */
static int native_make(const struct plane_opts *o, struct plane **ret, struct err *e)
{
    const struct plane *all[8];
    struct native *n = mem_zeroed(1, sizeof(*n));
    size_t count = 1;

    buf_init(&n->openapi, OPENAPI_MAX);
    buf_init(&n->page, OPENAPI_MAX);
    plane_init(&n->plane, &manner, o->engine, o->auth, o->config);
    n->tokens = o->tokens;
    n->workspaces = o->workspaces;
    if (o->config->domain[0] != '\0')
        str_fmt(n->domain, sizeof(n->domain), "%.299s", o->config->domain);
    else
        str_fmt(n->domain, sizeof(n->domain), "localhost:%u", o->port);
    all[0] = &n->plane;
    for (size_t i = 0; i < o->ndocumented && count < ARRAY_LEN(all); i++)
        all[count++] = o->documented[i];
    if (openapi_write(all, count, &n->openapi, e) < 0 ||
        document_page(all, count, &n->page, e) < 0) {
        native_free(&n->plane);
        return -1;
    }
    *ret = &n->plane;
    return 0;
}

static const struct plane_door doors[] = {{"/v1"}, {"/health"}, {"/ready"}, {"/metrics"}, {0}};

const struct plane_kind native_kind = {
    .name = "native API",
    .doors = doors,
    .documented = true,
    .make = native_make,
    .free = native_free,
};

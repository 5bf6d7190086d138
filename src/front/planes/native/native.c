/* native.c - the manner of the native API: bearer keys, errors that name the request. */
#include "front/planes/native/native.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/planes/native/inside.h"
#include "http/http.h"
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
    jw_close(&w);
    jw_close(&w);
}

static const struct plane_manner manner = {
    .surfaces = surfaces,
    .nsurfaces = ARRAY_LEN(surfaces),
    .authorize = authorize,
    .write_error = write_error,
};

int native_new(struct engine *g, struct auth *a, const struct config *c, const struct plane *beside,
               struct native **ret, struct err *e)
{
    struct native *n = calloc(1, sizeof(*n));
    const struct plane *planes[2] = {NULL, beside};
    size_t nplanes = beside != NULL ? 2 : 1;

    if (n == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    buf_init(&n->openapi, OPENAPI_MAX);
    buf_init(&n->page, OPENAPI_MAX);
    if (plane_init(&n->plane, &manner, g, a, c, e) < 0) {
        free(n);
        return err_wrap(e, "native API");
    }
    planes[0] = &n->plane;
    if (openapi_write(planes, nplanes, &n->openapi, e) < 0 ||
        document_page(planes, nplanes, &n->page, e) < 0) {
        native_free(n);
        return err_wrap(e, "native API");
    }
    *ret = n;
    return 0;
}

void native_free(struct native *n)
{
    if (n == NULL)
        return;
    plane_free(&n->plane);
    buf_free(&n->openapi);
    buf_free(&n->page);
    free(n);
}

struct plane *native_plane(struct native *n)
{
    return &n->plane;
}

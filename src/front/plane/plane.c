/* plane.c - from a request to the handler of its row: route, key, input. */
#include "front/plane/plane.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/own.h"
#include "front/plane/intake.h"
#include "front/plane/query.h"
#include "front/plane/surface.h"
#include "mem/mem.h"

#define ALLOW_MAX 64
#define PATH_ALIAS_MAX (64u << 10) /* of a path as sent; the server's own bound is lower */

static size_t count_rows(const struct surface_row *s)
{
    size_t n = 0;

    while (s[n].route.method != NULL)
        n++;
    return n;
}

/* One array, since route_find() looks at one. */
static void join_surfaces(struct plane *p)
{
    const struct plane_manner *m = p->manner;
    size_t total = 0;

    for (size_t i = 0; i < m->nsurfaces; i++)
        total += count_rows(m->surfaces[i]);
    p->rows = mem_zeroed(total, sizeof(*p->rows));
    p->counts = mem_zeroed(total + 1, sizeof(*p->counts));
    for (size_t i = 0; i < m->nsurfaces; i++) {
        size_t rows = count_rows(m->surfaces[i]);

        memcpy(p->rows + p->nrows, m->surfaces[i], rows * sizeof(*p->rows));
        p->nrows += rows;
    }
    route_prepare(p->rows, p->nrows, sizeof(*p->rows));
}

void plane_init(struct plane *p, const struct plane_manner *manner, struct engine *g,
                struct auth *a, const struct config *c)
{
    *p = (struct plane){.manner = manner, .engine = g, .auth = a, .config = c};
    p->started_ms = clock_mono_ms();
    list_init(&p->calls);
    join_surfaces(p);
}

void plane_free(struct plane *p)
{
    struct call *c;

    while ((c = LIST_FIRST(&p->calls, struct call, link)) != NULL)
        call_free(c);
    free(p->counts);
    free(p->rows);
}

void plane_drain(struct plane *p)
{
    struct call *c;

    LIST_EACH (&p->calls, c, struct call, link)
        if (c->events && (c->row->flags & SURFACE_RESUME))
            call_end(c);
}

/* ---- what must hold before a handler runs ---- */

static int route(struct call *c, const char *path, char allow[ALLOW_MAX], struct err *e)
{
    const struct plane *p = c->plane;

    return route_find(p->rows, p->nrows, sizeof(*p->rows), http_head(c->r)->method.p, path,
                      &c->match, allow, ALLOW_MAX, e);
}

static int find_row(struct call *c, struct err *e)
{
    const struct plane_manner *m = c->plane->manner;
    const char *path = http_head(c->r)->path.p;
    char allow[ALLOW_MAX] = "";
    int r = route(c, path, allow, e);

    buf_init(&c->path, PATH_ALIAS_MAX);
    if (r < 0 && e->kind == ERR_NOT_FOUND && m->alias != NULL && m->alias(c, path, &c->path))
        r = route(c, buf_cstr(&c->path), allow, e);
    if (r == 0)
        c->row = &c->plane->rows[c->match.row];
    else if (e->kind == ERR_METHOD)
        http_reply_header(c->r, "Allow", allow);
    return r;
}

/* The connection is the key's then: one that is revoked ends with it. The server counts it
 * (http_server_opts.on_owner). */
static int check_connection(struct call *c, struct err *e)
{
    const char *owner = http_owner(c->r);
    struct quotas one = {{[QUOTA_connections] = 1}};

    if ((owner == NULL || strcmp(owner, c->key) != 0) && quota_check(c->user, &one, e) < 0)
        return -1;
    http_owned_by(c->r, c->key);
    return 0;
}

static int authorize(struct call *c, struct err *e)
{
    if (c->plane->manner->authorize(c, e) < 0)
        return -1;
    if (c->key == NULL)
        return 0;
    c->user = auth_user(c->plane->auth, c->key);
    return check_connection(c, e);
}

/* Before anything is done for it, and once. */
static int check_rate(struct call *c, struct err *e)
{
    if (c->user == NULL || c->rated)
        return 0;
    c->rated = true;
    return quota_request(c->user, clock_mono_ms(), e);
}

static bool is_stream(const struct call *c)
{
    const struct surface_row *row = c->row;

    if (row->status == 101 || (row->body != NULL && row->body->unwrap != NULL))
        return true;
    if (row->events == NULL && !(row->flags & SURFACE_RAW_ANSWER))
        return false;
    return row->answers[0] == NULL || call_accept(c) != CALL_JSON;
}

static void stream_ended(void *arg)
{
    quota_give(arg, QUOTA_streams);
}

static int check_stream(struct call *c, struct err *e)
{
    if (c->user == NULL || !is_stream(c))
        return 0;
    if (quota_take(c->user, QUOTA_streams, e) < 0)
        return -1;
    http_on_end(c->r, stream_ended, c->user);
    return 0;
}

static int check_ready(struct call *c, struct err *e)
{
    if ((c->row->flags & SURFACE_EARLY) || engine_is_ready(c->plane->engine))
        return 0;
    return err_set(e, ERR_UNAVAILABLE, "the server is starting; try again");
}

/* The one place that decides which sandbox a request means, and for which key it acts: handlers
 * only pass c->ref on. */
static int resolve(struct call *c, struct err *e)
{
    c->ref.key = c->key;
    c->ref.id = call_param(c, 0);
    if (c->plane->manner->resolve != NULL && c->plane->manner->resolve(c, e) < 0)
        return -1;
    /* a token stands for the key that gave it out */
    if (c->user == NULL && c->row->scope != SCOPE_PUBLIC)
        c->user = auth_user(c->plane->auth, c->ref.key);
    return 0;
}

static int check_body(struct call *c, struct err *e)
{
    static const char json[] = "application/json";
    const struct http_head *h = http_head(c->r);
    const char *type = http_header(c->r, "Content-Type");
    size_t len = type != NULL ? strcspn(type, "; \t") : 0;

    if (c->row->body == NULL)
        return 0;
    if (!c->plane->manner->lenient && type != NULL &&
        (len != sizeof(json) - 1 || strncasecmp(type, json, len) != 0))
        return err_set(e, ERR_MEDIA, "Content-Type: expected application/json");
    if (h->content_length > 0 && (uint64_t)h->content_length > surface_body_max(c->row))
        return err_set(e, ERR_TOO_LARGE, "the body is larger than %zu bytes",
                       surface_body_max(c->row));
    return 0;
}

static int enter(struct call *c, struct err *e)
{
    return c->plane->manner->enter != NULL ? c->plane->manner->enter(c, e) : 0;
}

/* 0, -1, or 1 for `enter`: later. */
static int (*const checks[])(struct call *c, struct err *e) = {find_row,     authorize,  check_rate,
                                                               check_ready,  resolve,    check_rate,
                                                               check_stream, check_body, enter};

/* ---- the query ---- */

/* `doc` is borrowed. */
static int run(struct call *c, const struct surface_input *input, json_t *doc, struct err *e)
{
    autofree void *in = mem_zeroed(1, input->size);

    if (input->defaults != NULL)
        input->defaults(in, c->plane->config);
    if (c->plane->manner->lenient)
        json_only(doc, input->fields, input->n);
    if (json_decode(doc, input->fields, input->n, in, e) < 0)
        return -1;
    c->row->handle(c, in);
    if (c->keeps) { /* an answered call is still there: it is freed at the end of the turn */
        c->in = take_ptr(&in);
        c->doc = json_incref(doc);
    }
    return 0;
}

static int run_query(struct call *c, struct err *e)
{
    static const struct surface_input none = {.size = 1};
    const struct surface_input *input = c->row->query != NULL ? c->row->query : &none;
    autojson json_t *doc = NULL;

    if (query_parse(http_head(c->r)->query.p, input->fields, input->n, &doc, e) < 0)
        return -1;
    return run(c, input, doc, e);
}

void plane_go_on(struct call *c)
{
    struct err e;

    loop_doing(c->loop, c->row->op);
    if (c->row->body != NULL)
        intake_begin(c);
    else if (run_query(c, &e) < 0)
        call_fail(c, &e);
}

void plane_handle(struct plane *p, struct http_req *r)
{
    struct call *c = call_new(p, r);
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        int done = checks[i](c, &e);

        if (done < 0)
            call_fail(c, &e);
        if (done != 0)
            return;
    }
    plane_go_on(c);
}

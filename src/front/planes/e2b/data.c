/* data.c - the data plane: what E2B calls envd, and who may speak to it.
 *
 * Its requests are about one sandbox, which the way in has found already; a token of
 * that sandbox opens it, unless it was made open. Upstream, envd stands behind a proxy
 * that answers for sandboxes that are not there: so does e2b_data(). */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/e2b/connect.h"
#include "front/planes/e2b/inside.h"
#include "front/planes/e2b/signature.h"
#include "json/write.h"

static const struct surface_row *const surfaces[] = {
#define X(name) e2b_##name,
    E2B_DATA_SURFACES(X)
#undef X
};

bool e2b_has_token(struct call *c)
{
    const struct e2b *p = e2b_behind(c);
    const struct sandbox *s = engine_find(c->plane->engine, c->sandbox);

    return s != NULL && (e2b_options_of(s).open || token_is(p->o.tokens, TOKEN_ENVD, s->id,
                                                            http_header(c->r, "X-Access-Token")));
}

/* A public row decides for itself. */
static int authorize(struct call *c, struct err *e)
{
    const struct sandbox *s = http_user(c->r);

    str_fmt(c->sandbox, sizeof(c->sandbox), "%s", s->id);
    str_fmt(c->owner, sizeof(c->owner), "%s", s->key);
    c->key = c->owner;
    if (c->row->scope == SCOPE_PUBLIC || e2b_has_token(c))
        return 0;
    return err_set(e, ERR_UNAUTHORIZED, E2B_NO_TOKEN);
}

/* ---- errors ---- */

static bool is_gone(const struct call *c)
{
    const struct sandbox *s = engine_find(c->plane->engine, c->sandbox);

    return c->sandbox[0] != '\0' && (s == NULL || s->state != SANDBOX_RUNNING);
}

static void write_absent(const char *sandbox, struct buf *out)
{
    struct json_w w;

    jw_init(&w, out);
    jw_open(&w);
    jw_kstr(&w, "sandboxId", sandbox);
    jw_kstr(&w, "message", "The sandbox was not found");
    jw_ku64(&w, "code", E2B_ABSENT);
    jw_close(&w);
}

static int status_of(const struct call *c, const struct err *e)
{
    if (is_gone(c))
        return E2B_ABSENT;
    return connect_is_rpc(c) ? connect_status(e) : err_http(e->kind);
}

static void write_error(struct call *c, const struct err *e, struct buf *out)
{
    if (is_gone(c))
        write_absent(c->sandbox, out);
    else if (connect_is_rpc(c))
        connect_write_error(e, out);
    else
        e2b_write_error(status_of(c, e), e, out);
}

/* To envd's clients a user that is not there is somebody who may not come in. */
static bool is_unknown_user(const struct err *e, struct err *ret)
{
    static const char before[] = "user ", behind[] = ": no such user";
    const char *end = strstr(e->msg, behind), *name = strstr(e->msg, before);

    if (e->kind == ERR_UNAUTHORIZED || end == NULL || name == NULL || name > end)
        return false;
    name += sizeof(before) - 1;
    err_set(ret, ERR_UNAUTHORIZED, "invalid username: '%.*s'", (int)(end - name), name);
    return true;
}

/* Streams have their own way, but for who is not let in, or finds nobody. */
static bool fail(struct call *c, const struct err *e)
{
    struct err who;

    if (is_unknown_user(e, &who)) {
        call_fail(c, &who);
        return true;
    }
    if (!connect_is_stream(c) || (!c->streaming && (e->kind == ERR_UNAUTHORIZED || is_gone(c))))
        return false;
    if (is_gone(c))
        call_cut(c);
    else
        connect_fail(c, e);
    return true;
}

static const struct plane_manner manner = {
    .surfaces = surfaces,
    .nsurfaces = ARRAY_LEN(surfaces),
    .authorize = authorize,
    .write_error = write_error,
    .status = status_of,
    .fail = fail,
    .lenient = true,
};

int e2b_data_init(struct e2b *p, struct err *e)
{
    return plane_init(&p->data, &manner, p->o.engine, p->o.auth, p->o.config, e);
}

/* ---- the way in ---- */

static void reply_absent(struct http_req *r, const char *sandbox)
{
    autobuf struct buf body = BUF_INIT(4096);

    write_absent(sandbox, &body);
    http_reply(r, E2B_ABSENT, "application/json", buf_cstr(&body), body.len);
}

void e2b_data(struct e2b *p, struct http_req *r, const char *id)
{
    const struct sandbox *s;

    if (!engine_is_ready(p->o.engine)) {
        http_reply_header(r, "Retry-After", "1");
        http_reply(r, 503, "application/json", E2B_STARTING, sizeof(E2B_STARTING) - 1);
        return;
    }
    s = id != NULL ? engine_find(p->o.engine, id) : signature_owner(p, r);
    if (s == NULL || s->state != SANDBOX_RUNNING) {
        reply_absent(r, id != NULL ? id : "");
        return;
    }
    http_set_user(r, (void *)(uintptr_t)s);
    plane_handle(&p->data, r);
}

/* ---- who ---- */

int e2b_user(struct call *c, char out[E2B_USER_MAX + 1], const char **ret, struct err *e)
{
    autobuf struct buf text = BUF_INIT(1024);
    const char *header = http_header(c->r, "Authorization");
    size_t n;

    *ret = NULL;
    if (header == NULL || strncasecmp(header, "Basic ", 6) != 0)
        return 0;
    if (str_unbase64(&text, header + 6, strlen(header + 6)) < 0)
        return err_set(e, ERR_UNAUTHORIZED, "Authorization: not base64");
    n = strcspn(buf_cstr(&text), ":");
    if (n == 0)
        return 0;
    if (n > E2B_USER_MAX)
        return err_set(e, ERR_UNAUTHORIZED, "invalid username: longer than %u", E2B_USER_MAX);
    memcpy(out, buf_cstr(&text), n);
    out[n] = '\0';
    *ret = out;
    return 0;
}

/* ---- what every sandbox answers ---- */

static void health(struct call *c, const void *in)
{
    (void)in;
    call_reply_none(c);
}

/* clang-format off */
const struct surface_row e2b_health[] = {
    {{"GET", "/health"}, SCOPE_PUBLIC, health, "health", "Whether it runs.", .status = 204},
    {.op = NULL},
};
/* clang-format on */

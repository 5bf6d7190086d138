/* data.c - the data plane, which E2B calls envd: authorization and errors.
 *
 * A request is about one sandbox, which e2b_data() has found before. It needs the token of that
 * sandbox, unless the sandbox was created open. At E2B a proxy in front of envd answers for missing
 * sandboxes; here e2b_data() does. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/planes/e2b/connect.h"
#include "front/planes/e2b/internal.h"
#include "front/planes/e2b/signature.h"
#include "mem/mem.h"
#include "json/write.h"

static const struct surface_row *const surfaces[] = {
#define X(name) e2b_##name,
    E2B_DATA_SURFACES(X)
#undef X
};

static bool has_token(struct call *c, const struct sandbox *s)
{
    return e2b_options_of(s).open ||
           e2b_opens(e2b_of_data(c), s, TOKEN_SANDBOX, http_header(c->r, "X-Access-Token"));
}

bool e2b_has_token(struct call *c)
{
    const struct sandbox *s = engine_get(c->ref);

    return s != NULL && has_token(c, s);
}

/* A public row decides for itself. */
static int authorize(struct call *c, struct err *e)
{
    if (c->row->scope == SCOPE_PUBLIC || has_token(c, http_user(c->r)))
        return 0;
    return err_set(e, ERR_UNAUTHORIZED, E2B_NO_TOKEN);
}

/* No key is presented: the call acts for the key that owns the sandbox. */
static int resolve(struct call *c, struct err *e)
{
    const struct sandbox *s = http_user(c->r);

    (void)e;
    call_aim(c, s->key, s->id);
    return 0;
}

/* ---- errors ---- */

static bool is_gone(const struct call *c)
{
    const struct sandbox *s = engine_find(c->plane->engine, c->ref.id);

    return c->ref.id[0] != '\0' && (s == NULL || s->state != SANDBOX_RUNNING);
}

/* The engine tells in words of one that is only about to be paused, or is just gone. */
bool e2b_is_absent(const struct call *c, const struct err *e)
{
    char words[ENGINE_ID_MAX + sizeof("sandbox ")];

    str_fmt(words, sizeof(words), "sandbox %s", c->ref.id);
    return is_gone(c) ||
           ((e->kind == ERR_CONFLICT || e->kind == ERR_GONE) && strstr(e->msg, words) != NULL);
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
    if (e2b_is_absent(c, e))
        return E2B_ABSENT;
    return connect_is_rpc(c) ? connect_status(e) : err_http(e->kind);
}

static void write_error(struct call *c, const struct err *e, struct buf *out)
{
    if (e2b_is_absent(c, e))
        write_absent(c->ref.id, out);
    else if (connect_is_rpc(c))
        connect_write_error(e, out);
    else
        e2b_write_error(status_of(c, e), e, out);
}

/* To envd's clients an unknown user is an authentication error. */
static bool is_unknown_user(const struct err *e, struct err *ret)
{
    static const char before[] = "user ", after[] = ": no such user";
    const char *end = strstr(e->msg, after), *name = strstr(e->msg, before);

    if (e->kind == ERR_UNAUTHORIZED || end == NULL || name == NULL || name > end)
        return false;
    name += sizeof(before) - 1;
    err_set(ret, ERR_UNAUTHORIZED, "invalid username: '%.*s'", (int)(end - name), name);
    return true;
}

/* Errors of streams are frames, except for authentication and missing sandboxes. */
static bool fail(struct call *c, const struct err *e)
{
    struct err who;

    if (is_unknown_user(e, &who)) {
        call_fail(c, &who);
        return true;
    }
    if (!connect_is_stream(c) ||
        (!c->streaming && (e->kind == ERR_UNAUTHORIZED || e2b_is_absent(c, e))))
        return false;
    if (e2b_is_absent(c, e))
        call_cut(c);
    else
        connect_fail(c, e);
    return true;
}

static const struct plane_manner manner = {
    .surfaces = surfaces,
    .nsurfaces = ARRAY_LEN(surfaces),
    .authorize = authorize,
    .resolve = resolve,
    .write_error = write_error,
    .status = status_of,
    .fail = fail,
    .lenient = true,
};

void e2b_data_init(struct e2b *p)
{
    list_init(&p->waking);
    list_init(&p->searches);
    list_init(&p->pollers);
    plane_init(&p->data, &manner, p->o.engine, p->o.auth, p->o.config);
}

/* ---- the way in ---- */

static void reply_absent(struct http_req *r, const char *sandbox)
{
    autobuf struct buf body = BUF_INIT(4096);

    write_absent(sandbox, &body);
    http_reply(r, E2B_ABSENT, "application/json", buf_cstr(&body), body.len);
}

static void enter(struct e2b *p, struct http_req *r, const struct sandbox *s)
{
    http_set_user(r, (void *)(uintptr_t)s);
    plane_handle(&p->data, r);
}

/* A request that waits until its sandbox has been woken. */
struct waking {
    struct e2b *p;
    struct http_req *r; /* NULL: its client left */
    struct list link;
    char id[ENGINE_ID_MAX + 1];
};

static void waking_gone(struct http_req *r, void *arg)
{
    (void)r;
    ((struct waking *)arg)->r = NULL;
}

static void waking_free(struct waking *w)
{
    list_del(&w->link);
    free(w);
}

static void woken(void *arg, const struct sandbox *s, const struct err *e)
{
    struct waking *w = arg;
    struct http_req *r = w->r;

    (void)e;
    if (r != NULL) {
        http_on_gone(r, NULL, NULL);
        if (s == NULL)
            reply_absent(r, w->id);
        else
            enter(w->p, r, s);
    }
    waking_free(w);
}

/* Authorized requests resume a paused sandbox; /health and unauthorized ones do not. */
static bool wakes(const struct e2b *p, struct http_req *r, const struct sandbox *s)
{
    return s->state == SANDBOX_PAUSED && s->auto_resume &&
           strcmp(http_head(r)->path.p, "/health") != 0 &&
           (e2b_options_of(s).open || signature_opens(p, r, s) ||
            e2b_opens(p, s, TOKEN_SANDBOX, http_header(r, "X-Access-Token")));
}

static void wake(struct e2b *p, struct http_req *r, const struct sandbox *s)
{
    struct waking *w = mem_zeroed(1, sizeof(*w));

    w->p = p;
    w->r = r;
    str_fmt(w->id, sizeof(w->id), "%s", s->id);
    list_add_tail(&p->waking, &w->link);
    http_on_gone(r, waking_gone, w);
    engine_wake(sandbox_ref(p->o.engine, s), woken, w);
}

void e2b_data_free(struct e2b *p)
{
    struct waking *w;

    while ((w = LIST_FIRST(&p->waking, struct waking, link)) != NULL)
        waking_free(w);
    signature_free(p);
    plane_free(&p->data);
}

/* Pages of any origin may call, as upstream: what opens a sandbox is its token, which
 * no browser adds by itself. True: that was the question, and it is answered. */
static bool tell_origin(struct http_req *r)
{
    static const struct {
        const char *name, *value;
    } may[] = {{"Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE"},
               {"Access-Control-Allow-Headers", "*, Authorization"},
               {"Access-Control-Max-Age", "7200"}};

    if (http_header(r, "Origin") == NULL)
        return false;
    http_reply_header(r, "Access-Control-Allow-Origin", "*");
    http_reply_header(r, "Access-Control-Expose-Headers", "*");
    if (strcmp(http_head(r)->method.p, "OPTIONS") != 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(may); i++)
        http_reply_header(r, may[i].name, may[i].value);
    http_reply(r, 204, NULL, NULL, 0);
    return true;
}

static void reply_limit(struct http_req *r, const struct err *e)
{
    autobuf struct buf body = BUF_INIT(4096);

    e2b_write_error(err_http(e->kind), e, &body);
    http_reply_header(r, "Retry-After", "1");
    http_reply(r, err_http(e->kind), "application/json", buf_cstr(&body), body.len);
}

static void dispatch(struct e2b *p, struct http_req *r, const struct sandbox *s, const char *id)
{
    if (s != NULL && s->state == SANDBOX_RUNNING)
        enter(p, r, s);
    else if (s != NULL && wakes(p, r, s))
        wake(p, r, s);
    else
        reply_absent(r, id);
}

static void owner_found(struct e2b *p, struct http_req *r, const struct sandbox *s)
{
    dispatch(p, r, s, "");
}

void e2b_data(struct plane *api, struct http_req *r, const char *id)
{
    struct e2b *p = CONTAINER_OF(api, struct e2b, api);
    struct err e;

    if (tell_origin(r))
        return;
    if (!engine_is_ready(p->o.engine)) {
        http_reply_header(r, "Retry-After", "1");
        http_reply(r, 503, "application/json", E2B_STARTING, sizeof(E2B_STARTING) - 1);
        return;
    }
    if (id != NULL)
        dispatch(p, r, engine_find(p->o.engine, id), id);
    else if (signature_owner(p, r, owner_found, &e) < 0)
        reply_limit(r, &e);
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

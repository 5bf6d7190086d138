/* proxy.c - see proxy.h: one relay from its connection to its last byte.
 *
 *   client ──> http body ──> out ──> socket inside      slow inside: the body is paused
 *   client <── http answer <── answer <── socket        slow client: the socket is not read
 *
 * A relay belongs to the client's end: it is freed when that has been answered or is
 * gone. The socket is shared with a tenant, so no call on it may wait (MSG_DONTWAIT)
 * and it is closed by fd_close() only. */
#include "front/proxy/proxy.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/fdpass.h"
#include "front/proxy/internal.h"
#include "http/http.h"
#include "mem/mem.h"
#include "json/write.h"

#define SWEEP_MS 2000 /* how soon relays into a sandbox that is gone end */

/* ---- the end ---- */

void relay_free(struct relay *y)
{
    engine_release(y->p->engine, y->target.id);
    fd_cancel(y->call);
    upstream_free(y->up);
    buf_free(&y->head);
    buf_free(&y->out);
    answer_free(&y->answer);
    list_del(&y->link);
    free(y);
}

struct http_req *relay_client_end(struct relay *y)
{
    struct http_req *r = take_ptr(&y->r);

    http_on_gone(r, NULL, NULL);
    http_on_drain(r, NULL, NULL);
    return r;
}

static void on_gone(struct http_req *r, void *arg)
{
    struct relay *y = arg;

    (void)r;
    y->r = NULL;
    if (!y->waking)
        relay_free(y);
}

void relay_fail(struct relay *y, int status, const char *message)
{
    struct http_req *r;

    if (y->tunnel != NULL) {
        http_tunnel_abort(y->tunnel); /* on_close frees */
        return;
    }
    r = relay_client_end(y);
    if (y->begun)
        http_reply_abort(r);
    else
        proxy_refuse(r, status, &y->target, message);
    relay_free(y);
}

/* Ports of a sandbox of the Cloudflare plane are open by their token only. */
static bool is_open(const struct proxy *p, const struct sandbox *s, const struct proxy_target *t)
{
    return (!s->guarded && t->prefix == 0) || engine_tunnel_is(p->engine, t->id, t->port, t->token);
}

/* Closing a tunnel also ends its open connections. */
static void on_sweep(struct loop_timer *t)
{
    struct proxy *p = CONTAINER_OF(t, struct proxy, sweep);
    struct relay *y;

    upstream_drop(p, NULL);
    if (list_empty(&p->relays) && list_empty(&p->idle))
        return;
    loop_timer_set(p->loop, t, SWEEP_MS, on_sweep);
    LIST_EACH (&p->relays, y, struct relay, link) {
        const struct sandbox *s = engine_find(p->engine, y->target.id);

        if (!y->waking && (s == NULL || s->state == SANDBOX_STOPPED ||
                           s->state == SANDBOX_DAMAGED || !is_open(p, s, &y->target)))
            relay_fail(y, 502, PROXY_NOT_FOUND);
    }
}

void proxy_sweep_soon(struct proxy *p)
{
    if (list_empty(&p->relays) && list_empty(&p->idle))
        loop_timer_set(p->loop, &p->sweep, SWEEP_MS, on_sweep);
}

/* ---- the beginning ---- */

static void on_drain(struct http_req *r, void *arg)
{
    (void)r;
    outward_pump(arg);
}

static void refuse_connect(struct relay *y, const struct err *e)
{
    switch (e->kind) {
    case ERR_GONE:
        relay_fail(y, 502, PROXY_CLOSED);
        return;
    case ERR_NOT_FOUND:
    case ERR_CONFLICT:
        y->target.port = 0;
        relay_fail(y, 502, PROXY_NOT_FOUND);
        return;
    case ERR_TIMEOUT:
    case ERR_UNRESPONSIVE:
        relay_fail(y, 504, "the server in the sandbox did not take the connection in time");
        return;
    default:
        relay_fail(y, 502, e->kind == ERR_INTERNAL ? "internal error" : e->msg);
    }
}

static void connected(void *arg, int fd, const struct stat *st, const struct err *why)
{
    struct relay *y = arg;

    (void)st;
    y->call = NULL;
    if (why != NULL) {
        refuse_connect(y, why);
        return;
    }
    y->up = upstream_new(y, fd);
    if (y->up == NULL) {
        relay_fail(y, 502, "out of memory");
        return;
    }
    http_on_drain(y->r, on_drain, y);
    inward_begin(y);
}

static struct relay *relay_new(struct proxy *p, struct http_req *r, const struct proxy_target *t,
                               const char *host)
{
    struct relay *y = mem_zeroed(1, sizeof(*y));

    y->p = p;
    y->r = r;
    y->target = *t;
    buf_init(&y->out, PROXY_OUT_MAX);
    buf_init(&y->head, PROXY_OUT_MAX);
    answer_init(&y->answer);
    y->answer.to_head = strcmp(http_head(r)->method.p, "HEAD") == 0;
    request_write(r, host, t, &y->out, &y->chunked, &y->answer.upgrade);
    proxy_sweep_soon(p);
    list_add_tail(&p->relays, &y->link);
    engine_hold(p->engine, y->target.id);
    return y;
}

/* RFC 9110, 9.2.2; without a body, which would be gone. */
static bool is_repeatable(const struct relay *y)
{
    static const char *const methods[] = {"GET", "HEAD", "OPTIONS", "DELETE", "PUT"};
    const struct http_head *h = http_head(y->r);

    for (size_t i = 0; i < ARRAY_LEN(methods) && !h->has_body && !y->answer.upgrade; i++)
        if (strcmp(h->method.p, methods[i]) == 0)
            return true;
    return false;
}

static void dial(struct relay *y, const struct sandbox *s)
{
    bool again = is_repeatable(y);

    str_fmt(y->key, sizeof(y->key), "%s", s->key);
    y->up = y->answer.upgrade ? NULL : upstream_take(y, !again);
    if (y->up == NULL) {
        y->call = fd_connect(sandbox_ref(y->p->engine, s), y->target.port, PROXY_CONNECT_MS,
                             connected, y);
        return;
    }
    y->reused = again;
    if (again)
        buf_add(&y->head, buf_data(&y->out), y->out.len);
    http_on_drain(y->r, on_drain, y);
    inward_begin(y);
}

bool relay_again(struct relay *y)
{
    const struct sandbox *s = engine_find(y->p->engine, y->target.id);

    if (!y->reused || y->begun || y->answer.head.len > 0 || y->answer.interim > 0 || s == NULL ||
        s->state != SANDBOX_RUNNING || y->head.failed)
        return false;
    upstream_free(take_ptr(&y->up));
    y->reused = y->deaf = y->blocked = y->stalled = false;
    buf_clear(&y->out);
    buf_add(&y->out, buf_data(&y->head), y->head.len);
    y->call =
        fd_connect(sandbox_ref(y->p->engine, s), y->target.port, PROXY_CONNECT_MS, connected, y);
    return true;
}

static void woken(void *arg, const struct sandbox *s, const struct err *e)
{
    struct relay *y = arg;

    y->waking = false;
    if (y->r == NULL)
        relay_free(y);
    else if (s == NULL)
        refuse_connect(y, e);
    else
        dial(y, s);
}

static void refuse_token(struct http_req *r)
{
    static const char body[] = "{\"error\":\"Access denied: Invalid token or port not "
                               "exposed\",\"code\":\"INVALID_TOKEN\"}";

    http_reply(r, 404, "application/json", body, sizeof(body) - 1);
}

void proxy_handle(struct proxy *p, struct http_req *r, const struct proxy_target *t)
{
    const struct sandbox *s = engine_find(p->engine, t->id);
    bool wakes = s != NULL && s->state == SANDBOX_PAUSED && s->auto_resume;
    struct proxy_target named = *t;
    char host[PROXY_HOST_MAX] = "";
    const char *why;
    struct relay *y;

    if (s != NULL && !is_open(p, s, t)) {
        refuse_token(r);
        return;
    }
    if (s == NULL || (s->state != SANDBOX_RUNNING && !wakes)) {
        named.port = 0;
        proxy_refuse(r, 502, &named, PROXY_NOT_FOUND);
        return;
    }
    if (!p->o.admit(p->o.arg, r, s, t->port, host, &why)) {
        proxy_refuse(r, 403, &named, why);
        return;
    }
    y = relay_new(p, r, t, host[0] != '\0' ? host : http_head(r)->host.p);
    http_on_gone(r, on_gone, y);
    http_eof_is_gone(r); /* else a silent server would be held without a client */
    y->waking = wakes;
    if (wakes)
        engine_wake(sandbox_ref(p->engine, s), woken, y);
    else
        dial(y, s);
}

/* A socket keeps the network namespace of its sandbox, and a server that was frozen must not get
 * bytes on a connection from before. */
static void on_leave(void *arg, const char *id)
{
    upstream_drop(arg, id);
}

struct proxy *proxy_new(const struct proxy_opts *o)
{
    struct proxy *p = mem_zeroed(1, sizeof(*p));

    p->o = *o;
    p->loop = o->loop;
    p->engine = o->engine;
    list_init(&p->relays);
    list_init(&p->idle);
    engine_on_leave(p->engine, on_leave, p);
    return p;
}

void proxy_free(struct proxy *p)
{
    struct relay *y;

    if (p == NULL)
        return;
    while ((y = LIST_FIRST(&p->relays, struct relay, link)) != NULL)
        relay_free(y);
    while (!list_empty(&p->idle))
        upstream_free(LIST_FIRST(&p->idle, struct upstream, link));
    loop_timer_stop(p->loop, &p->sweep);
    engine_on_leave(p->engine, NULL, NULL);
    free(p);
}

/* ---- the answer when nothing inside can answer ---- */

void proxy_refuse(struct http_req *r, int status, const struct proxy_target *t, const char *message)
{
    autobuf struct buf body = BUF_INIT(4096);
    struct json_w w;

    jw_init(&w, &body);
    jw_open(&w);
    if (t != NULL)
        jw_kstr(&w, "sandboxId", t->id);
    jw_kstr(&w, "message", message);
    if (t != NULL && t->port != 0)
        jw_ku64(&w, "port", t->port);
    jw_ku64(&w, "code", (uint64_t)status);
    jw_close(&w);
    http_reply(r, status, "application/json", buf_data(&body), body.len);
}

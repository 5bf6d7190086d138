/* request.c - the request as seen by its handler. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/own.h"
#include "http/conn.h"
#include "http/server.h"

#define HEAD_FIRST 512u

struct http_joined {
    struct http_joined *next;
    const char *name; /* points into the head */
    char value[];
};

static struct http_str cut(char *head, struct http_span s)
{
    head[s.at + s.len] = '\0';
    return (struct http_str){.p = head + s.at, .len = s.len};
}

static struct http_str copied(char *to, const char *from, size_t len)
{
    memcpy(to, from, len);
    to[len] = '\0';
    return (struct http_str){.p = to, .len = len};
}

/* Every name, value, method and target is followed by a separator that can be
 * overwritten with a NUL. Path and host are parts of the target and are copied. */
static int store_head(struct http_conn *c, const char *p, size_t len)
{
    const struct http_msg *m = &c->msg;
    struct http_head *h = &c->req.head;
    size_t need = len + m->path.len + m->host.len + 3;
    char *tail;

    if (need > c->head_cap) {
        size_t cap = c->head_cap ? c->head_cap : HEAD_FIRST;

        while (cap < need)
            cap *= 2;
        free(c->head);
        c->head = malloc(cap);
        c->head_cap = c->head != NULL ? cap : 0;
        if (c->head == NULL)
            return -1;
    }
    memcpy(c->head, p, len);
    tail = c->head + len;
    h->host = copied(tail, p + m->host.at, m->host.len);
    tail += m->host.len + 1;
    h->path = m->path.len > 0 ? copied(tail, p + m->path.at, m->path.len) : copied(tail, "/", 1);
    for (size_t i = 0; i < m->nfields; i++) {
        cut(c->head, m->fields[i].name);
        cut(c->head, m->fields[i].value);
    }
    h->method = cut(c->head, m->method);
    h->target = cut(c->head, m->target);
    h->query = (struct http_str){.p = c->head + m->query.at, .len = m->query.len};
    h->content_length = m->chunked ? -1 : m->content_length;
    h->has_body = m->chunked || m->content_length > 0;
    return 0;
}

void http_request_take(struct http_conn *c, const char *p, size_t len)
{
    struct http_req *r = &c->req;
    struct http_fault f;

    http_crowd_busy(c);
    if (http_parse_request_head(p, len, &c->msg, &f) < 0) {
        http_conn_refuse(c, f.status, f.why);
        return;
    }
    if (store_head(c, p, len) < 0) {
        http_conn_break(c);
        return;
    }
    http_server_next_id(c->server, r->id);
    r->keep_alive =
        !c->eof && !c->server->draining && !c->msg.close && (c->msg.minor > 0 || c->msg.keep_alive);
    r->is_head = strcmp(r->head.method.p, "HEAD") == 0;
    r->body.continued = !c->msg.expect_continue;
    r->body.left = r->head.has_body && !c->msg.chunked ? r->head.content_length : 0;
    c->phase = r->head.has_body ? PHASE_BODY : PHASE_WAIT;
    c->read_due_ns = 0;
    r->active = true;
    c->server->opts.on_request(c->server->opts.arg, r);
}

void http_request_reset(struct http_conn *c)
{
    struct http_joined *j;

    while ((j = c->req.joined) != NULL) {
        c->req.joined = j->next;
        free(j);
    }
    for (size_t i = c->req.nends; i > 0; i--)
        c->req.ends[i - 1].cb(c->req.ends[i - 1].arg);
    loop_timer_stop(c->server->opts.loop, &c->req.sse);
    buf_clear(&c->extra);
    memset(&c->req, 0, sizeof(c->req));
}

const struct http_head *http_head(const struct http_req *r)
{
    return &r->head;
}

const char *http_header(struct http_req *r, const char *name)
{
    struct http_conn *c = http_conn_of(r);
    const char *first = NULL;
    size_t found = 0, need = 1;
    struct http_joined *j;
    char *end;

    for (j = r->joined; j != NULL; j = j->next)
        if (strcasecmp(j->name, name) == 0)
            return j->value;
    for (size_t i = 0; i < c->msg.nfields; i++) {
        const struct http_field *f = &c->msg.fields[i];

        if (strcasecmp(c->head + f->name.at, name) != 0)
            continue;
        first = found++ == 0 ? c->head + f->value.at : first;
        need += f->value.len + 2u;
    }
    if (found <= 1)
        return first;
    j = malloc(sizeof(*j) + need);
    if (j == NULL)
        return NULL;
    end = j->value;
    for (size_t i = 0; i < c->msg.nfields; i++) {
        const struct http_field *f = &c->msg.fields[i];

        if (strcasecmp(c->head + f->name.at, name) != 0)
            continue;
        j->name = c->head + f->name.at;
        if (end != j->value)
            end = stpcpy(end, ", ");
        end = stpcpy(end, c->head + f->value.at);
    }
    j->next = r->joined;
    r->joined = j;
    return j->value;
}

bool http_header_at(const struct http_req *r, size_t i, struct http_str *ret_name,
                    struct http_str *ret_value)
{
    const struct http_conn *c = http_conn_of(r);
    const struct http_field *f = &c->msg.fields[i];

    if (i >= c->msg.nfields)
        return false;
    *ret_name = (struct http_str){.p = c->head + f->name.at, .len = f->name.len};
    *ret_value = (struct http_str){.p = c->head + f->value.at, .len = f->value.len};
    return true;
}

const char *http_request_id(const struct http_req *r)
{
    return r->id;
}

void http_set_user(struct http_req *r, void *user)
{
    r->user = user;
}

void *http_user(const struct http_req *r)
{
    return r->user;
}

struct loop *http_loop(const struct http_req *r)
{
    return http_conn_of(r)->server->opts.loop;
}

int http_fd(const struct http_req *r)
{
    return http_conn_of(r)->io.fd;
}

void http_eof_is_gone(struct http_req *r)
{
    struct http_conn *c = http_conn_of(r);

    r->eof_is_gone = true;
    if (c->eof && r->active) /* the EOF came before this call */
        http_conn_break(c);
}

void http_on_gone(struct http_req *r, void (*cb)(struct http_req *r, void *arg), void *arg)
{
    r->on_gone = cb;
    r->gone_arg = arg;
}

void http_on_end(struct http_req *r, void (*cb)(void *arg), void *arg)
{
    if (r->nends == HTTP_ENDS_MAX)
        abort(); /* ours: each caller is a line of code */
    r->ends[r->nends++] = (struct http_end){cb, arg};
}

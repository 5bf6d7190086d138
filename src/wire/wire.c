/* wire.c - see wire.h. */
#include "wire/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static const void *at(const void *msg, const struct wire_field *f)
{
    return (const char *)msg + f->offset;
}

static void put_u32(struct buf *out, uint32_t v)
{
    buf_add(out, &v, sizeof(v));
}

static int over(const struct wire_msg *m, const struct wire_field *f, struct err *e)
{
    return err_set(e, ERR_INVALID, "%s: %s is longer than %u", m->name, f->name, f->max);
}

static int put_field(struct buf *out, const struct wire_msg *m, const struct wire_field *f,
                     const void *msg, struct err *e)
{
    const struct wire_strv *v = at(msg, f);
    const struct wire_bytes *b = at(msg, f);
    const char *s;

    switch (f->type) {
    case WIRE_U32:
        buf_add(out, at(msg, f), sizeof(uint32_t));
        return 0;
    case WIRE_U64:
        buf_add(out, at(msg, f), sizeof(uint64_t));
        return 0;
    case WIRE_STR:
        s = *(const char *const *)at(msg, f);
        s = s == NULL ? "" : s;
        if (strlen(s) > f->max)
            return over(m, f, e);
        put_u32(out, (uint32_t)strlen(s) + 1);
        buf_add(out, s, strlen(s) + 1);
        return 0;
    case WIRE_BYTES:
        if (b->len > f->max)
            return over(m, f, e);
        put_u32(out, b->len);
        buf_add(out, b->p, b->len);
        return 0;
    case WIRE_STRV:
        if (v->len > f->max)
            return over(m, f, e);
        put_u32(out, v->count);
        put_u32(out, v->len);
        buf_add(out, v->p, v->len);
        return 0;
    }
    return err_set(e, ERR_INTERNAL, "%s: unknown field type", m->name);
}

int wire_put(struct buf *out, const struct wire_msg *m, uint32_t seq, const void *msg,
             struct err *e)
{
    struct wire_head head = {.type = m->type, .seq = seq};
    size_t start = out->len;

    buf_add(out, &head, WIRE_HEAD);
    for (size_t i = 0; i < m->nfields; i++) {
        if (put_field(out, m, &m->fields[i], msg, e) < 0) {
            out->len = start;
            return -1;
        }
    }
    if (out->failed) {
        out->len = start;
        return err_set(e, ERR_LIMIT, "%s: more than %zu bytes queued", m->name, out->max);
    }
    head.len = (uint32_t)(out->len - start - WIRE_HEAD);
    if (head.len > WIRE_FRAME_MAX) {
        out->len = start;
        return err_set(e, ERR_TOO_LARGE, "%s: a message of %u bytes is too long", m->name,
                       head.len);
    }
    memcpy(buf_data(out) + start, &head, WIRE_HEAD);
    return 0;
}

int wire_peek(const struct buf *in, struct wire_head *head, const char **body, struct err *e)
{
    if (in->len < WIRE_HEAD)
        return 0;
    memcpy(head, buf_data(in), WIRE_HEAD);
    if (head->len > WIRE_FRAME_MAX || head->zero != 0)
        return err_set(e, ERR_INVALID, "not a frame: type %u, %u bytes", head->type, head->len);
    if (in->len < WIRE_HEAD + (size_t)head->len)
        return 0;
    *body = buf_data(in) + WIRE_HEAD;
    return 1;
}

int wire_pump(struct buf *in, uint32_t max, wire_frame_cb *each, void *arg, struct err *e)
{
    struct wire_head head;
    const char *body;

    for (;;) {
        int whole = wire_peek(in, &head, &body, e);
        enum wire_next next;

        if (whole >= 0 && in->len >= WIRE_HEAD && head.len > max)
            return err_set(e, ERR_INVALID, "a message of %u bytes; the limit is %u", head.len, max);
        if (whole <= 0)
            return whole;
        next = each(arg, &head, body, e);
        if (next == WIRE_BROKEN)
            return -1;
        if (next != WIRE_GONE)
            buf_consume(in, WIRE_HEAD + (size_t)head.len);
        if (next != WIRE_NEXT)
            return 1;
    }
}

int wire_receive(int fd, struct buf *in, size_t most, struct err *e)
{
    char *room = buf_room(in, most);
    ssize_t n;

    if (room == NULL)
        return err_set(e, ERR_TOO_LARGE, "a message does not fit into %zu bytes", in->max);
    n = recv(fd, room, most, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return err_sys(e, "receive a message");
    if (n == 0)
        return err_set(e, ERR_GONE, "the other end closed the connection");
    buf_added(in, (size_t)n);
    return 1;
}

int wire_flush(int fd, struct buf *out, struct err *e)
{
    while (out->len > 0) {
        ssize_t n = send(fd, buf_data(out), out->len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return 0;
        if (n < 0)
            return err_sys(e, "send a message");
        buf_consume(out, (size_t)n);
    }
    return 0;
}

struct cursor {
    const char *p;
    size_t left;
};

static int get_u32(struct cursor *c, uint32_t *ret)
{
    if (c->left < sizeof(*ret))
        return -1;
    memcpy(ret, c->p, sizeof(*ret));
    c->p += sizeof(*ret);
    c->left -= sizeof(*ret);
    return 0;
}

static int get_span(struct cursor *c, uint32_t max, struct wire_bytes *ret)
{
    uint32_t len;

    if (get_u32(c, &len) < 0 || len > c->left || len > max)
        return -1;
    ret->p = c->p;
    ret->len = len;
    c->p += len;
    c->left -= len;
    return 0;
}

static int get_str(struct cursor *c, uint32_t max, const char **ret)
{
    struct wire_bytes b;

    if (get_span(c, max + 1, &b) < 0 || b.len == 0 || memchr(b.p, '\0', b.len) != b.p + b.len - 1)
        return -1;
    *ret = b.p;
    return 0;
}

static int get_strv(struct cursor *c, uint32_t max, struct wire_strv *ret)
{
    struct wire_bytes b;
    uint32_t count, n = 0;

    if (get_u32(c, &count) < 0 || get_span(c, max, &b) < 0)
        return -1;
    if (b.len > 0 && b.p[b.len - 1] != '\0')
        return -1;
    for (const char *p = b.p; p < b.p + b.len; p += strlen(p) + 1)
        n++;
    if (n != count)
        return -1;
    *ret = (struct wire_strv){b.p, b.len, count};
    return 0;
}

static int get_field(struct cursor *c, const struct wire_field *f, void *to)
{
    switch (f->type) {
    case WIRE_U32:
        return get_u32(c, to) < 0 || (f->max != 0 && *(uint32_t *)to > f->max) ? -1 : 0;
    case WIRE_U64:
        if (c->left < sizeof(uint64_t))
            return -1;
        memcpy(to, c->p, sizeof(uint64_t));
        c->p += sizeof(uint64_t);
        c->left -= sizeof(uint64_t);
        return 0;
    case WIRE_STR:
        return get_str(c, f->max, to);
    case WIRE_BYTES:
        return get_span(c, f->max, to);
    case WIRE_STRV:
        return get_strv(c, f->max, to);
    }
    return -1;
}

static void set_absent(const struct wire_field *f, void *to)
{
    if (f->type == WIRE_STR)
        *(const char **)to = "";
}

int wire_get(const struct wire_msg *m, const char *body, size_t len, void *msg, struct err *e)
{
    struct cursor c = {body, len};

    memset(msg, 0, m->size);
    for (size_t i = 0; i < m->nfields; i++) {
        const struct wire_field *f = &m->fields[i];
        void *to = (char *)msg + f->offset;

        if (c.left == 0)
            set_absent(f, to);
        else if (get_field(&c, f, to) < 0)
            return err_set(e, ERR_INVALID, "%s: bad field %s", m->name, f->name);
    }
    return 0;
}

const char *wire_strv_next(const struct wire_strv *v, uint32_t *pos)
{
    const char *s = v->p + *pos;

    if (*pos >= v->len)
        return NULL;
    *pos += (uint32_t)strlen(s) + 1;
    return s;
}

int wire_strv_add(struct buf *b, const char *s)
{
    return buf_add(b, s, strlen(s) + 1);
}

struct wire_strv wire_strv_of(const struct buf *b)
{
    struct wire_strv v = {b->len > 0 ? buf_data(b) : "", (uint32_t)b->len, 0};

    for (size_t i = 0; i < b->len; i++)
        v.count += buf_data(b)[i] == '\0';
    return v;
}

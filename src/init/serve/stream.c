/* stream.c - a process's output on its way to the front: to its owner, to viewers, or up to
 * where it ended when the request came.
 *
 * The bytes go from the ring to the socket without another copy, except a few bytes, which
 * wait for the end of the turn. When the socket takes half a message the other half is
 * copied: the ring may move on.
 *
 * The output waits for its owner. It does not wait for a viewer of a terminal: what a slow
 * viewer misses it is told as a gap. What a viewer types waits in its socket while the
 * program does not read (talk/conn.c). */
#include <string.h>

#include "base/own.h"
#include "init/serve/internal.h"

/* `output` as wire_put() would write it, up to the bytes themselves; a test decodes it with
 * wire_get(). */
struct output_head {
    struct wire_head head;
    uint32_t pos[2]; /* u64, but unaligned here */
    uint32_t stream, len;
};
_Static_assert(sizeof(struct output_head) == WIRE_HEAD + 16, "no padding in a frame");

int stream_check(const struct proc *p, uint64_t cursor, struct err *e)
{
    if (cursor <= p->ring.end)
        return 0;
    return err_set(e, ERR_INVALID, "cursor %llu is beyond the output, which ends at %llu",
                   (unsigned long long)cursor, (unsigned long long)p->ring.end);
}

/* False when the socket is full or closed: nothing more now. */
static bool send_slice(struct conn *c, unsigned stream, const char *p, size_t n)
{
    struct output_head h = {
        .head = {.len = (uint32_t)(sizeof(h) - WIRE_HEAD + n), .type = INIT_OUTPUT, .seq = c->seq},
        .stream = stream,
        .len = (uint32_t)n,
    };
    struct iovec iov[2] = {{&h, sizeof(h)}, {(char *)p, n}};
    ssize_t sent = 0;

    memcpy(h.pos, &c->watch.cursor, sizeof(h.pos));
    if (c->out.len + sizeof(h) + n > CONN_SMALL)
        sent = conn_push(c, iov, 2);
    if (sent < 0)
        return false;
    c->watch.cursor += n;
    if ((size_t)sent < sizeof(h) + n) {
        for (int i = 0; i < 2; i++) {
            size_t skip = (size_t)sent < iov[i].iov_len ? (size_t)sent : iov[i].iov_len;

            iov[i].iov_base = (char *)iov[i].iov_base + skip;
            iov[i].iov_len -= skip;
            sent -= (ssize_t)skip;
        }
        conn_queue(c, iov, 2);
    }
    return conn_can_send(c);
}

/* The next piece of the ring, or a gap. False: nothing more now. */
static bool send_some(struct conn *c, const struct ring *r)
{
    unsigned stream;
    const char *p;
    size_t n;

    if (c->watch.cursor < r->first) {
        struct init_truncated m = {c->watch.cursor, r->first};

        c->watch.cursor = r->first;
        conn_send(c, INIT_TRUNCATED, &m);
        return conn_can_send(c);
    }
    n = ring_look(r, c->watch.cursor, &stream, &p);
    if (c->streams != 0 && (c->streams & stream) == 0) {
        c->watch.cursor += n;
        return n > 0;
    }
    return n > 0 && send_slice(c, stream, p, n < CONN_CHUNK ? n : CONN_CHUNK);
}

/* The position at which the talk is over. */
static uint64_t end_of_talk(const struct conn *c)
{
    const struct proc *p = c->watch.proc;

    if (c->talk == TALK_LOOK)
        return c->until;
    return p->output == OUTPUT_ENDED ? p->output_end : UINT64_MAX;
}

void stream_pump(struct conn *c)
{
    const struct proc *p = c->watch.proc;
    uint64_t from = c->watch.cursor;

    while (conn_can_send(c) && c->watch.cursor < p->ring.end && c->watch.cursor < end_of_talk(c) &&
           c->watch.cursor - from < CONN_TURN_MAX)
        if (!send_some(c, &p->ring))
            break;
    if (conn_is_closed(c))
        return;
    conn_set_more(c, c->watch.cursor < p->ring.end && c->watch.cursor < end_of_talk(c));
    proc_watch_moved(&c->watch);
    if (c->watch.cursor < end_of_talk(c))
        return;
    if (c->talk == TALK_LOOK) {
        struct init_end m = {c->watch.cursor, p->output == OUTPUT_ENDED};

        conn_send(c, INIT_END, &m);
        conn_done(c);
    } else {
        conn_exit(c);
    }
}

/* ---- viewers of a terminal ---- */

unsigned view_count(const struct serve *s, const struct proc *p)
{
    const struct conn *c;
    unsigned n = 0;

    LIST_EACH (&s->conns.all, c, struct conn, link)
        n += c->talk == TALK_VIEW && (p == NULL || c->watch.proc == p);
    return n;
}

void view_start(struct conn *c, struct proc *p, const struct init_view *m)
{
    uint64_t cursor = (m->flags & INIT_VIEW_SINCE) != 0 ? m->since
                      : (m->flags & INIT_VIEW_NOW) != 0 ? p->ring.end
                                                        : p->ring.first;
    struct err e;

    if (view_count(serve_of(c), p) >= VIEWERS_MAX) {
        conn_fail_with(c, ERR_LIMIT, "terminal %s has %u viewers, which is the limit", p->record.id,
                       VIEWERS_MAX);
    } else if (view_count(serve_of(c), NULL) >= VIEWERS_ALL_MAX) {
        conn_fail_with(c, ERR_LIMIT,
                       "the terminals of this sandbox have %u viewers, which is the limit",
                       VIEWERS_ALL_MAX);
    } else if (stream_check(p, cursor, &e) < 0) {
        conn_fail(c, &e);
    } else {
        c->streams = c->told.cols = c->told.rows = 0;
        conn_begin(c, TALK_VIEW, NULL);
        conn_watch(c, p, cursor);
    }
}

/* The size is sent before the output: what is printed next may be made for it. Not while
 * the socket is full: the tenant may change it at any rate, and only the last one counts. */
void view_pump(struct conn *c)
{
    const struct proc *p = c->watch.proc;
    struct init_screen m = {.cursor = c->watch.cursor, .end = p->ring.end, .pid = p->record.pid};

    term_size(p, &m.cols, &m.rows);
    if (conn_can_send(c) && (m.cols != c->told.cols || m.rows != c->told.rows)) {
        c->told.cols = m.cols;
        c->told.rows = m.rows;
        conn_send(c, INIT_SCREEN, &m);
    }
    if (!conn_is_closed(c))
        stream_pump(c);
}

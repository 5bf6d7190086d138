/* stream.c - a process's output on its way to the front, see conn.h.
 *
 * The bytes go from the ring to the socket without another copy, but for a few, which
 * wait for what else this turn brings. When the socket takes half a message the other
 * half is copied: the ring may move on. */
#include <string.h>

#include "base/own.h"
#include "init/conn.h"

/* `output` as wire_put() would write it, up to the bytes themselves; a test
 * decodes it with wire_get(). */
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

static void keep_rest(struct conn *c, struct iovec iov[2], size_t sent)
{
    for (int i = 0; i < 2; i++) {
        size_t skip = sent < iov[i].iov_len ? sent : iov[i].iov_len;

        iov[i].iov_base = (char *)iov[i].iov_base + skip;
        iov[i].iov_len -= skip;
        sent -= skip;
    }
    conn_queue(c, iov, 2);
}

/* False when the socket is full (or gone): nothing more now. */
static bool send_slice(struct conn *c, unsigned stream, const char *p, size_t n)
{
    struct output_head h = {
        .head = {.len = (uint32_t)(sizeof(h) - WIRE_HEAD + n), .type = INIT_OUTPUT, .seq = c->seq},
        .stream = stream,
        .len = (uint32_t)n,
    };
    struct iovec iov[2] = {{&h, sizeof(h)}, {(char *)p, n}};
    bool small = c->out.len + sizeof(h) + n <= CONN_SMALL;
    ssize_t sent;

    memcpy(h.pos, &c->watch.cursor, sizeof(h.pos));
    sent = small ? 0 : conn_push(c, iov, 2);
    if (sent < 0)
        return false;
    c->watch.cursor += n;
    if ((size_t)sent < sizeof(h) + n)
        keep_rest(c, iov, (size_t)sent);
    return !c->closing && !c->full;
}

static void send_truncated(struct conn *c, uint64_t to)
{
    struct init_truncated m = {c->watch.cursor, to};

    c->watch.cursor = to;
    conn_send(c, INIT_TRUNCATED, &m);
}

static bool send_some(struct conn *c, const struct ring *r)
{
    unsigned stream;
    const char *p;
    size_t n;

    if (c->watch.cursor < r->first) {
        send_truncated(c, r->first);
        return !c->closing && !c->full;
    }
    n = ring_look(r, c->watch.cursor, &stream, &p);
    if (c->streams != 0 && (c->streams & stream) == 0) {
        c->watch.cursor += n;
        return n > 0;
    }
    return n > 0 && send_slice(c, stream, p, n < CONN_CHUNK ? n : CONN_CHUNK);
}

/* Where the talk is over. */
static uint64_t stop_of(const struct conn *c)
{
    const struct proc *p = c->watch.proc;

    if (c->talk == TALK_LOOK)
        return c->stop;
    return p->output == OUTPUT_ENDED ? p->output_end : UINT64_MAX;
}

static void finish(struct conn *c)
{
    struct init_end m = {c->watch.cursor, c->watch.proc->output == OUTPUT_ENDED};

    if (c->talk != TALK_LOOK) {
        conn_exit(c);
        return;
    }
    conn_send(c, INIT_END, &m);
    conn_done(c);
}

void stream_pump(struct conn *c)
{
    const struct proc *p = c->watch.proc;
    uint64_t from = c->watch.cursor;

    while (!c->closing && !c->full && c->watch.cursor < p->ring.end &&
           c->watch.cursor < stop_of(c) && c->watch.cursor - from < CONN_TURN_MAX)
        if (!send_some(c, &p->ring))
            break;
    if (c->closing)
        return;
    c->blocked = c->watch.cursor < p->ring.end && c->watch.cursor < stop_of(c);
    proc_watch_moved(&c->watch);
    if (c->watch.cursor >= stop_of(c))
        finish(c);
}

/* wait.c - talks that end when a process ends, or has printed a text. */
#include <string.h>

#include "base/own.h"
#include "init/serve/internal.h"

/* ---- the end of a process ---- */

void wait_pump(struct conn *c)
{
    if (c->watch.proc->output == OUTPUT_ENDED)
        conn_exit(c);
}

void kill_pump(struct conn *c)
{
    struct proc *p = c->watch.proc;

    if (p->state != PROC_GONE)
        return;
    if (p->forget)
        proc_unname(p);
    conn_exit(c);
}

void wait_exit(struct conn *c, struct proc *p, uint64_t timeout_ms)
{
    conn_begin(c, TALK_WAIT, NULL);
    conn_deadline(c, timeout_ms, "process %s to end", p->record.id);
    if (c->talk == TALK_WAIT)
        conn_watch(c, p, 0);
}

/* ---- a text ---- */

/* Knuth, Morris and Pratt: one pass, no going back, and the state of a half match survives
 * between chunks; one state per stream, so that a line of one is found even if the other
 * printed in the middle of it. */
struct log_wait {
    uint32_t len;
    uint32_t matched[2]; /* how much of the text the stream's last bytes are */
    uint16_t *back;      /* where to go on when the next byte does not fit; lies after the text */
    char text[];
};

static struct log_wait *log_new(const struct wire_bytes *text)
{
    size_t room = (text->len + 1u) & ~(size_t)1;
    struct log_wait *w = calloc(1, sizeof(*w) + room + text->len * sizeof(uint16_t));

    if (w == NULL)
        return NULL;
    w->len = text->len;
    w->back = (uint16_t *)(void *)(w->text + room);
    memcpy(w->text, text->p, text->len);
    for (uint32_t i = 1, k = 0; i < w->len; i++) {
        while (k > 0 && w->text[i] != w->text[k])
            k = w->back[k - 1];
        k += w->text[i] == w->text[k];
        w->back[i] = (uint16_t)k;
    }
    return w;
}

/* How many bytes were read up to the end of the match; 0: no match in these. */
static size_t log_search(struct log_wait *w, int stream, const char *p, size_t n)
{
    uint32_t k = w->matched[stream];

    for (size_t i = 0; i < n; i++) {
        while (k > 0 && p[i] != w->text[k])
            k = w->back[k - 1];
        k += p[i] == w->text[k];
        if (k == w->len)
            return i + 1;
    }
    w->matched[stream] = k;
    return 0;
}

/* The next piece of the ring. True when the text ends in it. */
static bool log_step(struct conn *c, const struct ring *r)
{
    struct log_wait *w = c->detail;
    unsigned stream;
    const char *p;
    size_t n, hit = 0;

    if (c->watch.cursor < r->first) {
        w->matched[0] = w->matched[1] = 0;
        c->watch.cursor = r->first;
    }
    n = ring_look(r, c->watch.cursor, &stream, &p);
    n = n < CONN_TURN_MAX ? n : CONN_TURN_MAX;
    if (c->streams == 0 || (c->streams & stream) != 0)
        hit = log_search(w, stream == INIT_STDERR, p, n);
    c->watch.cursor += hit > 0 ? hit : n;
    return hit > 0;
}

static void log_later(struct loop_later *l)
{
    conn_pump(CONTAINER_OF(l, struct conn, later));
}

void log_pump(struct conn *c)
{
    const struct proc *p = c->watch.proc;
    uint64_t from = c->watch.cursor;

    while (c->watch.cursor < p->ring.end) {
        if (log_step(c, &p->ring)) {
            conn_ok(c, c->watch.cursor);
            return;
        }
        if (c->watch.cursor - from >= CONN_TURN_MAX) {
            loop_defer(c->conns->loop, &c->later, log_later);
            return;
        }
    }
    if (p->output == OUTPUT_ENDED)
        conn_fail_with(c, ERR_GONE, "process %s ended without printing the text", p->record.id);
}

void wait_log(struct conn *c, struct proc *p, const struct init_wait_log *m)
{
    struct log_wait *w;

    if (m->text.len == 0) {
        conn_fail_with(c, ERR_INVALID, "wait for a text: the text is empty");
        return;
    }
    w = log_new(&m->text);
    if (w == NULL) {
        conn_fail_with(c, ERR_UNAVAILABLE, "out of memory");
        return;
    }
    c->streams = m->streams;
    conn_begin(c, TALK_LOG, w);
    conn_deadline(c, m->timeout_ms, "process %s to print the text", p->record.id);
    if (c->talk == TALK_LOG)
        conn_watch(c, p, m->since);
}

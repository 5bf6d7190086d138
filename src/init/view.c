/* view.c - somebody looks at a terminal and types into it, see conn.h.
 *
 * A viewer is a guest: the output does not wait for it, and what it comes too
 * late for it is told as a gap. What it types waits in its socket while the
 * program does not read (conn.c). */
#include "init/serve_state.h"

unsigned view_count(const struct serve *s, const struct proc *p)
{
    const struct conn *c;
    unsigned n = 0;

    LIST_EACH (&s->conns, c, struct conn, link)
        n += c->talk == TALK_VIEW && (p == NULL || c->watch.proc == p);
    return n;
}

static int check_room(const struct serve *s, const struct proc *p, struct err *e)
{
    if (view_count(s, p) >= VIEWERS_MAX)
        return err_set(e, ERR_LIMIT, "%u viewers look at terminal %s already", VIEWERS_MAX,
                       p->record.id);
    if (view_count(s, NULL) >= VIEWERS_ALL_MAX)
        return err_set(e, ERR_LIMIT, "%u viewers look at terminals of this sandbox already",
                       VIEWERS_ALL_MAX);
    return 0;
}

void view_start(struct conn *c, struct proc *p, const struct init_view *m)
{
    uint64_t cursor = (m->flags & INIT_VIEW_SINCE) != 0 ? m->since
                      : (m->flags & INIT_VIEW_NOW) != 0 ? p->ring.end
                                                        : p->ring.first;
    struct err e = {0};

    if (check_room(c->serve, p, &e) < 0 || stream_check(p, cursor, &e) < 0) {
        conn_fail(c, &e);
        return;
    }
    c->streams = c->cols = c->rows = 0;
    conn_watch(c, TALK_VIEW, p, cursor);
}

/* Not while something waits to be sent: whoever is inside may change the size as
 * often as it likes, and the last one is what counts. */
static void send_screen(struct conn *c)
{
    const struct proc *p = c->watch.proc;
    struct init_screen m = {.cursor = c->watch.cursor, .end = p->ring.end, .pid = p->record.pid};

    term_size(p, &m.cols, &m.rows);
    if (c->full || (m.cols == c->cols && m.rows == c->rows))
        return;
    c->cols = m.cols;
    c->rows = m.rows;
    conn_send(c, INIT_SCREEN, &m);
}

/* The size first: what is printed next may be made for it. */
void view_pump(struct conn *c)
{
    send_screen(c);
    if (!c->closing)
        stream_pump(c);
}

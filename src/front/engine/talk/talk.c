/* talk.c - see talk.h. A line is one connection to an init; a talk has one for itself as long as it
 * lasts. An init's messages are checked against what may come, and never trusted.
 *
 * The way of a byte of output: line_read(), frame() and deliver() here; got_output() in
 * run/stream.c; the plane's on_output, which gives it to call_output() in front/plane/call.c. */
#include "front/engine/talk/talk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "mem/mem.h"

#define TALK_CONNECT_MS 10000     /* to hello, also for talks that have no deadline */
#define TALK_KEEP_OUT (64u << 10) /* a larger send buffer is freed once empty */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16; Debian 12's headers do not know it */
#endif

enum line_state {
    LINE_WAITING, /* the listener's queue is full: connect again soon */
    LINE_SILENT,  /* connected; hello has not come */
    LINE_OPEN,    /* hello was right; busy if it has a talk, else idle */
    LINE_DEAD,    /* closed; freed when no function uses it any more */
};

struct line {
    struct talk_hub *hub;
    struct talk_peer *peer;
    enum line_state state;
    int fd;
    struct loop_io io;
    struct loop_timer timer; /* retry of connect, or end of idleness */
    struct loop_later again; /* parse what is left after a pause */
    struct list idle;
    struct talk *talk;
    uint32_t seq;
    bool inside; /* being parsed: must not be freed */
    bool fed;    /* more than the request was sent, and may cross the last answer:
                  * init could answer it during the next talk */
    struct buf left, out;
};

struct talk_hub {
    struct loop *loop;
    int run_fd;
    size_t nconns, nidle;
    /* One memory for all reads: what arrived is parsed in place, and only an
     * unfinished frame is copied to its connection. */
    char scratch[TALK_IN_MAX];
};

static void line_close(struct line *c);

/* ---- the end of a talk ---- */

static void tell_quiet(struct loop_later *l)
{
    struct talk_peer *p = CONTAINER_OF(l, struct talk_peer, quiet);

    if (p->on_quiet != NULL)
        p->on_quiet(p);
}

static void talk_count(struct talk *t, bool starting)
{
    struct talk_peer *p = t->peer;

    if (t->starting == starting)
        return;
    t->starting = starting;
    p->nstarts += starting ? 1u : -1u;
    if (p->nstarts == 0 && p->on_quiet != NULL)
        loop_defer(p->hub->loop, &p->quiet, tell_quiet);
}

static void talk_detach(struct talk *t)
{
    talk_count(t, false);
    if (t->line != NULL) {
        t->peer->used_ms = clock_real_ms();
        t->peer->nlasting -= t->kind->lasts;
    }
    t->line = NULL;
    list_del(&t->link);
    loop_timer_stop(t->hub->loop, &t->deadline);
}

static void talk_tell(struct loop_later *l)
{
    struct talk *t = CONTAINER_OF(l, struct talk, later);
    struct err why = t->why; /* the callback frees the talk */

    t->ops->on_fail(t, &why);
}

static void talk_fail(struct talk *t, const struct err *why)
{
    struct line *c = t->line;

    t->why = *why;
    talk_detach(t);
    if (c != NULL) {
        c->talk = NULL;
        line_close(c);
    }
    loop_defer(t->hub->loop, &t->later, talk_tell);
}

static void on_deadline(struct loop_timer *timer)
{
    struct talk *t = CONTAINER_OF(timer, struct talk, deadline);
    struct err e;

    err_set(&e, ERR_UNRESPONSIVE, "sandbox %s: its init did not answer in time", t->peer->id);
    talk_fail(t, &e);
}

/* Our own back-pressure is not the init's silence. */
static void talk_arm(struct talk *t)
{
    uint64_t ms = t->deadline_ms;

    if (t->line != NULL && t->line->state != LINE_OPEN && (ms == 0 || ms > TALK_CONNECT_MS))
        ms = TALK_CONNECT_MS;
    if (ms == 0 || t->paused)
        loop_timer_stop(t->hub->loop, &t->deadline);
    else
        loop_timer_set(t->hub->loop, &t->deadline, ms, on_deadline);
}

/* ---- lines: kept for the next talk, written to without waiting, closed ---- */

static void line_free(struct line *c)
{
    loop_undefer(&c->again);
    buf_free(&c->left);
    buf_free(&c->out);
    free(c);
}

static void line_leave_idle(struct line *c)
{
    if (list_empty(&c->idle))
        return;
    list_del(&c->idle);
    c->peer->nidle--;
    c->hub->nidle--;
    loop_timer_stop(c->hub->loop, &c->timer);
}

static void line_close(struct line *c)
{
    if (c->state == LINE_DEAD)
        return;
    line_leave_idle(c);
    c->state = LINE_DEAD;
    c->hub->nconns--;
    c->peer->nlines--;
    loop_timer_stop(c->hub->loop, &c->timer);
    loop_io_stop(c->hub->loop, &c->io);
    drop_fd(&c->fd);
    if (!c->inside)
        line_free(c);
}

static void line_idle_over(struct loop_timer *t)
{
    line_close(CONTAINER_OF(t, struct line, timer));
}

static void line_release(struct line *c)
{
    struct talk_peer *p = c->peer;

    c->talk = NULL;
    if (c->out.len > 0 || c->fed || p->nidle >= TALK_IDLE_MAX || c->hub->nidle >= TALK_IDLE_TOTAL) {
        line_close(c);
        return;
    }
    loop_io_set(c->hub->loop, &c->io, EPOLLIN);
    list_add_head(&p->idle, &c->idle);
    p->nidle++;
    c->hub->nidle++;
    if (loop_timer_set(c->hub->loop, &c->timer, TALK_IDLE_MS, line_idle_over) < 0)
        line_close(c);
}

static void line_fail(struct line *c, const struct err *why)
{
    if (c->talk != NULL)
        talk_fail(c->talk, why);
    else
        line_close(c);
}

/* ---- out ---- */

/* Until the version is known nothing is asked: an init of another one might
 * understand something else. */
static bool line_may_send(const struct line *c)
{
    bool begun = c->talk != NULL && c->talk->sent;

    if (c->peer->held && !begun)
        return false;
    return c->state == LINE_OPEN ||
           (c->state == LINE_SILENT && init_is_understood(c->peer->version));
}

static void line_wait(struct line *c)
{
    const struct talk *t = c->talk;
    bool in = t == NULL || !t->paused;
    bool out = line_may_send(c) && (c->out.len > 0 || (t != NULL && t->fed));

    loop_io_set(c->hub->loop, &c->io,
                (in ? (uint32_t)EPOLLIN : 0) | (out ? (uint32_t)EPOLLOUT : 0));
}

static int line_flush(struct line *c, struct err *e)
{
    while (c->out.len > 0 && line_may_send(c)) {
        ssize_t n = send(c->fd, buf_data(&c->out), c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n < 0)
            return err_set(e, ERR_GONE, "sandbox %s: its init closed the connection", c->peer->id);
        buf_consume(&c->out, (size_t)n);
        if (c->talk != NULL)
            c->talk->sent = true;
    }
    if (c->out.len == 0 && c->out.cap > TALK_KEEP_OUT)
        buf_free(&c->out);
    return 0;
}

static void line_push(struct line *c)
{
    struct err e;

    if (line_flush(c, &e) < 0)
        line_fail(c, &e);
    else
        line_wait(c);
}

static void line_drain(struct line *c)
{
    struct talk *t;

    line_push(c);
    t = c->talk;
    if (c->state == LINE_DEAD || t == NULL || !t->fed || c->out.len > 0)
        return;
    t->fed = false;
    line_wait(c);
    if (t->ops->on_drain != NULL)
        t->ops->on_drain(t);
}

/* ---- what an init says ---- */

static void line_nonsense(struct line *c, const struct err *what)
{
    struct err e;

    err_set(&e, ERR_UNRESPONSIVE, "sandbox %s: invalid answer from its init: %s", c->peer->id,
            what->msg);
    line_fail(c, &e);
}

static void heard_hello(struct line *c, uint16_t type, const union talk_msg *m)
{
    struct err e;

    if (type != INIT_HELLO) {
        err_set(&e, ERR_INVALID, "no hello");
        line_nonsense(c, &e);
        return;
    }
    c->peer->version = m->init_hello.version;
    if (!init_is_understood(m->init_hello.version)) {
        err_set(&e, ERR_UNSUPPORTED,
                "sandbox %s was started by another version of Cove (its init speaks protocol %u, "
                "this one %u to %u); it can be listed, stopped and deleted",
                c->peer->id, m->init_hello.version, INIT_VERSION_OLDEST, INIT_VERSION);
        line_fail(c, &e);
        return;
    }
    c->state = LINE_OPEN;
    if (c->talk != NULL)
        talk_arm(c->talk);
    line_push(c);
}

static enum talk_step step_of(const struct talk_kind *k, uint16_t type)
{
    if (type == INIT_FAIL)
        return TALK_LAST;
    for (size_t i = 0; i < ARRAY_LEN(k->answers); i++)
        if (k->answers[i].type == type)
            return k->answers[i].step;
    return 0;
}

/* Failures that an init may speak of; what else it claims is our judgement to make. */
static const bool init_may_say[ERR_KIND_COUNT] = {
    [ERR_INVALID] = true,      [ERR_DENIED] = true,      [ERR_NOT_FOUND] = true,
    [ERR_TIMEOUT] = true,      [ERR_CONFLICT] = true,    [ERR_GONE] = true,
    [ERR_PRECONDITION] = true, [ERR_TOO_LARGE] = true,   [ERR_CANNOT_START] = true,
    [ERR_LIMIT] = true,        [ERR_UNSUPPORTED] = true, [ERR_DISK_FULL] = true,
    [ERR_UNAVAILABLE] = true,
};

void talk_failure(const struct init_fail *m, struct err *ret)
{
    enum err_kind kind = err_from_code(m->code);

    err_set(ret, init_may_say[kind] ? kind : ERR_INTERNAL, "%s", m->message);
    ret->sys = (int)m->sys;
}

static void said_fail(struct talk *t, const struct init_fail *m)
{
    struct err e;

    talk_failure(m, &e);
    t->ops->on_fail(t, &e);
}

/* The connection is released before the last answer is delivered, so that the callback may use
 * it for the next request. */
static int deliver(struct line *c, uint16_t type, const union talk_msg *m, struct err *e)
{
    struct talk *t = c->talk;
    enum talk_step step = step_of(t->kind, type);

    if (step == 0)
        return err_set(e, ERR_INVALID, "an answer of type %u to a request of type %u", type,
                       t->kind->request);
    if (step == TALK_MORE) {
        t->heard = true;
        talk_count(t, false);
        talk_arm(t);
        return t->ops->on_msg(t, type, m, e);
    }
    talk_detach(t);
    line_release(c);
    if (type == INIT_FAIL)
        said_fail(t, &m->init_fail);
    else if (t->ops->on_msg(t, type, m, e) < 0) {
        t->why = *e;
        err_set(&t->why, ERR_UNRESPONSIVE, "sandbox %s: invalid answer from its init: %s",
                t->peer->id, e->msg);
        loop_defer(t->hub->loop, &t->later, talk_tell);
    }
    return 0;
}

static int frame(struct line *c, const struct wire_head *head, const char *body, struct err *e)
{
    const struct wire_msg *m = init_msg(head->type);
    union talk_msg msg;

    if (m == NULL)
        return err_set(e, ERR_INVALID, "an unknown message %u", head->type);
    if (wire_get(m, body, head->len, &msg, e) < 0)
        return -1;
    if (c->state == LINE_SILENT) {
        heard_hello(c, head->type, &msg);
        return 0;
    }
    if (c->talk == NULL)
        return err_set(e, ERR_INVALID, "%s without a request", m->name);
    if (head->seq != c->talk->seq)
        return err_set(e, ERR_INVALID, "%s to request %u instead of %u", m->name, head->seq,
                       c->talk->seq);
    return deliver(c, head->type, &msg, e);
}

static bool is_listening(const struct line *c)
{
    return c->state != LINE_DEAD && !(c->talk != NULL && c->talk->paused);
}

static enum wire_next heard(void *arg, const struct wire_head *head, const char *body,
                            struct err *e)
{
    struct line *c = arg;

    if (frame(c, head, body, e) < 0)
        return WIRE_BROKEN;
    return is_listening(c) ? WIRE_NEXT : WIRE_STOP;
}

/* Delivers every whole frame of what was read. A callback may pause, end or fail the talk, or begin
 * another one on this connection. What is left afterwards is kept. */
static void line_parse(struct line *c, size_t fresh)
{
    /* A view of the scratch, never grown and never freed. */
    struct buf in = {.mem = c->hub->scratch, .len = c->left.len + fresh, .max = TALK_IN_MAX};
    struct err e;

    c->inside = true;
    if (is_listening(c) && wire_pump(&in, TALK_FRAME_MAX, heard, c, &e) < 0)
        line_nonsense(c, &e);
    c->inside = false;
    if (c->state == LINE_DEAD) {
        line_free(c);
        return;
    }
    buf_clear(&c->left);
    if (in.len == 0) {
        buf_free(&c->left);
    } else if (buf_add(&c->left, buf_data(&in), in.len) < 0) {
        err_set(&e, ERR_INTERNAL, "sandbox %s: out of memory", c->peer->id);
        line_fail(c, &e);
    }
}

static void line_again(struct loop_later *l)
{
    struct line *c = CONTAINER_OF(l, struct line, again);

    if (c->left.len > 0)
        memcpy(c->hub->scratch, buf_data(&c->left), c->left.len);
    line_parse(c, 0);
}

static void line_read(struct line *c)
{
    char *scratch = c->hub->scratch;
    struct err e;
    ssize_t n;

    if (c->again.queued) /* what came before is parsed first; epoll will say it again */
        return;
    if (c->left.len > 0)
        memcpy(scratch, buf_data(&c->left), c->left.len);
    /* No ancillary buffer: an fd that an init sends is dropped by the kernel. */
    n = recv(c->fd, scratch + c->left.len, TALK_IN_MAX - c->left.len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        err_set(&e, ERR_GONE, "sandbox %s: its init closed the connection", c->peer->id);
        line_fail(c, &e);
        return;
    }
    line_parse(c, (size_t)n);
}

static void line_on_io(struct loop_io *io, uint32_t events)
{
    struct line *c = CONTAINER_OF(io, struct line, io);

    if (events & EPOLLOUT) {
        c->inside = true;
        line_drain(c);
        c->inside = false;
        if (c->state == LINE_DEAD) {
            line_free(c);
            return;
        }
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
        return;
    /* A hang-up is reported whether we listen or not. What the peer still had to
     * say is read after the pause; until then the socket is not watched. */
    if (c->talk != NULL && c->talk->paused)
        loop_io_stop(c->hub->loop, &c->io);
    else
        line_read(c);
}

/* ---- connecting ---- */

static void line_retry(struct loop_timer *t);

int talk_connect(const struct talk_hub *h, int fd, const char *id)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    str_fmt(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", h->run_fd, id);
    return connect(fd, (struct sockaddr *)&a, sizeof(a));
}

int talk_unreachable(const char *id, int sys, struct err *e)
{
    if (sys == ECONNREFUSED || sys == ENOENT)
        return err_set(e, ERR_GONE, "sandbox %s: its init has ended", id);
    return err_set(e, ERR_UNRESPONSIVE, "sandbox %s: its init cannot be reached: %s", id,
                   strerror(sys));
}

static int line_try(struct line *c, struct err *e)
{
    int off = 0;

    /* Before init can send one: fds are accepted only by fdpass.c. */
    setsockopt(c->fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
    if (talk_connect(c->hub, c->fd, c->peer->id) < 0) {
        if (errno == EAGAIN)
            return loop_timer_set(c->hub->loop, &c->timer, TALK_RETRY_MS, line_retry) < 0
                       ? err_set(e, ERR_INTERNAL, "out of memory")
                       : 0;
        return talk_unreachable(c->peer->id, errno, e);
    }
    c->state = LINE_SILENT;
    return loop_io_start(c->hub->loop, &c->io, c->fd, EPOLLIN, line_on_io, e);
}

static void line_retry(struct loop_timer *t)
{
    struct line *c = CONTAINER_OF(t, struct line, timer);
    struct err e;

    if (line_try(c, &e) < 0)
        line_fail(c, &e);
    else if (c->state == LINE_SILENT)
        line_push(c);
}

static struct line *line_new(struct talk_peer *p, struct err *e)
{
    struct line *c = mem_zeroed(1, sizeof(*c));

    *c = (struct line){.hub = p->hub, .peer = p, .io.fd = -1};
    list_init(&c->idle);
    buf_init(&c->left, TALK_IN_MAX);
    buf_init(&c->out, TALK_OUT_MAX);
    p->hub->nconns++;
    p->nlines++;
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0)
        err_set(e, ERR_UNAVAILABLE, "too many connections to sandboxes: %s; try again",
                strerror(errno));
    if (c->fd < 0 || line_try(c, e) < 0) {
        line_close(c);
        return NULL;
    }
    return c;
}

static struct line *line_get(struct talk_peer *p, struct err *e)
{
    struct line *c = LIST_FIRST(&p->idle, struct line, idle);

    if (c != NULL) {
        line_leave_idle(c);
        return c;
    }
    if (p->nlines < TALK_LINES_MAX)
        return line_new(p, e);
    err_set(e, ERR_LIMIT, "%u calls to sandbox %s are open already; try again", p->nlines, p->id);
    return NULL;
}

/* ---- talks ---- */

static int talk_put(struct talk *t, uint16_t type, const void *msg, struct err *e)
{
    struct line *c = t->line;

    if (wire_put(&c->out, init_msg(type), t->seq, msg, e) < 0)
        return -1;
    return line_flush(c, e);
}

void talk_begin(struct talk *t, struct talk_peer *p, const struct talk_kind *kind, const void *msg,
                uint64_t deadline_ms, const struct talk_ops *ops)
{
    struct err e;

    *t = (struct talk){.hub = p->hub, .peer = p, .kind = kind, .ops = ops};
    t->deadline_ms = deadline_ms;
    list_init(&t->link);
    if (kind->lasts && p->nlasting >= TALK_LASTING_MAX)
        err_set(&e, ERR_LIMIT, "%u calls to sandbox %s are waiting already; try again", p->nlasting,
                p->id);
    else
        t->line = line_get(p, &e);
    if (t->line == NULL) {
        talk_fail(t, &e);
        return;
    }
    p->nlasting += kind->lasts;
    list_add_tail(&p->talks, &t->link);
    p->used_ms = clock_real_ms();
    t->line->talk = t;
    t->seq = ++t->line->seq;
    talk_count(t, kind->starts && !p->held);
    if (talk_put(t, kind->request, msg, &e) < 0) {
        talk_fail(t, &e);
        return;
    }
    talk_arm(t);
    line_wait(t->line);
}

void talk_begin_failed(struct talk *t, struct talk_hub *h, const struct talk_ops *ops,
                       const struct err *why)
{
    *t = (struct talk){.hub = h, .ops = ops};
    list_init(&t->link);
    talk_fail(t, why);
}

size_t talk_queued(const struct talk *t)
{
    return t->line == NULL ? 0 : t->line->out.len;
}

size_t talk_send(struct talk *t, uint16_t type, const void *msg)
{
    struct err e;

    if (t->line == NULL)
        return 0;
    t->fed = t->line->fed = true;
    if (talk_put(t, type, msg, &e) < 0) {
        talk_fail(t, &e);
        return 0;
    }
    line_wait(t->line);
    return t->line->out.len;
}

void talk_set_deadline(struct talk *t, uint64_t deadline_ms)
{
    t->deadline_ms = deadline_ms;
    if (t->line != NULL)
        talk_arm(t);
}

static void talk_hear_again(struct talk *t)
{
    struct line *c = t->line;
    struct err e;

    /* The peer hung up during the pause; see line_on_io(). */
    if (c->io.cb == NULL && c->state != LINE_WAITING &&
        loop_io_start(t->hub->loop, &c->io, c->fd, EPOLLIN, line_on_io, &e) < 0) {
        talk_fail(t, &e);
        return;
    }
    if (c->left.len > 0)
        loop_defer(t->hub->loop, &c->again, line_again);
    line_wait(c);
}

void talk_pause(struct talk *t, bool paused)
{
    if (t->line == NULL || t->paused == paused)
        return;
    t->paused = paused;
    talk_arm(t);
    if (paused)
        line_wait(t->line);
    else
        talk_hear_again(t);
}

void talk_end(struct talk *t)
{
    struct line *c = t->line;

    if (t->hub == NULL)
        return;
    loop_undefer(&t->later);
    talk_detach(t);
    if (c != NULL) {
        c->talk = NULL;
        line_close(c);
    }
}

/* ---- peers and the hub ---- */

void talk_peer_init(struct talk_peer *p, struct talk_hub *h, const char *id)
{
    *p = (struct talk_peer){.hub = h, .id = id};
    list_init(&p->talks);
    list_init(&p->idle);
}

void talk_peer_hold(struct talk_peer *p, bool held)
{
    struct talk *t;

    p->held = held;
    LIST_EACH (&p->talks, t, struct talk, link) {
        if (held ? !t->sent : t->kind->starts && !t->heard)
            talk_count(t, !held);
        line_push(t->line);
    }
}

bool talk_peer_waits(const struct talk_peer *p)
{
    for (const struct list *l = p->talks.next; l != &p->talks; l = l->next) {
        const struct talk *t = CONTAINER_OF(l, const struct talk, link);

        if (t->kind->starts && !t->sent)
            return true;
    }
    return false;
}

void talk_peer_refuse(struct talk_peer *p, const struct err *why)
{
    struct talk *t;

    LIST_EACH (&p->talks, t, struct talk, link)
        if (t->kind->starts && !t->sent)
            talk_fail(t, why);
}

void talk_peer_reset(struct talk_peer *p, const struct err *why)
{
    struct talk *t;
    struct line *c;

    while ((t = LIST_FIRST(&p->talks, struct talk, link)) != NULL)
        talk_fail(t, why);
    while ((c = LIST_FIRST(&p->idle, struct line, idle)) != NULL)
        line_close(c);
    p->version = 0;
    p->held = false;
}

struct talk_hub *talk_hub_new(struct loop *loop, int run_fd)
{
    struct talk_hub *h = mem_zeroed(1, sizeof(*h));

    h->loop = loop;
    h->run_fd = run_fd;
    h->nconns = h->nidle = 0;
    return h;
}

void talk_hub_free(struct talk_hub *h)
{
    free(h);
}

size_t talk_hub_conns(const struct talk_hub *h)
{
    return h->nconns;
}

/* wait.c - see wait.h. */
#include "init/wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/own.h"
#include "init/probe.h"
#include "init/serve_state.h"

/* ---- in time ---- */

static void on_late(struct loop_timer *t)
{
    struct conn *c = CONTAINER_OF(t, struct conn, timer);
    struct err e;

    err_set(&e, ERR_TIMEOUT, "it did not happen in time");
    conn_fail(c, &e);
}

void wait_deadline(struct conn *c, uint64_t timeout_ms)
{
    uint64_t ms = timeout_ms < PROC_TIME_MAX ? timeout_ms : PROC_TIME_MAX;
    struct err e;

    if (timeout_ms == 0 || loop_timer_set(c->serve->loop, &c->timer, ms, on_late) == 0)
        return;
    err_set(&e, ERR_UNAVAILABLE, "out of memory");
    conn_fail(c, &e);
}

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
    wait_deadline(c, timeout_ms);
    conn_watch(c, TALK_WAIT, p, 0);
}

/* ---- a port ---- */

/* Both families are tried in each round: a server may listen on either. */
struct port_wait {
    struct conn *conn;
    struct loop_timer again;
    unsigned port, status_min, status_max; /* of HTTP, if there is a request */
    struct port_try {
        struct port_wait *wait;
        struct loop_io io;
        int fd;
        uint64_t since_ms;
        char answer[PROBE_ANSWER_MAX];
        size_t got;
    } tries[2];
    struct buf request; /* empty: it is enough that somebody listens */
};

static void drop_try(struct port_try *t)
{
    loop_io_stop(t->wait->conn->serve->loop, &t->io);
    drop_fd(&t->fd);
}

static void listens(struct port_wait *w)
{
    struct conn *c = w->conn;
    struct init_ok m = {.value = w->port};

    conn_send(c, INIT_OK, &m);
    conn_done(c);
}

/* What the server says is hostile: a dozen bytes of it are looked at. Whatever is
 * not the wanted answer is asked for again in the next round. */
static void try_answered(struct loop_io *io, uint32_t events)
{
    struct port_try *t = CONTAINER_OF(io, struct port_try, io);
    struct port_wait *w = t->wait;
    ssize_t n = recv(t->fd, t->answer + t->got, sizeof(t->answer) - t->got, MSG_DONTWAIT);
    int status;

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    t->got += n > 0 ? (size_t)n : 0;
    status = probe_status(t->answer, t->got);
    if (n > 0 && status == 0)
        return;
    drop_try(t);
    if (status > 0 && (unsigned)status >= w->status_min && (unsigned)status <= w->status_max)
        listens(w);
}

/* Connected. The request fits any socket's buffer; if not, the next round tries. */
static void try_ask(struct port_try *t)
{
    const struct buf *request = &t->wait->request;
    struct loop *loop = t->wait->conn->serve->loop;
    struct err e;

    loop_io_stop(loop, &t->io);
    t->got = 0;
    if (send(t->fd, buf_data(request), request->len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
            (ssize_t)request->len ||
        loop_io_start(loop, &t->io, t->fd, EPOLLIN, try_answered, &e) < 0)
        drop_try(t);
}

static void try_ready(struct loop_io *io, uint32_t events)
{
    struct port_try *t = CONTAINER_OF(io, struct port_try, io);
    int error = 0;
    socklen_t len = sizeof(error);

    (void)events;
    getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error == 0 && dial_is_self(t->fd))
        error = ECONNREFUSED;
    if (error == 0 && t->wait->request.len > 0) {
        try_ask(t);
        return;
    }
    drop_try(t);
    if (error == 0)
        listens(t->wait);
}

/* True when it is connected already, and that is enough. */
static bool try_connect(struct port_try *t, const void *addr, socklen_t len)
{
    struct err e;

    if (t->fd >= 0 && clock_mono_ms() - t->since_ms < WAIT_HTTP_MS)
        return false;
    drop_try(t);
    t->since_ms = clock_mono_ms();
    t->fd = socket(*(const sa_family_t *)addr, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (t->fd < 0)
        return false;
    if (connect(t->fd, addr, len) == 0) {
        bool nobody = dial_is_self(t->fd);

        if (!nobody && t->wait->request.len > 0) {
            try_ask(t);
            return false;
        }
        drop_try(t);
        return !nobody;
    }
    if (errno != EINPROGRESS ||
        loop_io_start(t->wait->conn->serve->loop, &t->io, t->fd, EPOLLOUT, try_ready, &e) < 0)
        drop_try(t);
    return false;
}

static bool try_both(struct port_wait *w)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)w->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                              .sin6_port = htons((uint16_t)w->port),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};

    return try_connect(&w->tries[0], &v4, sizeof(v4)) || try_connect(&w->tries[1], &v6, sizeof(v6));
}

static void try_again(struct loop_timer *t)
{
    struct port_wait *w = CONTAINER_OF(t, struct port_wait, again);

    if (try_both(w))
        listens(w);
    else
        loop_timer_set(w->conn->serve->loop, &w->again, WAIT_PORT_RETRY_MS, try_again);
}

void port_pump(struct conn *c)
{
    if (c->watch.proc != NULL && c->watch.proc->output == OUTPUT_ENDED)
        conn_fail_gone(c, "the process ended before the port was open");
}

static void port_free(struct port_wait *w)
{
    if (w == NULL)
        return;
    drop_try(&w->tries[0]);
    drop_try(&w->tries[1]);
    loop_timer_stop(w->conn->serve->loop, &w->again);
    buf_free(&w->request);
    free(w);
}

static struct port_wait *port_new(struct conn *c, const struct init_wait_port *m, struct err *e)
{
    struct port_wait *w;

    if (*m->path != '\0' && !probe_path_is_valid(m->path)) {
        err_set(e, ERR_INVALID, "wait_port: the path is none");
        return NULL;
    }
    w = calloc(1, sizeof(*w));
    if (w == NULL) {
        err_set(e, ERR_UNAVAILABLE, "out of memory");
        return NULL;
    }
    *w = (struct port_wait){.conn = c,
                            .port = m->port,
                            .status_min = m->status_min,
                            .status_max = m->status_max,
                            .request = BUF_INIT(PROBE_PATH_MAX + 256)};
    if (*m->path != '\0')
        probe_request(&w->request, m->path, m->port);
    return w;
}

void wait_port(struct conn *c, struct proc *p, const struct init_wait_port *m)
{
    struct err e;
    struct port_wait *w = port_new(c, m, &e);

    if (w == NULL) {
        conn_fail(c, &e);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(w->tries); i++)
        w->tries[i] = (struct port_try){.wait = w, .fd = -1};
    c->port = w;
    c->talk = TALK_PORT;
    wait_deadline(c, m->timeout_ms);
    if (c->talk == TALK_PORT && p != NULL)
        conn_watch(c, TALK_PORT, p, 0);
    if (c->talk == TALK_PORT)
        try_again(&w->again);
}

/* ---- a text ---- */

/* Knuth, Morris and Pratt: one pass, no going back, and the state of a half match
 * survives between chunks; one state per stream, so that a line of one is found
 * even if the other spoke in the middle of it. */
struct log_wait {
    uint32_t len;
    uint32_t matched[2]; /* how much of the text the stream's last bytes are */
    uint16_t *back;      /* where to go on when the next byte does not fit; points behind text */
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

/* How many bytes were read up to the end of the match, or 0: none in these. */
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

static void log_found(struct conn *c)
{
    struct init_ok m = {.value = c->watch.cursor};

    conn_send(c, INIT_OK, &m);
    conn_done(c);
}

/* The next piece of the ring. True when the text ends in it. */
static bool log_step(struct conn *c, const struct ring *r)
{
    struct log_wait *w = c->log;
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
            log_found(c);
            return;
        }
        if (c->watch.cursor - from >= CONN_TURN_MAX) {
            loop_defer(c->serve->loop, &c->later, log_later);
            return;
        }
    }
    if (p->output == OUTPUT_ENDED)
        conn_fail_gone(c, "the process ended before it printed that");
}

void wait_log(struct conn *c, struct proc *p, const struct init_wait_log *m)
{
    struct err e;

    if (m->text.len == 0) {
        err_set(&e, ERR_INVALID, "wait_log: the text is empty");
        conn_fail(c, &e);
        return;
    }
    c->log = log_new(&m->text);
    if (c->log == NULL) {
        err_set(&e, ERR_UNAVAILABLE, "out of memory");
        conn_fail(c, &e);
        return;
    }
    c->streams = m->streams;
    c->talk = TALK_LOG;
    wait_deadline(c, m->timeout_ms);
    if (c->talk == TALK_LOG)
        conn_watch(c, TALK_LOG, p, m->since);
}

void wait_free(struct conn *c)
{
    port_free(take_ptr(&c->port));
    free(take_ptr(&c->log));
    dial_free(take_ptr(&c->dial));
    upload_free(take_ptr(&c->upload));
    list_del(&c->asking);
}

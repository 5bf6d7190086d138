/* serve.c - see serve.h. One row per request; what takes longer than an answer is
 * a talk, see conn.h. */
#include "init/serve.h"

#include "base/own.h"
#include "init/file.h"
#include "init/serve_state.h"
#include "init/session.h"
#include "init/wait.h"

static void send_ok(struct conn *c, uint64_t value)
{
    struct init_ok m = {.value = value};

    conn_send(c, INIT_OK, &m);
    conn_done(c);
}

/* The process a request names; NULL after answering that there is none. */
static struct proc *named(struct conn *c, const char *id)
{
    struct err e;
    struct proc *p = proc_find(&c->serve->procs, id, &e);

    if (p == NULL)
        conn_fail(c, &e);
    return p;
}

static void on_start(struct conn *c, const union request *r)
{
    struct init_started m = {0};
    struct err e = {0};
    struct proc *p;
    int ret = proc_start(&c->serve->procs, &r->start, &p, &e);

    if (ret < 0) {
        conn_fail(c, &e);
        return;
    }
    m.existed = ret > 0;
    m.id = p->record.id;
    m.pid = p->record.pid;
    m.started_ms = p->record.started_ms;
    conn_send(c, INIT_STARTED, &m);
    c->streams = 0;
    if (c->closing) {
        proc_unwatched(p);
        return;
    }
    if ((r->start.flags & INIT_START_OWN) != 0 && !m.existed)
        conn_watch(c, TALK_OWN, p, 0);
    else if ((r->start.flags & INIT_START_FOLLOW) != 0)
        conn_watch(c, TALK_FOLLOW, p, 0);
    else
        conn_done(c);
}

static enum talk talk_of(uint32_t flags)
{
    if ((flags & INIT_ATTACH_FOLLOW) == 0)
        return TALK_LOOK;
    return (flags & INIT_ATTACH_OWN) != 0 ? TALK_OWN : TALK_FOLLOW;
}

static void on_attach(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->attach.id);
    struct err e;

    if (p == NULL)
        return;
    if (stream_check(p, r->attach.since, &e) < 0) {
        conn_fail(c, &e);
        return;
    }
    c->streams = r->attach.streams;
    c->stop = p->ring.end;
    conn_watch(c, talk_of(r->attach.flags), p, r->attach.since);
}

static void on_stdin(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->in.id);
    struct err e = {0};

    if (p == NULL)
        return;
    if (r->in.close && proc_is_term(p)) {
        err_set(&e, ERR_INVALID, "%s is a terminal: what is typed into it has no end",
                p->record.id);
        conn_fail(c, &e);
        return;
    }
    if (feed_add(p, &r->in.data, &e) < 0) {
        conn_fail(c, &e);
        return;
    }
    if (r->in.close)
        feed_finish(p);
    send_ok(c, 0);
}

/* From the owner, in the middle of its talk: nothing is answered, and what a
 * process no longer reads is dropped as a pipe would. */
static void on_own_stdin(struct conn *c, const union request *r)
{
    struct proc *p = c->watch.proc;
    struct err e;

    if (feed_add(p, &r->in.data, &e) < 0 && e.kind == ERR_UNAVAILABLE)
        conn_close(c); /* out of memory: better cut than a gap */
    else if (r->in.close)
        feed_finish(p);
}

static void on_signal(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->signal.id);
    struct err e = {0};

    if (p == NULL)
        return;
    if (proc_signal(p, (int)r->signal.signal, r->signal.to, &e) < 0)
        conn_fail(c, &e);
    else
        send_ok(c, 0);
}

/* The terminal a request names; NULL after answering that there is none. */
static struct proc *named_term(struct conn *c, const char *id)
{
    struct proc *p = proc_find(&c->serve->procs, id, &(struct err){0});
    struct err e;

    if (p != NULL && proc_is_term(p))
        return p;
    err_set(&e, ERR_NOT_FOUND, "no terminal %s in this sandbox", id);
    conn_fail(c, &e);
    return NULL;
}

static void on_kill(struct conn *c, const union request *r)
{
    bool forget = (r->kill.flags & INIT_KILL_FORGET) != 0;
    struct proc *p = forget ? named_term(c, r->kill.id) : named(c, r->kill.id);

    if (p == NULL)
        return;
    if (forget)
        proc_forget(p);
    proc_kill(p, r->kill.grace_ms);
    conn_watch(c, TALK_KILL, p, 0);
}

void list_pump(struct conn *c)
{
    struct proc *p;
    struct init_end end = {0};

    LIST_EACH (&c->serve->procs.all, p, struct proc, link) {
        struct init_proc m;

        if (p->serial < c->stop || p->unnamed || proc_is_own(p) != c->own ||
            p->session != c->session)
            continue;
        if (!conn_has_room(c))
            return;
        proc_fill(p, &m);
        m.viewers = view_count(c->serve, p);
        conn_send(c, INIT_PROC, &m);
        if (c->closing)
            return;
        c->stop = p->serial + 1;
    }
    conn_send(c, INIT_END, &end);
    conn_done(c);
}

static void on_list(struct conn *c, const union request *r)
{
    c->own = r->list.own != 0;
    c->session = 0;
    c->talk = TALK_LIST;
    c->stop = 0;
    conn_pump(c);
}

static void on_get(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->get.id);
    struct init_proc m;

    if (p == NULL)
        return;
    proc_fill(p, &m);
    m.viewers = view_count(c->serve, p);
    conn_send(c, INIT_PROC, &m);
    conn_done(c);
}

static void on_wait(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->wait.id);

    if (p != NULL)
        wait_exit(c, p, r->wait.timeout_ms);
}

static void on_wait_port(struct conn *c, const union request *r)
{
    struct proc *p = NULL;

    if (r->port.id[0] != '\0' && (p = named(c, r->port.id)) == NULL)
        return;
    wait_port(c, p, &r->port);
}

static void on_wait_log(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->log.id);

    if (p != NULL)
        wait_log(c, p, &r->log);
}

static void on_monitor(struct conn *c, const union request *r)
{
    (void)r;
    c->talk = TALK_MONITOR;
}

void journal_pump(struct conn *c)
{
    const struct journal *j = &c->serve->procs.journal;

    for (const struct journal_line *l = journal_from(j, c->stop); l != NULL && conn_has_room(c);
         l = journal_after(j, l)) {
        c->stop = l->m.seq + 1;
        conn_send(c, INIT_LINE, &l->m);
    }
}

static void on_journal(struct conn *c, const union request *r)
{
    c->talk = TALK_JOURNAL;
    c->stop = r->journal.since;
    conn_pump(c);
}

static void on_view(struct conn *c, const union request *r)
{
    struct proc *p = named_term(c, r->view.id);

    if (p != NULL)
        view_start(c, p, &r->view);
}

static void on_resize(struct conn *c, const union request *r)
{
    struct proc *p = named_term(c, r->resize.id);
    struct err e;

    if (p == NULL)
        return;
    if (term_resize(p, r->resize.cols, r->resize.rows, &e) < 0)
        conn_fail(c, &e);
    else
        send_ok(c, 0);
}

/* From a viewer, in the middle of its talk; one that comes too late is nothing. */
static void on_view_resize(struct conn *c, const union request *r)
{
    struct err e;

    term_resize(c->watch.proc, r->resize.cols, r->resize.rows, &e);
}

static void on_open(struct conn *c, const union request *r)
{
    struct err e;
    int fd = file_open(c->serve->procs.root_fd, &r->open, &e);

    if (fd < 0)
        conn_fail(c, &e);
    else
        conn_pass(c, INIT_FD_FILE, fd);
}

static void send_file(struct conn *c, const struct file_answer *a, int r, const struct err *e)
{
    if (r < 0) {
        conn_fail(c, e);
        return;
    }
    conn_send(c, INIT_FILE, &a->file);
    conn_done(c);
}

static void on_look(struct conn *c, const union request *r)
{
    autofree struct file_answer *a = malloc(sizeof(*a));
    struct err e;

    if (a == NULL) {
        err_set(&e, ERR_UNAVAILABLE, "out of memory");
        conn_fail(c, &e);
        return;
    }
    send_file(c, a, file_look(c->serve->procs.root_fd, &r->look, a, &e), &e);
}

static void on_write(struct conn *c, const union request *r)
{
    autofree struct file_answer *a = malloc(sizeof(*a));
    struct err e;

    if (a == NULL) {
        err_set(&e, ERR_UNAVAILABLE, "out of memory");
        conn_fail(c, &e);
        return;
    }
    send_file(c, a, file_write(c->serve->procs.root_fd, &r->write, a, &e), &e);
}

static void on_connect(struct conn *c, const union request *r)
{
    dial_port(c, &r->connect);
}

/* clang-format off */
static const struct {
    uint16_t type;
    enum talk in; /* the talk in which it may come */
    void (*serve)(struct conn *c, const union request *r);
} requests[] = {
    {INIT_START,     TALK_NONE, on_start},
    {INIT_ATTACH,    TALK_NONE, on_attach},
    {INIT_STDIN,     TALK_NONE, on_stdin},
    {INIT_STDIN,     TALK_OWN,  on_own_stdin},
    {INIT_STDIN,     TALK_VIEW, on_own_stdin},
    {INIT_SIGNAL,    TALK_NONE, on_signal},
    {INIT_KILL,      TALK_NONE, on_kill},
    {INIT_LIST,      TALK_NONE, on_list},
    {INIT_GET,       TALK_NONE, on_get},
    {INIT_WAIT,      TALK_NONE, on_wait},
    {INIT_WAIT_PORT, TALK_NONE, on_wait_port},
    {INIT_WAIT_LOG,  TALK_NONE, on_wait_log},
    {INIT_MONITOR,   TALK_NONE, on_monitor},
    {INIT_JOURNAL,   TALK_NONE, on_journal},
    {INIT_VIEW,      TALK_NONE, on_view},
    {INIT_RESIZE,    TALK_NONE, on_resize},
    {INIT_RESIZE,    TALK_VIEW, on_view_resize},
    {INIT_OPEN,      TALK_NONE, on_open},
    {INIT_LOOK,      TALK_NONE, on_look},
    {INIT_WRITE,     TALK_NONE, on_write},
    {INIT_CONNECT,   TALK_NONE, on_connect},
    {INIT_SESSION_CREATE,    TALK_NONE,   on_session_create},
    {INIT_SESSION_LIST,      TALK_NONE,   on_session_list},
    {INIT_SESSION_GET,       TALK_NONE,   on_session_get},
    {INIT_SESSION_DELETE,    TALK_NONE,   on_session_delete},
    {INIT_SESSION_EXEC,      TALK_NONE,   on_session_exec},
    {INIT_SESSION_MORE,      TALK_UPLOAD, on_session_more},
    {INIT_SESSION_INTERRUPT, TALK_NONE,   on_session_interrupt},
    {INIT_SESSION_COMMANDS,  TALK_NONE,   on_session_commands},
    {INIT_SESSION_START,     TALK_NONE,   on_session_start},
};
/* clang-format on */

static void serve_row(struct conn *c, size_t row, const struct wire_head *h, const char *body)
{
    union request r;
    struct err e;

    if (wire_get(init_msg(h->type), body, h->len, &r, &e) < 0) {
        conn_close(c);
        return;
    }
    if (c->talk == TALK_NONE)
        c->seq = h->seq;
    requests[row].serve(c, &r);
}

/* A type from a newer front is refused politely; a known one at the wrong time
 * means that we lost each other, and only a new connection helps. */
void serve_request(struct conn *c, const struct wire_head *h, const char *body)
{
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        if (requests[i].type == h->type && requests[i].in == c->talk) {
            serve_row(c, i, h, body);
            return;
        }
    }
    if (c->talk != TALK_NONE || init_msg(h->type) != NULL) {
        conn_close(c);
        return;
    }
    c->seq = h->seq;
    err_set(&e, ERR_UNSUPPORTED, "this sandbox's init (version %u) does not know request %u",
            INIT_VERSION, h->type);
    e.sys = 0;
    conn_fail(c, &e);
}

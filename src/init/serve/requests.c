/* requests.c - the two tables of the protocol (wire/init.h): which message may come in which
 * talk, and what each talk does. A request that takes longer than one answer starts a talk. */
#include "base/own.h"
#include "init/files/file.h"
#include "init/serve/internal.h"

/* The process a request names; NULL after answering that there is none. */
static struct proc *named(struct conn *c, const char *id)
{
    struct err e;
    struct proc *p = proc_find(&serve_of(c)->procs, id, &e);

    if (p == NULL)
        conn_fail(c, &e);
    return p;
}

/* The same for a terminal. */
static struct proc *named_terminal(struct conn *c, const char *id)
{
    struct proc *p = proc_find(&serve_of(c)->procs, id, &(struct err){0});

    if (p != NULL && proc_is_term(p))
        return p;
    conn_fail_with(c, ERR_NOT_FOUND, "no terminal %s in this sandbox", id);
    return NULL;
}

/* ---- processes ---- */

static void on_start(struct conn *c, const union request *r)
{
    struct init_started m = {0};
    struct err e = {0};
    struct proc *p;
    int ret = proc_start(&serve_of(c)->procs, &r->init_start, &p, &e);

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
    if (conn_is_closed(c)) {
        proc_unwatched(p);
    } else if ((r->init_start.flags & INIT_START_OWN) != 0 && !m.existed) {
        conn_begin(c, TALK_OWN, NULL);
        conn_watch(c, p, 0);
    } else if ((r->init_start.flags & INIT_START_FOLLOW) != 0) {
        conn_begin(c, TALK_FOLLOW, NULL);
        conn_watch(c, p, 0);
    } else {
        conn_done(c);
    }
}

static void on_attach(struct conn *c, const union request *r)
{
    const struct init_attach *m = &r->init_attach;
    struct proc *p = named(c, m->id);
    struct err e;

    if (p == NULL)
        return;
    if (stream_check(p, m->since, &e) < 0) {
        conn_fail(c, &e);
        return;
    }
    c->streams = m->streams;
    c->until = p->ring.end;
    conn_begin(c,
               (m->flags & INIT_ATTACH_FOLLOW) == 0 ? TALK_LOOK
               : (m->flags & INIT_ATTACH_OWN) != 0  ? TALK_OWN
                                                    : TALK_FOLLOW,
               NULL);
    conn_watch(c, p, m->since);
}

static void on_stdin(struct conn *c, const union request *r)
{
    const struct init_stdin *m = &r->init_stdin;
    struct proc *p = named(c, m->id);
    struct err e = {0};

    if (p == NULL)
        return;
    if (m->close && proc_is_term(p)) {
        conn_fail_with(c, ERR_INVALID, "close stdin of %s: it is a terminal; type ctrl-d instead",
                       p->record.id);
        return;
    }
    if (stdin_add(p, &m->data, &e) < 0) {
        conn_fail(c, &e);
        return;
    }
    if (m->close)
        stdin_finish(p);
    conn_ok(c, 0);
}

/* From the owner or a viewer, during its talk: there is no answer, and what a process no
 * longer reads is dropped, as by a pipe. */
static void on_typed(struct conn *c, const union request *r)
{
    struct proc *p = c->watch.proc;
    struct err e;

    if (stdin_add(p, &r->init_stdin.data, &e) < 0 && e.kind == ERR_UNAVAILABLE)
        conn_close(c); /* out of memory: a closed connection is better than a gap */
    else if (r->init_stdin.close)
        stdin_finish(p);
}

static void on_signal(struct conn *c, const union request *r)
{
    const struct init_signal *m = &r->init_signal;
    struct proc *p = named(c, m->id);
    struct err e = {0};

    if (p == NULL)
        return;
    if (proc_signal(p, (int)m->signal, m->to, &e) < 0)
        conn_fail(c, &e);
    else
        conn_ok(c, 0);
}

static void on_kill(struct conn *c, const union request *r)
{
    bool forget = (r->init_kill.flags & INIT_KILL_FORGET) != 0;
    struct proc *p = forget ? named_terminal(c, r->init_kill.id) : named(c, r->init_kill.id);

    if (p == NULL)
        return;
    if (forget)
        proc_forget(p);
    proc_kill(p, r->init_kill.grace_ms);
    conn_begin(c, TALK_KILL, NULL);
    conn_watch(c, p, 0);
}

static void list_pump(struct conn *c)
{
    struct proc *p;
    struct init_end end = {0};

    LIST_EACH (&serve_of(c)->procs.all, p, struct proc, link) {
        struct init_proc m;

        if (p->serial < c->next || p->unnamed || proc_is_own(p) != c->list.own ||
            p->session != c->list.session)
            continue;
        if (!conn_has_room(c))
            return;
        proc_fill(p, &m);
        m.viewers = view_count(serve_of(c), p);
        conn_send(c, INIT_PROC, &m);
        if (conn_is_closed(c))
            return;
        c->next = p->serial + 1;
    }
    conn_send(c, INIT_END, &end);
    conn_done(c);
}

static void on_list(struct conn *c, const union request *r)
{
    c->list.own = r->init_list.own != 0;
    c->list.session = 0;
    c->next = 0;
    conn_begin(c, TALK_LIST, NULL);
    conn_pump(c);
}

static void on_get(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->init_get.id);
    struct init_proc m;

    if (p == NULL)
        return;
    proc_fill(p, &m);
    m.viewers = view_count(serve_of(c), p);
    conn_send(c, INIT_PROC, &m);
    conn_done(c);
}

static void on_wait(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->init_wait.id);

    if (p != NULL)
        wait_exit(c, p, r->init_wait.timeout_ms);
}

static void on_wait_port(struct conn *c, const union request *r)
{
    struct proc *p = NULL;

    if (r->init_wait_port.id[0] != '\0' && (p = named(c, r->init_wait_port.id)) == NULL)
        return;
    port_wait(c, p, &r->init_wait_port);
}

static void on_wait_log(struct conn *c, const union request *r)
{
    struct proc *p = named(c, r->init_wait_log.id);

    if (p != NULL)
        wait_log(c, p, &r->init_wait_log);
}

/* ---- what happens in the sandbox ---- */

static void on_monitor(struct conn *c, const union request *r)
{
    (void)r;
    conn_begin(c, TALK_MONITOR, NULL);
}

static void journal_pump(struct conn *c)
{
    const struct journal *j = &serve_of(c)->procs.journal;

    for (const struct journal_line *l = journal_from(j, c->next); l != NULL && conn_has_room(c);
         l = journal_after(j, l)) {
        c->next = l->m.seq + 1;
        conn_send(c, INIT_LINE, &l->m);
    }
}

static void on_journal(struct conn *c, const union request *r)
{
    c->next = r->init_journal.since;
    conn_begin(c, TALK_JOURNAL, NULL);
    conn_pump(c);
}

/* ---- terminals ---- */

static void on_view(struct conn *c, const union request *r)
{
    struct proc *p = named_terminal(c, r->init_view.id);

    if (p != NULL)
        view_start(c, p, &r->init_view);
}

static void on_resize(struct conn *c, const union request *r)
{
    struct proc *p = named_terminal(c, r->init_resize.id);
    struct err e;

    if (p == NULL)
        return;
    if (term_resize(p, r->init_resize.cols, r->init_resize.rows, &e) < 0)
        conn_fail(c, &e);
    else
        conn_ok(c, 0);
}

/* From a viewer, during its talk: there is no answer, and one that comes after the end of the
 * terminal is dropped. */
static void on_view_resize(struct conn *c, const union request *r)
{
    struct err e;

    term_resize(c->watch.proc, r->init_resize.cols, r->init_resize.rows, &e);
}

/* ---- files and ports ---- */

static void on_open(struct conn *c, const union request *r)
{
    struct err e;
    int fd = file_open(serve_of(c)->procs.root_fd, &r->init_open, &e);

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

    if (a == NULL)
        conn_fail_with(c, ERR_UNAVAILABLE, "out of memory");
    else
        send_file(c, a, file_look(serve_of(c)->procs.root_fd, &r->init_look, a, &e), &e);
}

static void on_write(struct conn *c, const union request *r)
{
    autofree struct file_answer *a = malloc(sizeof(*a));
    struct err e;

    if (a == NULL)
        conn_fail_with(c, ERR_UNAVAILABLE, "out of memory");
    else
        send_file(c, a, file_write(serve_of(c)->procs.root_fd, &r->init_write, a, &e), &e);
}

static void on_connect(struct conn *c, const union request *r)
{
    port_connect(c, &r->init_connect);
}

/* ---- the tables ---- */

/* clang-format off */
const struct talk_row serve_talks[TALK_COUNT] = {
    /*                  input           at every change    its detail */
    [TALK_NONE]     = {INPUT_REQUESTS, NULL,              NULL},
    [TALK_OWN]      = {INPUT_STDIN,    stream_pump,       NULL},
    [TALK_FOLLOW]   = {INPUT_WAITS,    stream_pump,       NULL},
    [TALK_LOOK]     = {INPUT_WAITS,    stream_pump,       NULL},
    [TALK_LIST]     = {INPUT_WAITS,    list_pump,         NULL},
    [TALK_SESSIONS] = {INPUT_WAITS,    session_list_pump, NULL},
    [TALK_WAIT]     = {INPUT_WAITS,    wait_pump,         NULL},
    [TALK_KILL]     = {INPUT_WAITS,    kill_pump,         NULL},
    [TALK_PORT]     = {INPUT_WAITS,    port_wait_pump,    port_wait_free},
    [TALK_LOG]      = {INPUT_WAITS,    log_pump,          free},
    [TALK_MONITOR]  = {INPUT_WAITS,    NULL,              NULL},
    [TALK_JOURNAL]  = {INPUT_WAITS,    journal_pump,      NULL},
    [TALK_VIEW]     = {INPUT_STDIN,    view_pump,         NULL},
    [TALK_SESSION]  = {INPUT_WAITS,    NULL,              NULL},
    [TALK_UPLOAD]   = {INPUT_REQUESTS, NULL,              upload_free},
    [TALK_CONNECT]  = {INPUT_WAITS,    NULL,              port_connect_free},
};

/* A message that has no row for the talk it comes in closes the connection. */
static const struct {
    uint16_t type;
    enum talk in;
    void (*serve)(struct conn *c, const union request *r);
} requests[] = {
    {INIT_START,     TALK_NONE, on_start},
    {INIT_ATTACH,    TALK_NONE, on_attach},
    {INIT_STDIN,     TALK_NONE, on_stdin},
    {INIT_STDIN,     TALK_OWN,  on_typed},
    {INIT_STDIN,     TALK_VIEW, on_typed},
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

bool serve_takes(uint16_t type, enum talk in)
{
    for (size_t i = 0; i < ARRAY_LEN(requests); i++)
        if (requests[i].type == type && requests[i].in == in)
            return true;
    return false;
}

/* An unknown type comes from a newer front, which can go on without it. A known one in the
 * wrong talk means that front and init disagree about the talk: only a new connection helps. */
void serve_request(struct conn *c, const struct wire_head *h, const char *body)
{
    union request r;
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        if (requests[i].type != h->type || requests[i].in != c->talk)
            continue;
        if (wire_get(init_msg(h->type), body, h->len, &r, &e) < 0) {
            conn_close(c);
            return;
        }
        if (c->talk == TALK_NONE)
            c->seq = h->seq;
        requests[i].serve(c, &r);
        return;
    }
    if (c->talk != TALK_NONE || init_msg(h->type) != NULL) {
        conn_close(c);
        return;
    }
    c->seq = h->seq;
    conn_fail_with(c, ERR_UNSUPPORTED,
                   "this sandbox's init (version %u) does not know request %u; create a new "
                   "sandbox for it",
                   INIT_VERSION, h->type);
}

/* process.c - a process that starts in the state of a session, see session.h.
 *
 * It is a process like any other: a child of init, in a bash of its own. What the session's
 * shell printed about its state (shell/dump.c) is in a memfd, which is fd 3 of that bash until
 * it has read it; errors while it reads are not shown. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/own.h"
#include "init/session/script.h"
#include "init/session/session.h"

#define TAKE_IN "\\builtin eval \"$(</proc/self/fd/3)\" 2>/dev/null; "
/* set -x must not trace this. */
#define RUN "{ \\builtin eval \"$1\" 2>&3 3>&-; } 3>&2 2>/dev/null"

/* Piece by piece: the ring may have wrapped around. */
static int copy_output(const struct proc *p, int fd, struct err *e)
{
    uint64_t at = p->ring.first;
    unsigned stream;
    const char *bytes;
    size_t n;

    if (p->ring.first != 0)
        return err_set(e, ERR_TOO_LARGE,
                       "start a process from session state: its variables and functions are more "
                       "than %u bytes",
                       SESSION_STATE_MAX);
    for (; (n = ring_look(&p->ring, at, &stream, &bytes)) > 0; at += n)
        if (stream == INIT_STDOUT && write(fd, bytes, n) != (ssize_t)n)
            return err_sys(e, "start a process from session state: write it");
    return 0;
}

static int add_rest(const struct init_session_start *m, int fd, struct err *e)
{
    autobuf struct buf text = BUF_INIT(8 * (size_t)INIT_ARGS_MAX);
    uint32_t at = 0;
    const char *v;

    while ((v = wire_strv_next(&m->env, &at)) != NULL) {
        const char *eq = strchr(v, '=') + 1;

        buf_adds(&text, "\\builtin export ");
        buf_add(&text, v, (size_t)(eq - v));
        script_quote(&text, eq, strlen(eq));
        buf_addc(&text, '\n');
    }
    if (m->cwd[0] != '\0') {
        buf_adds(&text, "\\builtin cd -- ");
        script_quote(&text, m->cwd, strlen(m->cwd));
        buf_addc(&text, '\n');
    }
    buf_adds(&text, "\\builtin exec 3<&-\n");
    if (text.failed || write(fd, buf_data(&text), text.len) != (ssize_t)text.len)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    return 0;
}

static int start(struct session *s, const struct proc *state, const struct init_session_start *m,
                 struct proc **ret, struct err *e)
{
    bool text = (m->flags & INIT_START_TEXT) != 0;
    autobuf struct buf argv = BUF_INIT(2 * (size_t)INIT_ARGS_MAX);
    struct init_start o = {.id = m->id,
                           .cwd = "/",
                           .user = s->record.user,
                           .flags = m->flags & (INIT_START_STDIN | INIT_START_LOG),
                           .timeout_ms = m->timeout_ms,
                           .ring = m->ring};
    autofd int fd = memfd_create("session", MFD_CLOEXEC);

    if (fd < 0)
        return err_sys(e, "memfd for the state of session %s", s->record.id);
    if (copy_output(state, fd, e) < 0 || add_rest(m, fd, e) < 0)
        return -1;
    wire_strv_add(&argv, SESSION_SHELL);
    wire_strv_add(&argv, "-c");
    wire_strv_add(&argv, text ? TAKE_IN RUN : TAKE_IN "\"$@\"");
    wire_strv_add(&argv, "bash");
    buf_add(&argv, m->argv.p, m->argv.len);
    if (argv.failed)
        return err_set(e, ERR_TOO_LARGE, "start a process from session state: argv is too long");
    o.argv = wire_strv_of(&argv);
    return proc_start_as(s->all->procs, &o, &m->argv, fd, ret, e);
}

void process_from_dump(struct call *c)
{
    struct wire_head head;
    struct init_session_start m;
    struct proc *p = NULL;
    struct init_started ok = {0};
    const char *body;
    struct conn *conn;
    struct err e = {0};

    if (c->status != 0)
        err_set(
            &e, ERR_CONFLICT,
            "start a process from session state: the shell could not print its state; a function "
            "named 'builtin' in it prevents that");
    if (c->status != 0 || wire_peek(&c->order, &head, &body, &e) != 1 ||
        wire_get(init_msg(INIT_SESSION_START), body, head.len, &m, &e) < 0 ||
        start(c->session, c->proc, &m, &p, &e) < 0) {
        session_refuse(&c->askers, &e);
        return;
    }
    ok.id = p->record.id;
    ok.pid = p->record.pid;
    ok.started_ms = p->record.started_ms;
    while ((conn = LIST_FIRST(&c->askers, struct conn, asking)) != NULL) {
        list_del(&conn->asking);
        conn_send(conn, INIT_STARTED, &ok);
        conn_done(conn);
    }
}

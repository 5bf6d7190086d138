/* terminal.c - a process on a terminal: the master of a pty in place of its pipes, see proc.h.
 * Here it is opened, resized and closed; output.c reads from it, stdin.c writes to it.
 *
 * We hold a slave while the root runs, so that a program which closes its own does not hang
 * up the terminal. When the root has ended and its output was read, both are closed: a child
 * that still runs is hung up, as when a terminal window is closed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/own.h"
#include "init/run/proc.h"

#define PTMX "/dev/pts/ptmx"
#define COLS_DEFAULT 80
#define ROWS_DEFAULT 24

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static int pty_failed(struct err *e)
{
    if (errno == ENOSPC)
        return err_set(
            e, ERR_LIMIT,
            "start terminal: all terminals of this sandbox are in use; delete one first");
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
        return err_set(e, ERR_UNAVAILABLE, "start terminal: %s", strerror(errno));
    return err_set(e, ERR_UNSUPPORTED, "start terminal: this sandbox has no terminals: %s",
                   strerror(errno));
}

/* The slave by TIOCGPTPEER, not by a path, which the tenant could change. */
static int open_pair(struct proc *p)
{
    int unlock = 0;

    p->out[0].fd = open(PTMX, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (p->out[0].fd < 0 || ioctl(p->out[0].fd, TIOCSPTLCK, &unlock) < 0)
        return -1;
    p->slave = ioctl(p->out[0].fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (p->slave < 0)
        return -1;
    /* A second fd, for epoll: reading and writing are waited for separately. */
    p->in.fd = fcntl(p->out[0].fd, F_DUPFD_CLOEXEC, 3);
    return p->in.fd < 0 ? -1 : 0;
}

static int set_size(const struct proc *p, uint32_t cols, uint32_t rows)
{
    struct winsize w = {.ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows};

    return ioctl(p->out[0].fd, TIOCSWINSZ, &w);
}

int term_open(struct proc *p, const struct init_start *m, const struct user *u, struct err *e)
{
    struct termios t;

    if (open_pair(p) < 0)
        return pty_failed(e);
    if (tcgetattr(p->slave, &t) == 0) {
        t.c_iflag |= IUTF8; /* a backspace deletes a character and not a byte */
        tcsetattr(p->slave, TCSANOW, &t);
    }
    p->record.cols = m->cols != 0 ? m->cols : COLS_DEFAULT;
    p->record.rows = m->rows != 0 ? m->rows : ROWS_DEFAULT;
    set_size(p, p->record.cols, p->record.rows);
    /* Programs open their terminal by its name too. A uid that is not mapped fails here, and
     * again, with an answer, when the child sets it. */
    if (fchown(p->slave, u->uid, (gid_t)-1) < 0)
        errno = 0;
    return 0;
}

void term_close(struct proc *p)
{
    term_size(p, &p->record.cols, &p->record.rows);
    drop_fd(&p->slave);
    output_close(p);
}

int term_resize(struct proc *p, uint32_t cols, uint32_t rows, struct err *e)
{
    if (cols == 0 || rows == 0)
        return err_set(e, ERR_INVALID, "resize terminal %s: it has 1 to %u columns and rows",
                       p->record.id, INIT_TERM_SIDE_MAX);
    if (p->out[0].fd < 0)
        return err_set(e, ERR_GONE, "resize terminal %s: it has ended", p->record.id);
    if (set_size(p, cols, rows) < 0)
        return err_sys(e, "resize terminal %s", p->record.id);
    p->record.cols = cols;
    p->record.rows = rows;
    proc_changed(p);
    return 0;
}

void term_size(const struct proc *p, uint32_t *cols, uint32_t *rows)
{
    struct winsize w;

    *cols = p->record.cols;
    *rows = p->record.rows;
    if (p->out[0].fd < 0 || ioctl(p->out[0].fd, TIOCGWINSZ, &w) < 0)
        return;
    /* Within the bounds of our messages: `stty` inside takes any number. */
    if (w.ws_col >= 1 && w.ws_col <= INIT_TERM_SIDE_MAX)
        *cols = w.ws_col;
    if (w.ws_row >= 1 && w.ws_row <= INIT_TERM_SIDE_MAX)
        *rows = w.ws_row;
}

int term_signal(const struct proc *p, int signo, struct err *e)
{
    pid_t group = 0;

    if (!proc_is_term(p))
        return err_set(e, ERR_NOT_FOUND, "no terminal %s in this sandbox", p->record.id);
    if (p->out[0].fd < 0)
        return err_set(e, ERR_GONE, "signal terminal %s: it has ended", p->record.id);
    /* kill(-1) would signal everything, and 1 is init. */
    if (ioctl(p->out[0].fd, TIOCGPGRP, &group) < 0 || group <= 1)
        return err_set(e, ERR_CONFLICT, "signal terminal %s: no process is in its foreground",
                       p->record.id);
    if (kill(-group, signo) < 0)
        return err_set(e, ERR_CONFLICT, "signal the foreground of terminal %s: %s", p->record.id,
                       strerror(errno));
    return 0;
}

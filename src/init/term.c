/* term.c - a process on a terminal: the master of a pty in place of its pipes, see
 * proc.h. It is opened here and watched there: reading is output.c's, what is
 * typed feed.c's.
 *
 * We hold a slave while the root runs, so that a program which closes its own is
 * nobody's hang-up. When the root has ended and what it printed was read, both go:
 * a child that it left behind is hung up, as in any window that was closed. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/own.h"
#include "init/proc.h"

#define PTMX "/dev/pts/ptmx"
#define COLS_DEFAULT 80
#define ROWS_DEFAULT 24

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

static int no_pty(struct err *e)
{
    if (errno == ENOSPC)
        return err_set(e, ERR_LIMIT, "all terminals of this sandbox are in use");
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
        return err_set(e, ERR_UNAVAILABLE, "no terminal: %s", strerror(errno));
    return err_set(e, ERR_UNSUPPORTED, "this sandbox has no terminals: %s", strerror(errno));
}

/* The ends by the master's own word, not by a path that the tenant can name. */
static int open_pair(struct proc *p)
{
    int unlock = 0;

    p->out[0].fd = open(PTMX, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (p->out[0].fd < 0 || ioctl(p->out[0].fd, TIOCSPTLCK, &unlock) < 0)
        return -1;
    p->slave = ioctl(p->out[0].fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (p->slave < 0)
        return -1;
    /* Another number for epoll: reading and writing are waited for separately. */
    p->in.fd = fcntl(p->out[0].fd, F_DUPFD_CLOEXEC, 3);
    return p->in.fd < 0 ? -1 : 0;
}

/* So that a backspace takes a character and not a byte. */
static void expect_utf8(int fd)
{
    struct termios t;

    if (tcgetattr(fd, &t) < 0)
        return;
    t.c_iflag |= IUTF8;
    tcsetattr(fd, TCSANOW, &t);
}

static int set_size(const struct proc *p, uint32_t cols, uint32_t rows)
{
    struct winsize w = {.ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows};

    return ioctl(p->out[0].fd, TIOCSWINSZ, &w);
}

static void keep_size(struct proc *p, uint32_t cols, uint32_t rows)
{
    p->record.cols = cols;
    p->record.rows = rows;
}

int term_open(struct proc *p, const struct init_start *m, const struct user *u, struct err *e)
{
    if (open_pair(p) < 0)
        return no_pty(e);
    expect_utf8(p->slave);
    keep_size(p, m->cols != 0 ? m->cols : COLS_DEFAULT, m->rows != 0 ? m->rows : ROWS_DEFAULT);
    set_size(p, p->record.cols, p->record.rows);
    /* Programs open their terminal by its name too. An owner that does not exist
     * here is refused when the child takes it on. */
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
        return err_set(e, ERR_INVALID, "a terminal has 1 to %u columns and rows",
                       INIT_TERM_SIDE_MAX);
    if (p->out[0].fd < 0)
        return err_set(e, ERR_GONE, "terminal %s has ended", p->record.id);
    if (set_size(p, cols, rows) < 0)
        return err_sys(e, "resize");
    keep_size(p, cols, rows);
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
    /* Nothing that our messages cannot carry: `stty` inside takes any number. */
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
        return err_set(e, ERR_GONE, "terminal %s has ended", p->record.id);
    /* -1 would be everyone, and 1 is us. */
    if (ioctl(p->out[0].fd, TIOCGPGRP, &group) < 0 || group <= 1)
        return err_set(e, ERR_CONFLICT, "nothing is in the foreground of %s", p->record.id);
    if (kill(-group, signo) < 0)
        return err_set(e, ERR_CONFLICT, "the foreground of %s cannot be signalled: %s",
                       p->record.id, strerror(errno));
    return 0;
}

/* screen.c - see screen.h. */
#include "cli/screen.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/own.h"

/* ---- what was switched on ---- */

/* Modes that a person at a prompt would trip over, and how they are by nature. */
static const struct {
    unsigned mode;
    bool on;
} natural[] = {
    {1, false},                                  /* cursor keys send something else */
    {7, true},                                   /* wrap at the margin */
    {9, false},                                  /* mouse, oldest way */
    {25, true},                                  /* cursor is shown */
    {47, false},                                 /* the other screen, three ways */
    {1000, false},                               /* mouse */
    {1002, false},                               /* mouse, when it is dragged */
    {1003, false},                               /* mouse, always */
    {1004, false},                               /* focus is told */
    {1005, false},                               /* mouse, as UTF-8 */
    {1006, false},                               /* mouse, as numbers */
    {1015, false},                               /* mouse, another way */
    {1047, false}, {1049, false}, {2004, false}, /* pastes are marked */
};

static void forget(struct modes *m, unsigned mode)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->on[i] == mode)
            m->on[i--] = m->on[--m->n];
}

static void set_mode(struct modes *m, unsigned mode, bool on)
{
    for (size_t i = 0; i < ARRAY_LEN(natural); i++) {
        if (natural[i].mode != mode)
            continue;
        forget(m, mode);
        if (on != natural[i].on && m->n < MODES_MAX)
            m->on[m->n++] = mode;
    }
}

/* ESC [ ? 1 ; 25 h: switches modes on (h) or off (l). ESC c: everything as it was. */
static void end_sequence(struct modes *m, char last)
{
    char *at = m->seq + 3;

    m->seq[m->nseq] = '\0';
    if (m->nseq < 3 || m->seq[2] != '?' || (last != 'h' && last != 'l'))
        return;
    while (*at != '\0') {
        set_mode(m, (unsigned)strtoul(at, &at, 10), last == 'h');
        at += *at != '\0';
    }
}

static void watch_one(struct modes *m, char c)
{
    if (c == '\033') {
        m->nseq = 0;
        m->seq[m->nseq++] = c;
    } else if (m->nseq == 1) {
        if (c == 'c')
            m->n = 0;
        m->nseq = c == '[' ? (m->seq[1] = c, 2) : 0;
    } else if (m->nseq > 1) {
        bool param = (c >= '0' && c <= '9') || c == ';' || (c == '?' && m->nseq == 2);

        if (!param || m->nseq == MODES_PARAMS_MAX - 1) {
            if (!param)
                end_sequence(m, c);
            m->nseq = 0;
        } else {
            m->seq[m->nseq++] = c;
        }
    }
}

void modes_watch(struct modes *m, const char *p, size_t n)
{
    const char *end = p + n;

    while (p < end) {
        if (m->nseq == 0) {
            p = memchr(p, '\033', (size_t)(end - p));
            if (p == NULL)
                return;
        }
        watch_one(m, *p++);
    }
}

static bool by_nature(unsigned mode)
{
    for (size_t i = 0; i < ARRAY_LEN(natural); i++)
        if (natural[i].mode == mode)
            return natural[i].on;
    return false;
}

void modes_undo(struct modes *m, struct buf *out)
{
    for (size_t i = m->n; i-- > 0;)
        buf_addf(out, "\033[?%u%c", m->on[i], by_nature(m->on[i]) ? 'h' : 'l');
    if (m->n > 0)
        buf_adds(out, "\033[0m\033>");
    *m = (struct modes){0};
}

/* ---- the terminal ---- */

/* The handlers below must find it. */
static struct termios before;
static volatile sig_atomic_t is_lent;

bool screen_is_there(void)
{
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

int screen_size(unsigned *cols, unsigned *rows)
{
    struct winsize w;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col == 0 || w.ws_row == 0)
        return -1;
    *cols = w.ws_col;
    *rows = w.ws_row;
    return 0;
}

/* By its name only: a terminal of another user's, as after su, can be inherited but not
 * opened. */
int screen_open(void)
{
    int fd = open("/proc/self/fd/1", O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

    return fd >= 0 ? fd : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
}

void screen_give_back(void)
{
    if (is_lent)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    is_lent = 0;
}

/* A bug of ours must not leave a terminal that echoes nothing. */
static void give_back_and_die(int signo)
{
    if (is_lent)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    signal(signo, SIG_DFL);
    raise(signo);
}

static void guard(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    static bool done;

    for (size_t i = 0; !done && i < ARRAY_LEN(fatal); i++)
        signal(fatal[i], give_back_and_die);
    if (!done)
        atexit(screen_give_back);
    done = true;
}

int screen_lend(struct err *e)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return err_sys(e, "the terminal");
    guard();
    raw = before;
    cfmakeraw(&raw);
    is_lent = 1;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0)
        return 0;
    is_lent = 0;
    return err_sys(e, "the terminal");
}

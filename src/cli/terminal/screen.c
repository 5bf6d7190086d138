/* screen.c - see screen.h. */
#include "cli/terminal/screen.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/own.h"

/* ---- terminal modes ---- */

/* Modes that disturb a user at a shell prompt, and their defaults. */
/* clang-format off */
static const struct {
    unsigned mode;
    bool on;
} defaults[] = {
    {1,    false}, /* application cursor keys */
    {7,    true},  /* wrap at the margin */
    {9,    false}, /* mouse, X10 */
    {25,   true},  /* show the cursor */
    {47,   false}, /* alternate screen, first of three modes */
    {1000, false}, /* mouse clicks */
    {1002, false}, /* mouse drag */
    {1003, false}, /* all mouse motion */
    {1004, false}, /* focus events */
    {1005, false}, /* mouse, UTF-8 encoding */
    {1006, false}, /* mouse, SGR encoding */
    {1015, false}, /* mouse, urxvt encoding */
    {1047, false}, /* alternate screen */
    {1049, false}, /* alternate screen with saved cursor */
    {2004, false}, /* bracketed paste */
};
/* clang-format on */

static void set_mode(struct modes *m, unsigned mode, bool on)
{
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++) {
        if (defaults[i].mode != mode)
            continue;
        for (size_t k = 0; k < m->n; k++)
            if (m->on[k] == mode)
                m->on[k--] = m->on[--m->n];
        if (on != defaults[i].on && m->n < MODES_MAX)
            m->on[m->n++] = mode;
    }
}

/* ESC [ ? 1 ; 25 h sets modes, with l it resets them. ESC c resets everything. */
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

static bool default_of(unsigned mode)
{
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++)
        if (defaults[i].mode == mode)
            return defaults[i].on;
    return false;
}

void modes_undo(struct modes *m, struct buf *out)
{
    for (size_t i = m->n; i-- > 0;)
        buf_addf(out, "\033[?%u%c", m->on[i], default_of(m->on[i]) ? 'h' : 'l');
    if (m->n > 0)
        buf_adds(out, "\033[0m\033>");
    *m = (struct modes){0};
}

/* ---- the terminal ---- */

/* File scope: signal handlers use them. */
static struct termios before;
static volatile sig_atomic_t is_raw;

bool screen_is_terminal(void)
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

/* A terminal of another user, as after su, cannot be opened; then the inherited fd is used. */
int screen_reopen(void)
{
    int fd = open("/proc/self/fd/1", O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

    return fd >= 0 ? fd : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
}

void screen_restore(void)
{
    if (is_raw)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    is_raw = 0;
}

/* If this program crashes, the terminal must not stay raw. */
static void restore_and_die(int signo)
{
    if (is_raw)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    signal(signo, SIG_DFL);
    raise(signo);
}

static void guard(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    static bool done;

    for (size_t i = 0; !done && i < ARRAY_LEN(fatal); i++)
        signal(fatal[i], restore_and_die);
    if (!done)
        atexit(screen_restore);
    done = true;
}

int screen_make_raw(struct err *e)
{
    struct termios raw;

    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return err_sys(e, "set the terminal to raw mode");
    guard();
    raw = before;
    cfmakeraw(&raw);
    is_raw = 1;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0)
        return 0;
    is_raw = 0;
    return err_sys(e, "set the terminal to raw mode");
}

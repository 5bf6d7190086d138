/* stream.c - see stream.h. */
#include "cli/files/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "cli/files/pack.h"
#include "json/read.h"

#define BAR_MS 100
#define BAR_COLUMNS 80 /* of a terminal that does not say */

static unsigned columns(void)
{
    struct winsize w;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : BAR_COLUMNS;
}

/* Characters, not bytes; control characters would move the cursor. */
static void print_cut(const char *s, unsigned room)
{
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;

        if ((c & 0xc0) != 0x80 && room-- == 0)
            return;
        fputc(c < 0x20 || c == 0x7f ? ' ' : c, stderr);
    }
}

static void draw(struct bar *b, const char *text)
{
    const char *phase = b->phase != NULL ? b->phase : "copying";
    unsigned width = columns(), used = (unsigned)strlen(phase) + 1;
    char numbers[64] = "";
    int n = 0;

    b->shown_ms = clock_mono_ms();
    if (!b->shown && b->began_ms == 0)
        b->began_ms = b->shown_ms;
    b->shown = true;
    if (b->total > 0)
        n = snprintf(numbers, sizeof(numbers), "%3u%% ", (unsigned)(b->done * 100 / b->total));
    if (b->moved > 0)
        snprintf(numbers + n, sizeof(numbers) - (size_t)n, "%.1f MiB ",
                 (double)b->moved / (1 << 20));
    used += (unsigned)strlen(numbers);
    fprintf(stderr, "\r\033[K%s %s", phase, numbers);
    print_cut(text, width > used + 1 ? width - used - 1 : 0);
}

static bool is_drawn(const struct bar *b)
{
    return b->what != NULL && isatty(STDERR_FILENO) == 1;
}

void bar_phase(struct bar *b, const char *phase, const char *text, uint64_t done, uint64_t total)
{
    b->phase = phase;
    b->done = done;
    b->total = total;
    if (b->began_ms == 0)
        b->began_ms = clock_mono_ms();
    if (is_drawn(b))
        draw(b, text != NULL ? text : b->what);
}

static void bar_add(struct bar *b, uint64_t n)
{
    if (b->began_ms == 0)
        b->began_ms = clock_mono_ms();
    b->done += n;
    b->moved += n;
    if (b->total > 0 && b->done > b->total)
        b->total = b->done;
    if (is_drawn(b) && clock_mono_ms() - b->shown_ms >= BAR_MS &&
        clock_mono_ms() - b->began_ms >= BAR_MS)
        draw(b, b->what);
}

void bar_end(struct bar *b)
{
    if (b->shown)
        fputs("\r\033[K", stderr);
    b->shown = false;
}

void bar_sum(struct bar *b, const char *did, bool always)
{
    bool say = is_drawn(b) && (always || b->shown);
    double seconds = (double)(clock_mono_ms() - b->began_ms) / 1000;
    unsigned width = columns(), used = (unsigned)strlen(did) + 2;
    char numbers[64];

    bar_end(b);
    if (!say)
        return;
    if (b->moved > 0)
        snprintf(numbers, sizeof(numbers), ": %.1f MiB in %.1f s", (double)b->moved / (1 << 20),
                 seconds);
    else
        snprintf(numbers, sizeof(numbers), " in %.1f s", seconds);
    used += (unsigned)strlen(numbers);
    fprintf(stderr, "%s ", did);
    print_cut(b->what, width > used ? width - used : 0);
    fprintf(stderr, "%s\n", numbers);
}

/* After a read or write failed: true if the caller should try again. Programs that share
 * stdin or stdout with us may have made them non-blocking. */
static bool may_retry(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};

    if (errno == EAGAIN)
        poll(&p, 1, -1);
    return errno == EAGAIN || errno == EINTR;
}

/* The next bytes of a body, as read(2); -1 with `e`. */
static ssize_t next_of(struct reply *r, const char **ret, struct err *e)
{
    enum reply_event ev;
    size_t n;

    while ((ev = reply_read(r, ret, &n, e)) == REPLY_MORE)
        reply_wait(r);
    if (ev == REPLY_BROKEN)
        return -1;
    return ev == REPLY_END ? 0 : (ssize_t)n;
}

struct reply *stream_ask(const struct server *s, const char *target, struct err *e)
{
    struct call c = {.method = "GET", .path = target, .accept = "*/*"};
    autojson json_t *none = NULL;
    struct reply *r = NULL;

    if (reply_open(s, &c, &r, e) < 0)
        return NULL;
    if (reply_status(r) == 200)
        return r;
    if (reply_json(r, &none, e) == 0)
        err_set(e, ERR_UNAVAILABLE, "GET: the server answered with status %d, expected 200",
                reply_status(r));
    reply_free(r);
    return NULL;
}

int stream_get(struct reply *r, int to, struct bar *b, struct err *e)
{
    const char *p;
    ssize_t n;

    while ((n = next_of(r, &p, e)) > 0) {
        for (ssize_t at = 0; at < n;) {
            ssize_t w = write(to, p + at, (size_t)(n - at));

            if (w < 0 && may_retry(to, POLLOUT))
                continue;
            if (w <= 0)
                return err_sys(e, "write");
            at += w;
        }
        bar_add(b, (uint64_t)n);
    }
    return (int)n;
}

int upload_open(struct upload *u, const char *from, struct bar *b, struct err *e)
{
    struct stat st;

    u->bar = b;
    u->fd = -1;
    if (strcmp(from, "-") == 0) {
        u->fd = dup(STDIN_FILENO);
        return u->fd < 0 ? err_sys(e, "stdin") : 0;
    }
    if (stat(from, &st) < 0)
        return err_set(e, ERR_INVALID, "%s: %s", from, strerror(errno));
    if (S_ISDIR(st.st_mode)) {
        u->pack = pack_open(from, e);
        return u->pack == NULL ? -1 : 0;
    }
    u->fd = open(from, O_RDONLY | O_CLOEXEC);
    b->total = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    return u->fd < 0 ? err_set(e, ERR_INVALID, "%s: %s", from, strerror(errno)) : 0;
}

void upload_close(struct upload *u)
{
    pack_free(take_ptr(&u->pack));
    drop_fd(&u->fd);
}

ssize_t upload_next(void *arg, const char **ret, struct err *e)
{
    struct upload *u = arg;
    ssize_t n;

    if (u->pack != NULL) {
        n = pack_next(u->pack, ret, e);
    } else if (u->body != NULL) {
        n = next_of(u->body, ret, e);
    } else {
        *ret = u->piece;
        do
            n = read(u->fd, u->piece, sizeof(u->piece));
        while (n < 0 && may_retry(u->fd, POLLIN));
        if (n < 0)
            err_set(e, ERR_INVALID, "read the file to send: %s", strerror(errno));
    }
    if (n > 0)
        bar_add(u->bar, (uint64_t)n);
    if (n == 0 && u->after != NULL) /* all is sent; what the server does with it takes longer */
        bar_phase(u->bar, u->after, NULL, 0, 0);
    return n;
}

int stream_put(const struct server *s, const char *target, struct upload *u, struct err *e)
{
    struct call c = {.method = "PUT", .path = target, .next = upload_next, .arg = u};
    autoreply struct reply *r = NULL;
    autojson json_t *answer = NULL;

    return reply_open(s, &c, &r, e) < 0 ? -1 : reply_json(r, &answer, e);
}

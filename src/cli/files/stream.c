/* stream.c - see stream.h. */
#include "cli/files/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "cli/files/pack.h"
#include "json/read.h"

#define BAR_MS 100
#define BAR_WIDTH 30

static void bar_add(struct bar *b, uint64_t n)
{
    char line[BAR_WIDTH + 1] = "";
    unsigned full;
    uint64_t now;

    b->done += n;
    if (b->total > 0 && b->done > b->total)
        b->total = b->done;
    if (b->what == NULL || isatty(STDERR_FILENO) != 1 ||
        (now = clock_mono_ms()) - b->shown_ms < BAR_MS)
        return;
    b->shown_ms = now;
    b->shown = true;
    fprintf(stderr, "\r\033[K%.40s ", b->what);
    if (b->total > 0) {
        full = (unsigned)(b->done * BAR_WIDTH / b->total);
        memset(line, ' ', BAR_WIDTH);
        memset(line, '#', full < BAR_WIDTH ? full : BAR_WIDTH);
        fprintf(stderr, "[%s] %3u%% ", line, (unsigned)(b->done * 100 / b->total));
    }
    fprintf(stderr, "%.1f MiB", (double)b->done / (1 << 20));
}

void bar_end(struct bar *b)
{
    if (b->shown)
        fputs("\r\033[K", stderr);
    b->shown = false;
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
    return n;
}

int stream_put(const struct server *s, const char *target, struct upload *u, struct err *e)
{
    struct call c = {.method = "PUT", .path = target, .next = upload_next, .arg = u};
    autoreply struct reply *r = NULL;
    autojson json_t *answer = NULL;

    return reply_open(s, &c, &r, e) < 0 ? -1 : reply_json(r, &answer, e);
}

/* stream.c - see stream.h. */
#include "cli/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "cli/pack.h"
#include "json/read.h"

#define PIECE (256u << 10)
#define BAR_MS 100
#define BAR_WIDTH 30

static bool on_terminal(void)
{
    return isatty(STDERR_FILENO) == 1;
}

static void draw(const struct bar *b)
{
    char line[BAR_WIDTH + 1];
    unsigned full = b->total > 0 ? (unsigned)(b->done * BAR_WIDTH / b->total) : 0;

    memset(line, ' ', BAR_WIDTH);
    memset(line, '#', full < BAR_WIDTH ? full : BAR_WIDTH);
    line[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r\033[K%.40s ", b->what);
    if (b->total > 0)
        fprintf(stderr, "[%s] %3u%% ", line, (unsigned)(b->done * 100 / b->total));
    fprintf(stderr, "%.1f MiB", (double)b->done / (1 << 20));
}

void bar_add(struct bar *b, uint64_t n)
{
    uint64_t now;

    b->done += n;
    if (b->total > 0 && b->done > b->total)
        b->total = b->done;
    if (b->what == NULL || !on_terminal() || (now = clock_mono_ms()) - b->shown_ms < BAR_MS)
        return;
    b->shown_ms = now;
    b->shown = true;
    draw(b);
}

void bar_end(struct bar *b)
{
    if (b->shown)
        fputs("\r\033[K", stderr);
    b->shown = false;
}

/* After a read or write that failed: true if it is to be tried again. Who shares our
 * streams may have made them non-blocking. */
static bool may_go_on(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};

    if (errno == EAGAIN)
        poll(&p, 1, -1);
    return errno == EAGAIN || errno == EINTR;
}

ssize_t stream_read(int fd, char *to, size_t room)
{
    ssize_t n;

    do
        n = read(fd, to, room);
    while (n < 0 && may_go_on(fd, POLLIN));
    return n;
}

static int write_all(int fd, const char *p, size_t n, struct err *e)
{
    while (n > 0) {
        ssize_t w = write(fd, p, n);

        if (w < 0 && may_go_on(fd, POLLOUT))
            continue;
        if (w <= 0)
            return err_sys(e, "write");
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

/* The next bytes of a body: as read(2), -1 with `e`. */
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
        err_set(e, ERR_UNAVAILABLE, "the server answered %d", reply_status(r));
    reply_free(r);
    return NULL;
}

int stream_get(struct reply *r, int to, struct bar *b, struct err *e)
{
    const char *p;
    ssize_t n;

    while ((n = next_of(r, &p, e)) > 0) {
        if (write_all(to, p, (size_t)n, e) < 0)
            return -1;
        bar_add(b, (uint64_t)n);
    }
    return (int)n;
}

/* ---- out ---- */

struct source {
    struct bar *bar;
    int fd;             /* a file, or... */
    struct pack *pack;  /* ...a directory, or... */
    struct reply *body; /* ...another body */
    char piece[PIECE];
};

static ssize_t next_piece(void *arg, const char **ret, struct err *e)
{
    struct source *s = arg;
    ssize_t n;

    if (s->pack != NULL) {
        n = pack_next(s->pack, ret, e);
    } else if (s->body != NULL) {
        n = next_of(s->body, ret, e);
    } else {
        n = stream_read(s->fd, s->piece, sizeof(s->piece));
        *ret = s->piece;
        if (n < 0)
            err_sys(e, "read");
    }
    if (n > 0)
        bar_add(s->bar, (uint64_t)n);
    return n;
}

static int put(const struct server *s, const char *target, struct source *from, struct err *e)
{
    struct call c = {.method = "PUT", .path = target, .next = next_piece, .arg = from};
    autoreply struct reply *r = NULL;
    autojson json_t *answer = NULL;

    if (reply_open(s, &c, &r, e) < 0)
        return -1;
    return reply_json(r, &answer, e);
}

int stream_put(const struct server *s, const char *target, int from, struct bar *b, struct err *e)
{
    static struct source src;

    src = (struct source){.bar = b, .fd = from};
    return put(s, target, &src, e);
}

int stream_put_dir(const struct server *s, const char *target, const char *dir, struct bar *b,
                   unsigned long *left_out, struct err *e)
{
    static struct source src;
    int r;

    src = (struct source){.bar = b, .pack = pack_open(dir, e)};
    if (src.pack == NULL)
        return -1;
    r = put(s, target, &src, e);
    *left_out = pack_left_out(src.pack);
    pack_free(src.pack);
    return r;
}

int stream_pass(const struct server *s, const char *from, const char *to, struct bar *b,
                struct err *e)
{
    static struct source src;
    autoreply struct reply *body = stream_ask(s, from, e);

    if (body == NULL)
        return -1;
    src = (struct source){.bar = b, .body = body};
    return put(s, to, &src, e);
}

/* stream.h - bytes between files here and files there, with a bar on a terminal. */
#ifndef CLI_STREAM_H
#define CLI_STREAM_H

#include <stdint.h>

#include "cli/client.h"

/* One line on stderr, if that is a terminal. */
struct bar {
    const char *what; /* borrowed; NULL: none is shown */
    uint64_t total;   /* 0: not known */
    uint64_t done, shown_ms;
    bool shown;
};
void bar_add(struct bar *b, uint64_t n);
void bar_end(struct bar *b);

/* As read(2), but an fd that is non-blocking is waited for. */
ssize_t stream_read(int fd, char *to, size_t room);

/* Asks for `target`; what it will be written to is best opened when this was granted. The
 * answer belongs to the caller; NULL: `e` says why. */
struct reply *stream_ask(const struct server *s, const char *target, struct err *e);
/* The body of an answer to an fd. */
int stream_get(struct reply *r, int to, struct bar *b, struct err *e);
/* All that comes out of an fd as the body of a PUT of `target`. */
int stream_put(const struct server *s, const char *target, int from, struct bar *b, struct err *e);
/* A local directory as an archive. *left_out: devices and sockets. */
int stream_put_dir(const struct server *s, const char *target, const char *dir, struct bar *b,
                   unsigned long *left_out, struct err *e);
/* The body of one to the other. */
int stream_pass(const struct server *s, const char *from, const char *to, struct bar *b,
                struct err *e);

#endif

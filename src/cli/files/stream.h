/* stream.h - files as bodies of requests and answers, with a progress bar on a terminal. */
#ifndef CLI_FILES_STREAM_H
#define CLI_FILES_STREAM_H

#include <stdint.h>

#include "cli/client/client.h"

/* One line on stderr, never wider than the terminal, drawn only if stderr is one: phase, name,
 * percent and bytes. */
struct bar {
    const char *phase; /* "sending", "unpacking"...; borrowed; NULL: "copying" */
    const char *what;  /* what is moved; borrowed; NULL: draw nothing */
    uint64_t total;    /* bytes of this phase; 0: not known */
    uint64_t done, moved, began_ms, shown_ms;
    bool shown;
};
/* Another phase begins: drawn at once. `text` (or NULL) is shown in place of `what`. */
void bar_phase(struct bar *b, const char *phase, const char *text, uint64_t done, uint64_t total);
void bar_end(struct bar *b); /* erases the line */
/* Erases the line and says "DID NAME: 12.3 MiB in 4.5 s"; for what took no time only if `always`. */
void bar_sum(struct bar *b, const char *did, bool always);

/* GET `target`, for stream_get(). Open the output file only after this succeeded. The reply
 * belongs to the caller; NULL: `e` says why. */
struct reply *stream_ask(const struct server *s, const char *target, struct err *e);
/* Writes the body of the reply to `to`. */
int stream_get(struct reply *r, int to, struct bar *b, struct err *e);

/* The body of a request: a file, a local directory that is packed while it is sent, or the
 * body of a reply. Exactly one of the three is set; `fd` is -1 if it is not the one. */
struct upload {
    struct bar *bar;   /* borrowed */
    const char *after; /* the phase that begins when all bytes are sent; or NULL */
    int fd;
    struct pack *pack;
    struct reply *body; /* borrowed */
    char piece[256 << 10];
};
/* `from` is the path of a file or a directory, or "-" for stdin. */
int upload_open(struct upload *u, const char *from, struct bar *b, struct err *e);
void upload_close(struct upload *u);
/* For struct call.next, with the upload as its `arg`. */
ssize_t upload_next(void *arg, const char **ret, struct err *e);
/* PUT `target` with this body. */
int stream_put(const struct server *s, const char *target, struct upload *u, struct err *e);

#endif

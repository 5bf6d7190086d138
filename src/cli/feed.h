/* feed.h - our stdin, carried to a process in a sandbox by a thread of its own.
 *
 * A thread, because reading a terminal or a file blocks, and the output must keep
 * flowing meanwhile: a filter stops reading when nobody takes what it writes. */
#ifndef CLI_FEED_H
#define CLI_FEED_H

#include "cli/client.h"

#define FEED_CHUNK (64u << 10)

struct feed;

/* All borrowed for the call. *ret belongs to the caller until feed_free(). */
int feed_start(const struct server *s, const char *sandbox, const char *process, struct feed **ret,
               struct err *e);
/* The thread may sleep in read() until the program ends; it is not waited for. */
void feed_free(struct feed *f);
/* Of our stdin, as read(2), which waits also if somebody made it non-blocking; a closed
 * stdin is an empty one, one that fails is not. */
ssize_t feed_read(char *to, size_t room, struct err *e);
/* Readable once feeding has failed; feed_failure() then says how. */
int feed_fd(const struct feed *f);
const struct err *feed_failure(const struct feed *f);

#endif

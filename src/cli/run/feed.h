/* feed.h - sends our stdin to a process in a sandbox, from a thread of its own.
 *
 * A thread, because reading a terminal or a file blocks, and output must be read meanwhile:
 * a filter stops reading its stdin when its output is not read. */
#ifndef CLI_RUN_FEED_H
#define CLI_RUN_FEED_H

#include "cli/client/client.h"

#define FEED_CHUNK (64u << 10)

struct feed;

/* All borrowed for the call. *ret belongs to the caller until feed_free(). */
int feed_start(const struct server *s, const char *sandbox, const char *process, struct feed **ret,
               struct err *e);
/* Does not wait for the thread, which may be blocked in read() until this program ends. */
void feed_free(struct feed *f);
/* read(2) on stdin that also waits if stdin is non-blocking. A closed stdin counts as empty;
 * other failures are errors. */
ssize_t feed_read(char *to, size_t room, struct err *e);
/* Becomes readable if feeding failed; feed_failure() says why. */
int feed_fd(const struct feed *f);
const struct err *feed_failure(const struct feed *f);

#endif

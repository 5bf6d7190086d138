/* progress.h - calls that take long and tell how far they are: a bar on a terminal, and their answer. */
#ifndef CLI_COMMANDS_PROGRESS_H
#define CLI_COMMANDS_PROGRESS_H

#include "cli/client/client.h"
#include "cli/files/stream.h"

/* Sends `c`, which accepts text/event-stream, and shows its progress events in `b`. *ret is the
 * answer and belongs to the caller. The caller ends the bar. */
int progress_call(const struct server *s, const struct call *c, struct bar *b, json_t **ret,
                  struct err *e);

#endif

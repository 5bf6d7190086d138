/* exec.h - a command whose output the call owns until it ends or the client disconnects: the command
 * waits for a slow client, and no byte is lost. */
#ifndef FRONT_PLANES_NATIVE_RUN_EXEC_H
#define FRONT_PLANES_NATIVE_RUN_EXEC_H

#include "front/engine/session.h"
#include "front/plane/call.h"

struct exec_opts {
    const struct process_opts *o; /* borrowed for the call; or... */
    struct session_exec *session; /* ...a command for a session; borrowed too */
    bool forget;                  /* no record stays when it is over; not of a session's */
    enum call_accept how;
    size_t max_output; /* CALL_JSON: bytes kept of each stream */
    struct buf *input; /* for stdin, or NULL; emptied; a session's has its own */
};

/* Runs it and answers. Uses call_state(). */
void exec_start(struct call *c, const struct exec_opts *opts);

/* The events of such a stream, for the rows that offer it. */
#define EXEC_EVENTS                                                                                \
    "start (ExecStart); stdout and stderr ({data, encoding?}), with the position after the data "  \
    "as id; finally exit (ExecExit) or error (Error)"
extern const struct shape exec_start_shape, exec_exit_shape;
extern const struct shape exec_session_shape, exec_session_exit_shape; /* of a session's */

#endif

/* exec.h - a command whose output this call owns, until it ends or the client
 * leaves: the command waits for a client that reads slowly, and no byte is lost. */
#ifndef NATIVE_EXEC_H
#define NATIVE_EXEC_H

#include "front/engine/process.h"
#include "front/plane/call.h"

struct exec_opts {
    const struct process_opts *o; /* borrowed for the call */
    bool forget;                  /* no record stays when it is over */
    enum call_accept how;
    size_t max_output; /* CALL_JSON: bytes kept of each stream */
    struct buf *input; /* for stdin, or NULL; emptied */
};

/* Runs it and answers. Uses call_state(). */
void exec_start(struct call *c, const struct exec_opts *opts);

/* The events of such a stream, for the row of whoever offers it. */
#define EXEC_EVENTS                                                                                \
    "start (ExecStart); stdout and stderr ({data, encoding?}), each with the position behind it "  \
    "as its id; at last exit (ExecExit) or error (Error)"
extern const struct shape exec_start_shape, exec_exit_shape;

#endif

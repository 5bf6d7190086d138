/* viewer.h - somebody looks at a terminal over a WebSocket, and may type.
 *
 * Binary messages are bytes, both ways; text messages are JSON: `ready` first, then
 * `resize`, `truncated`, `error`, at last `exit`, after which it is closed. A client
 * that counts the bytes it got since `ready` knows its cursor, and comes back with
 * it. One that offers the subprotocol `tty` is spoken to as ttyd does.
 *
 * A viewer is a guest: one that takes nothing for VIEWER_STALL_MS is closed with
 * VIEWER_CLOSE_SLOW and may come back; the terminal and the others notice nothing. */
#ifndef FRONT_PLANE_VIEWER_H
#define FRONT_PLANE_VIEWER_H

#include "front/engine/terminal.h"
#include "front/plane/call.h"

#define VIEWER_STALL_MS 5000
#define VIEWER_CLOSE_SLOW 4408

struct viewer_opts {
    const char *sandbox, *id; /* borrowed for the call */
    struct terminal_from from;
    bool read_only; /* neither types nor resizes */
};

/* Answers the call: 101 once the terminal was found, else why not. */
void viewer_open(struct call *c, const struct viewer_opts *o);

#endif

/* attach.h - connects this terminal to a terminal in a sandbox.
 *
 * Keys are sent there and its output is printed here, raw, until the program ends or the
 * user presses the detach keys. If the daemon restarts, we reconnect with the cursor of the
 * last byte printed. In every case the local terminal is restored before we return. */
#ifndef CLI_TERMINAL_ATTACH_H
#define CLI_TERMINAL_ATTACH_H

#include <stdbool.h>

#include "cli/client/client.h"
#include "cli/terminal/keys.h"

#define ATTACH_RETRY_MS 60000 /* how long to try to reconnect */

struct attach_opts {
    const char *sandbox, *terminal;
    const char *keys; /* to detach with, see keys.h */
    bool read_only;
};

/* The exit status of the program there, 0 after detaching, or -1 and `e`. */
int attach_run(const struct server *s, const struct attach_opts *o, struct err *e);
/* Creates a terminal first: `request` is the body of POST .../terminals, to which the size
 * of the local terminal is added. */
int attach_start(const struct server *s, const char *sandbox, json_t *request, const char *keys,
                 struct err *e);
/* ERR_INVALID unless stdin and stdout are a terminal. */
int attach_check(struct err *e);

#endif

/* attach.h - this terminal as the window of one in a sandbox.
 *
 * Keys go there and what is printed there comes here, raw, until the program ends or
 * the user presses the detach keys. When the daemon is restarted in the middle we come
 * back with the cursor of the last byte printed. Whatever ends it, our own terminal is
 * as it was. */
#ifndef CLI_ATTACH_H
#define CLI_ATTACH_H

#include <stdbool.h>

#include "cli/client.h"
#include "cli/keys.h"

#define ATTACH_RETRY_MS 60000 /* how long a daemon may be away */

struct attach_opts {
    const char *sandbox, *terminal;
    const char *keys; /* to detach with, see keys.h */
    bool read_only;
};

/* The exit status of the program there, 0 after detaching, or -1 and `e`. */
int attach_run(const struct server *s, const struct attach_opts *o, struct err *e);
/* The same for a terminal that `request` (the body of POST .../terminals) makes; the size
 * of ours is added to it. */
int attach_start(const struct server *s, const char *sandbox, json_t *request, const char *keys,
                 struct err *e);
/* ERR_INVALID unless stdin and stdout are a terminal. */
int attach_check(struct err *e);

#endif

/* host.h - `cove host`: the engine on this machine, without sandboxes.
 *
 * Three processes: this one, which any user may run; the front; and init, which starts the
 * commands (init/boot/host.h). To the front this process is a keeper that has one sandbox, the
 * machine: it lists it, starts its init, ends it, and answers `unsupported` to everything else
 * (link.c). It parses nothing that a client wrote.
 *
 * Init outlives a front that is killed, and this process: the next `cove host` of the same
 * directory adopts it. SIGTERM or Ctrl-C ends everything. */
#ifndef HOST_HOST_H
#define HOST_HOST_H

#include <stdbool.h>

#include "base/err.h"

#define HOST_ID "host" /* of the one sandbox */
#define HOST_STATE_MAX 180u

enum host_isolation { ISOLATION_AUTO, ISOLATION_REQUIRE, ISOLATION_OFF };

struct host_opts {               /* all borrowed */
    const char *name;            /* of the command, for messages */
    const char *state;           /* absolute directory; NULL: host_default_state() */
    const char *const *settings; /* --name, value, ..., NULL: as for `cove serve` */
    const char *user;            /* of commands that name none; NULL: ours */
    enum host_isolation isolation;
    bool cgroups;   /* use one if it is delegated to us */
    bool container; /* the front also answers Cloudflare's container API, without a key */
};

/* Returns the exit status. */
int host_main(const struct host_opts *o);
/* $XDG_STATE_HOME/cove/host or ~/.local/state/cove/host; root: /var/lib/cove-host. -1: too long, or no
 * home. */
int host_default_state(char out[HOST_STATE_MAX + 1], struct err *e);

#endif

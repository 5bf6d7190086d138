/* reap.h - pid 1's duty: whoever dies in this sandbox is buried here. */
#ifndef INIT_REAP_H
#define INIT_REAP_H

#include "init/proc.h"
#include "init/session.h"

#define REAPS_PER_TURN 256 /* a dying fork bomb must not stop everyone else */

struct reaper {
    struct procs *procs;
    struct sessions *sessions;
    struct loop_later later;
};

int reap_start(struct reaper *r, struct procs *ps, struct sessions *ss, struct err *e);

#endif

/* nursery.h - the process in which inits are born (init/boot/nursery.h), seen from here:
 * started with the first order, again if somebody killed it, and ended with us.
 *
 * A birth takes most of a millisecond, nearly all of it the kernel's new network
 * namespace; meanwhile the keeper does other things. */
#ifndef KEEPER_NURSERY_H
#define KEEPER_NURSERY_H

#include <sys/types.h>

#include "base/list.h"
#include "loop/loop.h"

struct keeper;
struct sandbox;

struct nursery {
    int fd;
    pid_t pid; /* 0: none */
    struct loop_io io;
    struct loop_timer late;       /* running while something is ordered */
    struct list waiting, ordered; /* sandboxes; only a few are ordered at a time */
    size_t nordered;
};

void nursery_init(struct keeper *k);
/* Sooner or later birth_born() or birth_failed() is called, the latter perhaps at once. */
void nursery_order(struct sandbox *sb);
void nursery_close(struct keeper *k);

#endif

/* nursery.h - the keeper's side of the nursery, the process that clones inits
 * (init/boot/nursery.h): started with the first order, again if it is killed, and ended with the
 * keeper.
 *
 * A clone takes most of a millisecond, nearly all of it for the new network namespace; meanwhile
 * the keeper does other work. */
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
    struct loop_timer late;       /* running while orders are open */
    struct list waiting, ordered; /* sandboxes; only a few are ordered concurrently */
    size_t nordered;
};

void nursery_init(struct keeper *k);
/* birth_born() or birth_failed() is called later; birth_failed() perhaps at once. */
void nursery_order(struct sandbox *sb);
void nursery_close(struct keeper *k);

#endif

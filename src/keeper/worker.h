/* worker.h - threads that do what may block, so that the keeper's loop does not:
 * a snapshot that has to write out what is dirty, memory that is given back, a flush.
 *
 * A piece of work is somebody's struct with this in it. `run` is called in a thread
 * and touches nothing but what it was given; `done` is called from the loop and may
 * free it. Work is begun in the order in which it was given. */
#ifndef KEEPER_WORKER_H
#define KEEPER_WORKER_H

#include <stdbool.h>

#include "base/err.h"

struct keeper;

#define WORKER_THREADS 4

struct work {
    void (*run)(struct work *w);
    void (*done)(struct work *w);
    struct work *next;
};

int worker_open(struct keeper *k, struct err *e);
/* Borrowed until `done`. */
void worker_give(struct work *w);
/* For what takes one flush of a disk and no more: it waits behind nothing else. */
void worker_give_short(struct work *w);
/* For the reserve of the disks: a tenant that fills one must not wait for removals. */
void worker_give_reserve(struct work *w);
/* Something was given whose `done` has not been called yet. */
bool worker_is_busy(void);

#endif

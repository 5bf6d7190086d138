/* worker.h - threads for work that may block the keeper's loop: snapshots, giving memory back,
 * flushes.
 *
 * A piece of work is a struct of the caller with a struct work in it. `run` is called in a thread
 * and touches only what it was given; `done` is called from the loop and may free it. Work starts
 * in the order in which it was given. */
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
/* For one flush of a disk and no more: never waits for longer work. */
void worker_give_short(struct work *w);
/* For the reserve of the disks: a tenant that fills a disk must not wait for removals. */
void worker_give_reserve(struct work *w);
/* True while work is not `done`. */
bool worker_is_busy(void);

#endif

/* loop.h - the event loop, the only place that sleeps.
 *
 * One epoll, timers in a heap, signals, and callbacks deferred to the end of this
 * turn. The structures are embedded in their users, so starting a watch allocates
 * nothing that could leak. A callback may stop, restart or free any watch, its own
 * included: a watch that was stopped in this turn is not called any more. */
#ifndef LOOP_LOOP_H
#define LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/err.h"
#include "base/histogram.h"
#include "base/list.h"

struct loop;

struct loop_io {
    int fd; /* borrowed; stop the watch before closing it. -1 while stopped */
    uint32_t events;
    void (*cb)(struct loop_io *io, uint32_t events);
};

struct loop_timer {
    size_t slot; /* 1-based place in the heap, 0 while stopped */
    uint64_t due_ns;
    void (*cb)(struct loop_timer *t);
};

struct loop_later {
    struct list link; /* zeroed memory is fine: `queued` says */
    bool queued;
    void (*cb)(struct loop_later *l);
};

int loop_new(struct loop **ret, struct err *e);
void loop_free(struct loop *l);
/* Runs until loop_stop(). -1 only when epoll itself fails. */
int loop_run(struct loop *l, struct err *e);
/* One turn; waits at most timeout_ms (-1: until something happens). */
int loop_turn(struct loop *l, int timeout_ms, struct err *e);
void loop_stop(struct loop *l);
/* The time at which this turn woke; cheaper than the clock and the same for
 * everything that happens in one turn. */
uint64_t loop_now_ns(const struct loop *l);

/* What one client asks for makes the others wait while its callback runs. A hold is the processor time
 * of this thread in one callback, a turn that of all callbacks between two waits. */
struct loop_times {
    struct histogram holds, turns;
    uint64_t longest_hold_us;
};
#define LOOP_HOLD_MS 5 /* a longer hold is a bug of ours, and is logged with loop_doing() */
/* From now on holds are measured; costs a system call for each callback. */
void loop_measure(struct loop *l);
const struct loop_times *loop_times(const struct loop *l);
/* Processor time that the running callback has taken; 0 if holds are not measured. */
uint64_t loop_spent_us(const struct loop *l);
/* What the running callback does, for the log. `what` is borrowed until the callback returns. */
void loop_doing(struct loop *l, const char *what);

int loop_io_start(struct loop *l, struct loop_io *io, int fd, uint32_t events,
                  void (*cb)(struct loop_io *io, uint32_t events), struct err *e);
/* Changes what is waited for; 0 keeps the fd but waits for nothing except
 * EPOLLHUP and EPOLLERR, which epoll always reports. */
void loop_io_set(struct loop *l, struct loop_io *io, uint32_t events);
void loop_io_stop(struct loop *l, struct loop_io *io);

/* -1 when out of memory. A running timer is moved. */
int loop_timer_set(struct loop *l, struct loop_timer *t, uint64_t after_ms,
                   void (*cb)(struct loop_timer *t));
void loop_timer_stop(struct loop *l, struct loop_timer *t);

/* Calls cb once, after the events of this turn. */
void loop_defer(struct loop *l, struct loop_later *d, void (*cb)(struct loop_later *d));
void loop_undefer(struct loop_later *d);

/* An object that serves this loop and is freed with it; one slot (job.c). */
struct loop_guest {
    void (*free)(struct loop_guest *g);
};
struct loop_guest **loop_guest(struct loop *l);

/* Blocks the signal and delivers it here instead. cb may be NULL: ignored. */
int loop_signal(struct loop *l, int signo, void (*cb)(void *arg, int signo), void *arg,
                struct err *e);

#endif

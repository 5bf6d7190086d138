/* job.h - what may block is done by threads; its end is told on the loop.
 *
 * A few threads serve one loop, started when there is work for them. A job that
 * hangs holds one of them and never the loop. `run` touches nothing but what the
 * job owns; whoever gave it leaves that alone until `done`. Jobs that were taken
 * by no thread yet can be taken back. */
#ifndef LOOP_JOB_H
#define LOOP_JOB_H

#include "loop/loop.h"

#define JOB_THREADS_MAX 8 /* more jobs than that at a time wait for each other */

struct job { /* lives in its user; zeroed memory is one that never began */
    struct list link;
    bool busy;                   /* from its start until `done`; the loop's to look at */
    bool queued;                 /* no thread has it yet; the pool's own */
    void (*run)(struct job *w);  /* in a thread */
    void (*done)(struct job *w); /* on the loop; may free it, or start it again */
    void (*drop)(struct job *w); /* instead, if the loop ends first; may be NULL. Set by its user */
};

/* If no thread can be had it is done here and now, and `done` still comes later. */
void job_start(struct loop *l, struct job *w, void (*run)(struct job *w),
               void (*done)(struct job *w));
/* True: it will not run and `done` will not come. False: `done` will come (or it
 * was not started). */
bool job_cancel(struct loop *l, struct job *w);
/* For `run`: whether somebody waits for this thread. */
bool job_is_awaited(struct loop *l);
/* Closes an fd whose close may block. */
void job_close(struct loop *l, int fd);

#endif

/* job.h - runs blocking work in threads and reports the result on the loop.
 *
 * A few threads serve one loop, started when there is work for them. A job that
 * hangs blocks one of them and never the loop. `run` uses only memory that the job
 * owns, and its user does not touch that memory until `done`. A job that no thread
 * has taken yet can be cancelled. */
#ifndef LOOP_JOB_H
#define LOOP_JOB_H

#include "loop/loop.h"

#define JOB_THREADS_MAX 8 /* further jobs wait */

struct job { /* embedded in its user; zeroed memory is a job that was never started */
    struct list link;
    bool busy;                   /* from its start until `done`; read on the loop only */
    bool queued;                 /* no thread has it yet; private to the pool */
    void (*run)(struct job *w);  /* in a thread */
    void (*done)(struct job *w); /* on the loop; may free it, or start it again */
    void (*drop)(struct job *w); /* instead, if the loop ends first; may be NULL. Set by its user */
};

/* If no thread can be started it runs here, and `done` is still called later. */
void job_start(struct loop *l, struct job *w, void (*run)(struct job *w),
               void (*done)(struct job *w));
/* True: it will not run and `done` will not be called. False: `done` will be called (or
 * the job was not started). */
bool job_cancel(struct loop *l, struct job *w);
/* For `run`: true if another job waits for a thread. */
bool job_is_awaited(struct loop *l);
/* Closes an fd whose close may block. */
void job_close(struct loop *l, int fd);

#endif

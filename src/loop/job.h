/* job.h - runs blocking work in threads and reports the result on the loop.
 *
 * A few threads serve one loop, started when there is work for them. A job that
 * hangs blocks one of them and never the loop. `run` uses only memory that the job
 * owns, and its user does not touch that memory until `done`. A job that no thread
 * has taken yet can be cancelled.
 *
 * Threads are in lanes, so that short work never waits for long work. A tenant can make a job of
 * its own take seconds: closing the last fd of a removed file frees its extents one by one. So of
 * the threads of a lane those who share a number have only a part: their further jobs wait for each
 * other. Jobs of a lane begin in the order in which they were started. */
#ifndef LOOP_JOB_H
#define LOOP_JOB_H

#include "base/err.h"
#include "loop/loop.h"

enum job_lane {
    JOB_WORK,
    JOB_CLOSE,   /* of fds */
    JOB_STORE,   /* of archives: may be a slow server */
    JOB_DISK,    /* the keeper's longer work: snapshots, removals, giving memory back */
    JOB_FLUSH,   /* one flush of a disk and no more */
    JOB_RESERVE, /* of the disks: a tenant that fills a disk must not wait for removals */
    JOB_LANE_COUNT
};

/* More jobs of a lane than that wait for each other, in each lane and of each share. */
#define JOB_THREADS_MAX 32u
#define JOB_SHARE_MAX 8u
#define JOB_CLOSERS_MAX 16u
#define JOB_CLOSERS_SHARE_MAX 4u
#define JOB_STORES_MAX 12u
#define JOB_STORES_SHARE_MAX 4u
#define JOB_DISKS_MAX 4u

struct job { /* embedded in its user; zeroed memory is a job that was never started */
    struct list link;
    bool busy;                   /* from its start until `done`; read on the loop only */
    bool queued;                 /* no thread has it yet; private to the pool, like `over` */
    bool over;                   /* it has run */
    enum job_lane lane;          /* set by its user before its start, like `share` and `drop` */
    uint32_t share;              /* job_share() of the key it is done for; 0: done for ourselves */
    void (*run)(struct job *w);  /* in a thread */
    void (*done)(struct job *w); /* on the loop; may free it, or start it again */
    void (*drop)(struct job *w); /* instead, if the loop ends first; may be NULL */
};

/* Starts all threads of the lane now; without it they are started when there is work. */
int job_open(struct loop *l, enum job_lane lane, struct err *e);
/* If no thread can be started it runs here, and `done` is still called later. */
void job_start(struct loop *l, struct job *w, void (*run)(struct job *w),
               void (*done)(struct job *w));
/* True: it will not run and `done` will not be called. False: `done` will be called (or
 * the job was not started). */
bool job_cancel(struct loop *l, struct job *w);
/* For its user's end, outside of the loop: it has run or never will, and `done` is not called. Waits. */
void job_settle(struct loop *l, struct job *w);
/* The same for at most so long; false: it still runs, and the memory of the job must stay. */
bool job_settle_within(struct loop *l, struct job *w, unsigned seconds);
/* True while some job is not `done`. */
bool job_is_busy(struct loop *l);
/* For `run` in JOB_WORK: true if another job waits for a thread. */
bool job_is_awaited(struct loop *l);
/* Closes an fd whose close may block. */
void job_close(struct loop *l, int fd, uint32_t share);
/* Frees memory. The system takes back a large block page by page, which takes milliseconds. */
void job_free(struct loop *l, void *mem, size_t size, uint32_t share);
struct buf;
void job_free_buf(struct loop *l, struct buf *b, uint32_t share);
/* A number for all jobs of this key. NULL: 0. */
uint32_t job_share(const char *key);

#endif

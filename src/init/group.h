/* group.h - one cgroup per command, so that everything it started can be found
 * and killed, whatever it did to hide.
 *
 * An empty group is used again, unless it was killed: since then the kernel kills
 * whatever is born into it. A group that is given back while something lives in
 * it lingers, and is removed when that has ended. */
#ifndef INIT_GROUP_H
#define INIT_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"

#define GROUPS_MAX 4096u             /* in all, lingering ones too; then ERR_LIMIT */
#define GROUPS_SPARE_MAX 8u          /* empty ones kept ready */
#define GROUP_SIGNAL_MAX (64u << 10) /* bytes of cgroup.procs read at once, some 9,000 pids */

struct groups {
    struct loop *loop;
    int run_fd;  /* borrowed: the directory they are made in */
    int stat_fd; /* its cgroup.stat.local, -1 where the kernel has none (before 6.18) */
    struct freezes {
        int fd; /* then we watch its cgroup.events; -1: nobody asked for that */
        struct loop_io io;
        uint64_t total_ns, since_ns; /* since 0: they run */
    } freezes;
    int oom_fd;        /* borrowed: a file with the sandbox's `oom_kill N`; 0 or less: none */
    uint64_t oom_told; /* how many there were when an end was last laid to them */
    uint64_t next;
    unsigned max; /* of count; then ERR_LIMIT */
    unsigned count, nspare;
    struct list spare, watched;
    struct loop_timer sweep;
    uint64_t sweep_ms; /* until the next look at the urgent ones; doubles */
};

struct group {
    struct groups *all;
    struct list link; /* in spare, or in watched, or in none */
    uint64_t number;
    int fd;                      /* the directory, for clone3 */
    int events_fd;               /* its cgroup.events */
    int procs_fd;                /* its cgroup.procs, once somebody counted them; else -1 */
    bool spent;                  /* killed: never used again */
    bool urgent;                 /* somebody waits for it to be empty */
    void (*on_empty)(void *arg); /* NULL while it lingers without an owner */
    void *arg;
};

void groups_init(struct groups *gs, struct loop *l, int run_fd, int oom_fd);

/* How often the kernel killed something in this sandbox for want of memory. */
uint64_t groups_oom_kills(const struct groups *gs);
/* True if it did so since there were `since`, and no end was laid to that yet. */
bool groups_had_oom(struct groups *gs, uint64_t since);

/* How long all of them together have been frozen so far, in ms. */
uint64_t groups_frozen_ms(const struct groups *gs);
/* Where the kernel does not say that by itself it is measured from here on. */
int groups_watch_freezes(struct groups *gs, struct err *e);

/* An empty group; belongs to the caller until group_put(). */
int group_take(struct groups *gs, struct group **ret, struct err *e);
/* Give back, empty or not. NULL is fine. */
void group_put(struct group *g);

/* True: it is empty now. False: on_empty comes later, once. */
bool group_watch(struct group *g, void (*on_empty)(void *arg), void *arg);
/* The wait for on_empty has become urgent: look again soon, not just now and then. */
void group_hurry(struct group *g);

/* Kills everything in it, at once and without a way around. */
int group_kill(struct group *g, struct err *e);
/* Sends a signal to everything in it that was there when we looked. */
int group_signal(struct group *g, int signo, struct err *e);

/* True: nobody is in it but this one, if it is; or it cannot be read. */
bool group_is_only(struct group *g, pid_t one);
bool group_is_empty(const struct group *g);
/* Nothing lives in any of them: their directories go, `own` (taken, may be NULL) too.
 * None of them is used any more. */
void groups_remove(struct groups *gs, struct group *own);

/* Children were reaped: some group may be empty now. */
void groups_poke(struct groups *gs);

#endif

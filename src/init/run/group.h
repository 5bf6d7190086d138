/* group.h - one cgroup per command, so that every process it started can be found and killed,
 * even if it tries to hide. Where there is no cgroup for that (host mode), a mark that processes
 * inherit (mark.h): struct group_way has what differs.
 *
 * An empty group is used again, unless it was killed: the kernel kills whatever is born into
 * a killed group. A group that is given back while processes live in it lingers, and is
 * removed when they have ended. */
#ifndef INIT_RUN_GROUP_H
#define INIT_RUN_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"

#define GROUPS_MAX 4096u             /* lingering ones too; then ERR_LIMIT */
#define GROUPS_SPARE_MAX 8u          /* empty ones kept ready */
#define GROUP_SIGNAL_MAX (64u << 10) /* bytes of cgroup.procs read at once, some 9,000 pids */

struct groups;
struct group;
struct group_way;

/* A process on its way to another group; it may take milliseconds, so a thread does it. */
struct group_move {
    pid_t pid;
    uint64_t mark;
    int fd; /* -1: none */
    const struct group_way *way;
};

/* How the processes of a group are known. */
struct group_way {
    int (*make)(struct group *g, struct err *e);
    int (*remove)(struct group *g); /* -1: not yet */
    bool (*is_empty)(const struct group *g);
    int (*kill)(struct group *g, struct err *e);
    int (*signal)(struct group *g, int signo, struct err *e);
    bool (*is_only)(struct group *g, pid_t one);
    bool (*kill_all)(const struct groups *gs); /* false: some may still live */
    /* Before the thread that moves, and in it. */
    void (*move_begin)(struct group *to, struct group_move *m);
    void (*move)(const struct group_move *m);
};

struct groups {
    const struct group_way *way;
    struct loop *loop;
    struct group *home; /* they are in this one, which is killed with all of them; NULL: none */
    int run_fd;         /* borrowed: the directory they are made in; -1 without cgroups */
    int stat_fd;        /* its cgroup.stat.local, -1 where the kernel has none (before 6.18) */
    struct freezes {
        int fd; /* its cgroup.events, where stat_fd is -1 and we must watch; else -1 */
        struct loop_io io;
        uint64_t total_ns, since_ns; /* since 0: not frozen now */
    } freezes;
    int oom_fd;        /* borrowed: a file with the sandbox's `oom_kill N`; 0 or less: none */
    uint64_t oom_told; /* how many there were when an exit was last blamed on them */
    uint64_t next;
    unsigned max; /* of count; then ERR_LIMIT */
    unsigned count, nspare;
    struct list spare, watched;
    struct loop_timer sweep;
    uint64_t sweep_ms; /* until the next check of the urgent ones; doubles */
};

struct group {
    struct groups *all;
    uint64_t mark;    /* 0: it has a cgroup */
    bool is_home;     /* it has groups in it */
    struct list link; /* in spare, or in watched, or in none */
    uint64_t number;
    int fd;        /* the directory, for clone3 */
    int events_fd; /* its cgroup.events */
    int procs_fd;  /* its cgroup.procs, once group_is_only() was called; else -1 */
    bool spent;    /* never used again */
    bool killed;
    bool urgent;                 /* a caller waits for it to be empty */
    void (*on_empty)(void *arg); /* NULL while it lingers without an owner */
    void *arg;
};

/* run_fd -1: without cgroups. */
void groups_init(struct groups *gs, struct loop *l, int run_fd, int oom_fd);
/* Groups in `home`: what is killed with it. */
void groups_init_in(struct groups *gs, struct loop *l, struct group *home);

/* How many processes of this sandbox the OOM killer has killed. */
uint64_t groups_oom_kills(const struct groups *gs);
/* True if there are more than `since`, and no exit was blamed on them yet. */
bool groups_had_oom(struct groups *gs, uint64_t since);

/* How long all of them together have been frozen so far, in ms. */
uint64_t groups_frozen_ms(const struct groups *gs);
/* Where the kernel does not count that, it is measured from now on. */
int groups_watch_freezes(struct groups *gs, struct err *e);

/* An empty group; belongs to the caller until group_put(). */
int group_take(struct groups *gs, struct group **ret, struct err *e);
/* Give back, empty or not. NULL is fine. */
void group_put(struct group *g);

/* True: it is empty now. False: on_empty comes later, once. */
bool group_watch(struct group *g, void (*on_empty)(void *arg), void *arg);
/* The wait for on_empty has become urgent: check again soon. */
void group_hurry(struct group *g);

/* Kills every process in it; none can escape. */
int group_kill(struct group *g, struct err *e);
/* Sends a signal to the processes that are in it now; a fork meanwhile may escape. */
int group_signal(struct group *g, int signo, struct err *e);

/* True: it holds no other process than `one`, or cannot be read. */
bool group_is_only(struct group *g, pid_t one);
bool group_is_empty(const struct group *g);
/* group_move() is for a thread; group_move_begin() before it, group_move_end() after it. */
void group_move_begin(struct group *to, pid_t pid, struct group_move *ret);
void group_move(const struct group_move *m);
void group_move_end(struct group_move *m);
/* No process lives in any of them: removes their directories, and that of `own` (taken, may
 * be NULL). None may be used afterwards. */
void groups_remove(struct groups *gs, struct group *own);

/* All processes of all groups; waits for their end, for a time. */
void groups_kill_all(struct groups *gs);

/* Children were reaped: some group may be empty now. */
void groups_poke(struct groups *gs);

#endif

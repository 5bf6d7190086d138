/* internal.h - what the files of host/ share. */
#ifndef HOST_INTERNAL_H
#define HOST_INTERNAL_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/own.h"
#include "config/config.h"
#include "daemon/key.h"
#include "daemon/listen.h"
#include "host/host.h"
#include "loop/loop.h"

enum engine_state { ENGINE_DOWN, ENGINE_UP, ENGINE_ENDING };

struct host {
    const struct host_opts *o;
    struct config config;
    struct loop *loop;
    char state[HOST_STATE_MAX + 1];
    char url[LISTEN_URL_MAX], key_hash[KEY_HASH];
    int dir_fd, run_fd, front_fd, lock_fd, listen_fd;
    int init_fd, helper_fd; /* the programs */
    int cgroup_fd;          /* ours, in which `run` is made; -1: none is delegated */
    char cgroup_path[512];
    bool isolated, ready;
    int status;

    struct {
        enum engine_state state;
        pid_t pid;
        int pidfd;
        struct loop_io io;
        char boot_id[40];
        uint64_t started_ms;
    } engine;
    struct {
        pid_t pid;
        int pidfd;
        struct loop_io io;
        struct loop_timer again;
        uint64_t wait_ms;
    } front;
    struct {
        int fd;
        struct loop_io io;
        struct buf in, out;
        bool listed;
    } link;
    bool ending;
};

/* cgroup.c: a cgroup of ours, if this user may make one. Never fails: without it processes are
 * known by marks. */
void cgroup_begin(struct host *h);
/* An empty directory for one init; -1: none. */
int cgroup_run(struct host *h);
void cgroup_end(struct host *h);

/* isolate.c: a child in namespaces of its own, or without. It returns in the child with 0, in the
 * parent with the pid; -1 with `e`. */
pid_t isolate_fork(struct host *h, int *ret_pidfd, struct err *e);

/* engine.c: init. */
int engine_start(struct host *h, struct err *e); /* or adopts the one that runs */
void engine_stop(struct host *h);                /* with all it started; waits */

/* front.c */
int front_begin(struct host *h, struct err *e);
void front_end(struct host *h); /* a second call kills it */

/* link.c: the keeper that the front sees. */
int link_begin(struct host *h, int fd, struct err *e);
void link_end(struct host *h);
void link_died(struct host *h, const char *why);
void host_is_ready(struct host *h);

#endif

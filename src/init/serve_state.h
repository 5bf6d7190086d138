/* serve_state.h - what serve.c, conn.c and wait.c share. */
#ifndef INIT_SERVE_STATE_H
#define INIT_SERVE_STATE_H

#include "init/conn.h"
#include "init/proc.h"
#include "init/reap.h"

struct serve {
    struct loop *loop;
    struct procs procs;
    struct reaper reaper;
    struct loop_io listen;
    int listen_fd;
    int spare_fd; /* given up for a moment when fds run out, to refuse a connection */
    struct list conns;
    unsigned nconns;
    struct init_hello hello;
};

#endif

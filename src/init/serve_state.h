/* serve_state.h - what serve.c, serve_start.c, conn.c, wait.c and session_serve.c share. */
#ifndef INIT_SERVE_STATE_H
#define INIT_SERVE_STATE_H

#include "init/conn.h"
#include "init/proc.h"
#include "init/reap.h"
#include "init/session.h"

/* Any request, decoded. */
union request {
    struct init_start start;
    struct init_attach attach;
    struct init_stdin in;
    struct init_signal signal;
    struct init_kill kill;
    struct init_list list;
    struct init_get get;
    struct init_wait wait;
    struct init_wait_port port;
    struct init_wait_log log;
    struct init_monitor monitor;
    struct init_journal journal;
    struct init_view view;
    struct init_resize resize;
    struct init_open open;
    struct init_look look;
    struct init_write write;
    struct init_connect connect;
    struct init_session_create session_create;
    struct init_session_get session_get;
    struct init_session_delete session_delete;
    struct init_session_exec session_exec;
    struct init_session_more session_more;
    struct init_session_interrupt session_interrupt;
    struct init_session_commands session_commands;
    struct init_session_start session_start;
};

struct serve {
    struct loop *loop;
    struct procs procs;
    struct sessions sessions;
    struct reaper reaper;
    struct loop_io listen;
    int listen_fd;
    int spare_fd; /* given up for a moment when fds run out, to refuse a connection */
    struct list conns;
    unsigned nconns;
    struct init_hello hello;
};

#endif

/* fsm.h - what each event means to a process, decided for every state.
 *
 * A process is two things that end separately: its root, which we started and
 * reap, and its group, which holds everything the root left behind. The states
 * are the combinations; an act is what the caller must do about an event. */
#ifndef INIT_FSM_H
#define INIT_FSM_H

enum proc_state {
    PROC_RUNNING,     /* the root runs */
    PROC_ASKED,       /* ...and the group was sent TERM; its grace is running */
    PROC_FORCED,      /* ...and the group was killed */
    PROC_LEFT,        /* the root ended; others of its group may live on */
    PROC_LEFT_ASKED,  /* ...and were sent TERM */
    PROC_LEFT_FORCED, /* ...and were killed */
    PROC_GONE,        /* nothing of it lives */
    PROC_STATE_COUNT
};

enum proc_event {
    EV_KILL,    /* somebody wants it gone and grants a grace */
    EV_FORCE,   /* the grace is over, or there never was one */
    EV_TIMEOUT, /* its own time limit passed */
    EV_EXIT,    /* the root was reaped */
    EV_EMPTY,   /* the group holds no process any more */
    PROC_EVENT_COUNT
};

enum proc_act {
    ACT_UNDECIDED, /* an empty cell; test_init_proc_fsm.c refuses it */
    ACT_STALE,     /* nothing to do, and that is a decision */
    ACT_ASK,       /* TERM to the group, start the grace */
    ACT_FORCE,     /* kill the group */
    ACT_EXPIRE,    /* kill the group and say timed out */
    ACT_REAP,      /* record the exit, watch the group become empty */
    ACT_REAP_ASK,  /* the same, and TERM for those who were born since the first */
    ACT_BURY,      /* give the group back, answer who waits for that */
    PROC_ACT_COUNT
};

/* Moves *s on and returns what to do. */
enum proc_act proc_step(enum proc_state *s, enum proc_event ev);

#endif

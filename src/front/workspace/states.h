/* states.h - the life of a workspace: every state, every event, what follows.
 *
 * Entering a state begins its operation on the backend (make, undo, pause, wake, archive, remove);
 * what comes of it is DONE, FAIL or LOST. Each change of state is one row, durable before anything
 * follows from it. The diagram in docs/workspace-states.md is generated from this table. */
#ifndef FRONT_WORKSPACE_STATES_H
#define FRONT_WORKSPACE_STATES_H

/* The numbers are in the database: new states go to the end. */
/* clang-format off */
#define WS_STATES(X)                                                                                 \
    /* state       shown       operation    what it means */                                         \
    X(COLD,        "cold",     NONE,    "no sandbox; its files are in the newest archive, if it has one")      \
    X(WARMING,     "warming",  MAKE,    "a sandbox is being made, from the archive if there is one") \
    X(WARM,        "warm",     NONE,    "its sandbox runs")                                          \
    X(DRAINING,    "draining", NONE,    "nothing uses its sandbox, which still runs")                          \
    X(PAUSING,     "draining", PAUSE,   "its sandbox is being paused")                               \
    X(PAUSED,      "draining", NONE,    "its sandbox is paused")                                     \
    X(WAKING,      "draining", WAKE,    "its sandbox is being resumed")                              \
    X(ARCHIVING,   "draining", ARCHIVE, "the files of its paused sandbox are being archived")        \
    X(REMOVING,    "draining", REMOVE,  "its sandbox, which is archived, is being deleted")          \
    X(UNDOING,     "cold",     UNDO,    "what an interrupted make left is being deleted")            \
    X(DELETING,    "deleting", REMOVE,  "the workspace is being deleted with everything it has")

#define WS_EVENTS(X)                                                     \
    X(USE,     "an operation or a holder")                               \
    X(DONE,    "the operation of the state succeeded")                   \
    X(FAIL,    "it failed, and its sandbox may still exist")             \
    X(LOST,    "its sandbox is known not to exist any more")             \
    X(STILL,   "its sandbox was found paused or stopped, by someone else or by a failure of the host") \
    X(REST,    "the time of the state is over and nothing uses it, or a failed operation is due again") \
    X(DELETE,  "its owner deletes it")                                   \
    X(START,   "the server found it in this state when it started")
/* clang-format on */

#define X(name, ...) WS_##name,
enum ws_state { WS_STATES(X) WS_STATE_COUNT };
#undef X
#define X(name, ...) WS_EV_##name,
enum ws_event { WS_EVENTS(X) WS_EVENT_COUNT };
#undef X
enum ws_op {
    WS_OP_NONE,
    WS_OP_MAKE,
    WS_OP_UNDO,
    WS_OP_PAUSE,
    WS_OP_WAKE,
    WS_OP_ARCHIVE,
    WS_OP_REMOVE
};

/* What happens to those who wait. */
enum ws_tell {
    WS_KEEP = 1, /* nothing: they wait on */
    WS_SERVE,    /* they get the sandbox */
    WS_REFUSE,   /* they get the error */
    WS_LATER,    /* the event is remembered and comes again when the state has changed */
    WS_NEVER,    /* the event cannot come in this state; changes nothing */
};

struct ws_step {
    enum ws_state next; /* the same state: its operation begins again if none is under way */
    enum ws_tell tell;
};
extern const struct ws_step ws_steps[WS_STATE_COUNT][WS_EVENT_COUNT];

struct ws_state_info {
    const char *name, *shown, *meaning;
    enum ws_op op;
};
extern const struct ws_state_info ws_states[WS_STATE_COUNT];
extern const struct ws_event_info {
    const char *name, *meaning;
} ws_events[WS_EVENT_COUNT];

#endif

/* fsm.c - see fsm.h. */
#include "init/fsm.h"

struct cell {
    enum proc_act act;
    enum proc_state next;
};

/* clang-format off */
/* A second kill does not start a second grace: the first one stands, and who is
 * in a hurry sends a kill without grace, which is EV_FORCE. An empty group while
 * the root is unreaped is stale: a zombie is in no group, its exit comes next. */
static const struct cell table[PROC_STATE_COUNT][PROC_EVENT_COUNT] = {
    [PROC_RUNNING] = {
        [EV_KILL]    = {ACT_ASK,    PROC_ASKED},
        [EV_FORCE]   = {ACT_FORCE,  PROC_FORCED},
        [EV_TIMEOUT] = {ACT_EXPIRE, PROC_FORCED},
        [EV_EXIT]    = {ACT_REAP,   PROC_LEFT},
        [EV_EMPTY]   = {ACT_STALE,  PROC_RUNNING}},
    [PROC_ASKED] = {
        [EV_KILL]    = {ACT_STALE,  PROC_ASKED},
        [EV_FORCE]   = {ACT_FORCE,  PROC_FORCED},
        [EV_TIMEOUT] = {ACT_EXPIRE, PROC_FORCED},
        [EV_EXIT]    = {ACT_REAP_ASK, PROC_LEFT_ASKED},
        [EV_EMPTY]   = {ACT_STALE,  PROC_ASKED}},
    [PROC_FORCED] = {
        [EV_KILL]    = {ACT_STALE,  PROC_FORCED},
        [EV_FORCE]   = {ACT_STALE,  PROC_FORCED},
        [EV_TIMEOUT] = {ACT_STALE,  PROC_FORCED},
        [EV_EXIT]    = {ACT_REAP,   PROC_LEFT_FORCED},
        [EV_EMPTY]   = {ACT_STALE,  PROC_FORCED}},
    [PROC_LEFT] = {
        [EV_KILL]    = {ACT_ASK,    PROC_LEFT_ASKED},
        [EV_FORCE]   = {ACT_FORCE,  PROC_LEFT_FORCED},
        [EV_TIMEOUT] = {ACT_STALE,  PROC_LEFT},
        [EV_EXIT]    = {ACT_STALE,  PROC_LEFT},
        [EV_EMPTY]   = {ACT_BURY,   PROC_GONE}},
    [PROC_LEFT_ASKED] = {
        [EV_KILL]    = {ACT_STALE,  PROC_LEFT_ASKED},
        [EV_FORCE]   = {ACT_FORCE,  PROC_LEFT_FORCED},
        [EV_TIMEOUT] = {ACT_STALE,  PROC_LEFT_ASKED},
        [EV_EXIT]    = {ACT_STALE,  PROC_LEFT_ASKED},
        [EV_EMPTY]   = {ACT_BURY,   PROC_GONE}},
    [PROC_LEFT_FORCED] = {
        [EV_KILL]    = {ACT_STALE,  PROC_LEFT_FORCED},
        [EV_FORCE]   = {ACT_STALE,  PROC_LEFT_FORCED},
        [EV_TIMEOUT] = {ACT_STALE,  PROC_LEFT_FORCED},
        [EV_EXIT]    = {ACT_STALE,  PROC_LEFT_FORCED},
        [EV_EMPTY]   = {ACT_BURY,   PROC_GONE}},
    [PROC_GONE] = {
        [EV_KILL]    = {ACT_STALE,  PROC_GONE},
        [EV_FORCE]   = {ACT_STALE,  PROC_GONE},
        [EV_TIMEOUT] = {ACT_STALE,  PROC_GONE},
        [EV_EXIT]    = {ACT_STALE,  PROC_GONE},
        [EV_EMPTY]   = {ACT_STALE,  PROC_GONE}},
};
/* clang-format on */

enum proc_act proc_step(enum proc_state *s, enum proc_event ev)
{
    const struct cell *c = &table[*s][ev];

    *s = c->next;
    return c->act;
}

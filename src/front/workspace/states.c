/* states.c - see states.h. */
#include "front/workspace/states.h"

/* clang-format off */
#define S(state, tell) {WS_##state, WS_##tell}
const struct ws_step ws_steps[WS_STATE_COUNT][WS_EVENT_COUNT] = {
    /*              USE                    DONE                   FAIL                   LOST                   STILL                  REST                   DELETE                 START */
    [WS_COLD]      = {S(WARMING, KEEP),      S(COLD, NEVER),        S(COLD, NEVER),        S(COLD, NEVER),        S(COLD, NEVER),        S(COLD, KEEP),         S(DELETING, KEEP),     S(COLD, KEEP)},
    [WS_WARMING]   = {S(WARMING, KEEP),      S(WARM, SERVE),        S(UNDOING, REFUSE),    S(UNDOING, REFUSE),    S(WARMING, NEVER),     S(WARMING, KEEP),      S(WARMING, LATER),     S(UNDOING, KEEP)},
    [WS_WARM]      = {S(WARM, SERVE),        S(WARM, NEVER),        S(WARM, NEVER),        S(COLD, KEEP),         S(PAUSED, KEEP),       S(DRAINING, KEEP),     S(DELETING, KEEP),     S(WARM, KEEP)},
    [WS_DRAINING]  = {S(WARM, SERVE),        S(DRAINING, NEVER),    S(DRAINING, NEVER),    S(COLD, KEEP),         S(PAUSED, KEEP),       S(PAUSING, KEEP),      S(DELETING, KEEP),     S(DRAINING, KEEP)},
    [WS_PAUSING]   = {S(WAKING, KEEP),       S(PAUSED, KEEP),       S(DRAINING, KEEP),     S(COLD, KEEP),         S(PAUSING, NEVER),     S(PAUSING, KEEP),      S(PAUSING, LATER),     S(DRAINING, KEEP)},
    [WS_PAUSED]    = {S(WAKING, KEEP),       S(PAUSED, NEVER),      S(PAUSED, NEVER),      S(COLD, KEEP),         S(PAUSED, NEVER),      S(ARCHIVING, KEEP),    S(DELETING, KEEP),     S(PAUSED, KEEP)},
    [WS_WAKING]    = {S(WAKING, KEEP),       S(WARM, SERVE),        S(DRAINING, REFUSE),   S(COLD, KEEP),         S(WAKING, NEVER),      S(WAKING, KEEP),       S(WAKING, LATER),      S(DRAINING, KEEP)},
    [WS_ARCHIVING] = {S(WAKING, KEEP),       S(REMOVING, KEEP),     S(PAUSED, KEEP),       S(COLD, KEEP),         S(ARCHIVING, NEVER),   S(ARCHIVING, KEEP),    S(ARCHIVING, LATER),   S(PAUSED, KEEP)},
    [WS_REMOVING]  = {S(REMOVING, KEEP),     S(COLD, KEEP),         S(REMOVING, REFUSE),   S(COLD, KEEP),         S(REMOVING, NEVER),    S(REMOVING, KEEP),     S(REMOVING, LATER),    S(REMOVING, KEEP)},
    [WS_UNDOING]   = {S(UNDOING, KEEP),      S(COLD, KEEP),         S(UNDOING, REFUSE),    S(COLD, KEEP),         S(UNDOING, NEVER),     S(UNDOING, KEEP),      S(UNDOING, LATER),     S(UNDOING, KEEP)},
    [WS_DELETING]  = {S(DELETING, REFUSE),   S(DELETING, NEVER),    S(DELETING, REFUSE),   S(DELETING, NEVER),    S(DELETING, NEVER),    S(DELETING, KEEP),     S(DELETING, KEEP),     S(DELETING, KEEP)},
};
#undef S

#define X(name, shown, op, meaning) [WS_##name] = {#name, shown, meaning, WS_OP_##op},
const struct ws_state_info ws_states[WS_STATE_COUNT] = {WS_STATES(X)};
#undef X
#define X(name, meaning) [WS_EV_##name] = {#name, meaning},
const struct ws_event_info ws_events[WS_EVENT_COUNT] = {WS_EVENTS(X)};
#undef X
/* clang-format on */

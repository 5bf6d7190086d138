/* from_init.h - from messages of init to the types of process.h and session.h.
 *
 * Planes see the engine's types only, so that a change of a message stops here. The fields are
 * copied by the tables of wire/init.h. */
#ifndef FRONT_ENGINE_RUN_FROM_INIT_H
#define FRONT_ENGINE_RUN_FROM_INIT_H

#include <assert.h>

#include "front/engine/copy.h"
#include "front/engine/session.h"
#include "wire/init.h"

/* clang-format off */
#define FROM_INIT(X) \
    X(init_started,   process_started,   INIT_STARTED_FIELDS) \
    X(init_output,    process_output,    INIT_OUTPUT_FIELDS) \
    X(init_truncated, process_truncated, INIT_TRUNCATED_FIELDS) \
    X(init_screen,    process_screen,    INIT_SCREEN_FIELDS) \
    X(init_exit,      process_exit,      INIT_EXIT_FIELDS) \
    X(init_end,       process_end,       INIT_END_FIELDS) \
    X(init_proc,      process_info,      INIT_PROC_FIELDS) \
    X(init_session,   session_info,      INIT_SESSION_FIELDS)
/* clang-format on */

#define X(from, to, fields)                                                                        \
    static inline struct to to##_from(const struct from *m)                                        \
    {                                                                                              \
        return (struct to){fields(COPY_FIELD, m)};                                                 \
    }
FROM_INIT(X)
#undef X

/* Numbers and bounds go through as they are. */
static_assert(PROCESS_ID_MAX == INIT_ID_MAX && PROCESS_REF_MAX == INIT_REF_MAX, "");
static_assert(PROCESS_ARGS_MAX == INIT_ARGS_MAX && PROCESS_CHUNK_MAX == INIT_CHUNK_MAX, "");
static_assert(PROCESS_TEXT_MAX == INIT_TEXT_MAX && TERMINAL_SIDE_MAX == INIT_TERM_SIDE_MAX, "");
static_assert(SESSION_SCRIPT_MAX == INIT_SCRIPT_MAX && PROCESS_GENTLE_MS == INIT_GENTLE_MS, "");
static_assert(ENGINE_USER_MAX == INIT_USER_MAX && ENGINE_PATH_MAX == INIT_PATH_MAX, "");
static_assert((int)PROCESS_STDOUT == INIT_STDOUT && (int)PROCESS_STDERR == INIT_STDERR, "");
static_assert((int)PROCESS_RUNNING == INIT_RUNNING && (int)PROCESS_EXITED == INIT_EXITED &&
                  (int)PROCESS_QUEUED == INIT_QUEUED,
              "");
static_assert((int)SESSION_IDLE == INIT_SESSION_IDLE && (int)SESSION_BUSY == INIT_SESSION_BUSY &&
                  (int)SESSION_ENDED == INIT_SESSION_ENDED &&
                  (int)SESSION_RESTARTS == INIT_SESSION_RESTART,
              "");
static_assert((int)PROCESS_EXIT_TIMED_OUT == INIT_EXIT_TIMED_OUT &&
                  (int)PROCESS_EXIT_CORE == INIT_EXIT_CORE &&
                  (int)PROCESS_EXIT_KILLED == INIT_EXIT_KILLED &&
                  (int)PROCESS_EXIT_OOM == INIT_EXIT_OOM &&
                  (int)PROCESS_EXIT_OOM_MEANWHILE == INIT_EXIT_OOM_MEANWHILE &&
                  (int)PROCESS_EXIT_INTERRUPTED == INIT_EXIT_INTERRUPTED &&
                  (int)PROCESS_EXIT_NEVER_RAN == INIT_EXIT_NEVER_RAN &&
                  (int)PROCESS_EXIT_SESSION_ENDED == INIT_EXIT_SESSION_ENDED,
              "");

#endif

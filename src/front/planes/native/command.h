/* command.h - what exec and processes have in common: how a command is described
 * in a request. */
#ifndef FRONT_PLANES_NATIVE_COMMAND_H
#define FRONT_PLANES_NATIVE_COMMAND_H

#include "front/engine/process.h"
#include "front/plane/exit.h"
#include "front/plane/maps.h"
#include "json/read.h"

/* argv and environment together are bounded by what execve takes (PROCESS_ARGS_MAX);
 * JSON may need more bytes for the same text, and stdin comes on top. */
#define COMMAND_BODY_MAX ((4u << 20) + (64u << 10))
#define COMMAND_ARGS_MAX 65536u
#define COMMAND_TIMEOUT_MAX (1ull << 50) /* ms, as in the config table */

struct command {
    json_t *argv;
    const char *command, *cwd, *user;
    json_t *env;
    uint64_t timeout_ms;
};

/* Rows for the table of a struct that holds a `struct command` called `cmd`. */
/* clang-format off */
#define COMMAND_FIELDS(S) \
    {"argv", JSON_FIELD_STRLIST, offsetof(S, cmd.argv), 1, COMMAND_ARGS_MAX, false, \
     "The program and its arguments, run without a shell. Exactly one of argv and command."}, \
    {"command", JSON_FIELD_STR, offsetof(S, cmd.command), 1, PROCESS_ARGS_MAX, false, \
     "A text for bash -c. Exactly one of argv and command."}, \
    {"cwd", JSON_FIELD_STR, offsetof(S, cmd.cwd), 1, ENGINE_PATH_MAX, false, \
     "Working directory; without it /workspace. If it does not exist, nothing runs."}, \
    {"env", JSON_FIELD_STRMAP, offsetof(S, cmd.env), 0, MAPS_ENV_MAX, false, \
     "Variables of this command, over those of the sandbox."}, \
    {"user", JSON_FIELD_STR, offsetof(S, cmd.user), 1, ENGINE_USER_MAX, false, \
     "A user's name, uid, or uid:gid; without it user."}
/* clang-format on */

/* What process_opts borrows from. */
struct command_opts {
    struct process_opts o;
    const char **argv;
    struct buf env;
};
void command_opts_free(struct command_opts *c);
#define autocommand __attribute__((cleanup(command_opts_free)))

/* Checks what a table of fields cannot. Points into `in`. */
int command_decode(const struct command *in, struct command_opts *ret, struct err *e);
/* The same where nothing to run need be said. */
int command_decode_rest(const struct command *in, struct command_opts *ret, struct err *e);

/* "stdout", "stderr", "both" or NULL as a mask of enum init_stream. */
int command_streams(const char *name, unsigned *ret, struct err *e);

#endif

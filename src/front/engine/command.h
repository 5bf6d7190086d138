/* command.h - from a caller's options to the message that starts a command. */
#ifndef FRONT_ENGINE_COMMAND_H
#define FRONT_ENGINE_COMMAND_H

#include "base/buf.h"
#include "base/err.h"
#include "front/engine/process.h"
#include "wire/init.h"

#define COMMAND_CWD "/workspace"
#define COMMAND_USER "user"
#define COMMAND_SHELL "/bin/bash"

struct command {
    struct buf argv, env;
    struct init_start start; /* points into the two, and into the options */
};

/* The environment is Cove's (PATH, LANG), then that of the template's image, then the sandbox's,
 * then the call's; later values of a name win. Init adds what depends on the user (HOME, USER,
 * LOGNAME, SHELL). ERR_INVALID or ERR_TOO_LARGE. command_free() also after a failure. */
int command_build(struct command *c, const struct sandbox *sb, const struct process_opts *o,
                  struct err *e);
void command_free(struct command *c);

/* Default user, and base of relative paths. */
const char *command_user(const struct sandbox *sb);
const char *command_cwd(const struct sandbox *sb);

/* A valid id of a process: letters, digits, '.', '_' and '-'. */
bool command_id_is_valid(const char *id);
/* A valid name of one: its id, or `@` and its pid; SESSION/ID for a command of a session. */
bool command_is_named(const char *id);
int command_check_id(const char *id, struct err *e);
/* An id of the front's own processes: a valid id after a '.'. */
bool command_id_is_own(const char *id);

#endif

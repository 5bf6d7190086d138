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

/* The environment is ours (PATH, LANG), then that of the template's image, then the
 * sandbox's, then the call's; a
 * later one of a name wins. What depends on the user (HOME, USER, LOGNAME,
 * SHELL) is init's to add. ERR_INVALID or ERR_TOO_LARGE name what is wrong.
 * command_free() also after a failure. */
int command_build(struct command *c, const struct sandbox *sb, const struct process_opts *o,
                  struct err *e);
void command_free(struct command *c);

/* What stands where a caller names no user, or a relative path. */
const char *command_user(const struct sandbox *sb);
const char *command_cwd(const struct sandbox *sb);

/* What a caller may call a process: letters, digits, '.', '_' and '-'. */
bool command_id_is_valid(const char *id);
/* What a caller may mean one by: that, or `@` and its pid; a command of a
 * session by SESSION/ID. */
bool command_is_named(const char *id);
int command_check_id(const char *id, struct err *e);
/* What we call one of our own: the same with a '.' before it. */
bool command_id_is_own(const char *id);

#endif

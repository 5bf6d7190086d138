/* request.h - options that several commands share, and the JSON fields they become.
 *
 * EXTEND  An option of `cove create` and `cove run`: a row in REQUEST_SANDBOX_OPTS and a line
 *         in request_sandbox(); of one command only: in the file of that command. */
#ifndef CLI_COMMANDS_REQUEST_H
#define CLI_COMMANDS_REQUEST_H

#include "base/limits.h"
#include "cli/client/path.h"
#include "cli/cmd.h"
#include "json/read.h"

/* clang-format off */
/* network rules: create, run, network, update */
#define REQUEST_RULE_OPTS \
    {0, "allow",    "CIDR",  "allow this destination, such as 192.0.2.0/24:80-443; wins over --deny; repeatable"}, \
    {0, "deny",     "CIDR",  "deny this destination; 0.0.0.0/0 is everything; repeatable"}
/* limits: create, run, update */
#define REQUEST_LIMIT_OPT(A, B, member, name, type, def, min, max, setting, api, value, words, ...) {0, name, #value, words},
#define REQUEST_LIMIT_OPTS LIMITS(REQUEST_LIMIT_OPT, _, _)
/* properties of a new sandbox: create, run */
#define REQUEST_SANDBOX_OPTS \
    {0, "template", "NAME",  "template to start from [base]"}, \
    {0, "meta",     "K=V",   "add a label; repeatable"}, \
    REQUEST_LIMIT_OPTS \
    {0, "network",  "MODE",  "egress, or none (loopback only)"}, \
    {0, "fsync",    "MODE",  "durable, or relaxed (fsync returns at once; a failure of the host may lose the last writes)"}, \
    REQUEST_RULE_OPTS
/* user, directory and environment of a command: run, exec, shell, session */
#define REQUEST_AS_OPTS \
    {'e', "env",     "K=V",  "set a variable (K alone: copy it from this environment); repeatable"}, \
    {'w', "workdir", "DIR",  "directory to start in [/workspace]"}, \
    {'u', "user",    "USER", "user to run as: a name, UID or UID:GID [user]"}
/* a command: run, exec */
#define REQUEST_COMMAND_OPTS \
    REQUEST_AS_OPTS, \
    {0,   "timeout", "TIME", "kill it after this time, such as 30s; the exit status is then 124"}, \
    {'t', "tty",     NULL,   "run it on a terminal, and attach this terminal to it"}, \
    {'i', "interactive", NULL, "pass stdin on although it is a terminal"}, \
    {'d', "detach",  NULL,   "do not wait until it ends"}
/* clang-format on */

/* Each adds the options that were given to `body`; ERR_INVALID says what is wrong with one. */
int request_sandbox(const struct args *a, json_t *body, struct err *e);
/* The limits that were given, as the object `limits`. */
int request_limits(const struct args *a, json_t *body, struct err *e);
/* --disk of an import, added to a path that has a query. */
int request_disk(const struct args *a, char out[PATH_TEXT_MAX], const char *path, struct err *e);
/* --allow and --deny as lists; an option that was not given adds none. */
int request_rules(const struct args *a, json_t *body, struct err *e);
int request_as(const struct args *a, json_t *body, struct err *e);
/* The operands from `first` on as `argv`; without operands adds nothing. */
int request_argv(const struct args *a, int first, json_t *body, struct err *e);
/* request_as(), request_argv() and --timeout. */
int request_command(const struct args *a, int first, json_t *body, struct err *e);
/* `cove exec` in that sandbox, with the command from operand `first` on (exec.c). The command has
 * REQUEST_COMMAND_OPTS. */
int exec_in(const struct args *a, const char *sandbox, int first, struct err *e);
/* Every K=V of `option` as an object `key`; K alone takes the value of our own variable. */
int request_pairs(const struct args *a, const char *option, const char *key, json_t *body,
                  struct err *e);
/* A duration given as `option` as the number `key`, in ms. */
int request_duration(const struct args *a, const char *option, const char *key, json_t *body,
                     struct err *e);

/* Text as field `key`; NULL adds nothing. `what` names it in the error if it is not UTF-8. */
int request_text(json_t *obj, const char *key, const char *value, const char *what, struct err *e);

/* Prints JSON with all control characters escaped, so that no text can control a terminal. */
void request_dump(json_t *j, size_t flags);
void request_print(json_t *j); /* indented */
/* Prints field `name` of an answer, such as its id, and a newline. */
int request_print_text(json_t *answer, const char *name, struct err *e);
/* The answer to a command that created something: all of it with --json, else one field. */
int request_print_made(const struct args *a, json_t *answer, const char *name, struct err *e);
/* A list: array `key` of the answer as a table; with --json the whole answer, with --quiet (if
 * the command has that option) only the ids, one per line. */
struct table_column;
void request_print_list(const struct args *a, json_t *answer, const char *key,
                        const struct table_column *columns);

#endif

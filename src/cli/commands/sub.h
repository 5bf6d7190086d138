/* sub.h - commands with subcommands, and commands that take several sandboxes. */
#ifndef CLI_COMMANDS_SUB_H
#define CLI_COMMANDS_SUB_H

#include "cli/cmd.h"
#include "json/read.h"

/* struct cmd.run of a command with `subs`: checks the operands against the row that
 * a->operands[0] names, finds the server and runs that row. */
int sub_run(const struct args *a, struct err *e);

/* Sends one request for each sandbox among the operands, from operand `first` on. Failures
 * are printed and do not stop the others; the first one gives the exit status, which is
 * returned. `body` may be NULL. */
int each_sandbox(const struct args *a, int first, const struct server *s, const char *method,
                 const char *suffix, json_t *body);

#endif

/* request.h - options that several commands share, and what they become in JSON. */
#ifndef CLI_REQUEST_H
#define CLI_REQUEST_H

#include "cli/cmd.h"
#include "json/read.h"

/* clang-format off */
/* what it may reach: create, run, network */
#define REQUEST_RULE_OPTS \
    {0, "allow",    "CIDR",  "may be reached, such as 192.0.2.0/24:80-443; decides before --deny; may be repeated"}, \
    {0, "deny",     "CIDR",  "may not be reached; 0.0.0.0/0 is everything; may be repeated"}
/* what a sandbox is made of: create, run */
#define REQUEST_SANDBOX_OPTS \
    {0, "template", "NAME",  "what its files start as [base]"}, \
    {0, "meta",     "K=V",   "a label to find it by; may be repeated"}, \
    {0, "cpu",      "CORES", "CPU limit, such as 0.5 or 2"}, \
    {0, "memory",   "SIZE",  "memory limit, such as 512M or 2G"}, \
    {0, "pids",     "N",     "limit of processes and threads"}, \
    {0, "disk",     "SIZE",  "limit of what it may write to its disk"}, \
    {0, "nofile",   "N",     "limit of open files of each process"}, \
    {0, "network",  "MODE",  "egress, or none: loopback only"}, \
    REQUEST_RULE_OPTS
/* as whom and where: run, exec, shell */
#define REQUEST_AS_OPTS \
    {'e', "env",     "K=V",  "set a variable (K alone: as it is here); may be repeated"}, \
    {'w', "workdir", "DIR",  "where it starts [/workspace]"}, \
    {'u', "user",    "USER", "who runs it: a name, UID or UID:GID [user]"}
/* how a command is run: run, exec */
#define REQUEST_COMMAND_OPTS \
    REQUEST_AS_OPTS, \
    {0,   "timeout", "TIME", "kill it after this time, such as 30s; exit status 124"}, \
    {'t', "tty",     NULL,   "on a terminal, which this one becomes the window of"}
/* clang-format on */

/* Each adds what the user gave to `body`; ERR_INVALID says what is wrong with it. */
int request_sandbox(const struct args *a, json_t *body, struct err *e);
/* allow and deny as lists; what is not given is not added. */
int request_rules(const struct args *a, json_t *body, struct err *e);
int request_as(const struct args *a, json_t *body, struct err *e);
/* The operands from `first` on; none: nothing. */
int request_argv(const struct args *a, int first, json_t *body, struct err *e);
/* All of a command: the two above, and its time. */
int request_command(const struct args *a, int first, json_t *body, struct err *e);
/* K=V of every `option` as an object named `key`; K alone takes our own variable. */
int request_pairs(const struct args *a, const char *option, const char *key, json_t *body,
                  struct err *e);
/* A duration given as `option` becomes the number `key`; absent: nothing. */
int request_duration(const struct args *a, const char *option, const char *key, json_t *body,
                     struct err *e);

/* A text the user gave becomes `key`; NULL: nothing. `what` names it when it is not UTF-8. */
int request_text(json_t *obj, const char *key, const char *value, const char *what, struct err *e);

/* Prints it, for --json: no text in it can make a terminal do something. */
void request_dump(json_t *j, size_t flags);
void request_print(json_t *j); /* indented */
/* Prints a text of an answer, such as its id, and a line end. */
int request_print_text(json_t *answer, const char *name, struct err *e);

#endif

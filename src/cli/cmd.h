/* cmd.h - a command is a row: what it is called, what it takes, what it does.
 *
 * The rows yield the dispatch, `cove help`, every usage error, docs/commands.md
 * and the manual page, so none of them can disagree with the parser.
 *
 * EXTEND  A new command: a file with its row, its name in CMDS below, the file in
 *         meson.build, `make docs`. */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* In the order of `cove help`. */
#define CMDS(X)                                                                                    \
    X(serve)                                                                                       \
    X(stop)                                                                                        \
    X(doctor)                                                                                      \
    X(create)                                                                                      \
    X(list)                                                                                        \
    X(run)                                                                                         \
    X(exec)                                                                                        \
    X(shell)                                                                                       \
    X(session)                                                                                     \
    X(ps)                                                                                          \
    X(logs)                                                                                        \
    X(kill)                                                                                        \
    X(cp)                                                                                          \
    X(ls)                                                                                          \
    X(cat)                                                                                         \
    X(pause)                                                                                       \
    X(resume)                                                                                      \
    X(snapshot)                                                                                    \
    X(fork)                                                                                        \
    X(network)                                                                                     \
    X(delete)                                                                                      \
    X(template)                                                                                    \
    X(key)                                                                                         \
    X(completion)                                                                                  \
    X(version)                                                                                     \
    X(help)                                                                                        \
    X(docs)

struct args;

struct cmd_opt {
    char letter;       /* 0: only the long form */
    const char *name;  /* without the dashes; NULL ends a table */
    const char *value; /* what it wants ("DIR"), NULL: nothing */
    const char *doc;   /* one line */
};

struct cmd {
    const char *name, *alias;   /* alias may be NULL */
    const char *usage;          /* "exec [OPTIONS] SANDBOX [--] COMMAND..." */
    const char *summary;        /* one line of `cove help`; NULL: not shown there */
    const char *about;          /* what else is worth knowing; may be NULL */
    const struct cmd_opt *opts; /* NULL: none */
    const char *words;          /* what the first operand may be, blanks between; NULL: anything */
    int min, max;               /* operands; max CMD_ANY: no bound */
    int command_at;             /* the operand (1, 2...) from which on everything is somebody
                                 * else's command line and taken as it is; 0: never */
    bool raw;                   /* its arguments are parsed by whom it calls */
    void (*more_help)(struct buf *out); /* options that are in another table; may be NULL */
    /* The exit status, or -1 and `e`: it is printed and its kind decides. */
    int (*run)(const struct args *a, struct err *e);
};

#define CMD_ANY (-1)
#define CMD_USAGE 64 /* exit status of a call we could not make sense of */

#define X(name) extern const struct cmd cmd_##name;
CMDS(X)
#undef X

extern const struct cmd *const cmd_all[];
extern const size_t cmd_count;
/* By name or alias; NULL if there is none. */
const struct cmd *cmd_find(const char *name);
/* The name a mistyped one was probably meant to be, or NULL. */
const char *cmd_nearest(const char *name);
void cmd_write_help(const struct cmd *c, struct buf *out); /* usage, about, options */
void cmd_write_help_all(struct buf *out);
/* "cove NAME: ..." on stderr; NAME may be NULL. What a tenant or a user named is in most
 * messages, so control characters are escaped: none of it may reach a terminal as it is. */
void cmd_complain(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What the user typed, sorted out. All of it points into argv. */
#define ARGS_OPTS_MAX 512
struct args {
    const struct cmd *cmd;
    int argc; /* raw: everything behind the command's name */
    char **argv;
    int noperands;
    char **operands;
    size_t nopts;
    struct {
        const struct cmd_opt *opt;
        const char *value;
    } opts[ARGS_OPTS_MAX];
};

/* ERR_INVALID says what is wrong. *ret_help: the user asked for help instead. */
int args_parse(struct args *ret, const struct cmd *c, int argc, char **argv, bool *ret_help,
               struct err *e);
bool args_flag(const struct args *a, const char *name);
/* The last value given, or NULL. */
const char *args_value(const struct args *a, const char *name);
/* Each value of an option that may be repeated; start with *at = 0. */
const char *args_next(const struct args *a, const char *name, size_t *at);

#endif

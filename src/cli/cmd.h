/* cmd.h - a command is a row: its name, its options and operands, its function.
 *
 * Dispatch, `cove help`, usage errors, shell completion, docs/commands.md and the man
 * page all come from these rows, so none of them can disagree with the parser.
 *
 * EXTEND  A new command: a file in commands/ with its row, its name in CMDS below,
 *         the file in meson.build, `make docs`. */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* In the order of `cove help`. */
#define CMDS(X)                                                                                    \
    X(serve)                                                                                       \
    X(host)                                                                                        \
    X(stop)                                                                                        \
    X(doctor)                                                                                      \
    X(create)                                                                                      \
    X(list)                                                                                        \
    X(inspect)                                                                                     \
    X(update)                                                                                      \
    X(stats)                                                                                       \
    X(run)                                                                                         \
    X(exec)                                                                                        \
    X(shell)                                                                                       \
    X(session)                                                                                     \
    X(ps)                                                                                          \
    X(logs)                                                                                        \
    X(kill)                                                                                        \
    X(port)                                                                                        \
    X(events)                                                                                      \
    X(cp)                                                                                          \
    X(ls)                                                                                          \
    X(cat)                                                                                         \
    X(pause)                                                                                       \
    X(resume)                                                                                      \
    X(workspace)                                                                                   \
    X(snapshot)                                                                                    \
    X(fork)                                                                                        \
    X(network)                                                                                     \
    X(delete)                                                                                      \
    X(prune)                                                                                       \
    X(df)                                                                                          \
    X(sandbox)                                                                                     \
    X(template)                                                                                    \
    X(key)                                                                                         \
    X(token)                                                                                       \
    X(context)                                                                                     \
    X(completion)                                                                                  \
    X(version)                                                                                     \
    X(help)                                                                                        \
    X(docs)

struct args;
struct server; /* client/client.h */

struct cmd_opt {
    char letter;       /* 0: only the long form */
    const char *name;  /* without the dashes; NULL ends a table */
    const char *value; /* name of its value ("DIR"), NULL: a flag */
    const char *doc;   /* one line */
};

/* What the first operand of a command may be, such as `create` of `cove key create`. */
struct cmd_sub {
    const char *name;     /* NULL ends a table */
    const char *operands; /* after the name: "SANDBOX SESSION", "SANDBOX...", "[ID]"; "" for none */
    const char *doc;      /* one line */
    int (*run)(const struct args *a, const struct server *s, struct err *e);
    bool local; /* it asks no server: `s` is NULL */
};

struct cmd {
    const char *name, *alias;   /* alias may be NULL */
    const char *usage;          /* "exec [OPTIONS] SANDBOX [--] COMMAND..." */
    const char *summary;        /* one line of `cove help`; NULL: not shown there */
    const char *about;          /* more paragraphs for `cove help NAME`; may be NULL */
    const struct cmd_opt *opts; /* NULL: none */
    const struct cmd_sub *subs; /* with .run = sub_run; NULL: none */
    const char *words;          /* other words that a shell may complete first; NULL: none */
    int min, max;               /* operands; max CMD_ANY: no limit */
    int command_at;             /* operands from this one on (1, 2...) are the command line to
                                 * run in the sandbox and are not parsed; 0: none are */
    bool raw;                   /* `run` parses argc and argv itself */
    void (*more_help)(struct buf *out); /* options from another table; may be NULL */
    /* Returns the exit status; or -1: `e` is printed, and its kind gives the status. */
    int (*run)(const struct args *a, struct err *e);
};

#define CMD_CONTEXT "context" /* the options that every command takes */
#define CMD_AS "as"
#define CMD_ANY (-1)
#define CMD_USAGE 200 /* exit status after a usage error */

#define X(name) extern const struct cmd cmd_##name;
CMDS(X)
#undef X

extern const struct cmd *const cmd_all[];
extern const size_t cmd_count;
/* By name or alias; NULL if not found. */
const struct cmd *cmd_find(const char *name);
/* The command that a mistyped name is closest to, or NULL. */
const char *cmd_nearest(const char *name);
void cmd_write_help(const struct cmd *c, struct buf *out); /* usage, about, options */
/* The same of one subcommand: `cove key create --help`. */
void cmd_write_sub_help(const struct cmd *c, const struct cmd_sub *s, struct buf *out);
void cmd_write_help_all(struct buf *out);
/* Prints "cove NAME: ..." on stderr; `name` may be NULL. Messages contain names that a tenant
 * chose, so control characters are escaped before they reach a terminal. */
void cmd_complain(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The parsed command line. Every pointer points into argv. */
#define ARGS_OPTS_MAX 512
struct args {
    const struct cmd *cmd;
    int argc; /* raw: everything after the command's name */
    char **argv;
    int noperands;
    char **operands;
    size_t nopts;
    struct {
        const struct cmd_opt *opt;
        const char *value;
    } opts[ARGS_OPTS_MAX];
};

/* ERR_INVALID for a usage error. *ret_help: --help was among the options. */
int args_parse(struct args *ret, const struct cmd *c, int argc, char **argv, bool *ret_help,
               struct err *e);
bool args_flag(const struct args *a, const char *name);
/* Whether the command has such an option; the others may only be asked for those. */
bool args_has_option(const struct args *a, const char *name);
/* The value of the last occurrence, or NULL. */
const char *args_value(const struct args *a, const char *name);
/* The next value of an option that may be repeated, or NULL; start with *at = 0. */
const char *args_next(const struct args *a, const char *name, size_t *at);

#endif

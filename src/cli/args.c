/* args.c - parses the options and operands of one command, as its row describes them. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"

static const struct cmd_opt *find_name(const struct cmd *c, const char *name, size_t n)
{
    for (const struct cmd_opt *o = c->opts; o != NULL && o->name != NULL; o++)
        if (strlen(o->name) == n && strncmp(o->name, name, n) == 0)
            return o;
    return NULL;
}

static const struct cmd_opt *find_letter(const struct cmd *c, char letter)
{
    for (const struct cmd_opt *o = c->opts; o != NULL && o->name != NULL; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

/* Every command takes them, also those that never ask a server. */
static const struct cmd_opt context = {0, CMD_CONTEXT, "NAME", ""};
static const struct cmd_opt as = {0, CMD_AS, "KEY", ""};

static int unknown_option(const struct cmd *c, const char *name, size_t n, struct err *e)
{
    for (const struct cmd_opt *o = c->opts; o != NULL && o->name != NULL; o++)
        if (n > 0 && strncmp(o->name, name, n) == 0)
            return err_set(e, ERR_INVALID, "unknown option '--%.*s'; did you mean --%s?", (int)n,
                           name, o->name);
    return err_set(e, ERR_INVALID, "unknown option '--%.*s'", (int)n, name);
}

/* The n-th required operand in the usage of the command, or "an argument". */
static void operand_name(const struct cmd *c, int n, char *out, size_t room)
{
    const char *p = c->usage + strcspn(c->usage, " ");

    snprintf(out, room, "an argument");
    for (p += *p == ' '; *p != '\0';) {
        size_t len = *p == '[' ? strcspn(p, "]") + 1 : strcspn(p, " ");

        if (*p != '[' && *p != '-' && n-- == 0) {
            snprintf(out, room, "%.*s", (int)strcspn(p, " ."), p);
            return;
        }
        p += len;
        p += strspn(p, "] .");
    }
}

/* "SANDBOX is missing; `cove list` shows the sandboxes" */
static int missing_operand(const struct args *a, struct err *e)
{
    char name[64];

    operand_name(a->cmd, a->noperands, name, sizeof(name));
    return err_set(e, ERR_INVALID, "%s is missing%s", name,
                   strcmp(name, "SANDBOX") == 0 ? "; `cove list` shows the sandboxes" : "");
}

static int keep(struct args *a, const struct cmd_opt *o, const char *value, struct err *e)
{
    if (o == &context) { /* it wins over the environment */
        unsetenv("COVE_URL");
        unsetenv("COVE_API_KEY");
        return setenv("COVE_CONTEXT", value, 1) < 0 ? err_sys(e, "--" CMD_CONTEXT) : 0;
    }
    if (o == &as)
        return setenv("COVE_AS", value, 1) < 0 ? err_sys(e, "--" CMD_AS) : 0;
    if (a->nopts == ARGS_OPTS_MAX)
        return err_set(e, ERR_INVALID, "more than %d options given", ARGS_OPTS_MAX);
    a->opts[a->nopts].opt = o;
    a->opts[a->nopts++].value = value;
    return 0;
}

/* --name, --name value, --name=value; *i is left at the last argument used. */
static int parse_long(struct args *a, int *i, struct err *e)
{
    const char *arg = a->argv[*i] + 2, *eq = strchr(arg, '=');
    size_t n = eq != NULL ? (size_t)(eq - arg) : strlen(arg);
    const struct cmd_opt *o = find_name(a->cmd, arg, n);

    if (o == NULL && n == strlen(CMD_CONTEXT) && strncmp(arg, CMD_CONTEXT, n) == 0)
        o = &context;
    if (o == NULL && n == strlen(CMD_AS) && strncmp(arg, CMD_AS, n) == 0)
        o = &as;
    if (o == NULL)
        return unknown_option(a->cmd, arg, n, e);
    if (o->value == NULL && eq != NULL)
        return err_set(e, ERR_INVALID, "--%s takes no value", o->name);
    if (o->value == NULL)
        return keep(a, o, "", e);
    if (eq != NULL)
        return keep(a, o, eq + 1, e);
    if (*i + 1 >= a->argc)
        return err_set(e, ERR_INVALID, "--%s needs a value: %s", o->name, o->value);
    return keep(a, o, a->argv[++*i], e);
}

/* -f, -fg, -w DIR, -wDIR */
static int parse_short(struct args *a, int *i, struct err *e)
{
    for (const char *p = a->argv[*i] + 1; *p != '\0'; p++) {
        const struct cmd_opt *o = find_letter(a->cmd, *p);

        if (o == NULL)
            return err_set(e, ERR_INVALID, "unknown option '-%c'", *p);
        if (o->value == NULL) {
            if (keep(a, o, "", e) < 0)
                return -1;
            continue;
        }
        if (p[1] != '\0')
            return keep(a, o, p + 1, e);
        if (*i + 1 >= a->argc)
            return err_set(e, ERR_INVALID, "-%c needs a value: %s", *p, o->value);
        return keep(a, o, a->argv[++*i], e);
    }
    return 0;
}

/* Operands are moved to the front of argv, over arguments that were already parsed. */
int args_parse(struct args *ret, const struct cmd *c, int argc, char **argv, bool *ret_help,
               struct err *e)
{
    bool plain = false;

    *ret = (struct args){.cmd = c, .argc = argc, .argv = argv, .operands = argv};
    *ret_help = false;
    for (int i = 0; i < argc; i++) {
        char *arg = argv[i];
        int r = 0;

        if (c->command_at > 0 && ret->noperands >= c->command_at)
            plain = true;
        if (c->raw && strcmp(arg, "--help") != 0 && strcmp(arg, "-h") != 0)
            continue;
        if (plain || arg[0] != '-' || arg[1] == '\0')
            ret->operands[ret->noperands++] = arg;
        else if (strcmp(arg, "--") == 0)
            plain = true;
        else if (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)
            *ret_help = true;
        else
            r = arg[1] == '-' ? parse_long(ret, &i, e) : parse_short(ret, &i, e);
        if (r < 0)
            return -1;
    }
    if (*ret_help || c->raw)
        return 0;
    if (ret->noperands < c->min)
        return missing_operand(ret, e);
    if (c->max != CMD_ANY && ret->noperands > c->max)
        return err_set(e, ERR_INVALID, "unexpected argument '%.60s'", ret->operands[c->max]);
    return 0;
}

const char *args_next(const struct args *a, const char *name, size_t *at)
{
    assert(find_name(a->cmd, name, strlen(name)) !=
           NULL); /* the command asks for an option that is not in its table */
    while (*at < a->nopts) {
        size_t i = (*at)++;

        if (strcmp(a->opts[i].opt->name, name) == 0)
            return a->opts[i].value;
    }
    return NULL;
}

const char *args_value(const struct args *a, const char *name)
{
    const char *last = NULL, *v;
    size_t at = 0;

    while ((v = args_next(a, name, &at)) != NULL)
        last = v;
    return last;
}

bool args_flag(const struct args *a, const char *name)
{
    return args_value(a, name) != NULL;
}

bool args_has_option(const struct args *a, const char *name)
{
    return find_name(a->cmd, name, strlen(name)) != NULL;
}

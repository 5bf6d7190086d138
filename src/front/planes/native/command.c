/* command.c - see command.h. */
#include "front/planes/native/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/planes/native/internal.h"

void command_opts_free(struct command_opts *c)
{
    free(c->argv);
    buf_free(&c->env);
}

static int decode_argv(json_t *list, const char ***ret, struct err *e)
{
    size_t n = json_array_size(list);
    const char **argv = calloc(n + 1, sizeof(*argv));

    if (argv == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    for (size_t i = 0; i < n; i++)
        argv[i] = json_string_value(json_array_get(list, i));
    *ret = argv;
    if (*argv[0] == '\0')
        return err_set(e, ERR_INVALID, "argv[0]: expected the name of a program");
    return 0;
}

int command_decode(const struct command *in, struct command_opts *ret, struct err *e)
{
    if ((in->argv == NULL) == (in->command == NULL))
        return err_set(e, ERR_INVALID, "exactly one of argv and command is wanted");
    return command_decode_rest(in, ret, e);
}

int command_decode_rest(const struct command *in, struct command_opts *ret, struct err *e)
{
    buf_init(&ret->env, PROCESS_ARGS_MAX);
    ret->argv = NULL;
    if (in->argv != NULL && decode_argv(in->argv, &ret->argv, e) < 0)
        return -1;
    if (maps_env(in->env, &ret->env, e) < 0)
        return -1;
    ret->o = (struct process_opts){
        .argv = ret->argv,
        .command = in->command,
        .cwd = in->cwd,
        .user = in->user,
        .env = buf_data(&ret->env),
        .env_len = ret->env.len,
        .timeout_ms = in->timeout_ms,
    };
    return 0;
}

int command_streams(const char *name, unsigned *ret, struct err *e)
{
    static const struct {
        const char *name;
        unsigned mask;
    } names[] = {{"stdout", PROCESS_STDOUT}, {"stderr", PROCESS_STDERR}, {"both", 0}};

    *ret = 0;
    for (size_t i = 0; name != NULL && i < ARRAY_LEN(names); i++) {
        if (strcmp(name, names[i].name) == 0) {
            *ret = names[i].mask;
            return 0;
        }
    }
    if (name != NULL)
        return err_set(e, ERR_INVALID, "stream: expected stdout, stderr or both");
    return 0;
}

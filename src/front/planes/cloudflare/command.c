/* command.c - a command as a client describes it: words, variables, a directory. */
#include <stdlib.h>
#include <string.h>

#include "front/plane/maps.h"
#include "front/planes/cloudflare/internal.h"
#include "mem/mem.h"

int cloudflare_command(struct cloudflare_command *c, json_t *argv, json_t *env, const char *cwd,
                       struct err *e)
{
    json_t *arg;
    size_t i;

    buf_init(&c->env, PROCESS_ARGS_MAX);
    buf_init(&c->cwd, 2 * ENGINE_PATH_MAX);
    buf_init(&c->text, CLOUDFLARE_TEXT_MAX);
    c->o = (struct process_opts){.user = CLOUDFLARE_USER};
    c->argv = mem_zeroed(json_array_size(argv) + 1, sizeof(*c->argv));
    json_array_foreach(argv, i, arg) c->argv[i] = json_string_value(arg);
    c->o.argv = c->argv;
    if (maps_env(env, &c->env, e) < 0 ||
        cloudflare_path("cwd", cwd != NULL ? cwd : CLOUDFLARE_ROOT, &c->cwd, e) < 0)
        return -1;
    c->o.env = buf_data(&c->env);
    c->o.env_len = c->env.len;
    c->o.cwd = buf_cstr(&c->cwd);
    return 0;
}

int cloudflare_command_shell(struct cloudflare_command *c, struct err *e)
{
    for (size_t i = 0; c->argv[i] != NULL; i++) {
        if (i > 0)
            buf_addc(&c->text, ' ');
        cloudflare_quote(&c->text, c->argv[i]);
    }
    if (c->text.failed)
        return err_set(e, ERR_TOO_LARGE, "argv: more than %u bytes for bash", CLOUDFLARE_TEXT_MAX);
    c->o.argv = NULL;
    c->o.command = buf_cstr(&c->text);
    return 0;
}

void cloudflare_command_free(struct cloudflare_command *c)
{
    free(c->argv);
    buf_free(&c->env);
    buf_free(&c->cwd);
    buf_free(&c->text);
}

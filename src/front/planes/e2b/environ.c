/* environ.c - the environment of commands as E2B has it: where they are, then what
 * the sandbox was made with, then what the call says. */
#include <string.h>

#include "base/own.h"
#include "front/planes/e2b/internal.h"
#include "json/write.h"

#define ENVS_BYTES_MAX (1u << 20)

static void add(struct buf *out, const char *name, const char *value)
{
    buf_addf(out, "%s=%s", name, value);
    buf_addc(out, '\0');
}

void e2b_add_env(struct buf *out, const struct sandbox *s)
{
    add(out, "E2B_SANDBOX", "true");
    add(out, "E2B_SANDBOX_ID", s->id);
    add(out, "E2B_TEMPLATE_ID", s->template);
    buf_add(out, s->env, s->env_len);
}

static void put_all(struct json_w *w, const char *env, size_t len)
{
    for (size_t i = 0, n; i < len; i += n + 1) {
        const char *value = strchr(env + i, '=');
        char name[256];

        n = strlen(env + i);
        if (value == NULL || (size_t)(value - env - i) >= sizeof(name))
            continue;
        memcpy(name, env + i, (size_t)(value - env) - i);
        name[(size_t)(value - env) - i] = '\0';
        jw_kstr(w, name, value + 1);
    }
}

static void envs(struct call *c, const void *in)
{
    autobuf struct buf env = BUF_INIT(ENVS_BYTES_MAX), body = BUF_INIT(6 * ENVS_BYTES_MAX);
    const struct sandbox *s = engine_find(c->plane->engine, c->ref.id);
    struct json_w w;

    (void)in;
    e2b_add_env(&env, s);
    jw_init(&w, &body);
    jw_open(&w);
    put_all(&w, buf_data(&env), env.len);
    jw_close(&w);
    call_reply(c, 200, "application/json", &body);
}

/* clang-format off */
const struct surface_row e2b_environ[] = {
    {{"GET", "/envs"}, SCOPE_RUN, envs, "envs", "The environment of every command.", .status = 200},
    {.op = NULL},
};
/* clang-format on */

/* log.c - commits as GIT_LOG_FORMAT has them, see git_parse.h. */
#include <string.h>

#include "front/engine/git_parse.h"

static void tell(struct git_log *l)
{
    const char *field[GIT_LOG_FIELDS];

    for (unsigned i = 0; i < GIT_LOG_FIELDS; i++)
        field[i] = buf_data(&l->fields) + l->at[i];
    l->each(l->arg, field);
    buf_clear(&l->fields);
    l->n = 0;
}

static bool is_oid(const char *s, size_t n)
{
    return n >= 40 && n <= GIT_OID_MAX && strspn(s, "0123456789abcdef") == n;
}

static int take(void *arg, char *token, size_t n, struct err *e)
{
    struct git_log *l = arg;

    if (l->n == GIT_LOG_COMMIT && !is_oid(token, n))
        return err_set(e, ERR_CONFLICT, "git log printed unexpected output");
    l->at[l->n++] = l->fields.len;
    buf_add(&l->fields, token, n + 1);
    if (l->fields.failed)
        return err_set(e, ERR_CONFLICT, "git log printed a commit longer than %u bytes",
                       2 * GIT_TOKEN_MAX);
    if (l->n == GIT_LOG_FIELDS)
        tell(l);
    return 0;
}

void git_log_init(struct git_log *l,
                  void (*each)(void *arg, const char *const field[GIT_LOG_FIELDS]), void *arg)
{
    *l = (struct git_log){.each = each, .arg = arg};
    git_tokens_init(&l->in, l);
    l->in.take = take;
    buf_init(&l->fields, 2 * GIT_TOKEN_MAX);
}

void git_log_free(struct git_log *l)
{
    git_tokens_free(&l->in);
    buf_free(&l->fields);
}

/* tokens.c - the pieces between NULs, see git_parse.h. */
#include <string.h>

#include "front/engine/git_parse.h"

void git_tokens_init(struct git_tokens *t, void *arg)
{
    *t = (struct git_tokens){.arg = arg};
    buf_init(&t->piece, GIT_TOKEN_MAX);
}

void git_tokens_free(struct git_tokens *t)
{
    buf_free(&t->piece);
}

static int take_one(struct git_tokens *t, struct err *e)
{
    int r;

    if (t->piece.failed)
        return err_set(e, ERR_CONFLICT, "git printed something longer than %u bytes",
                       GIT_TOKEN_MAX);
    r = t->take(t->arg, (char *)(uintptr_t)buf_cstr(&t->piece), t->piece.len, e);
    buf_clear(&t->piece);
    t->is_text = r > 0;
    return r < 0 ? -1 : 0;
}

int git_tokens_feed(struct git_tokens *t, const char *p, size_t n, struct err *e)
{
    const char *end = p + n, *nul;

    while (!t->is_text && (nul = memchr(p, '\0', (size_t)(end - p))) != NULL) {
        buf_add(&t->piece, p, (size_t)(nul - p));
        if (take_one(t, e) < 0)
            return -1;
        p = nul + 1;
    }
    if (t->is_text)
        return p < end ? t->text(t->arg, p, (size_t)(end - p), e) : 0;
    if (buf_add(&t->piece, p, (size_t)(end - p)) < 0)
        return err_set(e, ERR_CONFLICT, "git printed something longer than %u bytes",
                       GIT_TOKEN_MAX);
    return 0;
}

/* err.c - see err.h. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct {
    const char *code;
    int http, exit;
    const char *meaning;
} kinds[ERR_KIND_COUNT] = {
#define X(kind, code, http, exit, meaning) [kind] = {code, http, exit, meaning},
    ERR_KINDS(X)
#undef X
};
/* clang-format on */

static enum err_kind known(enum err_kind kind)
{
    return (unsigned)kind < ERR_KIND_COUNT ? kind : ERR_INTERNAL;
}

const char *err_code(enum err_kind kind)
{
    return kinds[known(kind)].code;
}

int err_http(enum err_kind kind)
{
    return kinds[known(kind)].http;
}

int err_exit(enum err_kind kind)
{
    return kinds[known(kind)].exit;
}

const char *err_meaning(enum err_kind kind)
{
    return kinds[known(kind)].meaning;
}

enum err_kind err_from_code(const char *code)
{
    for (int i = 0; i < ERR_KIND_COUNT; i++)
        if (code != NULL && strcmp(kinds[i].code, code) == 0)
            return (enum err_kind)i;
    return ERR_INTERNAL;
}

int err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
    va_list ap;

    e->kind = kind;
    e->sys = 0;
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
    va_end(ap);
    return -1;
}

int err_sys(struct err *e, const char *fmt, ...)
{
    int sys = errno;
    size_t n;
    va_list ap;

    e->kind = sys == ENOSPC || sys == EDQUOT ? ERR_DISK_FULL : ERR_INTERNAL;
    e->sys = sys;
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof(e->msg) - 64, fmt, ap);
    va_end(ap);
    n = strlen(e->msg);
    snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", strerror(sys));
    errno = sys;
    return -1;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    char all[sizeof(e->msg)];
    size_t room, cause = strlen(e->msg);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(all, sizeof(all), fmt, ap);
    va_end(ap);
    room = sizeof(e->msg) - 1 - cause;
    if (room < 3)
        return -1;
    if (strlen(all) > room - 2)
        all[room - 2] = '\0';
    strcat(all, ": ");
    strcat(all, e->msg);
    memcpy(e->msg, all, strlen(all) + 1);
    return -1;
}

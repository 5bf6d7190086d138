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

__attribute__((format(printf, 4, 0))) static int set_errno(struct err *e, enum err_kind kind,
                                                           int sys, const char *fmt, va_list ap)
{
    size_t n;

    e->kind = kind;
    e->sys = sys;
    vsnprintf(e->msg, sizeof(e->msg) - 64, fmt, ap);
    n = strlen(e->msg);
    snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", strerror(sys));
    errno = sys;
    return -1;
}

int err_sys(struct err *e, const char *fmt, ...)
{
    int sys = errno;
    va_list ap;

    va_start(ap, fmt);
    set_errno(e, sys == ENOSPC || sys == EDQUOT ? ERR_DISK_FULL : ERR_INTERNAL, sys, fmt, ap);
    va_end(ap);
    return -1;
}

static const struct {
    int sys;
    enum err_kind kind;
} about_paths[] = {
    {ENOENT, ERR_NOT_FOUND}, {EACCES, ERR_DENIED},          {EPERM, ERR_DENIED},
    {EROFS, ERR_DENIED},     {EEXIST, ERR_CONFLICT},        {ENOTEMPTY, ERR_CONFLICT},
    {EBUSY, ERR_CONFLICT},   {ETXTBSY, ERR_CONFLICT},       {EAGAIN, ERR_CONFLICT},
    {ENOTDIR, ERR_INVALID},  {EISDIR, ERR_INVALID},         {EINVAL, ERR_INVALID},
    {ELOOP, ERR_INVALID},    {ENAMETOOLONG, ERR_INVALID},   {ENXIO, ERR_INVALID},
    {ENODEV, ERR_INVALID},   {EXDEV, ERR_INVALID},          {EMLINK, ERR_LIMIT},
    {EMFILE, ERR_LIMIT},     {EFBIG, ERR_TOO_LARGE},        {ENOSPC, ERR_DISK_FULL},
    {EDQUOT, ERR_DISK_FULL}, {ENODATA, ERR_NOT_FOUND},      {E2BIG, ERR_TOO_LARGE},
    {ERANGE, ERR_TOO_LARGE}, {EOPNOTSUPP, ERR_UNSUPPORTED}, {ENOMEM, ERR_LIMIT},
};

int err_path(struct err *e, const char *fmt, ...)
{
    int sys = errno;
    enum err_kind kind = ERR_INTERNAL;
    va_list ap;

    for (size_t i = 0; i < sizeof(about_paths) / sizeof(about_paths[0]); i++)
        if (about_paths[i].sys == sys)
            kind = about_paths[i].kind;
    va_start(ap, fmt);
    set_errno(e, kind, sys, fmt, ap);
    va_end(ap);
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

/* say.c - see say.h. */
#include "helper/say.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"

int say_failed(FILE *to, const struct err *e)
{
    char text[sizeof(e->msg)];

    str_fmt(text, sizeof(text), "%s", e->msg);
    for (char *p = text; *p != '\0'; p++) {
        int n = str_utf8_char(p, strlen(p));

        if ((unsigned char)*p < 0x20 || *p == 0x7f || n <= 0)
            *p = '?';
        else
            p += n - 1;
    }
    fprintf(to, "E %s %s\n", err_code(e->kind), text);
    fflush(to);
    return 1;
}

static const struct {
    int error;
    enum err_kind kind;
} meanings[] = {
    {ENOENT, ERR_NOT_FOUND},     {ENOTDIR, ERR_INVALID}, {EISDIR, ERR_INVALID},
    {ELOOP, ERR_INVALID},        {EINVAL, ERR_INVALID},  {EACCES, ERR_DENIED},
    {ENAMETOOLONG, ERR_INVALID}, {EPERM, ERR_DENIED},    {EROFS, ERR_DENIED},
    {EEXIST, ERR_CONFLICT},      {EBUSY, ERR_CONFLICT},  {ENOTEMPTY, ERR_CONFLICT},
    {ETXTBSY, ERR_CONFLICT},     {EMLINK, ERR_LIMIT},    {EMFILE, ERR_LIMIT},
    {EFBIG, ERR_TOO_LARGE},      {EXDEV, ERR_INVALID},
};

int say_sys(struct err *e, const char *what, const char *path)
{
    int error = errno;

    if (error == ENOSPC || error == EDQUOT)
        return err_set(e, ERR_DISK_FULL, "the disk is full at '%.200s'", path);
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
        if (meanings[i].error == error)
            return err_set(e, meanings[i].kind, "%s '%.200s': %s", what, path, strerror(error));
    errno = error;
    return err_sys(e, "%s '%.200s'", what, path);
}

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

int say_sys(struct err *e, const char *what, const char *path)
{
    if (errno == ENOSPC || errno == EDQUOT)
        return err_set(e, ERR_DISK_FULL, "the disk is full at '%.200s'", path);
    return err_path(e, "%s '%.200s'", what, path);
}

/* call.c - see call.h. */
#include "helper/call/call.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/str.h"

const char *args_get(const struct args *a, const char *name)
{
    size_t len = strlen(name);

    for (int i = 0; i < a->n; i++)
        if (strncmp(a->v[i], name, len) == 0 && (a->v[i][len] == '=' || a->v[i][len] == '\0'))
            return a->v[i] + len + (a->v[i][len] == '=');
    return NULL;
}

bool args_has(const struct args *a, const char *name)
{
    return args_get(a, name) != NULL;
}

uint64_t args_u64(const struct args *a, const char *name, uint64_t otherwise)
{
    const char *text = args_get(a, name);
    uint64_t v;

    return text != NULL && str_u64(text, UINT64_MAX, &v) == 0 ? v : otherwise;
}

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

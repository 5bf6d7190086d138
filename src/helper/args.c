/* args.c - see args.h. */
#include "helper/args.h"

#include <string.h>

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

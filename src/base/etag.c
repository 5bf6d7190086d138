/* etag.c - see etag.h. */
#include "base/etag.h"

#include <string.h>

#include "base/clock.h"
#include "base/str.h"

void etag_make(const struct etag_parts *p, char out[ETAG_MAX])
{
    str_fmt(out, ETAG_MAX, "\"%llx-%llx-%llx-%llx\"", (unsigned long long)p->ino,
            (unsigned long long)p->size, (unsigned long long)p->mtime_ns,
            (unsigned long long)p->ctime_ns);
}

void etag_of(const struct stat *st, char out[ETAG_MAX])
{
    struct etag_parts p = {.ino = st->st_ino,
                           .size = (uint64_t)st->st_size,
                           .mtime_ns = clock_ns_of(&st->st_mtim),
                           .ctime_ns = clock_ns_of(&st->st_ctim)};

    etag_make(&p, out);
}

bool etag_listed(const char *list, const char *tag)
{
    size_t len = strlen(tag);

    for (const char *at = list; *at != '\0';) {
        size_t n;

        at += strspn(at, " \t,");
        n = strcspn(at, ",");
        while (n > 0 && (at[n - 1] == ' ' || at[n - 1] == '\t'))
            n--;
        if ((n == 1 && *at == '*') || (n == len && strncmp(at, tag, n) == 0))
            return true;
        at += strcspn(at, ",");
    }
    return false;
}

/* path.c - see path.h. */
#include "cli/path.h"

#include <stddef.h>
#include <stdio.h>

#include "base/str.h"

#define NAME_MAX_ENCODED 769 /* three characters for each of 256 bytes, and a NUL */

static const char *encode(char out[NAME_MAX_ENCODED], const char *s)
{
    size_t n = 0;

    for (; *s != '\0' && n + 3 < NAME_MAX_ENCODED; s++) {
        unsigned char c = (unsigned char)*s;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            c == '-' || c == '_')
            out[n++] = (char)c;
        else
            n += (size_t)snprintf(out + n, 4, "%%%02X", c);
    }
    out[n] = '\0';
    return out;
}

const char *path_sandbox(char out[PATH_TEXT_MAX], const char *id, const char *rest)
{
    char a[NAME_MAX_ENCODED];

    str_fmt(out, PATH_TEXT_MAX, "/v1/sandboxes/%s%s%s", encode(a, id), *rest != '\0' ? "/" : "",
            rest);
    return out;
}

static const char *path_in(char out[PATH_TEXT_MAX], const char *id, const char *kind,
                           const char *name, const char *rest)
{
    char a[NAME_MAX_ENCODED], b[NAME_MAX_ENCODED];

    str_fmt(out, PATH_TEXT_MAX, "/v1/sandboxes/%s/%s/%s%s%s", encode(a, id), kind, encode(b, name),
            *rest != '\0' ? "/" : "", rest);
    return out;
}

const char *path_process(char out[PATH_TEXT_MAX], const char *id, const char *process,
                         const char *rest)
{
    return path_in(out, id, "processes", process, rest);
}

const char *path_terminal(char out[PATH_TEXT_MAX], const char *id, const char *terminal,
                          const char *rest)
{
    return path_in(out, id, "terminals", terminal, rest);
}

const char *path_session(char out[PATH_TEXT_MAX], const char *id, const char *session,
                         const char *rest)
{
    return path_in(out, id, "sessions", session, rest);
}

const char *path_template(char out[PATH_TEXT_MAX], const char *name, const char *rest)
{
    char a[NAME_MAX_ENCODED];

    str_fmt(out, PATH_TEXT_MAX, "/v1/templates/%s%s%s", encode(a, name), *rest != '\0' ? "/" : "",
            rest);
    return out;
}

const char *path_snapshot(char out[PATH_TEXT_MAX], const char *id, const char *rest)
{
    char a[NAME_MAX_ENCODED];

    str_fmt(out, PATH_TEXT_MAX, "/v1/snapshots/%s%s%s", encode(a, id), *rest != '\0' ? "/" : "",
            rest);
    return out;
}

const char *path_key(char out[PATH_TEXT_MAX], const char *id, const char *query)
{
    char a[NAME_MAX_ENCODED];

    str_fmt(out, PATH_TEXT_MAX, "/v1/keys/%s%s", encode(a, id), query);
    return out;
}

const char *path_query(char out[PATH_TEXT_MAX], const char *path, const char *name,
                       const char *value)
{
    char a[NAME_MAX_ENCODED];

    if (value == NULL)
        str_fmt(out, PATH_TEXT_MAX, "%s", path);
    else
        str_fmt(out, PATH_TEXT_MAX, "%s&%s=%s", path, name, encode(a, value));
    return out;
}

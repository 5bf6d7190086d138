/* path.c - see path.h. */
#include "cli/client/path.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define NAME_MAX_ENCODED 769 /* three characters for each of 256 bytes, and a NUL */

const char *path_encode(char *out, size_t room, const char *s, const char *keep)
{
    size_t n = 0;

    for (; *s != '\0' && n + 3 < room; s++) {
        unsigned char c = (unsigned char)*s;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            c == '-' || c == '_' || strchr(keep, c) != NULL)
            out[n++] = (char)c;
        else
            n += (size_t)snprintf(out + n, 4, "%%%02X", c);
    }
    out[n] = '\0';
    return out;
}

/* PREFIX/NAME and, unless it is "", /REST. */
static const char *join(char out[PATH_TEXT_MAX], const char *prefix, const char *name,
                        const char *rest)
{
    char encoded[NAME_MAX_ENCODED];

    path_encode(encoded, sizeof(encoded), name, "");
    str_fmt(out, PATH_TEXT_MAX, "%s/%s%s%s", prefix, encoded, *rest != '\0' ? "/" : "", rest);
    return out;
}

const char *path_sandbox(char out[PATH_TEXT_MAX], const char *id, const char *rest)
{
    if (*id == PATH_WORKSPACE)
        return path_workspace(out, id + 1, rest);
    return join(out, "/v1/sandboxes", id, rest);
}

const char *path_workspace(char out[PATH_TEXT_MAX], const char *name, const char *rest)
{
    return join(out, "/v1/workspaces", name, rest);
}

const char *path_template(char out[PATH_TEXT_MAX], const char *name, const char *rest)
{
    return join(out, "/v1/templates", name, rest);
}

const char *path_snapshot(char out[PATH_TEXT_MAX], const char *id, const char *rest)
{
    return join(out, "/v1/snapshots", id, rest);
}

const char *path_key(char out[PATH_TEXT_MAX], const char *id, const char *query)
{
    char path[PATH_TEXT_MAX];

    str_fmt(out, PATH_TEXT_MAX, "%s%s", join(path, "/v1/keys", id, ""), query);
    return out;
}

const char *path_process(char out[PATH_TEXT_MAX], const char *id, const char *process,
                         const char *rest)
{
    char in[PATH_TEXT_MAX];

    return join(out, path_sandbox(in, id, "processes"), process, rest);
}

const char *path_terminal(char out[PATH_TEXT_MAX], const char *id, const char *terminal,
                          const char *rest)
{
    char in[PATH_TEXT_MAX];

    return join(out, path_sandbox(in, id, "terminals"), terminal, rest);
}

const char *path_session(char out[PATH_TEXT_MAX], const char *id, const char *session,
                         const char *rest)
{
    char in[PATH_TEXT_MAX];

    return join(out, path_sandbox(in, id, "sessions"), session, rest);
}

const char *path_query(char out[PATH_TEXT_MAX], const char *path, const char *name,
                       const char *value)
{
    char encoded[NAME_MAX_ENCODED] = "";

    if (value != NULL)
        path_encode(encoded, sizeof(encoded), value, "");
    str_fmt(out, PATH_TEXT_MAX, "%s%s%s%s%s", path, value != NULL ? "&" : "",
            value != NULL ? name : "", value != NULL ? "=" : "", encoded);
    return out;
}

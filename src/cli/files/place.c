/* place.c - see place.h. */
#include "cli/files/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/client/path.h"

#define TEXT_MAX (64u << 10)
#define CURSOR_MAX 7000u /* encoded */

int place_parse(struct place *p, const char *text, struct err *e)
{
    const char *colon = strchr(text, ':'), *slash = strchr(text, '/');

    *p = (struct place){.path = text, .stream = strcmp(text, "-") == 0};
    if (*text == '\0')
        return err_set(e, ERR_INVALID, "a path is empty");
    if (p->stream || colon == NULL || (slash != NULL && slash < colon))
        return 0;
    if (colon == text || (size_t)(colon - text) >= sizeof(p->sandbox))
        return err_set(e, ERR_INVALID, "%.60s: not a SANDBOX:PATH; write ./%.60s for a local file",
                       text, text);
    snprintf(p->sandbox, sizeof(p->sandbox), "%.*s", (int)(colon - text), text);
    p->path = colon[1] != '\0' ? colon + 1 : ".";
    return 0;
}

const char *place_target(char out[PLACE_TARGET_MAX], const struct place *p, const char *what,
                         const char *path, const char *user, const char *more)
{
    char in[PATH_TEXT_MAX], name[PLACE_TARGET_MAX - 10240], who[512] = "";

    path_encode(name, sizeof(name), path, "./~");
    if (user != NULL)
        path_encode(who, sizeof(who), user, "./~");
    str_fmt(out, PLACE_TARGET_MAX, "%s?path=%s%s%s%s", path_sandbox(in, p->sandbox, what), name,
            user != NULL ? "&user=" : "", who, more);
    return out;
}

json_t *place_stat(const struct server *s, const struct place *p, const char *user, struct err *e)
{
    char target[PLACE_TARGET_MAX];
    json_t *answer = NULL;

    place_target(target, p, "files/stat", p->path, user, "&follow=1");
    if (client_call(s, "GET", target, NULL, &answer, e) == 0 && answer == NULL)
        err_set(e, ERR_INTERNAL, "stat %.200s: the server's answer is empty", p->path);
    return answer;
}

bool place_is_dir(const json_t *file)
{
    const char *type = json_string_value(json_object_get(file, "type"));

    return type != NULL && strcmp(type, "directory") == 0;
}

int place_list(const struct server *s, const struct place *p, const char *user, const char *more,
               char **after, json_t **ret, struct err *e)
{
    char target[PLACE_TARGET_MAX], cursor[CURSOR_MAX] = "", all[CURSOR_MAX + 256];
    const char *next;

    if (*after != NULL)
        path_encode(cursor, sizeof(cursor), *after, "./~");
    snprintf(all, sizeof(all), "%.200s&limit=10000%s%s", more, *after != NULL ? "&after=" : "",
             cursor);
    place_target(target, p, "files/list", p->path, user, all);
    if (client_call(s, "GET", target, NULL, ret, e) < 0)
        return -1;
    next = json_string_value(json_object_get(*ret, "next"));
    free(*after);
    *after = next != NULL ? strdup(next) : NULL;
    return 0;
}

char *place_text(const json_t *file, const char *field)
{
    const char *text = json_string_value(json_object_get(file, field));
    char name[64];
    autobuf struct buf raw = BUF_INIT(TEXT_MAX);

    snprintf(name, sizeof(name), "%s_encoding", field);
    if (text == NULL)
        return NULL;
    if (json_object_get(file, name) == NULL)
        return strdup(text);
    return str_unbase64(&raw, text, strlen(text)) < 0 ? NULL : strndup(buf_cstr(&raw), raw.len);
}

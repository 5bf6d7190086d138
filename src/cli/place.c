/* place.c - see place.h. */
#include "cli/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "base/str.h"

#define TEXT_MAX (64u << 10)

int place_parse(struct place *p, const char *text, struct err *e)
{
    const char *colon = strchr(text, ':'), *slash = strchr(text, '/');

    *p = (struct place){.path = text};
    if (strcmp(text, "-") == 0) {
        p->stream = true;
        return 0;
    }
    if (colon == NULL || (slash != NULL && slash < colon)) {
        return *text == '\0' ? err_set(e, ERR_INVALID, "a path is empty") : 0;
    }
    if (colon == text || (size_t)(colon - text) >= sizeof(p->sandbox))
        return err_set(e, ERR_INVALID, "%.60s: not a SANDBOX:PATH; ./%.60s if it is a file here",
                       text, text);
    snprintf(p->sandbox, sizeof(p->sandbox), "%.*s", (int)(colon - text), text);
    p->path = colon[1] != '\0' ? colon + 1 : ".";
    return 0;
}

void place_encode(char *out, size_t room, const char *s)
{
    size_t n = 0;

    for (; *s != '\0' && n + 4 < room; s++) {
        unsigned char c = (unsigned char)*s;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            strchr("-_./~", c) != NULL)
            out[n++] = (char)c;
        else
            n += (size_t)snprintf(out + n, 4, "%%%02X", c);
    }
    out[n] = '\0';
}

const char *place_target(char out[PLACE_TARGET_MAX], const struct place *p, const char *what,
                         const char *path, const char *user, const char *more)
{
    char id[1024], name[PLACE_TARGET_MAX - 2048], who[512] = "";

    place_encode(id, sizeof(id), p->sandbox);
    place_encode(name, sizeof(name), path);
    if (user != NULL)
        place_encode(who, sizeof(who), user);
    str_fmt(out, PLACE_TARGET_MAX, "/v1/sandboxes/%s/%s?path=%s%s%s%s", id, what, name,
            user != NULL ? "&user=" : "", who, more);
    return out;
}

json_t *place_stat(const struct server *s, const struct place *p, const char *path,
                   const char *user, struct err *e)
{
    char target[PLACE_TARGET_MAX];
    json_t *answer = NULL;

    place_target(target, p, "files/stat", path, user, "&follow=1");
    if (client_call(s, "GET", target, NULL, &answer, e) == 0 && answer == NULL)
        err_set(e, ERR_INTERNAL, "the server's answer is empty");
    return answer;
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

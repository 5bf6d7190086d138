/* watch_line.c - one line of a watch's log, see helper/changes.h. A process of the
 * tenant's may have written it. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/engine/watch.h"

static const char *const names[WATCH_KIND_COUNT] = {
    [WATCH_CREATE] = "create", [WATCH_MODIFY] = "modify", [WATCH_DELETE] = "delete",
    [WATCH_ATTRIB] = "attrib", [WATCH_MOVE] = "move",     [WATCH_OVERFLOW] = "overflow",
    [WATCH_END] = "end",       [WATCH_READY] = "ready",
};

const char *watch_kind_name(enum watch_kind k)
{
    return names[k];
}

/* In place; -1 for what the helper does not write. */
static int decode(char *s)
{
    char *to = s;

    if (*s == '\0')
        return -1;
    for (; *s != '\0'; s++) {
        int hi, lo;

        if (*s != '%') {
            *to++ = *s;
            continue;
        }
        hi = str_hex_digit((unsigned char)s[1]);
        lo = hi < 0 ? -1 : str_hex_digit((unsigned char)s[2]);
        if (lo < 0 || (hi | lo) == 0)
            return -1;
        *to++ = (char)(hi << 4 | lo);
        s += 2;
    }
    *to = '\0';
    return 0;
}

static int kind_of(const char *word, enum watch_kind *ret)
{
    for (unsigned k = 0; k < WATCH_KIND_COUNT; k++) {
        if (strcmp(names[k], word) == 0) {
            *ret = k;
            return 0;
        }
    }
    return -1;
}

static const struct { /* the words of a line, after the first */
    const char *known[4];
} reasons[WATCH_KIND_COUNT] = {
    [WATCH_OVERFLOW] = {{"queue", "watches"}},
    [WATCH_END] = {{"deleted", "moved", "unmounted"}},
};

static int take_reason(struct watch_event *ev, const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons[0].known); i++) {
        const char *known = reasons[ev->kind].known[i];

        if (known != NULL && word != NULL && strcmp(known, word) == 0) {
            ev->path = known;
            return 0;
        }
    }
    return -1;
}

static int take_paths(struct watch_event *ev, char *rest)
{
    const char *type = strsep(&rest, " ");
    char *path = strsep(&rest, " "), *from = strsep(&rest, " ");

    if (type == NULL || path == NULL || rest != NULL || decode(path) < 0)
        return -1;
    if ((ev->kind == WATCH_MOVE) != (from != NULL) || (from != NULL && decode(from) < 0))
        return -1;
    ev->dir = strcmp(type, "d") == 0;
    ev->path = path;
    ev->from = from;
    return ev->dir || strcmp(type, "f") == 0 ? 0 : -1;
}

int watch_line(char *line, struct watch_event *ret)
{
    char *rest = line, *word = strsep(&rest, " ");

    *ret = (struct watch_event){.path = ""};
    if (kind_of(word, &ret->kind) < 0)
        return -1;
    if (ret->kind == WATCH_READY)
        return rest == NULL ? 0 : -1;
    if (ret->kind == WATCH_OVERFLOW || ret->kind == WATCH_END)
        return take_reason(ret, rest);
    return take_paths(ret, rest);
}

/* list.c - lists sandboxes: filtered, in either order, in pages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/engine/internal.h"
#include "front/engine/snapshot.h"
#include "mem/mem.h"
#include "json/read.h"

/* A letter and the last seq of the page in hex. The letter says in which order the
 * page was, so that a cursor cannot be used in the other one. */
#define CURSOR_LEN 17
#define CURSOR_OLDEST 'c'
#define CURSOR_NEWEST 'd'

static char cursor_kind(const struct list_opts *o)
{
    return o->newest_first ? CURSOR_NEWEST : CURSOR_OLDEST;
}

static int cursor_read(const struct list_opts *o, uint64_t *ret, struct err *e)
{
    const char *text = o->after;

    *ret = o->newest_first ? UINT64_MAX : 0;
    if (text == NULL)
        return 0;
    if (strlen(text) == CURSOR_LEN && text[0] == cursor_kind(o) &&
        strspn(text + 1, "0123456789abcdef") == CURSOR_LEN - 1) {
        *ret = strtoull(text + 1, NULL, 16);
        return 0;
    }
    return err_set(e, ERR_INVALID, "cursor: expected next_cursor of the previous page");
}

static bool has_metadata(const struct box *b, const char *const *want)
{
    autojson json_t *doc = NULL;
    struct err e;

    if (want == NULL || want[0] == NULL)
        return true;
    if (json_parse(b->pub.metadata, strlen(b->pub.metadata), &doc, &e) < 0)
        return false;
    for (; want[0] != NULL && want[1] != NULL; want += 2) {
        const char *have = json_string_value(json_object_get(doc, want[0]));

        if (have == NULL || strcmp(have, want[1]) != 0)
            return false;
    }
    return true;
}

static bool is_listed(struct engine *g, const struct box *b, const struct list_opts *o)
{
    const char *key = o->key != NULL ? o->key : b->pub.key;

    return box_of((struct ref){g, key, b->pub.id}) == b &&
           (o->states == 0 || (o->states & SANDBOX_BIT(b->pub.state))) &&
           (o->template == NULL || strcmp(o->template, b->pub.template) == 0) &&
           b->pub.created_ms >= o->created_from_ms && has_metadata(b, o->metadata);
}

/* The place in `order` where the page begins; SIZE_MAX: nowhere. */
static size_t first_of(const struct engine *g, const struct list_opts *o, uint64_t after)
{
    if (!o->newest_first)
        return box_after(g, after);
    return box_after(g, after == 0 ? 0 : after - 1) - 1;
}

int engine_list(struct engine *g, const struct list_opts *o,
                void (*each)(void *arg, const struct sandbox *s), void *arg, char **ret_next,
                struct err *e)
{
    size_t told = 0, step = o->newest_first ? SIZE_MAX : 1;
    uint64_t after, last = 0;

    *ret_next = NULL;
    if (cursor_read(o, &after, e) < 0)
        return -1;
    /* Downwards, the step after 0 is SIZE_MAX, which ends the loop as well. */
    for (size_t i = first_of(g, o, after); i < g->norder; i += step) {
        struct box *b = g->order[i];

        if (!is_listed(g, b, o))
            continue;
        if (told == o->limit) {
            *ret_next = mem_format("%c%016llx", cursor_kind(o), (unsigned long long)last);
            return 0;
        }
        each(arg, &b->pub);
        last = b->seq;
        told++;
    }
    return 0;
}

static void note_box(void *arg, const struct sandbox *s)
{
    (void)s;
    *(bool *)arg = true;
}

static void note_snapshot(void *arg, const struct snapshot *s)
{
    (void)s;
    *(bool *)arg = true;
}

bool engine_has_any_of(struct engine *g, const char *key)
{
    struct list_opts boxes = {.key = key, .limit = 1};
    struct snapshot_list_opts snapshots = {.key = key, .limit = 1};
    autofree char *next = NULL, *after = NULL;
    bool has = false;
    struct err e;

    return (engine_list(g, &boxes, note_box, &has, &next, &e) == 0 && has) ||
           (engine_snapshots(g, &snapshots, note_snapshot, &has, &after, &e) == 0 && has);
}

/* owners.c - counts the sandboxes of each key. */
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "front/engine/internal.h"
#include "mem/mem.h"

static int by_key(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

void engine_each(struct engine *g, void (*each)(void *arg, const struct sandbox *s), void *arg)
{
    for (size_t i = 0; i < g->norder; i++)
        if (box_of(sandbox_ref(g, &g->order[i]->pub)) != NULL)
            each(arg, &g->order[i]->pub);
}

bool engine_each_some(struct engine *g, uint64_t *after, size_t n,
                      void (*each)(void *arg, const struct sandbox *s), void *arg)
{
    size_t i = box_after(g, *after);

    for (; i < g->norder && n > 0; i++, n--) {
        *after = g->order[i]->seq;
        if (box_of(sandbox_ref(g, &g->order[i]->pub)) != NULL)
            each(arg, &g->order[i]->pub);
    }
    return i < g->norder;
}

void engine_owners(struct engine *g, void (*each)(void *arg, const char *key, size_t sandboxes),
                   void *arg)
{
    autofree const char **keys = mem_zeroed(g->norder + 1, sizeof(*keys));
    size_t n = 0;

    for (size_t i = 0; i < g->norder; i++)
        if (box_of(sandbox_ref(g, &g->order[i]->pub)) != NULL)
            keys[n++] = g->order[i]->pub.key;
    qsort(keys, n, sizeof(*keys), by_key);
    for (size_t i = 0, first = 0; i < n; i++) {
        if (i + 1 < n && strcmp(keys[i], keys[i + 1]) == 0)
            continue;
        each(arg, keys[i], i + 1 - first);
        first = i + 1;
    }
}

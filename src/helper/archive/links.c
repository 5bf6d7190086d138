/* links.c - see links.h. */
#include "helper/archive/links.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS (1u << 20) /* a power of two, at least twice LINKS_MAX */

struct slot {
    dev_t dev;
    ino_t ino;
    char *path; /* NULL: free */
};

struct links {
    size_t n, bytes;
    struct slot slots[SLOTS];
};

struct links *links_new(void)
{
    return calloc(1, sizeof(struct links));
}

void links_free(struct links *l)
{
    for (size_t i = 0; l != NULL && i < SLOTS; i++)
        free(l->slots[i].path);
    free(l);
}

static struct slot *slot_of(struct links *l, const struct stat *st)
{
    uint64_t h = ((uint64_t)st->st_ino * 0x9e3779b97f4a7c15ull) ^ (uint64_t)st->st_dev;
    size_t i = (size_t)(h >> 20) & (SLOTS - 1);

    while (l->slots[i].path != NULL &&
           (l->slots[i].ino != st->st_ino || l->slots[i].dev != st->st_dev))
        i = (i + 1) & (SLOTS - 1);
    return &l->slots[i];
}

const char *links_seen(struct links *l, const struct stat *st, const char *path)
{
    struct slot *s = slot_of(l, st);
    size_t len = strlen(path) + 1;

    if (s->path != NULL)
        return s->path;
    if (l->n >= LINKS_MAX || l->bytes + len > LINKS_BYTES)
        return NULL;
    s->path = strdup(path);
    if (s->path == NULL)
        return NULL;
    s->dev = st->st_dev;
    s->ino = st->st_ino;
    l->n++;
    l->bytes += len;
    return NULL;
}

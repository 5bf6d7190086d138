/* map.c - see map.h. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/id.h"

#define MAP_FIRST 16u

static uint64_t hash(const struct map *m, const char *key)
{
    uint64_t h = m->seed ^ 14695981039346656037ull;

    for (; *key != '\0'; key++)
        h = (h ^ (unsigned char)*key) * 1099511628211ull;
    return h ^ (h >> 29) ^ m->seed;
}

void map_init(struct map *m)
{
    *m = (struct map){0};
    id_bytes(&m->seed, sizeof(m->seed));
}

void map_free(struct map *m)
{
    free(m->slots);
    m->slots = NULL;
    m->nslots = m->count = 0;
}

struct map_node *map_get(const struct map *m, const char *key)
{
    uint64_t h;

    if (m->nslots == 0)
        return NULL;
    h = hash(m, key);
    for (struct map_node *n = m->slots[h & (m->nslots - 1)]; n != NULL; n = n->next)
        if (n->hash == h && strcmp(n->key, key) == 0)
            return n;
    return NULL;
}

static int grow(struct map *m)
{
    size_t nslots = m->nslots ? m->nslots * 2 : MAP_FIRST;
    struct map_node **slots = calloc(nslots, sizeof(struct map_node *));

    if (slots == NULL)
        return -1;
    for (size_t i = 0; i < m->nslots; i++) {
        for (struct map_node *n = m->slots[i], *next; n != NULL; n = next) {
            next = n->next;
            n->next = slots[n->hash & (nslots - 1)];
            slots[n->hash & (nslots - 1)] = n;
        }
    }
    free(m->slots);
    m->slots = slots;
    m->nslots = nslots;
    return 0;
}

int map_put(struct map *m, struct map_node *n, const char *key)
{
    if (m->count >= m->nslots && grow(m) < 0)
        return -1;
    n->key = key;
    n->hash = hash(m, key);
    n->next = m->slots[n->hash & (m->nslots - 1)];
    m->slots[n->hash & (m->nslots - 1)] = n;
    m->count++;
    return 0;
}

void map_del(struct map *m, struct map_node *n)
{
    if (m->nslots == 0)
        return;
    for (struct map_node **p = &m->slots[n->hash & (m->nslots - 1)]; *p != NULL; p = &(*p)->next) {
        if (*p == n) {
            *p = n->next;
            m->count--;
            return;
        }
    }
}

/* map.h - a hash table by name. The links live in the entries (as in list.h);
 * the map owns only its table. Names are hashed with a random seed, so a client
 * cannot choose names that collide. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_node {
    struct map_node *next;
    const char *key; /* borrowed from the entry for as long as it is in the map */
    uint64_t hash;
};

struct map {
    struct map_node **slots;
    size_t nslots, count;
    uint64_t seed;
};

void map_init(struct map *m);
void map_free(struct map *m); /* frees the table, not the entries */
struct map_node *map_get(const struct map *m, const char *key);
/* -1 when out of memory; the key must not be in the map. */
int map_put(struct map *m, struct map_node *n, const char *key);
void map_del(struct map *m, struct map_node *n);

#endif

#include "unit.h"

#include <stdio.h>

#include "base/map.h"

struct thing {
    struct map_node node;
    char name[16];
};

TEST(a_thing_is_found_by_its_name_until_it_is_taken_out)
{
    static struct thing things[1000];
    struct map m;

    map_init(&m);
    CHECK(map_get(&m, "0") == NULL);
    for (size_t i = 0; i < ARRAY_LEN(things); i++) {
        snprintf(things[i].name, sizeof(things[i].name), "%zu", i);
        CHECK_INT(map_put(&m, &things[i].node, things[i].name), 0);
    }
    CHECK_INT(m.count, 1000);
    for (size_t i = 0; i < ARRAY_LEN(things); i++)
        CHECK(map_get(&m, things[i].name) == &things[i].node);
    for (size_t i = 0; i < ARRAY_LEN(things); i += 2)
        map_del(&m, &things[i].node);
    CHECK_INT(m.count, 500);
    for (size_t i = 0; i < ARRAY_LEN(things); i++)
        CHECK((map_get(&m, things[i].name) != NULL) == (i % 2 == 1));
    map_free(&m);
}

TEST(removing_a_missing_key_changes_nothing)
{
    struct thing a = {.name = "a"}, b = {.name = "b"};
    struct map m;

    map_init(&m);
    map_del(&m, &a.node);
    map_put(&m, &a.node, a.name);
    map_del(&m, &b.node);
    CHECK_INT(m.count, 1);
    CHECK(map_get(&m, "a") == &a.node);
    map_free(&m);
}

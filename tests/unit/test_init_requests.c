/* test_init_requests.c - the table of requests in init/serve/requests.c. */
#include "unit.h"

#include "init/serve/internal.h"

static unsigned talks_that_take(uint16_t type)
{
    unsigned n = 0;

    for (int talk = 0; talk < TALK_COUNT; talk++)
        n += serve_takes(type, (enum talk)talk);
    return n;
}

TEST(every_request_of_the_wire_table_has_a_row)
{
#define X(kind, s, number, fields) CHECK(talks_that_take(kind) > 0);
    INIT_REQUESTS(X)
#undef X
}

/* They would be decoded into a union that has no room for them. */
TEST(no_answer_has_a_row)
{
#define X(kind, s, number, fields) CHECK(talks_that_take(kind) == 0);
    INIT_ANSWERS(X)
#undef X
}

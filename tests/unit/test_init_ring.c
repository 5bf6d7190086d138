#include "unit.h"

#include <stdlib.h>

#include "init/run/ring.h"
#include "wire/init.h"

static struct ring_budget budget = {.max = 1u << 30};

/* The byte that belongs at a position, so that any mix-up shows. */
static char byte_at(uint64_t pos)
{
    return (char)(pos * 131 + (pos >> 8));
}

/* Adds up to n bytes; returns how many fitted. */
static size_t add(struct ring *r, unsigned stream, size_t n, uint64_t keep)
{
    size_t done = 0;

    while (done < n) {
        char *at;
        size_t room = ring_room(r, keep, &at);

        if (room == 0)
            break;
        room = room < n - done ? room : n - done;
        for (size_t i = 0; i < room; i++)
            at[i] = byte_at(r->end + i);
        ring_added(r, stream, room);
        done += room;
    }
    return done;
}

static size_t add_freely(struct ring *r, unsigned stream, size_t n)
{
    size_t done = 0;

    while (done < n)
        done += add(r, stream, n - done < 512 ? n - done : 512, r->end);
    return done;
}

static void check_all(const struct ring *r)
{
    for (uint64_t pos = r->first; pos < r->end;) {
        unsigned stream;
        const char *p;
        size_t n = ring_look(r, pos, &stream, &p);

        CHECK(n > 0 && n <= r->end - pos);
        for (size_t i = 0; i < n; i++)
            CHECK_INT(p[i], byte_at(pos + i));
        pos += n;
    }
}

TEST(a_silent_process_costs_no_memory)
{
    struct ring r;

    ring_init(&r, 0, &budget);
    CHECK(r.mem == NULL && r.marks == NULL);
    CHECK_INT(r.max, RING_MIN);
    ring_free(&r);
    CHECK_INT(budget.used, 0);
}

TEST(bytes_come_back_in_order_with_their_stream)
{
    struct ring r;
    unsigned stream;
    const char *p;

    ring_init(&r, RING_DEFAULT, &budget);
    add_freely(&r, INIT_STDOUT, 10);
    add_freely(&r, INIT_STDERR, 5);
    add_freely(&r, INIT_STDERR, 5);
    add_freely(&r, INIT_STDOUT, 1);
    CHECK_INT(ring_look(&r, 0, &stream, &p), 10);
    CHECK_INT(stream, INIT_STDOUT);
    CHECK_INT(ring_look(&r, 12, &stream, &p), 8);
    CHECK_INT(stream, INIT_STDERR);
    CHECK_INT(ring_look(&r, 20, &stream, &p), 1);
    CHECK_INT(stream, INIT_STDOUT);
    CHECK_INT(ring_look(&r, 21, &stream, &p), 0);
    check_all(&r);
    ring_free(&r);
}

TEST(the_newest_bytes_stay_and_positions_go_on_when_the_oldest_are_evicted)
{
    struct ring r;

    ring_init(&r, 64 << 10, &budget);
    for (int i = 0; i < 500; i++)
        add_freely(&r, i % 3 ? INIT_STDOUT : INIT_STDERR, 777);
    CHECK_INT(r.end, 500 * 777);
    CHECK(r.first > 0);
    CHECK(r.end - r.first >= (64 << 10) / 2);
    CHECK(r.end - r.first <= (64 << 10));
    check_all(&r);
    ring_free(&r);
    CHECK_INT(budget.used, 0);
}

TEST(bytes_that_the_owner_has_not_taken_are_not_evicted)
{
    struct ring r;
    size_t n;

    ring_init(&r, RING_MIN, &budget);
    n = add(&r, INIT_STDOUT, 100000, 0);
    CHECK_INT(n, RING_MIN);
    CHECK_INT(r.first, 0);
    check_all(&r);
    n = add(&r, INIT_STDERR, 100000, 1000);
    CHECK(n > 0 && n <= 1000);
    CHECK(r.first <= 1000);
    check_all(&r);
    ring_free(&r);
}

TEST(alternating_single_bytes_cannot_grow_the_index_without_bound)
{
    struct ring r;

    ring_init(&r, RING_MIN, &budget);
    for (int i = 0; i < 100000; i++)
        add_freely(&r, i % 2 ? INIT_STDOUT : INIT_STDERR, 1);
    CHECK(r.mark_cap <= RING_MIN / RING_MARK_BYTES);
    CHECK(r.end - r.first >= r.mark_cap / 2);
    check_all(&r);
    for (uint64_t pos = r.first; pos < r.end; pos++) {
        unsigned stream;
        const char *p;

        CHECK_INT(ring_look(&r, pos, &stream, &p), 1);
        CHECK_INT(stream, pos % 2 ? INIT_STDOUT : INIT_STDERR);
    }
    ring_free(&r);
}

static struct ring *victim;

static bool give_victim(struct ring_budget *b, const struct ring *r)
{
    (void)b;
    if (victim == NULL || victim == r)
        return false;
    ring_free(victim);
    victim = NULL;
    return true;
}

TEST(a_ring_beyond_the_budget_takes_from_the_finished_and_then_stays_small)
{
    struct ring_budget small = {.max = 64 << 10, .reclaim = give_victim};
    struct ring a, b;

    ring_init(&a, 64 << 10, &small);
    ring_init(&b, 1 << 20, &small);
    add_freely(&a, INIT_STDOUT, 60 << 10);
    victim = &a;
    add_freely(&b, INIT_STDOUT, 200 << 10);
    CHECK(a.mem == NULL);
    CHECK_INT(a.first, a.end);
    CHECK(small.used <= small.max);
    check_all(&b);
    ring_free(&a);
    ring_free(&b);
    CHECK_INT(small.used, 0);
}

TEST(a_ring_that_was_freed_can_go_on_at_the_same_position)
{
    struct ring r;

    ring_init(&r, RING_MIN, &budget);
    add_freely(&r, INIT_STDOUT, 5000);
    ring_free(&r);
    CHECK_INT(r.first, 5000);
    add_freely(&r, INIT_STDERR, 10);
    CHECK_INT(r.end, 5010);
    check_all(&r);
    ring_free(&r);
}

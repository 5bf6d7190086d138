#include "unit.h"

#include "front/plane/collect.h"

static struct collect c;

static const char *kept(void)
{
    return buf_cstr(&c.head);
}

TEST(output_that_fits_is_kept_completely)
{
    collect_init(&c, 10);
    collect_add(&c, "hello", 5);
    collect_add(&c, "world", 5);
    CHECK_INT(collect_end(&c), 0);
    CHECK_STR(kept(), "helloworld");
    collect_free(&c);
}

TEST(of_too_much_the_beginning_and_the_end_stay)
{
    collect_init(&c, 6);
    for (char x = 'a'; x <= 'z'; x++)
        collect_add(&c, &x, 1);
    CHECK_INT(collect_end(&c), 20);
    CHECK_STR(kept(), "abcxyz");
    CHECK_INT(c.cut_at, 3);
    collect_free(&c);
}

TEST(one_huge_piece_gives_the_same_result_as_many_small_ones)
{
    collect_init(&c, 6);
    collect_add(&c, "abcdefghijklmnopqrstuvwxyz", 26);
    CHECK_INT(collect_end(&c), 20);
    CHECK_STR(kept(), "abcxyz");
    collect_free(&c);
}

TEST(an_odd_maximum_gives_the_beginning_one_more)
{
    collect_init(&c, 1);
    collect_add(&c, "abc", 3);
    CHECK_INT(collect_end(&c), 2);
    CHECK_STR(kept(), "a");
    collect_free(&c);
}

TEST(a_cut_never_leaves_half_a_character)
{
    collect_init(&c, 8);
    for (int i = 0; i < 10; i++)
        collect_add(&c, "\xe2\x82\xac", 3); /* euro */
    CHECK_INT(collect_end(&c), 24);
    CHECK_STR(kept(), "\xe2\x82\xac\xe2\x82\xac");
    CHECK_INT(c.cut_at, 3);
    collect_free(&c);
}

TEST(a_gigabyte_costs_no_more_than_the_maximum)
{
    static char piece[256u << 10];

    collect_init(&c, 1u << 20);
    for (int i = 0; i < 4096; i++)
        CHECK_INT(collect_add(&c, piece, sizeof(piece)), 0);
    CHECK(c.head.cap + c.tail.cap <= 4u << 20);
    CHECK_INT(collect_end(&c), (1u << 30) - (1u << 20));
    collect_free(&c);
}

TEST(the_tail_is_the_end_of_the_output_however_it_is_cut_into_pieces)
{
    char all[997];

    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)('a' + i * 7 % 26);
    for (size_t piece = 1; piece < 60; piece++) {
        collect_init(&c, 51);
        for (size_t at = 0; at < sizeof(all); at += piece)
            collect_add(&c, all + at, at + piece < sizeof(all) ? piece : sizeof(all) - at);
        CHECK_INT(collect_end(&c), sizeof(all) - 51);
        CHECK(memcmp(kept(), all, 26) == 0);
        CHECK(memcmp(kept() + 26, all + sizeof(all) - 25, 25) == 0);
        collect_free(&c);
    }
}

TEST(without_memory_for_more_the_beginning_and_the_end_stay)
{
    static char zeros[8192], ones[100000];

    memset(ones, 1, sizeof(ones));
    collect_init(&c, 1u << 20);
    collect_add(&c, zeros, sizeof(zeros));
    CHECK_INT(collect_need(&c, 100), sizeof(zeros) + 100);
    collect_stop(&c);
    collect_add(&c, ones, sizeof(ones));
    CHECK(collect_need(&c, 1u << 20) <= sizeof(zeros) + 4096);
    CHECK_INT(collect_end(&c), sizeof(ones) - 4096);
    CHECK_INT(c.head.len, sizeof(zeros) + 4096);
    CHECK_INT(kept()[c.head.len - 1], 1);
    collect_free(&c);
}

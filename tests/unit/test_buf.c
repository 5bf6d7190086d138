#include "unit.h"

#include "base/buf.h"

TEST(bytes_are_appended_at_the_end_and_consumed_at_the_front)
{
    autobuf struct buf b = BUF_INIT(100);

    buf_adds(&b, "hello ");
    buf_addf(&b, "%s%c%d", "wor", 'l', 0xd);
    CHECK_STR(buf_cstr(&b), "hello worl13");
    buf_consume(&b, 6);
    CHECK_STR(buf_cstr(&b), "worl13");
    buf_consume(&b, 6);
    CHECK_INT(b.len, 0);
    CHECK_INT(b.off, 0);
}

TEST(after_an_append_that_does_not_fit_the_buffer_stays_failed)
{
    autobuf struct buf b = BUF_INIT(4);

    CHECK_INT(buf_adds(&b, "abc"), 0);
    CHECK_INT(buf_adds(&b, "de"), -1);
    CHECK(b.failed);
    CHECK_INT(buf_addc(&b, 'd'), -1);
    CHECK_INT(b.len, 3);
    CHECK_STR(buf_cstr(&b), "");
    buf_clear(&b);
    CHECK_INT(buf_adds(&b, "wxyz"), 0);
    CHECK_STR(buf_cstr(&b), "wxyz");
}

TEST(the_bound_counts_held_bytes_and_not_consumed_ones)
{
    autobuf struct buf b = BUF_INIT(1000);
    char piece[400];

    memset(piece, 'p', sizeof(piece));
    for (int i = 0; i < 1000; i++) {
        CHECK_INT(buf_add(&b, piece, sizeof(piece)), 0);
        if (i > 0)
            buf_consume(&b, sizeof(piece));
    }
    CHECK_INT(b.len, 400);
    CHECK(b.cap <= 1001);
}

TEST(a_queue_that_stays_nearly_full_is_not_copied_for_every_append)
{
    autobuf struct buf b = BUF_INIT(1u << 20);
    static char filler[100000];
    unsigned moves = 0;

    buf_add(&b, filler, sizeof(filler));
    for (int i = 0; i < 100000; i++) {
        const char *mem = b.mem;
        size_t off = b.off;

        buf_consume(&b, 10);
        buf_add(&b, filler, 10);
        moves += b.mem != mem || b.off < off;
    }
    CHECK(moves < 20);
}

TEST(contents_survive_growing_and_moving)
{
    autobuf struct buf b = BUF_INIT(1u << 16);
    unsigned char in = 0, out = 0;

    for (int round = 0; round < 5000; round++) {
        for (int i = 0; i < round % 37; i++)
            buf_addc(&b, (char)in++);
        for (int i = 0; i < round % 31 && b.len > 0; i++) {
            CHECK_INT((unsigned char)*buf_data(&b), out++);
            buf_consume(&b, 1);
        }
    }
    CHECK(!b.failed);
}

TEST(a_buffer_without_a_practical_bound_still_grows)
{
    autobuf struct buf b = BUF_INIT(SIZE_MAX);

    for (int i = 0; i < 1000; i++)
        CHECK_INT(buf_adds(&b, "0123456789"), 0);
    CHECK_INT(b.len, 10000);
}

TEST(a_freed_buffer_may_be_used_again_with_the_same_bound)
{
    struct buf b = BUF_INIT(3);

    buf_adds(&b, "abc");
    buf_free(&b);
    CHECK_INT(buf_adds(&b, "abcd"), -1);
    buf_clear(&b);
    CHECK_INT(buf_adds(&b, "xyz"), 0);
    buf_free(&b);
}

TEST(columns_are_wrapped_between_words)
{
    autobuf struct buf b = BUF_INIT(4096);

    buf_add_columns(&b, "  -a", 6, "one");
    buf_add_columns(&b, "  --long-name", 6, "two");
    buf_add_columns(&b, "  -b", 6, "");
    CHECK_STR(buf_cstr(&b), "  -a  one\n  --long-name\n      two\n  -b\n");
    buf_clear(&b);
    buf_add_columns(
        &b, "", 6,
        "123456789 123456789 123456789 123456789 123456789 123456789 123456789 123456789 "
        "1234 more");
    CHECK_STR(buf_cstr(&b),
              "      123456789 123456789 123456789 123456789 123456789 123456789 123456789 "
              "123456789 1234\n      more\n");
    CHECK_INT(strcspn(buf_cstr(&b), "\n"), BUF_ROW);
}

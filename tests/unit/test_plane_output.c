#include "unit.h"

#include "base/buf.h"
#include "front/plane/output.h"

#define EURO "\xe2\x82\xac"

static struct output o;
static struct buf out = BUF_INIT(1u << 20);
static struct err e;
static char id[OUTPUT_ID_MAX];

static const char *take(unsigned stream, const char *p, size_t n)
{
    buf_clear(&out);
    return output_take(&o, stream, o.pos, p, n, &out) ? buf_cstr(&out) : "nothing";
}

static const char *flush(unsigned stream)
{
    buf_clear(&out);
    return output_flush(&o, stream, &out) ? buf_cstr(&out) : "nothing";
}

TEST(text_is_sent_as_text)
{
    o = (struct output){0};
    CHECK_STR(take(1, "a\n" EURO, 5), "{\"data\":\"a\\n" EURO "\"}");
    CHECK_STR(output_id(&o, id), "5");
}

TEST(a_character_is_never_cut_between_two_events)
{
    o = (struct output){0};
    CHECK_STR(take(1, "a" EURO, 2), "{\"data\":\"a\"}");
    CHECK_STR(take(1, &EURO[1], 1), "nothing");
    CHECK_STR(take(1, &EURO "b"[2], 2), "{\"data\":\"" EURO "b\"}");
    CHECK_STR(output_id(&o, id), "5");
}

TEST(held_bytes_of_one_stream_are_not_mixed_with_the_other_stream)
{
    o = (struct output){0};
    CHECK_STR(take(1, EURO, 2), "nothing");
    CHECK_STR(take(2, "x", 1), "{\"data\":\"x\"}");
    CHECK_STR(output_id(&o, id), "3-oe282");
    CHECK_STR(take(1, &EURO[2], 1), "{\"data\":\"" EURO "\"}");
    CHECK_STR(output_id(&o, id), "4");
}

TEST(bytes_that_are_not_text_go_as_base64)
{
    o = (struct output){0};
    CHECK_STR(take(1, "\xff\x00\x01", 3), "{\"data\":\"/wAB\",\"encoding\":\"base64\"}");
    CHECK_STR(take(2, EURO, 1), "nothing");
    CHECK_STR(take(2, "z", 1), "{\"data\":\"4no=\",\"encoding\":\"base64\"}");
}

TEST(a_character_that_never_ends_is_flushed_as_base64)
{
    o = (struct output){0};
    CHECK_STR(take(2, "a" EURO, 3), "{\"data\":\"a\"}");
    CHECK_STR(flush(1), "nothing");
    CHECK_STR(flush(2), "{\"data\":\"4oI=\",\"encoding\":\"base64\"}");
    CHECK_STR(flush(2), "nothing");
}

TEST(a_stream_resumed_from_any_id_misses_no_byte_and_repeats_none)
{
    o = (struct output){0};
    take(1, EURO, 1);
    take(2, "\xf0\x9f\x98\x80", 3);
    CHECK_STR(output_id(&o, id), "4-oe2-ef09f98");
    o = (struct output){0};
    CHECK_INT(output_resume(&o, "4-oe2-ef09f98", &e), 0);
    CHECK_INT(o.pos, 4);
    CHECK_STR(take(2, "\x80", 1), "{\"data\":\"\xf0\x9f\x98\x80\"}");
    CHECK_STR(take(1, &EURO[1], 2), "{\"data\":\"" EURO "\"}");
    CHECK_STR(output_id(&o, id), "7");
}

TEST(an_invalid_event_id_is_refused)
{
    static const char *const bad[] = {
        "",
        "x",
        "-1",
        "1-",
        "1-o",
        "1-oe",
        "1-x41",
        "1-o41",
        "1-oe282ac",
        "1-oe2828282",
        "1 ",
        "99999999999999999999999",
        "1-oE2",
        "1-oe2-",
        "11111111111111111111111111111111111111111111111111111111111111111111111111"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        o = (struct output){0};
        if (output_resume(&o, bad[i], &e) == 0)
            fail_msg("'%s' was taken", bad[i]);
        CHECK_INT(e.kind, ERR_INVALID);
    }
}

static void put_plain(struct buf *to, const char *p, size_t n)
{
    buf_add(to, p, n);
}

TEST(a_plane_may_show_pieces_in_its_own_way)
{
    o = (struct output){.put = put_plain};
    CHECK_STR(take(1, "a" EURO, 2), "a");
    CHECK_STR(take(1, &EURO "\xff"[1], 3), EURO "\xff");
    CHECK_STR(take(2, EURO, 2), "nothing");
    CHECK_STR(flush(2), "\xe2\x82");
}

#include "unit.h"

#include "base/buf.h"
#include "base/str.h"

TEST(a_number_has_only_digits)
{
    uint64_t v = 7;

    CHECK_INT(str_u64("0", 10, &v), 0);
    CHECK_INT(v, 0);
    CHECK_INT(str_u64("18446744073709551615", UINT64_MAX, &v), 0);
    CHECK(v == UINT64_MAX);
    CHECK_INT(str_u64("18446744073709551616", UINT64_MAX, &v), -1);
    CHECK_INT(str_u64("11", 10, &v), -1);
    CHECK_INT(str_u64("", 10, &v), -1);
    CHECK_INT(str_u64("+1", 10, &v), -1);
    CHECK_INT(str_u64(" 1", 10, &v), -1);
    CHECK_INT(str_u64("1 ", 10, &v), -1);
    CHECK_INT(str_u64("0x1", 10, &v), -1);
    CHECK(v == UINT64_MAX);
}

TEST(sizes_and_durations_know_their_units_and_overflow)
{
    uint64_t v;

    CHECK_INT(str_size("64M", &v), 0);
    CHECK_INT(v, 64 << 20);
    CHECK_INT(str_size("64m", &v), -1);
    CHECK_INT(str_size("99999999999T", &v), -1);
    CHECK_INT(str_duration_ms("1500ms", &v), 0);
    CHECK_INT(v, 1500);
    CHECK_INT(str_duration_ms("2h", &v), 0);
    CHECK_INT(v, 7200000);
    CHECK_INT(str_duration_ms("30", &v), 0);
    CHECK_INT(v, 30000);
    CHECK_INT(str_duration_ms("-1s", &v), -1);
}

TEST(overlong_forms_surrogates_and_beyond_unicode_are_not_utf8)
{
    CHECK(str_is_utf8("plain text, long enough for the fast path", 41));
    CHECK(str_is_utf8("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9a", 12));
    CHECK(!str_is_utf8("\xc0\xaf", 2));
    CHECK(!str_is_utf8("\xed\xa0\x80", 3));
    CHECK(!str_is_utf8("\xf4\x90\x80\x80", 4));
    CHECK(!str_is_utf8("\x80", 1));
    CHECK(!str_is_utf8("\xe2\x82", 2));
    CHECK(str_is_utf8("", 0));
}

TEST(only_an_unfinished_character_at_the_end_is_held_back)
{
    CHECK_INT(str_utf8_whole("abc", 3), 3);
    CHECK_INT(str_utf8_whole("ab\xe2\x82", 4), 2);
    CHECK_INT(str_utf8_whole("ab\xe2\x82\xac", 5), 5);
    CHECK_INT(str_utf8_whole("ab\xf0\x9f\x90", 5), 2);
    CHECK_INT(str_utf8_whole("\xff\xff", 2), 2);
    CHECK_INT(str_utf8_whole("\x80\x80\x80\x80", 4), 4);
    CHECK_INT(str_utf8_whole("", 0), 0);
}

static void check_base64(const char *plain, const char *coded)
{
    autobuf struct buf a = BUF_INIT(100), b = BUF_INIT(100);

    CHECK_INT(str_base64(&a, plain, strlen(plain)), 0);
    CHECK_STR(buf_cstr(&a), coded);
    CHECK_INT(str_unbase64(&b, coded, strlen(coded)), 0);
    CHECK_STR(buf_cstr(&b), plain);
}

TEST(base64_reads_back_what_it_wrote)
{
    check_base64("", "");
    check_base64("f", "Zg==");
    check_base64("fo", "Zm8=");
    check_base64("foo", "Zm9v");
    check_base64("foobar", "Zm9vYmFy");
}

TEST(base64_without_padding_or_with_anything_else_in_it_is_refused)
{
    static const char *const bad[] = {"Zg",   "Zg=",      "Z===", "Zm9v\n",
                                      "Zm 9", "Zg==Zg==", "====", "Zm9-"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        autobuf struct buf b = BUF_INIT(100);

        CHECK_INT(str_unbase64(&b, bad[i], strlen(bad[i])), -1);
    }
}

TEST(digits_are_written_and_read)
{
    char out[STR_DEC_MAX];

    CHECK_INT(str_dec(out, 0), 1);
    CHECK_INT(out[0], '0');
    CHECK_INT(str_dec(out, UINT64_MAX), 20);
    CHECK_INT(memcmp(out, "18446744073709551615", 20), 0);
    CHECK_INT(str_hex_digit('9'), 9);
    CHECK_INT(str_hex_digit('f'), 15);
    CHECK_INT(str_hex_digit('F'), 15);
    CHECK_INT(str_hex_digit('g'), -1);
    CHECK_INT(str_hex_digit(0x10), -1);
}

TEST(hex_is_two_lower_case_digits_per_byte)
{
    char out[7];

    str_hex(out, "\x00\xfe\x10", 3);
    CHECK_STR(out, "00fe10");
}

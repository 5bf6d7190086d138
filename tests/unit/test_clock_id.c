#include "unit.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/own.h"

TEST(a_held_clock_stands_still)
{
    clock_hold(5000000, 1700000000123);
    CHECK(clock_mono_ns() == 5000000);
    CHECK(clock_mono_ms() == 5);
    CHECK(clock_real_ms() == 1700000000123);
    clock_release();
    CHECK(clock_mono_ns() != 5000000);
}

TEST(time_is_written_in_utc_with_milliseconds)
{
    char text[CLOCK_TEXT_MAX];

    CHECK_STR(clock_text(1700000000007, text), "2023-11-14T22:13:20.007Z");
}

TEST(ids_use_no_letters_that_are_easily_misread)
{
    char a[ID_LEN + 1], b[ID_LEN + 1];

    id_random(a, ID_LEN);
    id_random(b, ID_LEN);
    CHECK_INT(strlen(a), ID_LEN);
    CHECK(id_is_valid(a, ID_LEN));
    CHECK(strcmp(a, b) != 0);
    CHECK_INT(strcspn(a, "ilou"), ID_LEN);
}

TEST(a_uuid_has_its_version_and_variant_and_is_new_each_time)
{
    char a[ID_UUID_LEN + 1], b[ID_UUID_LEN + 1];

    id_uuid(a);
    id_uuid(b);
    CHECK_INT(strlen(a), ID_UUID_LEN);
    CHECK_INT(strspn(a, "0123456789abcdef-"), ID_UUID_LEN);
    CHECK(a[8] == '-' && a[13] == '-' && a[18] == '-' && a[23] == '-');
    CHECK(a[14] == '4' && strchr("89ab", a[19]) != NULL);
    CHECK(strcmp(a, b) != 0);
}

TEST(held_ids_are_the_same_every_time)
{
    char a[ID_LEN + 1], b[ID_LEN + 1];

    id_hold(42);
    id_random(a, ID_LEN);
    id_hold(42);
    id_random(b, ID_LEN);
    id_hold(0);
    CHECK_STR(a, b);
}

TEST(an_id_with_anything_else_in_it_is_not_one)
{
    CHECK(id_is_valid("abc123", 6));
    CHECK(!id_is_valid("abc123", 5));
    CHECK(!id_is_valid("", 5));
    CHECK(!id_is_valid("aB", 5));
    CHECK(!id_is_valid("../x", 5));
}

TEST(times_are_parsed_in_our_form_and_in_other_zones)
{
    static const char *const bad[] = {"",
                                      "2026-11-15",
                                      "2026-11-15T08:21:00",
                                      "2026-11-15T08:21:00.Z",
                                      "2026-11-15T08:21:00.1",
                                      "2026-11-15T08:21:00Zx",
                                      "2026-11-15T08:21:00+1",
                                      "1950-01-01T00:00:00Z"};
    char text[CLOCK_TEXT_MAX];
    uint64_t ms = 0;

    CHECK_INT(clock_read("2026-11-15T08:21:00.123Z", &ms), 0);
    CHECK_STR(clock_text(ms, text), "2026-11-15T08:21:00.123Z");
    CHECK_INT(clock_read("2026-11-15T08:21:00Z", &ms), 0);
    CHECK_STR(clock_text(ms, text), "2026-11-15T08:21:00.000Z");
    CHECK_INT(clock_read("2026-11-15T09:21:00.0009999+01:00", &ms), 0);
    CHECK_STR(clock_text(ms, text), "2026-11-15T08:21:00.000Z");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_INT(clock_read(bad[i], &ms), -1);
}

#include "unit.h"

#include "init/limits/text.h"

TEST(a_number_is_found_at_the_beginning_of_a_line_only)
{
    const char *text =
        "inactive_anon 1\nanon 2\ntotal_anon 3\nanon_thp 4\nfile 18446744073709551615\n";

    CHECK_INT(limits_number(text, "anon"), 2);
    CHECK_INT(limits_number(text, "inactive_anon"), 1);
    CHECK(limits_number(text, "file") == UINT64_MAX);
    CHECK_INT(limits_number(text, "thp"), 0);
    CHECK_INT(limits_number("", "anon"), 0);
    CHECK_INT(limits_number("anon", "anon"), 0);
}

TEST(a_quota_is_rounded_up_to_processors)
{
    CHECK_INT(limits_cpu_max("100000 100000\n"), 1);
    CHECK_INT(limits_cpu_max("100001 100000\n"), 2);
    CHECK_INT(limits_cpu_max("30000 100000\n"), 1);
    CHECK_INT(limits_cpu_max("800000 100000\n"), 8);
    CHECK_INT(limits_cpu_max("max 100000\n"), 0);
    CHECK_INT(limits_cpu_max("1000"), 0);
    CHECK_INT(limits_cpu_max(""), 0);
}

TEST(only_the_first_bits_of_a_mask_stay)
{
    unsigned char mask[4] = {0x90, 0xff, 0, 0x81};

    CHECK_INT(limits_first_bits(mask, 4, UINT32_MAX), 12);
    CHECK_INT(limits_first_bits(mask, 4, 3), 12);
    CHECK_INT(mask[0], 0x90);
    CHECK_INT(mask[1], 0x01);
    CHECK_INT(mask[2] | mask[3], 0);
    CHECK_INT(limits_first_bits(mask, 4, 3), 3);
}

/* The paragraph may end in any piece. */
TEST(the_first_paragraphs_are_taken_from_pieces_of_any_size)
{
    static const char text[] = "processor : 0\na\n\nprocessor : 1\nb\n\nprocessor : 2\nc\n\n";

    for (size_t piece = 1; piece < sizeof(text); piece++) {
        char last = '\0';
        unsigned seen = 0;
        size_t at = 0, n;

        do {
            size_t left = sizeof(text) - 1 - at;

            n = limits_paragraphs(text + at, left < piece ? left : piece, 2, &seen, &last);
            at += n;
        } while (n > 0);
        CHECK_INT(at, strstr(text, "processor : 2") - text);
    }
}

TEST(idle_time_is_never_negative_and_is_that_of_all_processors)
{
    struct limits_cpu c = {
        .count = 2, .user_us = 3000000, .sys_us = 1000000, .up_ms = 10000, .tasks = 7};
    struct buf out = BUF_INIT(4096);

    limits_uptime(&c, &out);
    CHECK_STR(buf_cstr(&out), "10.00 16.00\n");
    buf_clear(&out);
    limits_stat(&c, 1700000000, &out);
    CHECK(strncmp(buf_cstr(&out),
                  "cpu  300 0 100 1600 0 0 0 0 0 0\ncpu0 150 0 50 800 0 0 0 0 0 0\n"
                  "cpu1 150 0 50 800 0 0 0 0 0 0\nintr 0\n",
                  92) == 0);
    CHECK(strstr(buf_cstr(&out), "\nbtime 1700000000\n") != NULL);
    buf_clear(&out);
    c.up_ms = 1000;
    limits_uptime(&c, &out);
    CHECK_STR(buf_cstr(&out), "1.00 0.00\n");
    buf_free(&out);
}

TEST(available_memory_is_at_most_the_limit)
{
    struct limits_memory m = {.total = 1 << 20, .used = 1 << 19, .active_file = 1 << 20};
    struct buf out = BUF_INIT(4096);

    limits_meminfo(&m, &out);
    CHECK(strstr(buf_cstr(&out), "MemTotal:           1024 kB\n") == buf_cstr(&out));
    CHECK(strstr(buf_cstr(&out), "\nMemFree:             512 kB\nMemAvailable:       1024 kB\n") !=
          NULL);
    buf_free(&out);
}

TEST(a_list_of_processors_has_the_form_of_sysfs)
{
    struct buf out = BUF_INIT(64);

    limits_online(1, &out);
    limits_online(64, &out);
    CHECK_STR(buf_cstr(&out), "0\n0-63\n");
    buf_free(&out);
}

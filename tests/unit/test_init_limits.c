#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "init/limits/files.h"
#include "init/limits/text.h"

static const struct limits_source host; /* no limits */
static struct limits_load load;

static struct loop *started(struct limits_files *f)
{
    char name[] = "/tmp/cove-test.XXXXXX";
    struct loop *l;
    struct err e;

    CHECK_INT(loop_new(&l, &e), 0);
    for (int i = 0; i < LIMITS_FILE_COUNT; i++)
        f->fds[i] = -1;
    f->fds[LIMITS_STAT] = mkostemp(name, O_CLOEXEC); /* no lease on a memfd is given */
    CHECK(f->fds[LIMITS_STAT] >= 0 && unlink(name) == 0);
    return l;
}

static int open_again(const struct limits_files *f)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), f->fds[LIMITS_STAT]);
    return open(path, O_RDONLY | O_CLOEXEC);
}

TEST(an_open_waits_until_the_file_is_written)
{
    struct limits_files f = {0};
    struct loop *l = started(&f);
    struct err e;
    int status;
    pid_t child;

    CHECK_INT(limits_files_start(&f, l, &host, &load, &e), 0);
    CHECK(f.leased[LIMITS_STAT]);
    child = fork();
    if (child == 0) {
        char path[64], text[5] = "";
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getppid(), f.fds[LIMITS_STAT]);
        fd = open(path, O_RDONLY);
        _exit(read(fd, text, 4) == 4 && strcmp(text, "cpu ") == 0 ? 0 : 1);
    }
    while (waitpid(child, &status, WNOHANG) == 0)
        loop_turn(l, 10, &e);
    CHECK_INT(status, 0);
    while (!f.leased[LIMITS_STAT])
        loop_turn(l, 10, &e);
    loop_free(l);
    close(f.fds[LIMITS_STAT]);
}

TEST(a_file_that_stays_open_is_rewritten_less_and_less_often)
{
    struct limits_files f = {0};
    struct loop *l = started(&f);
    int held = open_again(&f), turns = 0;
    uint64_t end;
    char text[4];
    struct err e;

    CHECK_INT(limits_files_start(&f, l, &host, &load, &e), 0);
    CHECK(!f.leased[LIMITS_STAT]);
    CHECK_INT(pread(held, text, sizeof(text), 0), sizeof(text));
    for (end = clock_mono_ms() + 300; clock_mono_ms() < end; turns++)
        loop_turn(l, 300, &e);
    CHECK(turns >= 1 && turns <= 4);
    close(held);
    while (!f.leased[LIMITS_STAT])
        loop_turn(l, 10, &e);
    loop_free(l);
    close(f.fds[LIMITS_STAT]);
}

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

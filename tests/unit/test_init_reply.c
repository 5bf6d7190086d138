#include "unit.h"

#include <stdio.h>

#include "init/session/reply.h"

static struct reply got;
static size_t used;

static int says(const char *text)
{
    used = 0;
    got = (struct reply){0};
    return reply_read(text, strlen(text), &got, &used);
}

TEST(a_reply_is_a_letter_and_a_status)
{
    static const char letters[] = "rnxeq";
    char text[8];

    for (size_t i = 0; i < REPLY_KINDS; i++) {
        snprintf(text, sizeof(text), "%c%zu\n", letters[i], 7 + 60 * i);
        CHECK_INT(says(text), 1);
        CHECK_INT(got.kind, i);
        CHECK_INT(got.status, 7 + 60 * i);
        CHECK_INT(used, strlen(text));
    }
    CHECK_INT(says("n255\nrest"), 1);
    CHECK_INT(used, 5);
}

TEST(an_incomplete_line_needs_more_bytes)
{
    CHECK_INT(says(""), 0);
    CHECK_INT(says("n"), 0);
    CHECK_INT(says("n25"), 0);
}

TEST(rejects_malformed_lines)
{
    static const char *const other[] = {"\n",    "n\n",   "n256\n", "n1000\n", "n-1\n", "n 1\n",
                                        "n1 \n", "n1x\n", "k0\n",   "0\n",     " n0\n", "N0\n"};

    for (size_t i = 0; i < ARRAY_LEN(other); i++)
        CHECK_INT(says(other[i]), 0);
    CHECK_INT(reply_read("n\0001\n", 4, &got, &used), 0);
    CHECK_INT(says("+ traced\nn\nx3\nn0\n"), 1);
    CHECK_INT(got.kind, REPLY_LEFT);
    CHECK_INT(got.status, 3);
    CHECK_INT(used, strlen("+ traced\nn\nx3\n"));
}

TEST(REPLY_MAX_bytes_without_a_reply_are_an_error)
{
    char text[REPLY_MAX];

    memset(text, 'x', sizeof(text));
    CHECK_INT(reply_read(text, sizeof(text) - 1, &got, &used), 0);
    CHECK_INT(reply_read(text, sizeof(text), &got, &used), -1);
    memset(text, '\n', sizeof(text));
    CHECK_INT(reply_read(text, sizeof(text), &got, &used), -1);
}

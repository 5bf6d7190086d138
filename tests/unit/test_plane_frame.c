#include "unit.h"

#include "front/engine/process.h"
#include "front/plane/frame.h"

static struct frame f;
static struct err e;

static int own(const char *text)
{
    return frame_read(false, text, strlen(text), &f, &e);
}

static int ttyd(bool first, const char *text)
{
    return frame_read_ttyd(first, text, strlen(text), &f, &e);
}

TEST(bytes_are_typed_whatever_they_are)
{
    CHECK_INT(frame_read(true, "{\"type\":1\0\377", 11, &f, &e), 0);
    CHECK_INT(f.act, FRAME_INPUT);
    CHECK_INT(f.n, 11);
}

TEST(text_is_a_new_size_within_bounds)
{
    CHECK_INT(own("{\"type\":\"resize\",\"cols\":132,\"rows\":43}"), 0);
    CHECK_INT(f.act, FRAME_RESIZE);
    CHECK_INT(f.cols, 132);
    CHECK_INT(f.rows, 43);
    CHECK_INT(own("{\"type\":\"resize\",\"cols\":1000,\"rows\":1000}"), 0);
    CHECK_INT(own("{\"type\":\"resize\",\"cols\":1001,\"rows\":1}"), -1);
    CHECK_INT(own("{\"type\":\"resize\",\"cols\":0,\"rows\":1}"), -1);
    CHECK_HAS(e.msg, "cols");
}

TEST(an_invalid_text_message_is_refused_with_a_reason)
{
    CHECK_INT(own(""), -1);
    CHECK_INT(own("[]"), -1);
    CHECK_INT(own("{}"), -1);
    CHECK_HAS(e.msg, "type");
    CHECK_INT(own("{\"type\":\"resize\"}"), -1);
    CHECK_HAS(e.msg, "cols");
    CHECK_INT(own("{\"type\":\"dance\"}"), -1);
    CHECK_HAS(e.msg, "dance");
    CHECK_INT(own("{\"type\":\"resize\",\"cols\":1,\"rows\":1,\"x\":1}"), -1);
}

TEST(a_control_message_of_more_than_FRAME_CONTROL_MAX_bytes_is_not_looked_at)
{
    static char text[FRAME_CONTROL_MAX + 2];

    memset(text, ' ', sizeof(text) - 1);
    CHECK_INT(frame_read(false, text, FRAME_CONTROL_MAX + 1, &f, &e), -1);
    CHECK_INT(e.kind, ERR_TOO_LARGE);
}

TEST(ttyd_begins_with_a_size_that_may_be_missing)
{
    CHECK_INT(ttyd(true, "{\"AuthToken\":\"x\",\"columns\":80,\"rows\":24}"), 0);
    CHECK_INT(f.act, FRAME_HELLO);
    CHECK_INT(f.cols, 80);
    CHECK_INT(f.rows, 24);
    CHECK_INT(ttyd(true, "{\"AuthToken\":\"\",\"columns\":-1,\"rows\":1000000}"), 0);
    CHECK_INT(f.cols, 0);
    CHECK_INT(f.rows, 0);
    CHECK_INT(ttyd(true, "0typed"), -1);
    CHECK_INT(ttyd(true, "[]"), -1);
}

TEST(the_first_byte_of_a_ttyd_message_is_its_type)
{
    CHECK_INT(ttyd(false, "0ls\n"), 0);
    CHECK_INT(f.act, FRAME_INPUT);
    CHECK_INT(f.n, 3);
    CHECK_INT(memcmp(f.p, "ls\n", 3), 0);
    CHECK_INT(ttyd(false, "1{\"columns\":99,\"rows\":33}"), 0);
    CHECK_INT(f.act, FRAME_RESIZE);
    CHECK_INT(f.cols, 99);
    CHECK_INT(ttyd(false, "2"), 0);
    CHECK_INT(f.act, FRAME_PAUSE);
    CHECK_INT(ttyd(false, "3"), 0);
    CHECK_INT(f.act, FRAME_RESUME);
    CHECK_INT(ttyd(false, ""), -1);
    CHECK_INT(ttyd(false, "9"), -1);
    CHECK_INT(ttyd(false, "1{\"columns\":0,\"rows\":33}"), -1);
    CHECK_INT(ttyd(false, "1"), -1);
}

#include "unit.h"

#include <string.h>

#include "front/engine/archive.h"
#include "front/engine/watch.h"

static char line[256];
static struct watch_event ev;

static int read_line(const char *text)
{
    strcpy(line, text);
    return watch_line(line, &ev);
}

TEST(each_kind_of_line_is_read)
{
    CHECK_INT(read_line("ready"), 0);
    CHECK_INT(ev.kind, WATCH_READY);
    CHECK_INT(read_line("create d a%20b/%FF"), 0);
    CHECK_INT(ev.kind, WATCH_CREATE);
    CHECK(ev.dir);
    CHECK_STR(ev.path, "a b/\xff");
    CHECK(ev.from == NULL);
    CHECK_INT(read_line("move f to from%0A"), 0);
    CHECK_STR(ev.path, "to");
    CHECK_STR(ev.from, "from\n");
    CHECK_INT(read_line("overflow queue"), 0);
    CHECK_STR(ev.path, "queue");
    CHECK_INT(read_line("end moved"), 0);
    CHECK_INT(ev.kind, WATCH_END);
}

TEST(rejects_malformed_lines)
{
    static const char *const bad[] = {"",
                                      "ready ",
                                      "ready x",
                                      "created f x",
                                      "create",
                                      "create f",
                                      "create f ",
                                      "create x y",
                                      "create f a b",
                                      "move f a",
                                      "move f a b c",
                                      "create f %",
                                      "create f %0",
                                      "create f %00",
                                      "create f %zz",
                                      "overflow",
                                      "overflow log",
                                      "end",
                                      "end deleted ",
                                      "delete f  x"};

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (read_line(bad[i]) == 0)
            fail_msg("'%s' was taken", bad[i]);
}

TEST(the_answer_of_an_unpacking_is_read_or_refused)
{
    static const char good[] = "R {\"entries\":3,\"bytes\":4,\"skipped\":1,\"left\":\"x\"}\n";
    static const char *const bad[] = {
        "",
        "R",
        "R \n",
        "R {}\n",
        "X {}\n",
        "R {\"entries\":3}\n",
        "R {\"entries\":-1,\"bytes\":4,\"skipped\":1,\"left\":\"\"}\n",
        "R {\"entries\":1,\"bytes\":4,\"skipped\":1,\"left\":\"\"}"};
    struct archive_result r;
    struct err e;

    CHECK_INT(archive_result(good, strlen(good), &r, &e), 0);
    CHECK_INT(r.entries, 3);
    CHECK_STR(r.left, "x");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_INT(archive_result(bad[i], strlen(bad[i]), &r, &e), -1);
        CHECK_INT(e.kind, ERR_INTERNAL);
    }
}

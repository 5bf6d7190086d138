#include "unit.h"

#include "init/serve/internal.h"

static int status(const char *text)
{
    return probe_status(text, strlen(text));
}

TEST(a_status_is_read_from_the_first_line)
{
    CHECK_INT(status("HTTP/1.1 200 OK\r\n"), 200);
    CHECK_INT(status("HTTP/1.0 404 "), 404);
    CHECK_INT(status("HTTP/1.1 503\r"), 503);
}

TEST(an_incomplete_status_line_needs_more_bytes)
{
    static const char text[] = "HTTP/1.1 204 ";

    for (size_t n = 0; n < sizeof(text) - 1; n++)
        CHECK_INT(probe_status(text, n), 0);
    CHECK_INT(probe_status(text, sizeof(text) - 1), 204);
    CHECK_INT(sizeof(text) - 1, PROBE_ANSWER_MAX);
}

TEST(an_answer_that_is_not_http_is_refused_at_its_first_wrong_byte)
{
    CHECK_INT(status("SSH-2.0"), -1);
    CHECK_INT(status("http/1.1"), -1);
    CHECK_INT(status("HTTP/2"), -1);
    CHECK_INT(status("HTTP/1.1  200 "), -1);
    CHECK_INT(status("HTTP/1.1 20x "), -1);
    CHECK_INT(status("HTTP/1.1 2000 "), -1);
    CHECK_INT(status("\r\nHTTP/1.1 200 "), -1);
}

TEST(rejects_paths_that_do_not_fit_a_request_line)
{
    autobuf struct buf b = BUF_INIT(2048);

    CHECK(probe_path_is_valid("/"));
    CHECK(probe_path_is_valid("/a/b?c=d%20e"));
    CHECK(!probe_path_is_valid(""));
    CHECK(!probe_path_is_valid("a"));
    CHECK(!probe_path_is_valid("/a b"));
    CHECK(!probe_path_is_valid("/a\r\nX: y"));
    CHECK(!probe_path_is_valid("/\xc3\xa4"));
    probe_request(&b, "/x", 80);
    CHECK_HAS(buf_cstr(&b), "GET /x HTTP/1.1\r\nHost: localhost:80\r\n");
    CHECK_HAS(buf_cstr(&b), "\r\n\r\n");
}

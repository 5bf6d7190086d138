/* test_http_answer.c - untrusted responses, piece by piece. */
#include "unit.h"

#include "base/own.h"
#include "http/answer.h"

struct got {
    enum answer_event last;
    int status;
    char body[256];
    size_t used;
    const char *why;
};

static struct got take(const char *text, bool to_head, bool upgrade)
{
    struct got g = {.last = ANSWER_MORE};
    size_t n = strlen(text), at = 0;
    struct http_fault f = {0};
    struct answer a;

    answer_init(&a);
    a.to_head = to_head;
    a.upgrade = upgrade;
    for (;;) {
        struct http_str data = {0};
        size_t used;

        g.last = answer_next(&a, text + at, n - at, &used, &data, &f);
        at += used;
        if (g.last == ANSWER_HEAD)
            g.status = a.msg.status;
        if (g.last == ANSWER_DATA)
            strncat(g.body, data.p, data.len);
        if (g.last == ANSWER_END || g.last == ANSWER_BAD || g.last == ANSWER_MORE ||
            g.status == 101)
            break;
    }
    if (g.last == ANSWER_MORE)
        g.last = answer_eof(&a, &f);
    g.used = at;
    g.why = f.why;
    answer_free(&a);
    return g;
}

TEST(a_body_with_a_length_ends_there_and_later_bytes_are_not_used)
{
    struct got g = take("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloREST", false, false);

    CHECK_INT(g.last, ANSWER_END);
    CHECK_INT(g.status, 200);
    CHECK_STR(g.body, "hello");
    CHECK_INT(g.used, strlen("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"));
}

TEST(chunks_end_it)
{
    struct got g = take("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "5\r\nhello\r\n1;x\r\n!\r\n0\r\nT: y\r\n\r\nREST",
                        false, false);

    CHECK_INT(g.last, ANSWER_END);
    CHECK_STR(g.body, "hello!");
}

TEST(the_end_of_the_connection_ends_only_a_body_without_a_length)
{
    CHECK_INT(take("HTTP/1.0 200 OK\r\n\r\nold", false, false).last, ANSWER_END);
    CHECK_INT(take("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", false, false).last,
              ANSWER_BAD);
    CHECK_INT(
        take("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", false, false).last,
        ANSWER_BAD);
    CHECK_INT(take("HTTP/1.1 200 OK\r\nContent-", false, false).last, ANSWER_BAD);
    CHECK_INT(take("", false, false).last, ANSWER_BAD);
}

TEST(answers_without_a_body_ignore_their_length_headers)
{
    CHECK_INT(take("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, false).last, ANSWER_END);
    CHECK_STR(take("HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello", false, false).body, "");
    CHECK_STR(take("HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\nhello", false, false).body, "");
}

TEST(interim_answers_are_skipped_up_to_a_number)
{
    char many[1024] = "";

    CHECK_INT(take("HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 X\r\nL: y\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
                   false, false)
                  .status,
              204);
    for (int i = 0; i <= ANSWER_INTERIM_MAX; i++)
        strcat(many, "HTTP/1.1 100 Go\r\n\r\n");
    CHECK_INT(take(many, false, false).last, ANSWER_BAD);
}

TEST(a_protocol_changes_only_if_it_was_asked_for)
{
    static const char text[] = "HTTP/1.1 101 Sure\r\nUpgrade: x\r\n\r\nbytes";

    CHECK_INT(take(text, false, true).status, 101);
    CHECK_INT(take(text, false, true).used, sizeof(text) - 1 - strlen("bytes"));
    CHECK_INT(take(text, false, false).last, ANSWER_BAD);
}

TEST(ambiguous_answers_are_refused)
{
    static const char *const bad[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\na",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
        "HTTP/1.1 200 OK\nA: b\n\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_INT(take(bad[i], false, false).last, ANSWER_BAD);
}

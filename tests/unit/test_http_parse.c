#include "unit.h"

#include <stdio.h>

#include "http/parse.h"

static struct http_msg m;
static struct http_fault f;

/* Delimits and parses; 0 or the status of the refusal. */
static int request_n(const char *text, size_t n)
{
    size_t scanned = 0, len = 0;
    int r = http_head_end(text, n, &scanned, &len, &f);

    if (r == 0)
        return 1;
    if (r > 0 && http_parse_request_head(text, len, &m, &f) == 0)
        return 0;
    CHECK(f.why != NULL);
    return f.status;
}

static int request(const char *text)
{
    return request_n(text, strlen(text));
}

static int response(const char *text)
{
    return http_parse_response_head(text, strlen(text), &m, &f) == 0 ? 0 : f.status;
}

static bool span_is(const char *text, struct http_span s, const char *want)
{
    return s.len == strlen(want) && memcmp(text + s.at, want, s.len) == 0;
}

/* clang-format off */
static const struct {
    const char *text;
    int status; /* 0: well formed; 1: not complete */
} cases[] = {
    {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",                                  0},
    {"GET / HTTP/1.1\r\nHost:x\r\n\r\n",                                   0},
    {"GET / HTTP/1.1\r\nHost: \t x \t\r\n\r\n",                            0},
    {"GET /?a=b&c HTTP/1.1\r\nHost: x:80\r\n\r\n",                         0},
    {"GET / HTTP/1.0\r\n\r\n",                                             0},
    {"GET / HTTP/1.1\r\nHost: [::1]:7878\r\n\r\n",                         0},
    {"GET / HTTP/1.1\r\nHost: 8080-abc.localhost.\r\n\r\n",                0},
    {"GET http://x/y?z HTTP/1.1\r\nHost: x\r\n\r\n",                       0},
    {"GET HTTPS://x HTTP/1.1\r\nHost: X\r\n\r\n",                          0},
    {"GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",                          0},
    {"GET / HTTP/1.1\r\nHost: x\r\nX-Empty:\r\n\r\n",                      0},
    {"GET / HTTP/1.1\r\nHost: x\r\nX: caf\xe9\r\n\r\n",                    0},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ChunKed\r\n\r\n",   0},
    {"M-SEARCH / HTTP/1.1\r\nHost: x\r\n\r\n",                             0},

    {"GET / HTTP/1.1\r\nHost: x\r\n",                                      1},
    {"GET / HTTP/1.1\r\nHost: x\r\n\r",                                    1},
    {"",                                                                   1},

    /* the first line */
    {"GET  / HTTP/1.1\r\nHost: x\r\n\r\n",                               400},
    {"GET /  HTTP/1.1\r\nHost: x\r\n\r\n",                               400},
    {"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",                             400},
    {"GET / HTTP/1.1 \r\nHost: x\r\n\r\n",                               400},
    {"GET\t/ HTTP/1.1\r\nHost: x\r\n\r\n",                               400},
    {" GET / HTTP/1.1\r\nHost: x\r\n\r\n",                               400},
    {"get / HTTP/1.1\r\nHost: x\r\n\r\n",                                400},
    {"G(T / HTTP/1.1\r\nHost: x\r\n\r\n",                                400},
    {"GET /\r\nHost: x\r\n\r\n",                                         400},
    {"GET\r\nHost: x\r\n\r\n",                                           400},
    {"GET /#frag HTTP/1.1\r\nHost: x\r\n\r\n",                           400},
    {"GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n",                            400},
    {"GET /\x7f HTTP/1.1\r\nHost: x\r\n\r\n",                            400},
    {"GET * HTTP/1.1\r\nHost: x\r\n\r\n",                                400},
    {"GET x HTTP/1.1\r\nHost: x\r\n\r\n",                                400},
    {"GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n",                         400},
    {"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",                         405},
    {"TRACE / HTTP/1.1\r\nHost: x\r\n\r\n",                              405},
    {"GET / http/1.1\r\nHost: x\r\n\r\n",                                400},
    {"GET / HTTP/1.11\r\nHost: x\r\n\r\n",                               400},
    {"GET / HTTP/01.1\r\nHost: x\r\n\r\n",                               400},
    {"GET / HTTP/1\r\nHost: x\r\n\r\n",                                  400},
    {"GET / HTTP/1.2\r\nHost: x\r\n\r\n",                                505},
    {"GET / HTTP/2.0\r\nHost: x\r\n\r\n",                                505},
    {"GET / HTTP/0.9\r\nHost: x\r\n\r\n",                                505},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",                                 400},
    {"\x16\x03\x01",                                                     400},

    /* lines */
    {"GET / HTTP/1.1\nHost: x\n\n",                                      400},
    {"GET / HTTP/1.1\r\nHost: x\n\r\n",                                  400},
    {"GET / HTTP/1.1\r\nHost: x\r\n\n",                                  400},
    {"GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n",                          400},
    {"GET / HTTP/1.1\r\nHost: x\r\r\n\r\n",                              400},
    {"GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",                  400},
    {"GET / HTTP/1.1\r\n Host: x\r\n\r\n",                               400},
    {"GET / HTTP/1.1\r\nHost: x\r\nX : y\r\n\r\n",                       400},
    {"GET / HTTP/1.1\r\nHost: x\r\nX\r\n\r\n",                           400},
    {"GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n",                         400},
    {"GET / HTTP/1.1\r\nHost: x\r\nX(: y\r\n\r\n",                       400},
    {"GET / HTTP/1.1\r\nHost: x\r\nX: \x01\r\n\r\n",                     400},
    {"GET / HTTP/1.1\r\nHost: x\r\nX: \x7f\r\n\r\n",                     400},

    /* whom it is for */
    {"GET / HTTP/1.1\r\n\r\n",                                           400},
    {"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n",                     400},
    {"GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n",                     400},
    {"GET / HTTP/1.1\r\nHost:\r\n\r\n",                                  400},
    {"GET / HTTP/1.1\r\nHost: x y\r\n\r\n",                              400},
    {"GET / HTTP/1.1\r\nHost: x/y\r\n\r\n",                              400},
    {"GET / HTTP/1.1\r\nHost: u@x\r\n\r\n",                              400},
    {"GET / HTTP/1.1\r\nHost: x..y\r\n\r\n",                             400},
    {"GET / HTTP/1.1\r\nHost: x:\r\n\r\n",                               400},
    {"GET / HTTP/1.1\r\nHost: x:99999\r\n\r\n",                          400},
    {"GET / HTTP/1.1\r\nHost: x:80:80\r\n\r\n",                          400},
    {"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",                             400},
    {"GET / HTTP/1.1\r\nHost: [::1]x\r\n\r\n",                           400},
    {"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n",                              400},
    {"GET http://y/ HTTP/1.1\r\nHost: x\r\n\r\n",                        400},
    {"GET http:///p HTTP/1.1\r\nHost: x\r\n\r\n",                        400},
    {"GET http://u@x/ HTTP/1.1\r\nHost: u@x\r\n\r\n",                    400},

    /* how long it is */
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n",            0},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775807\r\n\r\n", 0},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775808\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\n",         400},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",         400},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5 \r\n\r\n",         400},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x5\r\n\r\n",        400},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5,5\r\n\r\n",        400},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5 5\r\n\r\n",        400},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n",            400},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\ncontent-length: 6\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n\r\n",         501},
    {"POST / HTTP/1.1\r\nHost: x\r\nExpect: 200-ok\r\n\r\n",             417},
};
/* clang-format on */

TEST(every_head_is_judged_as_the_table_says)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int status = request(cases[i].text);

        if (status != cases[i].status)
            print_error("%d instead of %d for %s\n", status, cases[i].status, cases[i].text);
        CHECK_INT(status, cases[i].status);
    }
}

TEST(a_nul_anywhere_in_the_head_is_refused)
{
    static const char good[] = "GET /ab HTTP/1.1\r\nHost: xyz\r\nName: value\r\n\r\n";
    char text[sizeof(good)];

    for (size_t i = 0; i < sizeof(good) - 5; i++) {
        memcpy(text, good, sizeof(good));
        text[i] = '\0';
        CHECK(request_n(text, sizeof(good) - 1) >= 400);
    }
}

TEST(a_head_arriving_byte_by_byte_ends_where_it_ends)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET";
    size_t scanned = 0, len = 0, whole = sizeof(text) - 4;

    for (size_t n = 0; n < whole; n++)
        CHECK_INT(http_head_end(text, n, &scanned, &len, &f), 0);
    CHECK_INT(http_head_end(text, whole, &scanned, &len, &f), 1);
    CHECK_INT(len, whole);
}

TEST(the_parts_of_a_request_are_where_it_says)
{
    static const char t[] = "PUT http://h:1/p/q?a=b?c HTTP/1.1\r\nA:  v w \r\nHost: h:1\r\n"
                            "Connection: x, Keep-Alive\r\nConnection: upgrade\r\n\r\n";

    CHECK_INT(request(t), 0);
    CHECK(span_is(t, m.method, "PUT"));
    CHECK(span_is(t, m.target, "http://h:1/p/q?a=b?c"));
    CHECK(span_is(t, m.path, "/p/q"));
    CHECK(span_is(t, m.query, "a=b?c"));
    CHECK(span_is(t, m.host, "h:1"));
    CHECK(span_is(t, m.fields[0].name, "A"));
    CHECK(span_is(t, m.fields[0].value, "v w"));
    CHECK_INT(m.nfields, 4);
    CHECK(m.keep_alive && m.upgrade && !m.close);
    CHECK(m.content_length == -1 && !m.chunked);
}

static char big[HTTP_HEAD_MAX * 2];

static int long_target(size_t n)
{
    int at = snprintf(big, sizeof(big), "GET /");

    memset(big + at, 'a', n - 1);
    snprintf(big + at + n - 1, 64, " HTTP/1.1\r\nHost: x\r\n\r\n");
    return request(big);
}

TEST(a_target_past_its_bound_is_414)
{
    CHECK_INT(long_target(HTTP_TARGET_MAX), 0);
    CHECK_INT(long_target(HTTP_TARGET_MAX + 1), 414);
    CHECK_INT(long_target(HTTP_HEAD_MAX + 1), 414);
}

TEST(a_first_line_that_never_ends_is_414_without_waiting)
{
    size_t scanned = 0, len;

    memset(big, 'A', sizeof(big));
    CHECK_INT(http_head_end(big, HTTP_HEAD_MAX - 1, &scanned, &len, &f), 0);
    CHECK_INT(http_head_end(big, HTTP_HEAD_MAX, &scanned, &len, &f), -1);
    CHECK_INT(f.status, 414);
}

static int long_header(size_t total)
{
    int at = snprintf(big, sizeof(big), "GET / HTTP/1.1\r\nHost: x\r\nX: ");

    memset(big + at, 'a', total - (size_t)at - 4);
    memcpy(big + total - 4, "\r\n\r\n", 4);
    return request_n(big, total);
}

TEST(a_head_past_its_bound_is_431)
{
    CHECK_INT(long_header(HTTP_HEAD_MAX), 0);
    CHECK_INT(long_header(HTTP_HEAD_MAX + 1), 431);
}

static int many_headers(size_t n)
{
    int at = snprintf(big, sizeof(big), "GET / HTTP/1.1\r\nHost: x\r\n");

    for (size_t i = 1; i < n; i++)
        at += snprintf(big + at, sizeof(big) - (size_t)at, "X: y\r\n");
    snprintf(big + at, sizeof(big) - (size_t)at, "\r\n");
    return request(big);
}

TEST(one_header_too_many_is_431)
{
    CHECK_INT(many_headers(HTTP_HEADERS_MAX), 0);
    CHECK_INT(many_headers(HTTP_HEADERS_MAX + 1), 431);
}

TEST(a_response_is_read_with_the_same_strictness)
{
    CHECK_INT(response("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"), 0);
    CHECK_INT(m.status, 200);
    CHECK_INT(m.content_length, 3);
    CHECK_INT(response("HTTP/1.1 404\r\n\r\n"), 0);
    CHECK_INT(m.status, 404);
    CHECK_INT(response("HTTP/1.0 200 all is  well\r\n\r\n"), 0);
    CHECK_INT(response("HTTP/1.1 20 OK\r\n\r\n"), 502);
    CHECK_INT(response("HTTP/1.1 2000 OK\r\n\r\n"), 502);
    CHECK_INT(response("HTTP/2 200 OK\r\n\r\n"), 502);
    CHECK_INT(response("ICY 200 OK\r\n\r\n"), 502);
    CHECK_INT(response("HTTP/1.1 200 O\x01K\r\n\r\n"), 502);
    CHECK_INT(response("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n"), 502);
    CHECK_INT(response("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"), 502);
    CHECK_INT(response("HTTP/1.1 200 OK\r\n"), 502);
}

TEST(the_body_of_a_response_is_delimited_as_the_rfc_says)
{
    response("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n");
    CHECK_INT(http_response_framing(&m, false), HTTP_BODY_LENGTH);
    CHECK_INT(http_response_framing(&m, true), HTTP_BODY_NONE);
    response("HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n");
    CHECK_INT(http_response_framing(&m, false), HTTP_BODY_NONE);
    response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    CHECK_INT(http_response_framing(&m, false), HTTP_BODY_CHUNKED);
    response("HTTP/1.1 200 OK\r\n\r\n");
    CHECK_INT(http_response_framing(&m, false), HTTP_BODY_UNTIL_CLOSE);
}

TEST(a_field_given_twice_is_never_taken_for_one)
{
    static const char t[] = "HTTP/1.1 200 OK\r\nA: 1\r\na: 2\r\nB: 3\r\n\r\n";
    struct http_span v;

    response(t);
    CHECK_INT(http_field_find(&m, t, "a", &v), -1);
    CHECK_INT(http_field_find(&m, t, "b", &v), 1);
    CHECK(span_is(t, v, "3"));
    CHECK_INT(http_field_find(&m, t, "c", &v), 0);
}

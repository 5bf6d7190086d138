#include "unit.h"

#include "base/buf.h"
#include "http/chunk.h"

static struct http_fault f;
static struct buf body = BUF_INIT(1u << 20);
static size_t rest;

/* Decodes `text` given `step` bytes at a time: 0 at the end, 1 for more, else
 * the status. `body` is what came out, `rest` what was left after the end. */
static int decode(const char *text, size_t n, size_t step)
{
    struct http_chunk k = {0};
    size_t at = 0;

    buf_clear(&body);
    while (at < n) {
        struct http_str data;
        size_t used = 0, room = n - at < step ? n - at : step;
        enum http_chunk_event ev = http_chunk_next(&k, text + at, room, &used, &data, &f);

        if (ev == HTTP_CHUNK_BAD)
            return f.status;
        if (ev == HTTP_CHUNK_DATA)
            buf_add(&body, data.p, data.len);
        at += used;
        rest = n - at;
        if (ev == HTTP_CHUNK_END)
            return 0;
    }
    return 1;
}

/* However the bytes are cut, the outcome must be the same. */
static int judge(const char *text)
{
    int whole = decode(text, strlen(text), strlen(text));

    for (size_t step = 1; step < 7; step++)
        CHECK_INT(decode(text, strlen(text), step), whole);
    return whole;
}

/* clang-format off */
static const struct {
    const char *text;
    int status;
    const char *body;
} cases[] = {
    {"0\r\n\r\n",                             0, ""},
    {"5\r\nhello\r\n0\r\n\r\n",               0, "hello"},
    {"5\r\nhello\r\n00A\r\n worldwide\r\n0\r\n\r\n", 0, "hello worldwide"},
    {"a;x=\"y\"\r\n0123456789\r\n0;q\r\n\r\n", 0, "0123456789"},
    {"1\r\nx\r\n0\r\nTrailer: v\r\nB:\r\n\r\n", 0, "x"},
    {"5\r\nhel",                              1, "hel"},
    {"0\r\n",                                 1, ""},
    {"\r\n",                                400, ""},
    {"g\r\n",                               400, ""},
    {" 5\r\nhello",                         400, ""},
    {"5 \r\nhello",                         400, ""},
    {"+5\r\nhello",                         400, ""},
    {"-5\r\nhello",                         400, ""},
    {"0x5\r\nhello",                        400, ""},
    {"5\nhello\n0\n\n",                     400, ""},
    {"5\rhello",                            400, ""},
    {"5\r\nhello0\r\n\r\n",                 400, "hello"},
    {"5\r\nhello\n0\r\n\r\n",               400, "hello"},
    {"5\r\nhello\r\r\n0\r\n\r\n",           400, "hello"},
    {"5;a\x01\r\nhello",                    400, ""},
    {"0\r\n folded: x\r\n\r\n",             400, ""},
    {"0\r\nno colon\r\n\r\n",               400, ""},
    {"0\r\nA : b\r\n\r\n",                  400, ""},
    {"0\r\nA: b\n\r\n",                     400, ""},
    {"0\r\n\rx",                            400, ""},
    {"1000000000000000\r\n",                400, ""},
    {"ffffffffffffffffff\r\n",              400, ""},
};
/* clang-format on */

TEST(every_chunked_body_is_judged_as_the_table_says)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int status = judge(cases[i].text);

        if (status != cases[i].status)
            print_error("%d instead of %d for %s\n", status, cases[i].status, cases[i].text);
        CHECK_INT(status, cases[i].status);
        CHECK_STR(buf_cstr(&body), cases[i].body);
    }
    buf_free(&body);
}

TEST(bytes_after_the_last_chunk_are_not_used)
{
    CHECK_INT(decode("0\r\n\r\nGET / HTTP/1.1", 19, 19), 0);
    CHECK_INT(rest, 14);
}

TEST(a_size_line_past_its_bound_is_refused)
{
    char text[HTTP_CHUNK_LINE_MAX + 16] = "5;";

    memset(text + 2, 'e', HTTP_CHUNK_LINE_MAX);
    CHECK_INT(decode(text, sizeof(text), sizeof(text)), 400);
}

TEST(trailers_past_their_bound_are_431)
{
    static char text[HTTP_TRAILERS_MAX + 64] = "0\r\nA: ";

    memset(text + 6, 'e', HTTP_TRAILERS_MAX);
    CHECK_INT(decode(text, sizeof(text), sizeof(text)), 431);
}

TEST(a_refused_decoder_stays_refused)
{
    struct http_chunk k = {0};
    struct http_str data;
    size_t used;

    CHECK_INT(http_chunk_next(&k, "x", 1, &used, &data, &f), HTTP_CHUNK_BAD);
    CHECK_INT(http_chunk_next(&k, "5", 1, &used, &data, &f), HTTP_CHUNK_BAD);
}

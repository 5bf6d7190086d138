#include "unit.h"

#include <math.h>
#include <stdio.h>

#include "json/read.h"
#include "json/write.h"

static struct buf out = BUF_INIT(1u << 20);
static struct json_w w;
static struct err e;

static void begin(void)
{
    buf_clear(&out);
    jw_init(&w, &out);
}

TEST(commas_take_care_of_themselves)
{
    begin();
    jw_open(&w);
    jw_kstr(&w, "a", "x");
    jw_ku64(&w, "b", UINT64_MAX);
    jw_ki64(&w, "c", INT64_MIN);
    jw_key(&w, "d");
    jw_open_list(&w);
    jw_u64(&w, 0);
    jw_open(&w);
    jw_close(&w);
    jw_null(&w);
    jw_bool(&w, true);
    jw_close_list(&w);
    jw_kbool(&w, "e", false);
    jw_kstr(&w, "f", NULL);
    jw_key(&w, "g");
    jw_raw(&w, "[1]", 3);
    jw_close(&w);
    CHECK_STR(buf_cstr(&out), "{\"a\":\"x\",\"b\":18446744073709551615,\"c\":-9223372036854775808,"
                              "\"d\":[0,{},null,true],\"e\":false,\"f\":null,\"g\":[1]}");
    buf_free(&out);
}

static void check_num(double v, const char *want)
{
    begin();
    jw_num(&w, v);
    CHECK_STR(buf_cstr(&out), want);
    buf_free(&out);
}

TEST(numbers_are_the_shortest_that_read_back_the_same)
{
    check_num(0.1, "0.1");
    check_num(1e300, "1e+300");
    check_num(1.0 / 3, "0.3333333333333333");
    check_num(5, "5");
    check_num(NAN, "null");
    check_num(INFINITY, "null");
}

static void check_escape(const char *in, size_t n, const char *want)
{
    buf_clear(&out);
    CHECK_INT(json_escape(&out, in, n), 0);
    CHECK_STR(buf_cstr(&out), want);
    buf_free(&out);
}

TEST(special_characters_are_escaped)
{
    check_escape("a\"b\\c/d\n\r\t\b\f\x01\x1f\x7f", 15,
                 "a\\\"b\\\\c/d\\n\\r\\t\\b\\f\\u0001\\u001f\x7f");
    check_escape("a\0b", 3, "a\\u0000b");
    check_escape("", 0, "");
    check_escape("caf\xc3\xa9 \xf0\x9f\x90\x9a", 10, "caf\xc3\xa9 \xf0\x9f\x90\x9a");
}

#define FFFD "\xef\xbf\xbd"

TEST(invalid_utf8_becomes_one_replacement_per_broken_character)
{
    check_escape("\xff", 1, FFFD);
    check_escape("a\xe2\x82z", 4, "a" FFFD "z");
    check_escape("\xf0\x9f\x90", 3, FFFD);
    check_escape("\xc0\xaf", 2, FFFD FFFD);
    check_escape("\xed\xa0\x80", 3, FFFD FFFD FFFD);
}

TEST(a_special_byte_is_found_at_every_place_of_a_word)
{
    static const char specials[] = "\"\\\n\x1f\xff";
    char in[80], want[160];

    for (size_t at = 0; at < sizeof(in); at++) {
        for (size_t s = 0; s < sizeof(specials) - 1; s++) {
            static const char *const escaped[] = {"\\\"", "\\\\", "\\n", "\\u001f", FFFD};

            memset(in, '~', sizeof(in));
            in[at] = specials[s];
            snprintf(want, sizeof(want), "%.*s%s%.*s", (int)at, in, escaped[s],
                     (int)(sizeof(in) - at - 1), in + at + 1);
            check_escape(in, sizeof(in), want);
        }
    }
}

TEST(every_byte_sequence_becomes_valid_json)
{
    unsigned seed = 1;

    for (int round = 0; round < 2000; round++) {
        char in[64];
        json_t *j = NULL;

        for (size_t i = 0; i < sizeof(in); i++)
            in[i] = (char)((seed = seed * 1103515245 + 12345) >> 16);
        begin();
        jw_open_list(&w);
        for (size_t i = 0; i < sizeof(in); i++)
            in[i] = in[i] == '\0' ? ' ' : in[i]; /* the reader takes no NUL */
        jw_strn(&w, in, sizeof(in));
        jw_close_list(&w);
        CHECK_INT(json_parse(buf_data(&out), out.len, &j, &e), 0);
        json_decref(j);
    }
    buf_free(&out);
}

TEST(bytes_that_are_not_utf8_are_base64_with_an_encoding_field)
{
    begin();
    jw_open(&w);
    jw_kbytes(&w, "a", "text", 4);
    jw_kbytes(&w, "b", "\xff\x00", 2);
    jw_close(&w);
    CHECK_STR(buf_cstr(&out), "{\"a\":\"text\",\"b\":\"/wA=\",\"b_encoding\":\"base64\"}");
    buf_free(&out);
}

static const char *parse(const char *text)
{
    autojson json_t *j = NULL;

    return json_parse(text, strlen(text), &j, &e) == 0 ? "" : e.msg;
}

TEST(a_document_is_parsed_strictly)
{
    CHECK_STR(parse("{\"a\":[1,2.5,\"x\",null,true]}"), "");
    CHECK_HAS(parse("{\"a\":1,\"a\":2}"), "duplicate");
    CHECK_HAS(parse("{} x"), "end of file expected");
    CHECK_HAS(parse("{\"a\":1,}"), "line 1");
    CHECK_HAS(parse("{'a':1}"), "JSON");
    CHECK_HAS(parse(""), "JSON");
    CHECK_HAS(parse("{\"a\":\"\\u0000\"}"), "\\u0000");
    CHECK_HAS(parse("{\"a\":\"\xff\"}"), "unable to decode byte 0xff");
    CHECK_INT(e.kind, ERR_INVALID);
}

static const char *nested(size_t depth)
{
    static char text[256];

    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    text[2 * depth] = '\0';
    return parse(text);
}

TEST(nesting_is_bounded_and_brackets_in_strings_do_not_count)
{
    CHECK_STR(nested(JSON_READ_DEPTH_MAX), "");
    CHECK_HAS(nested(JSON_READ_DEPTH_MAX + 1), "deeper");
    CHECK_STR(parse("[\"[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[[\"]"), "");
}

struct target {
    const char *name;
    uint64_t count;
    double ratio;
    bool on;
    json_t *env, *args, *any;
};

/* clang-format off */
static const struct json_field fields[] = {
    {"name",  JSON_FIELD_STR,     offsetof(struct target, name),  1, 5,  true,  "a name"},
    {"count", JSON_FIELD_U64,     offsetof(struct target, count), 2, 9,  false, "how many"},
    {"ratio", JSON_FIELD_DOUBLE,  offsetof(struct target, ratio), 0, 0,  false, "how much"},
    {"on",    JSON_FIELD_BOOL,    offsetof(struct target, on),    0, 0,  false, "whether"},
    {"env",   JSON_FIELD_STRMAP,  offsetof(struct target, env),   0, 2,  false, "variables"},
    {"args",  JSON_FIELD_STRLIST, offsetof(struct target, args),  0, 2,  false, "arguments"},
    {"any",   JSON_FIELD_ANY,     offsetof(struct target, any),   0, 0,  false, "anything"},
};
/* clang-format on */

static struct target got;
static json_t *doc;

static const char *decode(const char *text)
{
    json_decref(doc);
    doc = NULL;
    got = (struct target){.count = 7, .on = true};
    e.msg[0] = '\0';
    CHECK_INT(json_parse(text, strlen(text), &doc, &e), 0);
    if (json_decode(doc, fields, ARRAY_LEN(fields), &got, &e) < 0)
        CHECK_INT(e.kind, ERR_INVALID);
    return e.msg;
}

TEST(fields_are_filled_and_defaults_stay)
{
    CHECK_STR(
        decode("{\"name\":\"n\",\"ratio\":2,\"env\":{\"A\":\"b\"},\"args\":[\"x\"],\"any\":[1]}"),
        "");
    CHECK_STR(got.name, "n");
    CHECK_INT(got.count, 7);
    CHECK(got.on && got.ratio == 2.0);
    CHECK_INT(json_object_size(got.env), 1);
    CHECK_INT(json_array_size(got.args), 1);
    CHECK(json_is_array(got.any));
    CHECK_STR(decode("{\"name\":\"n\",\"count\":null,\"on\":false}"), "");
    CHECK_INT(got.count, 7);
    CHECK(!got.on);
}

TEST(every_bad_field_is_named_with_the_expected_value)
{
    CHECK_STR(decode("{}"), "name: required");
    CHECK_STR(decode("{\"name\":null}"), "name: required");
    CHECK_STR(decode("{\"name\":5}"), "name: expected a string of 1 to 5 bytes");
    CHECK_STR(decode("{\"name\":\"\"}"), "name: expected a string of 1 to 5 bytes");
    CHECK_STR(decode("{\"name\":\"123456\"}"), "name: expected a string of 1 to 5 bytes");
    CHECK_STR(decode("{\"name\":\"n\",\"x\":1}"), "x: unknown field");
    CHECK_STR(decode("{\"name\":\"n\",\"count\":1}"), "count: expected a whole number of 2 to 9");
    CHECK_STR(decode("{\"name\":\"n\",\"count\":10}"), "count: expected a whole number of 2 to 9");
    CHECK_STR(decode("{\"name\":\"n\",\"count\":-3}"), "count: expected a whole number of 2 to 9");
    CHECK_STR(decode("{\"name\":\"n\",\"count\":3.5}"), "count: expected a whole number of 2 to 9");
    CHECK_STR(decode("{\"name\":\"n\",\"count\":\"3\"}"),
              "count: expected a whole number of 2 to 9");
    CHECK_STR(decode("{\"name\":\"n\",\"ratio\":\"3\"}"), "ratio: expected a number");
    CHECK_STR(decode("{\"name\":\"n\",\"on\":1}"), "on: expected true or false");
    CHECK_STR(decode("{\"name\":\"n\",\"env\":{\"A\":1}}"), "env.A: expected a string");
    CHECK_STR(decode("{\"name\":\"n\",\"env\":[]}"),
              "env: expected an object of strings of at most 2 entries");
    CHECK_STR(decode("{\"name\":\"n\",\"args\":[\"a\",1]}"), "args[1]: expected a string");
    CHECK_STR(decode("{\"name\":\"n\",\"args\":[\"a\",\"b\",\"c\"]}"),
              "args: expected a list of strings of at most 2 entries");
    CHECK_STR(decode("[]"), "expected a JSON object");
    json_decref(doc);
    doc = NULL;
}

TEST(unknown_fields_can_be_dropped_before_decoding)
{
    static const char text[] = "{\"x\":{\"y\":1},\"name\":\"n\",\"z\":null}";

    json_decref(doc);
    CHECK_INT(json_parse(text, strlen(text), &doc, &e), 0);
    json_only(doc, fields, ARRAY_LEN(fields));
    CHECK_INT(json_decode(doc, fields, ARRAY_LEN(fields), &got, &e), 0);
    CHECK_STR(got.name, "n");
    json_decref(doc);
    doc = NULL;
}

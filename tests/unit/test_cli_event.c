#include "unit.h"

#include "base/id.h"
#include "base/str.h"
#include "cli/run/event.h"
#include "json/write.h"

static struct err e;

static void check(const char *json, const char *want, size_t n)
{
    autobuf struct buf out = BUF_INIT(1u << 20);

    CHECK_INT(event_bytes(json, strlen(json), &out, &e), 0);
    CHECK_INT(out.len, n);
    CHECK(n == 0 || memcmp(buf_data(&out), want, n) == 0);
}

TEST(text_and_base64_are_decoded)
{
    check("{\"data\":\"\"}", "", 0);
    check("{\"data\":\"plain\"}", "plain", 5);
    check("{\"data\":\"a\\nb\\\\\\\"\\t\\u0000\\u001b\"}", "a\nb\\\"\t\0\x1b", 8);
    check("{\"data\":\"AP8=\",\"encoding\":\"base64\"}", "\0\xff", 2);
    check("{\"data\":\"\\u20ac\\ud83d\\ude00\"}", "\xe2\x82\xac\xf0\x9f\x98\x80", 7);
}

TEST(events_in_unusual_form_are_decoded)
{
    check("{ \"data\" : \"x\" }", "x", 1);
    check("{\"encoding\":\"base64\",\"data\":\"eA==\"}", "x", 1);
    check("{\"data\":\"x\",\"more\":1}", "x", 1);
    check("{\"data\":\"x\",\"more\":\"y\"}", "x", 1);
    check("{\"data\":\"\\\",\\\"encoding\\\":\\\"base64\\\"}\"}", "\",\"encoding\":\"base64\"}",
          22);
}

TEST(malformed_events_are_refused)
{
    static const char *const bad[] = {"",
                                      "{}",
                                      "[]",
                                      "{\"data\":1}",
                                      "{\"data\":\"",
                                      "{\"data\":\"\\\"}",
                                      "{\"data\":\"\\x\"}",
                                      "{\"data\":\"a\"b\"}",
                                      "{\"data\":\"!\",\"encoding\":\"base64\"}"};
    autobuf struct buf out = BUF_INIT(100);

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        CHECK_INT(event_bytes(bad[i], strlen(bad[i]), &out, &e), -1);
}

TEST(bytes_survive_our_json_writer_and_this_decoder)
{
    unsigned char bytes[512];

    id_hold(7);
    for (int i = 0; i < 2000; i++) {
        autobuf struct buf json = BUF_INIT(1u << 16), out = BUF_INIT(1u << 16);
        struct json_w w;

        id_bytes(bytes, sizeof(bytes));
        for (size_t k = 0; i % 2 == 0 && k < sizeof(bytes); k++)
            bytes[k] &= 0x7f; /* text, with every control character */
        jw_init(&w, &json);
        jw_open(&w);
        jw_key(&w, "data");
        if (i % 2 == 0) {
            jw_strn(&w, (char *)bytes, sizeof(bytes));
        } else {
            autobuf struct buf b64 = BUF_INIT(1024);

            str_base64(&b64, bytes, sizeof(bytes));
            jw_str(&w, buf_cstr(&b64));
            jw_kstr(&w, "encoding", "base64");
        }
        jw_close(&w);
        CHECK_INT(event_bytes(buf_data(&json), json.len, &out, &e), 0);
        CHECK_INT(out.len, sizeof(bytes));
        CHECK(memcmp(buf_data(&out), bytes, sizeof(bytes)) == 0);
    }
    id_hold(0);
}

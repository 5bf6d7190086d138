/* fuzz_native.c - queries and Last-Event-ID of clients of the native API; and any output,
 * cut anywhere, encoded as events and decoded again. */
#include <string.h>

#include "base/own.h"
#include "base/str.h"
#include "front/plane/output.h"
#include "front/plane/query.h"
#include "fuzz.h"

struct in {
    uint64_t limit;
    bool follow;
    const char *state;
    json_t *metadata;
};

static const struct json_field fields[] = {
    {"limit", JSON_FIELD_U64, offsetof(struct in, limit), 1, 1000, false, ""},
    {"follow", JSON_FIELD_BOOL, offsetof(struct in, follow), 0, 0, false, ""},
    {"state", JSON_FIELD_STR, offsetof(struct in, state), 0, 20, false, ""},
    {"metadata", JSON_FIELD_STRMAP, offsetof(struct in, metadata), 0, 4, false, ""},
};

static void read_query(const char *text)
{
    autojson json_t *j = NULL;
    struct in in = {.limit = 1};
    struct err e;

    if (query_parse(text, fields, ARRAY_LEN(fields), &j, &e) < 0 ||
        json_decode(j, fields, ARRAY_LEN(fields), &in, &e) < 0)
        FUZZ_MUST(e.kind == ERR_INVALID && e.msg[0] != '\0');
    else
        FUZZ_MUST(in.limit >= 1 && in.limit <= 1000);
}

static void read_id(const char *text)
{
    struct output o = {0}, again = {0};
    char id[OUTPUT_ID_MAX];
    struct err e;

    if (output_resume(&o, text, &e) < 0)
        return;
    FUZZ_MUST(output_resume(&again, output_id(&o, id), &e) == 0);
    FUZZ_MUST(again.pos == o.pos);
}

/* The bytes of one event's {"data":...}. */
static void put_back(const struct buf *event, struct buf *out)
{
    autojson json_t *j = json_loadb(buf_data(event), event->len, JSON_ALLOW_NUL, NULL);
    json_t *data = json_object_get(j, "data");

    FUZZ_MUST(json_is_string(data));
    if (json_object_get(j, "encoding") != NULL)
        FUZZ_MUST(str_unbase64(out, json_string_value(data), json_string_length(data)) == 0);
    else
        buf_add(out, json_string_value(data), json_string_length(data));
}

/* Resumes from the last id after every piece. */
static void stream(const char *p, size_t n)
{
    autobuf struct buf event = BUF_INIT(16u << 20), back = BUF_INIT(16u << 20);
    struct output o = {0};
    char id[OUTPUT_ID_MAX];
    struct err e;

    for (size_t at = 0, len; at < n; at += len) {
        len = 1 + (unsigned char)p[at] % 7;
        len = len < n - at ? len : n - at;
        buf_clear(&event);
        if (output_take(&o, 1, at, p + at, len, &event))
            put_back(&event, &back);
        output_id(&o, id);
        o = (struct output){0};
        FUZZ_MUST(output_resume(&o, id, &e) == 0);
    }
    buf_clear(&event);
    if (output_flush(&o, 1, &event))
        put_back(&event, &back);
    FUZZ_MUST(back.len == n && (n == 0 || memcmp(buf_data(&back), p, n) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autofree char *text = strndup((const char *)data, size);

    if (text == NULL)
        return 0;
    read_query(text);
    read_id(text);
    stream((const char *)data, size);
    return 0;
}

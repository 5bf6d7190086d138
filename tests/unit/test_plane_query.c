#include "unit.h"

#include "front/plane/query.h"

struct in {
    uint64_t limit;
    bool follow;
    const char *state;
    json_t *metadata, *exclude;
};

static const struct json_field fields[] = {
    {"limit", JSON_FIELD_U64, offsetof(struct in, limit), 1, 1000, false, ""},
    {"follow", JSON_FIELD_BOOL, offsetof(struct in, follow), 0, 0, false, ""},
    {"state", JSON_FIELD_STR, offsetof(struct in, state), 0, 20, false, ""},
    {"metadata", JSON_FIELD_STRMAP, offsetof(struct in, metadata), 0, 2, false, ""},
    {"exclude", JSON_FIELD_STRLIST, offsetof(struct in, exclude), 0, 2, false, ""},
};

static struct err e;
static struct in in;
static json_t *doc;

static int decode(const char *query)
{
    json_decref(doc);
    doc = NULL;
    in = (struct in){0};
    e = (struct err){0};
    if (query_parse(query, fields, ARRAY_LEN(fields), &doc, &e) < 0)
        return -1;
    return json_decode(doc, fields, ARRAY_LEN(fields), &in, &e);
}

TEST(each_parameter_is_converted_to_the_type_of_its_field)
{
    CHECK_INT(decode("limit=7&follow=1&state=a%20b+c"), 0);
    CHECK_INT(in.limit, 7);
    CHECK(in.follow);
    CHECK_STR(in.state, "a b c");
    CHECK_INT(decode(""), 0);
    CHECK_INT(decode("&follow=false&"), 0);
    CHECK(!in.follow);
}

TEST(a_list_is_given_one_by_one)
{
    CHECK_INT(decode("exclude=b&limit=1&exclude=a%26"), 0);
    CHECK_INT(json_array_size(in.exclude), 2);
    CHECK_STR(json_string_value(json_array_get(in.exclude, 1)), "a&");
    CHECK_INT(decode("exclude=1&exclude=2&exclude=3"), -1);
    CHECK_INT(decode("exclude=%ff"), -1);
}

TEST(metadata_is_given_name_by_name)
{
    CHECK_INT(decode("metadata.a.b=1&metadata.%3d=%26"), 0);
    CHECK_STR(json_string_value(json_object_get(in.metadata, "a.b")), "1");
    CHECK_STR(json_string_value(json_object_get(in.metadata, "=")), "&");
}

TEST(an_invalid_parameter_is_refused_by_name)
{
    static const char *const bad[][2] = {
        {"limit=0", "limit"},
        {"limit=ten", "limit"},
        {"limit=", "limit"},
        {"limit", "limit"},
        {"colour=red", "colour"},
        {"limit=1&limit=2", "twice"},
        {"follow=yes", "follow"},
        {"state=%zz", "percent"},
        {"state=%00", "percent"},
        {"state=%", "percent"},
        {"state=%f", "percent"},
        {"metadata=x", "metadata"},
        {"limit.x=1", "limit.x"},
        {"state=%ff", "UTF-8"},
        {"limit=-1", "limit"},
        {"metadata.a=1&metadata.a=2", "twice"},
        {"metadata.a=1&metadata.b=2&metadata.c=3", "metadata"},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (decode(bad[i][0]) == 0)
            fail_msg("%s was taken", bad[i][0]);
        CHECK_INT(e.kind, ERR_INVALID);
        CHECK_HAS(e.msg, bad[i][1]);
    }
}

TEST(no_query_makes_more_than_a_bounded_number_of_parameters)
{
    char many[1024] = "";

    for (int i = 0; i <= QUERY_PAIRS_MAX; i++)
        strcat(many, "a=b&");
    CHECK_INT(decode(many), -1);
}

/* What of E2B's data plane needs no sandbox: envelopes, words of errors, signatures. */
#include "unit.h"

#include "front/planes/e2b/connect.h"
#include "front/planes/e2b/signature.h"

static struct err e;

TEST(a_signature_equals_that_of_the_published_clients)
{
    struct signature s = {.path = "hello.txt", .operation = "read", .user = "user"};
    char out[SIGNATURE_SIZE];

    signature_make(&s, "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0", out);
    CHECK_STR(out, "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
}

TEST(every_word_that_is_signed_counts)
{
    struct signature s = {.path = "a", .operation = "read"};
    char out[6][SIGNATURE_SIZE];

    signature_make(&s, "t", out[0]);
    s.expiration = "1";
    signature_make(&s, "t", out[1]);
    s.operation = "write";
    signature_make(&s, "t", out[2]);
    s.user = "root";
    signature_make(&s, "t", out[3]);
    s.path = NULL;
    signature_make(&s, "t", out[4]);
    signature_make(&s, "u", out[5]);
    for (size_t i = 0; i < ARRAY_LEN(out); i++)
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(out[i], out[k]) != 0);
}

static int unwrap(const char *bytes, size_t n, struct http_str *ret)
{
    ret->p = bytes;
    ret->len = n;
    return connect_unwrap(&ret->p, &ret->len, &e);
}

TEST(one_envelope_holds_one_message)
{
    struct http_str got;

    CHECK_INT(unwrap("\0\0\0\0\2{}", 7, &got), 0);
    CHECK_INT(got.len, 2);
    CHECK(memcmp(got.p, "{}", 2) == 0);
    CHECK_INT(unwrap("\0\0\0\0\0", 5, &got), 0);
    CHECK_INT(got.len, 0);
}

TEST(anything_else_than_one_envelope_is_refused)
{
    struct http_str got;

    CHECK_INT(unwrap("", 0, &got), -1);
    CHECK_INT(unwrap("\0\0\0\0", 4, &got), -1);
    CHECK_INT(unwrap("\0\0\0\0\3{}", 7, &got), -1);
    CHECK_INT(unwrap("\0\0\0\0\1{}", 7, &got), -1);
    CHECK_INT(unwrap("\0\xff\xff\xff\xff{}", 7, &got), -1);
    CHECK_INT(e.kind, ERR_INVALID);
    CHECK_INT(unwrap("\1\0\0\0\2{}", 7, &got), -1);
    CHECK_INT(e.kind, ERR_UNSUPPORTED);
}

TEST(every_kind_of_error_has_a_word_and_a_status)
{
    for (unsigned k = 0; k < ERR_KIND_COUNT; k++) {
        e.kind = k;
        CHECK(connect_code(&e) != NULL);
        CHECK(connect_status(&e) >= 400 && connect_status(&e) < 600);
    }
}

TEST(an_internal_error_hides_its_reason)
{
    autobuf struct buf out = BUF_INIT(1024);

    err_set(&e, ERR_INTERNAL, "the secret reason");
    connect_write_error(&e, &out);
    CHECK_STR(buf_cstr(&out), "{\"code\":\"internal\",\"message\":\"internal error\"}");
}

#include "unit.h"

#include <string.h>

#include "front/engine/archives/sign.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define MIDNIGHT 1369353600 /* 2013-05-24, as in the examples of Amazon's documentation */

static const char *signature_of(const char *query)
{
    static struct signature s;
    const struct sign_request r = {.method = "GET",
                                   .host = "examplebucket.s3.amazonaws.com",
                                   .path = "/",
                                   .query = query,
                                   .payload = EMPTY,
                                   .id = "AKIAIOSFODNN7EXAMPLE",
                                   .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                   .region = "us-east-1",
                                   .now = MIDNIGHT};

    sign_request(&r, &s);
    CHECK_STR(s.date, "20130524T000000Z");
    return strstr(s.authorization, "Signature=") + strlen("Signature=");
}

TEST(signatures_are_those_of_the_published_examples)
{
    CHECK_STR(signature_of("max-keys=2&prefix=J"),
              "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
    CHECK_STR(signature_of("lifecycle="),
              "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(an_empty_body_has_the_hash_of_nothing)
{
    char hash[SHA256_HEX];

    sign_hash("", 0, hash);
    CHECK_STR(hash, EMPTY);
}

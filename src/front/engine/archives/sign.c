/* sign.c - see sign.h. The headers host, x-amz-content-sha256 and x-amz-date are signed. */
#include "front/engine/archives/sign.h"

#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define SIGNED "host;x-amz-content-sha256;x-amz-date"
#define CANONICAL_MAX 8192u

void sign_hash(const void *p, size_t n, char out[SHA256_HEX])
{
    unsigned char sum[SHA256_DIGEST_LENGTH];

    SHA256(p, n, sum);
    str_hex(out, sum, sizeof(sum));
}

static void hmac(unsigned char key[SHA256_DIGEST_LENGTH], size_t *key_len, const char *text)
{
    unsigned char out[SHA256_DIGEST_LENGTH];
    unsigned n = sizeof(out);

    HMAC(EVP_sha256(), key, (int)*key_len, (const unsigned char *)text, strlen(text), out, &n);
    memcpy(key, out, sizeof(out));
    *key_len = sizeof(out);
}

/* The secret, then each word of the scope, one after the other. */
static void sign_text(const struct sign_request *r, const char *day, const char *text,
                      char out[SHA256_HEX])
{
    unsigned char key[SIGN_TEXT_MAX];
    size_t n = (size_t)snprintf((char *)key, sizeof(key), "AWS4%.500s", r->secret);
    const char *words[] = {day, r->region, "s3", "aws4_request", text};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        hmac(key, &n, words[i]);
    str_hex(out, key, n);
    OPENSSL_cleanse(key, sizeof(key));
}

void sign_request(const struct sign_request *r, struct signature *ret)
{
    char canonical[CANONICAL_MAX], hash[SHA256_HEX], text[SIGN_TEXT_MAX], day[9], sum[SHA256_HEX];
    struct tm tm;

    gmtime_r(&r->now, &tm);
    strftime(ret->date, sizeof(ret->date), "%Y%m%dT%H%M%SZ", &tm);
    strftime(day, sizeof(day), "%Y%m%d", &tm);
    str_fmt(canonical, sizeof(canonical),
            "%s\n%s\n%s\nhost:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n\n" SIGNED "\n%s",
            r->method, r->path, r->query, r->host, r->payload, ret->date, r->payload);
    sign_hash(canonical, strlen(canonical), hash);
    str_fmt(text, sizeof(text), "AWS4-HMAC-SHA256\n%s\n%s/%.64s/s3/aws4_request\n%s", ret->date,
            day, r->region, hash);
    sign_text(r, day, text, sum);
    str_fmt(ret->authorization, sizeof(ret->authorization),
            "AWS4-HMAC-SHA256 Credential=%.200s/%s/%.64s/s3/aws4_request, SignedHeaders=" SIGNED
            ", Signature=%s",
            r->id, day, r->region, sum);
}

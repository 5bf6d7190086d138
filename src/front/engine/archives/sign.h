/* sign.h - requests to S3 and what speaks its protocol: AWS Signature Version 4. */
#ifndef FRONT_ENGINE_ARCHIVES_SIGN_H
#define FRONT_ENGINE_ARCHIVES_SIGN_H

#include <stddef.h>
#include <time.h>

#include "base/sha256.h"

#define SIGN_TEXT_MAX 1024u
#define SIGN_DATE 17 /* "20260131T120000Z" and a NUL */

struct sign_request { /* all borrowed */
    const char *method, *host;
    const char *path;    /* percent-encoded */
    const char *query;   /* encoded, in the order of names; "" */
    const char *payload; /* hexadecimal SHA-256 of the body */
    const char *id, *secret, *region;
    time_t now;
};
struct signature {
    char date[SIGN_DATE];              /* the header x-amz-date */
    char authorization[SIGN_TEXT_MAX]; /* the header Authorization */
};
void sign_request(const struct sign_request *r, struct signature *ret);
void sign_hash(const void *p, size_t n, char out[SHA256_HEX]);

#endif

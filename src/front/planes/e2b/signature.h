/* signature.h - URLs of one file that need no token: it is in their signature.
 *
 *     "v1_" base64(SHA-256(PATH ":" read|write ":" USER ":" TOKEN [":" EXPIRATION]))
 *
 * without padding; PATH and USER as in the query, EXPIRATION in seconds since 1970.
 * Such a URL may come without the id of its sandbox. */
#ifndef FRONT_PLANES_E2B_SIGNATURE_H
#define FRONT_PLANES_E2B_SIGNATURE_H

#include <stdbool.h>

#include "base/err.h"

struct call;
struct e2b;
struct http_req;
struct sandbox;

#define SIGNATURE_SIZE 47 /* "v1_", 43 characters and a NUL */

struct signature {           /* what is signed; all borrowed */
    const char *path, *user; /* NULL is "" */
    const char *operation;
    const char *expiration; /* as written, or NULL */
};
void signature_make(const struct signature *s, const char *token, char out[SIGNATURE_SIZE]);

/* Whether the request may touch that file: with the sandbox's token, a signature
 * that is right and not too old, or because the sandbox is open. ERR_UNAUTHORIZED. */
int signature_check(struct call *c, const struct signature *s, const char *presented,
                    struct err *e);

/* The same before there is a call: the request is one for a file, whose signature is
 * this sandbox's and not too old. */
bool signature_opens(const struct e2b *p, struct http_req *r, const struct sandbox *s);
/* Called with the sandbox that the signature of a /files URL is of, old or not; NULL: none. */
typedef void signature_found_cb(struct e2b *p, struct http_req *r, const struct sandbox *s);
/* Calls it now or, if there are many sandboxes, later. A URL without the id of its sandbox costs a
 * comparison with each, and anyone may send one: ERR_LIMIT if its address has sent too many in this
 * second. */
int signature_owner(struct e2b *p, struct http_req *r, signature_found_cb *cb, struct err *e);
/* Ends all searches, without an answer. */
void signature_free(struct e2b *p);

#endif

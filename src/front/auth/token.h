/* token.h - what opens one sandbox and nothing else.
 *
 * A token is an HMAC of the server's secret, its kind and the sandbox's id: there
 * is nothing to store, it is the same after every restart and resume, another one
 * for a fork, and knowing it says nothing about any other. The secret is a file in
 * the front's own directory, made once. */
#ifndef FRONT_AUTH_TOKEN_H
#define FRONT_AUTH_TOKEN_H

#include <stdbool.h>

#include "base/err.h"

#define TOKEN_SECRET 32 /* bytes */
#define TOKEN_FILE "secret"
#define TOKEN_SIZE 65 /* hexadecimal digits and a NUL */

enum token_kind {
    TOKEN_ENVD,    /* commands and files */
    TOKEN_TRAFFIC, /* its ports */
    TOKEN_KIND_COUNT
};

struct token_mint;

/* Reads the secret, or makes it, 0600 and durable. `dir_fd` is borrowed for the
 * call. A file that is no secret is an error: made again, every token that
 * clients hold would silently stop working. */
int token_open(int dir_fd, struct token_mint **ret, struct err *e);
void token_free(struct token_mint *m);

void token_make(const struct token_mint *m, enum token_kind kind, const char *sandbox,
                char out[TOKEN_SIZE]);
/* In constant time; `presented` may be NULL. */
bool token_is(const struct token_mint *m, enum token_kind kind, const char *sandbox,
              const char *presented);

#endif

/* token.h - everything that the server hands out to open one thing, for one key, for a time.
 *
 * A token names its kind, the API key it acts for, its subject (a sandbox, say), a mode and the
 * second at which it expires; nothing of it is stored. Making or changing one needs the server's
 * secret. To a client it is
 *
 *     PREFIX base64url(claims as JSON) "." base64url(HMAC-SHA256(secret, the first part))
 *
 * without padding. The prefix and the claims both name the kind, so a token of one kind is never
 * taken for another.
 *
 * The secret can be changed: token_rotate() makes a new one, and tokens of the last one stay valid
 * for a grace time. The secrets are a file in the front's own directory.
 *
 * A token that is valid says what was granted when it was made. The caller must still check what can
 * change since: that the key exists (auth_get()), that the subject does and belongs to that key.
 *
 * Not made here: API keys, which are random and stored as hashes, and the tunnels of a sandbox, whose
 * random name is part of a host name and so has no room for claims (front/engine/sandbox/tunnel.c).
 *
 * EXTEND  A new kind: a row in TOKEN_KINDS. */
#ifndef FRONT_AUTH_TOKEN_H
#define FRONT_AUTH_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define TOKEN_HOUR 3600ull
#define TOKEN_DAY (24 * TOKEN_HOUR)

/* `lasts`: the longest time from its making to its expiry, in seconds. 0: it has no expiry, and is
 * valid until its subject is gone or its secret is; such a token is the same each time it is made. */
/* clang-format off */
#define TOKEN_KINDS(X) \
    /* kind           prefix  name       lasts            opens */ \
    X(TOKEN_SANDBOX, "cvb_", "sandbox",  0)            /* commands and files of a sandbox */ \
    X(TOKEN_PORT,    "cvp_", "port",     0)            /* ports of a sandbox */ \
    X(TOKEN_STREAM,  "cvs_", "stream",   TOKEN_HOUR)   /* a viewer's view of a terminal or screen */ \
    X(TOKEN_SIGN_IN, "cvi_", "sign-in",  30 * TOKEN_DAY) /* a browser's session */ \
    X(TOKEN_ENROLL,  "cve_", "enroll",   TOKEN_HOUR)   /* the enrollment of one machine */ \
    X(TOKEN_MACHINE, "cvm_", "machine",  30 * TOKEN_DAY) /* a machine's own calls */ \
    X(TOKEN_RELAY,   "cvr_", "relay",    30 * TOKEN_DAY) /* what a machine sends through the relay */
/* clang-format on */

enum token_kind {
#define X(kind, ...) kind,
    TOKEN_KINDS(X)
#undef X
        TOKEN_KIND_COUNT
};

enum token_mode {
    TOKEN_MODE_NONE, /* the kind has no modes */
    TOKEN_VIEW,
    TOKEN_CONTROL,
    TOKEN_MODE_COUNT
};

#define TOKEN_KEY_MAX 64      /* bytes */
#define TOKEN_SUBJECT_MAX 128 /* bytes: printable ASCII without " and \ */
#define TOKEN_ID_MAX 64       /* bytes, of the same characters */
#define TOKEN_SIZE 640        /* of a token with its NUL */
#define TOKEN_STREAM_S 120    /* a stream token usually lives so long: it is needed to connect */

struct token_claims {
    enum token_kind kind;
    char key[TOKEN_KEY_MAX + 1]; /* id of the API key that it acts for */
    char subject[TOKEN_SUBJECT_MAX + 1];
    char id[TOKEN_ID_MAX + 1]; /* of this very token, so that its row can revoke it; or "" */
    enum token_mode mode;
    unsigned port;      /* 0: none */
    uint64_t expires_s; /* since 1970; 0 for kinds that do not expire */
};

struct token_mint;

/* ---- the secrets ---- */

#define TOKEN_SECRET 32        /* bytes */
#define TOKEN_SECRETS_MAX 4    /* the current one, and some in their grace time */
#define TOKEN_FILE "tokens"    /* 0600 */
#define TOKEN_FILE_V1 "secret" /* of 0.1.0: the bytes of one secret */

/* Reads the secrets, or makes the first one, durable. A secret of 0.1.0 is taken over, with the
 * tokens that were made with it. `dir_fd` is borrowed until token_free(). A file that is damaged is
 * an error: made again, every token that clients hold would silently stop working. */
int token_open(int dir_fd, struct token_mint **ret, struct err *e);
void token_free(struct token_mint *m);

struct token_secret {
    uint64_t made_ms;    /* 0: unknown, from 0.1.0 */
    uint64_t retires_ms; /* its tokens are valid until then; 0: it is the current one */
};

/* From now on tokens are made with a new secret. Those of earlier ones stay valid for `grace_ms`,
 * or less if they had less left; 0: they are all refused now. Durable when it returns. ERR_LIMIT
 * when TOKEN_SECRETS_MAX are in use. */
int token_rotate(struct token_mint *m, uint64_t grace_ms, struct err *e);
/* The secrets in use, the current one first; returns how many. */
size_t token_secrets(const struct token_mint *m, struct token_secret ret[TOKEN_SECRETS_MAX]);

/* ---- tokens ---- */

const char *token_kind_name(enum token_kind kind);

/* ERR_INVALID: a claim that no token can have, or an expiry that the kind does not allow. */
int token_make(const struct token_mint *m, const struct token_claims *claims, char out[TOKEN_SIZE],
               struct err *e);
/* What `presented` (or NULL) claims, if it is a token of that kind, of this server and not expired;
 * else ERR_UNAUTHORIZED, which says which of these it is not. The secret part is compared in
 * constant time, before anything of it is parsed. */
int token_check(const struct token_mint *m, enum token_kind kind, const char *presented,
                struct token_claims *ret, struct err *e);
/* It is a token of that kind for that subject. Tokens that release 0.1.0 made for sandboxes and
 * ports are, while their secret is in use. */
bool token_opens(const struct token_mint *m, enum token_kind kind, const char *subject,
                 const char *presented);

/* Every text that token_opens() takes for these claims, which must have no expiry: for what is
 * derived from a token that a client holds, such as a signature. Returns how many. */
#define TOKEN_TEXTS_MAX (TOKEN_SECRETS_MAX + 1)
size_t token_texts(const struct token_mint *m, const struct token_claims *claims,
                   char out[TOKEN_TEXTS_MAX][TOKEN_SIZE]);

/* ---- the envelope alone, for tokens whose secret or claims another server defines ---- */

int token_seal(const char *prefix, const void *secret, size_t nsecret, const char *json,
               char out[TOKEN_SIZE], struct err *e);
/* The JSON inside, if it was sealed with that secret, else -1. Expiry is the caller's to check. */
int token_unseal(const char *prefix, const void *secret, size_t nsecret, const char *presented,
                 char json[TOKEN_SIZE]);

#endif

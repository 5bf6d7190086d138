/* tokens.c - the secrets that tokens are made with (front/auth/token.h): which are in use, and a new
 * one. A secret itself is never shown. */
#include "base/own.h"
#include "front/auth/token.h"
#include "front/planes/native/internal.h"

#define SECRETS_BYTES_MAX (4u << 10)

struct secret_view {
    uint64_t made_ms, retires_ms;
};
struct secrets_view {
    struct shape_bytes secrets;
};
struct rotate_in {
    uint64_t grace_ms;
};

/* clang-format off */
static const struct shape_field secret_fields[] = {
    {"created_at", SHAPE_TIME, offsetof(struct secret_view, made_ms), "Time of creation; null if release 0.1.0 made it.", SHAPE_NULLABLE},
    {"retires_at", SHAPE_TIME, offsetof(struct secret_view, retires_ms), "Tokens made with it are refused from then on; null: it is the current one.", SHAPE_NULLABLE},
};
static SHAPE(secret_shape, "TokenSecret", "A secret that tokens in use were made with.", secret_fields);
static const struct shape_field secrets_fields[] = {
    {"secrets", SHAPE_LIST, offsetof(struct secrets_view, secrets), "The current one first.", SHAPE_ALWAYS, &secret_shape},
};
static SHAPE(secrets_shape, "TokenSecretList", "All secrets that tokens in use were made with.", secrets_fields);

static const struct json_field rotate_fields[] = {
    {"grace_ms", JSON_FIELD_U64, offsetof(struct rotate_in, grace_ms), 0, 1ull << 40, false,
     "How long tokens made with earlier secrets stay valid. 0: they are refused at once. Default: the setting token-grace."},
};
/* clang-format on */

static void rotate_defaults(void *in, const struct config *c)
{
    ((struct rotate_in *)in)->grace_ms = c->token_grace_ms;
}

static const struct surface_input rotate_input = {SURFACE_INPUT(rotate_fields, struct rotate_in),
                                                  .defaults = rotate_defaults};

static void reply_secrets(struct call *c)
{
    autobuf struct buf rows = BUF_INIT(SECRETS_BYTES_MAX);
    struct token_secret list[TOKEN_SECRETS_MAX];
    size_t n = token_secrets(native_tokens(c), list);

    for (size_t i = 0; i < n; i++)
        shape_append(&rows, &secret_shape,
                     &(struct secret_view){list[i].made_ms, list[i].retires_ms});
    call_reply_shape(c, &secrets_shape, &(struct secrets_view){shape_list(&rows)});
}

static void secrets_list(struct call *c, const void *in)
{
    (void)in;
    reply_secrets(c);
}

static void tokens_rotate(struct call *c, const void *in)
{
    struct err e;

    if (token_rotate(native_tokens(c), ((const struct rotate_in *)in)->grace_ms, &e) < 0)
        call_fail(c, &e);
    else
        reply_secrets(c);
}

/* clang-format off */
const struct surface_row surface_tokens[] = {
    {{"GET",    "/v1/tokens"}, SCOPE_ADMIN, secrets_list, "listTokenSecrets",
     "Lists when the secrets that tokens are made with were made and retire.",
     .status = 200, .answers = {&secrets_shape}},
    {{"POST",   "/v1/tokens/rotate"}, SCOPE_ADMIN, tokens_rotate, "rotateTokens",
     "Makes a new secret for tokens; earlier tokens stay valid for a grace time.",
     .body = &rotate_input, .status = 200, .answers = {&secrets_shape}},
    {.op = NULL},
};
/* clang-format on */

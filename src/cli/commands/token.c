/* token.c - `cove token`: the secrets that the server makes tokens with. */
#include "cli/client/client.h"
#include "cli/commands/request.h"
#include "cli/commands/sub.h"
#include "cli/table.h"

/* clang-format off */
static const struct cmd_opt opts[] = {
    {0, "grace", "TIME", "rotate: how long earlier tokens stay valid, such as 1h; 0: not at all [the setting token-grace]"},
    {0, "json", NULL, "print JSON"},
    {0},
};
/* clang-format on */

static const char *state_text(json_t *secret, char out[TABLE_TEXT_MAX])
{
    (void)out;
    return json_is_null(json_object_get(secret, "retires_at")) ? "current" : "retiring";
}

/* clang-format off */
static const struct table_column columns[] = {
    {"STATE",   NULL,         state_text},
    {"CREATED", "created_at", table_text},
    {"RETIRES", "retires_at", table_text},
    {0},
};
/* clang-format on */

static int list(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *answer = NULL;

    if (client_call(s, "GET", "/v1/tokens", NULL, &answer, e) < 0)
        return -1;
    request_print_list(a, answer, "secrets", columns);
    return 0;
}

static int rotate(const struct args *a, const struct server *s, struct err *e)
{
    autojson json_t *body = json_object(), *answer = NULL;

    if (request_duration(a, "grace", "grace_ms", body, e) < 0 ||
        client_call(s, "POST", "/v1/tokens/rotate", body, &answer, e) < 0)
        return -1;
    request_print_list(a, answer, "secrets", columns);
    return 0;
}

/* clang-format off */
static const struct cmd_sub subs[] = {
    {"rotate", "", "make a new secret; earlier tokens stay valid for the grace time", rotate},
    {"list",   "", "list the secrets in use, without showing them", list},
    {0},
};
/* clang-format on */

const struct cmd cmd_token = {
    .name = "token",
    .usage = "token rotate|list [OPTIONS]",
    .summary = "change the secret that tokens are made with",
    .about =
        "Tokens open one sandbox, its ports, a stream and so on. Clients get them from the API; "
        "they\n"
        "are not stored. Rotate the secret regularly, and with --grace 0 if it may have leaked:\n"
        "clients then need new tokens. API keys are not affected.",
    .opts = opts,
    .subs = subs,
    .min = 1,
    .max = CMD_ANY,
    .run = sub_run,
};

/* e2b.h - E2B's API, as its published clients speak it.
 *
 * Two planes on one port: the control plane (sandboxes, templates; the key of a
 * client) and, per sandbox, the data plane that E2B calls envd (commands, files;
 * the token of a sandbox). Same results and same errors as theirs; where theirs is
 * weak, better. What is offered and what differs: docs/e2b.md. */
#ifndef E2B_E2B_H
#define E2B_E2B_H

#include <stdbool.h>

#include "base/err.h"
#include "config/config.h"

struct auth;
struct e2b;
struct engine;
struct http_req;
struct plane;
struct sandbox;
struct token_mint;

struct e2b_opts { /* all borrowed for ever */
    struct engine *engine;
    struct auth *auth;
    struct token_mint *tokens;
    const struct config *config;
    unsigned port; /* that we listen on */
};

int e2b_new(const struct e2b_opts *o, struct e2b **ret, struct err *e);
/* As plane_free() says. */
void e2b_free(struct e2b *p);
struct plane *e2b_api(struct e2b *p);
/* For proxy_opts.admit. */
#define E2B_HOST_MAX 256
bool e2b_admit(void *e2b, struct http_req *r, const struct sandbox *s, unsigned port,
               char host[E2B_HOST_MAX], const char **ret_why);

#define E2B_DATA_PORT 49983u /* of a sandbox; nothing inside is asked */
/* The data plane of a sandbox. `id` is NULL for a request that names none: a signed
 * URL says whose it is. */
void e2b_data(struct e2b *p, struct http_req *r, const char *id);

#endif

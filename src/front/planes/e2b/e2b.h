/* e2b.h - E2B's API, as its published clients speak it.
 *
 * Two planes on one port: the control plane (sandboxes, templates; the key of a
 * client) and, per sandbox, the data plane that E2B calls envd (commands, files;
 * the token of a sandbox). Same results and same errors as theirs; where theirs is
 * weak, better. What is offered and what differs: docs/e2b.md. */
#ifndef FRONT_PLANES_E2B_E2B_H
#define FRONT_PLANES_E2B_E2B_H

#include <stdbool.h>

#include "front/plane/kind.h"

struct sandbox;

extern const struct plane_kind e2b_kind;

/* For proxy_opts.admit; `plane` is the one that e2b_kind made. */
#define E2B_HOST_MAX 256
bool e2b_admit(void *plane, struct http_req *r, const struct sandbox *s, unsigned port,
               char host[E2B_HOST_MAX], const char **ret_why);

#define E2B_DATA_PORT 49983u /* of a sandbox; nothing inside is asked */
/* The data plane of a sandbox. `id` is NULL for a request that names none: a signed
 * URL says whose it is. */
void e2b_data(struct plane *p, struct http_req *r, const char *id);

#endif

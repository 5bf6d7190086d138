/* cloudflare.h - the HTTP bridge of Cloudflare's sandboxes: /v1/sandbox, /v1/pool.
 *
 * A plane (plane.h) for clients that were written for that bridge and are given
 * nothing but our URL and a key. Where the bridge is known to be broken ours is not,
 * and still says the same on the wire; docs/cloudflare.md lists both. */
#ifndef CLOUDFLARE_CLOUDFLARE_H
#define CLOUDFLARE_CLOUDFLARE_H

#include "base/err.h"
#include "config/config.h"

struct auth;
struct engine;
struct plane;

/* Ports of sandboxes are also served below this path. */
#define BRIDGE_PREVIEW "/preview"

/* All but `ret` are borrowed for ever. `port` is where we are reached. */
int cloudflare_new(struct engine *g, struct auth *a, const struct config *c, unsigned port,
                   struct plane **ret, struct err *e);
/* As plane_free() says. */
void cloudflare_free(struct plane *p);

#endif

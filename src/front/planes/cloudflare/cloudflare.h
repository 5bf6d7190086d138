/* cloudflare.h - the HTTP bridge of Cloudflare's sandboxes: /v1/sandbox, /v1/pool.
 *
 * A plane (plane.h) for clients that were written for that bridge and are given
 * nothing but our URL and a key. Where the bridge is known to be broken ours is not,
 * and still says the same on the wire; docs/cloudflare.md lists both. */
#ifndef FRONT_PLANES_CLOUDFLARE_CLOUDFLARE_H
#define FRONT_PLANES_CLOUDFLARE_CLOUDFLARE_H

#include "front/plane/kind.h"

/* Ports of sandboxes are also served below this path. */
#define BRIDGE_PREVIEW "/preview"

extern const struct plane_kind cloudflare_kind;

#endif

/* cloudflare.h - the HTTP API of Cloudflare's sandboxes (their "sandbox bridge"): /v1/sandbox, /v1/pool.
 *
 * A plane (plane.h) for clients that were written for that API and are given
 * nothing but our URL and a key. Where theirs is known to be broken ours is not,
 * and still says the same on the wire; docs/cloudflare.md lists both. */
#ifndef FRONT_PLANES_CLOUDFLARE_CLOUDFLARE_H
#define FRONT_PLANES_CLOUDFLARE_CLOUDFLARE_H

#include "front/plane/kind.h"

/* Ports of sandboxes are also served below this path. */
#define CLOUDFLARE_PREVIEW "/preview"

extern const struct plane_kind cloudflare_kind;

#endif

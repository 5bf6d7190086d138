/* native.h - the native API: /v1/..., /health and /metrics.
 *
 * A plane (plane.h) whose rows also yield /v1/openapi.json. */
#ifndef NATIVE_NATIVE_H
#define NATIVE_NATIVE_H

#include "base/err.h"
#include "config/config.h"

struct auth;
struct engine;
struct native;
struct plane;

/* All but `ret` are borrowed for ever. `beside` (or NULL) is the plane that serves other
 * paths of /v1/ and is in the same document. */
int native_new(struct engine *g, struct auth *a, const struct config *c, const struct plane *beside,
               struct native **ret, struct err *e);
/* As plane_free() says. */
void native_free(struct native *n);
struct plane *native_plane(struct native *n);

#endif

/* native.h - the native API: /v1/..., /health, /ready and /metrics.
 *
 * A plane (plane.h) whose rows also yield /v1/openapi.json. */
#ifndef FRONT_PLANES_NATIVE_NATIVE_H
#define FRONT_PLANES_NATIVE_NATIVE_H

#include "front/engine/engine.h"
#include "front/plane/kind.h"

extern const struct plane_kind native_kind;

/* A workspace_decode (front/workspace/workspace.h): `spec` is a body of POST /v1/sandboxes. */
int native_spec(const struct config *c, const char *spec,
                void (*use)(void *arg, const struct create_opts *o), void *arg, struct err *e);

#endif

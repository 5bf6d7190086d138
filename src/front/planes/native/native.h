/* native.h - the native API: /v1/..., /health, /ready and /metrics.
 *
 * A plane (plane.h) whose rows also yield /v1/openapi.json. */
#ifndef FRONT_PLANES_NATIVE_NATIVE_H
#define FRONT_PLANES_NATIVE_NATIVE_H

#include "front/plane/kind.h"

extern const struct plane_kind native_kind;

#endif

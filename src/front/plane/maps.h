/* maps.h - from a JSON object of strings to what the engine takes. */
#ifndef FRONT_PLANE_MAPS_H
#define FRONT_PLANE_MAPS_H

#include "base/buf.h"
#include "base/err.h"
#include "json/read.h"

#define MAPS_ENV_MAX 4096u    /* variables, where their bytes do not end it sooner */
#define MAPS_METADATA_MAX 64u /* pairs */

/* Variables as strv bytes. `env` may be NULL: none. ERR_TOO_LARGE past the buf's max. */
int maps_env(json_t *env, struct buf *out, struct err *e);
/* Metadata as JSON text, which belongs to the caller; NULL stays NULL. */
int maps_metadata(json_t *metadata, char **ret, struct err *e);

#endif

/* network.h - the network of a sandbox in requests. */
#ifndef FRONT_PLANES_NATIVE_SANDBOX_NETWORK_H
#define FRONT_PLANES_NATIVE_SANDBOX_NETWORK_H

#include "front/engine/engine.h"
#include "json/read.h"

#define NETWORK_CREATE_FIELDS 3
extern const struct json_field network_create_fields[NETWORK_CREATE_FIELDS];

/* From a mode, or an object of mode, allow and deny, or NULL; *mode points into it,
 * or is NULL. ERR_INVALID names what is wrong. */
int network_decode(json_t *network, const char **mode, struct sandbox_rule rules[ENGINE_RULES_MAX],
                   size_t *nrules, struct err *e);

#endif

/* contexts.h - servers that the user gave names to, with their keys.
 *
 * One JSON file, $XDG_CONFIG_HOME/cove/contexts.json or ~/.config/cove/contexts.json, which only
 * its owner may read: a file that others can read is refused, as ssh does. It is replaced as a
 * whole, so a reader sees the old or the new one. */
#ifndef CLI_CLIENT_CONTEXTS_H
#define CLI_CLIENT_CONTEXTS_H

#include <jansson.h>

#include "base/err.h"

#define CONTEXTS_MAX 256 /* servers in the file */
#define CONTEXT_NAME_MAX 63

/* {"current":NAME or null,"contexts":{NAME:{"url","key"}}}; without a file it is empty. *ret
 * belongs to the caller. */
int contexts_load(json_t **ret, struct err *e);
int contexts_save(json_t *all, struct err *e);
/* Letters, digits, '-', '_' and '.'. */
int contexts_check_name(const char *name, struct err *e);

#endif

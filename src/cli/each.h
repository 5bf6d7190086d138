/* each.h - one request for each of several sandboxes. */
#ifndef CLI_EACH_H
#define CLI_EACH_H

#include "cli/cmd.h"
#include "json/read.h"

/* Tries all operands, says on stderr which failed and why; the first failure
 * decides the exit status that is returned. `body` may be NULL. */
int each_sandbox(const struct args *a, const char *command, const char *method, const char *suffix,
                 json_t *body, struct err *e);

#endif

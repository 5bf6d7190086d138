/* each.h - one request for each of several sandboxes. */
#ifndef CLI_EACH_H
#define CLI_EACH_H

#include "cli/cmd.h"

/* Tries all operands, says on stderr which failed and why; the first failure
 * decides the exit status that is returned. */
int each_sandbox(const struct args *a, const char *command, const char *method, const char *suffix,
                 struct err *e);

#endif

/* around.h - what one call brings along, and what is as it was behind it: variables, and a
 * directory. */
#ifndef SHELL_AROUND_H
#define SHELL_AROUND_H

#include <stdbool.h>
#include <stddef.h>

/* `n` bytes of NAME='value', each with a NUL. run_unwind_protects() ends it. */
void around_enter(char *env, size_t n);

/* False: it is not there, and bash has said so. Either way around_back() follows. */
bool around_go(char *path);
void around_back(void);

#endif

/* scope.h - the variables and the directory of one call; the caller's are restored after it. */
#ifndef SHELL_SCOPE_H
#define SHELL_SCOPE_H

#include <stdbool.h>
#include <stddef.h>

/* `n` bytes of NAME='value', each with a NUL. run_unwind_protects() removes them. */
void scope_enter(char *env, size_t n);

/* False: no such directory, and bash has said so. Either way scope_cd_back() follows. */
bool scope_cd(char *path);
void scope_cd_back(void);

#endif

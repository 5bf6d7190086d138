/* dump.h - what the shell of a session knows, on its stdout. */
#ifndef SHELL_DUMP_H
#define SHELL_DUMP_H

#include <stdbool.h>

/* False: something of it could not be said. */
bool dump(void);

#endif

/* say.h - how cove-helper tells the front why it failed. */
#ifndef HELPER_SAY_H
#define HELPER_SAY_H

#include <stdio.h>

#include "base/err.h"

/* "E CODE TEXT", one line, with nothing in it that a terminal would obey. Returns
 * the exit status of a failure. */
int say_failed(FILE *to, const struct err *e);

/* -1, with the kind that errno means to whoever named the path: not there, not
 * allowed, the disk is full. What cannot be anybody's mistake is internal. */
int say_sys(struct err *e, const char *what, const char *path);

#endif

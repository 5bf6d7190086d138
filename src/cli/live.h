/* live.h - a table that is drawn again and again on a terminal. */
#ifndef CLI_LIVE_H
#define CLI_LIVE_H

#include <stdbool.h>

#include "base/err.h"

#define LIVE_EVERY_MS 2000

/* Draws now and then every LIVE_EVERY_MS, on a cleared screen, until Ctrl-C or a failure. If stdout
 * is no terminal, draws once. `draw` prints to stdout and returns -1 with `e` on failure. */
int live_draw(int (*draw)(void *arg, struct err *e), void *arg, struct err *e);
/* Lines of the terminal, 0 if stdout is none. */
unsigned live_lines(void);

#endif

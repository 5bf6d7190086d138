/* front.h - the unprivileged half of the daemon: HTTP, JSON, SQLite, tokens.
 *
 * Started only by the keeper (wire/front.h says with what), as user
 * cove with no capabilities. It exits when the keeper is gone. */
#ifndef FRONT_FRONT_H
#define FRONT_FRONT_H

#include "wire/front.h"

/* argv: the settings. Returns the exit status. */
int front_main(int argc, char **argv);

#endif

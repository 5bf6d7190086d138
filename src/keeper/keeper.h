/* keeper.h - the privileged half of the daemon: makes and deletes sandboxes.
 *
 * Runs as root. Accepts only the fixed messages of wire/keeper.h, parses nothing that a tenant or a
 * client wrote, and has no part in an exec. */
#ifndef KEEPER_KEEPER_H
#define KEEPER_KEEPER_H

#include <stdbool.h>

/* `cove serve`; argv is its options. Returns the exit status. */
int keeper_main(int argc, char **argv);

/* `cove stop [--all]` and `cove doctor`; both also work without a daemon. `state` NULL: the default
 * directory. */
int keeper_stop_main(bool all, const char *state);
int keeper_doctor_main(const char *state);

#endif

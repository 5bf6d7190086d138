/* keeper.h - the privileged half of the daemon: it makes and ends sandboxes.
 *
 * Root. Understands only the fixed messages of wire/keeper.h, parses nothing
 * that a tenant or a client wrote, and is not on the path of an exec. */
#ifndef KEEPER_KEEPER_H
#define KEEPER_KEEPER_H

#include <stdbool.h>

/* `cove serve`; argv: its options. Returns the exit status. */
int keeper_main(int argc, char **argv);

/* `cove stop [--all]` and `cove doctor`, which work without a daemon too. `state` may be
 * NULL: where it is by default. */
int keeper_stop_main(bool all, const char *state);
int keeper_doctor_main(const char *state);

#endif

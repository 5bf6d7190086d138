/* freezer.h - freezes and thaws the processes of a sandbox.
 *
 * Two switches, and the kernel remembers both. FREEZE_COMMANDS is a pause: it freezes all processes
 * of the tenant but not init, which must still be found, adopted and asked. FREEZE_ALL freezes init
 * too, while a snapshot of the files is taken: a new keeper that finds it on knows that the
 * snapshot was cut off, and turns it off. */
#ifndef KEEPER_FREEZER_H
#define KEEPER_FREEZER_H

#include "keeper/host.h"

/* Sets a switch. Freezing takes a moment. */
int freezer_set(struct sandbox *sb, enum freeze what, bool on, struct err *e);
/* True when no instruction is executed any more. */
bool freezer_is_frozen(struct sandbox *sb, enum freeze what);
/* The same, but waits a moment: sleeping processes are mostly frozen by then. */
bool freezer_is_frozen_soon(struct sandbox *sb, enum freeze what);
/* The last setting of the switch, also by an earlier keeper. */
int freezer_is_on(struct sandbox *sb, enum freeze what, bool *ret, struct err *e);

/* Closes its files; called when its groups or the sandbox are gone. */
void freezer_close(struct sandbox *sb);

/* Gives unused memory back to the host as far as possible. Blocks. */
void freezer_reclaim(int memory_dir, bool v2);

#endif

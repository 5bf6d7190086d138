/* freezer.h - time stands still in a sandbox.
 *
 * Two switches, and the kernel remembers both. FREEZE_COMMANDS is a pause: all
 * that a tenant runs, and not init, which must be found again, adopted and asked.
 * FREEZE_ALL holds init too, for the moment in which its files are snapshotted: a
 * new keeper that finds it on knows that it was cut off, and turns it off. */
#ifndef KEEPER_FREEZER_H
#define KEEPER_FREEZER_H

#include "keeper/host.h"

/* Says what is wanted; it takes a moment until it is so. */
int freezer_set(struct sandbox *sb, enum freeze what, bool on, struct err *e);
/* It is so: not one instruction is executed any more. */
bool freezer_is_frozen(struct sandbox *sb, enum freeze what);
/* The same, but waits a moment, in which a process that sleeps is mostly frozen. */
bool freezer_is_frozen_soon(struct sandbox *sb, enum freeze what);
/* What was last wanted, whoever wanted it. */
int freezer_is_on(struct sandbox *sb, enum freeze what, bool *ret, struct err *e);

/* Its groups are gone, or it is. */
void freezer_close(struct sandbox *sb);

/* Gives memory that is not in use back to the host, as far as that goes. Blocks. */
void freezer_reclaim(int memory_dir, bool v2);

#endif

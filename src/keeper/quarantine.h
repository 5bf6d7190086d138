/* quarantine.h - damaged things are kept as they are until the operator decides.
 *
 * A sandbox is damaged when its record cannot be read or is missing, or when its init cannot be
 * reached. It is not touched: its processes run on, its disk stays, its id range is not given to
 * another. The front lists it as `damaged`. `recover` makes a record from other sources (the
 * kernel, the copy on its disk, the front's row); `delete` deletes it.
 *
 *   DIR/damaged/ID           a text: why sandbox ID is in quarantine
 *   DIR/damaged/snapshot-ID, template-ID, template-name-NAME    the same for those
 *   DIR/damaged/record-N     the bytes of a record that names no sandbox; never removed */
#ifndef KEEPER_QUARANTINE_H
#define KEEPER_QUARANTINE_H

#include "keeper/host.h"

/* Removes the texts of the last start: each start writes its own. */
void quarantine_open(struct keeper *k);
/* Writes bytes to DIR/damaged/NAME, durably. */
int quarantine_keep(struct keeper *k, const char *name, const void *p, size_t n, struct err *e);
/* The same with a text; a failure is only logged. */
void quarantine_note(struct keeper *k, const char *name, const char *why);
void quarantine_forget(struct keeper *k, const char *name);

/* At start: puts `sb` into quarantine. Fails only if it cannot find out what runs. */
int quarantine(struct sandbox *sb, const char *why, struct err *e);
/* The same for an id without a readable record. `place` is the place of the record, or PLACE_NONE.
 */
int quarantine_found(struct keeper *k, const char *id, uint32_t place, const char *why,
                     struct err *e);

#endif

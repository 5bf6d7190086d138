/* quarantine.h - what is damaged is kept as it is until the operator decides.
 *
 * A sandbox is damaged when its record cannot be read or is missing, or when nothing can reach
 * its init. It is not touched: what runs in it runs on, its disk stays, its range of ids
 * is not given to anything else. The front lists it as `damaged`; `recover` makes a whole record of
 * what is known from elsewhere (the kernel, the copy on its disk, the front's row), `destroy`
 * deletes it.
 *
 *   DIR/damaged/ID           a text: why sandbox ID is in quarantine
 *   DIR/damaged/snapshot-ID, template-ID, template-name-NAME    the same of those
 *   DIR/damaged/record-N     the bytes of a record that names no sandbox; these stay */
#ifndef KEEPER_QUARANTINE_H
#define KEEPER_QUARANTINE_H

#include "keeper/host.h"

/* Removes the texts of the last start: each start writes what it finds. */
void quarantine_open(struct keeper *k);
/* Keeps bytes in DIR/damaged/NAME, durably. */
int quarantine_keep(struct keeper *k, const char *name, const void *p, size_t n, struct err *e);
/* The same with a text; failing that is only logged. */
void quarantine_note(struct keeper *k, const char *name, const char *why);
void quarantine_forget(struct keeper *k, const char *name);

/* At start: `sb` is damaged. Fails only where what runs cannot be looked at. */
int quarantine(struct sandbox *sb, const char *why, struct err *e);
/* The same for an id of which nothing else is known. `place` is that of its record, or PLACE_NONE. */
int quarantine_found(struct keeper *k, const char *id, uint32_t place, const char *why,
                     struct err *e);

#endif

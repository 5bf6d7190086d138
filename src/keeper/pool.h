/* pool.h - sandboxes kept ready, given out, and taken down.
 *
 * A sandbox moves through its phases here and nowhere else. The pool holds whole
 * ones of the default template, already running; giving one out is a write to
 * its record and its limits. Teardown is a queue in the background: what cannot
 * go yet (a cgroup that is still draining) is tried again. */
#ifndef KEEPER_POOL_H
#define KEEPER_POOL_H

#include "keeper/host.h"

void pool_open(struct keeper *k);
/* Reads the records and decides what each sandbox of an earlier keeper becomes. */
int sandbox_adopt_all(struct keeper *k, struct err *e);
void pool_refill(struct keeper *k);
/* How many stand on a version; not `all`: only those that somebody has. */
unsigned sandbox_standing(struct keeper *k, const char *version, bool all);
/* The default template has a new version: what is ready stands on the old one. */
void pool_drop_stale(struct keeper *k);

/* Fails when no sandbox is taken now, for whatever reason. */
int sandbox_check_room(struct keeper *k, struct err *e);

/* The requests of the front; the answer goes out when it is known (ops.h). */
int sandbox_create(struct keeper *k, uint32_t seq, const struct keeper_create *m, struct err *e);
int sandbox_boot(struct keeper *k, uint32_t seq, const struct keeper_boot *m, struct err *e);
int sandbox_rules(struct keeper *k, uint32_t seq, const struct keeper_rules *m, struct err *e);
int sandbox_destroy(struct keeper *k, uint32_t seq, const char *id, struct err *e);
int sandbox_halt(struct keeper *k, uint32_t seq, const char *id, struct err *e);
int sandbox_pause(struct keeper *k, uint32_t seq, const char *id, struct err *e);
int sandbox_thaw(struct keeper *k, uint32_t seq, const char *id, struct err *e);

/* A throw-away sandbox for cove-helper, and what becomes of it (image.h). */
int sandbox_import(struct keeper *k, uint32_t seq, struct err *e);
int sandbox_commit(struct keeper *k, uint32_t seq, const struct keeper_commit *m, struct err *e);
/* The front is gone, and with it whoever wanted them. */
void sandbox_end_imports(struct keeper *k);

/* From the init stage. */
void sandbox_booted(struct sandbox *sb);
void sandbox_failed(struct sandbox *sb, const struct err *e);

/* Gives up the pool: what nobody asked for goes down. */
void pool_drain(struct keeper *k);
/* For `stop --all`: every running sandbox becomes a stopped one, with its disk. */
void sandbox_end_all(struct keeper *k);

#endif

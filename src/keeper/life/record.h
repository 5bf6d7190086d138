/* record.h - the form of a sandbox's record, for record.c and for converting older ones.
 *
 * DIR/sandboxes is an array of places; a place in use begins with a sealed record (sealed.h), a
 * free one is zeros. Phase and stage are stored by name: the tables in memory may grow and change
 * their order.
 *
 * `limits` is one u64 for each row of base/limits.h, which only grows at its end; a limit that a
 * record lacks reads as 0.
 *
 * EXTEND  A new field: at the end of RECORD_FIELDS, and in record_encode() and decode(). If an
 *         older release must not run a sandbox that has it, raise RECORD_VERSION as well. */
#ifndef KEEPER_LIFE_RECORD_H
#define KEEPER_LIFE_RECORD_H

#include "keeper/host.h"
#include "keeper/sealed.h"

#define RECORD_STORE "sandboxes"
#define RECORD_PLACE 2048u     /* bytes; within one page */
#define RECORD_PLACES_MORE 64u /* made at once */
#define RECORD_PLACES_MAX 65536u
#define RECORD_MAGIC 0x72766f63u /* "covr" */
#define RECORD_VERSION 2u        /* 1 was a struct as the compiler laid it out (record_v1.c) */

/* clang-format off */
#define RECORD_FIELDS(F, S) \
    F(S, STR, id, 31) F(S, STR, phase, 16) F(S, STR, stage, 16) F(S, STR, boot_id, 39) F(S, STR, host_boot, 39) \
    F(S, STR, template, 63) F(S, STR, layer, 63) F(S, STR, reason, 255) F(S, U32, range, 0) F(S, U32, network, 0) \
    F(S, BYTES, limits, 512) F(S, U64, created_ms, 0) F(S, U32, told, 1) \
    F(S, U32, relaxed, 1) F(S, STR, unsynced, 39) F(S, U64, lost_ms, 0)
/* clang-format on */

/* Appends the record as in a place. */
int record_encode(const struct record *r, struct buf *out, struct err *e);
/* The stage of that name as a number of stages, "" is 0; -1: unknown. */
int record_stage(const char *name);

/* record_v1.c: converts a state directory of release 0.1.0. */
int records_upgrade(struct keeper *k, struct err *e);

#endif

/* pool_inside.h - what pool.c, requests.c, teardown.c and adopt.c share: the steps
 * by which a sandbox goes from one phase to the next. */
#ifndef KEEPER_POOL_INSIDE_H
#define KEEPER_POOL_INSIDE_H

#include "keeper/pool.h"

/* What is asked for. The pool asks for the defaults. */
struct order {
    const char *template;      /* NULL: an import, which stands on nothing */
    struct snapshot *snapshot; /* instead of the template; or NULL */
    struct limits limits;
    uint32_t network; /* enum network_bits */
    struct wire_bytes rules;
};

struct sandbox *pool_find(struct keeper *k, const char *id);
/* One that somebody has, or NULL and ERR_NOT_FOUND. */
struct sandbox *pool_find_given(struct keeper *k, const char *id, struct err *e);
/* Somebody who is still there waits for an answer about it. */
bool pool_is_busy(const struct sandbox *sb);
/* What a pause and a cut-off snapshot left in the kernel, after a restart. */
int pool_adopt_pause(struct sandbox *sb, struct err *e);
struct limits pool_defaults(const struct keeper *k);
/* Runs all stages for a new one; NULL after a failure, which the teardown then owns. */
struct sandbox *pool_build(struct keeper *k, const struct order *o, uint32_t ask, struct err *e);
/* Boots a stopped one; the answer to sb->ask comes by itself. */
void pool_boot_now(struct sandbox *sb);
/* It is somebody's from now on. */
int pool_give(struct sandbox *sb, struct err *e);
/* Counts it in or out of those that are being made for somebody. */
void pool_count_asked(struct sandbox *sb, bool asked);
void pool_answer_ok(struct sandbox *sb);
void pool_answer_given(struct sandbox *sb);
/* From here on the death of its init is noticed. */
int pool_watch_init(struct sandbox *sb, struct err *e);
/* To the teardown queue. Its record must already say what is wanted. */
void pool_bury(struct sandbox *sb, bool keep_disk);
/* The queue need not wait any longer, if it was a sandbox's. */
void pool_disk_removed(struct keeper *k, const char *name);

#endif

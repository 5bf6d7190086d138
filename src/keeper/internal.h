/* internal.h - what pool.c, requests.c, teardown.c and adopt.c share: the steps
 * by which a sandbox goes from one phase to the next. */
#ifndef KEEPER_INTERNAL_H
#define KEEPER_INTERNAL_H

#include "keeper/pool.h"

/* What is asked for. The pool asks for the defaults. */
struct order {
    const char *template;      /* NULL: an import, which stands on nothing */
    struct snapshot *snapshot; /* instead of the template; or NULL */
    struct limits limits;
    uint32_t network; /* enum network_bits */
    struct wire_bytes rules;
};

struct sandbox *sandbox_find(struct keeper *k, const char *id);
/* One that somebody has, or NULL and ERR_NOT_FOUND. */
struct sandbox *sandbox_find_given(struct keeper *k, const char *id, struct err *e);
/* Somebody who is still there waits for an answer about it. */
bool sandbox_is_busy(const struct sandbox *sb);
/* What a pause and a cut-off snapshot left in the kernel, after a restart. */
int sandbox_adopt_pause(struct sandbox *sb, struct err *e);
struct limits sandbox_defaults(const struct keeper *k);
int sandbox_check_limits(const struct limits *l, struct err *e);
/* 1: its init runs, and sb->pid and pidfd are of it; 0: it is gone; -1: there was no way to
 * find out. */
int sandbox_find_init(struct sandbox *sb, struct err *e);
/* Runs all stages for a new one; NULL after a failure, which the teardown then owns. */
struct sandbox *sandbox_build(struct keeper *k, const struct order *o, uint32_t ask, struct err *e);
/* Boots a stopped one; the answer to sb->ask comes by itself. */
void sandbox_boot_now(struct sandbox *sb);
/* It is somebody's from now on. */
int sandbox_give(struct sandbox *sb, struct err *e);
/* Counts it in or out of those that are being made for somebody. */
void sandbox_count_asked(struct sandbox *sb, bool asked);
void sandbox_answer_ok(struct sandbox *sb);
void sandbox_answer_given(struct sandbox *sb);
/* From here on the death of its init is noticed. */
int sandbox_watch_init(struct sandbox *sb, struct err *e);
/* To the teardown queue. Its record must already say what is wanted. */
void sandbox_bury(struct sandbox *sb, bool keep_disk);
/* The queue need not wait any longer, if it was a sandbox's. */
void sandbox_disk_removed(struct keeper *k, const char *name);

#endif

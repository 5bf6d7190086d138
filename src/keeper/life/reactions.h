/* reactions.h - what the files of life/ share: the reactions of the table in states.c, and the
 * steps that several of them take. */
#ifndef KEEPER_LIFE_REACTIONS_H
#define KEEPER_LIFE_REACTIONS_H

#include "keeper/life.h"
#include "keeper/stages.h"

typedef int reaction(struct sandbox *sb, const struct news *n, struct err *e);

/* The one place where a state changes: sets the phase of the record, keeps the counts and the
 * pool's list. */
void sandbox_enter(struct sandbox *sb, enum state to);
/* The same, and saves the record. If that fails the sandbox keeps its state. */
int sandbox_enter_saved(struct sandbox *sb, enum state to, bool durable, struct err *e);
/* Every cell has a reaction. */
bool states_are_decided(void);

/* Refuses a request with ERR_CONFLICT while another one is not answered. */
int sandbox_check_free(const struct sandbox *sb, struct err *e);

/* start.c */
reaction react_boot_stopped, react_boot_after_stop, react_boot_taken_over;
reaction react_booted_for_pool, react_booted_for_client, react_booted_for_import, react_give_pooled;
reaction react_fill_failed, react_create_failed, react_boot_failed;

struct order {
    const char *template;      /* NULL: an import, which starts from an empty directory */
    struct snapshot *snapshot; /* instead of the template; or NULL */
    struct limits limits;
    uint32_t network; /* enum network_bits */
    bool relaxed;     /* base/fsync.h */
    struct wire_bytes rules;
};
struct limits sandbox_defaults(const struct keeper *k);
/* Makes one and starts its stages; `as` is the state that says for what. NULL after a failure:
 * its teardown is then under way. */
struct sandbox *sandbox_build(struct keeper *k, const struct order *o, enum state as, uint32_t ask,
                              struct err *e);
/* Boots one that is stopped; the answer to sb->ask comes later. */
void sandbox_boot_now(struct sandbox *sb);

/* pool.c */
/* Filling the pool failed: waits before the next attempt. */
void pool_refill_failed(struct keeper *k);
/* Builds one for the pool, whose fate is then told to proof_done(). */
int pool_fill(struct keeper *k, struct err *e);
/* The host's maximum leaves a place beside pooled and given ones. */
bool pool_has_place(const struct keeper *k);
/* Drops one if the pool has more than it should: one was built as a proof. */
void pool_trim(struct keeper *k);

/* proof.c */
/* A sandbox was built for the pool: the stage that failed, or NULL. */
void proof_done(struct keeper *k, const char *failed);

/* pause.c */
reaction react_pause_begin, react_pause_check, react_resume;
/* After a restart, for one that runs: the state that the kernel's freezers say. */
int pause_adopt(struct sandbox *sb, enum state *ret, struct err *e);

/* teardown.c */
reaction react_stop, react_stop_all, react_stop_all_damaged;
reaction react_delete_running, react_delete_stopped, react_delete_stopping, react_delete_damaged;
reaction react_drop;
reaction react_commit_import, react_import_died, react_init_died, react_init_died_killed;
reaction react_stopped, react_stopped_for_boot, react_deleted, react_damaged_stopped;
/* Enters `to`, kills what runs and puts it into the teardown queue. */
void sandbox_take_down(struct sandbox *sb, enum state to);
/* From here on the death of its init is an event. */
int sandbox_watch_init(struct sandbox *sb, struct err *e);

/* adopt.c: 1: its init runs, and sb->pid and pidfd are set; 0: it is dead; -1: unknown. */
int sandbox_find_init(struct sandbox *sb, struct err *e);

/* quarantine.c */
reaction react_recover;

#endif

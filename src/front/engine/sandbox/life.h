/* life.h - what life.c, life_end.c and life_pause.c share: the reactions of the table. */
#ifndef FRONT_ENGINE_SANDBOX_LIFE_H
#define FRONT_ENGINE_SANDBOX_LIFE_H

#include "front/engine/internal.h"

#define LIFE_LATER_MS 1000
#define LIFE_RETRY_MS 30000

typedef void reaction(struct box *b, const struct life_news *n);

/* life.c */
reaction life_wait;                                   /* its waiter is answered with the others */
void life_answer(struct box *b, const struct err *e); /* those that wait for what is under way */
void life_call_next(struct box *b);             /* those that wait for what comes next wait now */
void life_late(void *arg, const struct err *e); /* for a keeper_asker of a box */
void life_again(struct box *b, uint64_t ms);    /* LIFE_TIMEOUT once more, then */
/* The row says what the box has, and this state. */
int life_save(struct box *b, enum store_state state, struct err *e);

/* life_end.c */
reaction life_destroy, life_end_it, life_doom, life_buried, life_stuck;
/* All conversations with its init fail with `what`. */
void life_silence(struct box *b, const char *what);

/* life_pause.c */
reaction life_pause, life_froze, life_freeze_failed;
reaction life_thaw, life_thawed, life_thaw_failed;
reaction life_died, life_halted, life_halt_failed;
reaction life_boot, life_booted, life_boot_failed;
reaction life_resume_too;   /* with the resume that is under way */
reaction life_resume_after; /* as soon as what is under way is over */
reaction life_time_over;
/* Its state is that now, and its row will be. */
void life_note_lost(struct box *b, uint64_t lost_ms);
void life_note_state(struct box *b, enum sandbox_state state, const char *boot_id,
                     const char *reason);

/* life_recover.c */
reaction life_recover, life_recovered, life_recover_failed;

#endif

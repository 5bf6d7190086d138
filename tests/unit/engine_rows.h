/* engine_rows.h - an engine with sandboxes in its store, and their rows. */
#ifndef ENGINE_ROWS_H
#define ENGINE_ROWS_H

#include "engine_rig.h"

#define MADE_FOR_MS (3600u * 1000u)

static inline void insert(struct rig *r, const char *id, enum store_state state, uint64_t ends_ms)
{
    struct store_sandbox row = {.id = id,
                                .key = KEY,
                                .state = state,
                                .template = "base",
                                .network = "none",
                                .metadata = "{}",
                                .boot_id = "boot-1",
                                .ends_ms = ends_ms,
                                .timeout_ms = MADE_FOR_MS,
                                .reason = state == STORE_STOPPED ? "earlier" : ""};
    struct err e;

    CHECK_INT(store_sandbox_insert(r->store, &row, &e), 0);
}

struct rows {
    int n;
    enum store_state state;
    char reason[128];
    uint64_t ends_ms;
};

static inline int count_row(void *arg, const struct store_sandbox *row, struct err *e)
{
    struct rows *f = arg;

    (void)e;
    f->n++;
    f->state = (enum store_state)row->state;
    f->ends_ms = row->ends_ms;
    snprintf(f->reason, sizeof(f->reason), "%s", row->reason);
    return 0;
}

static inline struct rows rows(struct rig *r)
{
    struct rows f = {0};
    struct err e;

    CHECK_INT(store_sandbox_each(r->store, count_row, &f, &e), 0);
    return f;
}

static inline const char *state_of(struct rig *r, const char *id)
{
    const struct sandbox *s = engine_get((struct ref){r->g, KEY, id});

    return s == NULL ? "none" : sandbox_state_name(s->state);
}

static inline void start(struct rig *r)
{
    rig_new(r);
    rig_join(r, rig_start(r));
}

/* One sandbox: its row, and what the keeper has of it. */
static inline void start_with(struct rig *r, enum store_state state, uint64_t ends_ms,
                              const struct keeper_sandbox *box)
{
    uint32_t seq;

    rig_new(r);
    insert(r, box->id, state, ends_ms);
    seq = rig_start(r);
    keeper_say(r, KEEPER_SANDBOX, seq, box);
    rig_join(r, seq);
}

#endif

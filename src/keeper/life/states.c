/* states.c - the states of a sandbox: how each is recorded and counted, and what every event
 * does in it. */
#include <string.h>

#include "keeper/life/reactions.h"
#include "keeper/ops.h"
#include "keeper/snapshot.h"

const char *phase_name(enum phase p)
{
    static const char *const names[PHASE_COUNT] = {"building", "pooled", "given",  "stopped",
                                                   "dying",    "import", "damaged"};

    return (unsigned)p < PHASE_COUNT ? names[p] : "unknown";
}

/* ---- how each is recorded and counted ---- */

#define IN(count) (1u << COUNT_##count)

/* clang-format off */
static const struct {
    enum phase phase;
    unsigned counts; /* bits of enum count */
} rows[STATE_COUNT] = {
    [STATE_NEW]              = {PHASE_BUILDING, 0},
    [STATE_FILLING]          = {PHASE_BUILDING, IN(FILLING)},
    [STATE_CREATING]         = {PHASE_BUILDING, IN(STARTING)},
    [STATE_PREPARING]        = {PHASE_BUILDING, IN(STARTING) | IN(IMPORTS)},
    [STATE_BOOTING]          = {PHASE_STOPPED,  IN(STARTING)},
    [STATE_POOLED]           = {PHASE_POOLED,   IN(POOLED)},
    [STATE_RUNNING]          = {PHASE_GIVEN,    IN(GIVEN)},
    [STATE_PAUSING]          = {PHASE_GIVEN,    IN(GIVEN)},
    [STATE_PAUSED]           = {PHASE_GIVEN,    IN(GIVEN)},
    [STATE_IMPORTING]        = {PHASE_IMPORT,   IN(IMPORTS)},
    [STATE_COMMITTING]       = {PHASE_IMPORT,   IN(IMPORTS)},
    [STATE_STOPPING]         = {PHASE_STOPPED,  IN(TEARDOWN)},
    [STATE_REBOOTING]        = {PHASE_STOPPED,  IN(TEARDOWN)},
    [STATE_STOPPED]          = {PHASE_STOPPED,  0},
    [STATE_KILLED]           = {PHASE_DYING,    0},
    [STATE_DELETING]         = {PHASE_DYING,    IN(TEARDOWN)},
    [STATE_DAMAGED]          = {PHASE_DAMAGED,  0},
    [STATE_DAMAGED_STOPPING] = {PHASE_DAMAGED,  IN(TEARDOWN)},
};
/* clang-format on */

void sandbox_enter(struct sandbox *sb, enum state to)
{
    struct keeper *k = sb->k;

    for (int c = 0; c < COUNT_COUNT; c++) {
        k->counts[c] -= rows[sb->state].counts >> c & 1;
        k->counts[c] += rows[to].counts >> c & 1;
    }
    list_del(&sb->pool_link);
    if (to == STATE_POOLED)
        list_add_tail(&k->pool, &sb->pool_link);
    sb->state = to;
    sb->rec.phase = rows[to].phase;
}

int sandbox_enter_saved(struct sandbox *sb, enum state to, bool durable, struct err *e)
{
    enum state before = sb->state;

    sandbox_enter(sb, to);
    if (record_save(sb, durable, e) == 0)
        return 0;
    sandbox_enter(sb, before);
    return -1;
}

bool sandbox_is_starting(const struct sandbox *sb)
{
    return sb->state == STATE_FILLING || (rows[sb->state].counts & IN(STARTING)) != 0;
}

bool sandbox_keeps_disk(const struct sandbox *sb)
{
    return sb->rec.phase == PHASE_STOPPED || sb->rec.phase == PHASE_DAMAGED;
}

/* ---- requests that a state refuses ---- */

int sandbox_check_free(const struct sandbox *sb, struct err *e)
{
    if (!sandbox_is_busy(sb))
        return 0;
    return err_set(e, ERR_CONFLICT, "another request about sandbox %s is not finished; try again",
                   sb->rec.id);
}

/* Also the answer of a state that has nothing to do for an observation. */
static int ignore(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)sb;
    (void)n;
    (void)e;
    return 0;
}

static int not_found(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    return err_set(e, ERR_NOT_FOUND, "no sandbox %s", sb->rec.id);
}

static int no_import(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    return err_set(e, ERR_NOT_FOUND, "no import %s", sb->rec.id);
}

static int is_damaged(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    return err_set(e, ERR_CONFLICT, "sandbox %s is damaged (%s); recover or delete it", sb->rec.id,
                   sb->rec.reason);
}

static int not_damaged(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    return err_set(e, ERR_CONFLICT, "sandbox %s is not damaged", sb->rec.id);
}

static int is_running(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    return err_set(e, ERR_CONFLICT, "sandbox %s is running", sb->rec.id);
}

static int is_stopped(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)n;
    return err_set(e, ERR_CONFLICT, "sandbox %s is stopped", sb->rec.id);
}

static int is_changing(struct sandbox *sb, const struct news *n, struct err *e)
{
    static const char *const doing[STATE_COUNT] = {
        [STATE_PAUSING] = "being paused",
        [STATE_STOPPING] = "still stopping",
        [STATE_REBOOTING] = "still stopping",
        [STATE_BOOTING] = "still booting",
        [STATE_DAMAGED_STOPPING] = "still stopping",
    };

    (void)n;
    return err_set(e, ERR_CONFLICT, "sandbox %s is %s; try again", sb->rec.id, doing[sb->state]);
}

/* ---- the table ---- */

/* Every cell is a decision; `ignore` is one too. test_keeper_life.c walks it. */
/* clang-format off */
#define NO_CLIENT_HAS_IT [EV_BOOT] = not_found, [EV_STOP] = not_found, [EV_PAUSE] = not_found, [EV_RESUME] = not_found, [EV_SNAPSHOT] = not_found
#define NOT_POOLED       [EV_GIVE] = ignore
#define NO_IMPORT        [EV_COMMIT] = no_import, [EV_FRONT_GONE] = ignore
#define NOT_DAMAGED      [EV_RECOVER] = not_damaged
#define NOT_STARTING     [EV_BOOTED] = ignore, [EV_FAILED] = ignore
#define NOT_PAUSING      [EV_FREEZE_CHECK] = ignore
#define NOT_GOING_DOWN   [EV_DOWN] = ignore
#define NO_INIT          [EV_INIT_DIED] = ignore
#define STAYS            [EV_DROP] = ignore, [EV_STOP_ALL] = ignore

static reaction *const table[STATE_COUNT][EV_COUNT] = {
    [STATE_NEW] = {
        [EV_DELETE] = not_found, STAYS,
        NO_CLIENT_HAS_IT, NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_STARTING, NOT_PAUSING, NOT_GOING_DOWN, NO_INIT},
    [STATE_FILLING] = {
        [EV_DELETE] = not_found, [EV_DROP] = react_drop, [EV_STOP_ALL] = ignore,
        [EV_BOOTED] = react_booted_for_pool, [EV_FAILED] = react_fill_failed,
        NO_CLIENT_HAS_IT, NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_PAUSING, NOT_GOING_DOWN, NO_INIT},
    [STATE_CREATING] = {
        [EV_DELETE] = not_found, [EV_DROP] = react_drop, [EV_STOP_ALL] = ignore,
        [EV_BOOTED] = react_booted_for_client, [EV_FAILED] = react_create_failed,
        NO_CLIENT_HAS_IT, NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_PAUSING, NOT_GOING_DOWN, NO_INIT},
    [STATE_PREPARING] = {
        [EV_DELETE] = not_found, [EV_DROP] = react_drop, [EV_STOP_ALL] = ignore,
        [EV_BOOTED] = react_booted_for_import, [EV_FAILED] = react_create_failed,
        NO_CLIENT_HAS_IT, NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_PAUSING, NOT_GOING_DOWN, NO_INIT},
    [STATE_BOOTING] = {
        [EV_BOOT] = react_boot_taken_over, [EV_STOP] = is_stopped, [EV_DELETE] = react_delete_stopped,
        [EV_PAUSE] = is_stopped, [EV_RESUME] = is_stopped, [EV_SNAPSHOT] = is_changing, STAYS,
        [EV_BOOTED] = react_booted_for_client, [EV_FAILED] = react_boot_failed,
        NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_PAUSING, NOT_GOING_DOWN, NO_INIT},
    [STATE_POOLED] = {
        [EV_DELETE] = not_found, [EV_GIVE] = react_give_pooled, [EV_DROP] = react_drop, [EV_STOP_ALL] = ignore,
        [EV_BOOTED] = ignore, [EV_FAILED] = react_create_failed, [EV_INIT_DIED] = react_drop,
        NO_CLIENT_HAS_IT, NO_IMPORT, NOT_DAMAGED, NOT_PAUSING, NOT_GOING_DOWN},
    [STATE_RUNNING] = {
        [EV_BOOT] = is_running, [EV_STOP] = react_stop, [EV_DELETE] = react_delete_running,
        [EV_PAUSE] = react_pause_begin, [EV_RESUME] = react_resume, [EV_SNAPSHOT] = snapshot_begin,
        [EV_DROP] = ignore, [EV_STOP_ALL] = react_stop_all, [EV_INIT_DIED] = react_init_died,
        NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_STARTING, NOT_PAUSING, NOT_GOING_DOWN},
    [STATE_PAUSING] = {
        [EV_BOOT] = is_running, [EV_STOP] = react_stop, [EV_DELETE] = react_delete_running,
        [EV_PAUSE] = react_pause_begin, [EV_RESUME] = react_resume, [EV_SNAPSHOT] = is_changing,
        [EV_DROP] = ignore, [EV_STOP_ALL] = react_stop_all, [EV_INIT_DIED] = react_init_died, [EV_FREEZE_CHECK] = react_pause_check,
        NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_STARTING, NOT_GOING_DOWN},
    [STATE_PAUSED] = {
        [EV_BOOT] = is_running, [EV_STOP] = react_stop, [EV_DELETE] = react_delete_running,
        [EV_PAUSE] = react_pause_begin, [EV_RESUME] = react_resume, [EV_SNAPSHOT] = snapshot_begin,
        [EV_DROP] = ignore, [EV_STOP_ALL] = react_stop_all, [EV_INIT_DIED] = react_init_died,
        NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_STARTING, NOT_PAUSING, NOT_GOING_DOWN},
    [STATE_IMPORTING] = {
        [EV_DELETE] = react_delete_running, [EV_COMMIT] = react_commit_import, [EV_DROP] = react_drop, [EV_STOP_ALL] = ignore,
        [EV_INIT_DIED] = react_import_died, [EV_FRONT_GONE] = react_drop,
        NO_CLIENT_HAS_IT, NOT_POOLED, NOT_DAMAGED, NOT_STARTING, NOT_PAUSING, NOT_GOING_DOWN},
    [STATE_COMMITTING] = {
        [EV_DELETE] = react_delete_running, [EV_COMMIT] = no_import, [EV_DROP] = react_drop, [EV_STOP_ALL] = ignore,
        [EV_INIT_DIED] = react_import_died, [EV_FRONT_GONE] = ignore,
        NO_CLIENT_HAS_IT, NOT_POOLED, NOT_DAMAGED, NOT_STARTING, NOT_PAUSING, NOT_GOING_DOWN},
    [STATE_STOPPING] = {
        [EV_BOOT] = react_boot_after_stop, [EV_STOP] = is_stopped, [EV_DELETE] = react_delete_stopping,
        [EV_PAUSE] = is_stopped, [EV_RESUME] = is_stopped, [EV_SNAPSHOT] = is_changing, STAYS,
        [EV_DOWN] = react_stopped,
        NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_STARTING, NOT_PAUSING, NO_INIT},
    [STATE_REBOOTING] = {
        [EV_BOOT] = react_boot_taken_over, [EV_STOP] = is_stopped, [EV_DELETE] = react_delete_stopping,
        [EV_PAUSE] = is_stopped, [EV_RESUME] = is_stopped, [EV_SNAPSHOT] = is_changing, STAYS,
        [EV_DOWN] = react_stopped_for_boot,
        NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_STARTING, NOT_PAUSING, NO_INIT},
    [STATE_STOPPED] = {
        [EV_BOOT] = react_boot_stopped, [EV_STOP] = is_stopped, [EV_DELETE] = react_delete_stopped,
        [EV_PAUSE] = is_stopped, [EV_RESUME] = is_stopped, [EV_SNAPSHOT] = snapshot_begin, STAYS,
        NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_STARTING, NOT_PAUSING, NOT_GOING_DOWN, NO_INIT},
    [STATE_KILLED] = {
        [EV_DELETE] = not_found, STAYS, [EV_INIT_DIED] = react_init_died_killed,
        NO_CLIENT_HAS_IT, NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_STARTING, NOT_PAUSING, NOT_GOING_DOWN},
    [STATE_DELETING] = {
        [EV_DELETE] = not_found, STAYS, [EV_DOWN] = react_deleted,
        NO_CLIENT_HAS_IT, NOT_POOLED, NO_IMPORT, NOT_DAMAGED, NOT_STARTING, NOT_PAUSING, NO_INIT},
    [STATE_DAMAGED] = { /* its files are what it is kept for: a dead init changes nothing */
        [EV_BOOT] = is_damaged, [EV_STOP] = is_damaged, [EV_DELETE] = react_delete_damaged,
        [EV_PAUSE] = is_damaged, [EV_RESUME] = is_damaged, [EV_SNAPSHOT] = is_damaged,
        [EV_RECOVER] = react_recover, [EV_DROP] = ignore, [EV_STOP_ALL] = react_stop_all_damaged,
        NOT_POOLED, NO_IMPORT, NOT_STARTING, NOT_PAUSING, NOT_GOING_DOWN, NO_INIT},
    [STATE_DAMAGED_STOPPING] = {
        [EV_BOOT] = is_damaged, [EV_STOP] = is_damaged, [EV_DELETE] = react_delete_stopping,
        [EV_PAUSE] = is_damaged, [EV_RESUME] = is_damaged, [EV_SNAPSHOT] = is_damaged,
        [EV_RECOVER] = is_changing, STAYS, [EV_DOWN] = react_damaged_stopped,
        NOT_POOLED, NO_IMPORT, NOT_STARTING, NOT_PAUSING, NO_INIT},
};
/* clang-format on */

bool states_are_decided(void)
{
    for (int s = 0; s < STATE_COUNT; s++)
        for (int ev = 0; ev < EV_COUNT; ev++)
            if (table[s][ev] == NULL)
                return false;
    return true;
}

int sandbox_event(struct sandbox *sb, enum event ev, const struct news *n, struct err *e)
{
    return table[sb->state][ev](sb, n, e);
}

void sandbox_tell(struct sandbox *sb, enum event ev)
{
    struct err ignored;

    sandbox_event(sb, ev, &(struct news){0}, &ignored);
}

/* ---- finding and answering ---- */

struct sandbox *sandbox_find(struct keeper *k, const char *id)
{
    struct map_node *n = map_get(&k->sandboxes, id);

    return n == NULL ? NULL : CONTAINER_OF(n, struct sandbox, by_id);
}

struct sandbox *sandbox_find_given(struct keeper *k, const char *id, struct err *e)
{
    struct sandbox *sb = sandbox_find(k, id);

    if (sb != NULL && (sb->rec.phase == PHASE_GIVEN || sb->rec.phase == PHASE_STOPPED))
        return sb;
    if (sb != NULL && sb->rec.phase == PHASE_DAMAGED)
        is_damaged(sb, NULL, e);
    else
        err_set(e, ERR_NOT_FOUND, "no sandbox %s", id);
    return NULL;
}

/* A damaged one without a layer may use any version: nothing tells which. */
unsigned sandbox_users(struct keeper *k, const char *version, bool all)
{
    struct sandbox *sb;
    unsigned count = 0;

    SANDBOX_EACH(k, sb)
    if (sb->rec.phase == PHASE_DAMAGED && sb->rec.layer[0] == '\0')
        count++;
    else
        count += strcmp(sb->rec.layer, version) == 0 && (all || sb->rec.phase != PHASE_DYING);
    return count;
}

bool sandbox_is_busy(const struct sandbox *sb)
{
    return sb->ask != 0 && sb->ask != ASK_FORGOTTEN;
}

void sandbox_answer_ok(struct sandbox *sb)
{
    if (sb->ask != 0)
        link_ok(sb->k, sb->ask);
    sb->ask = 0;
}

void sandbox_answer_fail(struct sandbox *sb, const struct err *e)
{
    if (sb->ask != 0)
        link_fail(sb->k, sb->ask, e);
    sb->ask = 0;
}

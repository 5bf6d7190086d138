#include "unit.h"

#include <stdlib.h>

#include "keeper/freezer.h"
#include "keeper/image.h"
#include "keeper/life/reactions.h"
#include "keeper/network.h"
#include "keeper/ops.h"
#include "keeper/quarantine.h"
#include "keeper/snapshot.h"

#define ID "abcdefghij0123456789"
#define SEQ 7

/* ---- the keeper around the table: what each reaction does to the host is only noted ---- */

static struct world {
    struct keeper k;
    struct sandbox *sb;
    bool save_fails, frozen, init_dead;
    unsigned kills, oks, fails, givens, saves, snapshots, commits;
    uint32_t saved_phase;
    enum err_kind why;
} w;

#define WRAP(f) __typeof__(f) __wrap_##f;
WRAP(birth_is_over)
WRAP(cgroup_kill)
WRAP(cgroup_oom_kills)
WRAP(cgroup_swap)
WRAP(disk_check)
WRAP(freezer_is_frozen_soon)
WRAP(freezer_is_on)
WRAP(freezer_set)
WRAP(image_commit)
WRAP(image_released)
WRAP(link_fail)
WRAP(link_ok)
WRAP(link_sandbox)
WRAP(pool_refill)
WRAP(quarantine_forget)
WRAP(record_save)
WRAP(reserve_kick)
WRAP(sandbox_watch_init)
WRAP(snapshot_begin)
WRAP(stages_up)

int __wrap_record_save(struct sandbox *sb, bool durable, struct err *e)
{
    (void)durable;
    if (w.save_fails)
        return err_set(e, ERR_INTERNAL, "the disk is full");
    w.saves++;
    w.saved_phase = sb->rec.phase;
    return 0;
}

int __wrap_stages_up(struct sandbox *sb, struct err *e)
{
    (void)e;
    sb->rec.stage = STAGE_COUNT;
    return 0;
}

void __wrap_cgroup_kill(struct sandbox *sb)
{
    (void)sb;
    w.kills++;
}

bool __wrap_birth_is_over(const struct sandbox *sb)
{
    (void)sb;
    return w.init_dead;
}

uint64_t __wrap_cgroup_oom_kills(struct sandbox *sb)
{
    (void)sb;
    return 0;
}

void __wrap_cgroup_swap(struct sandbox *sb, bool allowed)
{
    (void)sb;
    (void)allowed;
}

int __wrap_freezer_set(struct sandbox *sb, enum freeze what, bool on, struct err *e)
{
    (void)sb;
    (void)what;
    (void)on;
    (void)e;
    return 0;
}

bool __wrap_freezer_is_frozen_soon(struct sandbox *sb, enum freeze what)
{
    (void)sb;
    (void)what;
    return w.frozen;
}

int __wrap_freezer_is_on(struct sandbox *sb, enum freeze what, bool *ret, struct err *e)
{
    (void)sb;
    (void)what;
    (void)e;
    *ret = w.frozen;
    return 0;
}

int __wrap_sandbox_watch_init(struct sandbox *sb, struct err *e)
{
    (void)sb;
    (void)e;
    return 0;
}

int __wrap_disk_check(struct keeper *k, struct err *e)
{
    (void)k;
    (void)e;
    return 0;
}

void __wrap_reserve_kick(struct keeper *k)
{
    (void)k;
}

void __wrap_pool_refill(struct keeper *k)
{
    (void)k;
}

void __wrap_image_released(struct keeper *k, const char *version)
{
    (void)k;
    (void)version;
}

int __wrap_image_commit(struct keeper *k, const char *id, const struct keeper_commit *m,
                        struct err *e)
{
    (void)k;
    (void)id;
    (void)m;
    (void)e;
    w.commits++;
    return 0;
}

int __wrap_snapshot_begin(struct sandbox *sb, const struct news *n, struct err *e)
{
    (void)sb;
    (void)n;
    (void)e;
    w.snapshots++;
    return 0;
}

void __wrap_quarantine_forget(struct keeper *k, const char *name)
{
    (void)k;
    (void)name;
}

void __wrap_link_ok(struct keeper *k, uint32_t seq)
{
    (void)k;
    (void)seq;
    w.oks++;
}

void __wrap_link_fail(struct keeper *k, uint32_t seq, const struct err *e)
{
    (void)k;
    (void)seq;
    w.fails++;
    w.why = e->kind;
}

void __wrap_link_sandbox(struct keeper *k, uint32_t seq, const struct sandbox *sb)
{
    (void)k;
    (void)seq;
    (void)sb;
    w.givens++;
}

static void begin(enum state state)
{
    struct err e;

    w = (struct world){.init_dead = true};
    CHECK_INT(loop_new(&w.k.loop, &e), 0);
    pool_open(&w.k);
    w.k.nsandboxes_max = 10;
    w.k.damaged_fd = w.k.run_fd = w.k.disk.fd = -1;
    w.sb = sandbox_new(&w.k, ID, &e);
    CHECK(w.sb != NULL);
    sandbox_enter(w.sb, state);
}

static void done(void)
{
    if (w.sb != NULL)
        sandbox_free(w.sb);
    for (int c = 0; c < COUNT_COUNT; c++)
        CHECK_INT(w.k.counts[c], 0);
    CHECK(list_empty(&w.k.pool));
    map_free(&w.k.sandboxes);
    loop_free(w.k.loop);
}

/* Returns -1 with *e where a request is refused. */
static int event(enum event ev, struct err *e)
{
    static const struct err why = {.kind = ERR_INTERNAL, .msg = "a stage failed"};
    static const struct keeper_boot boot = {.id = ID};
    static const struct keeper_commit commit = {.id = ID, .name = "", .format = ""};
    static const struct keeper_recover recover = {.id = ID, .network = "", .boot_id = ""};
    const void *msg = ev == EV_COMMIT    ? (const void *)&commit
                      : ev == EV_RECOVER ? (const void *)&recover
                                         : &boot;
    int r;

    r = sandbox_event(w.sb, ev, &(struct news){.seq = SEQ, .msg = msg, .why = &why}, e);
    w.sb = sandbox_find(&w.k, ID);
    return r;
}

static bool is_in(const enum state *states, enum state s)
{
    for (; *states != STATE_COUNT; states++)
        if (*states == s)
            return true;
    return false;
}

#define IN(...) is_in((const enum state[]){__VA_ARGS__, STATE_COUNT}, s)

/* What is counted where, said once more and without the table. */
static void check_counts(enum state s)
{
    CHECK_INT(w.k.counts[COUNT_POOLED], s == STATE_POOLED);
    CHECK_INT(w.k.counts[COUNT_FILLING], s == STATE_FILLING);
    CHECK_INT(w.k.counts[COUNT_STARTING], IN(STATE_CREATING, STATE_PREPARING, STATE_BOOTING));
    CHECK_INT(w.k.counts[COUNT_GIVEN], IN(STATE_RUNNING, STATE_PAUSING, STATE_PAUSED));
    CHECK_INT(w.k.counts[COUNT_IMPORTS], IN(STATE_PREPARING, STATE_IMPORTING, STATE_COMMITTING));
    CHECK_INT(w.k.counts[COUNT_TEARDOWN],
              IN(STATE_STOPPING, STATE_REBOOTING, STATE_DELETING, STATE_DAMAGED_STOPPING));
    CHECK_INT(list_empty(&w.k.pool), s != STATE_POOLED);
}

/* ---- every cell ---- */

TEST(every_event_is_decided_in_every_state)
{
    CHECK(states_are_decided());
}

TEST(counts_follow_every_change_of_state)
{
    for (int from = 0; from < STATE_COUNT; from++)
        for (int to = 0; to < STATE_COUNT; to++) {
            begin((enum state)from);
            check_counts((enum state)from);
            sandbox_enter(w.sb, (enum state)to);
            check_counts((enum state)to);
            done();
        }
}

TEST(counts_are_right_after_every_event_in_every_state)
{
    struct err e;

    for (int s = 0; s < STATE_COUNT; s++)
        for (int ev = 0; ev < EV_COUNT; ev++) {
            begin((enum state)s);
            e = (struct err){0};
            if (event((enum event)ev, &e) < 0)
                CHECK(e.msg[0] != '\0');
            check_counts(w.sb == NULL ? STATE_NEW : w.sb->state);
            done();
        }
}

TEST(a_refused_request_changes_nothing)
{
    struct err e;

    for (int s = 0; s < STATE_COUNT; s++)
        for (int ev = EV_BOOT; ev <= EV_RECOVER; ev++) {
            begin((enum state)s);
            w.save_fails = true;
            if (event((enum event)ev, &e) < 0) {
                CHECK_INT(w.sb->state, s);
                CHECK_INT(w.sb->ask, 0);
                CHECK_INT(w.kills + w.oks + w.fails + w.givens, 0);
            }
            done();
        }
}

TEST(a_sandbox_that_no_client_has_is_not_found)
{
    static const enum state states[] = {STATE_NEW,       STATE_FILLING, STATE_CREATING,
                                        STATE_PREPARING, STATE_POOLED,  STATE_KILLED,
                                        STATE_DELETING};
    static const enum event events[] = {EV_BOOT,  EV_STOP,   EV_DELETE,
                                        EV_PAUSE, EV_RESUME, EV_SNAPSHOT};
    struct err e;

    for (size_t s = 0; s < ARRAY_LEN(states); s++)
        for (size_t ev = 0; ev < ARRAY_LEN(events); ev++) {
            begin(states[s]);
            CHECK_INT(event(events[ev], &e), -1);
            CHECK_INT(e.kind, ERR_NOT_FOUND);
            done();
        }
}

/* A keeper that starts after a kill knows the phase alone. */
TEST(the_phase_of_a_state_is_what_the_next_keeper_must_do)
{
    for (int i = 0; i < STATE_COUNT; i++) {
        enum state s = (enum state)i;

        begin(s);
        CHECK_INT(w.sb->rec.phase == PHASE_GIVEN, IN(STATE_RUNNING, STATE_PAUSING, STATE_PAUSED));
        CHECK_INT(w.sb->rec.phase == PHASE_STOPPED,
                  IN(STATE_STOPPED, STATE_STOPPING, STATE_REBOOTING, STATE_BOOTING));
        CHECK_INT(w.sb->rec.phase == PHASE_DAMAGED, IN(STATE_DAMAGED, STATE_DAMAGED_STOPPING));
        CHECK_INT(sandbox_keeps_disk(w.sb),
                  IN(STATE_STOPPED, STATE_STOPPING, STATE_REBOOTING, STATE_BOOTING, STATE_DAMAGED,
                     STATE_DAMAGED_STOPPING));
        CHECK_INT(sandbox_is_starting(w.sb),
                  IN(STATE_FILLING, STATE_CREATING, STATE_PREPARING, STATE_BOOTING));
        done();
    }
}

/* ---- single stories ---- */

TEST(a_stop_is_recorded_before_anything_is_killed)
{
    struct err e;

    begin(STATE_RUNNING);
    w.init_dead = false;
    w.save_fails = true;
    CHECK_INT(event(EV_STOP, &e), -1);
    CHECK_INT(w.kills, 0);
    w.save_fails = false;
    CHECK_INT(event(EV_STOP, &e), 0);
    CHECK_INT(w.saved_phase, PHASE_STOPPED);
    CHECK_INT(w.sb->state, STATE_STOPPING);
    CHECK_INT(w.kills, 1);
    CHECK_INT(w.oks, 0);
    CHECK_INT(event(EV_DOWN, &e), 0);
    CHECK_INT(w.sb->state, STATE_STOPPED);
    CHECK_INT(w.oks, 1);
    done();
}

TEST(a_delete_is_answered_when_the_init_is_dead)
{
    struct err e;

    begin(STATE_RUNNING);
    w.init_dead = false;
    CHECK_INT(event(EV_DELETE, &e), 0);
    CHECK_INT(w.sb->state, STATE_KILLED);
    CHECK_INT(w.saved_phase, PHASE_DYING);
    CHECK_INT(w.kills, 1);
    CHECK_INT(w.oks, 0);
    w.init_dead = true;
    CHECK_INT(event(EV_INIT_DIED, &e), 0);
    CHECK_INT(w.sb->state, STATE_DELETING);
    CHECK_INT(w.oks, 1);
    CHECK_INT(event(EV_DOWN, &e), 0);
    CHECK(w.sb == NULL);
    done();
}

TEST(a_sandbox_that_is_stopping_boots_when_it_is_down)
{
    struct err e;

    begin(STATE_STOPPING);
    CHECK_INT(event(EV_BOOT, &e), 0);
    CHECK_INT(w.sb->state, STATE_REBOOTING);
    CHECK_INT(event(EV_BOOT, &e), -1);
    CHECK_INT(e.kind, ERR_UNAVAILABLE);
    CHECK_INT(event(EV_DOWN, &e), 0);
    CHECK_INT(w.sb->state, STATE_BOOTING);
    CHECK_INT(event(EV_BOOTED, &e), 0);
    CHECK_INT(w.sb->state, STATE_RUNNING);
    CHECK_INT(w.givens, 1);
    CHECK_INT(w.sb->ask, 0);
    done();
}

TEST(a_boot_for_a_front_that_is_gone_is_taken_over_or_undone)
{
    struct err e;

    begin(STATE_BOOTING);
    w.sb->ask = ASK_FORGOTTEN;
    CHECK_INT(event(EV_BOOT, &e), 0);
    CHECK_INT(w.sb->ask, SEQ);
    w.sb->ask = ASK_FORGOTTEN;
    CHECK_INT(event(EV_BOOTED, &e), 0);
    CHECK_INT(w.sb->state, STATE_STOPPING);
    CHECK_INT(w.givens, 0);
    done();
}

TEST(a_delete_fails_the_request_that_it_overtakes)
{
    struct err e;

    begin(STATE_REBOOTING);
    w.sb->ask = SEQ - 1;
    CHECK_INT(event(EV_DELETE, &e), 0);
    CHECK_INT(w.fails, 1);
    CHECK_INT(w.why, ERR_GONE);
    CHECK_INT(w.oks, 1);
    CHECK_INT(w.sb->state, STATE_DELETING);
    CHECK(!sandbox_keeps_disk(w.sb));
    done();
}

TEST(a_boot_that_fails_keeps_the_disk_and_a_create_does_not)
{
    struct err e;

    begin(STATE_BOOTING);
    w.sb->ask = SEQ;
    CHECK_INT(event(EV_FAILED, &e), 0);
    CHECK_INT(w.sb->state, STATE_STOPPING);
    CHECK_INT(w.fails, 1);
    done();
    begin(STATE_CREATING);
    w.sb->ask = SEQ;
    CHECK_INT(event(EV_FAILED, &e), 0);
    CHECK_INT(w.sb->state, STATE_DELETING);
    CHECK_INT(w.fails, 1);
    done();
}

TEST(a_sandbox_whose_record_cannot_be_saved_is_not_given)
{
    struct err e;

    begin(STATE_POOLED);
    w.save_fails = true;
    CHECK_INT(event(EV_GIVE, &e), 0);
    CHECK_INT(w.sb->state, STATE_DELETING);
    CHECK_INT(w.givens, 0);
    CHECK_INT(w.fails, 1);
    done();
}

TEST(a_pause_is_answered_when_all_is_frozen)
{
    struct err e;

    begin(STATE_RUNNING);
    CHECK_INT(event(EV_PAUSE, &e), 0);
    CHECK_INT(w.sb->state, STATE_PAUSING);
    CHECK_INT(w.oks, 0);
    CHECK_INT(event(EV_SNAPSHOT, &e), -1);
    CHECK_INT(e.kind, ERR_CONFLICT);
    CHECK_INT(event(EV_RESUME, &e), -1);
    w.frozen = true;
    CHECK_INT(event(EV_FREEZE_CHECK, &e), 0);
    CHECK_INT(w.sb->state, STATE_PAUSED);
    CHECK_INT(w.oks, 1);
    CHECK_INT(event(EV_SNAPSHOT, &e), 0);
    CHECK_INT(w.snapshots, 1);
    CHECK_INT(event(EV_RESUME, &e), 0);
    CHECK_INT(w.sb->state, STATE_RUNNING);
    done();
}

TEST(a_pause_that_takes_too_long_is_undone_unless_its_front_is_gone)
{
    struct err e;

    begin(STATE_PAUSING);
    w.sb->ask = ASK_FORGOTTEN; /* pause_by_ms has passed */
    CHECK_INT(event(EV_FREEZE_CHECK, &e), 0);
    CHECK_INT(w.sb->state, STATE_PAUSING);
    w.sb->ask = SEQ;
    CHECK_INT(event(EV_FREEZE_CHECK, &e), 0);
    CHECK_INT(w.sb->state, STATE_RUNNING);
    CHECK_INT(w.why, ERR_UNRESPONSIVE);
    done();
}

TEST(an_import_becomes_a_template_only_after_its_commit_and_death)
{
    struct err e;

    begin(STATE_IMPORTING);
    CHECK_INT(event(EV_COMMIT, &e), 0);
    CHECK_INT(w.sb->state, STATE_COMMITTING);
    CHECK_INT(w.commits, 0);
    CHECK_INT(event(EV_COMMIT, &e), -1);
    CHECK_INT(event(EV_FRONT_GONE, &e), 0);
    CHECK_INT(event(EV_INIT_DIED, &e), 0);
    CHECK_INT(w.commits, 1);
    CHECK_INT(w.oks, 1);
    CHECK_INT(w.sb->state, STATE_DELETING);
    done();
    begin(STATE_IMPORTING);
    CHECK_INT(event(EV_INIT_DIED, &e), 0);
    CHECK_INT(w.commits, 0);
    CHECK_INT(w.sb->state, STATE_DELETING);
    done();
}

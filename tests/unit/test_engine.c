/* test_engine.c - sandboxes: the join, their life, and what a keeper may do to us. */
#include "engine_rig.h"

#include "front/engine/inside.h"

#define MADE_FOR_MS (3600u * 1000u)

static void insert(struct rig *r, const char *id, enum store_state state, uint64_t ends_ms)
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

static int count_row(void *arg, const struct store_sandbox *row, struct err *e)
{
    struct rows *f = arg;

    (void)e;
    f->n++;
    f->state = (enum store_state)row->state;
    f->ends_ms = row->ends_ms;
    snprintf(f->reason, sizeof(f->reason), "%s", row->reason);
    return 0;
}

static struct rows rows(struct rig *r)
{
    struct rows f = {0};
    struct err e;

    CHECK_INT(store_sandbox_each(r->store, count_row, &f, &e), 0);
    return f;
}

static const char *state_of(struct rig *r, const char *id)
{
    const struct sandbox *s = engine_get(r->g, KEY, id);

    return s == NULL ? "none" : sandbox_state_name(s->state);
}

TEST(every_event_in_every_state_of_a_sandbox_is_decided)
{
    CHECK(life_is_decided());
}

/* ---- the join: what the row says, what the keeper has, what comes out ---- */

enum { NO = -1 };
static const struct cell {
    int row, has; /* enum store_state, enum keeper_state, or NO */
    const char *state;
    int destroyed, rows; /* rows: left in the end */
} cells[] = {
    /* clang-format off */
    {NO,             KEEPER_RUNNING, "none",    1, 0},
    {NO,             KEEPER_STOPPED, "none",    1, 0},
    {NO,             KEEPER_PAUSED,  "none",    1, 0},
    {STORE_RUNNING,  NO,             "stopped", 0, 1},
    {STORE_RUNNING,  KEEPER_RUNNING, "running", 0, 1},
    {STORE_RUNNING,  KEEPER_STOPPED, "stopped", 0, 1},
    {STORE_RUNNING,  KEEPER_PAUSED,  "paused",  0, 1},
    {STORE_PAUSED,   NO,             "stopped", 0, 1},
    {STORE_PAUSED,   KEEPER_RUNNING, "running", 0, 1},
    {STORE_PAUSED,   KEEPER_PAUSED,  "paused",  0, 1},
    {STORE_PAUSED,   KEEPER_STOPPED, "stopped", 0, 1},
    {STORE_STOPPED,  KEEPER_PAUSED,  "paused",  0, 1},
    {STORE_STOPPED,  NO,             "stopped", 0, 1},
    {STORE_STOPPED,  KEEPER_RUNNING, "running", 0, 1},
    {STORE_STOPPED,  KEEPER_STOPPED, "stopped", 0, 1},
    {STORE_DELETING, NO,             "none",    0, 0},
    {STORE_DELETING, KEEPER_RUNNING, "none",    1, 0},
    {STORE_DELETING, KEEPER_STOPPED, "none",    1, 0},
    {STORE_DELETING, KEEPER_PAUSED,  "none",    1, 0},
    /* clang-format on */
};

static int row_of(const char *state)
{
    return strcmp(state, "running") == 0  ? STORE_RUNNING
           : strcmp(state, "paused") == 0 ? STORE_PAUSED
                                          : STORE_STOPPED;
}

static void try_cell(const struct cell *c)
{
    struct rig r;
    uint32_t seq;
    union rig_msg m;

    rig_new(&r);
    if (c->row != NO)
        insert(&r, "sb", (enum store_state)c->row, 0);
    seq = rig_start(&r);
    if (c->has != NO) {
        struct keeper_sandbox box = keeper_box("sb", (enum keeper_state)c->has);

        keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    }
    rig_join(&r, seq);
    CHECK_STR(state_of(&r, "sb"), c->state);
    if (c->destroyed) {
        seq = keeper_hear(&r, KEEPER_DESTROY, &m);
        CHECK_STR(m.keeper_destroy.id, "sb");
        keeper_ok_to(&r, seq);
    }
    RIG_UNTIL(&r, rows(&r).n == c->rows);
    if (c->rows == 1)
        RIG_UNTIL(&r, (int)rows(&r).state == row_of(c->state));
    rig_free(&r);
}

TEST(the_join_does_what_each_cell_of_its_table_says)
{
    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        try_cell(&cells[i]);
}

/* One sandbox: its row, and what the keeper has of it. */
static void start_with(struct rig *r, enum store_state state, uint64_t ends_ms,
                       const struct keeper_sandbox *box)
{
    uint32_t seq;

    rig_new(r);
    insert(r, box->id, state, ends_ms);
    seq = rig_start(r);
    keeper_say(r, KEEPER_SANDBOX, seq, box);
    rig_join(r, seq);
}

TEST(a_sandbox_that_a_keeper_lost_says_why_it_is_stopped)
{
    struct rig r;
    struct keeper_sandbox box = keeper_box("sb", KEEPER_STOPPED);

    start_with(&r, STORE_RUNNING, 0, &box);
    CHECK_STR(engine_get(r.g, KEY, "sb")->reason, "the host restarted");
    CHECK_STR(rows(&r).reason, "the host restarted");
    rig_free(&r);
}

TEST(an_end_that_passed_while_the_daemon_was_down_comes_at_once)
{
    struct rig r;
    uint32_t seq;
    struct keeper_sandbox box = keeper_box("sb", KEEPER_RUNNING);
    union rig_msg m;

    start_with(&r, STORE_RUNNING, clock_real_ms() - 5000, &box);
    seq = keeper_hear(&r, KEEPER_DESTROY, &m);
    CHECK_INT(rows(&r).state, STORE_DELETING);
    keeper_ok_to(&r, seq);
    RIG_UNTIL(&r, rows(&r).n == 0);
    rig_free(&r);
}

/* We were killed between its boot and the row. */
TEST(one_that_was_booted_before_we_were_killed_lives_as_long_as_it_was_made_for)
{
    struct rig r;
    struct keeper_sandbox box = keeper_box("sb", KEEPER_RUNNING);

    start_with(&r, STORE_STOPPED, 0, &box);
    CHECK_STR(state_of(&r, "sb"), "running");
    CHECK(engine_get(r.g, KEY, "sb")->ends_ms > clock_real_ms() + MADE_FOR_MS / 2);
    CHECK_INT(rows(&r).ends_ms, engine_get(r.g, KEY, "sb")->ends_ms);
    rig_free(&r);
}

/* ---- life ---- */

static void start(struct rig *r)
{
    rig_new(r);
    rig_join(r, rig_start(r));
}

TEST(a_created_sandbox_is_durable_before_it_is_told_and_survives_a_restart)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct keeper_sandbox box = keeper_box("sb1", KEEPER_RUNNING);
    uint32_t seq;

    start(&r);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    CHECK_INT(rows(&r).n, 1);
    rig_stop(&r);
    peer_close(&monitor);
    seq = rig_start(&r);
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    rig_join(&r, seq);
    CHECK_STR(state_of(&r, "sb1"), "running");
    close(listen_fd);
    rig_free(&r);
}

TEST(another_key_does_not_see_it)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told t = {0};

    start(&r);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    CHECK(engine_get(r.g, "other", "sb1") == NULL);
    engine_delete(r.g, "other", "sb1", told_done, &t);
    RIG_UNTIL(&r, t.n == 1);
    CHECK_INT(t.e.kind, ERR_NOT_FOUND);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

TEST(a_create_that_the_store_refuses_is_destroyed_and_answered)
{
    struct rig r;
    struct create_opts o = {.key = KEY};
    struct keeper_sandbox box = keeper_box("sb1", KEEPER_RUNNING);
    struct told t = {0};
    union rig_msg m;
    uint32_t seq;

    start(&r);
    insert(&r, "sb1", STORE_RUNNING, 0); /* behind the engine's back: the row is not unique */
    engine_create(r.g, &o, told_sandbox, &t);
    seq = keeper_hear(&r, KEEPER_CREATE, &m);
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    keeper_hear(&r, KEEPER_DESTROY, &m);
    CHECK_STR(m.keeper_destroy.id, "sb1");
    RIG_UNTIL(&r, t.n == 1);
    CHECK(t.failed);
    rig_free(&r);
}

TEST(more_creations_than_configured_are_told_to_try_again)
{
    struct rig r;
    struct create_opts o = {.key = KEY};
    struct told a = {0}, b = {0};
    union rig_msg m;

    rig_new(&r);
    r.config.creates = 1;
    rig_join(&r, rig_start(&r));
    engine_create(r.g, &o, told_sandbox, &a);
    engine_create(r.g, &o, told_sandbox, &b);
    CHECK_INT(b.n, 0); /* never from inside the call */
    RIG_UNTIL(&r, b.n == 1);
    CHECK_INT(b.e.kind, ERR_UNAVAILABLE);
    CHECK_HAS(b.e.msg, "try again");
    keeper_hear(&r, KEEPER_CREATE, &m);
    rig_free(&r);
}

TEST(a_sandbox_that_comes_after_the_client_was_told_it_took_too_long_is_destroyed)
{
    struct rig r;
    struct create_opts o = {.key = KEY};
    struct keeper_sandbox box = keeper_box("late1", KEEPER_RUNNING);
    struct told t = {0};
    union rig_msg m;
    uint32_t seq;

    start(&r);
    clock_hold(clock_mono_ns(), clock_real_ms());
    engine_create(r.g, &o, told_sandbox, &t);
    seq = keeper_hear(&r, KEEPER_CREATE, &m);
    clock_hold(clock_mono_ns() + 31ull * 1000000000u, clock_real_ms() + 31000);
    RIG_UNTIL(&r, t.n == 1);
    CHECK_INT(t.e.kind, ERR_UNAVAILABLE);
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    keeper_hear(&r, KEEPER_DESTROY, &m);
    CHECK_STR(m.keeper_destroy.id, "late1");
    CHECK_INT(t.n, 1);
    CHECK(engine_get(r.g, KEY, "late1") == NULL);
    rig_free(&r);
}

TEST(two_deletes_of_one_sandbox_both_succeed_and_ask_once)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told a = {0}, b = {0}, c = {0};
    union rig_msg m;
    uint32_t seq;

    start(&r);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    engine_delete(r.g, KEY, "sb1", told_done, &a);
    engine_delete(r.g, KEY, "sb1", told_done, &b);
    CHECK_INT(rows(&r).state, STORE_DELETING);
    CHECK(engine_get(r.g, KEY, "sb1") == NULL);
    seq = keeper_hear(&r, KEEPER_DESTROY, &m);
    rig_settle(&r);
    CHECK_INT(a.n + b.n, 0);
    keeper_ok_to(&r, seq);
    RIG_UNTIL(&r, a.n == 1 && b.n == 1);
    CHECK_INT(a.failed + b.failed, 0);
    engine_delete(r.g, KEY, "sb1", told_done, &c);
    RIG_UNTIL(&r, c.n == 1);
    CHECK_INT(c.e.kind, ERR_NOT_FOUND);
    RIG_UNTIL(&r, rows(&r).n == 0);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

TEST(a_sandbox_that_cannot_be_destroyed_stays_visible_and_is_tried_again)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told a = {0}, b = {0};
    union rig_msg m;
    uint32_t seq;

    start(&r);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    engine_delete(r.g, KEY, "sb1", told_done, &a);
    seq = keeper_hear(&r, KEEPER_DESTROY, &m);
    keeper_say(&r, KEEPER_FAIL, seq, &(struct keeper_fail){.code = "internal", .message = "busy"});
    RIG_UNTIL(&r, a.n == 1);
    CHECK(a.failed);
    CHECK_STR(state_of(&r, "sb1"), "stopped");
    engine_delete(r.g, KEY, "sb1", told_done, &b);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m));
    RIG_UNTIL(&r, b.n == 1);
    CHECK_INT(b.failed, 0);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

TEST(a_dead_init_stops_the_sandbox_and_resume_boots_it_with_a_new_boot_id)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told a = {0}, b = {0};
    struct keeper_sandbox box = keeper_box("sb1", KEEPER_RUNNING);
    union rig_msg m;
    uint32_t seq;

    start(&r);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    engine_resume(r.g, KEY, "sb1", RESUME_AS_MADE, 0, told_sandbox, &a);
    RIG_UNTIL(&r, a.n == 1);
    CHECK_INT(a.e.kind, ERR_CONFLICT);
    keeper_say(&r, KEEPER_DIED, 0, &(struct keeper_died){.id = "sb1", .reason = "out of memory"});
    RIG_UNTIL(&r, strcmp(state_of(&r, "sb1"), "stopped") == 0);
    CHECK_STR(rows(&r).reason, "out of memory");
    engine_resume(r.g, KEY, "sb1", RESUME_AS_MADE, 0, told_sandbox, &b);
    seq = keeper_hear(&r, KEEPER_BOOT, &m);
    box.boot_id = "boot-2";
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    RIG_UNTIL(&r, b.n == 1);
    CHECK_STR(b.state, "running");
    CHECK_STR(engine_get(r.g, KEY, "sb1")->boot_id, "boot-2");
    CHECK_INT(rows(&r).state, STORE_RUNNING);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

/* The keeper refuses to halt what has ended already, and is asked before we know. */
TEST(an_init_that_dies_as_it_is_to_be_stopped_leaves_a_stopped_sandbox_that_boots_again)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told a = {0}, b = {0};
    struct keeper_sandbox box = keeper_box("sb1", KEEPER_RUNNING);
    struct keeper_fail no = {.code = "conflict", .message = "it is stopped already"};
    union rig_msg m;
    uint32_t seq;

    start(&r);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    engine_pause(r.g, KEY, "sb1", false, told_sandbox, &a);
    seq = keeper_hear(&r, KEEPER_HALT, &m);
    keeper_say(&r, KEEPER_DIED, 0, &(struct keeper_died){.id = "sb1", .reason = "out of memory"});
    keeper_say(&r, KEEPER_FAIL, seq, &no);
    RIG_UNTIL(&r, a.n == 1);
    rig_settle(&r);
    CHECK_STR(a.state, "stopped");
    CHECK_STR(state_of(&r, "sb1"), "stopped");
    CHECK_STR(rows(&r).reason, "out of memory");
    engine_resume(r.g, KEY, "sb1", RESUME_AS_MADE, 0, told_sandbox, &b);
    keeper_say(&r, KEEPER_SANDBOX, keeper_hear(&r, KEEPER_BOOT, &m), &box);
    RIG_UNTIL(&r, b.n == 1);
    CHECK_STR(b.state, "running");
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

TEST(a_sandbox_deleted_while_it_boots_is_destroyed_when_the_boot_has_ended)
{
    struct rig r;
    struct told a = {0}, b = {0};
    struct keeper_sandbox box = keeper_box("sb", KEEPER_STOPPED);
    union rig_msg m;
    uint32_t seq;

    start_with(&r, STORE_STOPPED, 0, &box);
    engine_resume(r.g, KEY, "sb", RESUME_AS_MADE, 0, told_sandbox, &a);
    seq = keeper_hear(&r, KEEPER_BOOT, &m);
    engine_delete(r.g, KEY, "sb", told_done, &b);
    RIG_UNTIL(&r, a.n == 1);
    CHECK_INT(a.e.kind, ERR_GONE);
    box.state = KEEPER_RUNNING;
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m));
    RIG_UNTIL(&r, b.n == 1);
    CHECK_INT(b.failed, 0);
    rig_free(&r);
}

TEST(a_timeout_that_says_stop_halts_and_keeps_the_sandbox)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    union rig_msg m;
    uint32_t seq;

    start(&r);
    rig_create(&r, "sb1", 20, SANDBOX_END_STOP, &listen_fd, &monitor);
    seq = keeper_hear(&r, KEEPER_HALT, &m);
    CHECK_STR(m.keeper_halt.id, "sb1");
    keeper_ok_to(&r, seq);
    RIG_UNTIL(&r, strcmp(state_of(&r, "sb1"), "stopped") == 0);
    CHECK_HAS(engine_get(r.g, KEY, "sb1")->reason, "timeout");
    CHECK_INT(rows(&r).ends_ms, 0);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

/* The end that has come is not that of the life that follows. */
TEST(a_resume_while_it_is_being_stopped_makes_it_live_as_long_as_it_was_made_for)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct keeper_sandbox box = keeper_box("sb1", KEEPER_RUNNING);
    struct told a = {0};
    struct err e;
    union rig_msg m;
    uint32_t seq;

    start(&r);
    rig_create(&r, "sb1", MADE_FOR_MS, SANDBOX_END_STOP, &listen_fd, &monitor);
    CHECK_INT(engine_set_timeout(r.g, KEY, "sb1", 1, &e), 0);
    seq = keeper_hear(&r, KEEPER_HALT, &m);
    engine_resume(r.g, KEY, "sb1", RESUME_AS_MADE, 0, told_sandbox, &a);
    keeper_ok_to(&r, seq);
    keeper_say(&r, KEEPER_SANDBOX, keeper_hear(&r, KEEPER_BOOT, &m), &box);
    RIG_UNTIL(&r, a.n == 1);
    CHECK_STR(a.state, "running");
    CHECK(engine_get(r.g, KEY, "sb1")->ends_ms > clock_real_ms() + MADE_FOR_MS / 2);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

TEST(a_timeout_that_was_set_while_it_boots_is_the_one_it_has_then)
{
    struct rig r;
    struct told a = {0};
    struct keeper_sandbox box = keeper_box("sb", KEEPER_STOPPED);
    struct err e;
    union rig_msg m;
    uint32_t seq;

    start_with(&r, STORE_STOPPED, 0, &box);
    engine_resume(r.g, KEY, "sb", RESUME_AS_MADE, 0, told_sandbox, &a);
    seq = keeper_hear(&r, KEEPER_BOOT, &m);
    CHECK_INT(engine_set_timeout(r.g, KEY, "sb", 10 * MADE_FOR_MS, &e), 0);
    box.state = KEEPER_RUNNING;
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    RIG_UNTIL(&r, a.n == 1);
    CHECK(engine_get(r.g, KEY, "sb")->ends_ms > clock_real_ms() + 9 * MADE_FOR_MS);
    CHECK_INT(rows(&r).ends_ms, engine_get(r.g, KEY, "sb")->ends_ms);
    rig_free(&r);
}

TEST(a_timeout_can_be_moved_and_taken_away)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct err e;

    start(&r);
    rig_create(&r, "sb1", 60000, SANDBOX_END_DELETE, &listen_fd, &monitor);
    CHECK_INT(engine_set_timeout(r.g, KEY, "sb1", 120000, &e), 0);
    CHECK(rows(&r).ends_ms > clock_real_ms() + 100000);
    CHECK_INT(engine_set_timeout(r.g, KEY, "sb1", 0, &e), 0);
    CHECK_INT(rows(&r).ends_ms, 0);
    CHECK_INT(engine_set_timeout(r.g, KEY, "no", 0, &e), -1);
    CHECK_INT(e.kind, ERR_NOT_FOUND);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

/* ---- pause ---- */

/* The kernel remembers it; what follows is for the end it has no more. */
TEST(the_row_follows_a_pause_and_a_resume)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told a = {0}, b = {0};
    union rig_msg m;
    uint32_t seq;

    start(&r);
    rig_create(&r, "sb1", 60000, SANDBOX_END_DELETE, &listen_fd, &monitor);
    engine_pause(r.g, KEY, "sb1", true, told_sandbox, &a);
    seq = keeper_hear(&r, KEEPER_PAUSE, &m);
    CHECK_INT(rows(&r).state, STORE_RUNNING);
    keeper_ok_to(&r, seq);
    RIG_UNTIL(&r, a.n == 1);
    CHECK_STR(a.state, "paused");
    RIG_UNTIL(&r, rows(&r).state == STORE_PAUSED);
    CHECK_INT(rows(&r).ends_ms, 0);
    engine_resume(r.g, KEY, "sb1", RESUME_FOR, 120000, told_sandbox, &b);
    seq = keeper_hear(&r, KEEPER_THAW, &m);
    CHECK_INT(rows(&r).state, STORE_PAUSED);
    keeper_ok_to(&r, seq);
    RIG_UNTIL(&r, b.n == 1);
    RIG_UNTIL(&r, rows(&r).state == STORE_RUNNING);
    CHECK(rows(&r).ends_ms > clock_real_ms() + 100000);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

TEST(a_pause_that_the_keeper_refuses_leaves_it_running_with_its_end)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told a = {0};
    struct keeper_fail no = {.code = "unresponsive", .message = "a process does not stop"};
    union rig_msg m;

    start(&r);
    rig_create(&r, "sb1", 60000, SANDBOX_END_DELETE, &listen_fd, &monitor);
    engine_pause(r.g, KEY, "sb1", true, told_sandbox, &a);
    keeper_say(&r, KEEPER_FAIL, keeper_hear(&r, KEEPER_PAUSE, &m), &no);
    RIG_UNTIL(&r, a.n == 1);
    CHECK_INT(a.e.kind, ERR_UNRESPONSIVE);
    CHECK_STR(state_of(&r, "sb1"), "running");
    CHECK(rows(&r).ends_ms > clock_real_ms());
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

static void told_exit(void *arg, const struct init_exit *m, const struct err *e)
{
    (void)m;
    told_done(arg, e);
}

TEST(a_resume_that_the_keeper_refuses_leaves_it_paused_and_whoever_waits_waiting)
{
    struct rig r;
    int listen_fd;
    struct peer monitor, waits;
    struct told a = {0}, b = {0}, over = {0};
    struct keeper_fail no = {.code = "conflict", .message = "something else is being done"};
    struct err e;
    union rig_msg m;
    uint32_t seq, wait;

    start(&r);
    rig_create(&r, "sb1", 60000, SANDBOX_END_DELETE, &listen_fd, &monitor);
    process_wait(r.g, KEY, "sb1", "p", 0, told_exit, &over);
    waits = init_accept(&r, listen_fd);
    init_hello_to(&waits);
    wait = init_hear(&r, &waits, INIT_WAIT, &m);
    engine_pause(r.g, KEY, "sb1", true, told_sandbox, &a);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_PAUSE, &m));
    RIG_UNTIL(&r, a.n == 1);
    engine_resume(r.g, KEY, "sb1", RESUME_AS_MADE, 0, told_sandbox, &b);
    seq = keeper_hear(&r, KEEPER_THAW, &m);
    CHECK_INT(engine_set_timeout(r.g, KEY, "sb1", 1000, &e), -1);
    CHECK_INT(e.kind, ERR_CONFLICT);
    keeper_say(&r, KEEPER_FAIL, seq, &no);
    RIG_UNTIL(&r, b.n == 1);
    CHECK_INT(b.e.kind, ERR_CONFLICT);
    CHECK_STR(state_of(&r, "sb1"), "paused");
    CHECK_INT(engine_get(r.g, KEY, "sb1")->ends_ms, 0);
    CHECK_INT(over.n, 0);
    init_say(&waits, INIT_EXIT, wait, &(struct init_exit){.id = "p"});
    RIG_UNTIL(&r, over.n == 1);
    CHECK_INT(over.failed, 0);
    peer_close(&waits);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

TEST(a_resume_without_memory_halts_it_first_and_one_that_cannot_be_halted_stays_paused)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told a = {0}, b = {0}, c = {0};
    struct keeper_fail no = {.code = "conflict", .message = "something else is being done"};
    union rig_msg m;

    start(&r);
    rig_create(&r, "sb1", 60000, SANDBOX_END_DELETE, &listen_fd, &monitor);
    engine_pause(r.g, KEY, "sb1", true, told_sandbox, &a);
    engine_connect(r.g, KEY, "sb1", false, 1000, told_sandbox, &b); /* while it is on its way */
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_PAUSE, &m));
    keeper_say(&r, KEEPER_FAIL, keeper_hear(&r, KEEPER_HALT, &m), &no);
    RIG_UNTIL(&r, a.n == 1 && b.n == 1);
    CHECK_INT(b.e.kind, ERR_CONFLICT);
    CHECK_STR(state_of(&r, "sb1"), "paused");
    engine_resume(r.g, KEY, "sb1", RESUME_COLD_FOR, 120000, told_sandbox, &c);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_HALT, &m));
    keeper_hear(&r, KEEPER_BOOT, &m);
    CHECK_INT(c.n, 0); /* it is told when it runs */
    CHECK_STR(state_of(&r, "sb1"), "stopped");
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

TEST(a_resume_while_it_is_being_paused_waits_for_that_and_a_second_pause_does_not)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told a = {0}, b = {0}, c = {0};
    union rig_msg m;
    uint32_t seq;

    start(&r);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    engine_pause(r.g, KEY, "sb1", true, told_sandbox, &a);
    seq = keeper_hear(&r, KEEPER_PAUSE, &m);
    engine_connect(r.g, KEY, "sb1", true, 60000, told_sandbox, &b);
    engine_pause(r.g, KEY, "sb1", true, told_sandbox, &c);
    RIG_UNTIL(&r, c.n == 1);
    CHECK_INT(c.e.kind, ERR_CONFLICT);
    keeper_ok_to(&r, seq);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_THAW, &m));
    RIG_UNTIL(&r, a.n == 1 && b.n == 1);
    CHECK_STR(b.state, "running");
    CHECK(engine_get(r.g, KEY, "sb1")->ends_ms > clock_real_ms());
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

static void ignore_started(void *arg, const struct init_started *m, const struct err *e)
{
    (void)m;
    told_done(arg, e);
}

/* A connection that init has not greeted yet: the request waits on our side, and must
 * neither hold up a pause nor be sent into it. */
TEST(a_start_that_was_not_sent_before_a_pause_is_refused_and_does_not_hold_it_up)
{
    const char *argv[] = {"true", NULL};
    struct process_opts o = {.argv = argv};
    struct rig r;
    int listen_fd;
    struct peer monitor, late;
    struct told a = {0}, started = {0};
    union rig_msg m;

    start(&r);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    box_find(r.g, "sb1")->peer.version = 0; /* as after a restart of its init */
    process_start(r.g, KEY, "sb1", &o, ignore_started, &started);
    late = init_accept(&r, listen_fd);
    engine_pause(r.g, KEY, "sb1", true, told_sandbox, &a);
    init_hello_to(&late);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_PAUSE, &m));
    RIG_UNTIL(&r, a.n == 1 && started.n == 1);
    CHECK_STR(a.state, "paused");
    CHECK_INT(started.e.kind, ERR_CONFLICT);
    peer_close(&late);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

TEST(connecting_to_one_that_runs_only_makes_it_live_longer)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told a = {0};
    uint64_t end;

    start(&r);
    rig_create(&r, "sb1", 60000, SANDBOX_END_DELETE, &listen_fd, &monitor);
    end = engine_get(r.g, KEY, "sb1")->ends_ms;
    engine_connect(r.g, KEY, "sb1", true, 1000, told_sandbox, &a);
    RIG_UNTIL(&r, a.n == 1);
    CHECK_INT(engine_get(r.g, KEY, "sb1")->ends_ms, end);
    engine_connect(r.g, KEY, "sb1", true, 600000, told_sandbox, &a);
    RIG_UNTIL(&r, a.n == 2);
    CHECK(engine_get(r.g, KEY, "sb1")->ends_ms > end);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

TEST(a_sandbox_deleted_while_it_is_paused_is_destroyed_when_that_has_ended)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told a = {0}, b = {0};
    union rig_msg m;
    uint32_t seq;

    start(&r);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    engine_pause(r.g, KEY, "sb1", true, told_sandbox, &a);
    seq = keeper_hear(&r, KEEPER_PAUSE, &m);
    engine_delete(r.g, KEY, "sb1", told_done, &b);
    RIG_UNTIL(&r, a.n == 1);
    CHECK_INT(a.e.kind, ERR_GONE);
    keeper_ok_to(&r, seq);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m));
    RIG_UNTIL(&r, b.n == 1);
    CHECK_INT(b.failed, 0);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

/* ---- lists ---- */

static void add_id(void *arg, const struct sandbox *s)
{
    strcat(strcat(arg, s->id), " ");
}

TEST(lists_are_paged_oldest_first_and_a_deleted_row_does_not_break_a_cursor)
{
    struct rig r;
    char page[64] = "", *next = NULL, *end = NULL;
    struct list_opts o = {.key = KEY, .limit = 2};
    struct told t = {0};
    union rig_msg m;
    uint32_t seq;
    struct err e;

    rig_new(&r);
    for (int i = 0; i < 5; i++)
        insert(&r, (char[]){'s', (char)('e' - i), 0}, STORE_STOPPED, 0);
    seq = rig_start(&r);
    rig_join(&r, seq);
    CHECK_INT(engine_list(r.g, &o, add_id, page, &next, &e), 0);
    CHECK_STR(page, "se sd ");
    engine_delete(r.g, KEY, "sd", told_done, &t);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m));
    RIG_UNTIL(&r, t.n == 1);
    o.after = next;
    page[0] = '\0';
    CHECK_INT(engine_list(r.g, &o, add_id, page, &end, &e), 0);
    CHECK_STR(page, "sc sb ");
    free(next);
    o.after = end;
    page[0] = '\0';
    CHECK_INT(engine_list(r.g, &o, add_id, page, &next, &e), 0);
    CHECK_STR(page, "sa ");
    CHECK(next == NULL);
    free(end);
    o.after = "nonsense";
    CHECK_INT(engine_list(r.g, &o, add_id, page, &next, &e), -1);
    CHECK_INT(e.kind, ERR_INVALID);
    rig_free(&r);
}

TEST(lists_are_paged_newest_first_too_and_by_several_states_with_cursors_of_their_own)
{
    struct rig r;
    char page[64] = "", *next = NULL, *end = NULL;
    struct list_opts o = {.key = KEY, .limit = 2, .newest_first = true};
    uint32_t seq;
    struct err e;

    rig_new(&r);
    for (int i = 0; i < 3; i++)
        insert(&r, (char[]){'s', (char)('a' + i), 0}, STORE_STOPPED, 0);
    seq = rig_start(&r);
    rig_join(&r, seq);
    CHECK_INT(engine_list(r.g, &o, add_id, page, &next, &e), 0);
    CHECK_STR(page, "sc sb ");
    o.after = next;
    page[0] = '\0';
    CHECK_INT(engine_list(r.g, &o, add_id, page, &end, &e), 0);
    CHECK_STR(page, "sa ");
    CHECK(end == NULL);
    o.newest_first = false;
    CHECK_INT(engine_list(r.g, &o, add_id, page, &end, &e), -1);
    CHECK_INT(e.kind, ERR_INVALID);
    free(next);
    o = (struct list_opts){.key = KEY, .limit = 9, .states = SANDBOX_BIT(SANDBOX_RUNNING)};
    page[0] = '\0';
    CHECK_INT(engine_list(r.g, &o, add_id, page, &next, &e), 0);
    CHECK_STR(page, "");
    o.states |= SANDBOX_BIT(SANDBOX_STOPPED);
    CHECK_INT(engine_list(r.g, &o, add_id, page, &next, &e), 0);
    CHECK_STR(page, "sa sb sc ");
    CHECK_STR(engine_find(r.g, "sb")->id, "sb");
    CHECK(engine_find(r.g, "sx") == NULL);
    rig_free(&r);
}

/* ---- events ---- */

struct heard {
    int n, gaps;
    uint64_t last;
    char kinds[512];
};

static void hear(void *arg, const struct engine_event *ev, bool gap)
{
    struct heard *h = arg;

    h->n++;
    h->gaps += gap;
    h->last = ev->seq;
    strcat(strcat(h->kinds, ev->kind), " ");
}

TEST(events_are_replayed_after_a_cursor_and_their_numbers_go_on_after_a_restart)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct heard h = {0}, again = {0}, restarted = {0};
    struct keeper_sandbox box = keeper_box("sb1", KEEPER_STOPPED);
    uint32_t seq;

    start(&r);
    engine_watch(r.g, KEY, 0, hear, &h);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    init_say(&monitor, INIT_EVENT, 1, &(struct init_event){.kind = INIT_EVENT_STARTED, .id = "p"});
    RIG_UNTIL(&r, h.n == 2);
    CHECK_STR(h.kinds, "sandbox.created process.started ");
    CHECK_INT(h.gaps, 0);
    engine_watch(r.g, KEY, h.last - 1, hear, &again);
    RIG_UNTIL(&r, again.n == 1);
    CHECK_INT(again.last, h.last);
    rig_stop(&r);
    peer_close(&monitor);
    seq = rig_start(&r);
    engine_watch(r.g, KEY, h.last, hear, &restarted);
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    rig_join(&r, seq);
    RIG_UNTIL(&r, restarted.n == 1);
    CHECK(restarted.last > h.last);
    CHECK_INT(restarted.gaps, 1);
    close(listen_fd);
    rig_free(&r);
}

static void count_event(void *arg, const struct engine_event *ev, bool gap)
{
    (void)ev;
    (void)gap;
    (*(int *)arg)++;
}

TEST(a_flood_of_events_from_one_init_is_slowed_down)
{
    struct rig r;
    int listen_fd, n = 0;
    struct peer monitor;
    struct init_event ev = {.kind = INIT_EVENT_EXITED, .id = "p"};

    start(&r);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    clock_hold(clock_mono_ns(), clock_real_ms());
    engine_watch(r.g, KEY, UINT64_MAX, count_event, &n);
    for (int i = 0; i < 300; i++) {
        init_say(&monitor, INIT_EVENT, 1, &ev);
        if (i % 50 == 0) /* a socket takes few messages at a time */
            rig_turn(&r);
    }
    for (int i = 0; i < 50; i++)
        rig_turn(&r);
    CHECK(n > 0 && n <= 200);
    clock_hold(clock_mono_ns() + 2000000000u, clock_real_ms());
    RIG_UNTIL(&r, n == 300);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

/* ---- a keeper that is gone, or worse ---- */

TEST(a_keeper_that_closes_is_told_once_as_lost)
{
    struct rig r;

    start(&r);
    peer_close(&r.keeper);
    RIG_UNTIL(&r, r.lost == 1);
    rig_settle(&r);
    CHECK_INT(r.lost, 1);
    CHECK_HAS(r.why.msg, "gone");
    rig_free(&r);
}

TEST(an_answer_that_nobody_asked_for_is_the_end_of_the_keeper)
{
    struct rig r;

    start(&r);
    keeper_ok_to(&r, 77);
    RIG_UNTIL(&r, r.lost == 1);
    rig_free(&r);
}

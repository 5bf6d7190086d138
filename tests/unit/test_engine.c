/* test_engine.c - sandboxes: the join, lists, events, and what a keeper may do to us. */
#include "engine_rows.h"

#include <sqlite3.h>

#include "front/engine/internal.h"

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
    {NO,             KEEPER_DAMAGED, "none",    1, 0},
    {STORE_DELETING, KEEPER_DAMAGED, "none",    1, 0},
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

TEST(the_join_follows_each_cell_of_its_table)
{
    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        try_cell(&cells[i]);
}

/* The row is what it may become again; its end does not count. */
TEST(a_damaged_sandbox_keeps_its_row_and_has_no_end)
{
    for (int row = 0; row < STORE_STATE_COUNT; row++) {
        struct keeper_sandbox box = keeper_box("sb", KEEPER_DAMAGED);
        struct rig r;
        struct err e;

        if (row == STORE_DELETING)
            continue;
        start_with(&r, (enum store_state)row, clock_real_ms() - 5000, &box);
        CHECK_STR(state_of(&r, "sb"), "damaged");
        CHECK_INT(loop_turn(r.loop, 0, &e), 0);
        CHECK_STR(state_of(&r, "sb"), "damaged");
        CHECK_INT(rows(&r).n, 1);
        CHECK_INT(rows(&r).state, row);
        rig_free(&r);
    }
}

static void recovered(struct rig *r, enum keeper_state state, const char *expected)
{
    struct keeper_sandbox box = keeper_box("sb", KEEPER_DAMAGED), now = keeper_box("sb", state);
    struct told t = {0};
    union rig_msg m;
    uint32_t seq;

    start_with(r, STORE_RUNNING, clock_real_ms() - 5000, &box);
    engine_recover((struct ref){r->g, KEY, "sb"}, told_sandbox, &t);
    seq = keeper_hear(r, KEEPER_RECOVER, &m);
    CHECK_STR(m.keeper_recover.id, "sb");
    CHECK_STR(m.keeper_recover.boot_id, "boot-1");
    /* Killed from here on, the next front finds it recovered and goes by the row. */
    CHECK(rows(r).ends_ms > clock_real_ms());
    CHECK_INT(rows(r).state, STORE_RUNNING);
    keeper_say(r, KEEPER_SANDBOX, seq, &now);
    RIG_UNTIL(r, t.n == 1);
    CHECK_STR(t.state, expected);
    CHECK_STR(state_of(r, "sb"), expected);
    CHECK_INT(rows(r).state, row_of(expected));
}

TEST(a_recovered_sandbox_has_the_keepers_state_and_is_not_deleted_by_an_expired_timeout)
{
    struct rig r;

    recovered(&r, KEEPER_RUNNING, "running");
    CHECK(rows(&r).ends_ms > clock_real_ms());
    rig_free(&r);
    recovered(&r, KEEPER_STOPPED, "stopped");
    CHECK(rows(&r).ends_ms > clock_real_ms());
    rig_free(&r);
    recovered(&r, KEEPER_PAUSED, "paused");
    CHECK_INT(rows(&r).ends_ms, 0);
    rig_free(&r);
}

static int store_forget_joined(struct rig *r)
{
    char path[64];
    sqlite3 *db;
    struct err e;
    int bad;

    store_close(r->store);
    snprintf(path, sizeof(path), "%s/cove.db", r->dir);
    bad = sqlite3_open(path, &db) != SQLITE_OK ||
          sqlite3_exec(db, "DELETE FROM counters WHERE name = 'joined'", NULL, NULL, NULL) !=
              SQLITE_OK;
    sqlite3_close(db);
    return bad ? -1 : store_open(path, &r->store, &e);
}

TEST(a_new_database_that_meets_sandboxes_destroys_none_of_them)
{
    struct keeper_sandbox box = keeper_box("sb", KEEPER_RUNNING);
    struct rig r;
    struct err e;
    uint32_t seq;

    rig_new(&r);
    CHECK_INT(store_forget_joined(&r), 0);
    for (int i = 0; i < 2; i++) { /* nor at the second try */
        seq = rig_start(&r);
        keeper_say(&r, KEEPER_SANDBOX, seq, &box);
        keeper_say(&r, KEEPER_END, seq, &(struct keeper_end){0});
        keeper_say(&r, KEEPER_END, r.snapshots_seq, &(struct keeper_end){0});
        RIG_UNTIL(&r, r.lost);
        CHECK(!r.ready);
        CHECK_INT(recv(r.keeper.fd, &e, 1, MSG_DONTWAIT), -1); /* nothing was asked for */
        rig_stop(&r);
        r.lost = 0;
    }
    free(r.config.accept);
    r.config.accept = strdup("lost-database");
    seq = rig_start(&r);
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    rig_join(&r, seq);
    CHECK_INT(rows(&r).n, 1);
    CHECK_STR(engine_get((struct ref){r.g, "root", "sb"})->template, "base");
    rig_free(&r);
}

TEST(a_sandbox_that_a_keeper_lost_says_why_it_is_stopped)
{
    struct rig r;
    struct keeper_sandbox box = keeper_box("sb", KEEPER_STOPPED);

    start_with(&r, STORE_RUNNING, 0, &box);
    CHECK_STR(engine_get((struct ref){r.g, KEY, "sb"})->reason, "the host restarted");
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
TEST(a_sandbox_booted_before_a_kill_gets_its_original_lifetime)
{
    struct rig r;
    struct keeper_sandbox box = keeper_box("sb", KEEPER_RUNNING);

    start_with(&r, STORE_STOPPED, 0, &box);
    CHECK_STR(state_of(&r, "sb"), "running");
    CHECK(engine_get((struct ref){r.g, KEY, "sb"})->ends_ms > clock_real_ms() + MADE_FOR_MS / 2);
    CHECK_INT(rows(&r).ends_ms, engine_get((struct ref){r.g, KEY, "sb"})->ends_ms);
    rig_free(&r);
}

/* ---- lists ---- */

static void add_id(void *arg, const struct sandbox *s)
{
    strcat(strcat(arg, s->id), " ");
}

TEST(a_walk_in_steps_meets_every_sandbox_once_also_if_some_are_deleted_between_steps)
{
    struct rig r;
    char met[64] = "";
    struct told t = {0};
    union rig_msg m;
    uint64_t after = 0;

    rig_new(&r);
    for (int i = 0; i < 5; i++)
        insert(&r, (char[]){'s', (char)('a' + i), 0}, STORE_STOPPED, 0);
    rig_join(&r, rig_start(&r));
    CHECK(engine_each_some(r.g, &after, 2, add_id, met));
    CHECK_STR(met, "sa sb ");
    engine_delete((struct ref){r.g, KEY, "sb"}, told_done, &t);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m));
    RIG_UNTIL(&r, t.n == 1);
    CHECK(engine_each_some(r.g, &after, 2, add_id, met));
    CHECK(!engine_each_some(r.g, &after, 2, add_id, met));
    CHECK_STR(met, "sa sb sc sd se ");
    CHECK(!engine_each_some(r.g, &after, 2, add_id, met));
    rig_free(&r);
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
    engine_delete((struct ref){r.g, KEY, "sd"}, told_done, &t);
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

static void hear(void *arg, const struct engine_event *ev)
{
    struct heard *h = arg;

    h->last = ev->seq;
    if (ev->kind == NULL) {
        h->gaps++;
        return;
    }
    h->n++;
    strcat(strcat(h->kinds, ev->kind), " ");
}

TEST(events_are_replayed_after_a_cursor_and_keep_their_numbering_after_a_restart)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct heard h = {0}, again = {0}, restarted = {0}, behind = {0};
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
    RIG_UNTIL(&r, restarted.gaps == 1);
    CHECK_INT(restarted.n, 0);
    engine_watch(r.g, KEY, restarted.last, hear, &behind);
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    rig_join(&r, seq);
    RIG_UNTIL(&r, restarted.n == 1);
    CHECK(restarted.last > h.last);
    CHECK_INT(restarted.gaps, 1);
    RIG_UNTIL(&r, behind.n == 1);
    CHECK_INT(behind.gaps, 0);
    close(listen_fd);
    rig_free(&r);
}

TEST(an_init_that_is_lost_sight_of_is_a_gap_in_the_events_of_its_sandbox)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct heard h = {0};
    union rig_msg m;

    start(&r);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    engine_watch(r.g, KEY, UINT64_MAX, hear, &h);
    peer_close(&monitor);
    monitor = init_accept(&r, listen_fd);
    init_hello_to(&monitor);
    init_hear(&r, &monitor, INIT_MONITOR, &m);
    init_say(&monitor, INIT_EVENT, 1, &(struct init_event){.kind = INIT_EVENT_EXITED, .id = "p"});
    RIG_UNTIL(&r, h.n == 1);
    CHECK_INT(h.gaps, 1);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

static void keep_time(void *arg, const struct engine_event *ev)
{
    *(uint64_t *)arg = ev->at_ms;
}

TEST(an_event_has_the_time_at_which_it_happened_if_that_can_be)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    uint64_t now = clock_real_ms(), at = 0;
    struct init_event ev = {.kind = INIT_EVENT_EXITED, .id = "p", .at_ms = now + 1000};

    start(&r);
    clock_hold(clock_mono_ns(), now);
    rig_create(&r, "sb1", 0, SANDBOX_END_DELETE, &listen_fd, &monitor);
    engine_watch(r.g, KEY, UINT64_MAX, keep_time, &at);
    clock_hold(clock_mono_ns(), now + 5000);
    init_say(&monitor, INIT_EVENT, 1, &ev);
    RIG_UNTIL(&r, at != 0);
    CHECK_INT(at - now, 1000);
    ev.at_ms = now + 9000;
    init_say(&monitor, INIT_EVENT, 1, &ev);
    RIG_UNTIL(&r, at != now + 1000);
    CHECK_INT(at - now, 5000);
    clock_release();
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

static void count_event(void *arg, const struct engine_event *ev)
{
    (void)ev;
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

TEST(a_closed_connection_of_the_keeper_is_reported_once)
{
    struct rig r;

    start(&r);
    peer_close(&r.keeper);
    RIG_UNTIL(&r, r.lost == 1);
    rig_settle(&r);
    CHECK_INT(r.lost, 1);
    CHECK_HAS(r.why.msg, "closed");
    rig_free(&r);
}

TEST(an_unexpected_answer_of_the_keeper_ends_the_connection)
{
    struct rig r;

    start(&r);
    keeper_ok_to(&r, 77);
    RIG_UNTIL(&r, r.lost == 1);
    rig_free(&r);
}

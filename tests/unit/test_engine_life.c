/* test_engine_life.c - a sandbox is made, ends, is resumed and deleted. */
#include "engine_rows.h"

/* The keeper hears it next, and fails it. */
static const char *fail_next_create(struct rig *r, bool fail)
{
    static char template[KEEPER_NAME_MAX + 1];
    struct keeper_fail no = {.code = err_code(ERR_INTERNAL), .message = "no"};
    union rig_msg m;
    uint32_t seq = keeper_hear(r, KEEPER_CREATE, &m);

    snprintf(template, sizeof(template), "%s", m.keeper_create.template);
    if (fail)
        keeper_say(r, KEEPER_FAIL, seq, &no);
    return template;
}

TEST(creates_of_one_key_beyond_its_share_wait_for_each_other_and_not_those_of_another)
{
    struct create_opts loud = {.key = KEY, .template = "loud"};
    struct create_opts quiet = {.key = "quiet", .template = "quiet"};
    struct told many = {0}, one = {0};
    struct rig r;

    start(&r);
    for (unsigned i = 0; i < ENGINE_CREATES_SHARE + 2; i++)
        engine_create(r.g, &loud, told_sandbox, &many);
    engine_create(r.g, &quiet, told_sandbox, &one);
    for (unsigned i = 0; i < ENGINE_CREATES_SHARE; i++)
        CHECK_STR(fail_next_create(&r, i == 0), "loud");
    CHECK_STR(fail_next_create(&r, true), "quiet");
    RIG_UNTIL(&r, one.n == 1 && many.n == 1);
    CHECK_STR(fail_next_create(&r, false), "loud"); /* in the place of the first */
    CHECK_INT(many.n, 1);
    rig_free(&r); /* with one that waits */
}

TEST(a_created_sandbox_is_durable_before_the_answer_and_survives_a_restart)
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
    CHECK(engine_get((struct ref){r.g, "other", "sb1"}) == NULL);
    engine_delete((struct ref){r.g, "other", "sb1"}, told_done, &t);
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
    insert(&r, "sb1", STORE_RUNNING, 0); /* without the engine: the row is not unique */
    engine_create(r.g, &o, told_sandbox, &t);
    seq = keeper_hear(&r, KEEPER_CREATE, &m);
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    keeper_hear(&r, KEEPER_DESTROY, &m);
    CHECK_STR(m.keeper_destroy.id, "sb1");
    RIG_UNTIL(&r, t.n == 1);
    CHECK(t.failed);
    rig_free(&r);
}

TEST(creates_over_the_maximum_are_unavailable)
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

TEST(a_sandbox_that_arrives_after_its_create_timed_out_is_destroyed)
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
    CHECK(engine_get((struct ref){r.g, KEY, "late1"}) == NULL);
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
    engine_delete((struct ref){r.g, KEY, "sb1"}, told_done, &a);
    engine_delete((struct ref){r.g, KEY, "sb1"}, told_done, &b);
    CHECK_INT(rows(&r).state, STORE_DELETING);
    CHECK(engine_get((struct ref){r.g, KEY, "sb1"}) == NULL);
    seq = keeper_hear(&r, KEEPER_DESTROY, &m);
    rig_settle(&r);
    CHECK_INT(a.n + b.n, 0);
    keeper_ok_to(&r, seq);
    RIG_UNTIL(&r, a.n == 1 && b.n == 1);
    CHECK_INT(a.failed + b.failed, 0);
    engine_delete((struct ref){r.g, KEY, "sb1"}, told_done, &c);
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
    engine_delete((struct ref){r.g, KEY, "sb1"}, told_done, &a);
    seq = keeper_hear(&r, KEEPER_DESTROY, &m);
    keeper_say(&r, KEEPER_FAIL, seq, &(struct keeper_fail){.code = "internal", .message = "busy"});
    RIG_UNTIL(&r, a.n == 1);
    CHECK(a.failed);
    CHECK_STR(state_of(&r, "sb1"), "stopped");
    engine_delete((struct ref){r.g, KEY, "sb1"}, told_done, &b);
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
    engine_resume((struct ref){r.g, KEY, "sb1"}, RESUME_AS_MADE, 0, told_sandbox, &a);
    RIG_UNTIL(&r, a.n == 1);
    CHECK_INT(a.e.kind, ERR_CONFLICT);
    keeper_say(&r, KEEPER_DIED, 0, &(struct keeper_died){.id = "sb1", .reason = "out of memory"});
    RIG_UNTIL(&r, strcmp(state_of(&r, "sb1"), "stopped") == 0);
    CHECK_STR(rows(&r).reason, "out of memory");
    engine_resume((struct ref){r.g, KEY, "sb1"}, RESUME_AS_MADE, 0, told_sandbox, &b);
    seq = keeper_hear(&r, KEEPER_BOOT, &m);
    box.boot_id = "boot-2";
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    RIG_UNTIL(&r, b.n == 1);
    CHECK_STR(b.state, "running");
    CHECK_STR(engine_get((struct ref){r.g, KEY, "sb1"})->boot_id, "boot-2");
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
    engine_pause((struct ref){r.g, KEY, "sb1"}, false, told_sandbox, &a);
    seq = keeper_hear(&r, KEEPER_HALT, &m);
    keeper_say(&r, KEEPER_DIED, 0, &(struct keeper_died){.id = "sb1", .reason = "out of memory"});
    keeper_say(&r, KEEPER_FAIL, seq, &no);
    RIG_UNTIL(&r, a.n == 1);
    rig_settle(&r);
    CHECK_STR(a.state, "stopped");
    CHECK_STR(state_of(&r, "sb1"), "stopped");
    CHECK_STR(rows(&r).reason, "out of memory");
    engine_resume((struct ref){r.g, KEY, "sb1"}, RESUME_AS_MADE, 0, told_sandbox, &b);
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
    engine_resume((struct ref){r.g, KEY, "sb"}, RESUME_AS_MADE, 0, told_sandbox, &a);
    seq = keeper_hear(&r, KEEPER_BOOT, &m);
    engine_delete((struct ref){r.g, KEY, "sb"}, told_done, &b);
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
    CHECK_HAS(engine_get((struct ref){r.g, KEY, "sb1"})->reason, "timeout");
    CHECK_INT(rows(&r).ends_ms, 0);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

/* The end that has come is not that of the life that follows. */
TEST(a_resume_during_a_stop_gives_the_original_lifetime)
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
    CHECK_INT(engine_set_timeout((struct ref){r.g, KEY, "sb1"}, 1, &e), 0);
    seq = keeper_hear(&r, KEEPER_HALT, &m);
    engine_resume((struct ref){r.g, KEY, "sb1"}, RESUME_AS_MADE, 0, told_sandbox, &a);
    keeper_ok_to(&r, seq);
    keeper_say(&r, KEEPER_SANDBOX, keeper_hear(&r, KEEPER_BOOT, &m), &box);
    RIG_UNTIL(&r, a.n == 1);
    CHECK_STR(a.state, "running");
    CHECK(engine_get((struct ref){r.g, KEY, "sb1"})->ends_ms > clock_real_ms() + MADE_FOR_MS / 2);
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
    engine_resume((struct ref){r.g, KEY, "sb"}, RESUME_AS_MADE, 0, told_sandbox, &a);
    seq = keeper_hear(&r, KEEPER_BOOT, &m);
    CHECK_INT(engine_set_timeout((struct ref){r.g, KEY, "sb"}, 10 * MADE_FOR_MS, &e), 0);
    box.state = KEEPER_RUNNING;
    keeper_say(&r, KEEPER_SANDBOX, seq, &box);
    RIG_UNTIL(&r, a.n == 1);
    CHECK(engine_get((struct ref){r.g, KEY, "sb"})->ends_ms > clock_real_ms() + 9 * MADE_FOR_MS);
    CHECK_INT(rows(&r).ends_ms, engine_get((struct ref){r.g, KEY, "sb"})->ends_ms);
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
    CHECK_INT(engine_set_timeout((struct ref){r.g, KEY, "sb1"}, 120000, &e), 0);
    CHECK(rows(&r).ends_ms > clock_real_ms() + 100000);
    CHECK_INT(engine_set_timeout((struct ref){r.g, KEY, "sb1"}, 0, &e), 0);
    CHECK_INT(rows(&r).ends_ms, 0);
    CHECK_INT(engine_set_timeout((struct ref){r.g, KEY, "no"}, 0, &e), -1);
    CHECK_INT(e.kind, ERR_NOT_FOUND);
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

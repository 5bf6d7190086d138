/* test_engine_pause.c - pause and resume, and calls during them. */
#include "engine_rows.h"

#include "front/engine/internal.h"

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
    engine_pause((struct ref){r.g, KEY, "sb1"}, true, told_sandbox, &a);
    seq = keeper_hear(&r, KEEPER_PAUSE, &m);
    CHECK_INT(rows(&r).state, STORE_RUNNING);
    keeper_ok_to(&r, seq);
    RIG_UNTIL(&r, a.n == 1);
    CHECK_STR(a.state, "paused");
    RIG_UNTIL(&r, rows(&r).state == STORE_PAUSED);
    CHECK_INT(rows(&r).ends_ms, 0);
    engine_resume((struct ref){r.g, KEY, "sb1"}, RESUME_FOR, 120000, told_sandbox, &b);
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

/* One that has no room now may have some later; after a restart of the host only the row
 * knows that what was paused has no end. */
TEST(a_row_that_could_not_be_written_is_written_later)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told a = {0};
    struct err e;
    union rig_msg m;

    start(&r);
    rig_create(&r, "sb1", 60000, SANDBOX_END_DELETE, &listen_fd, &monitor);
    engine_pause((struct ref){r.g, KEY, "sb1"}, true, told_sandbox, &a);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_PAUSE, &m));
    CHECK_INT(store_begin(r.store, &e), 0); /* there is one transaction at a time */
    RIG_UNTIL(&r, a.n == 1);
    RIG_UNTIL(&r, rows(&r).state == STORE_PAUSED);
    CHECK_INT(rows(&r).ends_ms, 0);
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
    engine_pause((struct ref){r.g, KEY, "sb1"}, true, told_sandbox, &a);
    keeper_say(&r, KEEPER_FAIL, keeper_hear(&r, KEEPER_PAUSE, &m), &no);
    RIG_UNTIL(&r, a.n == 1);
    CHECK_INT(a.e.kind, ERR_UNRESPONSIVE);
    CHECK_STR(state_of(&r, "sb1"), "running");
    CHECK(rows(&r).ends_ms > clock_real_ms());
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

static void told_exit(void *arg, const struct process_exit *m, const struct err *e)
{
    (void)m;
    told_done(arg, e);
}

TEST(after_a_refused_resume_the_sandbox_stays_paused_and_queued_calls_wait)
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
    process_wait((struct ref){r.g, KEY, "sb1"}, "p", 0, told_exit, &over);
    waits = init_accept(&r, listen_fd);
    init_hello_to(&waits);
    wait = init_hear(&r, &waits, INIT_WAIT, &m);
    engine_pause((struct ref){r.g, KEY, "sb1"}, true, told_sandbox, &a);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_PAUSE, &m));
    RIG_UNTIL(&r, a.n == 1);
    engine_resume((struct ref){r.g, KEY, "sb1"}, RESUME_AS_MADE, 0, told_sandbox, &b);
    seq = keeper_hear(&r, KEEPER_THAW, &m);
    CHECK_INT(engine_set_timeout((struct ref){r.g, KEY, "sb1"}, 1000, &e), -1);
    CHECK_INT(e.kind, ERR_CONFLICT);
    keeper_say(&r, KEEPER_FAIL, seq, &no);
    RIG_UNTIL(&r, b.n == 1);
    CHECK_INT(b.e.kind, ERR_CONFLICT);
    CHECK_STR(state_of(&r, "sb1"), "paused");
    CHECK_INT(engine_get((struct ref){r.g, KEY, "sb1"})->ends_ms, 0);
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
    engine_pause((struct ref){r.g, KEY, "sb1"}, true, told_sandbox, &a);
    engine_connect((struct ref){r.g, KEY, "sb1"}, false, 1000, told_sandbox,
                   &b); /* while it is on its way */
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_PAUSE, &m));
    keeper_say(&r, KEEPER_FAIL, keeper_hear(&r, KEEPER_HALT, &m), &no);
    RIG_UNTIL(&r, a.n == 1 && b.n == 1);
    CHECK_INT(b.e.kind, ERR_CONFLICT);
    CHECK_STR(state_of(&r, "sb1"), "paused");
    engine_resume((struct ref){r.g, KEY, "sb1"}, RESUME_COLD_FOR, 120000, told_sandbox, &c);
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
    engine_pause((struct ref){r.g, KEY, "sb1"}, true, told_sandbox, &a);
    seq = keeper_hear(&r, KEEPER_PAUSE, &m);
    engine_connect((struct ref){r.g, KEY, "sb1"}, true, 60000, told_sandbox, &b);
    engine_pause((struct ref){r.g, KEY, "sb1"}, true, told_sandbox, &c);
    RIG_UNTIL(&r, c.n == 1);
    CHECK_INT(c.e.kind, ERR_CONFLICT);
    keeper_ok_to(&r, seq);
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_THAW, &m));
    RIG_UNTIL(&r, a.n == 1 && b.n == 1);
    CHECK_STR(b.state, "running");
    CHECK(engine_get((struct ref){r.g, KEY, "sb1"})->ends_ms > clock_real_ms());
    peer_close(&monitor);
    close(listen_fd);
    rig_free(&r);
}

static void ignore_started(void *arg, const struct process_started *m, const struct err *e)
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
    process_start((struct ref){r.g, KEY, "sb1"}, &o, ignore_started, &started);
    late = init_accept(&r, listen_fd);
    engine_pause((struct ref){r.g, KEY, "sb1"}, true, told_sandbox, &a);
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

TEST(connecting_to_a_running_sandbox_only_extends_its_lifetime)
{
    struct rig r;
    int listen_fd;
    struct peer monitor;
    struct told a = {0};
    uint64_t end;

    start(&r);
    rig_create(&r, "sb1", 60000, SANDBOX_END_DELETE, &listen_fd, &monitor);
    end = engine_get((struct ref){r.g, KEY, "sb1"})->ends_ms;
    engine_connect((struct ref){r.g, KEY, "sb1"}, true, 1000, told_sandbox, &a);
    RIG_UNTIL(&r, a.n == 1);
    CHECK_INT(engine_get((struct ref){r.g, KEY, "sb1"})->ends_ms, end);
    engine_connect((struct ref){r.g, KEY, "sb1"}, true, 600000, told_sandbox, &a);
    RIG_UNTIL(&r, a.n == 2);
    CHECK(engine_get((struct ref){r.g, KEY, "sb1"})->ends_ms > end);
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
    engine_pause((struct ref){r.g, KEY, "sb1"}, true, told_sandbox, &a);
    seq = keeper_hear(&r, KEEPER_PAUSE, &m);
    engine_delete((struct ref){r.g, KEY, "sb1"}, told_done, &b);
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

/* test_engine_idle.c - sandboxes that are paused when they are not used. */
#include "engine_rig.h"

#include "front/engine/internal.h"

#define IDLE_MS 40

static void start(struct rig *r, struct peer *monitor, int *listen_fd, uint64_t idle_ms)
{
    struct create_opts o = {.key = KEY, .idle_ms = idle_ms, .auto_resume = true};
    struct keeper_sandbox box = keeper_box("sb", KEEPER_RUNNING);
    struct told t = {0};
    union rig_msg m;

    rig_new(r);
    rig_join(r, rig_start(r));
    *listen_fd = init_listen(r, "sb");
    engine_create(r->g, &o, told_sandbox, &t);
    keeper_say(r, KEEPER_SANDBOX, keeper_hear(r, KEEPER_CREATE, &m), &box);
    RIG_UNTIL(r, t.n == 1);
    *monitor = init_accept(r, *listen_fd);
    init_hello_to(monitor);
    init_hear(r, monitor, INIT_MONITOR, &m);
}

static void stop(struct rig *r, struct peer *monitor, int listen_fd)
{
    peer_close(monitor);
    close(listen_fd);
    rig_free(r);
}

/* How many ms pass until the keeper is asked for something; -1: it is not, for so long. */
static int64_t asked_after(struct rig *r, uint64_t ms)
{
    uint64_t began = clock_mono_ms();
    struct wire_head head;
    const char *body;

    while (clock_mono_ms() - began < ms) {
        rig_turn(r);
        if (peer_has(&r->keeper, &head, &body)) {
            CHECK_INT(head.type, KEEPER_PAUSE);
            return (int64_t)(clock_mono_ms() - began);
        }
    }
    return -1;
}

TEST(an_unused_sandbox_is_paused_after_its_idle_time)
{
    struct rig r;
    struct peer monitor;
    int listen_fd;

    start(&r, &monitor, &listen_fd, IDLE_MS);
    CHECK(asked_after(&r, 5000) >= IDLE_MS / 2);
    stop(&r, &monitor, listen_fd);
}

TEST(a_sandbox_without_an_idle_time_is_never_paused)
{
    struct rig r;
    struct peer monitor;
    int listen_fd;

    start(&r, &monitor, &listen_fd, 0);
    CHECK_INT(asked_after(&r, 4 * IDLE_MS), -1);
    stop(&r, &monitor, listen_fd);
}

static void on_exit_(void *arg, const struct process_exit *m)
{
    (void)m;
    ++*(int *)arg;
}

static void on_fail(void *arg, const struct err *e)
{
    (void)arg, (void)e;
}

TEST(an_open_stream_keeps_it_running_and_its_end_is_a_use)
{
    static const struct process_ops ops = {.on_exit = on_exit_, .on_fail = on_fail};
    const char *argv[] = {"sleep", NULL};
    struct process_opts o = {.argv = argv};
    struct process_stream *s;
    struct peer monitor, conn;
    struct rig r;
    union rig_msg m;
    int listen_fd, ended = 0;
    uint32_t seq;

    start(&r, &monitor, &listen_fd, IDLE_MS);
    s = process_run((struct ref){r.g, KEY, "sb"}, &o, true, &ops, &ended);
    CHECK(s != NULL);
    conn = init_accept(&r, listen_fd);
    init_hello_to(&conn);
    seq = init_hear(&r, &conn, INIT_START, &m);
    init_say(&conn, INIT_STARTED, seq, &(struct init_started){.id = "x", .pid = 2});
    CHECK_INT(asked_after(&r, 4 * IDLE_MS), -1);
    init_say(&conn, INIT_EXIT, seq, &(struct init_exit){.id = "x"});
    RIG_UNTIL(&r, ended == 1);
    CHECK(asked_after(&r, 5000) >= IDLE_MS / 2);
    peer_close(&conn);
    stop(&r, &monitor, listen_fd);
}

TEST(a_held_sandbox_is_not_idle_until_it_is_released)
{
    struct rig r;
    struct peer monitor;
    int listen_fd;

    start(&r, &monitor, &listen_fd, IDLE_MS);
    engine_hold(r.g, "sb");
    engine_hold(r.g, "sb");
    engine_release(r.g, "sb");
    CHECK_INT(asked_after(&r, 4 * IDLE_MS), -1);
    engine_release(r.g, "sb");
    engine_release(r.g, "sb"); /* once too often is nothing */
    engine_release(r.g, "gone");
    CHECK(asked_after(&r, 5000) >= IDLE_MS / 2);
    stop(&r, &monitor, listen_fd);
}

#include "unit.h"

#include <fcntl.h>
#include <signal.h>

#include "base/clock.h"
#include "loop/loop.h"

static struct loop *loop;
static struct err e;
static char calls[64];

static void begin(void)
{
    memset(calls, 0, sizeof(calls));
    CHECK_INT(loop_new(&loop, &e), 0);
}

static void note(char c)
{
    size_t n = strlen(calls);

    CHECK(n + 1 < sizeof(calls));
    calls[n] = c;
}

static void turn(void)
{
    CHECK_INT(loop_turn(loop, 0, &e), 0);
}

struct named_timer {
    struct loop_timer t;
    char name;
};

static void on_timer(struct loop_timer *t)
{
    note(CONTAINER_OF(t, struct named_timer, t)->name);
}

TEST(timers_fire_in_the_order_they_are_due_and_not_before)
{
    struct named_timer a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};

    clock_hold(1000, 0);
    begin();
    loop_timer_set(loop, &c.t, 30, on_timer);
    loop_timer_set(loop, &a.t, 10, on_timer);
    loop_timer_set(loop, &b.t, 20, on_timer);
    turn();
    CHECK_STR(calls, "");
    clock_hold(1000 + 20000000, 0);
    turn();
    CHECK_STR(calls, "ab");
    loop_timer_stop(loop, &c.t);
    clock_hold(1000 + 90000000, 0);
    turn();
    CHECK_STR(calls, "ab");
    loop_free(loop);
    clock_release();
}

TEST(a_timer_set_again_is_moved_not_doubled)
{
    struct named_timer a = {.name = 'a'};

    clock_hold(0, 0);
    begin();
    loop_timer_set(loop, &a.t, 10, on_timer);
    loop_timer_set(loop, &a.t, 50, on_timer);
    clock_hold(20000000, 0);
    turn();
    CHECK_STR(calls, "");
    clock_hold(60000000, 0);
    turn();
    turn();
    CHECK_STR(calls, "a");
    loop_free(loop);
    clock_release();
}

TEST(many_timers_in_any_order_stay_a_heap)
{
    static struct named_timer t[500];
    uint64_t last = 0;
    unsigned seed = 7;

    clock_hold(0, 0);
    begin();
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        loop_timer_set(loop, &t[i].t, (seed = seed * 1103515245 + 12345) >> 16 & 1023, on_timer);
    for (size_t i = 0; i < ARRAY_LEN(t); i += 3)
        loop_timer_stop(loop, &t[i].t);
    for (uint64_t now = 0; now <= 1024; now += 8, last = now) {
        clock_hold(now * 1000000, 0);
        memset(calls, 0, sizeof(calls));
        for (size_t i = 0; i < ARRAY_LEN(t); i++)
            t[i].name = 0; /* counted by slot below, not by name */
        turn();
        for (size_t i = 0; i < ARRAY_LEN(t); i++)
            CHECK(t[i].t.slot == 0 || t[i].t.due_ns > now * 1000000);
    }
    CHECK(last > 0);
    loop_free(loop);
    clock_release();
}

struct named_later {
    struct loop_later l;
    char name;
    bool again;
};

static void on_later(struct loop_later *l)
{
    struct named_later *n = CONTAINER_OF(l, struct named_later, l);

    note(n->name);
    if (n->again)
        loop_defer(loop, l, on_later);
}

TEST(deferred_work_runs_once_and_work_that_defers_itself_runs_in_the_next_turn)
{
    struct named_later a = {.name = 'a', .again = true}, b = {.name = 'b'};

    begin();
    loop_defer(loop, &a.l, on_later);
    loop_defer(loop, &b.l, on_later);
    loop_defer(loop, &b.l, on_later);
    turn();
    CHECK_STR(calls, "ab");
    turn();
    CHECK_STR(calls, "aba");
    loop_undefer(&a.l);
    turn();
    CHECK_STR(calls, "aba");
    loop_free(loop);
}

struct pair {
    struct loop_io io[2];
    int fd[2][2];
};

static struct pair *pair;

static void on_either(struct loop_io *io, uint32_t events)
{
    (void)events;
    note(io == &pair->io[0] ? '0' : '1');
    loop_io_stop(loop, &pair->io[0]);
    loop_io_stop(loop, &pair->io[1]);
}

TEST(a_watch_stopped_in_this_turn_is_not_called_any_more)
{
    struct pair p = {0};

    pair = &p;
    begin();
    for (int i = 0; i < 2; i++) {
        CHECK_INT(pipe2(p.fd[i], O_CLOEXEC | O_NONBLOCK), 0);
        CHECK_INT(write(p.fd[i][1], "x", 1), 1);
        CHECK_INT(loop_io_start(loop, &p.io[i], p.fd[i][0], EPOLLIN, on_either, &e), 0);
    }
    turn();
    turn();
    CHECK_INT(strlen(calls), 1);
    for (int i = 0; i < 2; i++) {
        close(p.fd[i][0]);
        close(p.fd[i][1]);
    }
    loop_free(loop);
}

static void on_ready(struct loop_io *io, uint32_t events)
{
    (void)io;
    note(events & EPOLLHUP ? 'h' : 'r');
}

TEST(a_watch_without_events_still_reports_a_hangup)
{
    struct loop_io io = {.fd = -1};
    int fd[2];

    begin();
    CHECK_INT(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
    CHECK_INT(loop_io_start(loop, &io, fd[0], EPOLLIN, on_ready, &e), 0);
    loop_io_set(loop, &io, 0);
    CHECK_INT(write(fd[1], "x", 1), 1);
    turn();
    CHECK_STR(calls, "");
    close(fd[1]);
    turn();
    CHECK_STR(calls, "h");
    loop_io_stop(loop, &io);
    close(fd[0]);
    loop_free(loop);
}

static void on_signal(void *arg, int signo)
{
    (void)arg;
    note(signo == SIGUSR1 ? 'u' : '?');
    loop_stop(loop);
}

TEST(a_signal_is_delivered_in_the_loop)
{
    begin();
    CHECK_INT(loop_signal(loop, SIGUSR1, on_signal, NULL, &e), 0);
    raise(SIGUSR1);
    CHECK_STR(calls, "");
    CHECK_INT(loop_run(loop, &e), 0);
    CHECK_STR(calls, "u");
    loop_free(loop);
}

TEST(a_signal_out_of_range_is_refused)
{
    begin();
    CHECK_INT(loop_signal(loop, 0, on_signal, NULL, &e), -1);
    CHECK_INT(loop_signal(loop, 64, on_signal, NULL, &e), -1);
    loop_free(loop);
}

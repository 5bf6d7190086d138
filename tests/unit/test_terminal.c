#include "unit.h"

#include "engine_rig.h"
#include "front/engine/terminal.h"

struct seen { /* what a viewer was told */
    struct process_stream *s;
    unsigned screens, gaps, exits, fails, drains;
    struct process_screen screen;
    char text[256];
    struct err e;
};

static void on_screen(void *arg, const struct process_screen *m)
{
    struct seen *s = arg;

    s->screens++;
    s->screen = *m;
}

static void on_output(void *arg, const struct process_output *m)
{
    struct seen *s = arg;

    strncat(s->text, m->data.p, m->data.len);
}

static void on_truncated(void *arg, const struct process_truncated *m)
{
    (void)m;
    ((struct seen *)arg)->gaps++;
}

static void on_exit_(void *arg, const struct process_exit *m)
{
    (void)m;
    ((struct seen *)arg)->exits++;
}

static void on_fail(void *arg, const struct err *e)
{
    struct seen *s = arg;

    s->fails++;
    s->e = *e;
}

static void on_drain(void *arg)
{
    ((struct seen *)arg)->drains++;
}

static const struct process_ops ops = {.on_screen = on_screen,
                                       .on_output = on_output,
                                       .on_truncated = on_truncated,
                                       .on_exit = on_exit_,
                                       .on_fail = on_fail,
                                       .on_drain = on_drain};

struct scene { /* a running sandbox "sb1", and a viewer of its terminal "t1" */
    struct rig r;
    int listen_fd;
    struct peer monitor, init;
    struct seen seen;
    uint32_t seq;
};

static void look(struct scene *c, struct terminal_from from)
{
    union rig_msg m;

    memset(c, 0, sizeof(*c));
    rig_new(&c->r);
    rig_join(&c->r, rig_start(&c->r));
    rig_create(&c->r, "sb1", 0, SANDBOX_END_DELETE, &c->listen_fd, &c->monitor);
    rig_settle(&c->r);
    c->seen.s = terminal_view((struct ref){c->r.g, KEY, "sb1"}, "t1", &from, &ops, &c->seen);
    c->init = init_accept(&c->r, c->listen_fd);
    init_hello_to(&c->init);
    c->seq = init_hear(&c->r, &c->init, INIT_VIEW, &m);
    rig_settle(&c->r);
}

static void leave(struct scene *c)
{
    peer_close(&c->monitor);
    peer_close(&c->init);
    close(c->listen_fd);
    rig_free(&c->r);
}

static void say_screen(struct scene *c, uint64_t cursor, uint64_t end, unsigned cols)
{
    struct init_screen m = {.cursor = cursor, .end = end, .cols = cols, .rows = 24};

    init_say(&c->init, INIT_SCREEN, c->seq, &m);
}

static void say_output(struct scene *c, uint64_t pos, const char *text)
{
    struct init_output m = {
        .pos = pos, .stream = INIT_STDOUT, .data = {text, (uint32_t)strlen(text)}};

    init_say(&c->init, INIT_OUTPUT, c->seq, &m);
}

TEST(a_viewer_hears_of_the_screen_its_output_gaps_sizes_and_the_end)
{
    struct scene c;

    look(&c, (struct terminal_from){0});
    say_screen(&c, 100, 105, 80);
    say_output(&c, 100, "hello");
    say_screen(&c, 0, 0, 132); /* a new size; its positions mean nothing */
    init_say(&c.init, INIT_TRUNCATED, c.seq, &(struct init_truncated){105, 200});
    say_output(&c, 200, " world");
    init_say(&c.init, INIT_EXIT, c.seq, &(struct init_exit){.id = "t1"});
    RIG_UNTIL(&c.r, c.seen.exits == 1);
    CHECK_INT(c.seen.screens, 2);
    CHECK_INT(c.seen.screen.cols, 132);
    CHECK_INT(c.seen.gaps, 1);
    CHECK_STR(c.seen.text, "hello world");
    leave(&c);
}

TEST(input_and_resizes_arrive_in_order)
{
    struct scene c;
    union rig_msg m;

    look(&c, (struct terminal_from){0});
    say_screen(&c, 0, 0, 80);
    RIG_UNTIL(&c.r, c.seen.screens == 1);
    process_feed(c.seen.s, "ls\n", 3, false);
    terminal_view_resize(c.seen.s, 99, 33);
    init_hear(&c.r, &c.init, INIT_STDIN, &m);
    CHECK_INT(m.init_stdin.data.len, 3);
    init_hear(&c.r, &c.init, INIT_RESIZE, &m);
    CHECK_INT(m.init_resize.cols, 99);
    CHECK_INT(m.init_resize.rows, 33);
    RIG_UNTIL(&c.r, c.seen.drains > 0);
    process_close(c.seen.s);
    leave(&c);
}

/* ---- an init that lies ---- */

static void lie_output_first(struct scene *c)
{
    say_output(c, 0, "x");
}

static void lie_gap_first(struct scene *c)
{
    init_say(&c->init, INIT_TRUNCATED, c->seq, &(struct init_truncated){0, 10});
}

static void lie_exit_first(struct scene *c)
{
    init_say(&c->init, INIT_EXIT, c->seq, &(struct init_exit){.id = "t1"});
}

static void lie_no_size(struct scene *c)
{
    say_screen(c, 50, 50, 0);
}

static void lie_other_place(struct scene *c)
{
    say_screen(c, 40, 50, 80);
}

static void lie_beyond_the_end(struct scene *c)
{
    say_screen(c, 50, 49, 80);
}

static void lie_output_elsewhere(struct scene *c)
{
    say_screen(c, 50, 60, 80);
    say_output(c, 51, "x");
}

static void lie_started(struct scene *c)
{
    init_say(&c->init, INIT_STARTED, c->seq, &(struct init_started){.id = "t1"});
}

TEST(an_init_that_contradicts_itself_is_unresponsive)
{
    static void (*const lies[])(struct scene * c) = {
        lie_output_first, lie_gap_first,      lie_exit_first,       lie_no_size,
        lie_other_place,  lie_beyond_the_end, lie_output_elsewhere, lie_started};

    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        struct scene c;

        look(&c, (struct terminal_from){.has_since = true, .since = 50});
        lies[i](&c);
        RIG_UNTIL(&c.r, c.seen.fails == 1);
        CHECK_INT(c.seen.e.kind, ERR_UNRESPONSIVE);
        CHECK_INT(c.seen.exits, 0);
        leave(&c);
    }
}

static void pass_seconds(struct scene *c, unsigned s)
{
    clock_hold(clock_mono_ns() + s * 1000000000ull, clock_real_ms() + s * 1000ull);
    rig_settle(&c->r);
}

TEST(a_screen_that_never_comes_is_not_waited_for_but_a_silent_program_is)
{
    struct scene c;

    look(&c, (struct terminal_from){0});
    pass_seconds(&c, PROCESS_DEADLINE_MS / 1000 + 1);
    RIG_UNTIL(&c.r, c.seen.fails == 1);
    CHECK_INT(c.seen.e.kind, ERR_UNRESPONSIVE);
    leave(&c);
    look(&c, (struct terminal_from){0});
    say_screen(&c, 0, 0, 80);
    RIG_UNTIL(&c.r, c.seen.screens == 1);
    pass_seconds(&c, 100000);
    CHECK_INT(c.seen.fails, 0);
    process_close(c.seen.s);
    leave(&c);
    clock_release();
}

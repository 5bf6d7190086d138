/* test_process.c - commands, and inits that lie, stall or flood. */
#include "engine_rig.h"

#include "front/engine/command.h"
#include "front/engine/talk/talk.h"

struct seen {
    int started, outputs, truncated, exits, ends, fails, drains;
    uint64_t bytes;
    char text[256];
    struct err e;
    struct process_exit exit;
    struct process_stream *s;
    bool pause_at_output, close_at_output;
};

static void on_started(void *arg, const struct process_started *m)
{
    (void)m;
    ((struct seen *)arg)->started++;
}

static void on_output(void *arg, const struct process_output *m)
{
    struct seen *s = arg;

    s->outputs++;
    s->bytes += m->data.len;
    if (strlen(s->text) + m->data.len < sizeof(s->text))
        strncat(s->text, m->data.p, m->data.len);
    if (s->pause_at_output)
        process_pause(s->s, true);
    if (s->close_at_output)
        process_close(s->s);
}

static void on_truncated(void *arg, const struct process_truncated *m)
{
    (void)m;
    ((struct seen *)arg)->truncated++;
}

static void on_exit_(void *arg, const struct process_exit *m)
{
    struct seen *s = arg;

    s->exits++;
    s->exit = *m;
}

static void on_end(void *arg, const struct process_end *m)
{
    (void)m;
    ((struct seen *)arg)->ends++;
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

static const struct process_ops ops = {.on_started = on_started,
                                       .on_output = on_output,
                                       .on_truncated = on_truncated,
                                       .on_exit = on_exit_,
                                       .on_end = on_end,
                                       .on_fail = on_fail,
                                       .on_drain = on_drain};

struct scene { /* a running sandbox "sb1", and what is said in it */
    struct rig r;
    int listen_fd;
    struct peer monitor, init;
    struct seen seen;
    uint32_t seq;
};

static void scene_new(struct scene *c)
{
    memset(c, 0, sizeof(*c));
    rig_new(&c->r);
    rig_join(&c->r, rig_start(&c->r));
    rig_create(&c->r, "sb1", 0, SANDBOX_END_DELETE, &c->listen_fd, &c->monitor);
    rig_settle(&c->r);
    c->init.fd = -1;
}

static void scene_free(struct scene *c)
{
    peer_close(&c->monitor);
    peer_close(&c->init);
    close(c->listen_fd);
    rig_free(&c->r);
}

static void run(struct scene *c)
{
    struct process_opts o = {.command = "true"};
    union rig_msg m;

    c->seen.s = process_run((struct ref){c->r.g, KEY, "sb1"}, &o, true, &ops, &c->seen);
    c->init = init_accept(&c->r, c->listen_fd);
    init_hello_to(&c->init);
    c->seq = init_hear(&c->r, &c->init, INIT_START, &m);
    rig_settle(&c->r); /* the hello is heard */
}

static void say_started(struct scene *c)
{
    init_say(&c->init, INIT_STARTED, c->seq, &(struct init_started){.id = "p1", .pid = 7});
}

static void say_output(struct scene *c, uint64_t pos, const char *text)
{
    struct init_output m = {
        .pos = pos, .stream = INIT_STDOUT, .data = {text, (uint32_t)strlen(text)}};

    init_say(&c->init, INIT_OUTPUT, c->seq, &m);
}

static void say_exit(struct scene *c, unsigned code)
{
    init_say(&c->init, INIT_EXIT, c->seq, &(struct init_exit){.id = "p1", .code = code});
}

/* ---- the good way ---- */

TEST(a_command_starts_prints_and_ends_and_its_connection_is_used_again)
{
    struct scene c;
    struct process_opts o = {.command = "true"};
    struct seen again = {0};
    union rig_msg m;

    scene_new(&c);
    run(&c);
    say_started(&c);
    say_output(&c, 0, "hello ");
    say_output(&c, 6, "world");
    say_exit(&c, 3);
    RIG_UNTIL(&c.r, c.seen.exits == 1);
    CHECK_STR(c.seen.text, "hello world");
    CHECK_INT(c.seen.exit.code, 3);
    process_run((struct ref){c.r.g, KEY, "sb1"}, &o, true, &ops, &again);
    c.seq = init_hear(&c.r, &c.init, INIT_START, &m); /* the same connection */
    CHECK_INT(c.seq, 2);
    say_started(&c);
    say_exit(&c, 0);
    RIG_UNTIL(&c.r, again.exits == 1);
    scene_free(&c);
}

TEST(variables_of_the_call_override_those_of_the_sandbox_and_the_defaults)
{
    struct sandbox sb = {.env = "A=box\0B=box", .env_len = 12};
    struct process_opts o = {.command = "x", .env = "B=call\0PATH=/mine", .env_len = 18};
    struct command c;
    struct err e;
    uint32_t at = 0;

    CHECK_INT(command_build(&c, &sb, &o, &e), 0);
    CHECK_INT(c.start.env.count, 4);
    CHECK_STR(wire_strv_next(&c.start.env, &at), "A=box");
    CHECK_STR(wire_strv_next(&c.start.env, &at), "B=call");
    CHECK_STR(wire_strv_next(&c.start.env, &at), "LANG=C.UTF-8");
    CHECK_STR(wire_strv_next(&c.start.env, &at), "PATH=/mine");
    at = 0;
    CHECK_STR(wire_strv_next(&c.start.argv, &at), "/bin/bash");
    CHECK_STR(wire_strv_next(&c.start.argv, &at), "-c");
    CHECK_STR(wire_strv_next(&c.start.argv, &at), "x");
    CHECK_STR(c.start.cwd, "/workspace");
    CHECK_STR(c.start.user, "user");
    command_free(&c);
}

TEST(an_invalid_command_is_refused_with_a_reason)
{
    static const char *const empty[] = {NULL}, *const nameless[] = {"", NULL};
    static const struct {
        struct process_opts o;
        const char *why;
    } bad[] = {
        {{.command = NULL}, "exactly one"},
        {{.argv = empty}, "name of the program"},
        {{.argv = nameless}, "name of the program"},
        {{.command = "x", .cwd = "relative"}, "cwd"},
        {{.command = "x", .user = ""}, "user"},
        {{.command = "x", .id = "../etc"}, "id"},
        {{.command = "x", .env = "=1", .env_len = 3}, "env"},
        {{.command = "x", .env = "NAME", .env_len = 5}, "env"},
        {{.command = "x", .env = "A=1", .env_len = 3}, "env"},
    };
    struct sandbox sb = {0};
    struct command c;
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_INT(command_build(&c, &sb, &bad[i].o, &e), -1);
        CHECK_INT(e.kind, ERR_INVALID);
        CHECK_HAS(e.msg, bad[i].why);
        command_free(&c);
    }
}

TEST(a_command_too_large_for_execve_is_refused)
{
    char *huge = malloc(INIT_ARGS_MAX + 1);
    struct process_opts o = {.command = huge};
    struct sandbox sb = {0};
    struct command c;
    struct err e;

    memset(huge, 'x', INIT_ARGS_MAX);
    huge[INIT_ARGS_MAX] = '\0';
    CHECK_INT(command_build(&c, &sb, &o, &e), -1);
    CHECK_INT(e.kind, ERR_TOO_LARGE);
    command_free(&c);
    free(huge);
}

TEST(an_unknown_or_stopped_sandbox_is_reported_from_the_loop)
{
    struct scene c;
    struct process_opts o = {.command = "true"};
    struct seen unknown = {0}, stopped = {0};

    scene_new(&c);
    process_run((struct ref){c.r.g, KEY, "nosuch"}, &o, true, &ops, &unknown);
    CHECK_INT(unknown.fails, 0);
    RIG_UNTIL(&c.r, unknown.fails == 1);
    CHECK_INT(unknown.e.kind, ERR_NOT_FOUND);
    keeper_say(&c.r, KEEPER_DIED, 0, &(struct keeper_died){.id = "sb1", .reason = "killed"});
    RIG_UNTIL(&c.r, engine_get((struct ref){c.r.g, KEY, "sb1"})->state == SANDBOX_STOPPED);
    process_run((struct ref){c.r.g, KEY, "sb1"}, &o, true, &ops, &stopped);
    RIG_UNTIL(&c.r, stopped.fails == 1);
    CHECK_INT(stopped.e.kind, ERR_CONFLICT);
    CHECK_HAS(stopped.e.msg, "killed");
    scene_free(&c);
}

/* What the caller is told when init says this. */
static struct err told_of(const struct init_fail *m)
{
    struct scene c;
    struct err e;

    scene_new(&c);
    run(&c);
    init_say(&c.init, INIT_FAIL, c.seq, m);
    RIG_UNTIL(&c.r, c.seen.fails == 1);
    e = c.seen.e;
    scene_free(&c);
    return e;
}

TEST(a_failure_that_init_speaks_of_keeps_its_kind)
{
    struct err e =
        told_of(&(struct init_fail){.code = "cannot_start", .message = "no such file", .sys = 2});

    CHECK_INT(e.kind, ERR_CANNOT_START);
    CHECK_STR(e.msg, "no such file");
}

TEST(an_init_without_memory_is_no_error_of_ours)
{
    CHECK_INT(told_of(&(struct init_fail){.code = "unavailable"}).kind, ERR_UNAVAILABLE);
}

TEST(an_init_cannot_claim_that_the_api_key_was_wrong)
{
    CHECK_INT(told_of(&(struct init_fail){.code = "unauthorized"}).kind, ERR_INTERNAL);
}

/* The next piece of stdin; true if it was the last. */
static bool hear_stdin(struct scene *c, size_t *n)
{
    static char body[INIT_CHUNK_MAX + 64];
    struct wire_head head = {0};
    const char *at = NULL;
    struct init_stdin in;
    struct err e;

    RIG_UNTIL(&c->r, peer_has(&c->init, &head, &at));
    CHECK_INT(head.type, INIT_STDIN);
    CHECK(head.len <= sizeof(body));
    memcpy(body, at, head.len);
    buf_consume(&c->init.in, WIRE_HEAD + head.len);
    CHECK_INT(wire_get(init_msg(INIT_STDIN), body, head.len, &in, &e), 0);
    *n += in.data.len;
    return in.close;
}

static bool reads_to_the_end(struct peer *p)
{
    static char sink[64u << 10];

    return recv(p->fd, sink, sizeof(sink), MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

#define WHOLE (3u << 20) /* more than sockets and queues hold */

static void run_with_input(struct scene *c, size_t len)
{
    autobuf struct buf input = BUF_INIT(WHOLE + 1);

    scene_new(c);
    run(c);
    say_started(c);
    RIG_UNTIL(&c->r, c->seen.started == 1);
    memset(buf_room(&input, len + 1), 'x', len);
    buf_added(&input, len);
    process_feed_whole(c->seen.s, &input);
    CHECK_INT(input.len, 0);
}

TEST(all_of_stdin_arrives_after_the_stream_was_closed)
{
    struct scene c;
    size_t n = 0;

    run_with_input(&c, WHOLE);
    c.seen.pause_at_output = true;
    say_output(&c, 0, "one");
    RIG_UNTIL(&c.r, c.seen.outputs == 1);
    process_close(c.seen.s);
    say_output(&c, 3, "nobody hears this");
    while (!hear_stdin(&c, &n))
        ;
    CHECK_INT(n, WHOLE);
    RIG_UNTIL(&c.r, peer_is_closed(&c.init));
    CHECK_INT(c.seen.outputs + c.seen.exits + c.seen.fails, 1);
    scene_free(&c);
}

TEST(a_command_may_end_before_it_has_its_stdin_after_the_stream_was_closed)
{
    struct scene c;

    run_with_input(&c, WHOLE);
    process_close(c.seen.s);
    say_exit(&c, 0);
    RIG_UNTIL(&c.r, reads_to_the_end(&c.init));
    CHECK_INT(c.seen.exits + c.seen.fails, 0);
    scene_free(&c);
    run_with_input(&c, WHOLE);
    process_close(c.seen.s);
    peer_close(&c.init);
    rig_settle(&c.r);
    CHECK_INT(c.seen.exits + c.seen.fails, 0);
    scene_free(&c);
}

TEST(an_empty_stdin_is_an_end_of_file)
{
    struct scene c;
    size_t n = 0;

    run_with_input(&c, 0);
    CHECK(hear_stdin(&c, &n));
    CHECK_INT(n, 0);
    process_close(c.seen.s);
    CHECK(peer_is_closed(&c.init));
    scene_free(&c);
}

TEST(stdin_is_fed_in_pieces_and_on_drain_is_called)
{
    struct scene c;
    static char data[INIT_CHUNK_MAX + 10];
    size_t n = 0;

    scene_new(&c);
    run(&c);
    say_started(&c);
    RIG_UNTIL(&c.r, c.seen.started == 1);
    CHECK(process_feed(c.seen.s, data, sizeof(data), true) > 0);
    CHECK(!hear_stdin(&c, &n));
    CHECK(hear_stdin(&c, &n));
    CHECK_INT(n, sizeof(data));
    RIG_UNTIL(&c.r, c.seen.drains == 1);
    say_exit(&c, 0);
    RIG_UNTIL(&c.r, c.seen.exits == 1);
    CHECK(peer_is_closed(&c.init)); /* stdin may cross an exit: not used again */
    scene_free(&c);
}

TEST(a_paused_stream_delivers_nothing_and_loses_nothing)
{
    struct scene c;

    scene_new(&c);
    run(&c);
    c.seen.pause_at_output = true;
    say_started(&c);
    say_output(&c, 0, "one ");
    say_output(&c, 4, "two ");
    say_output(&c, 8, "three");
    say_exit(&c, 0);
    RIG_UNTIL(&c.r, c.seen.outputs == 1);
    peer_close(&c.init); /* even if the init is gone meanwhile */
    rig_settle(&c.r);
    CHECK_INT(c.seen.outputs, 1);
    c.seen.pause_at_output = false;
    process_pause(c.seen.s, false);
    RIG_UNTIL(&c.r, c.seen.exits == 1);
    CHECK_STR(c.seen.text, "one two three");
    scene_free(&c);
}

TEST(a_viewer_is_told_of_a_gap_and_continues_after_it)
{
    struct scene c;
    union rig_msg m;

    scene_new(&c);
    c.seen.s = process_attach((struct ref){c.r.g, KEY, "sb1"}, "p1", 5, false, 0, &ops, &c.seen);
    c.init = init_accept(&c.r, c.listen_fd);
    init_hello_to(&c.init);
    c.seq = init_hear(&c.r, &c.init, INIT_ATTACH, &m);
    CHECK_INT(m.init_attach.since, 5);
    init_say(&c.init, INIT_TRUNCATED, c.seq, &(struct init_truncated){.from = 5, .to = 100});
    say_output(&c, 100, "rest");
    init_say(&c.init, INIT_END, c.seq, &(struct init_end){.value = 104});
    RIG_UNTIL(&c.r, c.seen.ends == 1);
    CHECK_INT(c.seen.truncated, 1);
    CHECK_STR(c.seen.text, "rest");
    scene_free(&c);
}

TEST(a_deleted_sandbox_ends_its_calls_with_gone)
{
    struct scene c;
    struct told t = {0};

    scene_new(&c);
    run(&c);
    engine_delete((struct ref){c.r.g, KEY, "sb1"}, told_done, &t);
    CHECK_INT(c.seen.fails, 0);
    RIG_UNTIL(&c.r, c.seen.fails == 1);
    CHECK_INT(c.seen.e.kind, ERR_GONE);
    scene_free(&c);
}

TEST(a_stream_closed_in_its_own_callback_calls_nothing_back)
{
    struct scene c;

    scene_new(&c);
    run(&c);
    c.seen.close_at_output = true;
    say_started(&c);
    say_output(&c, 0, "x");
    say_exit(&c, 0);
    RIG_UNTIL(&c.r, c.seen.outputs == 1);
    rig_settle(&c.r);
    CHECK_INT(c.seen.exits + c.seen.fails, 0);
    scene_free(&c);
}

/* ---- inits that lie ---- */

static void lie_output_first(struct scene *c)
{
    say_output(c, 0, "x");
}

static void lie_started_twice(struct scene *c)
{
    say_started(c);
    say_started(c);
}

static void lie_gap(struct scene *c)
{
    say_started(c);
    say_output(c, 5, "x");
}

static void lie_repeat(struct scene *c)
{
    say_started(c);
    say_output(c, 0, "abc");
    say_output(c, 0, "abc");
}

static void lie_truncated_to_the_owner(struct scene *c)
{
    say_started(c);
    init_say(&c->init, INIT_TRUNCATED, c->seq, &(struct init_truncated){.to = 5});
}

static void lie_stream_zero(struct scene *c)
{
    say_started(c);
    init_say(&c->init, INIT_OUTPUT, c->seq, &(struct init_output){.pos = 0});
}

static void lie_wrong_seq(struct scene *c)
{
    c->seq += 1;
    say_started(c);
}

static void lie_exit_first(struct scene *c)
{
    say_exit(c, 0);
}

static void lie_other_type(struct scene *c)
{
    init_say(&c->init, INIT_PROC, c->seq, &(struct init_proc){.id = "x"});
}

static void lie_a_request(struct scene *c)
{
    init_say(&c->init, INIT_KILL, c->seq, &(struct init_kill){.id = "x"});
}

static void lie_unknown_type(struct scene *c)
{
    struct wire_head h = {.type = 999, .seq = c->seq};

    peer_raw(&c->init, &h, WIRE_HEAD);
}

static void lie_huge_frame(struct scene *c)
{
    struct wire_head h = {.type = INIT_OUTPUT, .seq = c->seq, .len = TALK_FRAME_MAX + 1};

    peer_raw(&c->init, &h, WIRE_HEAD);
}

static void lie_garbage(struct scene *c)
{
    char noise[600];

    memset(noise, 0xa5, sizeof(noise));
    peer_raw(&c->init, noise, sizeof(noise));
}

static void lie_bad_field(struct scene *c)
{
    struct wire_head h = {.type = INIT_STARTED, .seq = c->seq, .len = 8};
    uint32_t body[2] = {1000, 0};

    peer_raw(&c->init, &h, WIRE_HEAD);
    peer_raw(&c->init, body, sizeof(body));
}

TEST(nonsense_ends_the_call_as_unresponsive_and_drops_the_connection)
{
    static void (*const lies[])(struct scene * c) = {lie_output_first,
                                                     lie_started_twice,
                                                     lie_gap,
                                                     lie_repeat,
                                                     lie_truncated_to_the_owner,
                                                     lie_stream_zero,
                                                     lie_wrong_seq,
                                                     lie_exit_first,
                                                     lie_other_type,
                                                     lie_a_request,
                                                     lie_unknown_type,
                                                     lie_huge_frame,
                                                     lie_garbage,
                                                     lie_bad_field};

    for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
        struct scene c;

        scene_new(&c);
        run(&c);
        lies[i](&c);
        RIG_UNTIL(&c.r, c.seen.fails == 1);
        CHECK_INT(c.seen.e.kind, ERR_UNRESPONSIVE);
        CHECK_HAS(c.seen.e.msg, "invalid answer");
        CHECK_INT(c.seen.exits, 0);
        if (lies[i] != lie_exit_first)
            CHECK(peer_is_closed(&c.init));
        scene_free(&c);
    }
}

TEST(an_init_that_speaks_unasked_on_an_idle_connection_loses_it)
{
    struct scene c;

    scene_new(&c);
    run(&c);
    say_started(&c);
    say_exit(&c, 0);
    RIG_UNTIL(&c.r, c.seen.exits == 1);
    CHECK(!peer_is_closed(&c.init));
    say_exit(&c, 0);
    RIG_UNTIL(&c.r, peer_is_closed(&c.init));
    CHECK_INT(c.seen.exits, 1);
    scene_free(&c);
}

TEST(an_init_of_another_version_is_refused_with_the_reason)
{
    struct scene c;
    struct process_opts o = {.command = "true"};
    struct keeper_sandbox box = keeper_box("sb2", KEEPER_RUNNING);
    struct create_opts co = {.key = KEY};
    struct told t = {0};
    union rig_msg m;
    struct peer monitor, init;
    int fd;

    scene_new(&c);
    fd = init_listen(&c.r, "sb2");
    engine_create(c.r.g, &co, told_sandbox, &t);
    keeper_say(&c.r, KEEPER_SANDBOX, keeper_hear(&c.r, KEEPER_CREATE, &m), &box);
    RIG_UNTIL(&c.r, t.n == 1);
    monitor = init_accept(&c.r, fd);
    process_run((struct ref){c.r.g, KEY, "sb2"}, &o, true, &ops, &c.seen);
    init = init_accept(&c.r, fd);
    init_say(&init, INIT_HELLO, 0, &(struct init_hello){.version = INIT_VERSION + 1});
    RIG_UNTIL(&c.r, c.seen.fails == 1);
    CHECK_INT(c.seen.e.kind, ERR_UNSUPPORTED);
    CHECK_INT(init.in.len, 0); /* and was asked nothing */
    peer_close(&monitor);
    peer_close(&init);
    close(fd);
    scene_free(&c);
}

static void pass_seconds(struct scene *c, unsigned s)
{
    clock_hold(clock_mono_ns() + s * 1000000000ull, clock_real_ms() + s * 1000ull);
    rig_settle(&c->r);
}

TEST(an_init_that_never_answers_is_unresponsive_after_the_deadline)
{
    struct scene c;

    scene_new(&c);
    clock_hold(clock_mono_ns(), clock_real_ms());
    run(&c);
    pass_seconds(&c, 9);
    CHECK_INT(c.seen.fails, 0);
    pass_seconds(&c, 2);
    CHECK_INT(c.seen.fails, 1);
    CHECK_INT(c.seen.e.kind, ERR_UNRESPONSIVE);
    scene_free(&c);
}

TEST(an_init_that_never_says_hello_is_unresponsive_after_the_deadline)
{
    struct scene c;
    struct process_opts o = {.command = "true"};

    scene_new(&c);
    clock_hold(clock_mono_ns(), clock_real_ms());
    c.seen.s = process_run((struct ref){c.r.g, KEY, "sb1"}, &o, true, &ops, &c.seen);
    c.init = init_accept(&c.r, c.listen_fd);
    pass_seconds(&c, 11);
    CHECK_INT(c.seen.fails, 1);
    CHECK_INT(c.seen.e.kind, ERR_UNRESPONSIVE);
    scene_free(&c);
}

TEST(a_started_command_may_be_silent_for_as_long_as_it_likes)
{
    struct scene c;

    scene_new(&c);
    clock_hold(clock_mono_ns(), clock_real_ms());
    run(&c);
    say_started(&c);
    RIG_UNTIL(&c.r, c.seen.started == 1);
    pass_seconds(&c, 100000);
    CHECK_INT(c.seen.fails, 0);
    say_exit(&c, 0);
    RIG_UNTIL(&c.r, c.seen.exits == 1);
    scene_free(&c);
}

TEST(a_reader_that_is_slow_itself_does_not_run_into_the_deadline)
{
    struct scene c;
    union rig_msg m;

    scene_new(&c);
    clock_hold(clock_mono_ns(), clock_real_ms());
    c.seen.pause_at_output = true;
    c.seen.s = process_attach((struct ref){c.r.g, KEY, "sb1"}, "p1", 0, false, 0, &ops, &c.seen);
    c.init = init_accept(&c.r, c.listen_fd);
    init_hello_to(&c.init);
    c.seq = init_hear(&c.r, &c.init, INIT_ATTACH, &m);
    say_output(&c, 0, "x");
    RIG_UNTIL(&c.r, c.seen.outputs == 1);
    pass_seconds(&c, 60);
    CHECK_INT(c.seen.fails, 0);
    process_pause(c.seen.s, false);
    init_say(&c.init, INIT_END, c.seq, &(struct init_end){.value = 1});
    RIG_UNTIL(&c.r, c.seen.ends == 1);
    scene_free(&c);
}

TEST(idle_connections_are_closed_after_a_while)
{
    struct scene c;

    scene_new(&c);
    clock_hold(clock_mono_ns(), clock_real_ms());
    run(&c);
    say_started(&c);
    say_exit(&c, 0);
    RIG_UNTIL(&c.r, c.seen.exits == 1);
    pass_seconds(&c, TALK_IDLE_MS / 1000 + 1);
    CHECK(peer_is_closed(&c.init));
    scene_free(&c);
}

static void waited(void *arg, const struct process_exit *m, const struct err *e)
{
    (void)m;
    told_err(arg, e);
}

TEST(a_wait_has_its_own_time_and_the_deadline_on_top)
{
    struct scene c;
    struct told t = {0};
    union rig_msg m;

    scene_new(&c);
    clock_hold(clock_mono_ns(), clock_real_ms());
    process_wait((struct ref){c.r.g, KEY, "sb1"}, "p1", 60000, waited, &t);
    c.init = init_accept(&c.r, c.listen_fd);
    init_hello_to(&c.init);
    init_hear(&c.r, &c.init, INIT_WAIT, &m);
    rig_settle(&c.r);
    pass_seconds(&c, 65);
    CHECK_INT(t.n, 0);
    pass_seconds(&c, 6);
    CHECK_INT(t.n, 1);
    CHECK_INT(t.e.kind, ERR_UNRESPONSIVE);
    scene_free(&c);
}

TEST(a_cancelled_wait_calls_nothing_back_and_closes_its_connection)
{
    struct scene c;
    struct told t = {0};
    struct process_call *w;
    union rig_msg m;

    scene_new(&c);
    w = process_wait((struct ref){c.r.g, KEY, "sb1"}, "p1", 0, waited, &t);
    c.init = init_accept(&c.r, c.listen_fd);
    init_hello_to(&c.init);
    init_hear(&c.r, &c.init, INIT_WAIT, &m);
    process_cancel(w);
    RIG_UNTIL(&c.r, peer_is_closed(&c.init));
    CHECK_INT(t.n, 0);
    scene_free(&c);
}

static void was_got(void *arg, const struct process_info *p, const struct err *e)
{
    (void)p;
    told_err(arg, e);
}

TEST(callers_that_wait_leave_room_for_others_and_beyond_that_all_are_refused)
{
    struct process_call *waits[TALK_LASTING_MAX];
    struct told wait = {0}, get = {0};
    struct scene c;

    scene_new(&c);
    clock_hold(clock_mono_ns(), clock_real_ms());
    for (unsigned i = 0; i < TALK_LASTING_MAX; i++)
        waits[i] = process_wait((struct ref){c.r.g, KEY, "sb1"}, "p1", 0, waited, &wait);
    rig_settle(&c.r);
    CHECK_INT(wait.n, 0);
    process_wait((struct ref){c.r.g, KEY, "sb1"}, "p1", 0, waited, &wait);
    RIG_UNTIL(&c.r, wait.n == 1);
    CHECK_INT(wait.e.kind, ERR_LIMIT);
    for (unsigned i = TALK_LASTING_MAX; i < TALK_LINES_MAX; i++)
        process_get((struct ref){c.r.g, KEY, "sb1"}, "p1", was_got, &get);
    rig_settle(&c.r);
    CHECK_INT(get.n, 1); /* the monitor has a connection, too */
    CHECK_INT(get.e.kind, ERR_LIMIT);
    for (unsigned i = 0; i < TALK_LASTING_MAX; i++)
        process_cancel(waits[i]);
    process_cancel(process_wait((struct ref){c.r.g, KEY, "sb1"}, "p1", 0, waited, &wait));
    rig_settle(&c.r);
    CHECK_INT(wait.n, 1);
    pass_seconds(&c, PROCESS_DEADLINE_MS / 1000 + 1); /* this init says nothing */
    CHECK_INT(get.n, TALK_LINES_MAX - TALK_LASTING_MAX);
    scene_free(&c);
}

TEST(a_process_name_that_cannot_be_is_not_found)
{
    struct scene c;
    struct told t = {0};

    scene_new(&c);
    process_wait((struct ref){c.r.g, KEY, "sb1"}, "../../x", 0, waited, &t);
    RIG_UNTIL(&c.r, t.n == 1);
    CHECK_INT(t.e.kind, ERR_NOT_FOUND);
    scene_free(&c);
}

TEST(fds_sent_by_an_init_are_not_taken)
{
    struct scene c;
    int sent = open("/dev/null", O_RDONLY), before, after;
    union {
        struct cmsghdr h;
        char room[CMSG_SPACE(sizeof(int))];
    } u = {0};
    char byte = 0;
    struct iovec iov = {&byte, 1};
    struct msghdr mh = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &u, .msg_controllen = sizeof(u.room)};

    scene_new(&c);
    run(&c);
    u.h.cmsg_len = CMSG_LEN(sizeof(int));
    u.h.cmsg_level = SOL_SOCKET;
    u.h.cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(&u.h), &sent, sizeof(sent));
    before = dup(0);
    close(before);
    sendmsg(c.init.fd, &mh, MSG_NOSIGNAL); /* may be refused by the kernel: as good */
    rig_settle(&c.r);
    after = dup(0);
    close(after);
    CHECK_INT(before, after);
    close(sent);
    process_close(c.seen.s);
    scene_free(&c);
}

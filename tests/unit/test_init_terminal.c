#include "unit.h"

#include <sys/ioctl.h>

#include "init/run/proc.h"
#include "init/serve/internal.h"
#include "init_peer.h"

/* One init, one connection for requests, one viewer. */
struct bench {
    struct peer_init init;
    struct peer ask, view;
    struct buf out;
};

static struct bench bench_open(void)
{
    struct bench b = {.out = BUF_INIT(32u << 20)};

    peer_init_open(&b.init);
    peer_open(&b.ask, &b.init);
    peer_open(&b.view, &b.init);
    return b;
}

static void bench_close(struct bench *b)
{
    peer_close(&b->ask);
    peer_close(&b->view);
    buf_free(&b->out);
    peer_init_close(&b->init);
}

static struct init_start term(const char *id, const char *script)
{
    return peer_words(id, INIT_START_TERMINAL, "/bin/sh", "-c", script, NULL);
}

static void start(struct bench *b, const char *id, const char *script)
{
    struct init_start m = term(id, script);

    peer_ask(&b->ask, INIT_START, &m, INIT_STARTED);
}

static void view(struct peer *p, const char *id, uint32_t flags, uint64_t since)
{
    struct init_view m = {.id = id, .flags = flags, .since = since};

    peer_ask(p, INIT_VIEW, &m, INIT_SCREEN);
}

/* Output into b->out until it holds the text. */
static void until(struct bench *b, const char *text)
{
    while (strstr(buf_cstr(&b->out), text) == NULL) {
        CHECK_INT(peer_next(&b->view), INIT_OUTPUT);
        buf_add(&b->out, b->view.m.output.data.p, b->view.m.output.data.len);
    }
}

static void until_exit(struct bench *b)
{
    while (peer_next(&b->view) == INIT_OUTPUT)
        buf_add(&b->out, b->view.m.output.data.p, b->view.m.output.data.len);
    CHECK_INT(b->view.type, INIT_EXIT);
}

/* During a view there is no answer. */
static void type_bytes(struct peer *p, const void *data, size_t n)
{
    struct init_stdin m = {.data = {data, (uint32_t)n}};

    peer_send_as(p, INIT_STDIN, p->seq, &m);
}

static void type(struct bench *b, const char *text)
{
    type_bytes(&b->view, text, strlen(text));
}

static void check_fail(struct peer *p, const char *code, const char *text)
{
    CHECK_INT(p->type, INIT_FAIL);
    CHECK_STR(p->m.fail.code, code);
    CHECK_HAS(p->m.fail.message, text);
}

static void kill_term(struct peer *p, const char *id, int want)
{
    struct init_kill m = {.id = id, .flags = INIT_KILL_FORGET};

    peer_ask(p, INIT_KILL, &m, want);
}

TEST(a_terminal_is_the_controlling_terminal_of_its_root_and_has_its_size)
{
    struct bench b = bench_open();
    struct init_start m = term("t", "tty; stty size; ps -o tty= -p $$; echo $TERM; stty -a");

    m.cols = 111;
    m.rows = 33;
    peer_ask(&b.ask, INIT_START, &m, INIT_STARTED);
    CHECK_INT(b.ask.m.started.existed, 0);
    view(&b.view, "t", 0, 0);
    CHECK_INT(b.view.m.screen.cols, 111);
    CHECK_INT(b.view.m.screen.rows, 33);
    until_exit(&b);
    CHECK_HAS(buf_cstr(&b.out), "/dev/pts/");
    CHECK_HAS(buf_cstr(&b.out), "\r\n33 111\r\npts/");
    CHECK_HAS(buf_cstr(&b.out), " iutf8");
    CHECK_INT(b.view.m.exit.code, 0);
    bench_close(&b);
}

TEST(all_output_comes_before_the_exit_and_a_background_child_delays_nothing)
{
    struct bench b = bench_open();

    start(&b, "t", "(trap '' HUP; sleep 1000) & seq 100000; exit 3");
    view(&b.view, "t", INIT_VIEW_SINCE, 0);
    until_exit(&b);
    CHECK_INT(b.view.m.exit.code, 3);
    CHECK_HAS(buf_cstr(&b.out) + b.out.len - 24, "\r\n99999\r\n100000\r\n");
    bench_close(&b);
}

TEST(typed_input_arrives_and_ctrl_c_interrupts)
{
    struct bench b = bench_open();

    start(&b, "t",
          "trap 'echo caught; exit 5' INT; read x; echo got $x; while :; do sleep 1; done");
    view(&b.view, "t", 0, 0);
    type(&b, "hello\n");
    until(&b, "got hello");
    type(&b, "\003");
    until_exit(&b);
    CHECK_HAS(buf_cstr(&b.out), "^Ccaught");
    CHECK_INT(b.view.m.exit.code, 5);
    bench_close(&b);
}

TEST(a_viewer_comes_back_with_its_cursor_and_misses_nothing)
{
    struct bench b = bench_open();
    uint64_t cursor;

    start(&b, "t", "echo one; read x; echo two; read x; echo three");
    view(&b.view, "t", 0, 0);
    until(&b, "one\r\n");
    cursor = b.view.m.output.pos + b.view.m.output.data.len;
    type(&b, "\n");
    until(&b, "two");
    peer_close(&b.view);
    peer_open(&b.view, &b.init);
    buf_clear(&b.out);
    view(&b.view, "t", INIT_VIEW_SINCE, cursor);
    CHECK(b.view.m.screen.cursor == cursor);
    type(&b, "\n");
    until_exit(&b);
    CHECK_HAS(buf_cstr(&b.out), "two");
    CHECK_HAS(buf_cstr(&b.out), "three");
    CHECK(strstr(buf_cstr(&b.out), "one") == NULL);
    bench_close(&b);
}

TEST(a_view_from_NOW_skips_old_output_and_a_cursor_past_the_end_is_refused)
{
    struct bench b = bench_open();
    struct init_view m = {.id = "t", .flags = INIT_VIEW_SINCE, .since = 1000};

    start(&b, "t", "echo old; read x; echo new");
    view(&b.view, "t", 0, 0);
    until(&b, "old\r\n");
    buf_clear(&b.out);
    peer_close(&b.view);
    peer_open(&b.view, &b.init);
    view(&b.view, "t", INIT_VIEW_NOW, 0);
    type(&b, "\n");
    until_exit(&b);
    CHECK(strstr(buf_cstr(&b.out), "old") == NULL);
    CHECK_HAS(buf_cstr(&b.out), "new");
    peer_ask(&b.ask, INIT_VIEW, &m, INIT_FAIL);
    check_fail(&b.ask, "invalid", "beyond the output");
    bench_close(&b);
}

TEST(an_ended_terminal_is_replayed_with_its_exit)
{
    struct bench b = bench_open();

    start(&b, "t", "echo last words; exit 9");
    peer_ask(&b.ask, INIT_WAIT, &(struct init_wait){.id = "t", .timeout_ms = 15000}, INIT_EXIT);
    view(&b.view, "t", 0, 0);
    until_exit(&b);
    CHECK_STR(buf_cstr(&b.out), "last words\r\n");
    CHECK_INT(b.view.m.exit.code, 9);
    bench_close(&b);
}

TEST(a_new_size_is_seen_inside_and_sent_to_every_viewer)
{
    struct bench b = bench_open();
    struct init_resize m = {.id = "t", .cols = 132, .rows = 43};

    start(&b, "t", "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.1; done");
    view(&b.view, "t", 0, 0);
    until(&b, "ready\r\n");
    peer_ask(&b.ask, INIT_RESIZE, &m, INIT_OK);
    CHECK_INT(peer_next(&b.view), INIT_SCREEN);
    CHECK_INT(b.view.m.screen.cols, 132);
    CHECK_INT(b.view.m.screen.rows, 43);
    until_exit(&b);
    CHECK_HAS(buf_cstr(&b.out), "43 132");
    peer_ask(&b.ask, INIT_RESIZE, &m, INIT_FAIL);
    check_fail(&b.ask, "gone", "has ended");
    bench_close(&b);
}

TEST(a_size_of_zero_is_refused_and_an_oversized_one_is_not_sent)
{
    struct bench b = bench_open();
    struct init_resize m = {.id = "t", .cols = 0, .rows = 43};
    struct init_get get = {.id = "t"};

    start(&b, "t", "stty cols 60000 rows 7; echo set; read x");
    view(&b.view, "t", 0, 0);
    while (peer_next(&b.view) != INIT_OUTPUT)
        CHECK_INT(b.view.m.screen.cols, 80);
    peer_ask(&b.ask, INIT_RESIZE, &m, INIT_FAIL);
    check_fail(&b.ask, "invalid", "1 to 1000");
    peer_ask(&b.ask, INIT_GET, &get, INIT_PROC);
    CHECK_INT(b.ask.m.proc.cols, 80);
    CHECK_INT(b.ask.m.proc.rows, 7);
    bench_close(&b);
}

TEST(get_finds_the_running_one_and_replaces_the_one_that_ended)
{
    struct bench b = bench_open();
    struct init_start m = term("t", "read x");
    uint32_t pid;

    m.flags |= INIT_START_GET;
    peer_ask(&b.ask, INIT_START, &m, INIT_STARTED);
    CHECK_INT(b.ask.m.started.existed, 0);
    pid = b.ask.m.started.pid;
    peer_ask(&b.ask, INIT_START, &m, INIT_STARTED);
    CHECK_INT(b.ask.m.started.existed, 1);
    CHECK_INT(b.ask.m.started.pid, pid);
    m.flags &= ~(uint32_t)INIT_START_GET;
    peer_ask(&b.ask, INIT_START, &m, INIT_FAIL);
    check_fail(&b.ask, "conflict", "already");
    view(&b.view, "t", 0, 0);
    type(&b, "\n");
    until_exit(&b);
    m.flags |= INIT_START_GET;
    peer_ask(&b.ask, INIT_START, &m, INIT_STARTED);
    CHECK_INT(b.ask.m.started.existed, 0);
    CHECK(b.ask.m.started.pid != pid);
    bench_close(&b);
}

TEST(get_of_a_process_that_is_not_a_terminal_is_a_conflict)
{
    struct bench b = bench_open();
    struct init_start m = peer_words("p", 0, "/bin/sleep", "1000", NULL);
    struct init_view v = {.id = "p"};

    peer_ask(&b.ask, INIT_START, &m, INIT_STARTED);
    m = term("p", "true");
    m.flags |= INIT_START_GET;
    peer_ask(&b.ask, INIT_START, &m, INIT_FAIL);
    check_fail(&b.ask, "conflict", "process p");
    peer_ask(&b.ask, INIT_VIEW, &v, INIT_FAIL);
    check_fail(&b.ask, "not_found", "no terminal p");
    kill_term(&b.ask, "p", INIT_FAIL);
    check_fail(&b.ask, "not_found", "no terminal p");
    bench_close(&b);
}

TEST(deleting_a_terminal_kills_it_and_frees_its_id_while_viewers_remain)
{
    struct bench b = bench_open();
    struct init_get get = {.id = "t"};

    start(&b, "t", "trap '' HUP TERM; (trap '' HUP TERM; sleep 1000) & echo up; sleep 1000");
    view(&b.view, "t", 0, 0);
    until(&b, "up");
    kill_term(&b.ask, "t", INIT_EXIT);
    CHECK_INT(b.ask.m.exit.signal, SIGKILL);
    peer_ask(&b.ask, INIT_GET, &get, INIT_FAIL);
    start(&b, "t", "echo second; read x");
    until_exit(&b);
    CHECK(strstr(buf_cstr(&b.out), "second") == NULL);
    bench_close(&b);
}

TEST(a_signal_goes_to_the_foreground_process_group)
{
    struct bench b = bench_open();
    struct init_start m = peer_words("t", INIT_START_TERMINAL, "/bin/bash", "--norc", "-i", NULL);
    struct init_signal sig = {.id = "t", .signal = SIGINT, .to = INIT_TO_FOREGROUND};

    peer_ask(&b.ask, INIT_START, &m, INIT_STARTED);
    view(&b.view, "t", 0, 0);
    type(&b, "sh -c 'echo r''eady; exec sleep 1000'\n");
    until(&b, "ready");
    peer_ask(&b.ask, INIT_SIGNAL, &sig, INIT_OK);
    type(&b, "echo code $?; exit 4\n");
    until_exit(&b);
    CHECK_HAS(buf_cstr(&b.out), "code 130");
    CHECK_INT(b.view.m.exit.code, 4);
    peer_ask(&b.ask, INIT_SIGNAL, &sig, INIT_FAIL);
    check_fail(&b.ask, "gone", "has ended");
    bench_close(&b);
}

TEST(a_program_that_closes_its_terminal_can_open_it_again)
{
    struct bench b = bench_open();

    start(&b, "t",
          "t=$(tty); exec <&- >&- 2>&-; sleep 0.2; exec <>$t >$t 2>&1; echo again; read x");
    view(&b.view, "t", 0, 0);
    until(&b, "again");
    type(&b, "\n");
    until_exit(&b);
    bench_close(&b);
}

TEST(a_paste_waits_for_a_program_that_does_not_read_and_loses_nothing)
{
    struct bench b = bench_open();
    enum { PASTE = 3 << 20 };
    autofree char *paste = malloc(PASTE);
    struct init_get get = {.id = "t"};

    for (int i = 0; i < PASTE; i++)
        paste[i] = (char)('a' + i % 26);
    start(&b, "t", "stty raw -echo; echo go; sleep 0.5; head -c 3145728 | cksum; sleep 1000");
    view(&b.view, "t", 0, 0);
    until(&b, "go");
    if (fork() == 0) { /* blocks while init does not read */
        for (int i = 0; i < PASTE; i += 65536)
            type_bytes(&b.view, paste + i, 65536);
        _exit(0);
    }
    /* and no other viewer waits for it */
    peer_ask(&b.ask, INIT_GET, &get, INIT_PROC);
    until(&b, " 3145728");
    CHECK_HAS(buf_cstr(&b.out), "2674918116 3145728");
    bench_close(&b);
}

TEST(a_viewer_that_does_not_read_slows_no_other)
{
    struct bench b = bench_open();
    struct peer lazy;

    start(&b, "t", "read x; seq 1000000; echo done; read x");
    peer_open(&lazy, &b.init);
    view(&lazy, "t", 0, 0);
    view(&b.view, "t", 0, 0);
    type(&b, "\n");
    while (strstr(buf_cstr(&b.out), "done") == NULL) {
        if (peer_next(&b.view) == INIT_TRUNCATED)
            continue;
        CHECK_INT(b.view.type, INIT_OUTPUT);
        buf_clear(&b.out);
        buf_add(&b.out, b.view.m.output.data.p, b.view.m.output.data.len);
    }
    /* It is told what it missed, and goes on from there. */
    while (peer_next(&lazy) == INIT_OUTPUT)
        ;
    CHECK_INT(lazy.type, INIT_TRUNCATED);
    CHECK(lazy.m.truncated.to > lazy.m.truncated.from);
    peer_close(&lazy);
    bench_close(&b);
}

TEST(a_terminal_keeps_256_KiB_or_the_requested_size)
{
    struct bench b = bench_open();
    struct init_start m = term("small", "seq 100000");

    m.ring = 8192;
    peer_ask(&b.ask, INIT_START, &m, INIT_STARTED);
    start(&b, "t", "seq 100000");
    for (int i = 0; i < 2; i++) {
        struct init_wait w = {.id = i ? "t" : "small", .timeout_ms = 15000};
        struct init_get g = {.id = w.id};

        peer_ask(&b.ask, INIT_WAIT, &w, INIT_EXIT);
        peer_ask(&b.ask, INIT_GET, &g, INIT_PROC);
        CHECK(b.ask.m.proc.output_end - b.ask.m.proc.output_first <=
              (i ? TERM_RING_DEFAULT : 8192));
        CHECK(b.ask.m.proc.output_end - b.ask.m.proc.output_first >= (i ? 128u << 10 : 4096));
    }
    bench_close(&b);
}

TEST(a_terminals_stdin_can_be_written_without_a_view_but_not_closed)
{
    struct bench b = bench_open();
    struct init_stdin m = {.id = "t", .data = {"abc\n", 4}};

    start(&b, "t", "read x; echo got $x; read y");
    view(&b.view, "t", 0, 0);
    peer_ask(&b.ask, INIT_STDIN, &m, INIT_OK);
    until(&b, "got abc");
    m.close = 1;
    peer_ask(&b.ask, INIT_STDIN, &m, INIT_FAIL);
    check_fail(&b.ask, "invalid", "is a terminal");
    bench_close(&b);
}

TEST(at_most_TERMS_RUNNING_MAX_run_and_TERMS_KEPT_MAX_records_stay)
{
    struct bench b = bench_open();
    struct init_list list = {0};
    struct init_start m = term("", "read x");
    unsigned n = 0;
    int fds;

    fds = peer_init_fds(&b.init);
    for (unsigned i = 0; i < TERMS_RUNNING_MAX; i++)
        peer_ask(&b.ask, INIT_START, &m, INIT_STARTED);
    CHECK_INT(b.ask.m.started.id[0], 't');
    peer_ask(&b.ask, INIT_START, &m, INIT_FAIL);
    check_fail(&b.ask, "limit", "32 terminals");
    for (unsigned i = 0; i < TERMS_RUNNING_MAX; i++) {
        char id[16];
        struct init_kill k = {.id = id};

        str_fmt(id, sizeof(id), "t%u", i + 1);
        peer_ask(&b.ask, INIT_KILL, &k, INIT_EXIT);
    }
    peer_send(&b.ask, INIT_LIST, &list);
    while (peer_next(&b.ask) == INIT_PROC)
        n++;
    CHECK_INT(n, TERMS_KEPT_MAX);
    CHECK(peer_init_fds(&b.init) <= fds + (int)GROUPS_SPARE_MAX * 2);
    bench_close(&b);
}

TEST(a_terminal_has_at_most_VIEWERS_MAX_viewers)
{
    struct bench b = bench_open();
    struct peer viewers[VIEWERS_MAX];
    struct init_view v = {.id = "t"};

    start(&b, "t", "read x");
    for (unsigned i = 0; i < VIEWERS_MAX; i++) {
        peer_open(&viewers[i], &b.init);
        view(&viewers[i], "t", 0, 0);
    }
    peer_ask(&b.view, INIT_VIEW, &v, INIT_FAIL);
    check_fail(&b.view, "limit", "32 viewers");
    for (unsigned i = 0; i < VIEWERS_MAX; i++)
        peer_close(&viewers[i]);
    bench_close(&b);
}

TEST(a_failed_start_leaves_no_terminal_open)
{
    struct bench b = bench_open();
    struct init_start m = peer_words("t", INIT_START_TERMINAL, "/no/such", NULL);
    int fds = peer_init_fds(&b.init);

    for (int i = 0; i < 3; i++) {
        peer_ask(&b.ask, INIT_START, &m, INIT_FAIL);
        check_fail(&b.ask, "cannot_start", "not found");
    }
    CHECK(peer_init_fds(&b.init) <= fds + (int)GROUPS_SPARE_MAX * 2);
    bench_close(&b);
}

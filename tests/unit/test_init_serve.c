#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "init/run/proc.h"
#include "init/talk/conn.h"
#include "init_peer.h"

#define OWN_EXEC (INIT_START_OWN | INIT_START_FORGET)

/* One init, one connection, and two places for output. */
struct bench {
    struct peer_init init;
    struct peer peer;
    struct buf out, err;
};

static struct bench bench_open(void)
{
    struct bench b = {.out = BUF_INIT(32u << 20), .err = BUF_INIT(32u << 20)};

    peer_init_open(&b.init);
    peer_open(&b.peer, &b.init);
    return b;
}

static void bench_close(struct bench *b)
{
    peer_close(&b->peer);
    buf_free(&b->out);
    buf_free(&b->err);
    peer_init_close(&b->init);
}

static void run(struct bench *b, uint32_t flags, const char *script)
{
    buf_clear(&b->out);
    buf_clear(&b->err);
    peer_sh(&b->peer, "", flags, script);
    CHECK_INT(peer_collect(&b->peer, &b->out, &b->err), INIT_EXIT);
}

/* What `get` says of a process; ERR_NOT_FOUND as code 0. */
static int get(struct peer *p, const char *id)
{
    struct init_get m = {.id = id};

    peer_send(p, INIT_GET, &m);
    return peer_next(p);
}

static void wait_exit(struct peer *p, const char *id)
{
    struct init_wait m = {.id = id, .timeout_ms = 15000};

    peer_ask(p, INIT_WAIT, &m, INIT_EXIT);
}

static void kill_tree(struct peer *p, const char *id, uint64_t grace_ms)
{
    struct init_kill m = {.id = id, .grace_ms = grace_ms};

    peer_ask(p, INIT_KILL, &m, INIT_EXIT);
}

static void check_fail(struct peer *p, const char *code, const char *text)
{
    CHECK_INT(p->type, INIT_FAIL);
    CHECK_STR(p->m.fail.code, code);
    CHECK_HAS(p->m.fail.message, text);
}

/* Gone, or a zombie that init is about to reap. */
static bool is_dead(pid_t pid)
{
    char path[64], text[256] = "";
    int fd;

    str_fmt(path, sizeof(path), "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
        text[0] = '\0';
    own_close(&fd);
    return text[0] == '\0' || strstr(text, ") Z") != NULL;
}

TEST(init_sends_hello_with_its_version_first)
{
    struct bench b = bench_open();

    CHECK_INT(b.peer.m.hello.version, INIT_VERSION);
    CHECK_STR(b.peer.m.hello.boot_id, "boot");
    CHECK_INT(b.peer.m.hello.booted_ms, 7);
    bench_close(&b);
}

TEST(both_streams_and_the_exit_code_arrive_separately_and_verbatim)
{
    struct bench b = bench_open();

    run(&b, OWN_EXEC, "printf 'a\\0\\377'; printf e >&2; exit 7");
    CHECK_INT(b.peer.m.exit.code, 7);
    CHECK_INT(b.peer.m.exit.signal, 0);
    CHECK_INT(b.peer.m.exit.flags, 0);
    CHECK_INT(b.peer.m.exit.output_end, 4);
    CHECK_INT(b.out.len, 3);
    CHECK(memcmp(buf_data(&b.out), "a\0\377", 3) == 0);
    CHECK_STR(buf_cstr(&b.err), "e");
    bench_close(&b);
}

TEST(death_by_a_signal_is_exit_code_128_plus_its_number)
{
    struct bench b = bench_open();

    run(&b, OWN_EXEC, "kill -TERM $$");
    CHECK_INT(b.peer.m.exit.code, 143);
    CHECK_INT(b.peer.m.exit.signal, SIGTERM);
    CHECK_INT(b.peer.m.exit.flags, 0);
    bench_close(&b);
}

TEST(a_command_starts_with_clean_signals_files_limits_and_umask)
{
    struct bench b = bench_open();

    run(&b, OWN_EXEC,
        "cat /proc/self/status | grep -E '^Sig(Blk|Ign|Cgt)' | cut -f2 | tr -d '\\n';"
        "umask; ulimit -n; ulimit -c; ls /proc/self/fd | wc -l; read x || echo eof;"
        "test $(ps -o sid= -p $$) = $$ && echo leader; pwd; echo $HOME $USER $LOGNAME");
    CHECK_STR(buf_cstr(&b.out), "000000000000000000000000000000000000000000000000"
                                "0022\n256\n0\n4\neof\nleader\n/\n/root root root\n");
    bench_close(&b);
}

TEST(a_command_runs_as_the_user_named)
{
    struct bench b = bench_open();
    struct init_start m = peer_words("", OWN_EXEC, "sh", "-c", "id -u; id -g; id -G; env", NULL);

    m.user = "4242:4343";
    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    CHECK_INT(peer_collect(&b.peer, &b.out, &b.err), INIT_EXIT);
    CHECK_HAS(buf_cstr(&b.out), "4242\n4343\n4343\n");
    CHECK_HAS(buf_cstr(&b.out), "HOME=/\n");
    CHECK(strstr(buf_cstr(&b.out), "SHELL=") == NULL);
    bench_close(&b);
}

TEST(a_failed_start_says_why_and_leaves_no_record)
{
    static const struct {
        const char *program, *cwd, *user, *says;
    } cases[] = {
        {"true", "/nope", "root", "cwd /nope: No such file or directory"},
        {"true", "/etc/passwd", "root", "cwd /etc/passwd: Not a directory"},
        {"true", "/root", "4242", "cwd /root: Permission denied"},
        {"true", "/", "bob", "user bob: no such user in /etc/passwd"},
        {"no-such-program", "/", "root", "no-such-program: not found in this sandbox"},
        {"/nope/bash", "/", "root",
         "/nope/bash: not found in this sandbox; its template has no bash"},
        {"/etc/passwd", "/", "root", "/etc/passwd: Permission denied"},
        {"/etc", "/", "root", "/etc: Permission denied"},
        {"", "/", "root", "argv is empty"},
    };
    struct bench b = bench_open();
    struct init_list all = {0};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct init_start m = peer_words("", OWN_EXEC, cases[i].program, NULL);

        m.cwd = cases[i].cwd;
        m.user = cases[i].user;
        peer_ask(&b.peer, INIT_START, &m, INIT_FAIL);
        check_fail(&b.peer, "cannot_start", cases[i].says);
    }
    peer_ask(&b.peer, INIT_LIST, &all, INIT_END);
    bench_close(&b);
}

static void write_script(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

    CHECK_INT(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

TEST(a_script_without_an_interpreter_line_is_run_by_sh)
{
    struct bench b = bench_open();
    struct init_start m;
    char path[64];

    str_fmt(path, sizeof(path), "/tmp/cove-unit-script-%d", getpid());
    write_script(path, "echo \"$1 from $0\"\n");
    m = peer_words("", OWN_EXEC, path, "hello", NULL);
    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    CHECK_INT(peer_collect(&b.peer, &b.out, &b.err), INIT_EXIT);
    CHECK_HAS(buf_cstr(&b.out), "hello from /tmp/cove-unit-script-");
    write_script(path, "#!/nope/interpreter\n");
    peer_ask(&b.peer, INIT_START, &m, INIT_FAIL);
    check_fail(&b.peer, "cannot_start", "its interpreter");
    unlink(path);
    bench_close(&b);
}

TEST(a_duplicate_id_is_a_conflict_and_does_not_disturb_the_first)
{
    struct bench b = bench_open();
    struct init_start m = peer_words("one", 0, "sleep", "1000", NULL);
    uint32_t pid;

    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    pid = b.peer.m.started.pid;
    peer_ask(&b.peer, INIT_START, &m, INIT_FAIL);
    check_fail(&b.peer, "conflict", "one");
    CHECK_INT(get(&b.peer, "one"), INIT_PROC);
    CHECK_INT(b.peer.m.proc.pid, pid);
    CHECK_INT(b.peer.m.proc.state, INIT_RUNNING);
    CHECK_INT(b.peer.m.proc.argv.count, 2);
    m.id = "bad/id";
    peer_ask(&b.peer, INIT_START, &m, INIT_FAIL);
    check_fail(&b.peer, "invalid", "id");
    bench_close(&b);
}

TEST(a_generated_id_is_never_one_that_is_taken)
{
    struct bench b = bench_open();
    struct init_start m = peer_words("p1", 0, "sleep", "1000", NULL);

    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    m.id = "";
    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    CHECK_STR(b.peer.m.started.id, "p2");
    bench_close(&b);
}

/* Reads output to its end; every byte must be the next one of `seq 1 ...`. */
static uint64_t read_seq(struct peer *p)
{
    uint64_t pos = 0;
    unsigned line = 0;
    char text[16] = "";
    const char *at = text;

    while (peer_next(p) == INIT_OUTPUT) {
        CHECK(p->m.output.pos == pos);
        for (uint32_t i = 0; i < p->m.output.data.len; i++, pos++) {
            if (*at == '\0') {
                str_fmt(text, sizeof(text), "%u\n", ++line);
                at = text;
            }
            if (p->m.output.data.p[i] != *at++)
                fail_msg("byte %llu is not the next one", (unsigned long long)pos);
        }
    }
    CHECK_INT(p->type, INIT_EXIT);
    return pos;
}

TEST(an_owner_that_reads_slowly_makes_the_process_wait_and_misses_nothing)
{
    struct bench b = bench_open();
    struct peer other;

    peer_open(&other, &b.init);
    peer_sh(&b.peer, "flood", INIT_START_OWN, "seq 1 2000000 | head -c 10000000");
    do
        CHECK_INT(get(&other, "flood"), INIT_PROC);
    while (other.m.proc.output_end < RING_DEFAULT);
    CHECK_INT(other.m.proc.state, INIT_RUNNING);
    CHECK_INT(read_seq(&b.peer), 10000000);
    peer_close(&other);
    bench_close(&b);
}

TEST(a_process_runs_on_and_is_read_after_its_owner_left)
{
    struct bench b = bench_open();
    struct peer other;

    peer_open(&other, &b.init);
    peer_sh(&b.peer, "flood", INIT_START_OWN, "head -c 5000000 /dev/zero");
    do /* until it waits for its owner */
        CHECK_INT(get(&other, "flood"), INIT_PROC);
    while (other.m.proc.output_end < RING_DEFAULT);
    peer_close(&b.peer);
    wait_exit(&other, "flood");
    CHECK_INT(other.m.exit.code, 0);
    CHECK_INT(other.m.exit.output_end, 5000000);
    peer_open(&b.peer, &b.init);
    peer_close(&other);
    bench_close(&b);
}

/* The next owner owns the output when the first has left, and not before. */
TEST(the_next_owner_makes_the_process_wait_and_misses_nothing)
{
    struct bench b = bench_open();
    struct init_attach at = {.id = "flood", .flags = INIT_ATTACH_FOLLOW | INIT_ATTACH_OWN};
    struct init_stdin go = {.id = "flood", .data = {"go\n", 3}};
    struct peer heir, other;

    peer_open(&heir, &b.init);
    peer_open(&other, &b.init);
    peer_sh(&b.peer, "flood", INIT_START_OWN | INIT_START_STDIN,
            "read x; seq 1 2000000 | head -c 10000000");
    peer_send(&heir, INIT_ATTACH, &at);
    CHECK_INT(get(&other, "flood"), INIT_PROC);
    peer_close(&b.peer);
    peer_ask(&other, INIT_STDIN, &go, INIT_OK);
    do
        CHECK_INT(get(&other, "flood"), INIT_PROC);
    while (other.m.proc.output_end < RING_DEFAULT);
    CHECK_INT(other.m.proc.state, INIT_RUNNING);
    CHECK_INT(read_seq(&heir), 10000000);
    peer_close(&other);
    peer_close(&heir);
    peer_open(&b.peer, &b.init);
    bench_close(&b);
}

TEST(a_viewer_that_comes_too_late_gets_truncated)
{
    struct bench b = bench_open();
    struct init_start m = peer_words("v", 0, "head", "-c", "100000", "/dev/zero", NULL);
    struct init_attach at = {.id = "v", .flags = INIT_ATTACH_FOLLOW};
    uint64_t pos;

    m.ring = 8192;
    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    wait_exit(&b.peer, "v");
    peer_ask(&b.peer, INIT_ATTACH, &at, INIT_TRUNCATED);
    CHECK_INT(b.peer.m.truncated.from, 0);
    pos = b.peer.m.truncated.to;
    CHECK(pos >= 100000 - 8192 && pos < 100000);
    while (peer_next(&b.peer) == INIT_OUTPUT) {
        CHECK(b.peer.m.output.pos == pos);
        pos += b.peer.m.output.data.len;
    }
    CHECK_INT(b.peer.type, INIT_EXIT);
    CHECK_INT(pos, 100000);
    bench_close(&b);
}

TEST(a_cursor_continues_where_it_stood_and_a_mask_chooses_streams)
{
    struct bench b = bench_open();
    struct init_attach at = {.id = "c", .since = 2};

    peer_sh(&b.peer, "c", 0, "printf abc; sleep 0.05; printf XY >&2; sleep 0.05; printf de");
    wait_exit(&b.peer, "c");
    peer_send(&b.peer, INIT_ATTACH, &at);
    CHECK_INT(peer_collect(&b.peer, &b.out, &b.err), INIT_END);
    CHECK_STR(buf_cstr(&b.out), "cde");
    CHECK_STR(buf_cstr(&b.err), "XY");
    CHECK_INT(b.peer.m.end.value, 7);
    CHECK_INT(b.peer.m.end.exited, 1);
    buf_clear(&b.out);
    buf_clear(&b.err);
    at.since = 0;
    at.streams = INIT_STDERR;
    peer_send(&b.peer, INIT_ATTACH, &at);
    CHECK_INT(peer_collect(&b.peer, &b.out, &b.err), INIT_END);
    CHECK_INT(b.out.len, 0);
    CHECK_STR(buf_cstr(&b.err), "XY");
    at.since = 8;
    peer_ask(&b.peer, INIT_ATTACH, &at, INIT_FAIL);
    check_fail(&b.peer, "invalid", "beyond");
    bench_close(&b);
}

TEST(a_background_child_that_holds_the_pipe_does_not_delay_the_end)
{
    struct bench b = bench_open();
    struct init_attach at = {.id = "bg", .flags = INIT_ATTACH_FOLLOW};
    struct init_wait_log log = {.id = "bg", .text = {"late", 4}, .timeout_ms = 10000};
    struct init_stdin in = {.id = "feeder", .close = 1};

    run(&b, OWN_EXEC, "echo early; sleep 1000 &");
    CHECK_STR(buf_cstr(&b.out), "early\n");
    peer_sh(&b.peer, "bg", 0, "mkfifo /tmp/f$$; echo $$; (cat /tmp/f$$ >/dev/null; rm /tmp/f$$) &");
    wait_exit(&b.peer, "bg");
    peer_send(&b.peer, INIT_ATTACH, &at);
    CHECK_INT(peer_collect(&b.peer, &b.out, &b.err), INIT_EXIT);
    peer_ask(&b.peer, INIT_WAIT_LOG, &log, INIT_FAIL);
    check_fail(&b.peer, "gone", "ended without");
    peer_ask(&b.peer, INIT_STDIN, &in, INIT_FAIL);
    check_fail(&b.peer, "not_found", "feeder");
    kill_tree(&b.peer, "bg", 0);
    bench_close(&b);
}

TEST(with_WHOLE_the_end_waits_for_every_writer_of_its_output)
{
    struct bench b = bench_open();

    run(&b, INIT_START_OWN | INIT_START_WHOLE,
        "(sleep 0.2; echo late; exit 3) & echo early; exit 7");
    CHECK_STR(buf_cstr(&b.out), "early\nlate\n");
    CHECK_INT(b.peer.m.exit.code, 7);
    run(&b, INIT_START_OWN | INIT_START_WHOLE, "exec >&- 2>&-; exec sleep 0.05");
    CHECK_INT(b.peer.m.exit.code, 0);
    bench_close(&b);
}

TEST(with_WHOLE_a_kill_signal_or_timeout_ends_the_wait_for_writers)
{
    static const char script[] = "setsid sleep 1000 & echo early; exec sleep 1000";
    static const char gone[] = "setsid sleep 1000 & echo early";
    static const char left[] = /* "early" says that its root has ended */
        "(while kill -0 $$; do sleep 0.01; done; echo early; exec setsid sleep 1000) 2>/dev/null &";
    struct bench b = bench_open();
    struct init_signal sig = {.id = "a", .signal = SIGTERM};
    struct init_wait_log log = {.id = "a", .text = {"early", 5}, .timeout_ms = 10000};
    struct init_start m;

    peer_sh(&b.peer, "a", INIT_START_WHOLE, script);
    peer_ask(&b.peer, INIT_WAIT_LOG, &log, INIT_OK);
    peer_ask(&b.peer, INIT_SIGNAL, &sig, INIT_OK);
    wait_exit(&b.peer, "a");
    CHECK_INT(b.peer.m.exit.signal, SIGTERM);
    kill_tree(&b.peer, "a", 0);
    peer_sh(&b.peer, "b", INIT_START_WHOLE, left);
    log.id = "b";
    peer_ask(&b.peer, INIT_WAIT_LOG, &log, INIT_OK);
    kill_tree(&b.peer, "b", 0);
    CHECK_INT(b.peer.m.exit.code, 0);
    m = peer_words("c", INIT_START_OWN | INIT_START_WHOLE, "/bin/sh", "-c", gone, NULL);
    m.timeout_ms = 1000;
    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    CHECK_INT(peer_collect(&b.peer, &b.out, &b.err), INIT_EXIT);
    CHECK_STR(buf_cstr(&b.out), "early\n");
    kill_tree(&b.peer, "c", 0);
    bench_close(&b);
}

TEST(a_process_is_found_by_pid_and_REUSE_frees_the_id_of_an_ended_one)
{
    struct bench b = bench_open();
    struct init_start m = peer_words("tag", INIT_START_REUSE, "true", NULL);
    char name[INIT_ID_MAX];
    uint32_t first;

    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    first = b.peer.m.started.pid;
    wait_exit(&b.peer, "tag");
    str_fmt(name, sizeof(name), "@%u", first);
    CHECK_INT(get(&b.peer, name), INIT_PROC);
    CHECK_STR(b.peer.m.proc.id, "tag");
    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    wait_exit(&b.peer, "tag");
    CHECK_INT(get(&b.peer, "tag"), INIT_PROC);
    CHECK(b.peer.m.proc.pid != first);
    CHECK_INT(get(&b.peer, "@"), INIT_FAIL);
    CHECK_INT(get(&b.peer, "@x"), INIT_FAIL);
    CHECK_INT(get(&b.peer, "@999999999999"), INIT_FAIL);
    m = peer_words("tag", 0, "sleep", "1000", NULL);
    peer_ask(&b.peer, INIT_START, &m, INIT_FAIL);
    check_fail(&b.peer, "conflict", "tag");
    bench_close(&b);
}

TEST(a_timeout_kills_the_whole_tree_and_keeps_the_output)
{
    struct bench b = bench_open();
    struct init_start m = peer_words("slow", INIT_START_OWN, "/bin/sh", "-c",
                                     "setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000", NULL);
    pid_t hidden;

    m.timeout_ms = 1000;
    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    CHECK_INT(peer_collect(&b.peer, &b.out, &b.err), INIT_EXIT);
    CHECK_INT(b.peer.m.exit.code, 124);
    CHECK_INT(b.peer.m.exit.flags, INIT_EXIT_TIMED_OUT);
    hidden = atoi(buf_cstr(&b.out));
    CHECK(hidden > 1);
    kill_tree(&b.peer, "slow", 0);
    CHECK(is_dead(hidden));
    bench_close(&b);
}

TEST(a_timeout_does_not_run_while_the_sandbox_is_paused)
{
    struct bench b = bench_open();
    struct init_start m = peer_words("paused", 0, "sleep", "1000", NULL);
    struct init_wait w = {.id = "paused", .timeout_ms = 700};
    char stat[128];

    str_fmt(stat, sizeof(stat), "%s/cgroup.stat.local", b.init.cgroup);
    m.timeout_ms = 1000;
    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    peer_write_file(b.init.cgroup, "cgroup.freeze", "1");
    if (access(stat, F_OK) == 0) {
        peer_ask(&b.peer, INIT_WAIT, &w, INIT_FAIL);
        check_fail(&b.peer, "timeout", "timed out after");
    }
    peer_write_file(b.init.cgroup, "cgroup.freeze", "0");
    wait_exit(&b.peer, "paused");
    CHECK_INT(b.peer.m.exit.code, 124);
    CHECK_INT(b.peer.m.exit.flags, INIT_EXIT_TIMED_OUT);
    bench_close(&b);
}

TEST(a_process_that_ignores_term_dies_when_its_grace_is_over)
{
    struct bench b = bench_open();
    struct init_wait_log log = {.id = "deaf", .text = {"ready", 5}, .timeout_ms = 10000};

    peer_sh(&b.peer, "deaf", 0, "trap '' TERM; echo ready; while :; do sleep 1000; done");
    peer_ask(&b.peer, INIT_WAIT_LOG, &log, INIT_OK);
    kill_tree(&b.peer, "deaf", 50);
    CHECK_INT(b.peer.m.exit.code, 137);
    CHECK_INT(b.peer.m.exit.signal, SIGKILL);
    CHECK_INT(b.peer.m.exit.flags, INIT_EXIT_KILLED);
    kill_tree(&b.peer, "deaf", 50);
    bench_close(&b);
}

TEST(a_process_that_handles_term_ends_before_its_grace)
{
    struct bench b = bench_open();
    struct init_wait_log log = {.id = "polite", .text = {"ready", 5}, .timeout_ms = 10000};

    peer_sh(&b.peer, "polite", 0, "sleep 1000 & trap 'exit 3' TERM; echo ready; wait");
    peer_ask(&b.peer, INIT_WAIT_LOG, &log, INIT_OK);
    kill_tree(&b.peer, "polite", 3600000);
    CHECK_INT(b.peer.m.exit.code, 3);
    CHECK_INT(b.peer.m.exit.flags, INIT_EXIT_KILLED);
    bench_close(&b);
}

TEST(children_that_outlive_their_process_can_be_killed)
{
    struct bench b = bench_open();
    pid_t left;

    peer_sh(&b.peer, "left", INIT_START_OWN, "sleep 1000 >/dev/null 2>&1 & echo $!");
    CHECK_INT(peer_collect(&b.peer, &b.out, &b.err), INIT_EXIT);
    left = atoi(buf_cstr(&b.out));
    CHECK_INT(kill(left, 0), 0);
    kill_tree(&b.peer, "left", 0);
    CHECK_INT(b.peer.m.exit.flags, 0);
    CHECK(is_dead(left));
    bench_close(&b);
}

TEST(stdin_and_its_end_reach_the_process)
{
    struct bench b = bench_open();
    struct init_stdin in = {.id = "", .data = {"hello ", 6}};

    peer_sh(&b.peer, "cat", OWN_EXEC | INIT_START_STDIN, "cat");
    peer_send_as(&b.peer, INIT_STDIN, b.peer.seq, &in);
    in = (struct init_stdin){.id = "", .data = {"world", 5}, .close = 1};
    peer_send_as(&b.peer, INIT_STDIN, b.peer.seq, &in);
    CHECK_INT(peer_collect(&b.peer, &b.out, &b.err), INIT_EXIT);
    CHECK_STR(buf_cstr(&b.out), "hello world");
    bench_close(&b);
}

TEST(a_process_that_does_not_read_its_stdin_fills_a_bounded_queue)
{
    static char chunk[INIT_CHUNK_MAX];
    struct bench b = bench_open();
    struct init_stdin in = {.id = "full", .data = {chunk, sizeof(chunk)}};
    size_t sent = 0;

    peer_sh(&b.peer, "full", INIT_START_STDIN, "sleep 1000");
    for (;;) {
        peer_send(&b.peer, INIT_STDIN, &in);
        if (peer_next(&b.peer) != INIT_OK)
            break;
        sent += sizeof(chunk);
    }
    check_fail(&b.peer, "limit", "has not read");
    CHECK(sent >= STDIN_QUEUE_MAX - sizeof(chunk) && sent <= STDIN_QUEUE_MAX + PIPE_GROWN);
    kill_tree(&b.peer, "full", 0);
    peer_ask(&b.peer, INIT_STDIN, &in, INIT_FAIL);
    check_fail(&b.peer, "gone", "closed");
    bench_close(&b);
}

TEST(an_owner_may_send_more_stdin_than_any_buffer_holds)
{
    enum { CHUNKS = 64, SIZE = 128 << 10 };
    static char chunk[SIZE];
    struct bench b = bench_open();
    struct init_stdin in = {.id = "", .data = {chunk, SIZE}};

    peer_sh(&b.peer, "wc", OWN_EXEC | INIT_START_STDIN, "sleep 0.1; wc -c");
    for (int i = 0; i < CHUNKS; i++) {
        in.close = i == CHUNKS - 1;
        peer_send_as(&b.peer, INIT_STDIN, b.peer.seq, &in);
    }
    CHECK_INT(peer_collect(&b.peer, &b.out, &b.err), INIT_EXIT);
    CHECK_INT(atoi(buf_cstr(&b.out)), CHUNKS * SIZE);
    bench_close(&b);
}

TEST(a_signal_goes_to_the_root_or_to_the_tree)
{
    struct bench b = bench_open();
    struct init_wait_log log = {.id = "s", .text = {"ready", 5}, .timeout_ms = 10000};
    struct init_signal sig = {.id = "s", .signal = SIGUSR1};

    peer_sh(&b.peer, "s", 0,
            "trap 'echo one; exit 5' USR1; echo ready; while :; do sleep 0.01; done");
    peer_ask(&b.peer, INIT_WAIT_LOG, &log, INIT_OK);
    peer_ask(&b.peer, INIT_SIGNAL, &sig, INIT_OK);
    wait_exit(&b.peer, "s");
    CHECK_INT(b.peer.m.exit.code, 5);
    peer_ask(&b.peer, INIT_SIGNAL, &sig, INIT_FAIL);
    check_fail(&b.peer, "gone", "ended");
    sig = (struct init_signal){.id = "t", .signal = SIGKILL, .to = INIT_TO_TREE};
    peer_sh(&b.peer, "t", 0, "sleep 1000 & sleep 1000");
    peer_ask(&b.peer, INIT_SIGNAL, &sig, INIT_OK);
    wait_exit(&b.peer, "t");
    CHECK_INT(b.peer.m.exit.code, 137);
    bench_close(&b);
}

TEST(a_text_is_found_across_chunks_with_its_position)
{
    struct bench b = bench_open();
    struct init_wait_log log = {.id = "log", .text = {"aab needle", 10}, .timeout_ms = 10000};

    peer_sh(&b.peer, "log", 0,
            "printf aa; sleep 0.05; printf noise >&2; printf 'ab nee'; sleep 0.05; printf dleX;"
            "sleep 1000");
    peer_ask(&b.peer, INIT_WAIT_LOG, &log, INIT_OK);
    CHECK_INT(b.peer.m.ok.value, 16);
    log.since = 16;
    log.timeout_ms = 20;
    peer_ask(&b.peer, INIT_WAIT_LOG, &log, INIT_FAIL);
    check_fail(&b.peer, "timeout", "timed out after");
    log.since = 0;
    log.timeout_ms = 0;
    log.streams = INIT_STDERR;
    log.text = (struct wire_bytes){"noise", 5};
    peer_ask(&b.peer, INIT_WAIT_LOG, &log, INIT_OK);
    bench_close(&b);
}

TEST(waiting_for_a_port_ends_when_a_server_listens)
{
    struct bench b = bench_open();
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct init_wait_port m = {.id = "", .timeout_ms = 50};

    CHECK_INT(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    CHECK_INT(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    m.port = ntohs(a.sin_port);
    peer_ask(&b.peer, INIT_WAIT_PORT, &m, INIT_FAIL);
    check_fail(&b.peer, "timeout", "timed out after");
    m.timeout_ms = 10000;
    peer_send(&b.peer, INIT_WAIT_PORT, &m);
    CHECK_INT(listen(fd, 4), 0);
    CHECK_INT(peer_next(&b.peer), INIT_OK);
    close(fd);
    peer_sh(&b.peer, "short", 0, "sleep 0.1");
    m.id = "short";
    peer_ask(&b.peer, INIT_WAIT_PORT, &m, INIT_FAIL);
    check_fail(&b.peer, "gone", "ended");
    bench_close(&b);
}

/* Answers one request with these bytes. */
static void serve_once(int listener, const char *answer)
{
    char request[256] = "";
    int fd = accept(listener, NULL, NULL);

    CHECK(fd >= 0);
    CHECK(recv(fd, request, sizeof(request) - 1, 0) > 0);
    CHECK_HAS(request, "GET /well HTTP/1.1\r\nHost: localhost:");
    CHECK_INT(send(fd, answer, strlen(answer), MSG_NOSIGNAL), strlen(answer));
    close(fd);
}

TEST(waiting_for_http_ends_only_with_the_wanted_status)
{
    struct bench b = bench_open();
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct init_wait_port m = {
        .id = "", .timeout_ms = 10000, .path = "/well", .status_min = 200, .status_max = 299};

    CHECK_INT(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    CHECK_INT(listen(fd, 4), 0);
    CHECK_INT(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    m.port = ntohs(a.sin_port);
    peer_send(&b.peer, INIT_WAIT_PORT, &m);
    serve_once(fd, "HTTP/1.1 503 Service Unavailable\r\n\r\n");
    serve_once(fd, "SSH-2.0-nonsense\r\n");
    serve_once(fd, "HTTP/1.1");
    serve_once(fd, "HTTP/1.1 302 Found\r\n\r\n");
    serve_once(fd, "HTTP/1.1 204 No Content\r\n\r\n");
    CHECK_INT(peer_next(&b.peer), INIT_OK);
    m.path = "/a b";
    peer_ask(&b.peer, INIT_WAIT_PORT, &m, INIT_FAIL);
    check_fail(&b.peer, "invalid", "path");
    close(fd);
    bench_close(&b);
}

TEST(finished_processes_are_kept_up_to_a_bound_and_execs_are_not)
{
    struct bench b = bench_open();
    struct init_list all = {0};
    unsigned n = 0;
    char first[INIT_ID_MAX + 1];

    run(&b, OWN_EXEC, "echo gone");
    for (unsigned i = 0; i < PROCS_KEPT_MAX + 5; i++) {
        run(&b, INIT_START_OWN, "echo kept");
        if (i == 0)
            strcpy(first, b.peer.m.exit.id);
    }
    CHECK_INT(get(&b.peer, first), INIT_FAIL);
    peer_send(&b.peer, INIT_LIST, &all);
    while (peer_next(&b.peer) == INIT_PROC) {
        CHECK_INT(b.peer.m.proc.state, INIT_EXITED);
        n++;
    }
    CHECK_INT(b.peer.type, INIT_END);
    CHECK_INT(n, PROCS_KEPT_MAX);
    bench_close(&b);
}

TEST(a_monitor_hears_of_every_process_and_of_no_exec)
{
    struct bench b = bench_open();
    struct init_monitor m = {0};
    struct peer other;

    peer_open(&other, &b.init);
    peer_send(&other, INIT_MONITOR, &m);
    CHECK_INT(get(&b.peer, "nobody"), INIT_FAIL);
    run(&b, OWN_EXEC, "exit 3");
    do
        run(&b, INIT_START_OWN, "exit 4");
    while (recv(other.fd, &(char){0}, 1, MSG_PEEK | MSG_DONTWAIT) < 1);
    CHECK_INT(peer_next(&other), INIT_EVENT);
    CHECK_INT(other.m.event.kind, INIT_EVENT_STARTED);
    CHECK_INT(peer_next(&other), INIT_EVENT);
    CHECK_INT(other.m.event.kind, INIT_EVENT_EXITED);
    CHECK_INT(other.m.event.code, 4);
    peer_close(&other);
    bench_close(&b);
}

TEST(a_bad_frame_ends_that_connection_only)
{
    static const char *const bad[] = {
        "\377\377\377\377\040\000\000\000\001\000\000\000",  /* too long */
        "\000\000\000\000\040\000\001\000\001\000\000\000",  /* not zero */
        "\001\000\000\000\040\000\000\000\001\000\000\000x", /* half a field */
        "\000\000\000\000\005\000\000\000\001\000\000\000",  /* an answer */
    };
    struct bench b = bench_open();

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct peer p;

        peer_open(&p, &b.init);
        CHECK_INT(send(p.fd, bad[i], i == 2 ? 13 : 12, 0), i == 2 ? 13 : 12);
        CHECK_INT(peer_next(&p), 0);
        peer_close(&p);
    }
    run(&b, OWN_EXEC, "exit 0");
    bench_close(&b);
}

TEST(an_unknown_request_is_refused_with_our_version)
{
    struct bench b = bench_open();
    struct wire_head h = {.type = 999, .seq = ++b.peer.seq};

    CHECK_INT(send(b.peer.fd, &h, sizeof(h), 0), (ssize_t)sizeof(h));
    CHECK_INT(peer_next(&b.peer), INIT_FAIL);
    check_fail(&b.peer, "unsupported", "999");
    run(&b, OWN_EXEC, "exit 0");
    bench_close(&b);
}

TEST(connections_beyond_the_limit_are_closed_and_the_others_live)
{
    static struct peer peers[INIT_CONNS_MAX];
    struct bench b = bench_open();
    struct peer one_more = {.in = BUF_INIT(65536)};
    struct sockaddr_un a = {.sun_family = AF_UNIX};

    for (size_t i = 0; i < INIT_CONNS_MAX - 1; i++)
        peer_open(&peers[i], &b.init);
    strcpy(a.sun_path, b.init.sock);
    one_more.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(connect(one_more.fd, (struct sockaddr *)&a, sizeof(a)), 0);
    CHECK_INT(peer_next(&one_more), 0);
    peer_close(&one_more);
    for (size_t i = 0; i < INIT_CONNS_MAX - 1; i++)
        peer_close(&peers[i]);
    run(&b, OWN_EXEC, "exit 0");
    bench_close(&b);
}

TEST(no_fd_leaks_under_load)
{
    struct bench b = bench_open();
    int before;

    run(&b, OWN_EXEC, "true");
    before = peer_init_fds(&b.init);
    for (int i = 0; i < 50; i++)
        run(&b, OWN_EXEC | INIT_START_STDIN, "echo x; echo y >&2");
    CHECK(peer_init_fds(&b.init) <= before + 2 * (int)GROUPS_SPARE_MAX);
    bench_close(&b);
}

TEST(a_child_that_is_frozen_before_exec_is_killed)
{
    struct bench b = bench_open();
    struct init_start m = peer_words("", OWN_EXEC, "true", NULL);

    peer_write_file(b.init.cgroup, "cgroup.freeze", "1");
    peer_ask(&b.peer, INIT_START, &m, INIT_FAIL);
    check_fail(&b.peer, "cannot_start", "killed before exec");
    peer_write_file(b.init.cgroup, "cgroup.freeze", "0");
    run(&b, OWN_EXEC, "exit 0");
    bench_close(&b);
}

TEST(a_fork_bomb_dies_with_its_process)
{
    struct bench b = bench_open();
    struct init_wait_log log = {.id = "bomb", .text = {"ready", 5}, .timeout_ms = 30000};

    peer_sh(
        &b.peer, "bomb", 0,
        "ulimit -u 300; i=0; f() { i=$((i+1)); [ $i -gt 12 ] || { f & f & wait; }; sleep 1000; };"
        "trap '' TERM; f & sleep 0.05; echo ready; wait");
    peer_ask(&b.peer, INIT_WAIT_LOG, &log, INIT_OK);
    kill_tree(&b.peer, "bomb", 0);
    CHECK_INT(b.peer.m.exit.signal, SIGKILL);
    run(&b, OWN_EXEC, "exit 0");
    bench_close(&b);
}

/* Not with `wait`, which is a watch. */
static void await_end(struct peer *p, const char *id)
{
    for (int i = 0; i < 1000 && get(p, id) == INIT_PROC && p->m.proc.state != INIT_EXITED; i++)
        usleep(20000);
    CHECK_INT(p->type, INIT_PROC);
    CHECK_INT(p->m.proc.state, INIT_EXITED);
}

TEST(a_leashed_process_ends_when_its_owner_leaves)
{
    struct bench b = bench_open();
    struct peer other;

    peer_open(&other, &b.init);
    peer_sh(&other, "led", INIT_START_OWN | INIT_START_LEASH, "exec sleep 1000");
    peer_close(&other);
    await_end(&b.peer, "led");
    CHECK_INT(b.peer.m.proc.signal, SIGTERM);
    bench_close(&b);
}

TEST(a_leashed_process_gets_TERM_before_its_stdin_ends)
{
    struct bench b = bench_open();
    struct init_stdin in = {.data = {"half", 4}};
    struct peer other;

    peer_open(&other, &b.init);
    peer_sh(&other, "led", INIT_START_OWN | INIT_START_LEASH | INIT_START_STDIN,
            "trap 'touched=1' TERM; echo up; cat >/dev/null; [ \"$touched\" ] && exit 3");
    CHECK_INT(peer_next(&other), INIT_OUTPUT);
    peer_send_as(&other, INIT_STDIN, other.seq, &in);
    peer_close(&other);
    await_end(&b.peer, "led");
    CHECK_INT(b.peer.m.proc.code, 3);
    bench_close(&b);
}

TEST(a_leash_counts_only_time_without_a_watch)
{
    struct bench b = bench_open();
    struct init_start m = peer_words("led", INIT_START_LEASH, "/bin/sh", "-c", "sleep 1000", NULL);
    struct init_attach look = {.id = "led", .flags = INIT_ATTACH_FOLLOW};
    struct init_wait wait = {.id = "led", .timeout_ms = 400};

    m.timeout_ms = 100;
    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    peer_ask(&b.peer, INIT_WAIT, &wait, INIT_FAIL); /* waiting is watching */
    wait.timeout_ms = 0;
    CHECK_STR(b.peer.m.fail.code, "timeout");
    peer_send(&b.peer, INIT_ATTACH, &look);
    peer_close(&b.peer);
    peer_open(&b.peer, &b.init);
    await_end(&b.peer, "led");
    CHECK_INT(b.peer.m.proc.signal, SIGTERM);
    bench_close(&b);
}

TEST(the_fronts_own_processes_are_only_in_their_own_list)
{
    struct bench b = bench_open();
    struct init_list list = {.own = 0};

    peer_sh(&b.peer, ".mine", 0, "exec sleep 1000");
    peer_ask(&b.peer, INIT_LIST, &list, INIT_END);
    list.own = 1;
    peer_ask(&b.peer, INIT_LIST, &list, INIT_PROC);
    CHECK_STR(b.peer.m.proc.id, ".mine");
    CHECK_INT(peer_next(&b.peer), INIT_END);
    bench_close(&b);
}

TEST(a_gentle_time_limit_sends_TERM_first)
{
    struct bench b = bench_open();
    struct init_start m =
        peer_words("", OWN_EXEC | INIT_START_GENTLE, "/bin/sh", "-c",
                   "trap 'echo cleaned; exit 0' TERM; echo up; while :; do sleep 0.05; done", NULL);

    m.timeout_ms = 1000;
    peer_ask(&b.peer, INIT_START, &m, INIT_STARTED);
    CHECK_INT(peer_collect(&b.peer, &b.out, &b.err), INIT_EXIT);
    CHECK_STR(buf_cstr(&b.out), "up\ncleaned\n");
    CHECK_INT(b.peer.m.exit.code, 124);
    CHECK((b.peer.m.exit.flags & INIT_EXIT_TIMED_OUT) != 0);
    bench_close(&b);
}

/* Answers that are a part of a file: sent by threads, while the loop goes on. */
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/own.h"
#include "http_peer.h"
#include "loop/job.h"

#define GET "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
#define SIZE (3u << 20)
#define TURNS 20000

static int file = -1; /* the test's own fd of it */
static uint64_t from, length;

static void make_file(void)
{
    char path[] = "/tmp/cove-unit-file-XXXXXX", piece[4096];

    file = mkstemp(path);
    CHECK(file >= 0);
    unlink(path);
    for (unsigned i = 0; i < SIZE / sizeof(piece); i++) {
        memset(piece, (int)('a' + i % 26), sizeof(piece));
        CHECK_INT(write(file, piece, sizeof(piece)), sizeof(piece));
    }
}

static void answer_file(struct http_req *r)
{
    http_reply_file(r, 200, "text/plain", fcntl(file, F_DUPFD_CLOEXEC, 3), from, length, 7);
}

static size_t body_len(void)
{
    const char *end = strstr(buf_cstr(&got), "\r\n\r\n");

    return end == NULL ? 0 : got.len - (size_t)(end + 4 - buf_data(&got));
}

static void hear_body(uint64_t want)
{
    for (int i = 0; i < TURNS && body_len() < want && !closed; i++) {
        heard();
        CHECK_INT(loop_turn(loop, 1, &e), 0);
    }
}

static void start(uint64_t at, uint64_t n)
{
    make_file();
    from = at;
    length = n;
    begin(answer_file);
    clock_release(); /* threads take real time */
}

static void finish(void)
{
    end();
    drop_fd(&file);
}

TEST(a_file_is_sent_completely_and_the_connection_is_kept)
{
    start(0, SIZE);
    for (int i = 0; i < 2; i++) {
        buf_clear(&got);
        say(GET);
        hear_body(SIZE);
        CHECK_INT(body_len(), SIZE);
        CHECK_HAS(buf_cstr(&got), "Content-Length: 3145728\r\n");
        CHECK(memcmp(strstr(buf_cstr(&got), "\r\n\r\n") + 4, "aaaa", 4) == 0);
    }
    CHECK(!closed);
    finish();
}

TEST(a_part_of_it_is_that_part)
{
    start(4096, 8192);
    say(GET);
    hear_body(8192);
    CHECK_INT(body_len(), 8192);
    CHECK(buf_data(&got)[got.len - 1] == 'c');
    CHECK(strstr(buf_cstr(&got), "\r\n\r\n")[4] == 'b');
    finish();
}

TEST(head_and_an_empty_part_send_no_body)
{
    start(0, SIZE);
    say("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
    heard();
    CHECK_HAS(buf_cstr(&got), "Content-Length: 3145728\r\n");
    CHECK_INT(body_len(), 0);
    length = 0;
    CHECK_HAS(ask(GET), "Content-Length: 0\r\n");
    CHECK(!closed);
    finish();
}

TEST(a_file_that_became_shorter_cuts_the_connection)
{
    start(0, SIZE);
    CHECK_INT(ftruncate(file, 1 << 20), 0);
    say(GET);
    hear_body(SIZE);
    CHECK(closed);
    CHECK(body_len() <= 1 << 20);
    finish();
}

TEST(a_client_that_leaves_or_a_server_that_ends_lets_go_of_the_file)
{
    start(0, SIZE);
    say(GET);
    drop_fd(&peer);
    for (int i = 0; i < TURNS && http_server_conns(server) > 0; i++)
        CHECK_INT(loop_turn(loop, 1, &e), 0);
    CHECK_INT(http_server_conns(server), 0);
    peer = connect_peer();
    say(GET);
    finish(); /* in the middle of it */
}

TEST(a_client_that_does_not_read_is_given_up)
{
    start(0, SIZE);
    say(GET);
    for (int i = 0; i < 50; i++)
        CHECK_INT(loop_turn(loop, 1, &e), 0);
    CHECK_INT(http_server_conns(server), 1);
    clock_hold(clock_mono_ns() + (HTTP_SEND_MS + 1000) * 1000000ull, clock_real_ms());
    for (int i = 0; i < 50 && http_server_conns(server) > 0; i++)
        CHECK_INT(loop_turn(loop, 1, &e), 0);
    CHECK_INT(http_server_conns(server), 0);
    clock_release();
    finish();
}

/* ---- waiting for a thread ---- */

#define ENDLESS (8ull << 30) /* a hole */

static int gate[2]; /* what the other threads are kept busy with */
static bool served;

static void wait_at_gate(struct job *j)
{
    char c;

    (void)j;
    CHECK_INT(read(gate[0], &c, 1), 0);
}

static void let_go(struct job *j)
{
    (void)j;
}

static void serve(struct job *j)
{
    (void)j;
    served = true;
}

static uint64_t drink(void)
{
    static char cup[1 << 20];
    uint64_t n = 0;
    ssize_t r;

    while (n < sizeof(cup) && (r = recv(peer, cup, sizeof(cup), MSG_DONTWAIT)) > 0)
        n += (uint64_t)r;
    return n;
}

TEST(a_long_file_gives_its_thread_to_waiting_jobs)
{
    struct job others[JOB_THREADS_MAX - 1] = {0}, one = {0};
    uint64_t drunk = 0;

    start(0, ENDLESS);
    CHECK_INT(ftruncate(file, (off_t)ENDLESS), 0);
    CHECK_INT(pipe2(gate, O_CLOEXEC), 0);
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        job_start(loop, &others[i], wait_at_gate, let_go);
    say(GET);
    while (drunk < 64u << 20) { /* it has its thread, and keeps it while no other job waits */
        drunk += drink();
        CHECK_INT(loop_turn(loop, 0, &e), 0);
    }
    job_start(loop, &one, let_go, serve);
    while (!served && drunk < ENDLESS / 2) {
        drunk += drink();
        CHECK_INT(loop_turn(loop, 0, &e), 0);
    }
    CHECK(served);
    drop_fd(&gate[1]);
    finish();
    drop_fd(&gate[0]);
}

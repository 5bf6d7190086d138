/* The native API with the real engine, between a client, a keeper and an init that the
 * test plays: what happens when they end in the wrong order, and the bounds of answers.
 * tests/api proves what they answer when all goes well. The sanitizers see memory that is
 * freed twice, used afterwards or leaked. */
#include "engine_rig.h"

#include <sys/ioctl.h>

#include "endless.h"
#include "http_peer.h"

#include "front/auth/auth.h"
#include "front/plane/viewer.h"
#include "front/planes/native/git/git.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/native.h"
#include "json/read.h"

#define SANDBOX "/v1/sandboxes/abc"
#define PROCESS SANDBOX "/processes/p"
#define API_KEY "cove_abc"
#define API_KEY_HASH "bd144169172237d9caa39b642ad1975d6c338ff391937d64e8fd0edaa115549d"
#define SSE "Accept: text/event-stream\r\n"
#define BYTES "Accept: application/octet-stream\r\n"
#define INIT_PEERS 16
#define PIECE (64u << 10) /* bytes that a socket takes at once */

static struct rig r;
static struct auth *auth;
static struct plane *native;
static int init_fd;
static struct peer inits[INIT_PEERS]; /* connections of the sandbox's init */
static size_t ninits;
static struct peer *init; /* the connection of the last request, */
static uint32_t seq;      /* and its number */
static union rig_msg m;   /* and the request, */
static uint64_t pos;      /* and the position of its next output */

static void handle(struct http_req *req)
{
    plane_handle(native, req);
}

/* A native plane, and a running sandbox "abc". */
static void open_all(void)
{
    hold_time();
    rig_new(&r);
    rig_join(&r, rig_start(&r));
    rig_create(&r, "abc", 0, SANDBOX_END_DELETE, &init_fd, &inits[0]);
    ninits = 1;
    CHECK_INT(auth_new(r.store, API_KEY_HASH, &auth, &e), 0);
    CHECK_INT(
        native_kind.make(&(struct plane_opts){.engine = r.g, .auth = auth, .config = &r.config},
                         &native, &e),
        0);
    loop = r.loop;
    serve_begin(handle, 0);
}

static void close_all(void)
{
    serve_end();
    CHECK(list_empty(&native->calls));
    native_kind.free(native);
    while (ninits > 0)
        peer_close(&inits[--ninits]);
    close(init_fd);
    rig_stop(&r);
    auth_free(auth);
    rig_free(&r);
}

static const char *request_with(const char *method, const char *path, const char *headers,
                                const char *body)
{
    static char text[8192];

    snprintf(text, sizeof(text),
             "%s %s HTTP/1.1\r\nHost: x\r\nX-API-Key: " API_KEY
             "\r\n%sContent-Length: %zu\r\n\r\n%s",
             method, path, headers, strlen(body), body);
    return ask(text);
}

static const char *request(const char *method, const char *path, const char *body)
{
    return request_with(method, path, "", body);
}

static void await(const char *text)
{
    for (int i = 0; i < RIG_TURNS && strstr(heard(), text) == NULL; i++)
        rig_turn(&r);
    CHECK_HAS(heard(), text);
}

static void client_leaves(void)
{
    drop_fd(&peer);
    settle();
    peer = connect_peer();
}

/* ---- init ---- */

static bool any_has_frame(void)
{
    struct wire_head head;
    const char *body;
    int fd = accept(init_fd, NULL, NULL);

    if (fd >= 0) {
        CHECK(ninits < INIT_PEERS);
        inits[ninits] = (struct peer){.fd = fd, .in = BUF_INIT(8u << 20)};
        init_hello_to(&inits[ninits++]);
    }
    for (size_t i = 0; i < ninits; i++)
        if (inits[i].fd >= 0 && peer_has(&inits[i], &head, &body)) {
            init = &inits[i];
            return true;
        }
    return false;
}

/* Waits for a request of that type on any connection, an old or a new one. */
static void init_asked(uint16_t type)
{
    RIG_UNTIL(&r, any_has_frame());
    seq = init_hear(&r, init, type, &m);
    pos = type == INIT_ATTACH ? m.init_attach.since : 0;
}

static void answer(uint16_t type, const void *msg)
{
    init_say(init, type, seq, msg);
    rig_settle(&r);
}

static void answer_fail(const char *code, const char *message)
{
    answer(INIT_FAIL, &(struct init_fail){.code = code, .message = message});
}

static bool init_is_read(void)
{
    int queued = 0;

    CHECK_INT(ioctl(init->fd, TIOCOUTQ, &queued), 0);
    return queued == 0;
}

static void out(unsigned stream, const char *p, size_t n)
{
    struct init_output o = {.pos = pos, .stream = stream, .data = {p, (uint32_t)n}};

    RIG_UNTIL(&r, init_is_read());
    init_say(init, INIT_OUTPUT, seq, &o);
    turn();
    pos += n;
}

/* Prints until the engine reads no more of it. */
static void flood(void)
{
    static char page[PIECE];

    memset(page, 'x', sizeof(page));
    for (int i = 0; i < 1000 && init_is_read(); i++) {
        out(INIT_STDOUT, page, sizeof(page));
        settle();
    }
    CHECK(!init_is_read());
}

/* The same with another message. */
static void flood_with(uint16_t type, const void *msg)
{
    autobuf struct buf frames = BUF_INIT(1u << 20);

    while (frames.len < PIECE)
        CHECK_INT(wire_put(&frames, init_msg(type), seq, msg, &e), 0);
    for (int i = 0; i < 1000 && init_is_read(); i++) {
        peer_raw(init, buf_data(&frames), frames.len);
        settle();
    }
    CHECK(!init_is_read());
}

/* ---- the way in ---- */

/* clang-format off */
static const struct {
    const char *method, *path, *headers, *body, *want;
} bad[] = {
    {"GET", "/v1/nothing", "", "", "404 Not Found"},
    {"PATCH", "/v1/sandboxes", "", "", "Allow: POST, GET"},
    {"POST", "/v1/sandboxes", "Content-Type: text/plain\r\n", "{}", "415 "},
    {"POST", "/v1/sandboxes", "", "{\"tempalte\":1}", "tempalte: unknown field"},
    {"POST", "/v1/sandboxes", "", "{\"limits\":{\"memory\":1}}", "limits: memory"},
    {"POST", "/v1/sandboxes", "", "{\"on_timeout\":\"explode\"}", "delete, stop"},
    {"POST", "/v1/sandboxes", "", "{\"network\":{\"allow\":[\"x\"]}}", "network: allow: 'x' is not an address"},
    {"POST", "/v1/sandboxes", "", "{\"network\":{\"open\":true}}", "400 "},
    {"POST", "/v1/sandboxes", "", "{\"network\":7}", "400 "},
    {"PUT", SANDBOX "/network", "", "{\"mode\":\"none\"}", "400 "},
    {"GET", "/v1/sandboxes?state=asleep", "", "", "running, paused, stopped"},
    {"POST", SANDBOX "/exec", "", "{}", "exactly one of argv and command"},
    {"POST", SANDBOX "/exec", "", "{\"argv\":[\"a\"],\"command\":\"b\"}", "exactly one of argv and command"},
    {"POST", SANDBOX "/processes", "", "{\"id\":\"a/b\",\"command\":\"x\"}", "400 "},
    {"POST", SANDBOX "/processes", "", "{\"id\":\"..\",\"command\":\"x\"}", "400 "},
    {"POST", PROCESS "/signal", "", "{\"signal\":0}", "400 "},
    {"POST", PROCESS "/signal", "", "{\"signal\":65}", "400 "},
    {"POST", PROCESS "/signal", "", "{\"signal\":\"\"}", "400 "},
    {"POST", PROCESS "/signal", "", "{\"signal\":\"SIGNOPE\"}", "400 "},
    {"POST", PROCESS "/signal", "", "{\"signal\":1.5}", "400 "},
    {"POST", PROCESS "/signal", "", "{\"signal\":true}", "400 "},
    {"POST", PROCESS "/wait", "", "{\"for\":\"rain\"}", "exit, port or log"},
    {"POST", PROCESS "/wait", "", "{\"for\":\"port\",\"port\":80,\"http\":{\"status\":\"2xx\"}}", "400 "},
    {"POST", PROCESS "/wait", "", "{\"for\":\"port\",\"port\":80,\"http\":{\"status\":\"399-200\"}}", "400 "},
    {"POST", PROCESS "/wait", "", "{\"for\":\"port\",\"port\":80,\"http\":{\"path\":\"x y\"}}", "400 "},
    {"GET", PROCESS "/logs?follow=1", "", "", "400 "},
};
/* clang-format on */

TEST(an_invalid_request_is_refused_with_a_reason_before_the_engine_is_asked)
{
    open_all();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CHECK_HAS(request_with(bad[i].method, bad[i].path, bad[i].headers, bad[i].body),
                  bad[i].want);
        CHECK_HAS(heard(), "\"request_id\":\"r");
    }
    rig_settle(&r);
    CHECK(!any_has_frame());
    close_all();
}

TEST(an_internal_error_hides_its_reason_from_the_client)
{
    struct keeper_fail why = {.code = "internal", .message = "the secret reason"};

    open_all();
    request("POST", "/v1/sandboxes", "{}");
    keeper_say(&r, KEEPER_FAIL, keeper_hear(&r, KEEPER_CREATE, &m), &why);
    await("\"message\":\"internal error\"");
    CHECK(strstr(heard(), "secret") == NULL);
    close_all();
}

TEST(a_client_that_leaves_before_the_keeper_answers_is_forgotten)
{
    struct keeper_sandbox box = keeper_box("def", KEEPER_RUNNING);
    uint32_t asked;

    open_all();
    request("POST", "/v1/sandboxes", "{}");
    asked = keeper_hear(&r, KEEPER_CREATE, &m);
    client_leaves();
    CHECK(!list_empty(&native->calls));
    keeper_say(&r, KEEPER_SANDBOX, asked, &box);
    RIG_UNTIL(&r, list_empty(&native->calls));
    request("DELETE", SANDBOX, "");
    client_leaves();
    keeper_ok_to(&r, keeper_hear(&r, KEEPER_DESTROY, &m));
    RIG_UNTIL(&r, list_empty(&native->calls));
    close_all();
}

/* ---- exec ---- */

static void exec_begin(const char *accepts, const char *body)
{
    request_with("POST", SANDBOX "/exec", accepts, body);
    init_asked(INIT_START);
    answer(INIT_STARTED,
           &(struct init_started){.id = "x1", .pid = 42, .started_ms = 1700000000000});
}

TEST(a_long_answer_arrives_whole_though_the_client_reads_slowly)
{
    static char piece[PIECE];

    open_all();
    memset(piece, 'x', sizeof(piece));
    exec_begin("", "{\"command\":\"yes\",\"max_output\":8388608}");
    while (pos < 8u << 20)
        out(INIT_STDOUT, piece, sizeof(piece));
    answer(INIT_EXIT, &(struct init_exit){.id = "x1", .output_end = 8u << 20});
    /* a thread builds it */
    while (heard(), got.len < (8u << 20))
        CHECK_INT(loop_turn(loop, 100, &e), 0);
    CHECK(got.len > 8u << 20 && strstr(heard(), "xxx\",\"stderr\":\"\"") != NULL);
    close_all();
}

TEST(a_stream_of_an_exec_does_not_split_characters_and_ends_with_its_error)
{
    open_all();
    exec_begin(SSE, "{\"command\":\"x\"}");
    out(INIT_STDOUT, "a\xe2\x82", 3);
    out(INIT_STDOUT, "\xac", 1);
    await("event: start\ndata: {\"id\":\"x1\",\"pid\":42");
    await("id: 3-oe282\nevent: stdout\ndata: {\"data\":\"a\"}");
    await("id: 4\nevent: stdout\ndata: {\"data\":\"\xe2\x82\xac\"}");
    answer(INIT_SCREEN, &(struct init_screen){0}); /* nonsense */
    await("event: error\ndata: {\"error\":{\"code\":\"unresponsive\"");
    await("\r\n0\r\n\r\n");
    close_all();
}

TEST(a_client_that_does_not_read_pauses_the_command_and_one_that_reads_resumes_it)
{
    open_all();
    exec_begin(BYTES, "{\"command\":\"x\"}");
    flood();
    RIG_UNTIL(&r, (heard(), init_is_read()));
    answer(INIT_EXIT, &(struct init_exit){.id = "x1", .output_end = pos});
    await("\r\n0\r\n\r\n");
    close_all();
}

TEST(a_client_that_leaves_closes_the_connection_of_its_command)
{
    static const char *const accepts[] = {"", SSE, BYTES};

    open_all();
    for (size_t i = 0; i < ARRAY_LEN(accepts); i++) {
        exec_begin(accepts[i], "{\"command\":\"x\"}");
        out(INIT_STDOUT, "a", 1);
        client_leaves();
        RIG_UNTIL(&r, peer_is_closed(init));
        CHECK(list_empty(&native->calls));
        peer_close(init);
    }
    close_all();
}

/* ---- processes ---- */

static struct init_proc proc = {
    .id = "p", .pid = 7, .cwd = "/", .user = "user", .argv = {"a\0b", 4, 2}};

TEST(a_started_process_is_201_even_if_its_record_cannot_be_read)
{
    struct init_started started = {.id = "p", .pid = 7, .started_ms = 1700000000000};

    open_all();
    for (int lost = 0; lost < 2; lost++) {
        request("POST", SANDBOX "/processes", "{\"id\":\"p\",\"command\":\"x\"}");
        init_asked(INIT_START);
        answer(INIT_STARTED, &started);
        init_asked(INIT_GET);
        if (lost)
            answer_fail("unresponsive", "silence");
        else
            answer(INIT_PROC, &proc);
        await("201 Created");
    }
    close_all();
}

TEST(a_signal_is_given_by_name_or_number)
{
    static const struct {
        const char *text;
        unsigned signo;
    } good[] = {{"\"TERM\"", 15}, {"\"SIGTERM\"", 15}, {"15", 15},       {"\"sigusr1\"", 10},
                {"\"9\"", 9},     {"64", 64},          {"\"SIG40\"", 40}};
    char body[64];

    open_all();
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        snprintf(body, sizeof(body), "{\"signal\":%s}", good[i].text);
        request("POST", PROCESS "/signal", body);
        init_asked(INIT_SIGNAL);
        CHECK_INT(m.init_signal.signal, good[i].signo);
        answer(INIT_OK, &(struct init_ok){0});
        await("204 ");
    }
    close_all();
}

TEST(a_wait_ends_in_init_when_its_client_leaves)
{
    static const struct {
        const char *body;
        uint16_t type;
        unsigned status_min, status_max;
    } waits[] = {
        {"", INIT_WAIT, 0, 0},
        {"{\"for\":\"log\",\"text\":\"up\"}", INIT_WAIT_LOG, 0, 0},
        {"{\"for\":\"port\",\"port\":80}", INIT_WAIT_PORT, 0, 0},
        {"{\"for\":\"port\",\"port\":80,\"http\":{}}", INIT_WAIT_PORT, 200, 399},
        {"{\"for\":\"port\",\"port\":80,\"http\":{\"path\":\"/x\",\"status\":\"204\"}}",
         INIT_WAIT_PORT, 204, 204},
    };

    open_all();
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        request("POST", PROCESS "/wait", waits[i].body);
        init_asked(waits[i].type);
        if (waits[i].type == INIT_WAIT_PORT) {
            CHECK_INT(m.init_wait_port.status_min, waits[i].status_min);
            CHECK_INT(m.init_wait_port.status_max, waits[i].status_max);
        }
        client_leaves();
        RIG_UNTIL(&r, peer_is_closed(init));
        peer_close(init);
    }
    close_all();
}

TEST(stdin_is_offered_again_when_the_process_does_not_read)
{
    open_all();
    request("POST", PROCESS "/stdin?close=1", "hello");
    init_asked(INIT_STDIN);
    CHECK_INT(m.init_stdin.data.len, 5);
    answer_fail("limit", "full");
    pass_ms(100);
    init_asked(INIT_STDIN);
    CHECK_INT(m.init_stdin.data.len, 5);
    answer(INIT_OK, &(struct init_ok){0});
    init_asked(INIT_STDIN);
    CHECK_INT(m.init_stdin.close, 1);
    answer(INIT_OK, &(struct init_ok){0});
    await("204 ");
    request("POST", PROCESS "/stdin", "more");
    init_asked(INIT_STDIN);
    answer_fail("limit", "full");
    client_leaves();
    pass_ms(100);
    CHECK(!any_has_frame());
    close_all();
}

/* ---- logs ---- */

TEST(a_page_of_logs_joins_pieces_and_leaves_half_a_character_for_the_next)
{
    open_all();
    request("GET", PROCESS "/logs?since=10", "");
    init_asked(INIT_ATTACH);
    out(INIT_STDOUT, "ab", 2);
    out(INIT_STDOUT, "cd", 2);
    out(INIT_STDERR, "x\xe2\x82", 3);
    answer(INIT_END, &(struct init_end){.value = 17});
    await("{\"chunks\":[{\"pos\":10,\"stream\":\"stdout\",\"data\":\"abcd\"},"
          "{\"pos\":14,\"stream\":\"stderr\",\"data\":\"x\"}],\"next\":15,\"exited\":false}");
    request("GET", PROCESS "/logs?since=15", "");
    init_asked(INIT_ATTACH);
    CHECK_INT(m.init_attach.since, 15);
    out(INIT_STDERR, "\xe2\x82", 2);
    answer(INIT_END, &(struct init_end){.value = 17, .exited = 1});
    await("\"data\":\"4oI=\",\"encoding\":\"base64\"}],\"next\":17,\"exited\":true}");
    close_all();
}

TEST(a_page_of_logs_ends_at_max_bytes_and_has_the_next_position)
{
    open_all();
    request("GET", PROCESS "/logs?max_bytes=16", "");
    init_asked(INIT_ATTACH);
    answer(INIT_TRUNCATED, &(struct init_truncated){.from = 0, .to = 5});
    pos = 5;
    out(INIT_STDOUT, "0123456789abcdefgh", 18);
    await("\"data\":\"0123456789abcdef\"}],\"next\":21,\"exited\":false,"
          "\"truncated\":{\"from\":0,\"to\":5}}");
    RIG_UNTIL(&r, peer_is_closed(init));
    close_all();
}

TEST(a_followed_log_resumes_in_the_middle_of_a_character)
{
    open_all();
    request_with("GET", PROCESS "/logs?follow=1", SSE "Last-Event-ID: 3-oe282\r\n", "");
    init_asked(INIT_GET);
    answer(INIT_PROC, &proc);
    init_asked(INIT_ATTACH);
    CHECK_INT(m.init_attach.since, 3);
    out(INIT_STDOUT, "\xac!", 2);
    await("id: 5\nevent: stdout\ndata: {\"data\":\"\xe2\x82\xac!\"}");
    answer(INIT_EXIT, &(struct init_exit){.id = "p", .output_end = 5});
    await("event: exit\ndata: {\"code\":0");
    close_all();
}

TEST(a_log_stream_of_an_unknown_process_is_404_and_not_a_stream)
{
    open_all();
    request_with("GET", PROCESS "/logs", SSE, "");
    init_asked(INIT_GET);
    answer_fail("not_found", "no process p");
    await("404 ");
    request_with("GET", PROCESS "/logs", SSE, "");
    init_asked(INIT_GET);
    client_leaves();
    answer(INIT_PROC, &proc);
    CHECK(!any_has_frame());
    close_all();
}

/* ---- events, terminals, metrics ---- */

TEST(a_drained_plane_ends_streams_that_can_be_resumed)
{
    open_all();
    request("GET", "/v1/events", "");
    CHECK(!list_empty(&native->calls));
    plane_drain(native);
    await("\r\n0\r\n\r\n");
    CHECK(list_empty(&native->calls));
    close_all();
}

#define HANDSHAKE                                                                                  \
    "GET " SANDBOX "/terminals/t/connect HTTP/1.1\r\nHost: x\r\nX-API-Key: " API_KEY "\r\n"        \
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"                   \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

static const struct init_screen screen = {.cols = 80, .rows = 24};

static void view(void)
{
    ask(HANDSHAKE);
    init_asked(INIT_VIEW);
    answer(INIT_SCREEN, &screen);
    await("101 Switching Protocols");
}

TEST(a_viewer_that_reads_slowly_is_kept_and_one_that_does_not_read_is_dropped)
{
    char some[65536];

    open_all();
    view();
    flood();
    for (int i = 0; i < 3; i++) {
        CHECK(recv(peer, some, sizeof(some), 0) > 0);
        pass_ms(VIEWER_STALL_MS);
        CHECK(!peer_is_closed(init));
    }
    pass_ms(VIEWER_STALL_MS);
    RIG_UNTIL(&r, peer_is_closed(init));
    close_all();
}

TEST(an_init_that_only_changes_the_size_does_not_fill_our_memory)
{
    open_all();
    view();
    flood_with(INIT_SCREEN, &screen);
    RIG_UNTIL(&r, (heard(), init_is_read()));
    flood_with(INIT_TRUNCATED, &(struct init_truncated){0});
    close_all();
}

TEST(metrics_count_requests_by_route)
{
    open_all();
    request("GET", "/v1/nothing", "");
    request("GET", SANDBOX, "");
    request("GET", "/metrics", "");
    keeper_say(&r, KEEPER_STATS, keeper_hear(&r, KEEPER_STAT, &m), &(struct keeper_stats){0});
    keeper_say(&r, KEEPER_END, keeper_hear(&r, KEEPER_TRAFFIC, &m), &(struct keeper_end){0});
    await("cove_sandbox_creates_total 1\n");
    await("{method=\"GET\",route=\"/v1/sandboxes/{id}\",code=\"2xx\"} 1\n");
    await("{method=\"-\",route=\"-\",code=\"4xx\"} 1\n");
    close_all();
}

/* ---- answers that are too long ---- */

#define PAGE_BYTES_MAX (64u << 20) /* as watches.c has it */
#define ROW_BYTES (14u << 10)      /* a line of a watch's log may not be much longer */

/* Prints text that becomes rows of so many bytes of JSON, commas included. */
static void print_rows(size_t bytes, void (*print)(size_t row))
{
    size_t left = bytes + 1; /* the first has no comma */

    while (left > 0) {
        size_t row = left < 2 * ROW_BYTES ? left : ROW_BYTES;

        print(row - 1);
        left -= row;
    }
}

/* `before`, bytes that are `n` bytes of JSON (a control character is six), and `end`. */
static void print(const char *before, size_t n, char end)
{
    static char text[3 * ROW_BYTES];
    size_t head = strlen(before), escaped = n / 6, len = head + escaped + n % 6 + 1;

    memcpy(text, before, head);
    memset(text + head, 1, escaped);
    memset(text + head + escaped, 'p', n % 6);
    text[len - 1] = end;
    out(INIT_STDOUT, text, len);
}

static void print_untracked(size_t row)
{
    print("? ",
          row - strlen("{\"path\":\"\",\"kind\":\"untracked\",\"index\":\".\",\"worktree\":\".\"}"),
          '\0');
}

static void print_created(size_t row)
{
    print("create f ",
          row -
              strlen("{\"event\":\"create\",\"path\":\"\",\"type\":\"file\",\"cursor\":100000000}"),
          '\n');
}

/* `rows` in the answer; the head of it is all that is waited for. */
static void check_whole(size_t rows, const char *around)
{
    char length[64], head[1024] = "";

    snprintf(length, sizeof(length), "Content-Length: %zu\r\n", rows + strlen(around));
    settle();
    CHECK(recv(peer, head, sizeof(head) - 1, 0) > 0);
    CHECK_HAS(head, "200 OK");
    CHECK_HAS(head, length);
    client_leaves();
}

static void check_refused(void)
{
    await("429 ");
    await("{\"error\":{\"code\":\"limit\",\"message\":\"the answer is too large");
}

static void git_asked(const char *path)
{
    request("GET", path, "");
    init_asked(INIT_START);
    answer(INIT_STARTED, &(struct init_started){.id = "x", .pid = 42});
}

static void git_exits(void)
{
    answer(INIT_EXIT, &(struct init_exit){.id = "x"});
}

TEST(a_git_status_beyond_its_bound_is_an_error)
{
    open_all();
    for (size_t over = 0; over < 2; over++) {
        git_asked(SANDBOX "/git/status?limit=100000");
        print_rows(GIT_ROWS_MAX + over, print_untracked);
        git_exits();
        if (over > 0)
            check_refused();
        else
            check_whole(GIT_ROWS_MAX,
                        "{\"branch\":null,\"commit\":null,\"detached\":true,\"unborn\":true,"
                        "\"upstream\":null,\"ahead\":0,\"behind\":0,\"clean\":false,"
                        "\"entries\":[],\"truncated\":false}");
    }
    close_all();
}

TEST(commits_and_changed_files_beyond_their_bound_are_an_error)
{
    static const char commit[] = "0123456789012345678901234567890123456789\0\0a\0e\0"
                                 "1\0c\0e\0002\0";
    static const char file[] = ":000000 100644 0000000 1234567 A";
    static const struct {
        const char *path, *before;
        size_t len;
        char c; /* that is so many bytes of JSON */
        size_t times;
    } lists[] = {{SANDBOX "/git/log?limit=1000", commit, sizeof(commit), 1, 6},
                 {SANDBOX "/git/diff", file, sizeof(file), '"', 2}};
    static char text[60000];

    open_all();
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        git_asked(lists[i].path);
        memset(text, lists[i].c, sizeof(text) - 1);
        for (size_t n = 0; n <= GIT_ROWS_MAX; n += lists[i].times * sizeof(text)) {
            out(INIT_STDOUT, lists[i].before, lists[i].len);
            out(INIT_STDOUT, text, sizeof(text));
        }
        git_exits();
        check_refused();
    }
    close_all();
}

TEST(a_page_of_a_watch_beyond_its_bound_is_an_error)
{
    open_all();
    for (size_t over = 0; over < 2; over++) {
        request("GET", SANDBOX "/watches/0123456789abcdef/events?limit=10000&since=100000000", "");
        init_asked(INIT_ATTACH);
        print_rows(PAGE_BYTES_MAX + over, print_created);
        answer(INIT_END, &(struct init_end){.value = pos});
        if (over > 0)
            check_refused();
        else
            check_whole(PAGE_BYTES_MAX, "{\"events\":[],\"next\":100000000,\"ended\":false}");
    }
    close_all();
}

/* ---- the document ---- */

static json_t *at(json_t *j, const char *key)
{
    json_t *v = json_object_get(j, key);

    if (v == NULL)
        fail_msg("no %s", key);
    return v;
}

static void lower(char *out_, const char *s)
{
    do
        *out_++ = (char)(*s >= 'A' && *s <= 'Z' ? *s + 32 : *s);
    while (*s++ != '\0');
}

/* Every $ref must lead somewhere. */
static void check_refs(json_t *doc, json_t *j)
{
    const char *key, *ref = json_string_value(json_object_get(j, "$ref"));
    json_t *v;
    size_t i;

    if (ref != NULL && strncmp(ref, "#/components/schemas/", 21) == 0)
        at(at(at(doc, "components"), "schemas"), ref + 21);
    json_object_foreach(j, key, v) check_refs(doc, v);
    json_array_foreach(j, i, v) check_refs(doc, v);
}

TEST(openapi_is_json_and_documents_every_route)
{
    const struct buf *openapi;
    json_t *doc;

    open_all();
    openapi = &CONTAINER_OF(native, struct native, plane)->openapi;
    doc = json_loadb(buf_data(openapi), openapi->len, JSON_REJECT_DUPLICATES, NULL);
    CHECK(doc != NULL);
    CHECK_STR(json_string_value(at(doc, "openapi")), "3.1.0");
    for (size_t i = 0; i < native->nrows; i++) {
        const struct surface_row *row = &native->rows[i];
        char method[16];
        json_t *op;

        lower(method, row->route.method);
        op = at(at(at(doc, "paths"), row->route.path), method);
        CHECK_STR(json_string_value(at(op, "operationId")), row->op);
        at(at(op, "responses"), "default");
        CHECK(row->body == NULL || row->query == NULL);
        CHECK(row->scope != SCOPE_NOBODY);
    }
    check_refs(doc, doc);
    json_decref(doc);
    close_all();
}

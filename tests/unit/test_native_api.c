/* The native API over a real connection with an engine that does as it is told:
 * above all what happens when client and engine end in the wrong order. The
 * sanitizers see what is freed twice, used afterwards or not at all. */
#include "unit.h"

#include "http_peer.h"

#include "endless.h"
#include "front/plane/viewer.h"
#include "front/planes/native/git/git.h"
#include "front/planes/native/internal.h"
#include "front/planes/native/native.h"
#include "native_engine.h"
#include "json/read.h"

#define SANDBOX "/v1/sandboxes/abc"
#define PROCESS SANDBOX "/processes/p"

static struct plane *native;
static struct config config;

static void handle(struct http_req *r)
{
    plane_handle(native, r);
}

static void open_all(void)
{
    memset(&fake, 0, sizeof(fake));
    CHECK_INT(config_load(&config, 0, NULL, &e), 0);
    CHECK_INT(native_kind.make(&(struct plane_opts){.config = &config}, &native, &e), 0);
    begin(handle);
}

static void close_all(void)
{
    http_server_free(server);
    server = NULL;
    settle();
    CHECK(list_empty(&native->calls));
    native_kind.free(native);
    config_free(&config);
    end();
}

static const char *request_with(const char *method, const char *path, const char *headers,
                                const char *body)
{
    static char text[8192];

    snprintf(text, sizeof(text),
             "%s %s HTTP/1.1\r\nHost: x\r\nX-API-Key: good\r\n%sContent-Length: %zu\r\n\r\n%s",
             method, path, headers, strlen(body), body);
    return ask(text);
}

static const char *request(const char *method, const char *path, const char *body)
{
    return request_with(method, path, "", body);
}

static void client_leaves(void)
{
    drop_fd(&peer);
    settle();
    peer = connect_peer();
}

static void failing(struct err *err)
{
    err_set(err, ERR_INTERNAL, "the secret reason");
}

/* ---- the way in ---- */

TEST(health_wants_no_key_and_the_rest_does)
{
    open_all();
    CHECK_HAS(ask("GET /health HTTP/1.1\r\nHost: x\r\n\r\n"), "{\"ok\":true}");
    CHECK_HAS(ask("GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\n\r\n"), "401 Unauthorized");
    CHECK_HAS(heard(), "WWW-Authenticate: Bearer");
    CHECK_HAS(ask("GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n"),
              "200 OK");
    close_all();
}

TEST(errors_have_a_code_a_message_and_the_id_of_the_request)
{
    open_all();
    CHECK_HAS(request("GET", "/v1/nothing", ""), "404 Not Found");
    CHECK_HAS(heard(), "{\"error\":{\"code\":\"not_found\",\"message\":\"");
    CHECK_HAS(heard(), "\"request_id\":\"r");
    CHECK_HAS(request("PATCH", "/v1/sandboxes", ""), "Allow: POST, GET");
    CHECK_HAS(request_with("POST", "/v1/sandboxes", "Content-Type: text/plain\r\n", "{}"), "415 ");
    CHECK_HAS(request("POST", "/v1/sandboxes", "{\"tempalte\":1}"), "tempalte: unknown field");
    CHECK_HAS(request("POST", "/v1/sandboxes", "{\"limits\":{\"memory\":1}}"), "limits: memory");
    CHECK_HAS(request("POST", "/v1/sandboxes", "{\"on_timeout\":\"explode\"}"), "delete, stop");
    CHECK_HAS(request("GET", "/v1/sandboxes?state=asleep", ""), "running, paused, stopped");
    close_all();
}

TEST(what_is_internal_is_not_told)
{
    struct err why;

    open_all();
    request("POST", "/v1/sandboxes", "{}");
    failing(&why);
    fake.got(fake.arg, NULL, &why);
    CHECK_HAS(heard(), "\"message\":\"internal error\"");
    CHECK(strstr(heard(), "secret") == NULL);
    close_all();
}

TEST(a_full_engine_says_when_to_come_back)
{
    struct err why;

    open_all();
    request("POST", "/v1/sandboxes", "");
    err_set(&why, ERR_UNAVAILABLE, "full");
    fake.got(fake.arg, NULL, &why);
    CHECK_HAS(heard(), "503 ");
    CHECK_HAS(heard(), "Retry-After: ");
    close_all();
}

/* ---- sandboxes ---- */

TEST(a_sandbox_is_made_as_asked_and_its_secrets_are_not_shown)
{
    open_all();
    request("POST", "/v1/sandboxes",
            "{\"env\":{\"A\":\"b\"},\"metadata\":{\"k\":\"v\"},\"timeout_ms\":7,"
            "\"on_timeout\":\"stop\",\"limits\":{\"pids\":9}}");
    CHECK_STR(fake.metadata, "{\"k\":\"v\"}");
    CHECK_STR(fake.env, "A=b");
    CHECK_INT(fake.created.timeout_ms, 7);
    CHECK_INT(fake.created.on_timeout, SANDBOX_END_STOP);
    CHECK_INT(fake.created.limits.pids, 9);
    fake.got(fake.arg, &fake_sandbox, NULL);
    CHECK_HAS(heard(), "201 Created");
    CHECK_HAS(heard(), "\"env_names\":[\"TOKEN\"]");
    CHECK_HAS(heard(), "\"ends_at\":null");
    CHECK_HAS(heard(), "\"metadata\":{\"a\":\"1\"}");
    CHECK(strstr(heard(), "secret") == NULL && strstr(heard(), "reason") == NULL);
    close_all();
}

TEST(a_network_is_a_mode_or_lists_and_nothing_else)
{
    open_all();
    request("POST", "/v1/sandboxes", "{\"network\":\"none\"}");
    CHECK_STR(fake.network, "none");
    fake.got(fake.arg, &fake_sandbox, NULL);
    settle();
    request("POST", "/v1/sandboxes",
            "{\"network\":{\"mode\":\"egress\",\"allow\":[\"192.0.2.7:80\"],\"deny\":[\"0.0.0.0/"
            "0\"]}}");
    CHECK_INT(fake.created.nrules, 2);
    fake.got(fake.arg, &fake_sandbox, NULL);
    settle();
    CHECK_HAS(request("POST", "/v1/sandboxes", "{\"network\":{\"allow\":[\"x\"]}}"), "400 ");
    CHECK_HAS(heard(), "network: allow: 'x' is not an address");
    CHECK_HAS(request("POST", "/v1/sandboxes", "{\"network\":{\"open\":true}}"), "400 ");
    CHECK_HAS(request("POST", "/v1/sandboxes", "{\"network\":7}"), "400 ");
    close_all();
}

TEST(rules_are_replaced_as_a_whole)
{
    struct sandbox_rule rules[] = {{.to = {0xc0000200, 80, 443, 24}},
                                   {.to = {.prefix = 0}, .deny = true}};
    struct sandbox s = fake_sandbox;

    open_all();
    CHECK_HAS(request("GET", SANDBOX "/network", ""),
              "{\"mode\":\"none\",\"address\":null,\"allow\":[],\"deny\":[]}");
    request("PUT", SANDBOX "/network",
            "{\"allow\":[\"192.0.2.0/24:80-443\"],\"deny\":[\"0.0.0.0/0\"]}");
    CHECK_INT(fake.nrules, 2);
    CHECK(!fake.rules[0].deny && fake.rules[1].deny);
    CHECK_INT(fake.rules[0].to.last, 443);
    s.network = "egress";
    s.address = 0x0ac80001;
    s.rules = rules;
    s.nrules = 2;
    fake.got(fake.arg, &s, NULL);
    settle();
    CHECK_HAS(
        heard(),
        "\"address\":\"10.200.0.1\",\"allow\":[\"192.0.2.0/24:80-443\"],\"deny\":[\"0.0.0.0/0\"]");
    CHECK_HAS(request("PUT", SANDBOX "/network", "{\"mode\":\"none\"}"), "400 ");
    close_all();
}

TEST(a_wait_for_http_says_path_and_status)
{
    open_all();
    request("POST", PROCESS "/wait",
            "{\"for\":\"port\",\"port\":80,\"http\":{\"path\":\"/x\",\"status\":\"204\"}}");
    CHECK_INT(fake.http.status_min, 204);
    CHECK_INT(fake.http.status_max, 204);
    client_leaves();
    request("POST", PROCESS "/wait", "{\"for\":\"port\",\"port\":80,\"http\":{}}");
    CHECK_INT(fake.http.status_min, 200);
    CHECK_INT(fake.http.status_max, 399);
    client_leaves();
    CHECK_HAS(request("POST", PROCESS "/wait",
                      "{\"for\":\"port\",\"port\":80,\"http\":{\"status\":\"2xx\"}}"),
              "400 ");
    CHECK_HAS(request("POST", PROCESS "/wait",
                      "{\"for\":\"port\",\"port\":80,\"http\":{\"status\":\"399-200\"}}"),
              "400 ");
    CHECK_HAS(request("POST", PROCESS "/wait",
                      "{\"for\":\"port\",\"port\":80,\"http\":{\"path\":\"x y\"}}"),
              "400 ");
    close_all();
}

TEST(a_list_is_paged)
{
    open_all();
    CHECK_HAS(request("GET", "/v1/sandboxes?limit=1", ""), "}],\"next_cursor\":\"more\"}");
    CHECK_HAS(request("GET", "/v1/sandboxes", ""), "}],\"next_cursor\":null}");
    close_all();
}

TEST(a_client_that_leaves_before_the_engine_answers_is_forgotten)
{
    open_all();
    request("POST", "/v1/sandboxes", "{}");
    client_leaves();
    CHECK(!list_empty(&native->calls));
    fake.got(fake.arg, &fake_sandbox, NULL);
    settle();
    CHECK(list_empty(&native->calls));
    request("DELETE", SANDBOX, "");
    client_leaves();
    fake.done(fake.arg, NULL);
    close_all();
}

/* ---- exec ---- */

static void out(unsigned stream, uint64_t pos, const char *p, size_t n)
{
    struct process_output m = {.pos = pos, .stream = stream, .data = {p, (uint32_t)n}};

    fake.stream.ops->on_output(fake.stream.arg, &m);
}

static void exec_begin(const char *accept, const char *body)
{
    struct process_started m = {.id = "x1", .pid = 42, .started_ms = 1700000000000};

    request_with("POST", SANDBOX "/exec", accept, body);
    CHECK(fake.stream.open);
    fake.stream.ops->on_started(fake.stream.arg, &m);
}

static void exec_ends(struct process_exit m)
{
    m.ended_ms = 1700000000250;
    fake.stream.open = false;
    fake.stream.ops->on_exit(fake.stream.arg, &m);
    settle();
}

TEST(an_exec_answers_with_all_it_printed)
{
    open_all();
    exec_begin("", "{\"argv\":[\"a\",\"b\"],\"stdin\":\"in\"}");
    CHECK_INT(fake.stream.nfed, 2);
    CHECK(fake.stream.fed_last && fake.stream.forget);
    out(PROCESS_STDOUT, 0, "hello\n", 6);
    out(PROCESS_STDERR, 6, "\xff", 1);
    exec_ends((struct process_exit){.code = 3, .cpu_us = 5000});
    CHECK_HAS(heard(), "200 OK");
    CHECK_HAS(heard(), "\"exit_code\":3,\"signal\":null,\"timed_out\":false");
    CHECK_HAS(heard(), "\"duration_ms\":250,\"cpu_ms\":5");
    CHECK_HAS(heard(),
              "\"stdout\":\"hello\\n\",\"stderr\":\"/w==\",\"stderr_encoding\":\"base64\"");
    CHECK_HAS(heard(), "\"stdout_truncated\":false");
    close_all();
}

TEST(an_exec_past_its_maximum_says_what_was_dropped)
{
    open_all();
    exec_begin("", "{\"command\":\"yes\",\"max_output\":4}");
    out(PROCESS_STDOUT, 0, "abcdefgh", 8);
    exec_ends((struct process_exit){.signal = 9, .flags = PROCESS_EXIT_TIMED_OUT});
    CHECK_HAS(heard(), "\"exit_code\":124,\"signal\":\"SIGKILL\",\"timed_out\":true");
    CHECK_HAS(heard(), "\"stdout\":\"abgh\"");
    CHECK_HAS(heard(), "\"stdout_truncated\":true");
    CHECK_HAS(heard(), "\"stdout_dropped\":4,\"stdout_dropped_at\":2}");
    close_all();
}

TEST(a_long_answer_arrives_whole_though_the_client_reads_slowly)
{
    static char piece[256u << 10];

    open_all();
    memset(piece, 'x', sizeof(piece));
    exec_begin("", "{\"command\":\"yes\",\"max_output\":8388608}");
    for (uint64_t i = 0; i < 32; i++)
        out(PROCESS_STDOUT, i * sizeof(piece), piece, sizeof(piece));
    exec_ends((struct process_exit){0});
    for (int i = 0; i < 2000 && got.len < (8u << 20); i++)
        heard();
    CHECK(got.len > 8u << 20 && strstr(heard(), "xxx\",\"stderr\":\"\"") != NULL);
    close_all();
}

TEST(a_command_that_cannot_start_is_a_clear_error)
{
    struct err why;

    open_all();
    request_with("POST", SANDBOX "/exec", "Accept: text/event-stream\r\n", "{\"argv\":[\"nope\"]}");
    err_set(&why, ERR_CANNOT_START, "nope: no such file");
    fake.stream.open = false;
    fake.stream.ops->on_fail(fake.stream.arg, &why);
    CHECK_HAS(heard(), "422 ");
    CHECK_HAS(heard(), "nope: no such file");
    CHECK_HAS(request("POST", SANDBOX "/exec", "{}"), "exactly one of argv and command");
    CHECK_HAS(request("POST", SANDBOX "/exec", "{\"argv\":[\"a\"],\"command\":\"b\"}"),
              "exactly one of argv and command");
    close_all();
}

TEST(an_exec_streams_events_and_an_error_becomes_one)
{
    struct err why;

    open_all();
    exec_begin("Accept: text/event-stream\r\n", "{\"command\":\"x\"}");
    out(PROCESS_STDOUT, 0, "a\xe2\x82", 3);
    out(PROCESS_STDOUT, 3, "\xac", 1);
    settle();
    CHECK_HAS(heard(), "event: start\ndata: {\"id\":\"x1\",\"pid\":42");
    CHECK_HAS(heard(), "id: 3-oe282\nevent: stdout\ndata: {\"data\":\"a\"}");
    CHECK_HAS(heard(), "id: 4\nevent: stdout\ndata: {\"data\":\"\xe2\x82\xac\"}");
    err_set(&why, ERR_UNRESPONSIVE, "silence");
    fake.stream.open = false;
    fake.stream.ops->on_fail(fake.stream.arg, &why);
    settle();
    CHECK_HAS(heard(), "event: error\ndata: {\"error\":{\"code\":\"unresponsive\"");
    CHECK_HAS(heard(), "\r\n0\r\n\r\n");
    close_all();
}

TEST(an_exec_gives_bare_bytes_to_a_pipe)
{
    open_all();
    exec_begin("Accept: application/octet-stream\r\n", "{\"command\":\"x\"}");
    out(PROCESS_STDOUT, 0, "\0\xff raw", 6);
    exec_ends((struct process_exit){0});
    heard();
    CHECK(memmem(buf_data(&got), got.len, "6\r\n\0\xff raw\r\n0\r\n\r\n", 16) != NULL);
    close_all();
}

TEST(a_client_that_does_not_read_pauses_the_command_and_one_that_reads_resumes_it)
{
    static char piece[256u << 10];

    open_all();
    memset(piece, 'x', sizeof(piece));
    exec_begin("Accept: application/octet-stream\r\n", "{\"command\":\"x\"}");
    for (uint64_t i = 0; i < 64 && !fake.stream.paused; i++)
        out(PROCESS_STDOUT, i * sizeof(piece), piece, sizeof(piece));
    CHECK(fake.stream.paused);
    for (int i = 0; i < 100 && fake.stream.paused; i++) {
        heard();
        settle();
    }
    CHECK(!fake.stream.paused);
    exec_ends((struct process_exit){0});
    close_all();
}

TEST(a_client_that_leaves_lets_go_of_the_command_and_nothing_else)
{
    static const char *const accepts[] = {"", "Accept: text/event-stream\r\n",
                                          "Accept: application/octet-stream\r\n"};

    open_all();
    for (size_t i = 0; i < ARRAY_LEN(accepts); i++) {
        exec_begin(accepts[i], "{\"command\":\"x\"}");
        out(PROCESS_STDOUT, 0, "a", 1);
        client_leaves();
        CHECK(!fake.stream.open);
        CHECK(list_empty(&native->calls));
    }
    close_all();
}

/* ---- processes ---- */

static struct process_info proc = {
    .id = "p", .pid = 7, .cwd = "/", .user = "user", .argv = {"a\0b", 4}};

TEST(a_process_is_shown_once_it_is_launched)
{
    struct process_started m = {.id = "p", .pid = 7, .started_ms = 1700000000000};
    struct err why;

    open_all();
    request("POST", SANDBOX "/processes", "{\"id\":\"p\",\"command\":\"x\"}");
    fake.started(fake.arg, &m, NULL);
    fake.proc(fake.arg, &proc, NULL);
    CHECK_HAS(heard(), "201 Created");
    CHECK_HAS(heard(), "\"argv\":[\"a\",\"b\"]");
    CHECK_HAS(heard(), "\"exit\":null,\"output\":{\"first\":0,\"end\":0}");
    request("POST", SANDBOX "/processes", "{\"id\":\"p\",\"command\":\"x\"}");
    fake.started(fake.arg, &m, NULL);
    err_set(&why, ERR_UNRESPONSIVE, "silence");
    fake.proc(fake.arg, NULL, &why);
    CHECK_HAS(heard(), "201 Created"); /* it runs, whatever we know about it */
    close_all();
}

TEST(a_process_started_as_a_stream_is_kept_when_it_is_over)
{
    struct process_started m = {.id = "p", .pid = 7};

    open_all();
    request_with("POST", SANDBOX "/processes", "Accept: text/event-stream\r\n",
                 "{\"id\":\"p\",\"command\":\"x\",\"stdin\":true}");
    CHECK(fake.stream.open && !fake.stream.forget && fake.stream.o.stdin_open);
    CHECK(!fake.stream.fed_last);
    fake.stream.ops->on_started(fake.stream.arg, &m);
    exec_ends((struct process_exit){.code = 1});
    CHECK_HAS(heard(), "event: exit\ndata: {\"exit_code\":1");
    close_all();
}

TEST(any_name_of_a_signal_is_understood)
{
    static const struct {
        const char *text;
        int signo;
    } good[] = {{"\"TERM\"", 15}, {"\"SIGTERM\"", 15}, {"15", 15},       {"\"sigusr1\"", 10},
                {"\"9\"", 9},     {"64", 64},          {"\"SIG40\"", 40}};
    static const char *const bad[] = {"0", "65", "\"\"", "\"SIGNOPE\"", "1.5", "true"};
    char body[64];

    open_all();
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        snprintf(body, sizeof(body), "{\"signal\":%s}", good[i].text);
        request("POST", PROCESS "/signal", body);
        CHECK_INT(fake.signo, good[i].signo);
        fake.done(fake.arg, NULL);
        CHECK_HAS(heard(), "204 ");
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        snprintf(body, sizeof(body), "{\"signal\":%s}", bad[i]);
        CHECK_HAS(request("POST", PROCESS "/signal", body), "400 ");
    }
    close_all();
}

TEST(a_wait_is_taken_back_when_the_client_leaves)
{
    static const char *const bodies[] = {"", "{\"for\":\"port\",\"port\":80}",
                                         "{\"for\":\"log\",\"text\":\"up\"}"};

    open_all();
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        request("POST", PROCESS "/wait", bodies[i]);
        CHECK(fake.call.open);
        client_leaves();
        CHECK(!fake.call.open);
    }
    CHECK_HAS(request("POST", PROCESS "/wait", "{\"for\":\"rain\"}"), "exit, port or log");
    close_all();
}

TEST(a_wait_answers_with_what_was_waited_for)
{
    struct process_exit m = {.id = "p", .signal = 11, .flags = PROCESS_EXIT_CORE};
    struct err why;

    open_all();
    request("POST", PROCESS "/wait", "");
    fake.call.exit(fake.call.arg, &m, NULL);
    CHECK_HAS(heard(), "{\"code\":139,\"signal\":\"SIGSEGV\",\"timed_out\":false,\"core\":true");
    request("POST", PROCESS "/wait", "{\"for\":\"port\",\"port\":80}");
    fake.call.value(fake.call.arg, 0, NULL);
    CHECK_HAS(heard(), "{\"port\":80}");
    request("POST", PROCESS "/wait", "{\"for\":\"log\",\"text\":\"up\"}");
    fake.call.value(fake.call.arg, 17, NULL);
    CHECK_HAS(heard(), "{\"position\":17}");
    request("POST", PROCESS "/wait", "{\"timeout_ms\":1}");
    err_set(&why, ERR_TIMEOUT, "not in 1 ms");
    fake.call.exit(fake.call.arg, NULL, &why);
    CHECK_HAS(heard(), "408 ");
    close_all();
}

TEST(stdin_is_offered_again_when_the_process_does_not_read)
{
    struct err full;

    open_all();
    request("POST", PROCESS "/stdin?close=1", "hello");
    CHECK_INT(fake.nstdin, 5);
    err_set(&full, ERR_LIMIT, "full");
    fake.nstdin = 0;
    fake.done(fake.arg, &full);
    pass_ms(100);
    CHECK_INT(fake.nstdin, 5);
    fake.done(fake.arg, NULL);
    settle();
    CHECK(fake.stdin_closed);
    fake.done(fake.arg, NULL);
    CHECK_HAS(heard(), "204 ");
    request("POST", PROCESS "/stdin", "more");
    fake.done(fake.arg, &full);
    client_leaves();
    pass_ms(100);
    close_all();
}

/* ---- logs ---- */

static void logs_end(uint64_t next, bool exited)
{
    struct process_end m = {.value = next, .exited = exited};

    fake.stream.open = false;
    fake.stream.ops->on_end(fake.stream.arg, &m);
    settle();
}

TEST(a_page_of_logs_joins_pieces_and_leaves_half_a_character_for_the_next)
{
    open_all();
    request("GET", PROCESS "/logs", "");
    out(PROCESS_STDOUT, 10, "ab", 2);
    out(PROCESS_STDOUT, 12, "cd", 2);
    out(PROCESS_STDERR, 14, "x\xe2\x82", 3);
    logs_end(17, false);
    CHECK_HAS(heard(), "{\"chunks\":[{\"pos\":10,\"stream\":\"stdout\",\"data\":\"abcd\"},"
                       "{\"pos\":14,\"stream\":\"stderr\",\"data\":\"x\"}],"
                       "\"next\":15,\"exited\":false}");
    request("GET", PROCESS "/logs?since=15", "");
    out(PROCESS_STDERR, 15, "\xe2\x82", 2);
    logs_end(17, true);
    CHECK_HAS(heard(), "\"data\":\"4oI=\",\"encoding\":\"base64\"}],\"next\":17,\"exited\":true}");
    close_all();
}

TEST(a_page_of_logs_is_bounded_and_says_where_to_go_on)
{
    struct process_truncated gap = {.from = 0, .to = 5};

    open_all();
    request("GET", PROCESS "/logs?max_bytes=16", "");
    fake.stream.ops->on_truncated(fake.stream.arg, &gap);
    out(PROCESS_STDOUT, 5, "0123456789abcdefgh", 18);
    CHECK(!fake.stream.open);
    CHECK_HAS(heard(), "\"data\":\"0123456789abcdef\"}],\"next\":21,\"exited\":false,"
                       "\"truncated\":{\"from\":0,\"to\":5}}");
    CHECK_HAS(request("GET", PROCESS "/logs?follow=1", ""), "400 ");
    close_all();
}

TEST(a_log_that_is_followed_resumes_exactly)
{
    struct process_exit m = {.id = "p"};

    open_all();
    request_with("GET", PROCESS "/logs?follow=1",
                 "Accept: text/event-stream\r\nLast-Event-ID: 3-oe282\r\n", "");
    fake.proc(fake.arg, &proc, NULL);
    out(PROCESS_STDOUT, 3, "\xac!", 2);
    settle();
    CHECK_HAS(heard(), "id: 5\nevent: stdout\ndata: {\"data\":\"\xe2\x82\xac!\"}");
    fake.stream.open = false;
    fake.stream.ops->on_exit(fake.stream.arg, &m);
    settle();
    CHECK_HAS(heard(), "event: exit\ndata: {\"code\":0");
    close_all();
}

TEST(logs_of_a_process_that_is_not_there_are_404_even_as_a_stream)
{
    struct err why;

    open_all();
    request_with("GET", PROCESS "/logs", "Accept: text/event-stream\r\n", "");
    err_set(&why, ERR_NOT_FOUND, "no process p");
    fake.proc(fake.arg, NULL, &why);
    CHECK_HAS(heard(), "404 ");
    request_with("GET", PROCESS "/logs", "Accept: text/event-stream\r\n", "");
    client_leaves();
    fake.proc(fake.arg, &proc, NULL);
    close_all();
}

/* ---- events, metrics ---- */

TEST(events_are_resumed_filtered_and_let_go)
{
    struct engine_event ev = {
        .seq = 8, .at_ms = 1, .kind = "sandbox.created", .sandbox = "abc", .data = "{}"};

    open_all();
    request_with("GET", "/v1/events?sandbox=abc", "Last-Event-ID: 7\r\n", "");
    CHECK_INT(fake.watch.after, 7);
    fake.watch.each(fake.watch.arg, &(struct engine_event){.seq = 7});
    fake.watch.each(fake.watch.arg, &ev);
    ev.sandbox = "other";
    fake.watch.each(fake.watch.arg, &ev);
    settle();
    CHECK_HAS(heard(), "id: 7\nevent: truncated\n");
    CHECK_HAS(heard(), "id: 8\nevent: sandbox.created\n");
    CHECK(strstr(heard(), "other") == NULL);
    client_leaves();
    CHECK(!fake.watch.open);
    close_all();
}

TEST(a_server_that_ends_lets_go_of_what_can_be_resumed)
{
    open_all();
    request("GET", "/v1/events", "");
    CHECK(fake.watch.open);
    plane_drain(native);
    settle();
    CHECK(!fake.watch.open);
    CHECK_HAS(heard(), "\r\n0\r\n\r\n");
    close_all();
}

#define HANDSHAKE                                                                                  \
    "GET " SANDBOX "/terminals/t/connect HTTP/1.1\r\nHost: x\r\nX-API-Key: good\r\n"               \
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"                   \
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

/* Until it is told to wait. */
static void flood(void)
{
    static char page[PROCESS_CHUNK_MAX];
    struct process_output m = {.data = {page, sizeof(page)}, .stream = PROCESS_STDOUT};

    for (; !fake.stream.paused; m.pos += sizeof(page))
        fake.stream.ops->on_output(fake.stream.arg, &m);
}

TEST(a_viewer_that_reads_slowly_is_not_dropped_and_one_that_does_not_read_is)
{
    struct process_screen screen = {.cols = 80, .rows = 24};
    char some[65536];

    open_all();
    ask(HANDSHAKE);
    fake.stream.ops->on_screen(fake.stream.arg, &screen);
    CHECK_HAS(heard(), "101 Switching Protocols");
    flood();
    for (int i = 0; i < 3; i++) {
        CHECK(recv(peer, some, sizeof(some), 0) > 0);
        pass_ms(VIEWER_STALL_MS);
        CHECK(fake.stream.open);
    }
    pass_ms(VIEWER_STALL_MS);
    CHECK(!fake.stream.open);
    close_all();
}

TEST(an_init_that_only_changes_the_size_does_not_fill_our_memory)
{
    struct process_screen screen = {.cols = 80, .rows = 24};
    struct process_truncated gap = {0};

    open_all();
    ask(HANDSHAKE);
    for (int i = 0; i < 100000 && !fake.stream.paused; i++)
        fake.stream.ops->on_screen(fake.stream.arg, &screen);
    CHECK(fake.stream.paused);
    heard();
    settle();
    CHECK(!fake.stream.paused);
    for (int i = 0; i < 100000 && !fake.stream.paused; i++)
        fake.stream.ops->on_truncated(fake.stream.arg, &gap);
    CHECK(fake.stream.paused);
    close_all();
}

TEST(metrics_count_requests_by_route)
{
    struct engine_stats s = {.creates = 3};

    open_all();
    request("GET", "/v1/nothing", "");
    request("GET", SANDBOX, "");
    request("GET", "/metrics", "");
    fake.stat(fake.arg, &s);
    CHECK_HAS(heard(), "cove_sandbox_creates_total 3\n");
    CHECK_HAS(heard(), "{method=\"GET\",route=\"/v1/sandboxes/{id}\",code=\"2xx\"} 1\n");
    CHECK_HAS(heard(), "{method=\"-\",route=\"-\",code=\"4xx\"} 1\n");
    close_all();
}

/* ---- answers that are too long ---- */

#define PAGE_BYTES_MAX (64u << 20) /* as watches.c has it */
#define ROW_BYTES (14u << 10)      /* a line of a watch's log may not be much longer */

/* Prints what becomes rows of so many bytes of JSON, commas and all. */
static void print_rows(size_t bytes, void (*print)(size_t row))
{
    size_t left = bytes + 1; /* the first has no comma */

    while (left > 0) {
        size_t row = left < 2 * ROW_BYTES ? left : ROW_BYTES;

        print(row - 1);
        left -= row;
    }
}

static void print(const char *before, size_t n, char end, uint64_t next)
{
    static char text[3 * ROW_BYTES];
    size_t len = strlen(before) + n + 1;

    memset(text, 'p', sizeof(text));
    memcpy(text, before, strlen(before));
    text[len - 1] = end;
    fake.stream.ops->on_output(fake.stream.arg,
                               &(struct process_output){.pos = next - len,
                                                        .stream = PROCESS_STDOUT,
                                                        .data = {text, (uint32_t)len}});
}

static void print_untracked(size_t row)
{
    print("? ",
          row - strlen("{\"path\":\"\",\"kind\":\"untracked\",\"index\":\".\",\"worktree\":\".\"}"),
          '\0', 0);
}

static void print_created(size_t row)
{
    print("create f ",
          row - strlen("{\"event\":\"create\",\"path\":\"\",\"type\":\"file\",\"cursor\":1000000}"),
          '\n', 1000000);
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
    CHECK_HAS(heard(), "429 ");
    CHECK_HAS(heard(), "{\"error\":{\"code\":\"limit\",\"message\":\"the answer is too large");
}

TEST(what_git_says_is_answered_up_to_a_bound_and_beyond_it_is_an_error)
{
    open_all();
    for (size_t over = 0; over < 2; over++) {
        request("GET", SANDBOX "/git/status?limit=100000", "");
        print_rows(GIT_ROWS_MAX + over, print_untracked);
        fake.stream.ops->on_exit(fake.stream.arg, &(struct process_exit){.code = 0});
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

static void print_text(const char *text, size_t n)
{
    fake.stream.ops->on_output(
        fake.stream.arg,
        &(struct process_output){.stream = PROCESS_STDOUT, .data = {text, (uint32_t)n}});
}

TEST(so_are_commits_and_files_that_differ)
{
    static const char commit[] = "0123456789012345678901234567890123456789\0\0a\0e\0"
                                 "1\0c\0e\0002\0";
    static const char file[] = ":000000 100644 0000000 1234567 A";
    static char text[60000];

    open_all();
    request("GET", SANDBOX "/git/log?limit=1000", "");
    memset(text, 1, sizeof(text)); /* a message; as JSON each byte of it is six */
    text[sizeof(text) - 1] = '\0';
    for (size_t n = 0; n <= GIT_ROWS_MAX; n += 6 * sizeof(text)) {
        print_text(commit, sizeof(commit));
        print_text(text, sizeof(text));
    }
    fake.stream.ops->on_exit(fake.stream.arg, &(struct process_exit){.code = 0});
    check_refused();
    request("GET", SANDBOX "/git/diff", "");
    memset(text, 'p', sizeof(text) - 1);
    for (size_t n = 0; n <= GIT_ROWS_MAX; n += sizeof(text)) {
        print_text(file, sizeof(file));
        print_text(text, sizeof(text));
    }
    fake.stream.ops->on_exit(fake.stream.arg, &(struct process_exit){.code = 0});
    check_refused();
    close_all();
}

TEST(a_page_of_a_watch_has_a_bound_and_beyond_it_is_an_error)
{
    open_all();
    for (size_t over = 0; over < 2; over++) {
        request("GET", SANDBOX "/watches/0123456789abcdef/events?limit=10000", "");
        print_rows(PAGE_BYTES_MAX + over, print_created);
        fake.stream.ops->on_end(fake.stream.arg, &(struct process_end){0});
        if (over > 0)
            check_refused();
        else
            check_whole(PAGE_BYTES_MAX, "{\"events\":[],\"next\":1000000,\"ended\":false}");
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

TEST(openapi_is_json_and_says_every_route)
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

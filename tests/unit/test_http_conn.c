#include "unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "http_peer.h"

#define GET "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST(len) "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " len "\r\n\r\n"
#define CHUNKED "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

static struct http_req *kept; /* a request whose handler is still thinking */
static unsigned requests, gone, drains;
static struct buf seen = BUF_INIT(64u << 20);

static size_t count_of(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

static void on_gone(struct http_req *r, void *arg)
{
    (void)arg;
    gone++;
    if (kept == r)
        kept = NULL;
}

static void answer_at_once(struct http_req *r)
{
    requests++;
    http_reply(r, 200, "text/plain", http_head(r)->path.p, http_head(r)->path.len);
}

static void keep(struct http_req *r)
{
    requests++;
    kept = r;
    http_on_gone(r, on_gone, NULL);
}

static void echo_all(struct http_req *r, struct buf *body, void *arg)
{
    (void)arg;
    http_reply(r, 200, "text/plain", buf_data(body), body->len);
}

static void collect_100(struct http_req *r)
{
    requests++;
    http_on_gone(r, on_gone, NULL);
    http_body_collect(r, 100, echo_all, NULL);
}

static void start(void (*h)(struct http_req *r))
{
    requests = gone = drains = 0;
    kept = NULL;
    buf_clear(&seen);
    begin(h);
}

static void finish(void)
{
    end();
    buf_free(&seen);
}

/* ---- one request after another ---- */

TEST(a_connection_serves_one_request_after_another)
{
    start(answer_at_once);
    CHECK_HAS(ask(GET), "HTTP/1.1 200 OK\r\n");
    CHECK_HAS(heard(), "\r\nContent-Length: 1\r\n\r\n/");
    CHECK_HAS(heard(), "\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\n");
    CHECK_HAS(ask("GET /two HTTP/1.1\r\nHost: x\r\n\r\n"), "\r\n\r\n/two");
    CHECK_HAS(heard(), "X-Request-Id: r2\r\n");
    CHECK(!closed);
    finish();
}

TEST(pipelined_requests_are_answered_in_order)
{
    start(answer_at_once);
    ask("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\nGET /3 "
        "HTTP/1.1\r\nHo");
    CHECK_INT(requests, 2);
    say("st: x\r\n\r\n");
    CHECK_INT(requests, 3);
    CHECK(strstr(heard(), "/1") < strstr(heard(), "/2"));
    CHECK(strstr(heard(), "/2") < strstr(heard(), "/3"));
    finish();
}

TEST(a_pipelined_request_is_not_read_before_the_one_before_is_answered)
{
    start(keep);
    say(GET GET);
    CHECK_INT(requests, 1);
    http_reply(kept, 200, NULL, "", 0);
    settle();
    CHECK_INT(requests, 2);
    finish();
}

TEST(a_request_may_arrive_one_byte_at_a_time)
{
    static const char text[] = "\r\n" POST("5") "hello";

    start(collect_100);
    for (size_t i = 0; i < sizeof(text) - 1; i++)
        say_n(text + i, 1);
    CHECK_HAS(heard(), "\r\n\r\nhello");
    CHECK_HAS(ask(GET), "Content-Length: 0");
    finish();
}

TEST(connection_close_is_answered_and_then_closed)
{
    start(answer_at_once);
    CHECK_HAS(ask("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              "Connection: close\r\n");
    CHECK(closed);
    CHECK_INT(http_server_conns(server), 0);
    finish();
}

TEST(http_1_0_is_closed_unless_it_asks_otherwise)
{
    start(answer_at_once);
    CHECK_HAS(ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
              "Connection: keep-alive\r\n");
    CHECK(!closed);
    CHECK_HAS(ask("GET / HTTP/1.0\r\n\r\n"), "Connection: close\r\n");
    CHECK(closed);
    finish();
}

TEST(head_gets_the_headers_and_no_body)
{
    start(answer_at_once);
    ask("HEAD /abc HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK_HAS(heard(), "Content-Length: 4\r\n");
    CHECK_STR(heard() + got.len - 4, "\r\n\r\n");
    CHECK(!closed);
    finish();
}

static void answer_204(struct http_req *r)
{
    http_reply(r, 204, NULL, NULL, 0);
}

TEST(an_answer_without_content_has_no_length)
{
    start(answer_204);
    CHECK_HAS(ask(GET), "204 No Content");
    CHECK(strstr(heard(), "Content-Length") == NULL);
    CHECK(!closed);
    finish();
}

static void look_at_headers(struct http_req *r)
{
    CHECK_STR(http_header(r, "one"), "1");
    CHECK_STR(http_header(r, "MANY"), "a, b, c");
    CHECK_STR(http_header(r, "many"), "a, b, c");
    CHECK_STR(http_header(r, "empty"), "");
    CHECK(http_header(r, "none") == NULL);
    CHECK_STR(http_head(r)->target.p, "http://h:1/p%20q?x=1");
    CHECK_STR(http_head(r)->path.p, "/p%20q");
    CHECK_STR(http_head(r)->query.p, "x=1");
    CHECK_STR(http_head(r)->host.p, "h:1");
    http_reply_header(r, "X-Good", "yes");
    http_reply_header(r, "X-Bad", "a\r\nSet-Cookie: b");
    answer_at_once(r);
}

TEST(headers_are_strings_and_several_of_one_name_are_joined)
{
    start(look_at_headers);
    ask("GET http://h:1/p%20q?x=1 HTTP/1.1\r\nHost: h:1\r\nOne: 1\r\nMany: "
        "a\r\nmany:b\r\nEmpty:\r\n"
        "MANY: c\r\n\r\n");
    CHECK_INT(requests, 1);
    CHECK_HAS(heard(), "X-Good: yes\r\n");
    CHECK(strstr(heard(), "Set-Cookie") == NULL);
    finish();
}

/* ---- refusals ---- */

TEST(a_malformed_request_is_answered_with_the_reason_and_closed)
{
    start(answer_at_once);
    CHECK_HAS(ask("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1,1\r\n\r\nGET / HTTP/1.1\r\n"),
              "HTTP/1.1 400 Bad Request\r\n");
    CHECK_HAS(heard(), "{\"error\":{\"code\":\"invalid\",\"message\":\"Content-Length");
    CHECK_HAS(heard(), "\"request_id\":\"r1\"}}");
    CHECK_HAS(heard(), "Connection: close\r\n");
    CHECK(closed);
    CHECK_INT(requests, 0);
    CHECK_INT(count_of(heard(), "HTTP/1.1 "), 1);
    finish();
}

TEST(a_refused_client_that_keeps_sending_still_reads_its_answer)
{
    static char much[1u << 20];

    start(answer_at_once);
    memset(much, 'x', sizeof(much));
    say("BAD\r\n\r\n");
    CHECK_INT(http_server_conns(server), 1);
    say_n(much, sizeof(much));
    CHECK_HAS(heard(), "400 Bad Request");
    CHECK_INT(http_server_conns(server), 1);
    shutdown(peer, SHUT_WR);
    settle();
    CHECK_INT(http_server_conns(server), 0);
    finish();
}

/* Cut off, it would be told of that, and what it has not read yet would be lost. */
TEST(a_refused_client_that_does_not_stop_is_no_longer_read_but_may_read_its_answer)
{
    static char much[1u << 20];
    size_t sent = 0;
    ssize_t n;

    start(answer_at_once);
    say("BAD\r\n\r\n");
    do {
        n = send(peer, much, sizeof(much), MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
        settle();
    } while (n > 0 && sent < 256 * sizeof(much));
    CHECK(n < 0 && errno == EAGAIN);
    CHECK_INT(http_server_conns(server), 1);
    CHECK_HAS(heard(), "400 Bad Request");
    pass_ms(10000);
    CHECK_INT(http_server_conns(server), 0);
    finish();
}

TEST(a_refused_client_that_never_closes_is_cut_off)
{
    start(answer_at_once);
    say("BAD\r\n\r\n");
    CHECK_INT(http_server_conns(server), 1);
    pass_ms(10000);
    CHECK_INT(http_server_conns(server), 0);
    finish();
}

TEST(a_bad_chunk_is_refused_and_the_handler_is_called)
{
    start(collect_100);
    CHECK_HAS(ask(CHUNKED "5\r\nhello\r\nx\r\n"), "400 Bad Request");
    CHECK_INT(gone, 1);
    CHECK(closed);
    finish();
}

static void start_with(void (*h)(struct http_req *r), size_t conns_max)
{
    start(h);
    end();
    begin_with(h, conns_max);
}

static bool is_closed(int fd)
{
    char c;

    return recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

TEST(a_connection_over_the_maximum_is_answered_503)
{
    int second;

    start_with(keep, 1);
    say(GET);
    second = peer;
    peer = connect_peer();
    settle();
    CHECK_HAS(heard(), "503 Service Unavailable");
    CHECK_HAS(heard(), "Retry-After: 1\r\n");
    CHECK(closed);
    close(second);
    finish();
}

TEST(an_idle_connection_over_the_maximum_gives_way_to_a_new_one)
{
    int second;

    start_with(answer_at_once, 1);
    say("GET / HTTP/1.1\r\nHo"); /* half a head is idle, too */
    second = peer;
    peer = connect_peer();
    CHECK_HAS(ask(GET), "200 OK");
    CHECK(is_closed(second));
    CHECK_INT(http_server_evicted(server), 1);
    CHECK_INT(http_server_conns(server), 1);
    close(second);
    finish();
}

static void own(struct http_req *r)
{
    http_owned_by(r, "k");
    answer_at_once(r);
}

TEST(idle_connections_without_an_owner_give_way_first_the_oldest_before_the_others)
{
    int fds[3];

    start_with(own, 3);
    CHECK_HAS(ask(GET), "200 OK");
    fds[0] = peer;
    for (int i = 1; i < 3; i++) {
        fds[i] = connect_peer();
        settle();
    }
    for (int i = 1; i <= 3; i++) { /* the second and the third, then the owner's */
        CHECK(!is_closed(fds[i % 3]));
        peer = connect_peer();
        CHECK_HAS(ask(GET), "200 OK");
        CHECK(is_closed(fds[i % 3]));
        close(fds[i % 3]);
        fds[i % 3] = peer;
    }
    for (int i = 1; i < 3; i++)
        close(fds[i]);
    peer = fds[0];
    finish();
}

static int owned;

static void count_owner(void *arg, const char *whose, int by)
{
    (void)arg;
    CHECK_STR(whose, "k");
    owned += by;
}

static void ended(void *arg)
{
    (*(unsigned *)arg)++;
}

static void own_and_keep(struct http_req *r)
{
    http_owned_by(r, "k");
    http_on_end(r, ended, &drains);
    keep(r);
}

/* ---- listening ---- */

static int listener = -1;

static void listen_with(void (*h)(struct http_req *r), size_t peer_max)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    struct http_server_opts opts = {
        .on_request = dispatch, .peer_max = peer_max, .on_owner = count_owner};

    start(h);
    http_server_free(server);
    drop_fd(&peer);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK_INT(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
    CHECK_INT(listen(listener, 16), 0);
    opts.loop = loop;
    opts.listen_fd = listener;
    CHECK_INT(http_server_new(&opts, &server, &e), 0);
}

static void start_listening(void (*h)(struct http_req *r))
{
    listen_with(h, 0);
}

static int connect_tcp(void)
{
    struct sockaddr_in a;
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK_INT(getsockname(listener, (struct sockaddr *)&a, &len), 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&a, len), 0);
    CHECK_INT(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void finish_listening(void)
{
    finish();
    drop_fd(&listener);
}

static void check_options(struct http_req *r)
{
    int nodelay = 0, keepalive = 0;
    socklen_t len = sizeof(int);

    getsockopt(http_fd(r), IPPROTO_TCP, TCP_NODELAY, &nodelay, &len);
    getsockopt(http_fd(r), SOL_SOCKET, SO_KEEPALIVE, &keepalive, &len);
    CHECK(nodelay && keepalive);
    answer_at_once(r);
}

TEST(an_accepted_socket_does_not_delay_small_answers_and_notices_dead_peers)
{
    start_listening(check_options);
    peer = connect_tcp();
    say(GET);
    CHECK_INT(requests, 1);
    CHECK_HAS(heard(), "200 OK");
    finish_listening();
}

TEST(one_address_has_a_part_of_the_connections_until_it_shows_a_key)
{
    int fds[2];

    listen_with(own_and_keep, 2);
    for (int i = 0; i < 2; i++) {
        fds[i] = connect_tcp();
        settle();
    }
    peer = connect_tcp();
    settle();
    CHECK(is_closed(fds[0])); /* it was idle */
    close(fds[0]);
    CHECK_INT(http_server_conns(server), 2);
    say(GET); /* has an owner now, and does not count to the address any more */
    CHECK_INT(owned, 1);
    CHECK_INT(requests, 1);
    fds[0] = connect_tcp();
    settle();
    CHECK_INT(http_server_conns(server), 3);
    CHECK(!is_closed(fds[1]));
    close(fds[0]);
    close(fds[1]);
    http_reply(kept, 204, NULL, NULL, 0);
    settle();
    CHECK_INT(drains, 1); /* http_on_end() */
    finish_listening();
    CHECK_INT(owned, 0);
}

TEST(without_a_free_fd_accepting_waits_instead_of_spinning)
{
    struct rlimit old, none;
    int next;

    start_listening(answer_at_once);
    peer = connect_tcp();
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &old), 0);
    next = dup(peer);
    close(next);
    none = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = old.rlim_max};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
    settle();
    CHECK_INT(http_server_conns(server), 0);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &old), 0);
    settle();
    CHECK_INT(http_server_conns(server), 0); /* not even looked at before its time */
    pass_ms(1000);
    CHECK_INT(http_server_conns(server), 1);
    CHECK_HAS(ask(GET), "200 OK");
    finish_listening();
}

/* ---- bodies ---- */

TEST(a_body_is_collected_with_a_length_or_chunked)
{
    start(collect_100);
    CHECK_HAS(ask(POST("5") "hello"), "\r\n\r\nhello");
    CHECK_HAS(ask(CHUNKED "3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: v\r\n\r\n"), "\r\n\r\nabcde");
    CHECK_HAS(ask(POST("0")), "Content-Length: 0\r\n\r\n");
    CHECK_HAS(ask(GET), "Content-Length: 0\r\n\r\n");
    CHECK(!closed);
    finish();
}

TEST(a_body_announced_too_large_is_413_before_it_is_sent)
{
    start(collect_100);
    CHECK_HAS(ask(POST("101")), "413 Content Too Large");
    CHECK_INT(gone, 1);
    CHECK(closed);
    finish();
}

TEST(a_chunked_body_that_grows_too_large_is_413)
{
    char chunk[64 + 32];
    int n = snprintf(chunk, sizeof(chunk), "40\r\n%064d\r\n", 0);

    start(collect_100);
    say(CHUNKED);
    say_n(chunk, (size_t)n);
    CHECK_INT(gone, 0);
    say_n(chunk, (size_t)n);
    CHECK_HAS(heard(), "413 Content Too Large");
    CHECK_INT(gone, 1);
    finish();
}

TEST(one_hundred_continue_is_sent_when_the_handler_reads_the_body)
{
    start(keep);
    ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    CHECK_STR(heard(), "");
    http_body_collect(kept, 100, echo_all, NULL);
    settle();
    CHECK_STR(heard(), "HTTP/1.1 100 Continue\r\n\r\n");
    CHECK_HAS(ask("ok"), "\r\n\r\nok");
    CHECK(!closed);
    finish();
}

TEST(one_hundred_continue_is_not_sent_to_a_client_that_did_not_wait)
{
    start(collect_100);
    CHECK_HAS(
        ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nok"),
        "HTTP/1.1 200 OK");
    CHECK(strstr(heard(), "100 Continue") == NULL);
    finish();
}

TEST(a_body_refused_before_it_was_asked_for_closes_the_connection)
{
    start(answer_at_once);
    CHECK_HAS(
        ask("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"),
        "Connection: close\r\n");
    CHECK(closed);
    finish();
}

TEST(a_small_unread_body_is_drained_and_the_connection_kept)
{
    start(answer_at_once);
    ask(POST("5"));
    CHECK_HAS(ask("hello" GET), "200 OK");
    CHECK(!closed);
    finish();
}

TEST(an_unread_body_of_unknown_length_closes_the_connection_after_the_answer)
{
    start(answer_at_once);
    CHECK_HAS(ask(CHUNKED "5\r\nhello\r\n"), "Connection: close\r\n");
    CHECK_INT(count_of(heard(), "200 OK"), 1);
    finish();
}

TEST(a_large_unread_body_closes_the_connection_after_the_answer)
{
    static char much[300000];

    start(answer_at_once);
    CHECK_HAS(ask(POST("300000")), "Connection: close\r\n");
    say_n(much, sizeof(much));
    CHECK_HAS(heard(), "200 OK");
    CHECK_INT(requests, 1);
    finish();
}

TEST(an_endless_unread_chunked_body_is_drained_up_to_a_bound)
{
    static char chunk[4096 + 16];
    int n = snprintf(chunk, sizeof(chunk), "1000\r\n%04096d\r\n", 0);

    start(answer_at_once);
    ask(CHUNKED);
    for (int i = 0; i < 32; i++)
        say_n(chunk, (size_t)n);
    heard();
    CHECK(closed);
    finish();
}

static void on_data(struct http_req *r, const char *p, size_t n, void *arg)
{
    (void)arg;
    buf_add(&seen, p, n);
    http_body_pause(r, true);
}

static void on_end(struct http_req *r, void *arg)
{
    (void)arg;
    http_reply(r, 200, NULL, "done", 4);
}

static void stream(struct http_req *r)
{
    kept = r;
    http_on_gone(r, on_gone, NULL);
    http_body_stream(r, on_data, on_end, NULL);
}

TEST(a_paused_body_is_left_with_the_kernel)
{
    char piece[4096];
    size_t sent = 0, before;
    ssize_t n;

    start(stream);
    memset(piece, 'p', sizeof(piece));
    say(POST("100000000"));
    while ((n = send(peer, piece, sizeof(piece), MSG_NOSIGNAL)) > 0 || sent == 0) {
        sent += n > 0 ? (size_t)n : 0;
        turn();
        CHECK(sent < 4u << 20); /* a socket's buffer, not our memory */
    }
    CHECK(seen.len <= 64u << 10);
    before = seen.len;
    http_body_pause(kept, false);
    settle();
    CHECK(seen.len > before);
    finish();
}

TEST(a_streamed_body_arrives_completely_and_on_end_is_called)
{
    start(stream);
    say(POST("10"));
    say("hello");
    CHECK_STR(buf_cstr(&seen), "hello");
    say("world");
    CHECK_STR(buf_cstr(&seen), "hello");
    http_body_pause(kept, false);
    settle();
    CHECK_STR(buf_cstr(&seen), "helloworld");
    http_body_pause(kept, false);
    settle();
    CHECK_HAS(heard(), "\r\n\r\ndone");
    finish();
}

TEST(an_answer_begun_within_a_streamed_body_says_that_the_connection_closes)
{
    start(stream);
    say(POST("10"));
    http_reply_begin_length(kept, 200, NULL, 0);
    http_reply_end(kept);
    CHECK(strstr(heard(), "Connection: close\r\n") == NULL);
    finish();
    start(stream);
    say(POST("300000"));
    http_reply_begin_length(kept, 200, NULL, 0);
    http_reply_end(kept);
    CHECK_HAS(heard(), "Connection: close\r\n");
    finish();
    start(stream);
    say(CHUNKED "5\r\nhello\r\n");
    http_reply_begin_length(kept, 200, NULL, 0);
    http_reply_end(kept);
    CHECK_HAS(heard(), "Connection: close\r\n");
    finish();
}

/* ---- going away ---- */

TEST(a_client_that_closes_while_the_handler_thinks_is_gone)
{
    start(keep);
    say(GET);
    drop_fd(&peer);
    settle();
    CHECK_INT(gone, 1);
    CHECK_INT(http_server_conns(server), 0);
    finish();
}

TEST(a_client_that_only_stopped_sending_still_gets_its_answer)
{
    start(keep);
    say(GET);
    shutdown(peer, SHUT_WR);
    settle();
    CHECK_INT(gone, 0);
    http_reply(kept, 200, NULL, "here", 4);
    settle();
    CHECK_HAS(heard(), "\r\n\r\nhere");
    CHECK(closed);
    finish();
}

TEST(eof_is_gone_also_applies_to_an_eof_that_came_before)
{
    for (int late = 0; late <= 1; late++) {
        start(keep);
        say(GET);
        if (!late)
            http_eof_is_gone(kept);
        shutdown(peer, SHUT_WR);
        settle();
        CHECK_INT(gone, !late);
        if (late)
            http_eof_is_gone(kept);
        settle();
        CHECK_INT(gone, 1);
        CHECK_INT(http_server_conns(server), 0);
        finish();
    }
}

TEST(a_client_that_stops_in_the_middle_of_its_body_is_gone)
{
    start(collect_100);
    say(POST("50") "half");
    shutdown(peer, SHUT_WR);
    settle();
    CHECK_INT(gone, 1);
    CHECK_INT(http_server_conns(server), 0);
    finish();
}

TEST(a_client_that_closes_in_the_middle_of_its_head_leaks_nothing)
{
    start(answer_at_once);
    say("GET / HT");
    shutdown(peer, SHUT_WR);
    settle();
    CHECK_INT(http_server_conns(server), 0);
    finish();
}

TEST(freeing_the_server_tells_every_handler)
{
    start(keep);
    say(GET);
    http_server_free(server);
    server = NULL;
    CHECK_INT(gone, 1);
    finish();
}

/* ---- streamed answers ---- */

TEST(a_streamed_answer_is_chunked_and_ends)
{
    start(keep);
    say(GET);
    http_reply_begin(kept, 200, "text/plain");
    http_write(kept, "hello", 5);
    http_write(kept, "", 0);
    http_write(kept, " world, this is long", 20);
    settle();
    CHECK_HAS(heard(), "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n14\r\n world");
    http_reply_end(kept);
    settle();
    CHECK_STR(heard() + got.len - 9, "ng\r\n0\r\n\r\n");
    CHECK(!closed);
    CHECK_INT(gone, 0);
    finish();
}

TEST(http_1_0_gets_a_stream_that_ends_with_the_connection)
{
    start(keep);
    say("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    http_reply_begin(kept, 200, "text/plain");
    http_write(kept, "hello", 5);
    http_reply_end(kept);
    settle();
    CHECK_STR(heard() + got.len - 9, "\r\n\r\nhello");
    CHECK(strstr(heard(), "chunked") == NULL);
    CHECK(closed);
    finish();
}

TEST(an_aborted_answer_has_no_last_chunk)
{
    start(keep);
    say(GET);
    http_reply_begin(kept, 200, "text/plain");
    http_write(kept, "hello", 5);
    settle();
    http_reply_abort(kept);
    settle();
    CHECK_STR(heard() + got.len - 7, "hello\r\n");
    CHECK(closed);
    CHECK_INT(gone, 0);
    finish();
}

TEST(an_answer_of_known_length_holds_exactly_that)
{
    start(keep);
    say(GET);
    http_reply_begin_length(kept, 200, NULL, 10);
    http_write(kept, "01234", 5);
    http_write(kept, "56789", 5);
    http_reply_end(kept);
    settle();
    CHECK_HAS(heard(), "Content-Length: 10\r\n\r\n0123456789");
    CHECK(!closed);
    say(GET);
    http_reply_begin_length(kept, 200, NULL, 10);
    http_write(kept, "0123456789A", 11);
    settle();
    heard();
    CHECK(closed);
    CHECK_INT(gone, 1);
    finish();
}

TEST(an_answer_shorter_than_its_length_is_cut)
{
    start(keep);
    say(GET);
    http_reply_begin_length(kept, 200, NULL, 10);
    http_write(kept, "01234", 5);
    http_reply_end(kept);
    settle();
    heard();
    CHECK(closed);
    finish();
}

static void on_drain(struct http_req *r, void *arg)
{
    static char piece[100000];

    (void)arg;
    drains++;
    CHECK(http_backlog(r) <= HTTP_BACKLOG_LOW);
    if (drains < 5)
        while (http_backlog(r) < HTTP_BACKLOG_HIGH)
            http_write(r, piece, sizeof(piece));
    else
        http_reply_end(r);
}

TEST(a_slow_reader_holds_up_the_writer_and_then_calls_it_again)
{
    static char piece[100000];

    start(keep);
    say(GET);
    http_reply_begin(kept, 200, NULL);
    http_on_drain(kept, on_drain, NULL);
    while (http_backlog(kept) < HTTP_BACKLOG_HIGH)
        http_write(kept, piece, sizeof(piece));
    CHECK(http_backlog(kept) < HTTP_BACKLOG_HIGH + 2 * sizeof(piece));
    settle();
    CHECK_INT(drains, 0);
    for (int i = 0; i < 100 && drains < 5; i++)
        heard();
    CHECK_INT(drains, 5);
    settle();
    heard();
    CHECK_INT(memcmp(buf_data(&got) + got.len - 5, "0\r\n\r\n", 5), 0);
    finish();
}

TEST(a_writer_that_does_not_stop_loses_the_connection_not_the_server)
{
    static char piece[1u << 20];

    start(keep);
    say(GET);
    http_reply_begin(kept, 200, NULL);
    for (int i = 0; i < 70; i++)
        http_write(kept, piece, sizeof(piece));
    CHECK_INT(gone, 0); /* never from inside http_write() */
    settle();
    CHECK_INT(gone, 1);
    CHECK_INT(http_server_conns(server), 0);
    finish();
}

TEST(a_large_answer_arrives_whole)
{
    static char much[5u << 20];
    size_t head;

    start(keep);
    for (size_t i = 0; i < sizeof(much); i++)
        much[i] = (char)(i * 7 >> 3);
    say(GET);
    http_reply(kept, 200, NULL, much, sizeof(much));
    heard();
    head = (size_t)(strstr(buf_data(&got), "\r\n\r\n") + 4 - buf_data(&got));
    CHECK_INT(got.len - head, sizeof(much));
    CHECK_INT(memcmp(buf_data(&got) + head, much, sizeof(much)), 0);
    CHECK(!closed);
    finish();
}

static void answer_twice(struct http_req *r)
{
    http_reply(r, 200, NULL, "first", 5);
    http_reply(r, 500, NULL, "second", 6);
}

TEST(a_second_answer_never_reaches_the_wire)
{
    start(answer_twice);
    ask(GET);
    CHECK_HAS(heard(), "first");
    CHECK(strstr(heard(), "second") == NULL);
    CHECK_HAS(ask(GET), "first");
    finish();
}

/* ---- server-sent events ---- */

TEST(events_carry_ids_names_and_every_line_of_their_data)
{
    start(keep);
    say(GET);
    http_sse_begin(kept);
    http_sse_event(kept, "7", "out", "one", 3);
    http_sse_event(kept, NULL, NULL, "a\nb\r\nc\rd\n", 9);
    http_sse_event(kept, "x\ny", NULL, "", 0);
    settle();
    CHECK_HAS(heard(), "Cache-Control: no-store\r\n");
    CHECK_HAS(heard(), "Content-Type: text/event-stream\r\n");
    CHECK_HAS(heard(), "\r\nid: 7\nevent: out\ndata: one\n\n\r\n");
    CHECK_HAS(heard(), "\r\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n\r\n");
    CHECK_HAS(heard(), "\r\ndata: \n\n\r\n");
    finish();
}

TEST(silence_on_an_event_stream_is_broken_by_comments)
{
    start(keep);
    say(GET);
    http_sse_begin(kept);
    settle();
    heard();
    pass_ms(HTTP_SSE_KEEPALIVE_MS - 1000);
    http_sse_event(kept, NULL, NULL, "x", 1);
    pass_ms(1500);
    CHECK_INT(count_of(heard(), ":\n\n"), 0);
    pass_ms(HTTP_SSE_KEEPALIVE_MS);
    CHECK_INT(count_of(heard(), "3\r\n:\n\n"), 1);
    pass_ms(HTTP_SSE_KEEPALIVE_MS);
    CHECK_INT(count_of(heard(), "3\r\n:\n\n"), 2);
    http_reply_end(kept);
    pass_ms(10 * HTTP_SSE_KEEPALIVE_MS);
    CHECK_INT(count_of(heard(), "3\r\n:\n\n"), 2);
    finish();
}

/* ---- time ---- */

TEST(a_head_that_takes_too_long_is_408)
{
    start(answer_at_once);
    say("GET / HTTP/1.1\r\n");
    pass_ms(HTTP_HEAD_MS / 2);
    say("Host: x\r\n");
    pass_ms(HTTP_HEAD_MS / 2 - 1000);
    CHECK_STR(heard(), "");
    pass_ms(2000);
    CHECK_HAS(heard(), "408 Request Timeout");
    CHECK(closed);
    finish();
}

TEST(an_idle_connection_is_closed_without_a_word)
{
    start(answer_at_once);
    ask(GET);
    buf_clear(&got);
    pass_ms(HTTP_IDLE_MS - 1000);
    CHECK_INT(http_server_conns(server), 1);
    pass_ms(2000);
    CHECK_STR(heard(), "");
    CHECK(closed);
    CHECK_INT(http_server_conns(server), 0);
    finish();
}

TEST(a_body_that_stops_coming_is_408_but_a_slow_one_is_not)
{
    start(collect_100);
    say(POST("5"));
    for (int i = 0; i < 4; i++) {
        pass_ms(HTTP_BODY_MS - 1000);
        say("x");
    }
    CHECK_STR(heard(), "");
    pass_ms(HTTP_BODY_MS + 1000);
    CHECK_HAS(heard(), "408 Request Timeout");
    CHECK_INT(gone, 1);
    finish();
}

TEST(a_handler_may_think_as_long_as_it_likes)
{
    start(keep);
    say(GET);
    pass_ms(24 * 3600 * 1000);
    CHECK_INT(gone, 0);
    http_reply(kept, 200, NULL, "late", 4);
    settle();
    CHECK_HAS(heard(), "late");
    finish();
}

TEST(a_client_that_stops_reading_is_given_up)
{
    static char much[4u << 20];

    start(keep);
    say(GET);
    http_reply_begin(kept, 200, NULL);
    http_write(kept, much, sizeof(much));
    settle();
    pass_ms(HTTP_SEND_MS - 1000);
    CHECK_INT(gone, 0);
    pass_ms(2000);
    CHECK_INT(gone, 1);
    CHECK_INT(http_server_conns(server), 0);
    finish();
}

/* ---- draining ---- */

static bool drained;

static void on_drained(void *arg)
{
    (void)arg;
    drained = true;
}

TEST(draining_closes_idle_connections_and_lets_requests_end)
{
    int idle;

    start(keep);
    idle = peer;
    peer = connect_peer();
    say(GET);
    drained = false;
    http_server_drain(server, on_drained, NULL);
    settle();
    CHECK_INT(http_server_conns(server), 1);
    CHECK(!drained);
    http_reply(kept, 200, NULL, "last", 4);
    settle();
    CHECK_HAS(heard(), "Connection: close\r\n");
    CHECK(closed && drained);
    close(idle);
    finish();
}

TEST(draining_an_empty_server_is_done_at_once_but_from_the_loop)
{
    start(answer_at_once);
    drop_fd(&peer);
    settle();
    drained = false;
    http_server_drain(server, on_drained, NULL);
    CHECK(!drained);
    settle();
    CHECK(drained);
    finish();
}

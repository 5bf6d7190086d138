#include "unit.h"

#include "http_peer.h"

#define KEY "dGhlIHNhbXBsZSBub25jZQ==" /* the RFC's example, and its answer */
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
#define SHAKE(method, upgrade, connection, version, key)                                           \
    method " /ws HTTP/1.1\r\nHost: x\r\nUpgrade: " upgrade "\r\nConnection: " connection           \
           "\r\nSec-WebSocket-Version: " version "\r\nSec-WebSocket-Key: " key "\r\n\r\n"
#define HELLO SHAKE("GET", "websocket", "Upgrade", "13", KEY)

static struct http_ws *ws;
static struct buf messages = BUF_INIT(4u << 20);
static unsigned closes;
static int close_code;

static void on_message(struct http_ws *w, bool binary, const char *p, size_t n, void *arg)
{
    (void)w, (void)arg;
    buf_addf(&messages, "%c%zu:", binary ? 'b' : 't', n);
    buf_add(&messages, p, n < 32 ? n : 32);
    buf_addc(&messages, ' ');
}

static void on_message_echo(struct http_ws *w, bool binary, const char *p, size_t n, void *arg)
{
    on_message(w, binary, p, n, arg);
    http_ws_send(w, binary, p, n);
    if (n == 3 && memcmp(p, "bye", 3) == 0)
        http_ws_close(w, 4000, "as asked");
}

static void on_close(struct http_ws *w, int code, void *arg)
{
    (void)w, (void)arg;
    closes++;
    close_code = code;
    ws = NULL;
}

static const struct http_ws_ops quiet = {.on_message = on_message, .on_close = on_close};
static const struct http_ws_ops echo = {.on_message = on_message_echo, .on_close = on_close};

static void accept_quiet(struct http_req *r)
{
    ws = http_ws_accept(r, NULL, &quiet, NULL);
}

static void accept_echo(struct http_req *r)
{
    ws = http_ws_accept(r, "term.v1", &echo, NULL);
}

static void start(void (*h)(struct http_req *r))
{
    closes = 0;
    close_code = 0;
    ws = NULL;
    buf_clear(&messages);
    begin(h);
}

static void finish(void)
{
    end();
    buf_free(&messages);
}

static void hello(void (*h)(struct http_req *r))
{
    start(h);
    CHECK_HAS(ask(HELLO), "HTTP/1.1 101 Switching Protocols\r\n");
    CHECK(ws != NULL);
    buf_clear(&got);
}

/* A client's frame, masked with `mask` (0: not masked at all). */
static void frame(unsigned char first, const char *p, size_t n, unsigned char mask)
{
    autobuf struct buf b = BUF_INIT(4u << 20);
    unsigned char len = n < 126 ? (unsigned char)n : n < 65536 ? 126 : 127;

    buf_addc(&b, (char)first);
    buf_addc(&b, (char)(len | (mask != 0 ? 0x80 : 0)));
    for (int shift = len == 127 ? 56 : 8; len >= 126 && shift >= 0; shift -= 8)
        buf_addc(&b, (char)((uint64_t)n >> shift));
    for (int i = 0; mask != 0 && i < 4; i++)
        buf_addc(&b, (char)mask);
    for (size_t i = 0; i < n; i++)
        buf_addc(&b, (char)(p[i] ^ mask));
    say_n(buf_data(&b), b.len);
}

static void text(const char *s)
{
    frame(0x81, s, strlen(s), 0x5a);
}

static bool heard_bytes(const char *p, size_t n)
{
    heard();
    return got.len == n && memcmp(buf_data(&got), p, n) == 0;
}

#define HEARD(literal) heard_bytes(literal, sizeof(literal) - 1)

/* ---- the handshake ---- */

TEST(the_handshake_of_the_rfc_is_answered_as_the_rfc_says)
{
    start(accept_echo);
    ask(HELLO);
    CHECK_HAS(heard(), "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n");
    CHECK_HAS(heard(), "\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " ACCEPT "\r\n");
    CHECK_HAS(heard(), "\r\nSec-WebSocket-Protocol: term.v1\r\n");
    finish();
}

TEST(lists_and_case_do_not_disturb_the_handshake)
{
    start(accept_quiet);
    CHECK_HAS(ask(SHAKE("GET", "foo, WebSocket", "keep-alive, upgrade", "13", KEY)), " 101 ");
    finish();
}

TEST(whatever_is_not_a_handshake_is_refused)
{
    /* clang-format off */
    static const struct { const char *text, *answer; } cases[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",                             "426 Upgrade Required"},
        {SHAKE("GET", "websocket", "keep-alive", "13", KEY),              "426 Upgrade Required"},
        {SHAKE("GET", "h2c", "Upgrade", "13", KEY),                       "426 Upgrade Required"},
        {SHAKE("GET", "websocket", "Upgrade", "8", KEY),                  "Sec-WebSocket-Version: 13\r\n"},
        {SHAKE("POST", "websocket", "Upgrade", "13", KEY),                "400 Bad Request"},
        {SHAKE("GET", "websocket", "Upgrade", "13", "c2hvcnQ="),          "400 Bad Request"},
        {SHAKE("GET", "websocket", "Upgrade", "13", "dGhlIHNhbXBsZSBub25jZQ"), "400 Bad Request"},
        {SHAKE("GET", "websocket", "Upgrade", "13", "dGhlIHNhbXBsZSBub25jZTE="), "400 Bad Request"},
        {SHAKE("GET", "websocket", "Upgrade", "13", KEY "\r\nSec-WebSocket-Key: " KEY), "400 Bad Request"},
        {SHAKE("GET", "websocket", "Upgrade", "13", KEY "\r\nContent-Length: 1"), "400 Bad Request"},
    };
    /* clang-format on */

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        start(accept_quiet);
        CHECK_HAS(ask(cases[i].text), cases[i].answer);
        CHECK(ws == NULL && closed);
        CHECK_INT(closes, 0);
        finish();
    }
}

/* ---- messages ---- */

TEST(a_message_sent_with_the_handshake_is_not_lost)
{
    start(accept_quiet);
    say(HELLO "\x81\x82\x01\x01\x01\x01ih");
    CHECK_STR(buf_cstr(&messages), "t2:hi ");
    finish();
}

TEST(text_and_binary_messages_arrive_and_are_answered)
{
    hello(accept_echo);
    text("hello");
    CHECK(HEARD("\x81\x05hello"));
    buf_clear(&got);
    frame(0x82, "\x00\xff", 2, 0x11);
    CHECK(HEARD("\x82\x02\x00\xff"));
    CHECK_INT(memcmp(buf_data(&messages), "t5:hello b2:", 12), 0);
    finish();
}

TEST(a_message_in_pieces_is_put_together_around_a_ping)
{
    hello(accept_quiet);
    frame(0x01, "one ", 4, 0x11);
    frame(0x89, "p", 1, 0x12);
    frame(0x80, "two", 3, 0x13);
    CHECK_STR(buf_cstr(&messages), "t7:one two ");
    CHECK(HEARD("\x8a\x01p"));
    finish();
}

TEST(the_largest_message_passes_and_one_byte_more_is_1009)
{
    static char much[HTTP_WS_MESSAGE_MAX + 1];

    memset(much, 'm', sizeof(much));
    hello(accept_quiet);
    frame(0x82, much, HTTP_WS_MESSAGE_MAX, 0x11);
    CHECK_HAS(buf_cstr(&messages), "b1048576:mmm");
    frame(0x82, much, sizeof(much), 0x11);
    heard();
    CHECK_INT(memcmp(buf_data(&got), "\x88\x02\x03\xf1", 4), 0);
    CHECK_INT(closes, 1);
    CHECK_INT(close_code, 1009);
    CHECK(closed);
    finish();
}

TEST(a_frame_that_is_not_masked_is_refused)
{
    hello(accept_quiet);
    frame(0x81, "hi", 2, 0);
    CHECK(HEARD("\x88\x02\x03\xea"));
    CHECK_STR(buf_cstr(&messages), "");
    CHECK_INT(close_code, 1002);
    CHECK(closed);
    finish();
}

TEST(text_that_is_not_utf8_is_refused)
{
    hello(accept_quiet);
    text("\xff\xfe");
    CHECK(HEARD("\x88\x02\x03\xef"));
    CHECK_INT(close_code, 1007);
    finish();
}

TEST(reserved_bits_are_refused)
{
    hello(accept_quiet);
    frame(0xc1, "hi", 2, 0x11);
    CHECK(HEARD("\x88\x02\x03\xea"));
    finish();
}

TEST(paused_means_the_peer_waits)
{
    hello(accept_quiet);
    http_ws_pause(ws, true);
    settle();
    text("one");
    CHECK_STR(buf_cstr(&messages), "");
    http_ws_pause(ws, false);
    settle();
    CHECK_STR(buf_cstr(&messages), "t3:one ");
    finish();
}

static unsigned drains;

static void on_drain(struct http_ws *w, void *arg)
{
    (void)arg;
    drains++;
    CHECK(http_ws_backlog(w) <= HTTP_BACKLOG_LOW);
}

static void accept_draining(struct http_req *r)
{
    static const struct http_ws_ops ops = {
        .on_message = on_message, .on_close = on_close, .on_drain = on_drain};

    ws = http_ws_accept(r, NULL, &ops, NULL);
}

TEST(a_backlog_is_counted_and_on_drain_is_called)
{
    static char piece[100000];

    drains = 0;
    hello(accept_draining);
    for (int i = 0; i < 10; i++)
        http_ws_send(ws, true, piece, sizeof(piece));
    CHECK(http_ws_backlog(ws) > HTTP_BACKLOG_LOW);
    settle();
    CHECK_INT(drains, 0);
    heard();
    CHECK_INT(drains, 1);
    CHECK_INT(got.len, 10 * (sizeof(piece) + 10));
    finish();
}

/* ---- the end ---- */

TEST(a_close_is_answered_and_its_code_reported)
{
    hello(accept_quiet);
    frame(0x88, "\x03\xe9gone", 6, 0x11);
    CHECK_INT(closes, 1);
    CHECK_INT(close_code, 1001);
    heard();
    CHECK_INT(memcmp(buf_data(&got), "\x88\x06\x03\xe9gone", 8), 0);
    CHECK(closed);
    shutdown(peer, SHUT_WR);
    settle();
    CHECK_INT(http_server_conns(server), 0);
    finish();
}

TEST(our_close_waits_for_the_answer)
{
    hello(accept_echo);
    text("bye");
    CHECK_INT(closes, 0);
    CHECK(HEARD("\x81\x03"
                "bye\x88\x0a\x0f\xa0"
                "as asked"));
    frame(0x88, "\x0f\xa0", 2, 0x11);
    CHECK_INT(closes, 1);
    CHECK_INT(close_code, 4000);
    finish();
}

TEST(our_close_ends_the_connection_if_the_peer_is_silent)
{
    hello(accept_quiet);
    http_ws_close(ws, 1000, NULL);
    settle();
    CHECK_INT(closes, 0);
    pass_ms(10000);
    CHECK_INT(closes, 1);
    CHECK_INT(close_code, 1006);
    CHECK_INT(http_server_conns(server), 0);
    finish();
}

TEST(a_slow_reader_gets_all_data_before_our_close)
{
    static char piece[100000];
    char some[65536];

    hello(accept_quiet);
    for (int i = 0; i < 10; i++)
        http_ws_send(ws, true, piece, sizeof(piece));
    http_ws_close(ws, 1000, NULL);
    for (int i = 0; i < 3; i++) {
        ssize_t n = recv(peer, some, sizeof(some), 0);

        CHECK(n > 0);
        buf_add(&got, some, (size_t)n);
        pass_ms(6000);
    }
    CHECK_INT(closes, 0);
    heard();
    CHECK_INT(got.len, 10 * (sizeof(piece) + 10) + 4);
    pass_ms(6000);
    pass_ms(6000);
    CHECK_INT(closes, 1);
    finish();
}

TEST(a_peer_that_reads_nothing_after_our_close_is_dropped)
{
    static char piece[1000000];

    hello(accept_quiet);
    http_ws_send(ws, true, piece, sizeof(piece));
    http_ws_close(ws, 1000, NULL);
    pass_ms(6000);
    CHECK_INT(closes, 1);
    finish();
}

TEST(a_peer_that_vanishes_is_1006)
{
    hello(accept_quiet);
    drop_fd(&peer);
    settle();
    CHECK_INT(closes, 1);
    CHECK_INT(close_code, 1006);
    finish();
}

TEST(an_idle_websocket_is_not_closed)
{
    hello(accept_quiet);
    pass_ms(24 * 3600 * 1000);
    CHECK_INT(closes, 0);
    text("still here");
    CHECK_STR(buf_cstr(&messages), "t10:still here ");
    finish();
}

TEST(freeing_the_server_tells_the_owner_once)
{
    hello(accept_quiet);
    http_server_free(server);
    server = NULL;
    CHECK_INT(closes, 1);
    finish();
}

TEST(draining_says_1001)
{
    hello(accept_quiet);
    http_server_drain(server, NULL, NULL);
    settle();
    heard();
    CHECK_INT(memcmp(buf_data(&got) + 2, "\x03\xe9", 2), 0);
    frame(0x88, "\x03\xe9", 2, 0x11);
    CHECK_INT(closes, 1);
    finish();
}

/* ---- silence ---- */

TEST(a_silent_peer_is_pinged_and_one_that_answers_stays)
{
    hello(accept_quiet);
    for (int i = 0; i < 3; i++) {
        pass_ms(HTTP_WS_IDLE_MS - 1000);
        CHECK(HEARD(""));
        pass_ms(2000);
        CHECK(HEARD("\x89\0"));
        buf_clear(&got);
        frame(0x8a, "", 0, 0x5a);
    }
    text("hi");
    CHECK_STR(buf_cstr(&messages), "t2:hi ");
    CHECK_INT(closes, 0);
    finish();
}

TEST(a_peer_that_does_not_answer_a_ping_is_gone)
{
    hello(accept_quiet);
    pass_ms(HTTP_WS_IDLE_MS + 1000);
    CHECK_INT(closes, 0);
    pass_ms(HTTP_WS_PONG_MS + 1000);
    CHECK_INT(closes, 1);
    CHECK_INT(close_code, 1006);
    finish();
}

TEST(a_peer_that_we_do_not_read_from_is_not_blamed_for_its_silence)
{
    hello(accept_quiet);
    http_ws_pause(ws, true);
    for (int i = 0; i < 10; i++)
        pass_ms(HTTP_WS_IDLE_MS);
    CHECK_INT(closes, 0);
    finish();
}

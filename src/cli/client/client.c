/* client.c - see client.h. */
#include "cli/client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/own.h"
#include "cli/client/path.h"
#include "http/chunk.h"
#include "http/parse.h"
#include "mem/mem.h"
#include "json/read.h"

#define CONNECT_MS 10000
#define RECEIVE (64u << 10)
#define SWITCHING 101

struct reply {
    int fd;
    struct buf in;
    size_t given; /* bytes at the front of `in` that the last piece points into */
    struct http_msg msg;
    bool sse;
    char accept[64]; /* Sec-WebSocket-Accept */
    enum http_framing framing;
    uint64_t left; /* HTTP_BODY_LENGTH */
    struct http_chunk chunk;
    bool ended;
};

static int unreached(struct err *e, const struct server *s, const char *why)
{
    err_set(e, ERR_UNAVAILABLE,
            "cannot reach the server at http://%s:%s: %s; is `cove serve` running there?", s->host,
            s->port, why);
    e->sys = ECONNREFUSED;
    return -1;
}

static int broken(struct err *e, const char *why)
{
    err_set(e, ERR_UNAVAILABLE, "the connection to the server broke: %s", why);
    e->sys = ECONNRESET;
    return -1;
}

bool client_is_unreached(const struct err *e)
{
    return e->kind == ERR_UNAVAILABLE && e->sys == ECONNREFUSED;
}

bool client_is_broken(const struct err *e)
{
    return e->kind == ERR_UNAVAILABLE && e->sys == ECONNRESET;
}

static int leave_fd = -1;
static atomic_bool hurried; /* also read by the thread of feed.c */

void client_leave_when(int fd)
{
    leave_fd = fd;
}

void client_hurry(bool on)
{
    hurried = on;
}

bool client_is_left(const struct err *e)
{
    return e->kind == ERR_UNAVAILABLE && e->sys == EINTR;
}

/* Waits until the server has sent something (POLLIN) or accepts more (POLLOUT). */
static int await(int fd, short events, struct err *e)
{
    struct pollfd fds[] = {{.fd = fd, .events = events}, {.fd = leave_fd, .events = POLLIN}};
    bool patient = !hurried;
    int n;

    while ((n = poll(fds, 2, patient ? -1 : CLIENT_PATIENCE_MS)) != 0) {
        if (n > 0 && fds[0].revents != 0)
            return 0;
        if (n > 0) {
            fds[1].fd = -1;
            patient = false;
        }
    }
    err_set(e, ERR_UNAVAILABLE,
            "interrupted: the server does not answer, and may still execute the request");
    e->sys = EINTR;
    return -1;
}

/* A blocking socket, connected within CONNECT_MS; -1 and errno otherwise. */
static int connect_one(const struct addrinfo *a)
{
    autofd int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int one = 1, failure = 0, flags;
    socklen_t n = sizeof(failure);

    if (fd < 0)
        return -1;
    if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
        if (errno != EINPROGRESS)
            return -1;
        if (poll(&p, 1, CONNECT_MS) <= 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &n) < 0)
            return -1;
        if (failure != 0) {
            errno = failure;
            return -1;
        }
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
        return -1;
    return take_fd(&fd);
}

static int dial(const struct server *s, struct err *e)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL;
    int r = getaddrinfo(s->host, s->port, &hints, &all), fd = -1;

    if (r != 0)
        return unreached(e, s, gai_strerror(r));
    for (struct addrinfo *a = all; a != NULL && fd < 0; a = a->ai_next)
        fd = connect_one(a);
    freeaddrinfo(all);
    return fd < 0 ? unreached(e, s, strerror(errno)) : fd;
}

static int send_all(int fd, const char *p, size_t n, struct err *e)
{
    while (n > 0) {
        ssize_t w = send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0 && errno == EAGAIN) {
            if (await(fd, POLLOUT, e) < 0)
                return -1;
            continue;
        }
        /* The server may answer and close without reading everything; read its answer. */
        if (w < 0 && (errno == EPIPE || errno == ECONNRESET))
            return 0;
        if (w < 0)
            return broken(e, strerror(errno));
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

/* Stops with 0 if the server answers before the end: the answer says why. */
static int send_pieces(int fd, const struct call *c, struct err *e)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    const char *piece;
    char line[32];
    ssize_t n;

    while ((n = c->next(c->arg, &piece, e)) > 0) {
        snprintf(line, sizeof(line), "%zx\r\n", (size_t)n);
        if (send_all(fd, line, strlen(line), e) < 0 || send_all(fd, piece, (size_t)n, e) < 0 ||
            send_all(fd, "\r\n", 2, e) < 0)
            return -1;
        if (poll(&p, 1, 0) > 0)
            return 0;
    }
    return n < 0 ? -1 : send_all(fd, "0\r\n\r\n", 5, e);
}

static int send_request(int fd, const struct server *s, const struct call *c, struct err *e)
{
    autobuf struct buf head = BUF_INIT(HTTP_HEAD_MAX);
    autofree char *json = c->json != NULL ? json_dumps(c->json, JSON_COMPACT) : NULL;
    const char *body = json != NULL ? json : c->body;
    size_t len = json != NULL ? strlen(json) : c->len;
    bool v6 = strchr(s->host, ':') != NULL;

    buf_addf(&head, "%s %s HTTP/1.1\r\nHost: %s%s%s:%s\r\n", c->method, c->path, v6 ? "[" : "",
             s->host, v6 ? "]" : "", s->port);
    buf_addf(&head, "Authorization: Bearer %s\r\nAccept: %s\r\n", s->key,
             c->accept != NULL ? c->accept : "application/json");
    if (s->as[0] != '\0')
        buf_addf(&head, "Cove-As: %s\r\n", s->as);
    if (c->last_id != NULL)
        buf_addf(&head, "Last-Event-ID: %s\r\n", c->last_id);
    if (c->ws_key != NULL)
        buf_addf(&head,
                 "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                 "Sec-WebSocket-Key: %s\r\n",
                 c->ws_key);
    else
        buf_adds(&head, "Connection: close\r\n");
    if (body != NULL)
        buf_addf(&head, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                 json != NULL ? "application/json" : "application/octet-stream", len);
    else if (c->next != NULL)
        buf_adds(&head, "Content-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\n");
    else if (strcmp(c->method, "GET") != 0)
        buf_adds(&head, "Content-Length: 0\r\n");
    buf_adds(&head, "\r\n");
    if (head.failed)
        return err_set(e, ERR_INVALID, "the request is longer than %d bytes", (int)HTTP_HEAD_MAX);
    if (send_all(fd, buf_data(&head), head.len, e) < 0)
        return -1;
    if (c->next != NULL)
        return send_pieces(fd, c, e);
    return body != NULL ? send_all(fd, body, len, e) : 0;
}

#define NOTHING_YET 2

/* 1: received something; 0: the peer closed; -1: broken. NOTHING_YET only with
 * MSG_DONTWAIT. */
static int receive(struct reply *r, int flags, struct err *e)
{
    char *room;
    ssize_t n;

    room = buf_room(&r->in, RECEIVE);
    if (room == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    do
        n = recv(r->fd, room, RECEIVE, flags);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN)
        return NOTHING_YET;
    if (n < 0)
        return broken(e, strerror(errno));
    buf_added(&r->in, (size_t)n);
    return n > 0;
}

static int read_head(struct reply *r, struct err *e)
{
    struct http_fault fault = {0};
    struct http_span type, accept;
    size_t scanned = 0, len = 0;
    int got;

    while ((got = http_head_end(buf_data(&r->in), r->in.len, &scanned, &len, &fault)) == 0) {
        int more = await(r->fd, POLLIN, e) < 0 ? -1 : receive(r, 0, e);

        if (more < 0)
            return -1;
        if (more == 0)
            return broken(e, "closed before the answer");
    }
    if (got < 0 || http_parse_response_head(buf_data(&r->in), len, &r->msg, &fault) < 0)
        return err_set(e, ERR_INTERNAL, "the server's answer is not HTTP: %s", fault.why);
    r->sse = http_field_find(&r->msg, buf_data(&r->in), "content-type", &type) == 1 &&
             strncasecmp(buf_data(&r->in) + type.at, "text/event-stream", 17) == 0;
    r->accept[0] = '\0';
    if (http_field_find(&r->msg, buf_data(&r->in), "sec-websocket-accept", &accept) == 1)
        snprintf(r->accept, sizeof(r->accept), "%.*s", (int)accept.len,
                 buf_data(&r->in) + accept.at);
    r->framing = http_response_framing(&r->msg, false);
    if (r->framing == HTTP_BODY_LENGTH)
        r->left = (uint64_t)r->msg.content_length;
    r->ended = r->framing == HTTP_BODY_NONE || (r->framing == HTTP_BODY_LENGTH && r->left == 0);
    buf_consume(&r->in, len);
    return 0;
}

int reply_ask(const struct server *s, const struct call *c, struct reply **ret, struct err *e)
{
    autoreply struct reply *r = mem_zeroed(1, sizeof(*r));

    buf_init(&r->in, HTTP_HEAD_MAX + 2 * RECEIVE);
    r->fd = dial(s, e);
    if (r->fd < 0 || send_request(r->fd, s, c, e) < 0)
        return -1;
    *ret = take_ptr(&r);
    return 0;
}

/* Skips 100 Continue and other interim answers, but not 101. */
int reply_head(struct reply *r, struct err *e)
{
    do
        if (read_head(r, e) < 0)
            return -1;
    while (r->msg.status < 200 && r->msg.status != SWITCHING);
    return 0;
}

int reply_open(const struct server *s, const struct call *c, struct reply **ret, struct err *e)
{
    autoreply struct reply *r = NULL;

    if (reply_ask(s, c, &r, e) < 0 || reply_head(r, e) < 0)
        return -1;
    *ret = take_ptr(&r);
    return 0;
}

const char *reply_ws_accept(const struct reply *r)
{
    return r->accept;
}

size_t reply_rest(struct reply *r, const char **ret)
{
    *ret = buf_data(&r->in);
    return r->in.len;
}

void reply_free(struct reply *r)
{
    if (r == NULL)
        return;
    own_close(&r->fd);
    buf_free(&r->in);
    free(r);
}

void reply_drop(struct reply **r)
{
    reply_free(*r);
}

int reply_status(const struct reply *r)
{
    return r->msg.status;
}

bool reply_is_sse(const struct reply *r)
{
    return r->sse;
}

int reply_fd(const struct reply *r)
{
    return r->fd;
}

/* Takes a piece of the body from the received bytes, without receiving more. */
static enum reply_event take_piece(struct reply *r, const char **ret_p, size_t *ret_n,
                                   struct err *e)
{
    struct http_fault fault = {0};
    struct http_str piece = {0};
    size_t used = r->in.len;
    enum http_chunk_event ev;

    if (r->in.len == 0)
        return REPLY_MORE;
    if (r->framing == HTTP_BODY_CHUNKED) {
        ev = http_chunk_next(&r->chunk, buf_data(&r->in), r->in.len, &used, &piece, &fault);
        if (ev == HTTP_CHUNK_BAD)
            return (enum reply_event)broken(e, fault.why);
        r->given = used;
        r->ended = ev == HTTP_CHUNK_END;
        *ret_p = piece.p;
        *ret_n = piece.len;
        return ev == HTTP_CHUNK_END ? REPLY_END : ev == HTTP_CHUNK_DATA ? REPLY_DATA : REPLY_MORE;
    }
    if (r->framing == HTTP_BODY_LENGTH) {
        used = r->left < used ? (size_t)r->left : used;
        r->left -= used;
        r->ended = r->left == 0;
    }
    r->given = used;
    *ret_p = buf_data(&r->in);
    *ret_n = used;
    return REPLY_DATA;
}

enum reply_event reply_read(struct reply *r, const char **ret_p, size_t *ret_n, struct err *e)
{
    enum reply_event ev;
    int got;

    buf_consume(&r->in, r->given);
    r->given = 0;
    if (r->ended)
        return REPLY_END;
    ev = take_piece(r, ret_p, ret_n, e);
    if (ev != REPLY_MORE)
        return ev;
    buf_consume(&r->in, r->given);
    r->given = 0;
    got = receive(r, MSG_DONTWAIT, e);
    if (got < 0)
        return REPLY_BROKEN;
    if (got == NOTHING_YET)
        return REPLY_MORE;
    if (got == 0 && r->framing == HTTP_BODY_UNTIL_CLOSE)
        return REPLY_END;
    if (got == 0)
        return (enum reply_event)broken(e, "closed before the end of the answer");
    return take_piece(r, ret_p, ret_n, e);
}

void reply_wait(const struct reply *r)
{
    struct pollfd p = {.fd = r->fd, .events = POLLIN};

    poll(&p, 1, -1); /* if it was interrupted, reply_read() finds out */
}

/* Turns {"error":{"code","message","request_id"}} into `e`. */
static int refused(const struct reply *r, json_t *body, struct err *e)
{
    json_t *o = json_object_get(body, "error");
    const char *code = json_string_value(json_object_get(o, "code"));
    const char *message = json_string_value(json_object_get(o, "message"));
    const char *id = json_string_value(json_object_get(o, "request_id"));

    if (code == NULL)
        return err_set(e, ERR_INTERNAL, "the server answered with status %d and no error message",
                       reply_status(r));
    if (err_from_code(code) == ERR_INTERNAL && id != NULL)
        return err_set(e, ERR_INTERNAL, "%s (request %s)", message != NULL ? message : code, id);
    return client_refused(o, e);
}

/* What a message of the server leaves to its clients: where the right name is found. */
static const char *next_step(const struct err *e)
{
    static const struct {
        const char *missing, *step;
    } rows[] = {
        {"no sandbox ", "; `cove list` shows the sandboxes"},
        {"no snapshot ", "; `cove snapshot list` shows the snapshots"},
        {"no process ", "; `cove ps SANDBOX` shows the processes"},
        {"no session ", "; `cove session list SANDBOX` shows the sessions"},
    };

    for (size_t i = 0; e->kind == ERR_NOT_FOUND && i < ARRAY_LEN(rows); i++)
        if (strncmp(e->msg, rows[i].missing, strlen(rows[i].missing)) == 0)
            return rows[i].step;
    return "";
}

/* Of a program that could not be executed e->sys says why. */
int client_refused(json_t *error, struct err *e)
{
    const char *code = json_string_value(json_object_get(error, "code"));
    const char *message = json_string_value(json_object_get(error, "message"));
    const char *why = json_string_value(json_object_get(error, "errno"));
    size_t len;

    err_set(e, err_from_code(code != NULL ? code : ""), "%s",
            message != NULL ? message
            : code != NULL  ? code
                            : "the server gave no reason");
    if (e->kind == ERR_CANNOT_START && why != NULL)
        e->sys = strcmp(why, "ENOENT") == 0 ? ENOENT : ENOEXEC;
    len = strlen(e->msg);
    snprintf(e->msg + len, sizeof(e->msg) - len, "%s", next_step(e));
    return -1;
}

int reply_json(struct reply *r, json_t **ret, struct err *e)
{
    autobuf struct buf body = BUF_INIT(CLIENT_BODY_MAX);
    enum reply_event ev;
    const char *p;
    size_t n;
    json_t *j = NULL;
    int status = reply_status(r);

    while ((ev = reply_read(r, &p, &n, e)) != REPLY_END) {
        if (ev == REPLY_BROKEN)
            return -1;
        if (ev == REPLY_DATA)
            buf_add(&body, p, n);
        else if (ev == REPLY_MORE && await(r->fd, POLLIN, e) < 0)
            return -1;
    }
    if (body.failed)
        return err_set(e, ERR_INTERNAL, "the server's answer is longer than %u bytes",
                       CLIENT_BODY_MAX);
    if (body.len > 0)
        j = json_loadb(buf_data(&body), body.len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    if (status < 200 || status > 299) {
        refused(r, j, e);
        json_decref(j);
        return -1;
    }
    if (body.len > 0 && j == NULL)
        return err_set(e, ERR_INTERNAL, "the server's answer is not JSON");
    *ret = j;
    return 0;
}

int client_call(const struct server *s, const char *method, const char *path, json_t *body,
                json_t **ret, struct err *e)
{
    struct call c = {.method = method, .path = path, .json = body};
    autoreply struct reply *r = NULL;
    json_t *j = NULL;

    if (reply_open(s, &c, &r, e) < 0 || reply_json(r, &j, e) < 0)
        return -1;
    if (ret != NULL)
        *ret = j;
    else
        json_decref(j);
    return 0;
}

int client_list(const struct server *s, const char *path, const char *key, json_t **ret,
                struct err *e)
{
    json_t *all = json_array();
    autojson json_t *whole = json_pack("{s:o}", key, all), *page = NULL;

    do {
        const char *cursor = json_string_value(json_object_get(page, "next_cursor"));
        char next[PATH_TEXT_MAX];

        path_query(next, path, "cursor", cursor);
        json_decref(take_ptr(&page));
        if (client_call(s, "GET", next, NULL, &page, e) < 0)
            return -1;
        json_array_extend(all, json_object_get(page, key));
    } while (json_is_string(json_object_get(page, "next_cursor")));
    *ret = take_ptr(&whole);
    return 0;
}

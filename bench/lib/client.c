/* client.c - see client.h. */
#include "bench/lib/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/own.h"
#include "bench/lib/bench.h"

#define SETTLE_MS 20000
#define SETTLE_STEP_US 50000 /* several sandboxes would be made in it */
#define HEAD_MAX 1024

static const char *env(const char *name)
{
    const char *value = getenv(name);

    if (value == NULL)
        die("%s is not set; bench/run.sh sets it", name);
    return value;
}

static struct sockaddr_in address(const char *url_name)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    const char *url = env(url_name), *host = strstr(url, "://"), *colon;
    char text[64];

    host = host != NULL ? host + 3 : url;
    colon = strchr(host, ':');
    if (colon == NULL || (size_t)(colon - host) >= sizeof(text))
        die("COVE_URL: http://ADDRESS:PORT is wanted");
    snprintf(text, sizeof(text), "%.*s", (int)(colon - host), host);
    a.sin_port = htons((uint16_t)atoi(colon + 1));
    if (inet_pton(AF_INET, text, &a.sin_addr) != 1)
        die("%s: %s is not an IPv4 address", url_name, text);
    return a;
}

void client_open_as(struct client *c, const char *url_name, const char *key_name)
{
    struct sockaddr_in a = address(url_name);
    int one = 1;

    *c = (struct client){.in = malloc(CLIENT_IN_MAX + 1), .key = env(key_name)};
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->in == NULL || c->fd < 0 || connect(c->fd, (struct sockaddr *)&a, sizeof(a)) < 0)
        die("connect: %s", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void client_open(struct client *c)
{
    client_open_as(c, "COVE_URL", "COVE_API_KEY");
}

void client_close(struct client *c)
{
    drop_fd(&c->fd);
    free(c->in);
}

/* In one send, with a body of any length. */
static void send_request(struct client *c, const char *method, const char *path, const char *accept,
                         const char *json)
{
    char head[HEAD_MAX];
    size_t len = json != NULL ? strlen(json) : 0;
    int n =
        snprintf(head, sizeof(head),
                 "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nAccept: %s\r\n"
                 "%s%sContent-Length: %zu\r\n\r\n",
                 method, path, c->key, accept, c->extra != NULL ? c->extra : "",
                 json != NULL ? "Content-Type: application/json\r\n" : "", len);
    struct iovec iov[2] = {{head, (size_t)n}, {(char *)(uintptr_t)json, len}};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};

    if (n < 0 || (size_t)n >= sizeof(head))
        die("%s %s: too long", method, path);
    if (sendmsg(c->fd, &m, MSG_NOSIGNAL) != (ssize_t)((size_t)n + len))
        die("%s %s: %s", method, path, strerror(errno));
    c->len = c->at = 0;
}

static void receive(struct client *c)
{
    ssize_t n;

    if (c->at > 0) {
        memmove(c->in, c->in + c->at, c->len - c->at);
        c->len -= c->at;
        c->at = 0;
    }
    if (c->len == CLIENT_IN_MAX)
        die("the answer is too long");
    n = recv(c->fd, c->in + c->len, CLIENT_IN_MAX - c->len, 0);
    if (n <= 0)
        die("the server closed the connection");
    c->len += (size_t)n;
    c->in[c->len] = '\0';
}

/* The value of a header of the head that ends at `end`, or NULL. */
static const char *header(const char *head, const char *end, const char *name)
{
    const char *at = strcasestr(head, name);

    return at != NULL && at < end ? at + strlen(name) : NULL;
}

/* Sets c->at to the beginning of the body. Returns the beginning of the head. */
static const char *receive_head(struct client *c)
{
    char *end;

    do
        receive(c);
    while ((end = strstr(c->in, "\r\n\r\n")) == NULL);
    c->status = atoi(c->in + strlen("HTTP/1.1 "));
    c->at = (size_t)(end + 4 - c->in);
    return c->in;
}

static void receive_body(struct client *c, const char *head)
{
    const char *length = header(head, c->in + c->at, "\r\nContent-Length:");
    size_t want = length != NULL ? strtoul(length, NULL, 10) : 0, body = c->at;

    while (c->len - body < want) {
        c->at = 0; /* nothing is moved: the head stays at the front */
        receive(c);
    }
    c->body = c->in + body;
    c->body_len = want;
    c->at = body + want;
}

void client_call(struct client *c, const char *method, const char *path, const char *json, int want)
{
    send_request(c, method, path, "application/json", json);
    receive_body(c, receive_head(c));
    if (c->status != want)
        die("%s %s: %d instead of %d: %s", method, path, c->status, want, c->body);
}

/* The length of the next chunk; its line is used up. */
static size_t chunk_line(struct client *c)
{
    char *end;
    size_t n;

    while ((end = memchr(c->in + c->at, '\n', c->len - c->at)) == NULL)
        receive(c);
    n = strtoul(c->in + c->at, NULL, 16);
    c->at = (size_t)(end + 1 - c->in);
    return n;
}

static void skip(struct client *c, size_t n)
{
    while (n > 0) {
        size_t some = c->len - c->at < n ? c->len - c->at : n;

        c->at += some;
        n -= some;
        if (n > 0)
            receive(c);
    }
}

uint64_t client_stream(struct client *c, const char *path, const char *accept, const char *json)
{
    uint64_t total = 0;
    size_t n;

    send_request(c, "POST", path, accept, json);
    receive_head(c);
    if (c->status != 200)
        die("POST %s: %d", path, c->status);
    while ((n = chunk_line(c)) > 0) {
        skip(c, n + 2);
        total += n;
    }
    skip(c, 2);
    return total;
}

void client_upgrade(struct client *c, const char *path)
{
    char text[HEAD_MAX];
    int n = snprintf(text, sizeof(text),
                     "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                     "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                     path, c->key);

    c->len = c->at = 0;
    if (n < 0 || (size_t)n >= sizeof(text) || send(c->fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        die("%s: %s", path, strerror(errno));
    receive_head(c);
    if (c->status != 101)
        die("%s: answered %d", path, c->status);
}

void client_bytes(struct client *c, void *to, size_t n)
{
    while (c->len - c->at < n)
        receive(c);
    memcpy(to, c->in + c->at, n);
    c->at += n;
}

uint64_t client_fetch(struct client *c, const char *path)
{
    const char *head, *length;
    uint64_t total = 0, left;
    size_t n;

    send_request(c, "GET", path, "*/*", NULL);
    head = receive_head(c);
    if (c->status != 200)
        die("GET %s: %d", path, c->status);
    length = header(head, c->in + c->at, "\r\nContent-Length:");
    if (length != NULL) {
        total = strtoull(length, NULL, 10);
        for (left = total - (c->len - c->at), c->len = c->at = 0; left > 0; left -= (uint64_t)n) {
            ssize_t got = recv(c->fd, c->in, CLIENT_IN_MAX, 0);

            if (got <= 0)
                die("GET %s: cut off", path);
            n = (size_t)got;
        }
        return total;
    }
    while ((n = chunk_line(c)) > 0) {
        skip(c, n + 2);
        total += n;
    }
    skip(c, 2);
    return total;
}

void client_upload(struct client *c, const char *path, uint64_t size, int want)
{
    char head[HEAD_MAX];
    int n = snprintf(head, sizeof(head),
                     "PUT %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                     "Content-Length: %llu\r\n\r\n",
                     path, c->key, (unsigned long long)size);

    if (send(c->fd, head, (size_t)n, MSG_NOSIGNAL | MSG_MORE) != n)
        die("PUT %s: %s", path, strerror(errno));
    memset(c->in, 'x', CLIENT_IN_MAX);
    while (size > 0) {
        size_t some = size < CLIENT_IN_MAX ? (size_t)size : CLIENT_IN_MAX;
        ssize_t w = send(c->fd, c->in, some, MSG_NOSIGNAL);

        if (w <= 0)
            die("PUT %s: %s", path, strerror(errno));
        size -= (uint64_t)w;
    }
    c->len = c->at = 0;
    receive_body(c, receive_head(c));
    if (c->status != want)
        die("PUT %s: %d instead of %d: %.*s", path, c->status, want, (int)c->body_len, c->body);
}

void sandbox_create(struct client *c, char ret_id[CLIENT_ID_MAX])
{
    sandbox_create_as(c, "{}", ret_id);
}

void sandbox_create_as(struct client *c, const char *json, char ret_id[CLIENT_ID_MAX])
{
    const char *id;

    client_call(c, "POST", "/v1/sandboxes", json, 201);
    id = strstr(c->body, "\"id\":\"");
    if (id == NULL || sscanf(id + 6, "%63[^\"]", ret_id) != 1)
        die("a sandbox without an id: %s", c->body);
}

void sandbox_delete(struct client *c, const char *id)
{
    char path[128];

    snprintf(path, sizeof(path), "/v1/sandboxes/%s", id);
    client_call(c, "DELETE", path, NULL, 204);
}

void sandbox_exec(struct client *c, const char *id, const char *json)
{
    char path[128];

    snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", id);
    client_call(c, "POST", path, json, 200);
    if (strstr(c->body, "\"exit_code\":0,") == NULL)
        die("exec %s: %s", json, c->body);
}

double metric(struct client *c, const char *name)
{
    char needle[128];
    const char *at;

    client_call(c, "GET", "/metrics", NULL, 200);
    snprintf(needle, sizeof(needle), "\n%s ", name);
    at = strstr(c->body, needle);
    if (at == NULL)
        die("no %s in /metrics", name);
    return strtod(at + strlen(needle), NULL);
}

void daemon_settle(struct client *c)
{
    double end = now_ms() + SETTLE_MS, pooled = -1, now = 0;

    while (now != pooled || metric(c, "cove_teardown_queue") > 0) {
        if (now_ms() > end)
            die("after %d ms the daemon is still busy", SETTLE_MS);
        pooled = metric(c, "cove_sandboxes_pooled");
        usleep(SETTLE_STEP_US);
        now = metric(c, "cove_sandboxes_pooled");
    }
}

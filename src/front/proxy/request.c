/* request.c - writes a request again for the server inside.
 *
 * Only what our parser understood is copied: method, target, host and headers; the framing is
 * ours. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/own.h"
#include "front/proxy/internal.h"
#include "http/http.h"
#include "http/parse.h"

static bool is_named(const char *name, size_t len, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i]) == len && strncasecmp(name, names[i], len) == 0)
            return true;
    return false;
}

bool request_is_hop(const char *name, size_t len, const char *connection, size_t connection_len)
{
    static const char *const hop[] = {"Connection",
                                      "Keep-Alive",
                                      "Proxy-Connection",
                                      "Proxy-Authenticate",
                                      "Proxy-Authorization",
                                      "TE",
                                      "Trailer",
                                      "Transfer-Encoding",
                                      "Upgrade",
                                      "Expect",
                                      "Content-Length"};
    char token[64];

    if (is_named(name, len, hop, ARRAY_LEN(hop)))
        return true;
    if (connection == NULL || len >= sizeof(token))
        return false;
    memcpy(token, name, len);
    token[len] = '\0';
    return http_list_has(connection, connection_len, token);
}

/* Ours to write, or ours to keep. */
static bool is_ours(const struct http_str *name)
{
    static const char *const ours[] = {"Host", "X-Forwarded-For", "E2B-Traffic-Access-Token"};

    return is_named(name->p, name->len, ours, ARRAY_LEN(ours));
}

static void add(struct buf *out, const char *name, const char *value)
{
    buf_adds(out, name);
    buf_adds(out, ": ");
    buf_adds(out, value);
    buf_adds(out, "\r\n");
}

static const char *peer_of(struct http_req *r, char out[INET6_ADDRSTRLEN])
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof(a);

    strcpy(out, "unknown");
    if (getpeername(http_fd(r), (struct sockaddr *)&a, &n) < 0)
        return out;
    if (a.ss_family == AF_INET)
        inet_ntop(AF_INET, &((struct sockaddr_in *)&a)->sin_addr, out, INET6_ADDRSTRLEN);
    else if (a.ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&a)->sin6_addr, out, INET6_ADDRSTRLEN);
    return out;
}

/* What clients send to our own host is meant for us: keys. On a path of it also cookies, which a
 * browser adds by itself. */
static bool is_for_us(const struct http_str *name, bool by_path)
{
    static const char *const secrets[] = {"Authorization", "X-API-Key", "Cookie"};

    return is_named(name->p, name->len, secrets, ARRAY_LEN(secrets) - !by_path);
}

static void add_headers(struct http_req *r, struct buf *out, const char *connection,
                        const struct proxy_target *t)
{
    size_t len = connection != NULL ? strlen(connection) : 0;
    struct http_str name, value;

    for (size_t i = 0; http_header_at(r, i, &name, &value); i++)
        if (!request_is_hop(name.p, name.len, connection, len) && !is_ours(&name) &&
            !((t->by_headers || t->prefix > 0) && is_for_us(&name, t->prefix > 0)))
            add(out, name.p, value.p);
}

static bool asks_upgrade(struct http_req *r, const char *connection)
{
    return connection != NULL && http_list_has(connection, strlen(connection), "upgrade") &&
           http_header(r, "Upgrade") != NULL && !http_head(r)->has_body;
}

void request_write(struct http_req *r, const char *host, const struct proxy_target *t,
                   struct buf *out, bool *ret_chunked, bool *ret_upgrade)
{
    const char *connection = http_header(r, "Connection");
    const struct http_head *h = http_head(r);
    const char *path = h->path.p + t->prefix;
    const char *before;
    char peer[INET6_ADDRSTRLEN];

    *ret_chunked = h->has_body && h->content_length < 0;
    *ret_upgrade = asks_upgrade(r, connection);
    buf_addf(out, "%s %s%s%s HTTP/1.1\r\n", h->method.p, *path != '\0' ? path : "/",
             strchr(h->target.p, '?') != NULL ? "?" : "", h->query.p);
    add(out, "Host", host);
    add_headers(r, out, connection, t);
    if (t->prefix > 0)
        buf_addf(out, "X-Forwarded-Prefix: %.*s\r\n", (int)t->prefix, h->path.p);
    /* Where it came from: the list so far, and the address that connected to us. */
    before = http_header(r, "X-Forwarded-For");
    buf_adds(out, "X-Forwarded-For: ");
    if (before != NULL)
        buf_addf(out, "%s, ", before);
    buf_addf(out, "%s\r\n", peer_of(r, peer));
    if (http_header(r, "X-Forwarded-Host") == NULL)
        add(out, "X-Forwarded-Host", http_head(r)->host.p);
    if (http_header(r, "X-Forwarded-Proto") == NULL)
        add(out, "X-Forwarded-Proto", "http");
    if (*ret_chunked)
        add(out, "Transfer-Encoding", "chunked");
    else if (h->content_length >= 0)
        buf_addf(out, "Content-Length: %lld\r\n", (long long)h->content_length);
    if (*ret_upgrade)
        add(out, "Upgrade", http_header(r, "Upgrade"));
    add(out, "Connection", *ret_upgrade ? "Upgrade" : "keep-alive");
    buf_adds(out, "\r\n");
}

/* target.c - see target.h. */
#include "front/proxy/target.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/id.h"
#include "base/str.h"
#include "front/proxy/host.h"
#include "http/http.h"

#define PORT_DIGITS 5

/* The id up to a dash; what follows it is a token, or the client's business. */
static bool take_id(const char *p, size_t n, struct proxy_target *ret)
{
    size_t len = 0, at;

    ret->prefix = 0;
    ret->by_headers = false;
    ret->token[0] = '\0';

    while (len < n && p[len] != '-' && len < ENGINE_ID_MAX) {
        ret->id[len] = (char)tolower((unsigned char)p[len]);
        len++;
    }
    ret->id[len] = '\0';
    for (at = 0; len + 1 + at < n && at < PROXY_TOKEN_MAX; at++)
        ret->token[at] = (char)tolower((unsigned char)p[len + 1 + at]);
    ret->token[at] = '\0';
    return (len == n || p[len] == '-') && id_is_valid(ret->id, ENGINE_ID_MAX);
}

static bool take_port(const char *p, size_t n, struct proxy_target *ret)
{
    char text[PORT_DIGITS + 1];
    uint64_t port;

    if (n == 0 || n > PORT_DIGITS)
        return false;
    str_fmt(text, sizeof(text), "%.*s", (int)n, p);
    if (str_u64(text, 65535, &port) < 0 || port == 0)
        return false;
    ret->port = (unsigned)port;
    return true;
}

bool proxy_target_host(const char *host, struct proxy_target *ret)
{
    size_t label = strcspn(host, ".:"), port = strcspn(host, "-");

    return host[label] == '.' && port < label && take_port(host, port, ret) &&
           take_id(host + port + 1, label - port - 1, ret);
}

bool proxy_target_path(const char *prefix, const char *path, struct proxy_target *ret)
{
    size_t n = strlen(prefix), label, port;
    const char *at = path + n + 1;

    if (strncmp(path, prefix, n) != 0 || path[n] != '/')
        return false;
    label = strcspn(at, "/");
    port = strcspn(at, "-");
    if (port >= label || !take_port(at, port, ret) ||
        !take_id(at + port + 1, label - port - 1, ret))
        return false;
    ret->prefix = n + 1 + label;
    return true;
}

static bool may_use_headers(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    char name[PROXY_NAME_MAX];

    host_name(host, name);
    return strcasecmp(name, "localhost") == 0 || strncasecmp(name, "sandbox.", 8) == 0 ||
           inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

int proxy_target_of(struct http_req *r, struct proxy_target *ret, const char **ret_why)
{
    const char *host = http_head(r)->host.p;
    const char *id = http_header(r, "E2b-Sandbox-Id"), *port = http_header(r, "E2b-Sandbox-Port");

    if (proxy_target_host(host, ret))
        return 1;
    if ((id == NULL && port == NULL) || !may_use_headers(host))
        return 0;
    *ret_why = id == NULL ? "missing header E2b-Sandbox-Id" : "missing header E2b-Sandbox-Port";
    if (id == NULL || port == NULL)
        return -1;
    *ret_why = "invalid header E2b-Sandbox-Port";
    if (!take_port(port, strlen(port), ret))
        return -1;
    *ret_why = "invalid header E2b-Sandbox-Id";
    if (!take_id(id, strlen(id), ret))
        return -1;
    ret->by_headers = true;
    return 1;
}

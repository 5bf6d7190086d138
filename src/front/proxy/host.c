/* host.c - see host.h. */
#include "front/proxy/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

void host_name(const char *host, char out[PROXY_NAME_MAX])
{
    bool six = *host == '[';
    size_t n = six ? strcspn(host + 1, "]") : strcspn(host, ":");

    str_fmt(out, PROXY_NAME_MAX, "%.*s", n < PROXY_NAME_MAX ? (int)n : 0, host + six);
}

static bool is_address(const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/* It is the domain, of `n` bytes, or below it. */
static bool is_in(const char *name, const char *domain, size_t n)
{
    size_t len = strlen(name);

    return n > 0 && len >= n && strncasecmp(name + len - n, domain, n) == 0 &&
           (len == n || name[len - n - 1] == '.');
}

static bool is_in_one(const char *name, const char *domains)
{
    for (const char *p = domains; *p != '\0'; p += strcspn(p, ","), p += *p == ',') {
        size_t skip = strspn(p, " "), n = strcspn(p + skip, ", ");

        if ((n == 1 && p[skip] == '*') || is_in(name, p + skip, n))
            return true;
    }
    return false;
}

bool host_is_ours(const char *host, const char *domain, const char *more)
{
    char name[PROXY_NAME_MAX];
    size_t n;

    host_name(host, name);
    n = strlen(name);
    if (n > 0 && name[n - 1] == '.') /* the root, which a name may end with */
        name[n - 1] = '\0';
    return *host == '\0' || is_address(name) || is_in(name, "localhost", strlen("localhost")) ||
           is_in(name, domain, strcspn(domain, ":")) || is_in_one(name, more);
}

/* resolvers.c - see resolvers.h. */
#include "keeper/network/resolvers.h"

#include <stdio.h>
#include <string.h>

#include "base/cidr.h"

#define LINES_MAX 256

/* In order of preference: systemd-resolved writes its upstream servers into the second when the
 * first names only itself. */
static const char *const files[] = {"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"};

static int check(uint32_t addr)
{
    return addr >> 24 == 127 || addr == 0 || addr >> 28 == 14 ? -1 : 0;
}

int resolvers_parse(const char *text, uint32_t *ret, size_t max, struct err *e)
{
    size_t n = 0;

    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        char one[32] = "";

        if (len < sizeof(one))
            memcpy(one, text, len);
        if (n == max)
            return err_set(e, ERR_INVALID, "resolvers: more than %zu are named, the maximum", max);
        if (cidr_parse_addr(one, &ret[n]) < 0 || check(ret[n]) < 0)
            return err_set(e, ERR_INVALID,
                           "resolvers: '%.*s' is not an IPv4 address that sandboxes can reach",
                           (int)(len < 60 ? len : 60), text);
        n++;
        text += len + (text[len] == ',');
    }
    return (int)n;
}

size_t resolvers_read(const char *path, uint32_t *ret, size_t max)
{
    FILE *f = fopen(path, "re");
    char line[512], addr[64];
    size_t n = 0;

    for (int i = 0; f != NULL && i < LINES_MAX && n < max; i++) {
        if (fgets(line, sizeof(line), f) == NULL)
            break;
        if (sscanf(line, " nameserver %63s", addr) == 1 && cidr_parse_addr(addr, &ret[n]) == 0 &&
            check(ret[n]) == 0)
            n++;
    }
    if (f != NULL)
        fclose(f);
    return n;
}

size_t resolvers_find(uint32_t *ret, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && n == 0; i++)
        n = resolvers_read(files[i], ret, max);
    return n;
}

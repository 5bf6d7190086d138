/* probe.c - see probe.h. */
#include "init/probe.h"

#include <string.h>

bool probe_path_is_valid(const char *path)
{
    size_t n = 0;

    for (; path[n] != '\0'; n++)
        if ((unsigned char)path[n] <= ' ' || (unsigned char)path[n] >= 0x7f || path[n] == '#')
            return false;
    return path[0] == '/' && n <= PROBE_PATH_MAX;
}

void probe_request(struct buf *out, const char *path, unsigned port)
{
    buf_addf(out,
             "GET %s HTTP/1.1\r\nHost: localhost:%u\r\nUser-Agent: cove\r\nAccept: */*\r\n"
             "Connection: close\r\n\r\n",
             path, port);
}

/* The form of it, '#' being a digit. */
static const char form[] = "HTTP/1.# ### ";

static bool fits(char c, char want)
{
    return want == '#' ? c >= '0' && c <= '9' : c == want;
}

int probe_status(const char *p, size_t n)
{
    size_t last = sizeof(form) - 2;

    for (size_t i = 0; i < n && i < last; i++)
        if (!fits(p[i], form[i]))
            return -1;
    if (n <= last)
        return 0;
    if (p[last] != ' ' && p[last] != '\r') /* servers leave out the reason, and the blank */
        return -1;
    return (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
}

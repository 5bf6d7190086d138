/* sockets.c - see sockets.h. */
#include "init/syscalls/sockets.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

#define TEXT_MAX 16384u /* a line for each of some thirty protocols */

static bool is_uncounted(const char *protocol)
{
    static const char *const kinds[] = {"NETLINK", "PACKET", "RAW", "RAWv6"};

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(protocol, kinds[i]) == 0)
            return true;
    return false;
}

static char *next_word(char **at)
{
    char *word;

    do
        word = strsep(at, " ");
    while (word != NULL && *word == '\0');
    return word != NULL ? word : (char *)"";
}

/* "NAME SIZE SOCKETS ..." */
static uint64_t count_line(char *line)
{
    bool counts = is_uncounted(next_word(&line));
    uint64_t n = 0;

    next_word(&line);
    return counts && str_u64(next_word(&line), UINT32_MAX, &n) == 0 ? n : 0;
}

size_t sockets_count(char *text)
{
    size_t n = 0;
    char *line;

    while ((line = strsep(&text, "\n")) != NULL)
        n += count_line(line);
    return n;
}

bool sockets_have_room(void)
{
    autofd int fd = open("/proc/net/protocols", O_RDONLY | O_CLOEXEC);
    char text[TEXT_MAX + 1];
    size_t len = 0;
    ssize_t n;

    while (fd >= 0 && len < TEXT_MAX && (n = read(fd, text + len, TEXT_MAX - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return fd >= 0 && sockets_count(text) < SOCKETS_UNCOUNTED_MAX;
}

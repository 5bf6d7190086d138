/* xattr.c - see xattr.h. */
#include "base/xattr.h"

#include <errno.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

/* The value of the line with that name, and its length; NULL if there is no such line. */
static const char *value_of(const char *lines, const char *name, size_t *len)
{
    size_t n = strlen(name);

    for (; *lines != '\0'; lines += strcspn(lines, "\n"), lines += *lines == '\n') {
        if (strncmp(lines, name, n) != 0 || lines[n] != '=')
            continue;
        *len = strcspn(lines + n + 1, "\n");
        return lines + n + 1;
    }
    return NULL;
}

static int remove_others(int fd, const char *prefix, const char *lines)
{
    char names[XATTR_LIST_MAX];
    ssize_t n = flistxattr(fd, names, sizeof(names));
    size_t skip = strlen(prefix), len;

    if (n < 0)
        return errno == ENOTSUP && *lines == '\0' ? 0 : -1;
    for (const char *name = names; name < names + n; name += strlen(name) + 1)
        if (strncmp(name, prefix, skip) == 0 && value_of(lines, name + skip, &len) == NULL &&
            fremovexattr(fd, name) < 0)
            return -1;
    return 0;
}

static int set_line(int fd, const char *prefix, const char *line, size_t len)
{
    const char *equals = memchr(line, '=', len);
    char name[XATTR_NAME_MAX + 1];

    if (equals == NULL || strlen(prefix) + (size_t)(equals - line) > XATTR_NAME_MAX) {
        errno = ERANGE;
        return -1;
    }
    snprintf(name, sizeof(name), "%s%.*s", prefix, (int)(equals - line), line);
    return fsetxattr(fd, name, equals + 1, len - (size_t)(equals + 1 - line), 0);
}

int xattr_replace(int fd, const char *prefix, const char *lines)
{
    size_t n;

    if (remove_others(fd, prefix, lines) < 0)
        return -1;
    for (; (n = strcspn(lines, "\n")) > 0; lines += n + (lines[n] == '\n'))
        if (set_line(fd, prefix, lines, n) < 0)
            return -1;
    return 0;
}

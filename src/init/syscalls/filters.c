/* filters.c - see filters.h. */
#include "init/syscalls/filters.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

#define STATUS_MAX 4096u
static const char field[] = "\nSeccomp_filters:";

unsigned filters_in(const char *status)
{
    const char *at = strstr(status, field);
    unsigned long n = at == NULL ? 0 : strtoul(at + strlen(field), NULL, 10);

    return n > 1 ? (unsigned)n - 1 : 0;
}

static unsigned count_thread(int tasks, const char *name)
{
    char path[80], text[STATUS_MAX + 1];
    autofd int fd = -1;
    ssize_t n;

    str_fmt(path, sizeof(path), "%.32s/status", name);
    fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, STATUS_MAX);
    text[n < 0 ? 0 : n] = '\0';
    return filters_in(text);
}

/* Each number in the directory, but for init itself. */
static unsigned count(DIR *d, unsigned (*each)(int dir, const char *name))
{
    unsigned n = 0;

    for (struct dirent *de; d != NULL && n < FILTERS_MAX && (de = readdir(d)) != NULL;)
        if (de->d_name[0] >= '1' && de->d_name[0] <= '9' && strcmp(de->d_name, "1") != 0)
            n += each(dirfd(d), de->d_name);
    if (d != NULL)
        closedir(d);
    return n;
}

static unsigned count_process(int proc, const char *name)
{
    char path[48];
    int fd;

    str_fmt(path, sizeof(path), "%.32s/task", name);
    fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? 0 : count(fdopendir(fd), count_thread);
}

/* The kernel installs it after the answer: threads that ask at the same moment can exceed the
 * limit by their number. */
int filters_on_install(const struct caller *c)
{
    (void)c;
    return count(opendir("/proc"), count_process) < FILTERS_MAX ? CALLER_CONTINUE : -ENOMEM;
}

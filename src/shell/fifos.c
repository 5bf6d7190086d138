/* fifos.c - see fifos.h. */
#include "shell/fifos.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "shell/bash.h"
#include "shell/kept.h"
#include "shell/kernel.h"

#define PATH_ROOM 128 /* init's paths are short */

static char dir[PATH_ROOM];
static struct kept home = {-1, 0, 0}, calls = {-1, 0, 0}, replies = {-1, 0, 0};

bool fifos_begin(const char *path)
{
    if (strlen(path) >= sizeof(dir))
        return false;
    strcpy(dir, path);
    return true;
}

static int reopen(struct kept *k, int at, const char *name, int flags)
{
    if (!kept_is_valid(k) && !kept_put(k, open_at(at, name, flags)))
        exit_shell(1);
    return k->fd;
}

static int home_fd(void)
{
    return reopen(&home, AT_FDCWD, dir, O_PATH | O_DIRECTORY);
}

static int fifo_fd(struct kept *k, const char *name)
{
    return kept_is_valid(k) ? k->fd : reopen(k, home_fd(), name, O_RDWR);
}

size_t fifos_take(char *out, size_t least, size_t room)
{
    size_t n = 0;

    while (n < least) {
        long got = sys(SYS_read, fifo_fd(&calls, "c"), (long)(out + n), (long)(room - n), 0);

        if (got == NEG_EINTR)
            continue;
        if (got <= 0)
            exit_shell(1);
        n += (size_t)got;
    }
    return n;
}

void fifos_reply(char letter, int status)
{
    char text[8], *p = text + sizeof(text);
    unsigned left = (unsigned)status & 255;

    *--p = '\n';
    do
        *--p = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    *--p = letter;
    sys(SYS_write, fifo_fd(&replies, "s"), (long)p, text + sizeof(text) - p, 0);
}

static void put_stdio(int want, int at, const char *path, int flags)
{
    int fd = open_at(at, path, flags);

    if (fd < 0 && want > 0)
        exit_shell(1);
    if (fd < 0 || fd == want)
        return;
    sys(SYS_dup3, fd, want, 0, 0);
    close_fd(fd);
}

void fifos_open_stdio(const char *input)
{
    int at = home_fd();

    if (input[0] != '\0')
        put_stdio(0, at, input, O_RDONLY);
    put_stdio(1, at, "1", O_WRONLY);
    put_stdio(2, at, "2", O_WRONLY);
}

/* They are closed between calls, so that init sees their end. */
void fifos_close_output(void)
{
    fflush(NULL);
    close_fd(1);
    close_fd(2);
}

void fifos_open_null(void)
{
    close_fd(0);
    put_stdio(0, AT_FDCWD, "/dev/null", O_RDONLY);
}

/* counters.c - see counters.h. */
#include "keeper/counters.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/own.h"
#include "base/str.h"

/* clang-format off */
static const struct {
    const char *name, *path;
    uint64_t want;
} rows[COUNTER_COUNT] = {
    [COUNTER_PIDS]    = {"kernel.pid_max",           "/proc/sys/kernel/pid_max",           4194304},
    [COUNTER_THREADS] = {"kernel.threads-max",       "/proc/sys/kernel/threads-max",       4194304},
    [COUNTER_PTYS]    = {"kernel.pty.max",           "/proc/sys/kernel/pty/max",           65536},
    /* A default sandbox may have 4096 files in each of 1024 processes. */
    [COUNTER_FILES]   = {"fs.file-max",              "/proc/sys/fs/file-max",              1ull << 40},
    /* Connections that their program closed and that are not over. When there are more, the kernel
     * resets those of all programs. */
    [COUNTER_ORPHANS] = {"net.ipv4.tcp_max_orphans", "/proc/sys/net/ipv4/tcp_max_orphans", 1048576},
};
/* clang-format on */

static int read_number(int fd, uint64_t *ret)
{
    char text[32];
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

    if (n <= 0)
        return -1;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return str_u64(text, UINT64_MAX, ret);
}

uint64_t counter_value(enum counter c, uint64_t absent)
{
    autofd int fd = open(rows[c].path, O_RDONLY | O_CLOEXEC);
    uint64_t now;

    return read_number(fd, &now) < 0 ? absent : now;
}

uint64_t counter_wanted(enum counter c)
{
    return rows[c].want;
}

static void raise_one(enum counter c)
{
    autofd int fd = open(rows[c].path, O_RDWR | O_CLOEXEC);
    uint64_t now, want = rows[c].want;
    char text[32];

    if (read_number(fd, &now) < 0 || now >= want)
        return;
    str_fmt(text, sizeof(text), "%llu", (unsigned long long)want);
    if (pwrite(fd, text, strlen(text), 0) > 0)
        log_info("raised %s from %llu to %s", rows[c].name, (unsigned long long)now, text);
    else
        log_warn("%s stays at %llu: one sandbox may take it from all others; set it to %s",
                 rows[c].name, (unsigned long long)now, text);
}

void counters_raise(void)
{
    for (int c = 0; c < COUNTER_COUNT; c++)
        raise_one((enum counter)c);
}

uint64_t counter_tasks(void)
{
    uint64_t pids = counter_value(COUNTER_PIDS, 32768);
    uint64_t threads = counter_value(COUNTER_THREADS, pids);

    return threads < pids ? threads : pids;
}

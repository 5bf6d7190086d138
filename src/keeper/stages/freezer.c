/* freezer.c - see freezer.h. */
#include "keeper/freezer.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/cgroup.h"

#define FREEZER_SPIN_NS 300000u

static void path_of(const struct sandbox *sb, enum freeze what, const char *file, char out[96])
{
    str_fmt(out, 96, "%s%s/%s", sb->rec.id, what == FREEZE_COMMANDS ? "/run" : "", file);
}

/* Kept open: opening these files takes longer than using them. */
static int open_once(struct sandbox *sb, enum freeze what, const char *file, int flags, int *fd)
{
    char path[96];

    if (*fd < 0) {
        path_of(sb, what, file, path);
        *fd = openat(sb->k->cgroups.v2_fd, path, flags | O_CLOEXEC);
    }
    return *fd;
}

void freezer_close(struct sandbox *sb)
{
    for (int i = 0; i < FREEZE_COUNT; i++) {
        drop_fd(&sb->freezer[i].set);
        drop_fd(&sb->freezer[i].events);
    }
}

int freezer_set(struct sandbox *sb, enum freeze what, bool on, struct err *e)
{
    int fd = open_once(sb, what, "cgroup.freeze", O_WRONLY, &sb->freezer[what].set);

    if (fd < 0 || pwrite(fd, on ? "1" : "0", 1, 0) != 1)
        return err_sys(e, "write %d to cgroup.freeze", on);
    return 0;
}

bool freezer_is_frozen(struct sandbox *sb, enum freeze what)
{
    int fd = open_once(sb, what, "cgroup.events", O_RDONLY, &sb->freezer[what].events);
    char text[128];
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

    text[n < 0 ? 0 : n] = '\0';
    return strstr(text, "frozen 1") != NULL;
}

bool freezer_is_frozen_soon(struct sandbox *sb, enum freeze what)
{
    uint64_t until = clock_mono_ns() + FREEZER_SPIN_NS;

    do {
        if (freezer_is_frozen(sb, what))
            return true;
        sched_yield();
    } while (clock_mono_ns() < until);
    return false;
}

int freezer_is_on(struct sandbox *sb, enum freeze what, bool *ret, struct err *e)
{
    char path[96], text[8];

    path_of(sb, what, "cgroup.freeze", path);
    if (cgroup_get(sb->k->cgroups.v2_fd, path, text, sizeof(text)) < 0)
        return err_sys(e, "read %s", path);
    *ret = text[0] == '1';
    return 0;
}

/* More than it has: the kernel takes what it can and returns EAGAIN. */
void freezer_reclaim(int memory_dir, bool v2)
{
    struct err ignored;

    if (v2)
        cgroup_put(memory_dir, "memory.reclaim", "1T", &ignored);
    else
        cgroup_put(memory_dir, "memory.force_empty", "0", &ignored);
}

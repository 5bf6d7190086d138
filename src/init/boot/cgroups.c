/* cgroups.c - see cgroups.h. */
#include "init/boot/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"
#include "init/boot/mount.h"
#include "init/limits/values.h"

#define CLOSED (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
#define TEXT_MAX 2048     /* of /proc/self/cgroup */
#define CONTROLLERS_MAX 8 /* of one v1 hierarchy */

/* The controllers of the v1 hierarchy that has `name`, as options of a mount: the kernel wants all
 * of them. A line is "4:cpu,cpuacct:/". They point into `text`. */
static bool find_v1(char *text, const char *name, const char *opts[2 * CONTROLLERS_MAX + 1])
{
    char *line, *word;

    while ((line = strsep(&text, "\n")) != NULL) {
        bool found = false;
        size_t n = 0;

        strsep(&line, ":");
        for (char *list = strsep(&line, ":"); (word = strsep(&list, ",")) != NULL;) {
            found = found || strcmp(word, name) == 0;
            if (n < 2 * CONTROLLERS_MAX) {
                opts[n++] = word;
                opts[n++] = "";
            }
        }
        opts[n] = NULL;
        if (found)
            return true;
    }
    return false;
}

static int mount_in(int dir, const char *name, const char *type, const char *const *opts)
{
    struct err e;
    autofd int mnt = boot_fs(type, opts, CLOSED, &e);

    return mnt < 0 || (*name != '\0' && mkdirat(dir, name, 0555) < 0) ||
                   boot_attach(mnt, dir, *name != '\0' ? name : "cgroup", &e) < 0
               ? -1
               : 0;
}

static void mount_v1(int dir, const char *hierarchies, const char *name)
{
    const char *opts[2 * CONTROLLERS_MAX + 1];
    char text[TEXT_MAX], path[32];

    memcpy(text, hierarchies, sizeof(text));
    str_fmt(path, sizeof(path), "cgroup/%s", name);
    if (find_v1(text, name, opts))
        mount_in(dir, path, "cgroup", opts);
}

static void read_hierarchies(char out[TEXT_MAX])
{
    autofd int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, TEXT_MAX - 1);

    out[n < 0 ? 0 : n] = '\0';
}

/* On a tmpfs, since nothing can be made in /sys/fs, and what the host has there is not for tenants. */
int cgroups_mount(struct boot *b, struct err *e)
{
    static const char *const opts[] = {"mode", "0555", "size", "4k", "nr_inodes", "16", NULL};
    char hierarchies[TEXT_MAX];
    struct mount_attr closed = {.attr_set = MOUNT_ATTR_RDONLY};
    autofd int fs = boot_fs("tmpfs", opts, CLOSED & ~(unsigned)MOUNT_ATTR_RDONLY, e), dir = -1;

    if (fs < 0 || boot_attach(fs, b->fds[BOOT_ROOT], "sys/fs", e) < 0)
        return -1;
    dir = openat(b->fds[BOOT_ROOT], "sys/fs", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || mkdirat(dir, "cgroup", 0555) < 0)
        return err_sys(e, "make /sys/fs/cgroup");
    read_hierarchies(hierarchies);
    for (int c = 0; c < LIMITS_CONTROLLERS; c++)
        if (b->msg.cgroups_v1 & 1u << c)
            mount_v1(dir, hierarchies, limits_controllers[c]);
    mount_in(dir, b->msg.cgroups_v1 != 0 ? "cgroup/unified" : "", "cgroup2", NULL);
    if (syscall(SYS_mount_setattr, fs, "", AT_EMPTY_PATH, &closed, sizeof(closed)) < 0)
        return err_sys(e, "make /sys/fs read-only");
    return 0;
}

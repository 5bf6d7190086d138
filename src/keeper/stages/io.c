/* io.c - see io.h. */
#include "keeper/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/cgroup.h"

#define WEIGHT_MAX 10000u
#define BFQ_WEIGHT_MAX 1000u

unsigned io_weight(uint64_t cpu_milli)
{
    uint64_t w = cpu_milli / 20;

    return w < 1 ? 1 : w > WEIGHT_MAX ? WEIGHT_MAX : (unsigned)w;
}

void io_line(char out[IO_LINE_MAX], unsigned major, unsigned minor, uint64_t rate)
{
    if (rate == 0)
        str_fmt(out, IO_LINE_MAX, "%u:%u rbps=max wbps=max", major, minor);
    else
        str_fmt(out, IO_LINE_MAX, "%u:%u rbps=%llu wbps=%llu", major, minor,
                (unsigned long long)rate, (unsigned long long)rate);
}

/* A partition has no limit of its own: the whole disk that it is on. 0: no device, as under a file
 * system of several. */
static dev_t whole_disk(dev_t dev)
{
    char path[80], text[32] = "";
    unsigned major_nr, minor_nr;
    autofd int fd = -1;

    str_fmt(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(dev), minor(dev));
    if (access(path, F_OK) < 0)
        return major(dev) == 0 ? 0 : dev;
    str_fmt(path, sizeof(path), "/sys/dev/block/%u:%u/../dev", major(dev), minor(dev));
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
        sscanf(text, "%u:%u", &major_nr, &minor_nr) != 2)
        return 0;
    return makedev(major_nr, minor_nr);
}

static int turn_on(struct keeper *k, struct err *e)
{
    autofd int root = openat(k->cgroups.v2_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (root < 0)
        return err_sys(e, "open the root of cgroup v2");
    if (cgroup_put(root, "cgroup.subtree_control", "+io", e) < 0)
        return -1;
    return cgroup_put(k->cgroups.v2_fd, "cgroup.subtree_control", "+io", e);
}

/* Limits are tried on our own group: whether the device takes any is known only then. */
int io_open(struct keeper *k, struct err *e)
{
    struct cgroups *g = &k->cgroups;
    char have[256], line[IO_LINE_MAX];
    struct err why;
    struct stat st;

    cgroup_get(g->v2_fd, "../cgroup.controllers", have, sizeof(have));
    g->io = cgroup_has_word(have, "io") && turn_on(k, &why) == 0;
    if (cgroup_has_word(have, "io") && !g->io)
        log_warn("disk I/O is not shared or limited: %s", why.msg);
    if (k->disk.device == 0 && fstat(k->disk.fd, &st) == 0)
        k->disk.device = st.st_dev;
    k->disk.device = whole_disk(k->disk.device);
    io_line(line, major(k->disk.device), minor(k->disk.device), 0);
    g->io_max = g->io && k->disk.device != 0 && cgroup_put(g->v2_fd, "io.max", line, &why) == 0;
    if (g->io && !g->io_max)
        log_warn("disk I/O is shared but cannot be limited: %s",
                 k->disk.device == 0 ? "the disks are not on one device" : why.msg);
    return io_check(k, k->config.disk_io, e) < 0 ? err_wrap(e, "the setting disk-io") : 0;
}

int io_check(const struct keeper *k, uint64_t disk_io, struct err *e)
{
    if (disk_io == 0 || k->cgroups.io_max)
        return 0;
    return err_set(e, ERR_UNSUPPORTED,
                   "disk_io: this host has no cgroup v2 io controller for the sandboxes' disks; "
                   "leave it out (`cove doctor` says what the host has)");
}

/* Weights are a share and no wall: where nothing heeds them there is no file. */
int io_limit(struct sandbox *sb, struct err *e)
{
    const struct cgroups *g = &sb->k->cgroups;
    dev_t dev = sb->k->disk.device;
    char path[96], text[IO_LINE_MAX];
    unsigned weight = io_weight(sb->rec.limits.cpu_milli);
    struct err ignored;

    if (!g->io)
        return io_check(sb->k, sb->rec.limits.disk_io, e);
    str_fmt(path, sizeof(path), "%s/io.weight", sb->rec.id);
    str_fmt(text, sizeof(text), "%u", weight);
    cgroup_put(g->v2_fd, path, text, &ignored);
    str_fmt(path, sizeof(path), "%s/io.bfq.weight", sb->rec.id);
    str_fmt(text, sizeof(text), "%u", weight > BFQ_WEIGHT_MAX ? BFQ_WEIGHT_MAX : weight);
    cgroup_put(g->v2_fd, path, text, &ignored);
    if (!g->io_max)
        return io_check(sb->k, sb->rec.limits.disk_io, e);
    str_fmt(path, sizeof(path), "%s/io.max", sb->rec.id);
    io_line(text, major(dev), minor(dev), sb->rec.limits.disk_io);
    return cgroup_put(g->v2_fd, path, text, e) < 0 ? err_wrap(e, "disk_io limit") : 0;
}

/* rootfs.c - the root filesystem: an overlay of the sandbox's disk over its template, with ids
 * mapped into its range.
 *
 * The layers are detached, mapped clones. The keeper makes the overlay while it acts as the first
 * id of the range, and passes it to init as a mount fd. So no path of the host is in /proc/mounts,
 * trusted xattrs (redirects, whiteouts) work as on any overlay, and a tenant cannot reach a layer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fsync.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/closer.h"
#include "keeper/compat.h"
#include "keeper/host.h"
#include "keeper/snapshot.h"
#include "keeper/stages.h"
#include "keeper/template.h"
#include "loop/job.h"

#define FD_PATH 32u       /* "/proc/self/fd/" and a number */
#define OPTIONS_MAX 4095u /* of mount(2): a page */

/* A clone of `path` below dfd, mapped into the sandbox's ids. */
static int mapped_clone(const struct sandbox *sb, int dfd, const char *path, uint64_t attrs,
                        struct err *e)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP | attrs,
                              .userns_fd = (uint64_t)sb->userns_fd};
    autofd int fd = sys_open_tree(dfd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

    if (fd < 0)
        return err_sys(e, "clone the mount of a layer");
    if (sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
        return err_sys(e, "map the ids of a layer");
    return take_fd(&fd);
}

/* Mapped clones of a template's layers, uppermost first. */
struct lowers {
    int fds[ROOT_LAYERS_MAX];
    int n;
};

/* ---- layers, by their fds or on kernels before 6.15 by paths ---- */

static int name_layers_by_fd(int fs, const struct lowers *low, int upper, int work)
{
    for (int i = 0; i < low->n; i++)
        if (sys_fsconfig(fs, FSCONFIG_SET_FD, "lowerdir+", NULL, low->fds[i]) < 0)
            return -1;
    if (upper < 0)
        return 0;
    return sys_fsconfig(fs, FSCONFIG_SET_FD, "upperdir", NULL, upper) < 0
               ? -1
               : sys_fsconfig(fs, FSCONFIG_SET_FD, "workdir", NULL, work);
}

/* Older kernels accept no layer from a detached mount: meanwhile the layers are mounted on each
 * other in our namespace. */
static int attach_layers(struct keeper *k, const struct lowers *low, int upper, struct err *e)
{
    for (int i = 0; i <= low->n; i++)
        if (sys_move_mount(i < low->n ? low->fds[i] : upper, "", k->dir_fd, "layers",
                           MOVE_MOUNT_F_EMPTY_PATH) < 0) {
            err_sys(e, "attach a layer");
            return i;
        }
    return low->n + 1;
}

static void detach_layers(struct keeper *k, int n)
{
    char path[FD_PATH + 8];

    str_fmt(path, sizeof(path), "/proc/self/fd/%d/layers", k->dir_fd);
    while (n-- > 0)
        if (umount2(path, MNT_DETACH) < 0)
            log_warn("detach a layer: %s", strerror(errno));
}

static const struct {
    const char *key, *value;
} options[] = {
    {"redirect_dir", "on"}, /* a template's directory is renamed, not copied (EXDEV) */
    {"metacopy", "on"},     /* chown and chmod of a template's file copy no data */
};

/* The overlay ignores fsync and sync; nothing else changes. The kernel leaves a mark in the work
 * directory, and refuses to mount again while it is there: see mark_relaxed(). */
#define RELAXED "volatile"

static int make_by_fd(const struct lowers *low, int upper, int work, bool relaxed, struct err *e)
{
    autofd int fs = sys_fsopen("overlay", FSOPEN_CLOEXEC);
    int mnt;

    if (fs < 0 || sys_fsconfig(fs, FSCONFIG_SET_STRING, "source", "cove", 0) < 0)
        return err_sys(e, "open overlayfs");
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (sys_fsconfig(fs, FSCONFIG_SET_STRING, options[i].key, options[i].value, 0) < 0)
            return err_sys(e, "set %s of the overlay", options[i].key);
    if (relaxed && sys_fsconfig(fs, FSCONFIG_SET_FLAG, RELAXED, NULL, 0) < 0)
        return err_sys(e, "set " RELAXED " of the overlay");
    if (name_layers_by_fd(fs, low, upper, work) < 0)
        return err_sys(e, "set the layers of the overlay");
    if (sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(e, "create the overlay");
    mnt = sys_fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
    return mnt < 0 ? err_sys(e, "mount the overlay") : mnt;
}

/* mount(2), since a value for fsconfig(2) has at most 255 bytes: over the attached layers, then
 * cloned away from there. */
static int make_by_path(struct keeper *k, const struct lowers *low, int upper, int work,
                        bool relaxed, struct err *e)
{
    autobuf struct buf text = BUF_INIT(OPTIONS_MAX);
    char at[FD_PATH + 8];
    int mnt;

    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        buf_addf(&text, "%s=%s,", options[i].key, options[i].value);
    buf_addf(&text, "%s", relaxed ? RELAXED "," : "");
    for (int i = 0; i < low->n; i++)
        buf_addf(&text, "%s/proc/self/fd/%d", i == 0 ? "lowerdir=" : ":", low->fds[i]);
    buf_addf(&text, ",upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d", upper, work);
    str_fmt(at, sizeof(at), "/proc/self/fd/%d/layers", k->dir_fd);
    if (text.failed)
        return err_set(e, ERR_LIMIT, "mount the overlay: too many layers for this kernel");
    if (mount("cove", at, "overlay", MS_NODEV, buf_cstr(&text)) < 0)
        return err_sys(e, "mount the overlay");
    mnt = sys_open_tree(k->dir_fd, "layers", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    if (mnt < 0)
        err_sys(e, "clone the overlay");
    detach_layers(k, 1);
    return mnt;
}

/* Makes the overlay of the layers and the sandbox's disk, acting as the first id of its range. */
static int make_overlay(struct sandbox *sb, const struct lowers *low, int disk, struct err *e)
{
    bool by_path = sb->k->overlay_by_path;
    int attached = by_path ? attach_layers(sb->k, low, disk, e) : 0;
    autofd int upper = openat(disk, "upper", O_PATH | O_DIRECTORY | O_CLOEXEC);
    autofd int work = openat(disk, "work", O_PATH | O_DIRECTORY | O_CLOEXEC);
    autofd int mnt = -1;
    struct statvfs st;

    if (by_path && attached <= low->n)
        ; /* `e` is set */
    else if (upper < 0 || work < 0)
        err_sys(e, "open the directories upper and work");
    else if (act_as(ids_base(sb), e) == 0) {
        mnt = by_path ? make_by_path(sb->k, low, upper, work, sb->rec.relaxed != 0, e)
                      : make_by_fd(low, upper, work, sb->rec.relaxed != 0, e);
        act_as_root();
    }
    detach_layers(sb->k, attached);
    if (mnt < 0)
        return -1;
    /* An overlay that cannot use its upper is read-only, without an error. */
    if (fstatvfs(mnt, &st) < 0 || (st.f_flag & ST_RDONLY) != 0)
        return err_set(e, ERR_INTERNAL, "mount the overlay: it is read-only");
    sb->root_fd = take_fd(&mnt);
    return 0;
}

/* Finds out by making an overlay. */
int rootfs_open(struct keeper *k, struct err *e)
{
    autofd int fs = sys_fsopen("overlay", FSOPEN_CLOEXEC);
    autofd int a = sys_open_tree(k->dir_fd, "run", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    autofd int b = sys_open_tree(k->dir_fd, "front", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (fs < 0 || a < 0 || b < 0)
        return err_sys(e, "open overlayfs");
    k->overlay_by_path = name_layers_by_fd(fs, &(struct lowers){{a, b}, 2}, -1, -1) < 0 ||
                         sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0;
    if (k->overlay_by_path && mkdirat(k->dir_fd, "layers", 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make DIR/layers");
    return 0;
}

static int map_lowers(struct sandbox *sb, struct lowers *ret, struct err *e)
{
    int layers[ROOT_LAYERS_MAX], n = template_layers(sb->k, sb->rec.layer, layers, e), r = 0;

    ret->n = 0;
    for (int i = 0; i < n; i++) {
        if (r == 0)
            r = ret->fds[i] = mapped_clone(sb, layers[i], "", MOUNT_ATTR_RDONLY, e);
        if (r >= 0) {
            ret->n++;
            r = 0;
        }
        close(layers[i]);
    }
    return n < 0 ? -1 : r;
}

/* ---- without fsync ---- */

int fsync_read(struct keeper *k, struct err *e)
{
    enum fsync f = fsync_of(k->config.fsync);

    if (f == FSYNC_COUNT)
        return err_set(e, ERR_INVALID, "fsync: '%.40s' is neither durable nor relaxed",
                       k->config.fsync);
    k->relaxed = f == FSYNC_RELAXED;
    return 0;
}

/* The kernel's mark makes the next mount of the disk fail, also after an orderly end: it means that
 * writes may be missing. Ours is in the record: it names the boot of the host in which that would
 * be so, is durable before a client is told of the sandbox, and is removed when everything has been
 * written out. So the kernel's can go. */
static int mark_relaxed(struct sandbox *sb, int disk, struct err *e)
{
    static const struct {
        const char *path;
        int flags;
    } marks[] = {{"work/work/incompat/volatile/dirty", 0},
                 {"work/work/incompat/volatile", AT_REMOVEDIR},
                 {"work/work/incompat", AT_REMOVEDIR}};
    bool had = sb->rec.unsynced[0] != '\0';

    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (unlinkat(disk, marks[i].path, marks[i].flags) < 0 && errno != ENOENT)
            return err_sys(e, "remove the mark of the last mount, %s", marks[i].path);
    if (!sb->rec.relaxed || had)
        return 0;
    str_fmt(sb->rec.unsynced, sizeof(sb->rec.unsynced), "%s", sb->k->host_boot);
    return record_save(sb, sandbox_keeps_disk(sb), e);
}

struct sync {
    struct job job;
    struct sandbox *sb;
    int result; /* 0, or an errno */
};

static void sync_run(struct job *w)
{
    struct sync *s = CONTAINER_OF(w, struct sync, job);

    s->result = syncfs(s->sb->k->disk.fd) < 0 ? errno : 0;
}

static void sync_done(struct job *w)
{
    struct sync *s = CONTAINER_OF(w, struct sync, job);
    struct sandbox *sb = s->sb;

    sb->sync = NULL;
    sb->rec.unsynced[0] = '\0';
    if (s->result != 0) { /* another attempt would report success without the lost pages */
        log_error("sandbox %s: write its disk out: %s", sb->rec.id, strerror(s->result));
        sb->rec.lost_ms = clock_real_ms();
    }
    free(s);
}

/* A stopped sandbox loses nothing, relaxed or not. 0: all is written out. */
static int write_out(struct sandbox *sb)
{
    struct sync *s;

    if (sb->sync != NULL)
        return 1;
    if (sb->rec.unsynced[0] == '\0' || !sandbox_keeps_disk(sb))
        return 0;
    s = calloc(1, sizeof(*s));
    if (s == NULL)
        return 1; /* the teardown tries again */
    *s = (struct sync){{.lane = JOB_DISK}, sb, 0};
    sb->sync = &s->job;
    job_start(sb->k->loop, &s->job, sync_run, sync_done);
    return 1;
}

/* The kernel would only warn about two sandboxes on one upper. Ids are unique and a record belongs
 * to one keeper (DIR is locked), so that cannot happen. */
int rootfs_up(struct sandbox *sb, struct err *e)
{
    autofd int disk = openat(sb->k->disk.fd, sb->rec.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct lowers low;
    int upper = -1, r = -1;

    if (disk < 0)
        return err_sys(e, "open the disk of the sandbox");
    sb->nmounts = 0;
    if (sb->state == STATE_PREPARING) {
        /* For cove-helper: a plain directory of the disk, since whiteouts cannot be made on an
         * overlay. */
        if (mkdirat(disk, "root", 0755) < 0 && errno != EEXIST)
            return err_sys(e, "make the root of an import");
        sb->root_fd = mapped_clone(sb, disk, "root", MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID, e);
        return sb->root_fd < 0 ? -1 : 0;
    }
    if (mark_relaxed(sb, disk, e) < 0)
        return -1;
    if (map_lowers(sb, &low, e) == 0)
        upper = mapped_clone(sb, disk, "", 0, e);
    if (upper >= 0)
        r = make_overlay(sb, &low, upper, e);
    while (low.n > 0)
        closer_close(low.fds[--low.n], NULL);
    closer_close(upper, NULL);
    return r;
}

/* root_fd stays open while the sandbox runs: with the last reference here, the death of init does
 * not wait for the sync that ends an overlay. */
int rootfs_down(struct sandbox *sb)
{
    drop_fd(&sb->userns_fd);
    if (sb->root_fd >= 0) {
        atomic_store(&sb->root_closed, 0);
        closer_close(take_fd(&sb->root_fd), &sb->root_closed);
        return 1;
    }
    return atomic_load(&sb->root_closed) ? write_out(sb) : 1;
}

/* ---- /dev: a small tree, read-only inside ---- */

static const struct {
    const char *name;
    unsigned major, minor;
} nodes[] = {{"null", 1, 3},   {"zero", 1, 5},    {"full", 1, 7},
             {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}};

static const struct {
    const char *name, *target;
} links[] = {{"fd", "/proc/self/fd"},       {"stdin", "/proc/self/fd/0"},
             {"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"},
             {"ptmx", "pts/ptmx"},          {"core", "/dev/null"}};

static const char *const dirs[] = {"pts", "shm", "cove", "mqueue", "empty"};

static int fill_dev(int fd, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
        if (mknodat(fd, nodes[i].name, S_IFCHR | 0666, makedev(nodes[i].major, nodes[i].minor)) <
                0 ||
            fchmodat(fd, nodes[i].name, 0666, 0) < 0)
            return err_sys(e, "make /dev/%s", nodes[i].name);
    for (size_t i = 0; i < ARRAY_LEN(links); i++)
        if (symlinkat(links[i].target, fd, links[i].name) < 0)
            return err_sys(e, "make /dev/%s", links[i].name);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(fd, dirs[i], 0755) < 0)
            return err_sys(e, "make /dev/%s", dirs[i]);
    return 0;
}

/* Where the kernel cannot map a tmpfs (before 6.3) the nodes belong to uid 65534; their modes let
 * every user open them. */
static int close_dev(const struct sandbox *sb, int fd, struct err *e)
{
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY,
                              .userns_fd = (uint64_t)sb->userns_fd};

    if (sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) == 0)
        return 0;
    attr.attr_set = MOUNT_ATTR_RDONLY;
    if (errno != EINVAL || sys_mount_setattr(fd, "", AT_EMPTY_PATH, &attr) < 0)
        return err_sys(e, "make /dev read-only");
    return 0;
}

/* The nodes are on a tmpfs of the host: nodes on a filesystem that was mounted inside a user
 * namespace do not open. One tmpfs per sandbox, since inotify watches and locks are per inode. */
int devfs_make(const struct sandbox *sb, struct err *e)
{
    autofd int fs = sys_fsopen("tmpfs", FSOPEN_CLOEXEC), mnt = -1;

    if (fs < 0 || sys_fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
        sys_fsconfig(fs, FSCONFIG_SET_STRING, "size", "64k", 0) < 0 ||
        sys_fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
        return err_sys(e, "open tmpfs for /dev");
    mnt = sys_fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
    if (mnt < 0)
        return err_sys(e, "mount tmpfs for /dev");
    return fill_dev(mnt, e) < 0 || close_dev(sb, mnt, e) < 0 ? -1 : take_fd(&mnt);
}

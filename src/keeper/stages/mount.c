/* mount.c - see mount.h.
 *
 * Only a thread inside a mount namespace can attach a mount there, and no lasting thread of the
 * keeper may be visible inside: a thread is made that shares only memory, enters, and ends. Its
 * root is then the sandbox's, so that a client's path resolves inside the sandbox. The path must
 * lead to the root filesystem: nothing is mounted over /proc, /sys, /dev or the masks of parts of
 * them. */
#include "keeper/mount.h"

#include <linux/capability.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/str.h"
#include "keeper/compat.h"
#include "keeper/file.h"
#include "keeper/stages.h"

#define VOLUMES ".volumes" /* ignored by disk_sweep() */

struct place {
    char name[KEEPER_NAME_MAX + 1];
    const char *host; /* points into the setting's copy; NULL: a volume */
    int fd;
};

struct mounts {
    struct place places[MOUNTS_MAX];
    size_t n;
    char text[CONFIG_TEXT_MAX];
    int unmapped; /* a user namespace; see open_unmapped() */
};

/* ---- the setting ---- */

static bool name_is_valid(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

    return n > 0 && n <= KEEPER_NAME_MAX && s[n] == '\0';
}

static struct place *find_place(struct mounts *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->places[i].name, name) == 0)
            return &m->places[i];
    return NULL;
}

int mount_read(struct keeper *k, struct err *e)
{
    struct mounts *m = calloc(1, sizeof(*m));
    char *rest, *word;

    if (m == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    k->mounts = m;
    m->unmapped = -1;
    str_fmt(m->text, sizeof(m->text), "%s", k->config.mounts);
    for (rest = m->text; *m->text != '\0' && (word = strsep(&rest, ",")) != NULL;) {
        const char *name = strsep(&word, "=");

        if (!name_is_valid(name) || (word != NULL && *word != '/'))
            return err_set(e, ERR_INVALID, "mounts: '%.60s' is neither NAME nor NAME=/DIRECTORY",
                           name);
        if (find_place(m, name) != NULL)
            return err_set(e, ERR_INVALID, "mounts: %s is named twice", name);
        if (m->n == MOUNTS_MAX)
            return err_set(e, ERR_INVALID, "mounts: more than %u are named, the maximum",
                           MOUNTS_MAX);
        str_fmt(m->places[m->n].name, sizeof(m->places[m->n].name), "%s", name);
        m->places[m->n].host = word;
        m->places[m->n++].fd = -1;
    }
    return m->n > 0 ? 0 : privileges_drop_one(CAP_SYS_CHROOT, e);
}

static int open_volume(struct keeper *k, const char *name, struct err *e)
{
    autofd int dir = dir_open(k->disk.fd, VOLUMES, 0700, e);
    int fd;

    if (dir < 0 || k->disk.way->volume(dir, name, k->config.disk, e) < 0)
        return -1;
    fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "open volume %s", name) : fd;
}

#define NO_ID 4294967293u /* that practically no file has */

/* A namespace that maps the owner of no file. The kernel refuses all writes through such a mapping,
 * which is more than read-only: sockets and pipes of the host take no bytes either. */
static int open_unmapped(struct err *e)
{
    struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    long pid = sys_clone3(&args);
    char path[64];
    int fd = -1;

    if (pid == 0) {
        syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            syscall(SYS_pause);
    }
    if (pid < 0)
        return err_sys(e, "create a user namespace for directories of the host");
    if (birth_map((pid_t)pid, "uid_map", NO_ID, 65534, 1, e) == 0 &&
        birth_map((pid_t)pid, "gid_map", NO_ID, 65534, 1, e) == 0) {
        str_fmt(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            err_sys(e, "open %s", path);
    }
    kill((pid_t)pid, SIGKILL);
    waitpid((pid_t)pid, NULL, 0);
    return fd;
}

static int clone_place(const struct place *p, int userns, bool read_only, struct err *e);

/* Fails now, not at the first request, if the filesystem cannot be mapped. */
static int open_host(struct mounts *m, struct place *p, struct err *e)
{
    autofd int tree = -1;

    p->fd = open(p->host, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (p->fd < 0)
        return err_set(e, ERR_INVALID, "mounts: %s: %s: %s", p->name, p->host, strerror(errno));
    if (m->unmapped < 0 && (m->unmapped = open_unmapped(e)) < 0)
        return -1;
    tree = clone_place(p, m->unmapped, true, e);
    return tree < 0 ? err_wrap(e, "mounts: %s: its filesystem cannot be mapped", p->host) : 0;
}

int mount_open(struct keeper *k, struct err *e)
{
    for (size_t i = 0; i < k->mounts->n; i++) {
        struct place *p = &k->mounts->places[i];

        if (p->host == NULL ? (p->fd = open_volume(k, p->name, e)) < 0
                            : open_host(k->mounts, p, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- in the namespace of a sandbox ---- */

struct entering {
    struct keeper *k;
    const char *path;
    int ns, tree; /* tree -1: unmount */
    int r;
    struct err e;
};

static int open_inside(const char *path, struct err *e)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

    if (fd >= 0)
        return fd;
    if (errno == ENOENT)
        return err_set(e, ERR_NOT_FOUND, "mount: there is no directory %.200s", path);
    if (errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG || errno == EXDEV)
        return err_set(e, ERR_INVALID, "mount: %.200s: %s", path, strerror(errno));
    return err_sys(e, "open the mount point");
}

static int stat_mount_point(int fd, struct statx *st, struct err *e)
{
    struct statx root;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID | STATX_INO, st) < 0 ||
        statx(AT_FDCWD, "/", 0, STATX_MNT_ID | STATX_INO, &root) < 0)
        return err_sys(e, "stat the mount point");
    return st->stx_mnt_id == root.stx_mnt_id && st->stx_ino != root.stx_ino;
}

static int attach(const struct entering *j, struct err *e)
{
    autofd int at = open_inside(j->path, e);
    struct statx st;
    int own = at < 0 ? -1 : stat_mount_point(at, &st, e);

    if (own < 0)
        return -1;
    if (own == 0)
        return err_set(e, ERR_CONFLICT,
                       "mount: %.200s is not a directory of the sandbox's own disk", j->path);
    if (sys_move_mount(j->tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        return err_sys(e, "attach the mount");
    return 0;
}

/* A mount of ours has the inode of a directory of the setting; all other mounts inside are walls.
 */
static bool is_ours(const struct keeper *k, const struct statx *st)
{
    struct statx source;

    if (!(st->stx_attributes & STATX_ATTR_MOUNT_ROOT))
        return false;
    for (size_t i = 0; i < k->mounts->n; i++)
        if (statx(k->mounts->places[i].fd, "", AT_EMPTY_PATH, STATX_INO, &source) == 0 &&
            source.stx_ino == st->stx_ino && source.stx_dev_major == st->stx_dev_major &&
            source.stx_dev_minor == st->stx_dev_minor)
            return true;
    return false;
}

static int detach(const struct entering *j, struct err *e)
{
    autofd int at = open_inside(j->path, e);
    struct statx st;
    int own = at < 0 ? -1 : stat_mount_point(at, &st, e);

    if (own < 0)
        return -1;
    if (own > 0 || !is_ours(j->k, &st))
        return err_set(e, ERR_NOT_FOUND, "nothing is mounted at %.200s", j->path);
    /* by the cwd and not by its path, which may lead elsewhere by now */
    if (fchdir(at) < 0 || umount2(".", MNT_DETACH) < 0)
        return err_sys(e, "unmount");
    return 0;
}

static void *enter(void *arg)
{
    struct entering *j = arg;

    if (unshare(CLONE_FS) < 0 || setns(j->ns, CLONE_NEWNS) < 0)
        j->r = err_sys(&j->e, "enter the mount namespace of the sandbox");
    else
        j->r = j->tree >= 0 ? attach(j, &j->e) : detach(j, &j->e);
    return NULL;
}

static int run_inside(struct entering *j, struct err *e)
{
    sigset_t all, old;
    pthread_t t;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the loop's */
    r = pthread_create(&t, NULL, enter, j);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r != 0)
        return err_set(e, ERR_INTERNAL, "start a thread: %s", strerror(r));
    pthread_join(t, NULL);
    if (j->r < 0)
        *e = j->e;
    return j->r;
}

/* ---- requests ---- */

static struct sandbox *find_running(struct keeper *k, const char *id, struct err *e)
{
    struct map_node *n = map_get(&k->sandboxes, id);
    struct sandbox *sb = n == NULL ? NULL : CONTAINER_OF(n, struct sandbox, by_id);

    if (sb != NULL && sb->rec.phase == PHASE_GIVEN && sb->pid > 0)
        return sb;
    err_set(e, ERR_NOT_FOUND, "sandbox %s is not running", id);
    return NULL;
}

static int open_ns(const struct sandbox *sb, const char *which, struct err *e)
{
    char path[64];
    int fd;

    str_fmt(path, sizeof(path), "/proc/%d/ns/%s", (int)sb->pid, which);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "open a namespace of the sandbox") : fd;
}

/* A detached clone. Files of a volume have ids from 0 on, like those of a disk; owners of a host
 * directory are not mapped. */
static int clone_place(const struct place *p, int userns, bool read_only, struct err *e)
{
    autofd int tree = sys_open_tree(p->fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | MOUNT_ATTR_IDMAP,
                              .userns_fd = (uint64_t)userns};

    if (tree < 0)
        return err_sys(e, "clone %s", p->name);
    if (read_only || p->host != NULL)
        attr.attr_set |= MOUNT_ATTR_RDONLY;
    if (sys_mount_setattr(tree, "", AT_EMPTY_PATH, &attr) < 0)
        return err_sys(e, "set up %s", p->name);
    return take_fd(&tree);
}

static int clone_for(const struct sandbox *sb, const struct place *p, bool read_only, struct err *e)
{
    autofd int userns = p->host == NULL ? open_ns(sb, "user", e) : -1;

    if (p->host != NULL)
        return clone_place(p, sb->k->mounts->unmapped, true, e);
    return userns < 0 ? -1 : clone_place(p, userns, read_only, e);
}

int mount_up(struct keeper *k, const struct keeper_mount *m, struct err *e)
{
    struct sandbox *sb = find_running(k, m->id, e);
    struct place *p = find_place(k->mounts, m->name);
    autofd int ns = -1, tree = -1;

    if (sb == NULL)
        return -1;
    if (p == NULL)
        return err_set(e, ERR_UNSUPPORTED,
                       "mount: '%.64s' is not offered; the operator names the mounts there are "
                       "(setting `mounts`)",
                       m->name);
    if (sb->nmounts >= MOUNTS_EACH_MAX)
        return err_set(e, ERR_LIMIT, "mount: the sandbox has %d, the maximum", MOUNTS_EACH_MAX);
    ns = open_ns(sb, "mnt", e);
    tree = ns < 0 ? -1 : clone_for(sb, p, m->read_only, e);
    if (tree < 0 ||
        run_inside(&(struct entering){.k = k, .path = m->path, .ns = ns, .tree = tree}, e) < 0)
        return -1;
    sb->nmounts++;
    return 0;
}

int mount_down(struct keeper *k, const struct keeper_unmount *m, struct err *e)
{
    struct sandbox *sb = find_running(k, m->id, e);
    autofd int ns = sb == NULL ? -1 : open_ns(sb, "mnt", e);

    if (k->mounts->n == 0)
        return err_set(e, ERR_NOT_FOUND, "nothing is mounted at %.200s", m->path);
    if (ns < 0 ||
        run_inside(&(struct entering){.k = k, .path = m->path, .ns = ns, .tree = -1}, e) < 0)
        return -1;
    if (sb->nmounts > 0)
        sb->nmounts--;
    return 0;
}

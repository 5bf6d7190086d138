/* dirs.c - the state directory: who owns what in it, and who holds it.
 *
 *   DIR            root  0711   so that cove can pass through, and nobody can look
 *   DIR/lock       root         held by the daemon that serves DIR; holds its pid
 *   DIR/tag        root         the name by which the kernel's things show our ownership
 *   DIR/api-key    root  0600   the first key
 *   DIR/front      cove  0700   SQLite
 *   DIR/run        root  0711   one socket per sandbox, cove's
 *   DIR/records    root  0600   what exists (record.c)
 *   DIR/disk.img   root  0600   the disks; mounted at DIR/disk (disk_btrfs.c)
 *   DIR/templates  root  0700   what root filesystems start as: `base`
 *   DIR/images     root  0700   the other templates; their layers are in DIR/disk (image.h)
 *   DIR/layers     root  0700   on older kernels, those of an overlay that is being made */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/str.h"
#include "keeper/host.h"

#define HOLDER_TEXT 32
#define LOCK_WAIT_MS 2000 /* for what a killed keeper was just starting */
#define LOCK_STEP_MS 10

static int open_dir(int at, const char *name, mode_t mode, uid_t uid, gid_t gid, struct err *e)
{
    autofd int fd = -1;

    if (mkdirat(at, name, mode) < 0 && errno != EEXIST)
        return err_sys(e, "make %s", name);
    fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
        return err_sys(e, "open %s", name);
    return take_fd(&fd);
}

/* False only if something is in it that is not ours. An empty filesystem may have its
 * lost+found, and who sets up many hosts may have put a key there. */
static bool is_free(DIR *d)
{
    static const char *const nothing[] = {".", "..", "lost+found", "api-key"};

    for (struct dirent *de; (de = readdir(d)) != NULL;) {
        size_t i = 0;

        while (i < ARRAY_LEN(nothing) && strcmp(de->d_name, nothing[i]) != 0)
            i++;
        if (i == ARRAY_LEN(nothing))
            return false;
    }
    return true;
}

/* The directory will be root's and nobody else's to look into: by a slip of the hand that
 * would be /tmp, or somebody's home. So it has our lock, or it is empty, or there is none. */
static int check_state(const char *path, struct err *e)
{
    struct stat st;
    DIR *d;
    bool ours;

    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return err_set(e, ERR_INVALID, "%s is a symbolic link; name what it leads to", path);
    d = opendir(path);
    if (d == NULL)
        return 0; /* making it says why not */
    ours = fstatat(dirfd(d), "lock", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
    ours = ours || is_free(d);
    closedir(d);
    return ours
               ? 0
               : err_set(e, ERR_INVALID, "%s is not empty, and no state directory of Cove's", path);
}

static int make_parents(const char *path, struct err *e)
{
    char part[512];

    str_fmt(part, sizeof(part), "%s", path);
    for (char *p = part + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return err_sys(e, "make %s", part);
        *p = '/';
    }
    return 0;
}

static int find_cove(struct keeper *k, struct err *e)
{
    struct passwd *pw = getpwnam("cove");

    if (pw == NULL)
        return err_set(e, ERR_UNSUPPORTED,
                       "there is no user `cove` to run the front as; make one with "
                       "`useradd --system --no-create-home --shell /usr/sbin/nologin cove`");
    if (pw->pw_uid == 0)
        return err_set(e, ERR_UNSUPPORTED, "user `cove` is root: the front must not be");
    k->cove_uid = pw->pw_uid;
    k->cove_gid = pw->pw_gid;
    return 0;
}

/* The pid in the lock file, as text without its newline. */
static void read_holder(struct keeper *k, char text[HOLDER_TEXT])
{
    memset(text, 0, HOLDER_TEXT);
    if (pread(k->lock_fd, text, HOLDER_TEXT - 1, 0) <= 0)
        str_fmt(text, HOLDER_TEXT, "?");
    text[strcspn(text, "\n")] = '\0';
}

/* A keeper that was killed may have been about to start something: for a moment
 * its child still holds a copy of everything, this lock too. */
static int lock_patiently(struct keeper *k, char holder[HOLDER_TEXT])
{
    uint64_t pid;

    for (int waited = 0;; waited += LOCK_STEP_MS) {
        if (flock(k->lock_fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        read_holder(k, holder);
        if (waited >= LOCK_WAIT_MS || str_u64(holder, 1u << 30, &pid) < 0 ||
            kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            return -1;
        poll(NULL, 0, LOCK_STEP_MS);
    }
}

static int lock(struct keeper *k, struct err *e)
{
    char text[HOLDER_TEXT] = "";

    k->lock_fd = openat(k->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (k->lock_fd < 0)
        return err_sys(e, "open %s/lock", k->dir);
    if (lock_patiently(k, text) < 0)
        return err_set(e, ERR_CONFLICT, "another cove (pid %s) serves %s already", text, k->dir);
    str_fmt(text, sizeof(text), "%d\n", (int)getpid());
    if (ftruncate(k->lock_fd, 0) < 0 || pwrite(k->lock_fd, text, strlen(text), 0) < 0)
        return err_sys(e, "write %s/lock", k->dir);
    return 0;
}

/* Once chosen it stays: a later daemon finds its cgroups by it. With another one it would
 * take all that run for ended, and boot them a second time on the same disks. */
static int read_tag(struct keeper *k, struct err *e)
{
    autofd int fd = openat(k->dir_fd, "tag", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    ssize_t n = fd < 0 ? -1 : pread(fd, k->tag, TAG_LEN, 0);

    if (n == (ssize_t)TAG_LEN && id_is_valid(k->tag, TAG_LEN))
        return 0;
    if (n < 0)
        return err_sys(e, "read %s/tag", k->dir);
    if (n > 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "%s/tag is damaged: it holds the %u characters behind `cove-` in the name "
                       "of the cgroup that its sandboxes run in",
                       k->dir, TAG_LEN);
    id_random(k->tag, TAG_LEN);
    if (pwrite(fd, k->tag, TAG_LEN, 0) != (ssize_t)TAG_LEN || fsync(fd) < 0)
        return err_sys(e, "write %s/tag", k->dir);
    return 0;
}

int host_boot_read(struct keeper *k, struct err *e)
{
    autofd int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, k->host_boot, sizeof(k->host_boot) - 1);

    if (n <= 0)
        return err_sys(e, "read the host's boot id");
    k->host_boot[n] = '\0';
    k->host_boot[strcspn(k->host_boot, "\n")] = '\0';
    return 0;
}

int dirs_open(struct keeper *k, struct err *e)
{
    char real[4096];

    if (find_cove(k, e) < 0)
        return -1;
    if (k->config.state[0] != '/')
        return err_set(e, ERR_INVALID, "--state wants an absolute path, not '%s'", k->config.state);
    if (strlen(k->config.state) > 400)
        return err_set(e, ERR_INVALID, "--state is longer than 400 bytes");
    if (make_parents(k->config.state, e) < 0 || check_state(k->config.state, e) < 0)
        return -1;
    k->dir_fd = open_dir(AT_FDCWD, k->config.state, 0711, 0, 0, e);
    if (k->dir_fd < 0)
        return -1;
    if (realpath(k->config.state, real) == NULL || strlen(real) > 400)
        return err_set(e, ERR_INVALID, "cannot resolve --state %s", k->config.state);
    str_fmt(k->dir, sizeof(k->dir), "%s", real);
    if (lock(k, e) < 0 || read_tag(k, e) < 0)
        return -1;
    k->run_fd = open_dir(k->dir_fd, "run", 0711, 0, 0, e);
    k->front_fd =
        k->run_fd < 0 ? -1 : open_dir(k->dir_fd, "front", 0700, k->cove_uid, k->cove_gid, e);
    return k->front_fd < 0 ? -1 : records_open(k, e);
}

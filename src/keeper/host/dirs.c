/* dirs.c - the state directory: owners and modes of its files, and its lock.
 *
 *   DIR            root  0711   user cove may pass through; others cannot list it
 *   DIR/lock       root         locked by the daemon that serves DIR; contains its pid
 *   DIR/tag        root         part of the names of our cgroups, interfaces and tables; twins (file.h)
 *   DIR/api-key    root  0600   the first key
 *   DIR/front      cove  0700   SQLite
 *   DIR/run        root  0711   one socket per sandbox, cove's
 *   DIR/sandboxes  root  0600   the records of sandboxes (record.c)
 *   DIR/records    root  0700   a directory, so that release 0.1.0 does not start here (record_v1.c)
 *   DIR/damaged    root  0700   damaged things and the reasons (quarantine.h)
 *   DIR/disk.img   root  0600   the disks; mounted at DIR/disk (disk/btrfs.c)
 *   DIR/templates  root  0700   the template `base`
 *   DIR/images     root  0700   the other templates; their layers are in DIR/disk (image.h)
 *   DIR/layers     root  0700   on older kernels, mount point of an overlay that is being made */
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

#include "base/log.h"
#include "base/str.h"
#include "keeper/file.h"
#include "keeper/host.h"
#include "keeper/life/record.h"
#include "keeper/quarantine.h"

#define HOLDER_TEXT 32
#define LOCK_WAIT_MS 10000 /* for a killed daemon to end */
#define LOCK_GRACE_MS 200  /* for a running one: it may be killed at this moment */
#define LOCK_STEP_MS 10
#define TAG_COPY ".copy-tag" /* file.h: its twin */
#define PF_EXITING 0x4u      /* of /proc/PID/stat; in no header for user space */

static int open_dir(int at, const char *name, mode_t mode, uid_t uid, gid_t gid, struct err *e)
{
    autofd int fd = dir_open(at, name, mode, e);

    if (fd < 0)
        return -1;
    if (fchown(fd, uid, gid) < 0 || fchmod(fd, mode) < 0)
        return err_sys(e, "chown %s", name);
    return take_fd(&fd);
}

/* The directory gets mode 0711 and belongs to root: by a typing error that could be /tmp or a home.
 * So it must have our lock, be empty, or not exist. An empty filesystem may have lost+found, and a
 * provisioning tool may have put a key there. */
static int check_state(const char *path, struct err *e)
{
    static const char *const nothing[] = {".", "..", "lost+found", "api-key"};
    bool ours, tagged, empty = true;
    struct stat st;
    DIR *d;

    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return err_set(e, ERR_INVALID, "%s is a symbolic link; use its target", path);
    d = opendir(path);
    if (d == NULL)
        return 0; /* making it will report the error */
    ours = fstatat(dirfd(d), "lock", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
    tagged = faccessat(dirfd(d), "tag", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    for (struct dirent *de; empty && (de = readdir(d)) != NULL;) {
        size_t i = 0;

        while (i < ARRAY_LEN(nothing) && strcmp(de->d_name, nothing[i]) != 0)
            i++;
        empty = i < ARRAY_LEN(nothing);
    }
    closedir(d);
    if (ours || empty)
        return 0;
    /* A running daemon may still have the removed lock: a new lock file would admit a second one. */
    if (tagged)
        return err_set(e, ERR_INVALID,
                       "%s/lock is missing; stop every `cove serve` of this directory, then "
                       "`touch %s/lock`",
                       path, path);
    return err_set(e, ERR_INVALID, "%s is not empty and not a state directory of Cove", path);
}

static ssize_t read_proc(pid_t pid, const char *name, char *out, size_t room)
{
    char path[64];
    autofd int fd = -1;
    ssize_t n;

    str_fmt(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, out, room - 1);
    out[n < 0 ? 0 : n] = '\0';
    return n;
}

/* A killed process keeps its files until its last thread has ended, which takes long while it waits
 * for a disk. kill(pid, 0) still succeeds then, and also for a zombie. */
enum holder dirs_holder(pid_t pid)
{
    char text[4096], *end, state;
    unsigned long long pending = 0;
    unsigned flags;

    if (read_proc(pid, "stat", text, sizeof(text)) <= 0)
        return HOLDER_GONE;
    end = strrchr(text, ')');
    if (end == NULL || strstr(text, "(cove") == NULL)
        return HOLDER_GONE; /* another program has the pid now */
    if (sscanf(end, ") %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
        return HOLDER_GONE;
    if (state == 'Z' || state == 'X' || (flags & PF_EXITING) != 0)
        return HOLDER_DYING;
    if (read_proc(pid, "status", text, sizeof(text)) <= 0)
        return HOLDER_GONE;
    for (char *line = text; line != NULL; line = strchr(line, '\n')) {
        unsigned long long set;

        line += *line == '\n';
        if (sscanf(line, "SigPnd: %llx", &set) == 1 || sscanf(line, "ShdPnd: %llx", &set) == 1)
            pending |= set;
    }
    return (pending & 1ull << (SIGKILL - 1)) != 0 ? HOLDER_DYING : HOLDER_ALIVE;
}

/* Refuses if a living daemon has the lock. Waits for a daemon that was killed, and for a child that
 * it was just starting and that shares its fds for a moment. */
static int lock(struct keeper *k, struct err *e)
{
    char text[HOLDER_TEXT];

    k->lock_fd = openat(k->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (k->lock_fd < 0)
        return err_sys(e, "open %s/lock", k->dir);
    for (int waited = 0; flock(k->lock_fd, LOCK_EX | LOCK_NB) < 0; waited += LOCK_STEP_MS) {
        enum holder is = HOLDER_ALIVE;
        uint64_t pid;

        memset(text, 0, sizeof(text));
        if (pread(k->lock_fd, text, sizeof(text) - 1, 0) <= 0)
            str_fmt(text, sizeof(text), "?");
        text[strcspn(text, "\n")] = '\0';
        if (str_u64(text, 1u << 30, &pid) == 0)
            is = dirs_holder((pid_t)pid);
        if (is == HOLDER_ALIVE && waited >= LOCK_GRACE_MS)
            return err_set(e, ERR_CONFLICT, "another cove (pid %s) already serves %s", text,
                           k->dir);
        if (waited >= LOCK_WAIT_MS)
            return err_set(e, ERR_CONFLICT,
                           "the cove (pid %s) that served %s was killed and has not ended yet; "
                           "try again",
                           text, k->dir);
        poll(NULL, 0, LOCK_STEP_MS);
    }
    str_fmt(text, sizeof(text), "%d\n", (int)getpid());
    if (ftruncate(k->lock_fd, 0) < 0 || pwrite(k->lock_fd, text, strlen(text), 0) < 0)
        return err_sys(e, "write %s/lock", k->dir);
    return 0;
}

static int get_tag(struct keeper *k, const char *name, char out[TAG_LEN + 1], struct err *e)
{
    ssize_t n = file_get(k->dir_fd, name, out, TAG_LEN, e);

    out[n < 0 ? 0 : n] = '\0';
    return n < 0 ? -1 : n == (ssize_t)TAG_LEN && id_is_valid(out, TAG_LEN);
}

/* The tag never changes: a later daemon finds its cgroups by it. With another tag it would take all
 * running sandboxes for dead and boot them again on the same disks. Only the copy proves that a tag
 * is the original one. */
static int read_tag(struct keeper *k, struct err *e)
{
    static const char *const stores[] = {RECORD_STORE, "records"};
    char copy[TAG_LEN + 1];
    struct stat st;
    int has = get_tag(k, "tag", k->tag, e), has_copy = has < 0 ? -1 : get_tag(k, TAG_COPY, copy, e);

    if (has_copy < 0)
        return -1;
    if (has > 0 && has_copy > 0) {
        if (strcmp(k->tag, copy) == 0)
            return 0;
        return err_set(e, ERR_UNSUPPORTED,
                       "%s/tag says %s and its copy, " TAG_COPY ", says %s: one is damaged; remove "
                       "the one that no cgroup of this host is named after (cove-TAG)",
                       k->dir, k->tag, copy);
    }
    if (has_copy > 0) {
        log_warn("%s/tag was damaged or missing; restored from its copy", k->dir);
        memcpy(k->tag, copy, sizeof(copy));
    } else if (has == 0) {
        for (size_t i = 0; i < ARRAY_LEN(stores); i++)
            if (fstatat(k->dir_fd, stores[i], &st, AT_SYMLINK_NOFOLLOW) == 0)
                return err_set(
                    e, ERR_UNSUPPORTED,
                    "%s/tag is damaged or missing, and so is its copy, " TAG_COPY
                    ": write to it the %u characters after `cove-` in the name of the "
                    "cgroup that its sandboxes run in; if none runs, any %u of a-z and 0-9",
                    k->dir, TAG_LEN, TAG_LEN);
        id_random(k->tag, TAG_LEN);
    }
    return file_put_twins(k->dir_fd, "tag", k->tag, TAG_LEN, e);
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
    struct passwd *pw = getpwnam("cove");
    char real[4096], part[512];

    if (pw == NULL)
        return err_set(e, ERR_UNSUPPORTED,
                       "user `cove` does not exist; create it with "
                       "`useradd --system --no-create-home --shell /usr/sbin/nologin cove`");
    if (pw->pw_uid == 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "user `cove` has the uid of root; the front must not run as root");
    k->cove_uid = pw->pw_uid;
    k->cove_gid = pw->pw_gid;
    if (k->config.state[0] != '/')
        return err_set(e, ERR_INVALID, "--state: '%s' is not an absolute path", k->config.state);
    if (strlen(k->config.state) > 400)
        return err_set(e, ERR_INVALID, "--state: the path is longer than 400 bytes");
    str_fmt(part, sizeof(part), "%s", k->config.state);
    for (char *p = part + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return err_sys(e, "make %s", part);
        *p = '/';
    }
    if (check_state(k->config.state, e) < 0)
        return -1;
    k->dir_fd = open_dir(AT_FDCWD, k->config.state, 0711, 0, 0, e);
    if (k->dir_fd < 0)
        return -1;
    if (realpath(k->config.state, real) == NULL || strlen(real) > 400)
        return err_set(e, ERR_INVALID, "--state: cannot resolve %s", k->config.state);
    str_fmt(k->dir, sizeof(k->dir), "%s", real);
    if (lock(k, e) < 0 || read_tag(k, e) < 0)
        return -1;
    k->run_fd = open_dir(k->dir_fd, "run", 0711, 0, 0, e);
    k->front_fd =
        k->run_fd < 0 ? -1 : open_dir(k->dir_fd, "front", 0700, k->cove_uid, k->cove_gid, e);
    k->damaged_fd = k->front_fd < 0 ? -1 : open_dir(k->dir_fd, "damaged", 0700, 0, 0, e);
    if (k->damaged_fd < 0)
        return -1;
    quarantine_open(k);
    return records_open(k, e);
}

/* template_base.c - the default template: a tree of hard links to the host's own
 * operating system files.
 *
 * Chosen over two overlays with the host's /usr as a live layer: that makes a
 * rename between / and /usr fail (EXDEV) and lets an upgrade of the host change
 * running sandboxes. Hard links keep the files of the day the tree was made (dpkg
 * replaces files by rename), cost no space, and can be filtered one by one. Their
 * price: a write in place would change the host's file. No tenant can make one: the
 * tree is root's, 0700, and sandboxes see it only as the read-only lower layer of
 * an overlay. On another filesystem than /usr the files are copied instead.
 *
 * A file of /usr is in it only if a package owns it and others may read it; /etc
 * is a list; nothing of the host's state, homes, keys or credentials. */
#include "keeper/template_base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/own.h"
#include "base/str.h"
#include "keeper/images/template_system.h"
#include "wire/boot.h"

#define DPKG_INFO "/var/lib/dpkg/info"
#define PROGRESS_EVERY 5000
#define STAFF 50 /* the group that may write below /usr/local, as in Debian; `user` is in it */

struct build {
    int root;
    const struct system_settings *settings;
    struct base_counts n;
    uint64_t seen, total;
    void (*progress)(void *arg, const char *text, uint64_t done, uint64_t total);
    void *arg;
    char last_dir[4096]; /* made already; most paths come sorted */
};

/* clang-format off */
static const struct {
    const char *path;
    mode_t mode;
    unsigned id;
} dirs[] = {
    {"boot", 0755, 0},        {"dev", 0755, 0},          {"etc", 0755, 0},
    {"home", 0755, 0},        {"home/user", 0750, 1000}, {"media", 0755, 0},
    {"mnt", 0755, 0},         {"opt", 0755, 0},          {"proc", 0555, 0},
    {"root", 0700, 0},        {"run", 0755, 0},          {"run/lock", 01777, 0},
    {"srv", 0755, 0},         {"sys", 0555, 0},          {"tmp", 01777, 0},
    {"usr", 0755, 0},         {"usr/local", 0755, 0},    {"usr/local/bin", 0755, 0},
    {"usr/local/etc", 0755, 0},   {"usr/local/include", 0755, 0}, {"usr/local/lib", 0755, 0},
    {"usr/local/sbin", 0755, 0},  {"usr/local/share", 0755, 0},   {"usr/local/src", 0755, 0},
    {"var", 0755, 0},         {"var/cache", 0755, 0},    {"var/cache/apt", 0755, 0},
    {"var/cache/apt/archives", 0755, 0}, {"var/cache/apt/archives/partial", 0700, 0},
    {"var/cache/debconf", 0755, 0}, {"var/cache/ldconfig", 0700, 0},
    {"var/lib", 0755, 0},     {"var/lib/apt", 0755, 0},  {"var/lib/apt/lists", 0755, 0},
    {"var/lib/apt/lists/partial", 0700, 0}, {"var/lib/apt/periodic", 0755, 0}, {"var/lib/dpkg", 0755, 0},
    {"var/lib/misc", 0755, 0}, {"var/lib/pam", 0755, 0}, {"var/lib/sudo", 0711, 0},
    {"var/local", 02775, 0},  {"var/log", 0755, 0},      {"var/log/apt", 0755, 0},
    {"var/mail", 02775, 0},   {"var/opt", 0755, 0},      {"var/spool", 0755, 0},
    {"var/tmp", 01777, 0},    {"workspace", 0755, 1000},
    {"etc/apt", 0755, 0},     {"etc/apt/apt.conf.d", 0755, 0}, {"etc/apt/preferences.d", 0755, 0},
    {"etc/apt/sources.list.d", 0755, 0}, {"etc/apt/trusted.gpg.d", 0755, 0}, {"etc/apt/keyrings", 0755, 0},
    {"etc/sudoers.d", 0750, 0}, {"etc/opt", 0755, 0},
};

/* What of the host's /etc is in: how programs run, nothing of who runs them. */
static const char *const etc[] = {
    "adduser.conf", "alternatives", "bash.bashrc", "bash_completion.d", "ca-certificates",
    "ca-certificates.conf", "debconf.conf", "debian_version", "default/locale", "default/useradd",
    "deluser.conf", "dpkg", "emacs", "environment.d", "ethertypes", "fonts", "gai.conf", "gprofng.rc",
    "groff", "host.conf", "inputrc", "issue", "issue.net", "java-17-openjdk", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "libaudit.conf", "locale.alias", "locale.gen", "localtime", "login.defs",
    "lsb-release", "magic", "magic.mime", "mailcap", "mime.types", "nanorc", "netconfig",
    "networks", "nsswitch.conf", "os-release", "pam.conf", "pam.d", "perl", "profile", "profile.d",
    "protocols", "python3", "python3.11", "rmt", "rpc", "securetty", "security", "selinux",
    "services", "shells", "skel", "ssl/certs", "ssl/openssl.cnf", "sudo.conf",
    "terminfo", "timezone", "ucf.conf", "vim", "wgetrc", "xattr.conf", "xdg",
};

/* Accounts; those of packages are added (template_system.h). */
static const char passwd[] =
     "root:x:0:0:root:/root:/bin/bash\n"
     "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
     "bin:x:2:2:bin:/bin:/usr/sbin/nologin\n"
     "sys:x:3:3:sys:/dev:/usr/sbin/nologin\n"
     "sync:x:4:65534:sync:/bin:/bin/sync\n"
     "games:x:5:60:games:/usr/games:/usr/sbin/nologin\n"
     "man:x:6:12:man:/var/cache/man:/usr/sbin/nologin\n"
     "lp:x:7:7:lp:/var/spool/lpd:/usr/sbin/nologin\n"
     "mail:x:8:8:mail:/var/mail:/usr/sbin/nologin\n"
     "news:x:9:9:news:/var/spool/news:/usr/sbin/nologin\n"
     "uucp:x:10:10:uucp:/var/spool/uucp:/usr/sbin/nologin\n"
     "proxy:x:13:13:proxy:/bin:/usr/sbin/nologin\n"
     "www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n"
     "backup:x:34:34:backup:/var/backups:/usr/sbin/nologin\n"
     "list:x:38:38:Mailing List Manager:/var/list:/usr/sbin/nologin\n"
     "irc:x:39:39:ircd:/run/ircd:/usr/sbin/nologin\n"
     "_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\n"
     "user:x:1000:1000::/home/user:/bin/bash\n"
     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
static const char group[] =
     "root:x:0:\ndaemon:x:1:\nbin:x:2:\nsys:x:3:\nadm:x:4:\ntty:x:5:\ndisk:x:6:\nlp:x:7:\nmail:x:8:\n"
     "news:x:9:\nuucp:x:10:\nman:x:12:\nproxy:x:13:\nkmem:x:15:\ndialout:x:20:\nfax:x:21:\n"
     "voice:x:22:\ncdrom:x:24:\nfloppy:x:25:\ntape:x:26:\nsudo:x:27:user\naudio:x:29:\ndip:x:30:\n"
     "www-data:x:33:\nbackup:x:34:\noperator:x:37:\nlist:x:38:\nirc:x:39:\nsrc:x:40:\nshadow:x:42:\n"
     "utmp:x:43:\nvideo:x:44:\nsasl:x:45:\nplugdev:x:46:\nstaff:x:50:user\ngames:x:60:\nusers:x:100:\n"
     "user:x:1000:\nnogroup:x:65534:\n";

/* Ours, whatever the host's say. */
static const struct {
    const char *path;
    mode_t mode;
    unsigned gid;
    const char *text;
} files[] = {
    {"etc/shadow", 0640, 42,
     "root:*:19000:0:99999:7:::\nuser:*:19000:0:99999:7:::\nnobody:*:19000:0:99999:7:::\n"
     "_apt:*:19000:0:99999:7:::\n"},
    {"etc/gshadow", 0640, 42, "root:*::\nsudo:*::user\nuser:!::\n"},
    {"etc/sudoers", 0440, 0,
     "Defaults env_reset\n"
     "Defaults secure_path=\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\n"
     "Defaults !requiretty\n"
     "root ALL=(ALL:ALL) ALL\n"
     "user ALL=(ALL:ALL) NOPASSWD: ALL\n"
     "@includedir /etc/sudoers.d\n"},
    {"etc/hostname", 0644, 0, "cove\n"},
    {"etc/hosts", 0644, 0, "127.0.0.1 localhost cove\n::1 localhost ip6-localhost ip6-loopback\n"},
    {"etc/resolv.conf", 0644, 0, BOOT_RESOLV_CONF},
    {"etc/fstab", 0644, 0, ""},
    {"etc/machine-id", 0444, 0, ""},
    /* pip removes a directory with the last program it installed there, and makes it again as root's */
    {"usr/local/bin/.keep", 0644, 0, ""},
    /* no package starts a service when it is installed: nothing here manages services */
    {"usr/sbin/policy-rc.d", 0755, 0, "#!/bin/sh\nexit 101\n"},
    {"etc/mtab", 0, 0, "/proc/self/mounts"}, /* mode 0: a symlink */
    {"var/run", 0, 0, "/run"},
    {"var/lock", 0, 0, "/run/lock"},
};

static const char *const merged[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

/* Below /usr, and yet the host's own business. */
static const char *const left_out[] = {"/usr/local/", "/usr/etc/", "/usr/src/"};
/* clang-format on */

static void tell(struct build *b)
{
    if (++b->seen % PROGRESS_EVERY == 0 && b->progress != NULL)
        b->progress(b->arg, "collecting files", b->seen, b->total);
}

static bool starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* One that is there already (the skeleton's, mostly) stays as it is. */
static int make_dir(struct build *b, const char *path, mode_t mode, struct err *e)
{
    if (mkdirat(b->root, path, 0755) < 0)
        return errno == EEXIST ? 0 : err_sys(e, "make /%s", path);
    return fchmodat(b->root, path, mode & 03755, 0) < 0 ? err_sys(e, "make /%s", path) : 0;
}

/* Makes the directories above `path` (relative), each as the host has it. */
static int make_parents(struct build *b, const char *path, struct err *e)
{
    char part[4096], host[4100];
    char *slash;
    size_t n;

    slash = strrchr(path, '/');
    n = slash == NULL ? 0 : (size_t)(slash - path);
    if (n == 0 || (strncmp(b->last_dir, path, n) == 0 && b->last_dir[n] == '\0'))
        return 0;
    if (n >= sizeof(part))
        return err_set(e, ERR_INTERNAL, "a path is too long: %.80s...", path);
    memcpy(part, path, n);
    part[n] = '\0';
    for (char *p = part; p != NULL;) {
        struct stat st = {.st_mode = 0755};

        p = strchr(p, '/');
        if (p != NULL)
            *p = '\0';
        snprintf(host, sizeof(host), "/%s", part);
        if (lstat(host, &st) == 0 && S_ISDIR(st.st_mode) && make_dir(b, part, st.st_mode, e) < 0)
            return -1;
        if (p != NULL)
            *p++ = '/';
    }
    str_fmt(b->last_dir, sizeof(b->last_dir), "%s", part);
    return 0;
}

static int copy_bytes(int from, int to, off_t size)
{
    if (ioctl(to, FICLONE, from) == 0)
        return 0;
    while (size > 0) {
        ssize_t n = copy_file_range(from, NULL, to, NULL, (size_t)size, 0);

        if (n <= 0)
            return n == 0 ? 0 : -1;
        size -= n;
    }
    return 0;
}

static int copy_file(struct build *b, const char *host, const char *path, const struct stat *st,
                     struct err *e)
{
    autofd int from = open(host, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    autofd int to = openat(b->root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct timespec times[2] = {st->st_atim, st->st_mtim};

    if (to < 0 && errno == EEXIST)
        return 0;
    if (from < 0 || to < 0 || copy_bytes(from, to, st->st_size) < 0 ||
        fchown(to, st->st_uid, st->st_gid) < 0 || fchmod(to, st->st_mode & 07777) < 0 ||
        futimens(to, times) < 0)
        return err_sys(e, "copy %s", host);
    b->n.copied++;
    return 0;
}

/* One owned path. A missing one, or one that is neither file, directory nor symlink,
 * or that others may not read, is passed over. */
static int add_path(struct build *b, const char *host, bool link, struct err *e)
{
    const char *path = host + 1;
    char target[4096];
    struct stat st;
    ssize_t n;

    if (lstat(host, &st) < 0 || make_parents(b, path, e) < 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        return make_dir(b, path, st.st_mode, e);
    if (S_ISLNK(st.st_mode)) {
        n = readlink(host, target, sizeof(target) - 1);
        if (n <= 0)
            return 0;
        target[n] = '\0';
        if (symlinkat(target, b->root, path) < 0 && errno != EEXIST)
            return err_sys(e, "link %s", host);
        b->n.files++;
        return 0;
    }
    if (!S_ISREG(st.st_mode) || (st.st_mode & S_IROTH) == 0)
        return 0;
    b->n.files++;
    b->n.bytes += (uint64_t)st.st_size;
    if (link && linkat(AT_FDCWD, host, b->root, path, 0) == 0) {
        b->n.linked++;
        return 0;
    }
    if (link && errno == EEXIST)
        return 0;
    if (link && errno != EXDEV && errno != EMLINK && errno != EPERM)
        return err_sys(e, "link %s", host);
    return copy_file(b, host, path, &st, e);
}

/* "/bin/x" of a package list is "/usr/bin/x" on a host with a merged /usr. */
static const char *unmerged(const char *path, char room[4200])
{
    for (size_t i = 0; i < ARRAY_LEN(merged); i++) {
        size_t n = strlen(merged[i]);
        char top[16];
        struct stat st;

        if (strncmp(path + 1, merged[i], n) != 0 || path[1 + n] != '/')
            continue;
        str_fmt(top, sizeof(top), "/%s", merged[i]);
        if (lstat(top, &st) == 0 && S_ISLNK(st.st_mode)) {
            snprintf(room, 4200, "/usr%s", path);
            return room;
        }
    }
    return path;
}

static bool is_left_out(const char *path)
{
    for (size_t i = 0; i < ARRAY_LEN(left_out); i++)
        if (starts(path, left_out[i]))
            return true;
    return !starts(path, "/usr/");
}

/* A directory of a package's own data: empty, with the host's owner and mode. The package counts as
 * installed inside, and its scripts expect it. */
static int add_empty(struct build *b, const char *host, struct err *e)
{
    struct stat st;

    if (lstat(host, &st) < 0 || !S_ISDIR(st.st_mode) ||
        faccessat(b->root, host + 1, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (make_parents(b, host + 1, e) < 0 || make_dir(b, host + 1, st.st_mode, e) < 0)
        return -1;
    if (fchownat(b->root, host + 1, st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
        fchmodat(b->root, host + 1, st.st_mode & 07777, 0) < 0)
        return err_sys(e, "make %s", host);
    return 0;
}

static int add_list(struct build *b, const char *name, struct err *e)
{
    char path[600], line[4096], room[4200];
    FILE *f;
    int r = 0;

    snprintf(path, sizeof(path), "%s/%.500s", DPKG_INFO, name);
    f = fopen(path, "re");
    if (f == NULL)
        return err_sys(e, "read %s", path);
    while (r == 0 && fgets(line, sizeof(line), f) != NULL) {
        const char *host;

        line[strcspn(line, "\n")] = '\0';
        host = unmerged(line, room);
        tell(b);
        if (!is_left_out(host))
            r = add_path(b, host, true, e);
        else if (starts(host, "/var/") || starts(host, "/etc/"))
            r = add_empty(b, host, e);
    }
    fclose(f);
    return r;
}

static int each_list(struct build *b,
                     int (*do_list)(struct build *b, const char *name, struct err *e),
                     struct err *e)
{
    DIR *d = opendir(DPKG_INFO);
    int r = 0;

    if (d == NULL)
        return err_set(e, ERR_UNSUPPORTED,
                       "%s: this host's files are not described by dpkg; `base` cannot be made",
                       DPKG_INFO);
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;) {
        size_t n = strlen(de->d_name);

        if (n > 5 && strcmp(de->d_name + n - 5, ".list") == 0)
            r = do_list(b, de->d_name, e);
    }
    closedir(d);
    return r;
}

/* A line is a path of some 50 bytes: near enough for a progress bar. */
static int estimate(struct build *b, const char *name, struct err *e)
{
    char path[600];
    struct stat st;

    (void)e;
    snprintf(path, sizeof(path), "%s/%.500s", DPKG_INFO, name);
    if (stat(path, &st) == 0)
        b->total += (uint64_t)st.st_size / 60;
    return 0;
}

/* Everything below a host directory (or the one file): copied, not linked, where
 * the host's programs may write it in place. */
static int add_tree(struct build *b, const char *host, bool link, struct err *e)
{
    char sub[4200];
    struct stat st;
    DIR *d;
    int r = 0;

    if (lstat(host, &st) < 0)
        return 0;
    if (!S_ISDIR(st.st_mode))
        return add_path(b, host, link, e);
    if ((st.st_mode & S_IROTH) == 0 || add_path(b, host, link, e) < 0)
        return 0;
    d = opendir(host);
    for (struct dirent *de; d != NULL && r == 0 && (de = readdir(d)) != NULL;) {
        if (strcmp(de->d_name, ".") == 0 || strcmp(de->d_name, "..") == 0)
            continue;
        if (snprintf(sub, sizeof(sub), "%s/%s", host, de->d_name) < 4096)
            r = add_tree(b, sub, link, e);
    }
    if (d != NULL)
        closedir(d);
    return r;
}

/* Links into /etc/alternatives are made by update-alternatives: no package owns
 * them, and without them there is no awk. */
static int add_alternatives(struct build *b, struct err *e)
{
    static const char *const where[] = {"/usr/bin", "/usr/sbin", "/usr/lib/x86_64-linux-gnu",
                                        "/usr/lib/aarch64-linux-gnu"};
    char path[600], target[600];
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(where); i++) {
        DIR *d = opendir(where[i]);

        for (struct dirent *de; d != NULL && r == 0 && (de = readdir(d)) != NULL;) {
            ssize_t n;

            if (de->d_type != DT_LNK)
                continue;
            snprintf(path, sizeof(path), "%s/%.500s", where[i], de->d_name);
            n = readlink(path, target, sizeof(target) - 1);
            target[n < 0 ? 0 : n] = '\0';
            if (starts(target, "/etc/alternatives/"))
                r = add_path(b, path, true, e);
        }
        if (d != NULL)
            closedir(d);
    }
    return r;
}

static int add_skeleton(struct build *b, struct err *e)
{
    char top[16], target[64];

    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        if (mkdirat(b->root, dirs[i].path, 0755) < 0 ||
            fchownat(b->root, dirs[i].path, dirs[i].id, dirs[i].id, 0) < 0 ||
            fchmodat(b->root, dirs[i].path, dirs[i].mode, 0) < 0)
            return err_sys(e, "make /%s", dirs[i].path);
    for (size_t i = 0; i < ARRAY_LEN(merged); i++) {
        ssize_t n;

        str_fmt(top, sizeof(top), "/%s", merged[i]);
        n = readlink(top, target, sizeof(target) - 1);
        if (n <= 0)
            continue;
        target[n] = '\0';
        if (symlinkat(target, b->root, merged[i]) < 0)
            return err_sys(e, "link %s", top);
    }
    return 0;
}

static int put(struct build *b, const char *path, mode_t mode, unsigned gid, const char *text,
               struct err *e)
{
    autofd int fd = -1;
    size_t n = strlen(text);

    unlinkat(b->root, path, 0);
    fd = openat(b->root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, n) != (ssize_t)n || fchown(fd, 0, gid) < 0 ||
        fchmod(fd, mode) < 0)
        return err_sys(e, "write /%s", path);
    b->n.files++;
    return 0;
}

static int add_ours(struct build *b, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (files[i].mode != 0) {
            if (put(b, files[i].path, files[i].mode, files[i].gid, files[i].text, e) < 0)
                return -1;
            continue;
        }
        unlinkat(b->root, files[i].path, 0);
        if (symlinkat(files[i].text, b->root, files[i].path) < 0)
            return err_sys(e, "link /%s", files[i].path);
    }
    return 0;
}

/* dpkg stops at a statoverride whose group does not exist, and files keep the numbers they have on the
 * host: so the accounts that packages made have the same numbers inside. */
static int add_accounts(struct build *b, struct err *e)
{
    autobuf struct buf names = BUF_INIT(64u << 20), users = BUF_INIT(SYSTEM_FILE_MAX),
                       groups = BUF_INIT(SYSTEM_FILE_MAX);

    system_account_names(&names);
    buf_adds(&users, passwd);
    buf_adds(&groups, group);
    system_accounts("/etc/passwd", buf_cstr(&names), &users);
    system_accounts("/etc/group", buf_cstr(&names), &groups);
    if (users.failed || groups.failed)
        return err_set(e, ERR_INTERNAL, "the accounts of this host's packages: more than %u bytes",
                       SYSTEM_FILE_MAX);
    return put(b, "etc/passwd", 0644, 0, buf_cstr(&users), e) < 0
               ? -1
               : put(b, "etc/group", 0644, 0, buf_cstr(&groups), e);
}

/* ---- apt, pip, npm ---- */

/* What modules of node have below DIR/node_modules, as it is: npm replaces itself there, so the lists
 * of the package that installed it are out of date. */
static int add_node_modules(struct build *b, struct err *e)
{
    static const char *const modules[] = {"/usr/lib/node_modules/npm",
                                          "/usr/lib/node_modules/corepack"};

    for (size_t i = 0; i < ARRAY_LEN(modules); i++)
        if (faccessat(b->root, modules[i] + 1, F_OK, 0) == 0 &&
            add_tree(b, modules[i], true, e) < 0)
            return -1;
    return 0;
}

static int read_sources(const char *path, struct buf *in)
{
    FILE *f = fopen(path, "re");
    char *room = f == NULL ? NULL : buf_room(in, SYSTEM_FILE_MAX - 1);

    if (room != NULL)
        buf_added(in, fread(room, 1, SYSTEM_FILE_MAX - 1, f));
    if (f != NULL)
        fclose(f);
    return room == NULL ? -1 : 0;
}

static int add_sources(struct build *b, struct err *e)
{
    autobuf struct buf out = BUF_INIT(SYSTEM_FILE_MAX);
    char id[64], codename[64], path[600];
    DIR *d = opendir("/etc/apt/sources.list.d");

    system_release("ID", id, sizeof(id));
    system_release("VERSION_CODENAME", codename, sizeof(codename));
    for (const char *name = "../sources.list"; name != NULL && codename[0] != '\0';) {
        autobuf struct buf in = BUF_INIT(SYSTEM_FILE_MAX);
        size_t n = strlen(name);
        struct dirent *de;

        snprintf(path, sizeof(path), "/etc/apt/sources.list.d/%.500s", name);
        if (((n > 5 && strcmp(name + n - 5, ".list") == 0) ||
             (n > 8 && strcmp(name + n - 8, ".sources") == 0)) &&
            read_sources(path, &in) == 0)
            system_sources(buf_cstr(&in), id, codename, b->settings, &out);
        de = d == NULL ? NULL : readdir(d);
        name = de == NULL ? NULL : de->d_name;
    }
    if (d != NULL)
        closedir(d);
    b->n.sources = out.len > 0;
    if (out.len > 0 &&
        put(b, "etc/apt/sources.list.d/distribution.sources", 0644, 0, buf_cstr(&out), e) < 0)
        return -1;
    d = opendir("/etc/apt/trusted.gpg.d");
    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;)
        if (starts(de->d_name, id) &&
            snprintf(path, sizeof(path), "/etc/apt/trusted.gpg.d/%.500s", de->d_name) > 0)
            add_path(b, path, false, e);
    if (d != NULL)
        closedir(d);
    return 0;
}

/* Where packages are installed from, and where `user` may install to. */
static int add_installers(struct build *b, struct err *e)
{
    static const char *const local[] = {
        "usr/local",          "usr/local/bin", "usr/local/etc",
        "usr/local/include",  "usr/local/lib", "usr/local/sbin",
        "usr/local/share",    "usr/local/src", "usr/local/lib/node_modules",
        "usr/local/share/man"};
    static const struct {
        const char *path;
        void (*text)(const struct system_settings *s, struct buf *out);
    } conf[] = {
        {"etc/apt/apt.conf.d/90cove", system_apt_conf},
        {"etc/pip.conf", system_pip_conf},
        {"etc/npmrc", system_npmrc},     /* Debian's npm */
        {"usr/etc/npmrc", system_npmrc}, /* one that was installed below /usr */
    };

    for (size_t i = 0; i < ARRAY_LEN(local); i++) {
        if (make_dir(b, local[i], 0755, e) < 0)
            return -1;
        if (fchownat(b->root, local[i], 0, STAFF, 0) < 0 ||
            fchmodat(b->root, local[i], 02775, 0) < 0)
            return err_sys(e, "make /%s", local[i]);
    }
    if (make_dir(b, "usr/etc", 0755, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(conf); i++) {
        autobuf struct buf out = BUF_INIT(8192);

        conf[i].text(b->settings, &out);
        if (out.len > 0 && put(b, conf[i].path, 0644, 0, buf_cstr(&out), e) < 0)
            return -1;
    }
    return add_sources(b, e);
}

/* /etc/skel becomes the home of `user`, as useradd would do it. */
static int add_home(struct build *b, struct err *e)
{
    autofd int skel = openat(b->root, "etc/skel", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = skel < 0 ? NULL : fdopendir(dup(skel));

    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;) {
        char path[300];
        autofd int from = openat(skel, de->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), to = -1;
        struct stat st;

        if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        str_fmt(path, sizeof(path), "home/user/%s", de->d_name);
        to = openat(b->root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (to < 0 || copy_bytes(from, to, st.st_size) < 0 || fchown(to, 1000, 1000) < 0) {
            closedir(d);
            return err_sys(e, "write /%s", path);
        }
    }
    if (d != NULL)
        closedir(d);
    return 0;
}

static int add_etc(struct build *b, struct err *e)
{
    char path[300];

    for (size_t i = 0; i < ARRAY_LEN(etc); i++) {
        str_fmt(path, sizeof(path), "/etc/%s", etc[i]);
        if (add_tree(b, path, false, e) < 0)
            return -1;
    }
    return 0;
}

int template_base_build(int root_fd, const struct system_settings *settings,
                        struct base_counts *ret,
                        void (*progress)(void *arg, const char *text, uint64_t done,
                                         uint64_t total),
                        void *arg, struct err *e)
{
    static struct build b;

    memset(&b, 0, sizeof(b));
    b.root = root_fd;
    b.settings = settings;
    b.progress = progress;
    b.arg = arg;
    if (fchmod(root_fd, 0755) < 0)
        return err_sys(e, "the root of the template");
    if (add_skeleton(&b, e) < 0 || each_list(&b, estimate, e) < 0 ||
        each_list(&b, add_list, e) < 0 || add_alternatives(&b, e) < 0 || add_etc(&b, e) < 0 ||
        add_tree(&b, "/var/lib/dpkg", true, e) < 0 || add_ours(&b, e) < 0 ||
        add_accounts(&b, e) < 0 || add_node_modules(&b, e) < 0 || add_installers(&b, e) < 0 ||
        add_home(&b, e) < 0)
        return -1;
    *ret = b.n;
    return 0;
}

void template_base_missing(char *out, size_t room)
{
    static const char *const wanted[] = {"bash", "sudo", "python3", "python",
                                         "pip",  "git",  "curl",    "tput"};
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        char path[64];

        str_fmt(path, sizeof(path), "/usr/bin/%s", wanted[i]);
        if (access(path, X_OK) < 0)
            n += (size_t)snprintf(out + n, room - n, "%s%s", n > 0 ? ", " : "", wanted[i]);
        if (n >= room)
            return;
    }
}

/* doctor.c - checks what this host offers, one row per check.
 *
 * A row that is a wall must hold, or the operator must have accepted it (--accept): there is no
 * silent fallback. */
#include "keeper/host/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include "base/str.h"
#include "keeper/beside.h"
#include "keeper/cgroup.h"
#include "keeper/compat.h"
#include "keeper/counters.h"
#include "keeper/keeper.h"
#include "keeper/memory.h"
#include "keeper/network.h"
#include "keeper/template_base.h"

#define TEXT_MAX 240
#define MiB(n) ((unsigned long long)(n) >> 20)

enum verdict { GOOD, NOTE, MISSING };

static uint64_t number_in(const char *path, uint64_t absent)
{
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[32];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    uint64_t v;

    if (n <= 0)
        return absent;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return str_u64(text, UINT64_MAX, &v) < 0 ? absent : v;
}

static bool file_has(const char *path, const char *word)
{
    FILE *f = fopen(path, "re");
    char line[1024];
    bool found = false;

    while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL)
        found = strstr(line, word) != NULL;
    if (f != NULL)
        fclose(f);
    return found;
}

static bool file_has_word(const char *path, const char *word)
{
    autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    char text[512] = "";

    return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && cgroup_has_word(text, word);
}

/* Mounting loads the module; /proc/filesystems does not list it before. */
static bool has_filesystem(const char *name)
{
    autofd int fs = sys_fsopen(name, FSOPEN_CLOEXEC);

    return fs >= 0 || file_has("/proc/filesystems", name);
}

/* ---- the rows ---- */

static enum verdict check_kernel(char *text)
{
    struct utsname u;
    unsigned major = 0, minor = 0;

    uname(&u);
    sscanf(u.release, "%u.%u", &major, &minor);
    snprintf(text, TEXT_MAX, "Linux %.60s", u.release);
    if (major > 6 || (major == 6 && minor >= 1))
        return GOOD;
    strcat(text, "; 6.1 or newer is needed (overlays of mapped layers)");
    return MISSING;
}

static enum verdict check_user(char *text)
{
    struct passwd *pw = getpwnam("cove");

    snprintf(text, TEXT_MAX,
             pw != NULL ? "user cove (uid %u) runs the unprivileged half"
                        : "user cove, which runs the unprivileged half, does not exist",
             pw != NULL ? (unsigned)pw->pw_uid : 0u);
    return pw != NULL ? GOOD : MISSING;
}

static enum verdict check_userns(char *text)
{
    uint64_t max = number_in("/proc/sys/user/max_user_namespaces", 0);

    snprintf(text, TEXT_MAX, "%llu user namespaces allowed", (unsigned long long)max);
    return max > 0 ? GOOD : MISSING;
}

/* With 1, a program that changed its ids can be dumped by its new user: also one that init is just
 * starting and that still shares init's memory. */
static enum verdict check_dumpable(char *text)
{
    bool open = number_in("/proc/sys/fs/suid_dumpable", 0) == 1;

    snprintf(text, TEXT_MAX,
             open ? "fs.suid_dumpable is 1: a tenant could read and write its sandbox's init; set "
                    "it to 0 or 2"
                  : "fs.suid_dumpable protects programs that change their ids");
    return open ? MISSING : GOOD;
}

static enum verdict check_cgroup2(char *text)
{
    bool v2 = file_has("/proc/self/mounts", " cgroup2 ");
    bool v1 = file_has("/proc/self/mounts", " cgroup ");

    snprintf(text, TEXT_MAX,
             !v2  ? "no cgroup v2 hierarchy is mounted"
             : v1 ? "hybrid: v2 kills and freezes, v1 limits"
                  : "pure v2");
    return v2 ? GOOD : MISSING;
}

static enum verdict check_controller(const char *name, char *text)
{
    char needle[32];
    bool there;

    snprintf(needle, sizeof(needle), "%s\t", name);
    there = file_has("/proc/cgroups", needle);
    snprintf(text, TEXT_MAX, there ? "%s can be limited" : "no %s controller: it cannot be limited",
             name);
    return there ? GOOD : MISSING;
}

static enum verdict check_cpu(char *text)
{
    return check_controller("cpu", text);
}

static enum verdict check_memory(char *text)
{
    return check_controller("memory", text);
}

static enum verdict check_all_memory(char *text)
{
    uint64_t host = memory_of_host(), reserve = memory_reserve(0, host);

    snprintf(text, TEXT_MAX,
             "%llu MiB on this host; all sandboxes together get %llu, unless memory-reserve is set",
             MiB(host), MiB(host > reserve ? host - reserve : 0));
    return host >= 2 * reserve ? GOOD : NOTE;
}

static enum verdict check_oom(char *text)
{
    bool ours = memory_can_protect();

    snprintf(text, TEXT_MAX,
             ours ? "oom_score_adj of the daemon is %d, of sandboxes 0: the daemon is killed last"
                  : "no CAP_SYS_RESOURCE to set the daemon's oom_score_adj to %d: sandboxes get "
                    "%d instead, and can lower it to 0",
             MEMORY_SCORE_OURS, MEMORY_SCORE_SANDBOX);
    return ours ? GOOD : NOTE;
}

static enum verdict check_pids(char *text)
{
    return check_controller("pids", text);
}

static enum verdict check_overlay(char *text)
{
    bool there = has_filesystem("overlay");

    snprintf(text, TEXT_MAX, there ? "overlayfs works" : "no overlayfs; try `modprobe overlay`");
    return there ? GOOD : MISSING;
}

static enum verdict check_disk(char *text)
{
    bool fs = has_filesystem("btrfs");
    bool mkfs = access("/sbin/mkfs.btrfs", X_OK) == 0;
    bool loop = access("/dev/loop-control", R_OK) == 0;

    if (fs && mkfs && loop) {
        snprintf(text, TEXT_MAX, "btrfs with quotas: every sandbox's disk is bounded");
        return GOOD;
    }
    snprintf(text, TEXT_MAX, "disks cannot be bounded:%s%s%s", fs ? "" : " no btrfs in the kernel",
             mkfs ? "" : " no mkfs.btrfs (package btrfs-progs)",
             loop ? "" : " no /dev/loop-control");
    return MISSING;
}

static enum verdict check_seccomp(char *text)
{
    bool there = access("/proc/sys/kernel/seccomp/actions_avail", R_OK) == 0;

    snprintf(text, TEXT_MAX, there ? "seccomp filters work" : "no seccomp filters");
    return there ? GOOD : MISSING;
}

static enum verdict check_files(char *text)
{
    struct rlimit r = {0};

    getrlimit(RLIMIT_NOFILE, &r);
    snprintf(text, TEXT_MAX, "%llu open files per process: room for about %llu sandboxes",
             (unsigned long long)r.rlim_max, (unsigned long long)r.rlim_max / 4);
    return r.rlim_max >= 4096 ? GOOD : NOTE;
}

/* " (`cove serve` raises it to N)", where it is less. */
static const char *raised(enum counter c, uint64_t now, char out[64])
{
    out[0] = '\0';
    if (now < counter_wanted(c))
        str_fmt(out, 64, " (`cove serve` raises it to %llu)",
                (unsigned long long)counter_wanted(c));
    return out;
}

static enum verdict check_tasks(char *text)
{
    uint64_t pids = counter_value(COUNTER_PIDS, 32768);
    uint64_t threads = counter_value(COUNTER_THREADS, pids);
    char a[64], b[64];

    snprintf(text, TEXT_MAX,
             "kernel.pid_max %llu%s, kernel.threads-max %llu%s; all sandboxes together get three "
             "quarters",
             (unsigned long long)pids, raised(COUNTER_PIDS, pids, a), (unsigned long long)threads,
             raised(COUNTER_THREADS, threads, b));
    return GOOD;
}

static enum verdict check_ptys(char *text)
{
    uint64_t n = counter_value(COUNTER_PTYS, 4096);
    char more[64];

    snprintf(text, TEXT_MAX, "kernel.pty.max %llu%s, shared; each sandbox may hold %u",
             (unsigned long long)n, raised(COUNTER_PTYS, n, more), SANDBOX_PTYS);
    return GOOD;
}

static enum verdict check_file_max(char *text)
{
    uint64_t n = counter_value(COUNTER_FILES, 0);
    char more[64];

    snprintf(text, TEXT_MAX,
             "fs.file-max %llu%s, shared; a sandbox's open files count to its memory",
             (unsigned long long)n, raised(COUNTER_FILES, n, more));
    return GOOD;
}

static enum verdict check_orphans(char *text)
{
    uint64_t n = counter_value(COUNTER_ORPHANS, 0);
    char more[64];

    if (n == 0)
        snprintf(text, TEXT_MAX, "net.ipv4.tcp_max_orphans is not shown in this network namespace");
    else
        snprintf(text, TEXT_MAX,
                 "net.ipv4.tcp_max_orphans %llu%s, shared; closed connections count to a "
                 "sandbox's memory",
                 (unsigned long long)n, raised(COUNTER_ORPHANS, n, more));
    return GOOD;
}

/* At their worst: as many as a sandbox may have, of the largest size there is. */
static enum verdict check_filters(char *text)
{
    uint64_t limit = number_in("/proc/sys/net/core/bpf_jit_limit", 0);
    uint64_t n = limit / SANDBOX_FILTER_BYTES;

    if (limit == 0) {
        snprintf(text, TEXT_MAX, "no limit for compiled seccomp filters is shown");
        return GOOD;
    }
    snprintf(text, TEXT_MAX,
             "net.core.bpf_jit_limit %llu MiB, shared: full when %llu sandboxes install all the "
             "seccomp filters they may%s",
             MiB(limit), (unsigned long long)n, n < 32 ? "; raise it" : "");
    return n < 32 ? NOTE : GOOD;
}

static enum verdict check_inotify(char *text)
{
    uint64_t n = number_in("/proc/sys/fs/inotify/max_user_instances", 128);
    uint64_t w = number_in("/proc/sys/fs/inotify/max_user_watches", 8192);

    snprintf(text, TEXT_MAX,
             "%llu inotify instances, %llu watches for each sandbox (its own count)",
             (unsigned long long)n, (unsigned long long)w);
    return GOOD;
}

static enum verdict check_conntrack(char *text)
{
    uint64_t n = number_in("/proc/sys/net/netfilter/nf_conntrack_max", 0);

    if (n == 0)
        snprintf(text, TEXT_MAX, "no connection tracking in use (network `none` needs none)");
    else
        snprintf(
            text, TEXT_MAX,
            "nf_conntrack_max %llu, shared: full when %llu sandboxes have 1024 connections each",
            (unsigned long long)n, (unsigned long long)n / 1024);
    return n != 0 && n < 65536 ? NOTE : GOOD;
}

static enum verdict check_nft(char *text)
{
    return network_check_nft(text, TEXT_MAX) ? GOOD : NOTE;
}

static enum verdict check_uplink(char *text)
{
    return network_check_uplink(text, TEXT_MAX) ? GOOD : NOTE;
}

static enum verdict check_bandwidth(char *text)
{
    return network_check_limits(text, TEXT_MAX) ? GOOD : NOTE;
}

/* v1's blkio does not see what is written through the page cache: it is not used. */
static enum verdict check_io(char *text)
{
    char path[300], root[256];
    bool there = false;

    if (cgroup_mounted_at(NULL, root) == 0) {
        snprintf(path, sizeof(path), "%s/cgroup.controllers", root);
        there = file_has_word(path, "io");
    }
    snprintf(text, TEXT_MAX,
             there ? "cgroup v2 io: disk I/O is shared by weight and can be limited (disk-io)"
                   : "no cgroup v2 io controller: disk I/O is neither shared fairly nor limited");
    return there ? GOOD : NOTE;
}

/* Other firewalls, such as Docker's and ufw's. */
static enum verdict check_others(char *text)
{
    char what[BESIDE_TEXT_MAX];
    enum beside b = beside_look("", what);

    snprintf(text, TEXT_MAX, "%s",
             b == BESIDE_FREE ? "no other firewall is in the way of sandboxes" : what);
    return b == BESIDE_FREE ? GOOD : NOTE;
}

static enum verdict check_names(char *text)
{
    return network_check_names(text, TEXT_MAX) ? GOOD : NOTE;
}

static enum verdict check_forward(char *text)
{
    uint64_t on = number_in("/proc/sys/net/ipv4/ip_forward", 0);

    snprintf(text, TEXT_MAX,
             on == 1 ? "this host forwards packets already"
                     : "this host is not a router; Cove turns on forwarding for sandboxes only");
    return GOOD;
}

static enum verdict check_base(char *text)
{
    char missing[128];

    template_base_missing(missing, sizeof(missing));
    snprintf(text, TEXT_MAX,
             missing[0] != '\0' ? "the default template will lack: %s"
                                : "the default template has all common programs%s",
             missing);
    return missing[0] != '\0' ? NOTE : GOOD;
}

/* ---- the state directory ---- */

/* DIR, or the deepest parent of it that exists. */
static int open_nearest(const char *dir)
{
    char path[512];
    int fd;

    str_fmt(path, sizeof(path), "%s", dir);
    while ((fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 && errno == ENOENT) {
        char *slash = strrchr(path, '/');

        if (slash == NULL)
            return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        slash[slash == path] = '\0';
    }
    return fd;
}

static enum verdict check_image(int fd, uint64_t room, char *text)
{
    uint64_t size, used, allocated;
    struct stat st;

    if (fstat(fd, &st) < 0 || space_read_image(fd, &size, &used) < 0) {
        snprintf(text, TEXT_MAX, "the image of the disks cannot be read");
        return NOTE;
    }
    allocated = (uint64_t)st.st_blocks * 512;
    snprintf(text, TEXT_MAX,
             "%llu MiB of disks, %llu of them free%s; the host can give %llu more, the pool ends "
             "at %llu",
             MiB(size), MiB(size - used),
             allocated < size ? ", NOT ALL ALLOCATED: writes can be lost if the host fills up" : "",
             MiB(room), MiB(st.st_size));
    return allocated < size || (room == 0 && size < (uint64_t)st.st_size) ? NOTE : GOOD;
}

/* Reads the image, whether or not a daemon uses it. */
static enum verdict check_reserve(const char *state, char *text)
{
    autofd int dir = open_nearest(state);
    autofd int image = dir < 0 ? -1 : openat(dir, "disk.img", O_RDONLY | O_CLOEXEC);
    uint64_t room = dir < 0 ? 0 : space_host_room(dir);
    bool works = dir >= 0 && space_can_allocate(dir);

    if (!works)
        snprintf(text, TEXT_MAX,
                 "the file system of %.100s cannot allocate ahead (fallocate): writes can be lost "
                 "if it fills up",
                 state);
    else if (image >= 0)
        return check_image(image, room, text);
    else
        snprintf(text, TEXT_MAX, "disks can be allocated ahead in %.100s: %llu MiB%s", state,
                 MiB(room), room < RESERVE_MIN ? "; 2 GiB or more are better" : "");
    return works && room >= RESERVE_MIN ? GOOD : NOTE;
}

/* clang-format off */
static const struct row {
    const char *name;
    const char *wall; /* the name for --accept; "": cannot be accepted; NULL: no wall */
    enum verdict (*see)(char *text);
} rows[] = {
    {"kernel",     "",                check_kernel},
    {"user",       "",                check_user},
    {"userns",     "",                check_userns},
    {"dumps",      "",                check_dumpable},
    {"cgroups",    "",                check_cgroup2},
    {"cpu",        "no-cpu-limit",    check_cpu},
    {"memory",     "no-memory-limit", check_memory},
    {"all memory", NULL,              check_all_memory},
    {"oom",        NULL,              check_oom},
    {"pids",       "no-pids-limit",   check_pids},
    {"overlay",    "",                check_overlay},
    {"disk",       "no-disk-limit",   check_disk},
    {"seccomp",    "",                check_seccomp},
    {"disk I/O",   NULL,              check_io},
    {"files",      NULL,              check_files},
    {"processes",  NULL,              check_tasks},
    {"terminals",  NULL,              check_ptys},
    {"file-max",   NULL,              check_file_max},
    {"orphans",    NULL,              check_orphans},
    {"filters",    NULL,              check_filters},
    {"inotify",    NULL,              check_inotify},
    {"nftables",   NULL,              check_nft},
    {"uplink",     NULL,              check_uplink},
    {"forwarding", NULL,              check_forward},
    {"firewalls",  NULL,              check_others},
    {"resolvers",  NULL,              check_names},
    {"conntrack",  NULL,              check_conntrack},
    {"bandwidth",  NULL,              check_bandwidth},
    {"template",   NULL,              check_base},
};
/* clang-format on */

static bool known_wall(const char *name, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].wall != NULL && strlen(rows[i].wall) == n && n > 0 &&
            strncmp(rows[i].wall, name, n) == 0)
            return true;
    return false;
}

/* Names for --accept besides walls. */
static const char lost_database[] = "lost-database"; /* front/engine/sandbox/join.c */

static int check_accept(const struct keeper *k, struct err *e)
{
    for (const char *p = k->config.accept; *p != '\0'; p += *p == ',') {
        size_t n = strcspn(p, ",");

        if (n > 0 && !known_wall(p, n) &&
            (n != strlen(lost_database) || strncmp(p, lost_database, n) != 0))
            return err_set(e, ERR_INVALID,
                           "--accept: '%.*s' is not the name of a wall; `cove doctor` lists them",
                           (int)n, p);
        p += n;
    }
    return 0;
}

int doctor_check(struct keeper *k, struct err *e)
{
    char text[TEXT_MAX + 80];

    if (check_accept(k, e) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];

        if (r->wall == NULL || r->see(text) != MISSING)
            continue;
        if (*r->wall == '\0')
            return err_set(e, ERR_UNSUPPORTED, "%s", text);
        if (!config_accepts(&k->config, r->wall))
            return err_set(e, ERR_UNSUPPORTED, "%s (`--accept %s` starts without it)", text,
                           r->wall);
    }
    return 0;
}

/* Each sandbox needs a dozen processes and four fds of the keeper. */
uint64_t doctor_capacity(struct keeper *k)
{
    uint64_t n = counter_tasks() / 12;
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur / 4 < n)
        n = files.rlim_cur / 4;
    if (k->config.sandboxes != 0 && k->config.sandboxes < n)
        n = k->config.sandboxes;
    return n;
}

/* Prints the contents of the quarantine (quarantine.h), each with its reason; returns the number.
 */
static size_t show_damage(const char *state)
{
    char path[600], why[TEXT_MAX];
    DIR *d;
    size_t n = 0;

    snprintf(path, sizeof(path), "%.500s/damaged", state);
    d = opendir(path);
    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;) {
        autofd int fd = -1;
        ssize_t got;

        if (de->d_name[0] == '.')
            continue;
        fd = openat(dirfd(d), de->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        got = fd < 0 ? 0 : read(fd, why, sizeof(why) - 1);
        why[got < 0 ? 0 : got] = '\0';
        if (strncmp(de->d_name, "record-", 7) == 0)
            str_fmt(why, sizeof(why),
                    "a damaged record that names no sandbox, kept for inspection");
        printf("%-8s %-10s %s: %s\n", "DAMAGED", "state", de->d_name, why);
        if (id_is_valid(de->d_name, ID_LEN))
            printf("%-8s %-10s `cove sandbox recover %s` keeps its files; `cove sandbox delete %s` "
                   "removes them\n",
                   "", "", de->d_name, de->d_name);
        else if (strncmp(de->d_name, "template-", 9) == 0 ||
                 strncmp(de->d_name, "snapshot-", 9) == 0)
            printf(
                "%-8s %-10s restore its file from a backup of the state directory, or delete it\n",
                "", "");
        n++;
    }
    if (d != NULL)
        closedir(d);
    return n;
}

int keeper_doctor_main(const char *state)
{
    char reserve[TEXT_MAX + 80];
    enum verdict seen;
    static const char *const marks[] = {[GOOD] = "ok", [NOTE] = "note", [MISSING] = "MISSING"};
    char *const settings[] = {(char *)"--state", (char *)state};
    struct config c;
    bool fine = true;
    struct err e;

    if (geteuid() != 0) {
        fprintf(stderr, "cove doctor: not root: it tries what `cove serve` does\n");
        return err_exit(ERR_DENIED);
    }
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[TEXT_MAX + 80];
        enum verdict v = rows[i].see(text);

        printf("%-8s %-10s %s\n", marks[v], rows[i].name, text);
        if (v == MISSING && rows[i].wall != NULL && *rows[i].wall != '\0')
            printf("%-8s %-10s `cove serve --accept %s` starts without it\n", "", "", rows[i].wall);
        fine = fine && v != MISSING;
    }
    if (config_load(&c, state != NULL ? 2 : 0, settings, &e) < 0) {
        printf("%-8s %-10s %s\n", marks[NOTE], "state", e.msg);
    } else {
        seen = check_reserve(c.state, reserve);
        printf("%-8s %-10s %s\n", marks[seen], "reserve", reserve);
        if (show_damage(c.state) == 0)
            printf("%-8s %-10s nothing in %s is damaged\n", marks[GOOD], "state", c.state);
    }
    config_free(&c);
    printf(fine ? "\nThis host can run Cove.\n" : "\nThis host lacks something Cove needs.\n");
    return fine ? 0 : err_exit(ERR_UNSUPPORTED);
}

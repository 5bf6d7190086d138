/* cgroup.c - the first stage: everything of a sandbox is counted and killed here.
 *
 * Two layouts, one interface. Pure v2: one group per sandbox with limits, freeze
 * and kill. Hybrid: the v2 group freezes and kills, and each controller that v1
 * holds has a group of its own for the limit. Init itself is in the sandbox's v2
 * group, and that is the root of its cgroup namespace; below it is `run`, in which
 * init makes one group per command. Not a sibling of `run`: where the hierarchy is
 * mounted with nsdelegate, as systemd does, no process in a cgroup namespace reaches a
 * group that is not below its root. Ours stay cgroup.kill and the limits; init gets
 * `run`. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "keeper/cgroup.h"
#include "keeper/compat.h"
#include "keeper/counters.h"
#include "keeper/freezer.h"
#include "keeper/io.h"
#include "keeper/stages.h"

#define SOCKET_BYTES_MAX (64ull << 20) /* in the buffers of a sandbox's sockets, v1 only */

static const struct {
    const char *name; /* in v2, and as the v1 controller */
    const char *wall; /* what --accept must name if the host lacks it */
} ctrls[CTRL_COUNT] = {
    [CTRL_CPU] = {"cpu", "no-cpu-limit"},
    [CTRL_MEMORY] = {"memory", "no-memory-limit"},
    [CTRL_PIDS] = {"pids", "no-pids-limit"},
};

int cgroup_put(int dfd, const char *name, const char *value, struct err *e)
{
    autofd int fd = openat(dfd, name, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, value, strlen(value)) != (ssize_t)strlen(value))
        return err_sys(e, "write %s to %s", value, name);
    return 0;
}

ssize_t cgroup_get(int dfd, const char *name, char *out, size_t room)
{
    autofd int fd = openat(dfd, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, room - 1);

    out[n < 0 ? 0 : n] = '\0';
    return n;
}

static int make(int dfd, const char *name, int *ret, struct err *e)
{
    int fd;

    if (mkdirat(dfd, name, 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make cgroup %s", name);
    fd = openat(dfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open cgroup %s", name);
    *ret = fd;
    return 0;
}

int cgroup_mounted_at(const char *controller, char out[256])
{
    FILE *f = fopen("/proc/self/mounts", "re");
    char line[1024], where[256], type[32], opts[512];
    int found = -1;

    while (f != NULL && found < 0 && fgets(line, sizeof(line), f) != NULL) {
        char needle[32], hay[520];

        if (sscanf(line, "%*s %255s %31s %511s", where, type, opts) != 3)
            continue;
        str_fmt(needle, sizeof(needle), ",%s,", controller == NULL ? "" : controller);
        snprintf(hay, sizeof(hay), ",%s,", opts);
        if (controller == NULL ? strcmp(type, "cgroup2") == 0
                               : strcmp(type, "cgroup") == 0 && strstr(hay, needle) != NULL) {
            str_fmt(out, 256, "%s", where);
            found = 0;
        }
    }
    if (f != NULL)
        fclose(f);
    return found;
}

bool cgroup_has_word(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = list; (p = strstr(p, word)) != NULL; p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\n' || p[n] == '\0'))
            return true;
    return false;
}

static int open_v2(struct keeper *k, const char *name, struct err *e)
{
    char root[256], have[256];
    autofd int fd = -1;

    if (cgroup_mounted_at(NULL, root) < 0)
        return err_set(e, ERR_UNSUPPORTED, "this host has no cgroup v2 hierarchy mounted");
    fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open %s", root);
    cgroup_get(fd, "cgroup.controllers", have, sizeof(have));
    if (make(fd, name, &k->cgroups.v2_fd, e) < 0)
        return -1;
    str_fmt(k->cgroups.v2_path, sizeof(k->cgroups.v2_path), "%.200s/%s", root, name);
    for (int c = 0; c < CTRL_COUNT; c++) {
        char on[32];

        if (!cgroup_has_word(have, ctrls[c].name))
            continue;
        str_fmt(on, sizeof(on), "+%s", ctrls[c].name);
        if (cgroup_put(fd, "cgroup.subtree_control", on, e) < 0 ||
            cgroup_put(k->cgroups.v2_fd, "cgroup.subtree_control", on, e) < 0)
            return err_wrap(e, "turn on %s", ctrls[c].name);
        k->cgroups.v2_has[c] = true;
    }
    return 0;
}

static int open_v1(struct keeper *k, int c, const char *name, struct err *e)
{
    char root[256];
    autofd int fd = -1;

    if (cgroup_mounted_at(ctrls[c].name, root) < 0) {
        if (config_accepts(&k->config, ctrls[c].wall))
            return 0;
        return err_set(e, ERR_UNSUPPORTED,
                       "this host has no %s cgroup controller; `--accept %s` does without",
                       ctrls[c].name, ctrls[c].wall);
    }
    fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "open %s", root);
    return make(fd, name, &k->cgroups.v1_fd[c], e);
}

/* The directory of the groups that have this controller; -1: the host lacks it. */
static int ctrl_parent(const struct cgroups *g, enum controller c)
{
    return g->v2_has[c] ? g->v2_fd : g->v1_fd[c];
}

/* A group by its name in a directory: to open it first costs as much as to write to it. */
struct group {
    int parent;
    const char *name;
    bool v2;
};

static int group_put(const struct group *g, const char *file, const char *value, struct err *e)
{
    char path[96];

    str_fmt(path, sizeof(path), "%s/%s", g->name, file);
    return cgroup_put(g->parent, path, value, e);
}

static int limit_pids(const struct group *g, uint64_t n, struct err *e)
{
    char text[32];

    str_fmt(text, sizeof(text), "%llu", (unsigned long long)n);
    return group_put(g, "pids.max", text, e);
}

/* All sandboxes together leave the host a quarter of its pids and threads: else a few dozen
 * fork bombs, each within its own limit, and the host could start no program. */
static int limit_all_pids(struct keeper *k, struct err *e)
{
    const struct group all = {.parent = ctrl_parent(&k->cgroups, CTRL_PIDS), .name = "."};

    return all.parent < 0 ? 0 : limit_pids(&all, counter_tasks() / 4 * 3, e);
}

int cgroup_open(struct keeper *k, struct err *e)
{
    char name[32];

    str_fmt(name, sizeof(name), "cove-%s", k->tag);
    k->cgroups.v2_fd = -1;
    for (int c = 0; c < CTRL_COUNT; c++)
        k->cgroups.v1_fd[c] = -1;
    if (open_v2(k, name, e) < 0)
        return -1;
    for (int c = 0; c < CTRL_COUNT; c++)
        if (!k->cgroups.v2_has[c] && open_v1(k, c, name, e) < 0)
            return -1;
    return limit_all_pids(k, e);
}

static void remove_root(int fd, const char *name)
{
    autofd int parent = fd < 0 ? -1 : openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (parent >= 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT &&
        errno != EBUSY)
        log_warn("remove cgroup %s: %s", name, strerror(errno));
}

void cgroup_close_all(struct keeper *k)
{
    char name[32];

    str_fmt(name, sizeof(name), "cove-%s", k->tag);
    remove_root(k->cgroups.v2_fd, name);
    for (int c = 0; c < CTRL_COUNT; c++)
        remove_root(k->cgroups.v1_fd[c], name);
}

/* ---- one sandbox ---- */

int cgroup_dir(const struct sandbox *sb, const char *sub)
{
    char path[64];

    str_fmt(path, sizeof(path), "%s%s", sb->rec.id, sub);
    return openat(sb->k->cgroups.v2_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int limit_cpu(const struct group *g, uint64_t milli, struct err *e)
{
    char text[64];

    if (g->v2) {
        str_fmt(text, sizeof(text), "%llu 100000", (unsigned long long)milli * 100);
        return group_put(g, "cpu.max", text, e);
    }
    str_fmt(text, sizeof(text), "%llu", (unsigned long long)milli * 100);
    return group_put(g, "cpu.cfs_quota_us", text, e);
}

/* v1 counts what lies in sockets only if asked to, and apart. All of the host's
 * sockets together have one budget (tcp_mem), so a sandbox gets a part of what it
 * has as memory, and not more than is enough for any honest use. */
static int limit_sockets(const struct group *g, uint64_t memory, struct err *e)
{
    uint64_t most = memory / 8 < SOCKET_BYTES_MAX ? memory / 8 : SOCKET_BYTES_MAX;
    char text[32];

    str_fmt(text, sizeof(text), "%llu", (unsigned long long)most);
    return group_put(g, "memory.kmem.tcp.limit_in_bytes", text, e);
}

static int limit_memory(const struct group *g, uint64_t bytes, struct err *e)
{
    char text[32];
    struct err ignored;

    str_fmt(text, sizeof(text), "%llu", (unsigned long long)bytes);
    if (g->v2) {
        group_put(g, "memory.swap.max", "0", &ignored); /* absent without swap */
        return group_put(g, "memory.max", text, e);
    }
    /* v1 insists on memory <= memory+swap at every moment: the outer one is raised first
     * if it is in the way. Kernels without swap accounting have no outer one. */
    if (group_put(g, "memory.limit_in_bytes", text, e) < 0) {
        group_put(g, "memory.memsw.limit_in_bytes", "-1", &ignored);
        if (group_put(g, "memory.limit_in_bytes", text, e) < 0)
            return -1;
    }
    group_put(g, "memory.memsw.limit_in_bytes", text, &ignored);
    return limit_sockets(g, bytes, e);
}

int cgroup_limit(struct sandbox *sb, struct err *e)
{
    static int (*const set[CTRL_COUNT])(const struct group *, uint64_t, struct err *) = {
        [CTRL_CPU] = limit_cpu, [CTRL_MEMORY] = limit_memory, [CTRL_PIDS] = limit_pids};
    const uint64_t value[CTRL_COUNT] = {[CTRL_CPU] = sb->rec.limits.cpu_milli,
                                        [CTRL_MEMORY] = sb->rec.limits.memory,
                                        [CTRL_PIDS] = sb->rec.limits.pids};
    const struct cgroups *all = &sb->k->cgroups;

    for (int c = 0; c < CTRL_COUNT; c++) {
        const struct group g = {ctrl_parent(all, (enum controller)c), sb->rec.id, all->v2_has[c]};

        if (g.parent >= 0 && set[c](&g, value[c], e) < 0)
            return err_wrap(e, "%s limit", ctrls[c].name);
    }
    return io_limit(sb, e);
}

int cgroup_up(struct sandbox *sb, struct err *e)
{
    int v2 = sb->k->cgroups.v2_fd;
    char run[64];

    str_fmt(run, sizeof(run), "%s/run", sb->rec.id);
    if ((mkdirat(v2, sb->rec.id, 0755) < 0 && errno != EEXIST) ||
        (mkdirat(v2, run, 0755) < 0 && errno != EEXIST))
        return err_sys(e, "make the cgroup");
    for (int c = 0; c < CTRL_COUNT; c++) {
        int v1 = sb->k->cgroups.v1_fd[c];

        if (v1 >= 0 && mkdirat(v1, sb->rec.id, 0755) < 0 && errno != EEXIST)
            return err_sys(e, "make %s cgroup", ctrls[c].name);
    }
    return cgroup_limit(sb, e);
}

int cgroup_ctrl_dir(const struct sandbox *sb, enum controller c)
{
    int parent = ctrl_parent(&sb->k->cgroups, c);

    return parent < 0 ? -1 : openat(parent, sb->rec.id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* v1 has one limit for memory and swap together, and that one stays as it is. */
void cgroup_swap(struct sandbox *sb, bool allowed)
{
    autofd int fd = sb->k->cgroups.v2_has[CTRL_MEMORY] ? cgroup_ctrl_dir(sb, CTRL_MEMORY) : -1;
    struct err ignored;

    if (fd >= 0)
        cgroup_put(fd, "memory.swap.max", allowed ? "max" : "0", &ignored);
}

int cgroup_birth_fd(struct sandbox *sb, struct err *e)
{
    int fd = cgroup_dir(sb, "");

    return fd < 0 ? err_sys(e, "open the cgroup") : fd;
}

/* Init makes processes in a child of `run`: for that the kernel wants write access to
 * cgroup.procs there and in the common parent, which is init's own. cgroup.kill and
 * cgroup.freeze of both stay root's. */
int cgroup_own(struct sandbox *sb, struct err *e)
{
    static const char *const files[] = {"cgroup.procs", "run", "run/cgroup.procs"};
    uid_t base = ids_base(sb);
    char path[96];

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        str_fmt(path, sizeof(path), "%s/%s", sb->rec.id, files[i]);
        if (fchownat(sb->k->cgroups.v2_fd, path, base, base, 0) < 0)
            return err_sys(e, "give %s to the sandbox", files[i]);
    }
    return 0;
}

/* The child writes its own number there, "0". To move another process, the kernel
 * stops all forks and exits of the host and waits for an RCU grace period: some 10 ms on a
 * busy machine, in which every other use of cgroups waits too. A lone thread that moves itself
 * needs none of that. The kernel checks the rights of the process that opened the file: ours. */
int cgroup_open_v1(struct sandbox *sb, int ret[CTRL_COUNT], struct err *e)
{
    char path[64];

    str_fmt(path, sizeof(path), "%s/tasks", sb->rec.id);
    for (int c = 0; c < CTRL_COUNT; c++) {
        ret[c] = -1;
        if (sb->k->cgroups.v1_fd[c] < 0)
            continue;
        ret[c] = openat(sb->k->cgroups.v1_fd[c], path, O_WRONLY | O_CLOEXEC);
        if (ret[c] < 0) {
            err_sys(e, "open the %s cgroup", ctrls[c].name);
            while (c-- > 0)
                drop_fd(&ret[c]);
            return -1;
        }
    }
    return 0;
}

uint32_t cgroup_v1(const struct keeper *k)
{
    uint32_t bits = 0;

    for (int c = 0; c < CTRL_COUNT; c++)
        if (k->cgroups.v1_fd[c] >= 0)
            bits |= 1u << c;
    return bits;
}

static bool is_no_group(int errnum)
{
    return errnum == ENOENT || errnum == ENODEV; /* ENODEV: it goes at this moment */
}

/* Only init is in that group: commands are born below `run`. */
int cgroup_init_pid(struct sandbox *sb, pid_t *ret, struct err *e)
{
    char path[64], text[64];
    unsigned pid = 0;

    str_fmt(path, sizeof(path), "%s/cgroup.procs", sb->rec.id);
    if (cgroup_get(sb->k->cgroups.v2_fd, path, text, sizeof(text)) < 0 && !is_no_group(errno))
        return err_sys(e, "read %s", path);
    *ret = sscanf(text, "%u", &pid) == 1 ? (pid_t)pid : 0;
    return 0;
}

/* Where the file cannot be opened (no fd is left, say) by init, which takes its pid
 * namespace with it: most who call this wait for its death and do not come again. */
void cgroup_kill(struct sandbox *sb)
{
    const struct group g = {.parent = sb->k->cgroups.v2_fd, .name = sb->rec.id};
    struct err e;

    if (group_put(&g, "cgroup.kill", "1", &e) == 0 || errno == ENOENT)
        return;
    if (sb->retries == 0) /* of many, while it goes down */
        log_warn("sandbox %s: %s", sb->rec.id, e.msg);
    if (sb->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, sb->pidfd, SIGKILL, NULL, 0);
}

bool cgroup_is_empty(struct sandbox *sb)
{
    char path[64], text[128];

    str_fmt(path, sizeof(path), "%s/cgroup.events", sb->rec.id);
    if (cgroup_get(sb->k->cgroups.v2_fd, path, text, sizeof(text)) < 0)
        return is_no_group(errno);
    return strstr(text, "populated 0") != NULL;
}

uint64_t cgroup_dirty(struct sandbox *sb)
{
    autofd int fd = cgroup_ctrl_dir(sb, CTRL_MEMORY);
    const char *key = sb->k->cgroups.v2_has[CTRL_MEMORY] ? "\nfile_dirty " : "\ntotal_dirty ";
    char text[8192], *at;

    if (cgroup_get(fd, "memory.stat", text, sizeof(text)) <= 0)
        return 0;
    at = strstr(text, key);
    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10);
}

int cgroup_oom_fd(struct sandbox *sb, struct err *e)
{
    const struct cgroups *g = &sb->k->cgroups;
    const char *name = g->v2_has[CTRL_MEMORY] ? "memory.events" : "memory.oom_control";
    int parent = ctrl_parent(g, CTRL_MEMORY), fd;
    char path[96];

    str_fmt(path, sizeof(path), "%s/%s", sb->rec.id, name);
    fd = openat(parent, parent < 0 ? "/dev/null" : path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, "%s", name) : fd;
}

uint64_t cgroup_oom_kills(struct sandbox *sb)
{
    struct err e;
    autofd int fd = cgroup_oom_fd(sb, &e);
    unsigned long long n = 0;
    char text[512] = "", *p;

    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
        return 0;
    p = strstr(text, "oom_kill ");
    return p != NULL && sscanf(p, "oom_kill %llu", &n) == 1 ? n : 0;
}

/* Init's groups: one per command, and below that of a session its own. A tenant cannot
 * make any. */
#define GROUPS_DEPTH 2

static void remove_children(int dfd, int depth)
{
    DIR *d = dfd < 0 || depth == 0 ? NULL : fdopendir(dup(dfd));

    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;) {
        autofd int child = -1;

        if (de->d_type != DT_DIR || de->d_name[0] == '.' ||
            unlinkat(dfd, de->d_name, AT_REMOVEDIR) == 0)
            continue;
        child = openat(dfd, de->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        remove_children(child, depth - 1);
        unlinkat(dfd, de->d_name, AT_REMOVEDIR);
    }
    if (d != NULL)
        closedir(d);
}

static int remove_group(int parent, const char *name)
{
    return unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? 1 : 0;
}

int cgroup_down(struct sandbox *sb)
{
    autofd int run = cgroup_dir(sb, "/run");
    char path[64];
    int left;

    freezer_close(sb);
    remove_children(run, GROUPS_DEPTH);
    str_fmt(path, sizeof(path), "%s/run", sb->rec.id);
    left =
        remove_group(sb->k->cgroups.v2_fd, path) + remove_group(sb->k->cgroups.v2_fd, sb->rec.id);
    for (int c = 0; c < CTRL_COUNT; c++)
        if (sb->k->cgroups.v1_fd[c] >= 0)
            left += remove_group(sb->k->cgroups.v1_fd[c], sb->rec.id);
    if (left > 0)
        cgroup_kill(sb);
    return left > 0;
}

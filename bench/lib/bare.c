/* bare.c - see bare.h. */
#include "bench/lib/bare.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own.h"
#include "bench/lib/bench.h"

#define NAMESPACES                                                                                 \
    (CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |     \
     CLONE_NEWCGROUP)
#define TEXT 512

/* The v2 group first; a host may have no v1 groups. */
static const char *const groups[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory",
                                     "/sys/fs/cgroup/pids", "/sys/fs/cgroup/cpu"};

static const struct {
    const char *type, *at, *options;
} mounts[] = {
    {"proc", "proc", NULL},
    {"sysfs", "sys", NULL},
    {"tmpfs", "dev", "mode=755"},
    {"devpts", "dev/pts", "newinstance,ptmxmode=0666"},
    {"tmpfs", "dev/shm", "mode=1777"},
    {"tmpfs", "dev/cove", "mode=711"},
    {"mqueue", "dev/mqueue", NULL},
};

static void group_name(char out[TEXT], size_t i, size_t worker)
{
    snprintf(out, TEXT, "%s/cove-bare-%d-%zu",
             access(groups[0], F_OK) == 0 ? groups[i] : "/sys/fs/cgroup", (int)getppid(), worker);
}

static size_t ngroups(void)
{
    return access(groups[0], F_OK) == 0 ? ARRAY_LEN(groups) : 1;
}

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        die("%s: %s", path, strerror(errno));
    close(fd);
}

static void see_inside(const char *dir, const char *root)
{
    char options[4 * TEXT];

    snprintf(options, sizeof(options), "lowerdir=%s,upperdir=%s/upper,workdir=%s/work", root, dir,
             dir);
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || chdir(dir) < 0 ||
        mount("bare", "root", "overlay", 0, options) < 0 || chdir("root") < 0)
        _exit(3);
    for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
        if (strncmp(mounts[i].at, "dev/", 4) == 0)
            mkdir(mounts[i].at, 0755);
        if (mount(mounts[i].type, mounts[i].at, mounts[i].type, 0, mounts[i].options) < 0)
            _exit(4);
    }
    if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
        _exit(5);
}

/* As init does for a command: a second process calls exec. */
static void run_true(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        execl("/bin/true", "true", NULL);
        _exit(6);
    }
    _exit(pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0 ? 7 : 0);
}

static void wait_for_maps(int fd)
{
    char go;

    if (read(fd, &go, 1) != 1)
        _exit(2);
}

static void live(const char *dir, const char *root, size_t worker)
{
    struct clone_args args = {.flags = NAMESPACES | CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
    char path[TEXT + 32];
    int go[2], status;
    long pid;

    for (size_t i = 0; i < ngroups(); i++) {
        group_name(path, i, worker);
        if (mkdir(path, 0755) < 0)
            die("%s: %s", path, strerror(errno));
    }
    group_name(path, 0, worker);
    args.cgroup = (uint64_t)open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (pipe2(go, O_CLOEXEC) < 0)
        die("pipe: %s", strerror(errno));
    pid = syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0) {
        wait_for_maps(go[0]);
        see_inside(dir, root);
        run_true();
    }
    if (pid < 0)
        die("clone: %s", strerror(errno));
    snprintf(path, sizeof(path), "/proc/%ld/uid_map", pid);
    write_text(path, "0 0 65536");
    snprintf(path, sizeof(path), "/proc/%ld/gid_map", pid);
    write_text(path, "0 0 65536");
    if (write(go[1], "g", 1) != 1 || waitpid((pid_t)pid, &status, 0) < 0 || status != 0)
        die("a bare life ended with %#x", status);
    close(go[0]);
    close(go[1]);
    close((int)args.cgroup);
    for (size_t i = 0; i < ngroups(); i++) {
        group_name(path, i, worker);
        if (rmdir(path) < 0)
            die("%s: %s", path, strerror(errno));
    }
}

static void work(const char *dir, const char *root, size_t worker, size_t lives)
{
    static const char *const parts[] = {"upper", "work", "root"};
    char mine[TEXT], path[TEXT + 16];

    snprintf(mine, sizeof(mine), "%s/%zu", dir, worker);
    if (mkdir(mine, 0700) < 0)
        die("%s: %s", mine, strerror(errno));
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        snprintf(path, sizeof(path), "%s/%s", mine, parts[i]);
        mkdir(path, 0755);
    }
    for (size_t i = 0; i < lives; i++)
        live(mine, root, worker);
    _exit(0);
}

static bool wait_all(size_t n)
{
    bool ok = true;
    int status;

    for (size_t i = 0; i < n; i++)
        ok = wait(&status) > 0 && status == 0 && ok;
    return ok;
}

double bare_rate(const char *root, size_t total, size_t workers)
{
    char dir[] = "/tmp/cove-bare.XXXXXX";
    const char *const remove[] = {"rm", "-rf", dir, NULL};
    double start, took;
    bool ok;

    if (mkdtemp(dir) == NULL)
        die("mkdtemp: %s", strerror(errno));
    start = now_ms();
    for (size_t i = 0; i < workers; i++) {
        pid_t pid = fork();

        if (pid == 0)
            work(dir, root, i, total / workers);
        if (pid < 0)
            die("fork: %s", strerror(errno));
    }
    ok = wait_all(workers);
    took = now_ms() - start;
    floor_run(remove);
    return ok ? (double)(total / workers * workers) * 1000 / took : 0;
}

/* spawn.c - see spawn.h. */
#include "init/run/spawn.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/own.h"
#include "base/str.h"
#include "init/run/mark.h"
#include "init/run/policy.h"
#include "wire/file.h"

#define STALL_SLICE_MS 50
#define PLACE_MAX (USER_TEXT_MAX + INIT_PATH_MAX)
#define HELPER_FD 3 /* cove-helper, or spawn_opts.extra, in the child */
#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* The child runs on a stack unknown to the sanitizer. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined")))

#define ARG_BYTES_MAX 131071u /* the kernel's limit for one string: 32 pages with its NUL */

/* Everything the child needs, prepared: it must not allocate. */
struct plan {
    const struct spawn_opts *o;
    char **argv; /* one free slot in front, for /bin/sh and a script without #! */
    char **env;
    const char *path; /* directories to search for argv[0], or NULL: it has a slash */
    const char *cwd;
    struct rlimit nofile;
    int helper;       /* an fd to execute instead of argv[0], or -1 */
    _Atomic(int) tid; /* cleared by the kernel when the child leaves our memory */
    int step, error;  /* the step that failed, and its errno; 0: none failed */
};

static long do_signals(const struct plan *p)
{
    sigset_t none;

    (void)p;
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL);
}

static long do_session(const struct plan *p)
{
    (void)p;
    return setsid();
}

static long do_stdio(const struct plan *p)
{
    for (int i = 0; i < 3; i++)
        if (dup2(p->o->stdio[i], i) < 0)
            return -1;
    if (p->helper >= 0 && dup3(p->helper, HELPER_FD, O_CLOEXEC) < 0)
        return -1;
    if (p->o->extra >= 0 && dup2(p->o->extra, HELPER_FD) < 0)
        return -1;
    /* Before the ids are dropped: a process of the same uid could otherwise reach our
     * fds through /proc/CHILD/fd. */
    return syscall(SYS_close_range, p->helper >= 0 || p->o->extra >= 0 ? HELPER_FD + 1u : 3u, ~0u,
                   0u);
}

static long do_tty(const struct plan *p)
{
    return p->o->tty ? ioctl(0, TIOCSCTTY, 0) : 0;
}

static long do_limits(const struct plan *p)
{
    return p->nofile.rlim_max == 0 ? 0 : setrlimit(RLIMIT_NOFILE, &p->nofile);
}

static long do_mark(const struct plan *p)
{
    return p->o->mark == 0 ? 0 : mark_set(0, p->o->mark);
}

static long do_groups(const struct plan *p)
{
    if (!init_policy.identities)
        return 0;
    return syscall(SYS_setgroups, p->o->user->ngroups, p->o->user->groups);
}

static long do_gid(const struct plan *p)
{
    gid_t gid = p->o->user->gid;

    if (!init_policy.identities)
        return 0;
    return syscall(SYS_setresgid, gid, gid, gid);
}

static long do_uid(const struct plan *p)
{
    uid_t uid = p->o->user->uid;

    if (!init_policy.identities)
        return 0;
    return syscall(SYS_setresuid, uid, uid, uid);
}

static long do_cwd(const struct plan *p)
{
    return chdir(p->cwd);
}

/* As execvp does: a text file without #! is run by the shell. */
IN_CHILD static void exec_at(const struct plan *p, const char *file)
{
    execve(file, p->argv + 1, p->env);
    if (errno != ENOEXEC)
        return;
    p->argv[0] = (char *)"/bin/sh";
    p->argv[1] = (char *)file;
    execve("/bin/sh", p->argv, p->env);
    errno = ENOEXEC;
}

/* EACCES of one directory is reported if no other has the program. */
IN_CHILD static long do_exec(const struct plan *p)
{
    const char *name = p->argv[1], *dir = p->path, *end;
    char file[INIT_PATH_MAX + 1];
    int seen = ENOENT;

    if (p->helper >= 0)
        return syscall(SYS_execveat, HELPER_FD, "", p->argv + 1, p->env, AT_EMPTY_PATH);
    if (dir == NULL) {
        exec_at(p, name);
        return -1;
    }
    for (;; dir = end + 1) {
        end = strchrnul(dir, ':');
        if ((size_t)(end - dir) + 1 + strlen(name) < sizeof(file)) {
            char *at = mempcpy(file, dir, (size_t)(end - dir));

            if (at > file)
                *at++ = '/';
            strcpy(at, name);
            exec_at(p, file);
            if (errno != ENOENT && errno != EACCES && errno != ENOTDIR && errno != ENAMETOOLONG)
                return -1;
            seen = errno == EACCES ? EACCES : seen;
        }
        if (*end == '\0')
            break;
    }
    errno = seen;
    return -1;
}

enum step {
    STEP_SIGNALS,
    STEP_SESSION,
    STEP_STDIO,
    STEP_TTY,
    STEP_LIMITS,
    STEP_MARK,
    STEP_GROUPS,
    STEP_GID,
    STEP_UID,
    STEP_CWD,
    STEP_EXEC,
    STEP_COUNT
};

/* clang-format off */
/* In order. The ids after everything that needs our privileges; the directory after the ids,
 * since the user must be allowed to enter it. */
static const struct {
    const char *name;
    long (*run)(const struct plan *p);
} steps[STEP_COUNT] = {
    [STEP_SIGNALS] = {"signal mask", do_signals},
    [STEP_SESSION] = {"session",     do_session},
    [STEP_STDIO]   = {"stdio",       do_stdio},
    [STEP_TTY]     = {"terminal",    do_tty},
    [STEP_LIMITS]  = {"open files",  do_limits},
    [STEP_MARK]    = {"mark",        do_mark},
    [STEP_GROUPS]  = {"groups",      do_groups},
    [STEP_GID]     = {"gid",         do_gid},
    [STEP_UID]     = {"uid",         do_uid},
    [STEP_CWD]     = {"cwd",         do_cwd},
    [STEP_EXEC]    = {"exec",        do_exec},
};
/* clang-format on */

IN_CHILD __attribute__((noreturn)) static void child(void *arg)
{
    struct plan *p = arg;

    for (int i = 0; i < STEP_COUNT; i++) {
        if (steps[i].run(p) < 0) {
            p->step = i;
            p->error = errno;
            break;
        }
    }
    for (;;)
        syscall(SYS_exit_group, 127);
}

#ifndef __x86_64__
#error "clone_to(): the change of stacks must be written for this machine"
#endif
/* The child begins in fn(arg) on the new stack, which has no frame to return to. Not
 * syscall(2): it would need its return address there. */
static long clone_to(struct clone_args *args, void (*fn)(void *), void *arg)
{
    register void (*r8)(void *) __asm__("r8") = fn;
    register void *r9 __asm__("r9") = arg;
    long ret;

    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r9, %%rdi\n\t"
                     "call *%%r8\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(ret)
                     : "a"(SYS_clone3), "D"(args), "S"(sizeof(*args)), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory", "cc");
    return ret;
}

/* Not CLONE_VFORK: we would wait for as long as the tenant SIGSTOPs the child (root inside
 * may), or the keeper freezes it. Here a stopped child is continued, and after SPAWN_STALL_MS
 * killed; its death, too, clears the word. */
static void await_child(struct plan *p, pid_t pid)
{
    struct timespec slice = {.tv_nsec = STALL_SLICE_MS * 1000000L};
    int waited = 0, tid;

    while ((tid = atomic_load(&p->tid)) != 0) {
        long ret = syscall(SYS_futex, &p->tid, FUTEX_WAIT, tid, &slice, NULL, 0);

        if (ret == 0 || atomic_load(&p->tid) == 0)
            continue;
        waited += STALL_SLICE_MS;
        kill(pid, waited < SPAWN_STALL_MS ? SIGCONT : SIGKILL);
    }
    if (waited >= SPAWN_STALL_MS && p->error == 0)
        p->error = EINTR;
}

static bool has_longer(char *const *strings, size_t max)
{
    while (*strings != NULL && strlen(*strings) <= max)
        strings++;
    return *strings != NULL;
}

static int too_big(const struct plan *p, struct err *e)
{
    const char *what = has_longer(p->argv + 1, ARG_BYTES_MAX) ? "an argument"
                       : has_longer(p->env, ARG_BYTES_MAX)    ? "a variable of env"
                                                              : NULL;

    if (what == NULL)
        return err_set(e, ERR_CANNOT_START,
                       "%s: argv and env together are longer than the kernel takes", p->argv[1]);
    return err_set(e, ERR_CANNOT_START,
                   "%s: %s is longer than the %u bytes that the kernel takes; pass it in a "
                   "file, or as stdin",
                   p->argv[1], what, ARG_BYTES_MAX);
}

/* e->sys tells a client what a shell would: the program was not found, or cannot be run. Of other
 * failures (no such directory, no such user) it is 0. */
static int say_exec_failed(const struct plan *p, struct err *e)
{
    const char *name = p->argv[1], *base = strrchr(name, '/');
    bool is_there = name[0] == '/' && access(name, F_OK) == 0;
    bool is_bash = strcmp(base != NULL ? base + 1 : name, "bash") == 0;

    if (p->error == ENOENT && is_there)
        err_set(
            e, ERR_CANNOT_START,
            "%s: its interpreter (the first line, or the dynamic loader) is not in this sandbox",
            name);
    else if (p->error == ENOENT)
        err_set(e, ERR_CANNOT_START, "%s: not found in this sandbox%s", name,
                is_bash ? "; its template has no bash" : "");
    else if (p->error == ENOEXEC)
        err_set(e, ERR_CANNOT_START, "%s: exec format error", name);
    else if (p->error == E2BIG)
        too_big(p, e);
    else
        err_set(e, ERR_CANNOT_START, "%s: %s", name, strerror(p->error));
    e->sys = p->error == ENOENT && is_there ? ENOEXEC : p->error;
    return -1;
}

static int step_failed(const struct plan *p, struct err *e)
{
    if (p->error == EINTR)
        return err_set(e, ERR_CANNOT_START, "%s: killed before exec: it was stopped for %u ms",
                       p->argv[1], SPAWN_STALL_MS);
    if (p->step == STEP_EXEC)
        return say_exec_failed(p, e);
    if (p->step == STEP_CWD)
        return err_set(e, ERR_CANNOT_START, "cwd %s: %s", p->cwd, strerror(p->error));
    return err_set(e, ERR_CANNOT_START, "%s: %s", steps[p->step].name, strerror(p->error));
}

static int run_plan(struct spawner *s, struct plan *p, pid_t *ret, struct err *e)
{
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID |
                 (p->o->cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
        .parent_tid = (uintptr_t)&p->tid,
        .child_tid = (uintptr_t)&p->tid,
        .exit_signal = SIGCHLD,
        .stack = (uintptr_t)s->stack,
        .stack_size = SPAWN_STACK,
        .cgroup = p->o->cgroup_fd >= 0 ? (uint64_t)p->o->cgroup_fd : 0,
    };
    long pid = clone_to(&args, child, p);

    if (pid == -EAGAIN)
        return err_set(e, ERR_LIMIT, "start process: the sandbox's limit of processes is reached");
    if (pid == -ENOMEM)
        return err_set(e, ERR_UNAVAILABLE, "start process: out of memory");
    if (pid < 0) {
        errno = (int)-pid;
        return err_sys(e, "clone3 into a cgroup of this sandbox");
    }
    await_child(p, (pid_t)pid);
    if (p->error != 0)
        return step_failed(p, e);
    *ret = (pid_t)pid;
    return 0;
}

/* The pointers of a strv, with `before` and `after` free slots and a NULL. */
static char **pointers(const struct wire_strv *v, size_t before, size_t after)
{
    char **out = malloc((before + v->count + after + 1) * sizeof(*out)), *s;
    size_t n = before;
    uint32_t at = 0;

    if (out == NULL)
        return NULL;
    while ((s = (char *)wire_strv_next(v, &at)) != NULL)
        out[n++] = s;
    out[n] = NULL;
    return out;
}

static char *env_get(char **env, const char *name, size_t len)
{
    for (; *env != NULL; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

#define ENV_ADDED 5
#define ENV_ENTRY_MAX (USER_TEXT_MAX + 16)

/* From the user's entry in passwd, unless the client set them. */
static void add_user_env(char **env, const struct user *u, char text[ENV_ADDED][ENV_ENTRY_MAX])
{
    const struct {
        const char *name, *value;
    } want[ENV_ADDED - 1] = {
        {"HOME", u->home}, {"USER", u->name}, {"LOGNAME", u->name}, {"SHELL", u->shell}};
    size_t n = 0;

    while (env[n] != NULL)
        n++;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        if (want[i].value[0] == '\0' || env_get(env, want[i].name, strlen(want[i].name)) != NULL)
            continue;
        snprintf(text[i], ENV_ENTRY_MAX, "%s=%s", want[i].name, want[i].value);
        env[n++] = text[i];
        env[n] = NULL;
    }
}

/* cove-helper walks over mounts only where init opens files on them. */
static void tell_helper(char **env, char text[ENV_ENTRY_MAX])
{
    size_t n = 0;

    while (env[n] != NULL)
        n++;
    str_fmt(text, ENV_ENTRY_MAX, HELPER_MOUNTS "=1");
    env[n++] = text;
    env[n] = NULL;
}

/* "~" and "~/x" are the user's home, and in it. */
static const char *place_of(const struct spawn_opts *o, char *out)
{
    const char *cwd = o->cwd;

    if (cwd[0] == '\0')
        return "/";
    if (cwd[0] != '~' || (cwd[1] != '\0' && cwd[1] != '/'))
        return cwd;
    snprintf(out, PLACE_MAX, "%s%s", o->user->home, cwd + 1);
    return out;
}

int spawn(struct spawner *s, const struct spawn_opts *o, pid_t *ret, struct err *e)
{
    autofree char **argv = pointers(o->argv, 1, 0), **env = pointers(o->env, 0, ENV_ADDED);
    char user_env[ENV_ADDED][ENV_ENTRY_MAX], cwd[PLACE_MAX];
    struct plan p = {.o = o,
                     .argv = argv,
                     .env = env,
                     .cwd = place_of(o, cwd),
                     .helper = o->helper ? s->helper_fd : -1,
                     .nofile = {s->nofile, s->nofile}};

    if (argv == NULL || env == NULL)
        return err_set(e, ERR_UNAVAILABLE, "out of memory");
    if (argv[1] == NULL || argv[1][0] == '\0')
        return err_set(e, ERR_CANNOT_START, "start process: argv is empty");
    if (o->helper && s->helper_fd < 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "start the helper: this sandbox was started without one");
    add_user_env(env, o->user, user_env);
    if (o->helper && init_policy.mounts == 0)
        tell_helper(env, user_env[ENV_ADDED - 1]);
    if (strchr(argv[1], '/') == NULL) {
        p.path = env_get(env, "PATH", 4);
        p.path = p.path != NULL ? p.path : PATH_DEFAULT;
    }
    return run_plan(s, &p, ret, e);
}

int spawner_init(struct spawner *s, uint64_t nofile, struct err *e)
{
    struct rlimit most;

    s->stack = mmap(NULL, SPAWN_STACK, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
    if (s->stack == MAP_FAILED)
        return err_sys(e, "mmap a stack for children");
    s->nofile = nofile;
    s->helper_fd = -1;
    if (getrlimit(RLIMIT_NOFILE, &most) == 0 && nofile > most.rlim_max)
        s->nofile = most.rlim_max;
    return 0;
}

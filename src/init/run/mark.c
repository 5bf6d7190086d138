/* mark.c - see mark.h. */
#include "init/run/mark.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/own.h"
#include "base/str.h"

#define MARK_FIRST (1ull << 62) /* microseconds: 146,000 years */
#define NUMBER_BITS 24

static uint64_t top = MARK_FIRST, homes;

int marks_begin(struct err *e)
{
    struct rlimit now;

    if (getrlimit(RLIMIT_RTTIME, &now) < 0)
        return err_sys(e, "getrlimit RLIMIT_RTTIME");
    if (now.rlim_max < (1ull << (NUMBER_BITS + 8)))
        return err_set(e, ERR_UNSUPPORTED,
                       "RLIMIT_RTTIME is too low to mark processes with; start the server with "
                       "`ulimit -R unlimited`");
    if (now.rlim_max <= MARK_FIRST) /* inside another server of this kind */
        top = now.rlim_max;
    top &= ~((1ull << NUMBER_BITS) - 1);
    return 0;
}

uint64_t mark_new(void)
{
    return top - (++homes << NUMBER_BITS);
}

uint64_t mark_any(void)
{
    return top - 1;
}

/* Downwards: home H is (H - 2^24, H]. */
uint64_t mark_in(uint64_t mark, uint32_t n)
{
    return mark - n;
}

int mark_set(pid_t pid, uint64_t mark)
{
    struct rlimit to = {mark, mark};

    return (int)syscall(SYS_prlimit64, pid, RLIMIT_RTTIME, &to, NULL);
}

/* ---- looking for them ---- */

/* Another user's process, and we may not ask: its limits are also a file that everyone may read. */
static uint64_t read_limits(pid_t pid)
{
    static const char key[] = "Max realtime timeout";
    char path[32], text[2048], *at;
    autofd int fd = -1;
    uint64_t mark = 0;
    ssize_t n;

    str_fmt(path, sizeof(path), "/proc/%d/limits", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    at = strstr(text, key);
    if (at == NULL)
        return 0;
    at += sizeof(key) - 1;
    at += strspn(at, " ");
    at[strcspn(at, " \n")] = '\0';
    return str_u64(at, UINT64_MAX, &mark) == 0 ? mark : 0;
}

static uint64_t mark_of(pid_t pid)
{
    struct rlimit now;

    if (syscall(SYS_prlimit64, pid, RLIMIT_RTTIME, NULL, &now) == 0)
        return now.rlim_cur;
    return errno == EPERM ? read_limits(pid) : 0;
}

/* A process that has ended and waits to be reaped has no children and cannot be killed. */
static pid_t parent_of(pid_t pid, bool *ret_dead)
{
    char path[32], text[512], *at;
    autofd int fd = -1;
    ssize_t n;

    str_fmt(path, sizeof(path), "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    at = strrchr(text, ')');
    *ret_dead = at == NULL || at[1] == '\0' || at[2] == 'Z' || at[2] == 'X';
    return *ret_dead ? 0 : (pid_t)strtol(at + 3, NULL, 10);
}

struct seen {
    pid_t pid, parent;
    bool in;
};

struct scan {
    uint64_t low, high; /* marks in [low, high] */
    struct seen *all;   /* with `tree`: every process of the machine that may be ours */
    size_t n, room;
};

static bool has_mark(const struct scan *s, pid_t pid)
{
    uint64_t mark = mark_of(pid);

    return mark >= s->low && mark <= s->high;
}

static void note(struct scan *s, pid_t pid)
{
    bool dead;
    struct seen one = {.pid = pid, .parent = parent_of(pid, &dead)};

    if (dead)
        return;
    if (s->n == s->room) {
        size_t room = s->room * 2 + 64;
        struct seen *more = realloc(s->all, room * sizeof(*more));

        if (more == NULL)
            return; /* the next look finds it */
        s->all = more;
        s->room = room;
    }
    one.in = has_mark(s, pid);
    s->all[s->n++] = one;
}

static const struct seen *find(const struct scan *s, pid_t pid)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->all[i].pid == pid)
            return &s->all[i];
    return NULL;
}

/* Until no parent brings in another child. */
static void close_over(struct scan *s)
{
    bool more = true;

    while (more) {
        more = false;
        for (size_t i = 0; i < s->n; i++) {
            const struct seen *p = s->all[i].in ? NULL : find(s, s->all[i].parent);

            if (p != NULL && p->in)
                s->all[i].in = more = true;
        }
    }
}

/* All processes that we start, and all they start, are our children or below them. */
static bool has_no_child(void)
{
    char path[64], c;
    autofd int fd = -1;

    str_fmt(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, &c, 1) == 0;
}

static bool is_alive(pid_t pid)
{
    bool dead;

    parent_of(pid, &dead);
    return !dead;
}

bool mark_each(uint64_t mark, enum mark_what what, bool tree, bool (*fn)(void *arg, pid_t pid),
               void *arg)
{
    struct scan s = {.high = mark,
                     .low = what == MARK_ONE ? mark
                            : what == MARK_HOME
                                ? mark - MARK_NUMBERS_MAX + 1
                                : mark_in(top - (homes << NUMBER_BITS), MARK_NUMBERS_MAX - 1)};
    DIR *d = has_no_child() ? NULL : opendir("/proc");
    bool all = true;

    for (struct dirent *de; all && d != NULL && (de = readdir(d)) != NULL;) {
        uint64_t pid;

        if (str_u64(de->d_name, INT32_MAX, &pid) < 0 || (pid_t)pid == getpid())
            continue;
        if (tree)
            note(&s, (pid_t)pid);
        else if (has_mark(&s, (pid_t)pid) && is_alive((pid_t)pid))
            all = fn(arg, (pid_t)pid);
    }
    if (d != NULL)
        closedir(d);
    close_over(&s);
    for (size_t i = 0; all && i < s.n; i++)
        if (s.all[i].in)
            all = fn(arg, s.all[i].pid);
    free(s.all);
    return all;
}

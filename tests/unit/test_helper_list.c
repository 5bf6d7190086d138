/* Directories with more entries than a test should create: the answers of the kernel are faked
 * here. They are listed in a child process, since file_list() keeps static state. */
#include "unit.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "endless.h"
#include "helper/call/record.h"
#include "helper/files/files.h"
#include "helper/tree/walk.h"
#include "wire/file.h"

/* As list.c and walk.c have them. */
#define LIST_SORT_MAX 1000000u
#define LIST_TEXT_MAX (1u << 30)
#define NAMES_MAX (512u << 20)

#define DIR_PATH "/tmp"
#define DIGITS 7u
#define TB 1000000000000

static struct {
    size_t count; /* names in the directory: a number, filled up to */
    size_t len;
    size_t target; /* they are links to so many bytes; 0: files of the size of their number of TB */
    bool same;     /* all have number 0: in order, wherever in memory (endless.h) */
    size_t told;
} dir;

static void put_name(char *out, size_t i)
{
    for (size_t d = DIGITS; d-- > 0; i /= 10)
        out[d] = (char)('0' + i % 10);
    memset(out + DIGITS, 'n', dir.len - DIGITS);
    out[dir.len] = '\0';
}

static long tell_names(char *to, size_t room)
{
    const size_t each = (offsetof(struct dirent64, d_name) + dir.len + 1 + 7) & ~(size_t)7;
    size_t at = 0;

    for (; dir.told < dir.count && at + each <= room; at += each) {
        struct dirent64 *d = (void *)(to + at);

        d->d_reclen = (unsigned short)each;
        put_name(to + at + offsetof(struct dirent64, d_name), dir.same ? 0 : dir.told);
        dir.told++;
    }
    return (long)at;
}

/* Replacements for libc functions. */
long syscall(long number, ...)
{
    long (*libc)(long, ...);
    long a[6];
    va_list ap;

    va_start(ap, number);
    for (size_t i = 0; i < ARRAY_LEN(a); i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_getdents64)
        return tell_names((char *)a[1], (size_t)a[2]);
    *(void **)&libc = dlsym(RTLD_NEXT, "syscall");
    return libc(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int fstatat(int at, const char *restrict name, struct stat *restrict st, int flags)
{
    (void)at, (void)flags;
    *st = (struct stat){.st_mode = dir.target > 0 ? S_IFLNK : S_IFREG};
    for (size_t d = 0; d < DIGITS; d++)
        st->st_size = st->st_size * 10 + name[d] - '0';
    st->st_size *= TB;
    return 0;
}

ssize_t readlinkat(int at, const char *restrict name, char *restrict to, size_t room)
{
    size_t n = dir.target < room ? dir.target : room;

    (void)at, (void)name;
    memset(to, 't', n);
    return (ssize_t)n;
}

static void names_are(size_t count, size_t len, size_t target)
{
    dir.count = count;
    dir.len = len;
    dir.target = target;
    dir.same = false;
    dir.told = 0;
}

/* ---- their order ---- */

void __real_qsort(void *at, size_t n, size_t size, int (*compare)(const void *, const void *));
void __wrap_qsort(void *at, size_t n, size_t size, int (*compare)(const void *, const void *));

/* Sorting millions takes seconds, and our names are in order already. */
void __wrap_qsort(void *at, size_t n, size_t size, int (*compare)(const void *, const void *))
{
    const char *p = at;

    for (size_t i = 1; i < n; i++, p += size)
        if (compare(p, p + size) > 0) {
            __real_qsort(at, n, size, compare);
            return;
        }
}

/* ---- listing ---- */

static char said[8192]; /* on stdout, with a NUL after it... */
static size_t nsaid;
static char failed[512]; /* ...and on stderr */

static size_t take(int fd, char *to, size_t room)
{
    ssize_t n = pread(fd, to, room - 1, 0);

    CHECK(n >= 0);
    to[n] = '\0';
    close(fd);
    return (size_t)n;
}

/* The largest of them; the exit status. */
static int list_by_size(void)
{
    char words[][16] = {"path=" DIR_PATH, "sort=size", "reverse", "hidden", "limit=1"};
    char *argv[] = {words[0], words[1], words[2], words[3], words[4]};
    int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC), status;
    pid_t pid = fork();

    if (pid == 0) {
        dup2(out, STDOUT_FILENO);
        dup2(err, STDERR_FILENO);
        _exit(record_run(file_list, (int)ARRAY_LEN(argv), argv));
    }
    CHECK_INT(waitpid(pid, &status, 0), pid);
    nsaid = take(out, said, sizeof(said));
    take(err, failed, sizeof(failed));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool was_said(const char *text)
{
    return memmem(said, nsaid, text, strlen(text)) != NULL;
}

TEST(a_million_entries_are_sorted_by_size_and_one_more_is_refused)
{
    names_are(LIST_SORT_MAX, DIGITS, 0);
    CHECK_INT(list_by_size(), 0);
    CHECK_STR(failed, "");
    CHECK(was_said(DIR_PATH "/0999999"));
    CHECK(was_said("999999000000000000/0999999")); /* where the next page begins */

    names_are(LIST_SORT_MAX + 1, DIGITS, 0);
    CHECK_INT(list_by_size(), 1);
    CHECK_STR(failed, "E limit more than 1000000 entries: only sort=name is possible\n");
    CHECK_INT(nsaid, 0);
}

TEST(memory_for_paths_and_targets_is_limited)
{
    const size_t path = strlen(DIR_PATH "/") + DIGITS + 1, each = 4096;

    names_are(LIST_TEXT_MAX / each, DIGITS, each - path - 1);
    CHECK_INT(list_by_size(), 0);
    CHECK_STR(failed, "");
    CHECK(was_said(DIR_PATH "/0262143"));

    names_are(LIST_TEXT_MAX / each + 1, DIGITS, each - path - 1);
    CHECK_INT(list_by_size(), 1);
    CHECK_STR(failed, "E limit no memory for so many entries: only sort=name is possible\n");
    CHECK_INT(nsaid, 0);
}

TEST(the_longest_path_works_as_a_cursor)
{
    names_are(2, PATH_ROOM - 1 - strlen(DIR_PATH "/"), 0);
    CHECK_INT(list_by_size(), 0);
    CHECK_STR(failed, "");
    CHECK(was_said("1000000000000/0000001nnn"));
}

/* ---- the names themselves ---- */

static enum walk_next stop(void *arg, const struct walk_entry *w, struct err *e)
{
    (void)arg, (void)w, (void)e;
    return WALK_STOP;
}

static int walk(struct err *e)
{
    struct walk w = {.enter = stop, .skip = true};

    return walk_below(&w, open(DIR_PATH, O_RDONLY | O_DIRECTORY | O_CLOEXEC), DIR_PATH, e);
}

TEST(memory_for_the_names_of_one_directory_is_limited)
{
    struct err e = {0};

    names_are(NAMES_MAX / 256, 255, 0);
    dir.same = true;
    CHECK_INT(walk(&e), 1);
    CHECK_INT(dir.told, dir.count);

    names_are(NAMES_MAX / 256 + 1, 255, 0);
    dir.same = true;
    CHECK_INT(walk(&e), -1);
    CHECK_INT(e.kind, ERR_LIMIT);
    CHECK_STR(e.msg, DIR_PATH ": Cannot allocate memory");
}

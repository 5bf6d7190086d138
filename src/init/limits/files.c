/* files.c - see files.h. */
#include "init/limits/files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "base/str.h"
#include "init/limits/text.h"

#define SOON_MS 10 /* after an open: most readers have closed it */
#define SLOWER 4
#define SLOWEST_MS 1000 /* while a file stays open */

/* ---- what is in them ---- */

struct look {
    const struct limits_files *f;
    struct limits_cpu cpu;
};

static void put_meminfo(const struct look *l, struct buf *out)
{
    struct limits_memory m;

    limits_memory(l->f->source, &m);
    limits_meminfo(&m, out);
}

static void put_cpuinfo(const struct look *l, struct buf *out)
{
    char piece[4096], last = '\0';
    unsigned seen = 0;
    size_t used;
    off_t at = 0;
    ssize_t n;

    do {
        n = pread(l->f->cpuinfo_fd, piece, sizeof(piece), at);
        used = n <= 0 ? 0 : limits_paragraphs(piece, (size_t)n, l->cpu.count, &seen, &last);
        at += (off_t)used;
    } while (used > 0 && buf_add(out, piece, used) == 0);
}

static void put_stat(const struct look *l, struct buf *out)
{
    limits_stat(&l->cpu, (clock_real_ms() - l->cpu.up_ms) / 1000, out);
}

static void put_loadavg(const struct look *l, struct buf *out)
{
    autofd int fd = open("/proc/sys/kernel/ns_last_pid", O_RDONLY | O_CLOEXEC);
    char text[32];
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    text[n < 0 ? 0 : n] = '\0';
    limits_loadavg(&l->cpu, n > 0 ? strtoull(text, NULL, 10) : l->cpu.tasks, out);
}

static void put_uptime(const struct look *l, struct buf *out)
{
    limits_uptime(&l->cpu, out);
}

static void put_online(const struct look *l, struct buf *out)
{
    limits_online(l->cpu.count, out);
}

static const struct {
    const char *path;
    void (*put)(const struct look *l, struct buf *out);
} files[LIMITS_FILE_COUNT] = {
    [LIMITS_MEMINFO] = {"/proc/meminfo", put_meminfo},
    [LIMITS_CPUINFO] = {"/proc/cpuinfo", put_cpuinfo},
    [LIMITS_STAT] = {"/proc/stat", put_stat},
    [LIMITS_LOADAVG] = {"/proc/loadavg", put_loadavg},
    [LIMITS_UPTIME] = {"/proc/uptime", put_uptime},
    [LIMITS_ONLINE] = {"/sys/devices/system/cpu/online", put_online},
};

/* ---- on the loop ---- */

/* One write and then the new length: a reader meanwhile gets old text or new, seldom both. */
static void rewrite(struct limits_files *f, int i, const struct look *l)
{
    autobuf struct buf text = BUF_INIT(LIMITS_TEXT_MAX);

    files[i].put(l, &text);
    if (!text.failed && text.len > 0 && pwrite(f->fds[i], buf_data(&text), text.len, 0) > 0)
        if (ftruncate(f->fds[i], (off_t)text.len) < 0)
            return; /* out of memory inside: the rest of the old text stays */
}

static void look(struct limits_files *f, struct look *l)
{
    l->f = f;
    limits_cpu(f->source, f->load, &l->cpu);
}

static void on_timer(struct loop_timer *t)
{
    struct limits_files *f = CONTAINER_OF(t, struct limits_files, timer);
    bool open = false;
    struct look l;

    look(f, &l);
    for (int i = 0; i < LIMITS_FILE_COUNT; i++) {
        if (f->fds[i] < 0 || f->leased[i])
            continue;
        f->leased[i] = fcntl(f->fds[i], F_SETLEASE, F_WRLCK) == 0;
        if (f->leased[i])
            continue;
        rewrite(f, i, &l);
        open = true;
    }
    f->wait_ms = f->wait_ms * SLOWER > SLOWEST_MS ? SLOWEST_MS : f->wait_ms * SLOWER;
    if (open)
        loop_timer_set(f->loop, t, f->wait_ms, on_timer);
}

/* One signal may stand for several files, and anyone inside can send it. */
static void on_open(void *arg, int signo)
{
    struct limits_files *f = arg;
    bool looked = false;
    struct look l;

    (void)signo;
    for (int i = 0; i < LIMITS_FILE_COUNT; i++) {
        if (!f->leased[i] || fcntl(f->fds[i], F_GETLEASE) == F_WRLCK)
            continue;
        if (!looked)
            look(f, &l);
        looked = true;
        rewrite(f, i, &l);
        fcntl(f->fds[i], F_SETLEASE, F_UNLCK);
        f->leased[i] = false;
    }
    if (!looked)
        return;
    f->wait_ms = SOON_MS;
    loop_timer_set(f->loop, &f->timer, f->wait_ms, on_timer);
}

int limits_files_start(struct limits_files *f, struct loop *loop,
                       const struct limits_source *source, struct limits_load *load, struct err *e)
{
    f->loop = loop;
    f->source = source;
    f->load = load;
    f->wait_ms = SOON_MS;
    if (loop_signal(loop, SIGIO, on_open, f, e) < 0)
        return -1;
    on_timer(&f->timer);
    return 0;
}

/* ---- the boot ---- */

/* The mount of a file that is in no directory any more. */
static int cover(int *fd, const char *name, const char *path, struct err *e)
{
    *fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (*fd < 0)
        return err_sys(e, "make a file for %s", path);
    if (mount(name, path, NULL, MS_BIND, NULL) < 0)
        drop_fd(fd); /* a kernel without that file */
    else if (mount(NULL, path, NULL,
                   MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return err_sys(e, "make %s read-only", path);
    return unlink(name) < 0 ? err_sys(e, "unlink the file for %s", path) : 0;
}

int limits_files_cover(struct limits_files *f, const char *dir, struct err *e)
{
    char name[64];

    f->cpuinfo_fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    str_fmt(name, sizeof(name), "%s/limits", dir);
    for (int i = 0; i < LIMITS_FILE_COUNT; i++)
        if (cover(&f->fds[i], name, files[i].path, e) < 0)
            return -1;
    return 0;
}

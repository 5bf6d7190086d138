/* forwarding.c - see forwarding.h.
 *
 * /run/cove/net-INODE, for the inode of the daemon's network namespace (sysctls are per namespace,
 * /run need not be), is changed under a lock. It has lines `if NAME` for interfaces that were
 * turned on and `tag TAG` for daemons that need them. The kernel gives the inode of a namespace that
 * is gone to a new one; a line `ns COOKIE` tells the two apart. */
#include "keeper/forwarding.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/own.h"
#include "base/str.h"

#define LEDGER_MAX (16u << 10)

struct ledger {
    char path[64];
    int fd;
    uint64_t ns; /* cookie of our namespace; 0: the kernel is older than 5.14 */
    struct forwarding on;
    struct buf tags; /* lines of other daemons */
    bool mine;       /* our line was there */
    bool empty;      /* the file is new, or the last one was lost */
};

int forwarding_set(const char *family, const char *dev, const char *name, const char *value)
{
    char path[160];
    autofd int fd = -1;

    str_fmt(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", family, dev, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, value, strlen(value)) < 0 ? -1 : 0;
}

static bool is_on(const char *dev)
{
    char path[160], value = 0;
    autofd int fd = -1;

    str_fmt(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/forwarding", dev);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, &value, 1) == 1 && value == '1';
}

void forwarding_add(struct forwarding *f, const char *dev)
{
    for (size_t i = 0; i < f->ndevs; i++)
        if (strcmp(f->devs[i], dev) == 0)
            return;
    if (f->ndevs < FORWARDING_DEVS && strlen(dev) < IFNAMSIZ)
        str_fmt(f->devs[f->ndevs++], IFNAMSIZ, "%.15s", dev);
}

/* ---- the file ---- */

/* No two namespaces have the same cookie until the host is booted again. */
static uint64_t netns_cookie(void)
{
    autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint64_t cookie = 0;
    socklen_t len = sizeof(cookie);

    return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len) == 0 ? cookie : 0;
}

static bool is_of_other_namespace(const struct ledger *m, const char *text)
{
    char first[32];

    str_fmt(first, sizeof(first), "ns %llu\n", (unsigned long long)m->ns);
    return m->ns != 0 && strncmp(text, "ns ", 3) == 0 && strncmp(text, first, strlen(first)) != 0;
}

static int ledger_open(struct ledger *m, const char *tag, int flags, struct err *e)
{
    char text[LEDGER_MAX], *rest = text, *line;
    struct stat st;
    ssize_t n;

    *m = (struct ledger){.fd = -1, .ns = netns_cookie(), .tags = BUF_INIT(LEDGER_MAX)};
    if (stat("/proc/self/ns/net", &st) < 0)
        return err_sys(e, "read our network namespace");
    if ((flags & O_CREAT) != 0 && mkdir("/run/cove", 0755) < 0 && errno != EEXIST)
        return err_sys(e, "make /run/cove");
    str_fmt(m->path, sizeof(m->path), "/run/cove/net-%llu", (unsigned long long)st.st_ino);
    do { /* again if the last one to lock it has removed it */
        drop_fd(&m->fd);
        m->fd = open(m->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
        if (m->fd < 0 || flock(m->fd, LOCK_EX) < 0 || fstat(m->fd, &st) < 0)
            return err_sys(e, "lock %s", m->path);
    } while (st.st_nlink == 0);
    n = pread(m->fd, text, sizeof(text) - 1, 0);
    if (n < 0)
        return err_sys(e, "read %s", m->path);
    text[n] = '\0';
    if (is_of_other_namespace(m, text))
        text[n = 0] = '\0';
    m->empty = n == 0;
    while ((line = strsep(&rest, "\n")) != NULL) {
        if (strncmp(line, "if ", 3) == 0)
            forwarding_add(&m->on, line + 3);
        else if (strncmp(line, "tag ", 4) == 0 && strcmp(line + 4, tag) == 0)
            m->mine = true;
        else if (strncmp(line, "tag ", 4) == 0)
            buf_addf(&m->tags, "%s\n", line);
    }
    return 0;
}

static void ledger_close(struct ledger *m)
{
    drop_fd(&m->fd);
    buf_free(&m->tags);
}

static int ledger_write(struct ledger *m, const char *tag, struct err *e)
{
    autobuf struct buf out = BUF_INIT(LEDGER_MAX);

    if (m->ns != 0)
        buf_addf(&out, "ns %llu\n", (unsigned long long)m->ns);
    for (size_t i = 0; i < m->on.ndevs; i++)
        buf_addf(&out, "if %s\n", m->on.devs[i]);
    buf_add(&out, buf_data(&m->tags), m->tags.len);
    if (tag != NULL)
        buf_addf(&out, "tag %s\n", tag);
    if (out.failed || ftruncate(m->fd, 0) < 0 ||
        pwrite(m->fd, buf_data(&out), out.len, 0) != (ssize_t)out.len)
        return err_sys(e, "write %s", m->path);
    return 0;
}

/* ---- taking and giving back ---- */

/* A daemon with a table needs forwarding, and the interfaces that it guards were off before. */
static void recover(struct ledger *m, const struct forwarding_tables *t)
{
    if (!m->empty || (!t->ours && t->nothers == 0))
        return;
    log_warn("network: %s is lost; the interfaces to restore are read from the firewall", m->path);
    for (size_t i = 0; i < t->guarded.ndevs; i++)
        forwarding_add(&m->on, t->guarded.devs[i]);
    for (size_t i = 0; i < t->nothers; i++)
        buf_addf(&m->tags, "tag %s\n", t->others[i]);
}

int forwarding_start(const struct forwarding *f, struct err *e)
{
    for (size_t i = 0; i < f->ndevs; i++)
        if (forwarding_set("ipv4", f->devs[i], "forwarding", "1") < 0 && errno != ENOENT)
            return err_sys(e, "turn on forwarding of %s", f->devs[i]);
    return 0;
}

int forwarding_take(struct forwarding *f, const struct forwarding_tables *t, const char *tag,
                    struct err *e)
{
    struct ledger m;
    int r = ledger_open(&m, tag, O_CREAT, e);

    if (r == 0) {
        recover(&m, t);
        for (size_t i = 0; i < f->ndevs; i++)
            if (!is_on(f->devs[i]))
                forwarding_add(&m.on, f->devs[i]);
        /* Written before it is done: after a kill every change is on record. */
        r = ledger_write(&m, tag, e);
        if (r == 0)
            *f = m.on;
    }
    ledger_close(&m);
    return r;
}

bool forwarding_has(const char *tag)
{
    struct ledger m;
    struct err e;
    bool has = ledger_open(&m, tag, 0, &e) == 0 && m.mine;

    ledger_close(&m);
    return has;
}

void forwarding_give_back(const struct forwarding_tables *t, const char *tag)
{
    struct ledger m;
    struct err e;

    if (ledger_open(&m, tag, O_CREAT, &e) < 0) {
        log_warn("%s", e.msg);
    } else {
        recover(&m, t);
        if (m.tags.len > 0) {
            if (ledger_write(&m, NULL, &e) < 0)
                log_warn("%s", e.msg);
        } else {
            for (size_t i = 0; i < m.on.ndevs; i++)
                forwarding_set("ipv4", m.on.devs[i], "forwarding", "0");
            unlink(m.path);
        }
    }
    ledger_close(&m);
}

/* snapshot.c - see snapshot.h: the table, and what stands on what. */
#include "keeper/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/compat.h"
#include "keeper/disk_ways.h"
#include "keeper/file.h"
#include "keeper/image.h"
#include "keeper/pool.h"
#include "keeper/template.h"

#define SNAPSHOT_MAGIC 0x636f7673u
#define SNAPSHOT_VERSION 1u
#define DISK_PREFIX ".snap-"

static uint64_t sum_of(const struct snapshot_record *r)
{
    return file_sum(r, offsetof(struct snapshot_record, sum));
}

struct snapshot *snapshot_any(struct keeper *k, const char *id)
{
    struct snapshot *s;

    LIST_EACH (&k->snapshots->all, s, struct snapshot, link)
        if (strcmp(s->rec.id, id) == 0)
            return s;
    return NULL;
}

struct snapshot *snapshot_find(struct keeper *k, const char *id)
{
    struct snapshot *s = snapshot_any(k, id);

    return s != NULL && (s->rec.flags & SNAPSHOT_WANTED) ? s : NULL;
}

bool snapshot_is_version(const char *version)
{
    return version[0] == '@';
}

void snapshot_version(const struct snapshot *s, char out[64])
{
    str_fmt(out, 64, "@%s", s->rec.id);
}

void snapshot_disk(const char *id, char *out, size_t room)
{
    str_fmt(out, room, DISK_PREFIX "%s", id);
}

const char *snapshot_bottom(struct keeper *k, const char *version)
{
    while (snapshot_is_version(version)) {
        struct snapshot *s = snapshot_any(k, version + 1);

        if (s == NULL)
            return "";
        version = s->rec.under;
    }
    return version;
}

/* ---- layers ---- */

static int upper_open(struct keeper *k, const struct snapshot *s, struct err *e)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    char path[64];
    int fd;

    str_fmt(path, sizeof(path), DISK_PREFIX "%s/upper", s->rec.id);
    fd = (int)syscall(SYS_openat2, k->disk.fd, path, &how, sizeof(how));
    return fd < 0 ? err_sys(e, "the layer of snapshot %s", s->rec.id) : fd;
}

int snapshot_layers(struct keeper *k, const char *version, int fds[ROOT_LAYERS_MAX], struct err *e)
{
    unsigned n = 0;
    int below = -1;

    while (snapshot_is_version(version)) {
        struct snapshot *s = snapshot_any(k, version + 1);

        if (s != NULL && (s->rec.flags & SNAPSHOT_BARE)) {
            version = s->rec.under;
            continue;
        }
        if (s == NULL || n == SNAPSHOT_STACK_MAX)
            fds[n] = err_set(e, ERR_INTERNAL, "there is no snapshot %s", version + 1);
        else
            fds[n] = upper_open(k, s, e);
        if (fds[n] < 0)
            break;
        n++;
        version = s->rec.under;
    }
    if (!snapshot_is_version(version))
        below = template_layers(k, version, fds + n, e);
    if (below >= 0)
        return (int)n + below;
    while (n > 0)
        drop_fd(&fds[--n]);
    return -1;
}

/* ---- who stands where ---- */

void snapshot_stand(const struct snapshot *s, struct sandbox *sb)
{
    if (s->rec.stack < SNAPSHOT_STACK_MAX) {
        snapshot_version(s, sb->rec.layer);
        return;
    }
    snapshot_disk(s->rec.id, sb->clone_of, sizeof(sb->clone_of));
    str_fmt(sb->rec.layer, sizeof(sb->rec.layer), "%s", s->rec.under);
}

unsigned snapshot_users(struct keeper *k, const char *version)
{
    struct snapshot *s;
    unsigned n = 0;

    LIST_EACH (&k->snapshots->all, s, struct snapshot, link)
        n += strcmp(s->rec.under, version) == 0;
    return n;
}

uint64_t snapshot_held(struct keeper *k, const char *sandbox)
{
    struct snapshot *s;
    uint64_t most = 0;

    LIST_EACH (&k->snapshots->all, s, struct snapshot, link)
        if (strcmp(s->rec.source, sandbox) == 0 && s->rec.bytes > most)
            most = s->rec.bytes;
    return most;
}

static bool is_needed(struct keeper *k, const struct snapshot *s)
{
    char version[64];

    snapshot_version(s, version);
    return (s->rec.flags & SNAPSHOT_WANTED) || snapshot_users(k, version) > 0 ||
           pool_standing(k, version, true) > 0;
}

/* ---- the records ---- */

static int save(struct keeper *k, struct snapshot *s, struct err *e)
{
    s->rec.sum = sum_of(&s->rec);
    return file_put(k->snapshots->fd, s->rec.id, &s->rec, sizeof(s->rec), e);
}

int snapshot_keep(struct keeper *k, struct snapshot *s, struct err *e)
{
    s->rec.magic = SNAPSHOT_MAGIC;
    s->rec.version = SNAPSHOT_VERSION;
    s->rec.flags |= SNAPSHOT_WANTED;
    if (save(k, s, e) < 0)
        return -1;
    list_add_tail(&k->snapshots->all, &s->link);
    k->snapshots->n++;
    return 0;
}

int snapshot_adopt(struct keeper *k, const char *id, uint64_t bytes, struct err *e)
{
    autofree struct snapshot *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    if (k->snapshots->n >= k->config.snapshots)
        return err_set(e, ERR_LIMIT, "there are %zu snapshots, and there may be no more",
                       k->snapshots->n);
    list_init(&s->link);
    str_fmt(s->rec.id, sizeof(s->rec.id), "%s", id);
    str_fmt(s->rec.under, sizeof(s->rec.under), "%s", id);
    str_fmt(s->rec.template, sizeof(s->rec.template), "imported");
    s->rec.flags = SNAPSHOT_BARE;
    s->rec.stack = 1;
    s->rec.bytes = bytes;
    s->rec.created_ms = clock_real_ms();
    if (snapshot_keep(k, s, e) < 0)
        return -1;
    take_ptr(&s);
    return 0;
}

static bool is_valid(const struct snapshot_record *r, const char *id)
{
    return r->magic == SNAPSHOT_MAGIC && r->version == SNAPSHOT_VERSION && r->sum == sum_of(r) &&
           strcmp(r->id, id) == 0 && r->stack >= 1 && r->stack <= SNAPSHOT_STACK_MAX;
}

static int load(struct keeper *k, const char *id, struct err *e)
{
    autofree struct snapshot *s = calloc(1, sizeof(*s));
    ssize_t n;

    if (s == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    n = file_get(k->snapshots->fd, id, &s->rec, sizeof(s->rec), e);
    if (n < 0)
        return -1;
    if (n != (ssize_t)sizeof(s->rec) || !is_valid(&s->rec, id)) {
        log_warn("the record of snapshot %s is damaged: passed over", id);
        return 0;
    }
    list_add_tail(&k->snapshots->all, &s->link);
    k->snapshots->n++;
    take_ptr(&s);
    return 0;
}

int snapshot_open(struct keeper *k, struct err *e)
{
    struct snapshots *all = k->snapshots = calloc(1, sizeof(*all));
    DIR *d;
    int r = 0;

    if (all == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    list_init(&all->all);
    if (mkdirat(k->dir_fd, "snapshots", 0700) < 0 && errno != EEXIST)
        return err_sys(e, "make snapshots");
    all->fd = openat(k->dir_fd, "snapshots", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    d = all->fd < 0 ? NULL : fdopendir(dup(all->fd));
    if (d == NULL)
        return err_sys(e, "open snapshots");
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;)
        if (de->d_name[0] != '.' && id_is_valid(de->d_name, ID_LEN))
            r = load(k, de->d_name, e);
    closedir(d);
    return r;
}

/* ---- removing ---- */

static void drop(struct keeper *k, struct snapshot *s)
{
    struct map_node *n = map_get(&k->sandboxes, s->rec.source);
    struct sandbox *source = n == NULL ? NULL : CONTAINER_OF(n, struct sandbox, by_id);
    char under[sizeof(s->rec.under)], disk[64];
    bool bare = s->rec.flags & SNAPSHOT_BARE;
    struct err e;

    log_info("removing snapshot %s", s->rec.id);
    memcpy(under, s->rec.under, sizeof(under));
    snapshot_disk(s->rec.id, disk, sizeof(disk));
    if (unlinkat(k->snapshots->fd, s->rec.id, 0) < 0 && errno != ENOENT)
        log_warn("remove snapshot %s: %s", s->rec.id, strerror(errno));
    list_del(&s->link);
    k->snapshots->n--;
    free(s);
    if (!bare)
        disk_remove(k, disk);
    if (source != NULL && source->rec.phase != PHASE_DYING && disk_limit(source, &e) < 0)
        log_warn("%s", e.msg);
    image_left(k, under);
}

int snapshot_forget(struct keeper *k, const char *id, struct err *e)
{
    struct snapshot *s = snapshot_find(k, id);

    if (s == NULL)
        return err_set(e, ERR_NOT_FOUND, "no snapshot %s", id);
    s->rec.flags &= ~(uint32_t)SNAPSHOT_WANTED;
    if (save(k, s, e) < 0) {
        s->rec.flags |= SNAPSHOT_WANTED;
        return -1;
    }
    if (!is_needed(k, s))
        drop(k, s);
    return 0;
}

void snapshot_left(struct keeper *k, const char *version)
{
    struct snapshot *s = snapshot_any(k, version + 1);

    if (s != NULL && !is_needed(k, s))
        drop(k, s);
}

/* A disk whose record is damaged may still be what something stands on. */
static bool is_kept(struct keeper *k, const char *disk)
{
    const char *id = disk + strlen(DISK_PREFIX);
    char version[64];

    snprintf(version, sizeof(version), "@%.60s", id);
    return snapshot_any(k, id) != NULL || snapshot_users(k, version) > 0 ||
           pool_standing(k, version, true) > 0;
}

/* Dropping one may free those that it stands on, and so change the list. */
void snapshot_sweep(struct keeper *k)
{
    int copy = openat(k->disk.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = copy < 0 ? NULL : fdopendir(copy);
    struct snapshot *s;
    bool again = true;

    while (again) {
        again = false;
        LIST_EACH (&k->snapshots->all, s, struct snapshot, link)
            if (!is_needed(k, s)) {
                drop(k, s);
                again = true;
                break;
            }
    }
    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;)
        if (strncmp(de->d_name, DISK_PREFIX, strlen(DISK_PREFIX)) == 0 && !is_kept(k, de->d_name))
            disk_remove(k, de->d_name);
    if (d != NULL)
        closedir(d);
}

void snapshot_message(const struct snapshot *s, struct keeper_snap *ret)
{
    *ret = (struct keeper_snap){.id = s->rec.id,
                                .sandbox = s->rec.source,
                                .template = s->rec.template,
                                .bytes = s->rec.bytes,
                                .created_ms = s->rec.created_ms};
}

/* snapshot.c - see snapshot.h: the snapshots in memory and on disk, what uses them, and deleting
 * those that nothing uses (delete_unused). */
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
#include "keeper/disk.h"
#include "keeper/file.h"
#include "keeper/image.h"
#include "keeper/life.h"
#include "keeper/quarantine.h"
#include "keeper/sealed.h"
#include "keeper/template.h"

#define DISK_PREFIX ".snap-"
#define RECORD_MAX 1024u /* bytes of a record */

/* clang-format off */
#define SNAPSHOT_FIELDS(F, S) \
    F(S, STR, id, 31) F(S, STR, under, 63) F(S, STR, template, 63) F(S, STR, source, 31) F(S, U32, stack, 0) \
    F(S, U32, flags, 0) F(S, U64, bytes, 0) F(S, U64, created_ms, 0)
/* clang-format on */

struct snapshot_file {
    SNAPSHOT_FIELDS(WIRE_MEMBER, snapshot_file)
};
static const struct wire_field fields[] = {SNAPSHOT_FIELDS(WIRE_FIELD, snapshot_file)};
static const struct wire_msg message = {"snapshot", 0, sizeof(struct snapshot_file), fields,
                                        ARRAY_LEN(fields)};
static const struct sealed_kind kind = {
    .magic = 0x73766f63u /* "covs" */, .version = 2, .fields = &message};

/* As release 0.1.0 wrote it. */
struct snapshot_v1 {
    uint32_t magic, version;
    char id[32], under[64], template[64], source[32];
    uint32_t stack, flags;
    uint64_t bytes, created_ms;
    uint64_t sum; /* of everything above */
};
#define V1_MAGIC 0x636f7673u

struct snapshot *snapshot_find_any(struct keeper *k, const char *id)
{
    struct snapshot *s;

    LIST_EACH (&k->snapshots->all, s, struct snapshot, link)
        if (strcmp(s->rec.id, id) == 0)
            return s;
    return NULL;
}

struct snapshot *snapshot_find(struct keeper *k, const char *id)
{
    struct snapshot *s = snapshot_find_any(k, id);

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
        struct snapshot *s = snapshot_find_any(k, version + 1);

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
    return fd < 0 ? err_sys(e, "open the layer of snapshot %s", s->rec.id) : fd;
}

int snapshot_layers(struct keeper *k, const char *version, int fds[ROOT_LAYERS_MAX], struct err *e)
{
    unsigned n = 0;
    int below = -1;

    while (snapshot_is_version(version)) {
        struct snapshot *s = snapshot_find_any(k, version + 1);

        if (s != NULL && (s->rec.flags & SNAPSHOT_BARE)) {
            version = s->rec.under;
            continue;
        }
        if (s == NULL || n == SNAPSHOT_STACK_MAX)
            fds[n] = err_set(e, ERR_INTERNAL, "snapshot %s does not exist", version + 1);
        else if (s->damaged)
            fds[n] = err_set(e, ERR_CONFLICT, "snapshot %s is damaged", version + 1);
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

/* ---- users ---- */

void snapshot_use(const struct snapshot *s, struct sandbox *sb)
{
    if (s->rec.stack < SNAPSHOT_STACK_MAX) {
        snapshot_version(s, sb->rec.layer);
        return;
    }
    snapshot_disk(s->rec.id, sb->clone_of, sizeof(sb->clone_of));
    str_fmt(sb->rec.layer, sizeof(sb->rec.layer), "%s", s->rec.under);
}

/* Nothing tells what a damaged one is on: while it is used, it may be on any version. */
static bool may_use(struct keeper *k, const struct snapshot *s, const char *version)
{
    char own[64];

    if (!s->damaged)
        return strcmp(s->rec.under, version) == 0;
    snapshot_version(s, own);
    return strcmp(own, version) != 0 &&
           ((s->rec.flags & SNAPSHOT_WANTED) || sandbox_users(k, own, true) > 0);
}

unsigned snapshot_users(struct keeper *k, const char *version)
{
    struct snapshot *s;
    unsigned n = 0;

    LIST_EACH (&k->snapshots->all, s, struct snapshot, link)
        n += may_use(k, s, version);
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

static bool is_used(struct keeper *k, const struct snapshot *s)
{
    char version[64];

    snapshot_version(s, version);
    return (s->rec.flags & SNAPSHOT_WANTED) || snapshot_users(k, version) > 0 ||
           sandbox_users(k, version, true) > 0;
}

/* ---- the records ---- */

static int save(struct keeper *k, struct snapshot *s, struct err *e)
{
    const struct snapshot_record *r = &s->rec;
    struct snapshot_file f = {.id = r->id,
                              .under = r->under,
                              .template = r->template,
                              .source = r->source,
                              .stack = r->stack,
                              .flags = r->flags,
                              .bytes = r->bytes,
                              .created_ms = r->created_ms};
    autobuf struct buf out = BUF_INIT(RECORD_MAX);

    if (sealed_put(&out, &kind, &f, e) < 0)
        return -1;
    return file_put_twins(k->snapshots->fd, r->id, buf_data(&out), out.len, e);
}

int snapshot_told(struct keeper *k, const char *id, struct err *e)
{
    struct snapshot *s = snapshot_find(k, id);

    if (s == NULL || s->damaged || (s->rec.flags & SNAPSHOT_TOLD) != 0)
        return 0;
    s->rec.flags |= SNAPSHOT_TOLD;
    return save(k, s, e);
}

int snapshot_keep(struct keeper *k, struct snapshot *s, struct err *e)
{
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
        return err_set(e, ERR_LIMIT, "there are %zu snapshots, the limit (setting `snapshots`)",
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

#define TAKE(to, from) str_fmt(to, sizeof(to), "%s", from)

static int take_v1(struct snapshot *s, const char *p, size_t n)
{
    struct snapshot_v1 v;

    if (n != sizeof(v))
        return 0;
    memcpy(&v, p, sizeof(v));
    if (v.magic != V1_MAGIC || v.version != 1 ||
        v.sum != file_sum(&v, offsetof(struct snapshot_v1, sum)) || strcmp(v.id, s->rec.id) != 0)
        return 0;
    TAKE(s->rec.under, v.under);
    TAKE(s->rec.template, v.template);
    TAKE(s->rec.source, v.source);
    s->rec.stack = v.stack;
    s->rec.flags = v.flags;
    s->rec.bytes = v.bytes;
    s->rec.created_ms = v.created_ms;
    return 1;
}

/* As file_get_twins() wants it; s->rec.id is the one that is expected. */
static int take(void *arg, const char *p, size_t n, struct err *e)
{
    struct snapshot *s = arg;
    struct snapshot_file f;
    enum sealed how = sealed_get(&kind, p, n, &f);

    if (how == SEALED_NEWER)
        return err_set(e, ERR_UNSUPPORTED,
                       "snapshot %s was written by a newer release of Cove; start that release",
                       s->rec.id);
    if (how == SEALED_DAMAGED)
        return take_v1(s, p, n);
    if (strcmp(f.id, s->rec.id) != 0)
        return 0;
    TAKE(s->rec.under, f.under);
    TAKE(s->rec.template, f.template);
    TAKE(s->rec.source, f.source);
    s->rec.stack = f.stack;
    s->rec.flags = f.flags;
    s->rec.bytes = f.bytes;
    s->rec.created_ms = f.created_ms;
    return 1;
}

static int load(struct keeper *k, const char *id, struct err *e)
{
    autofree struct snapshot *s = calloc(1, sizeof(*s));
    char room[RECORD_MAX], note[64];
    int r;

    if (s == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    str_fmt(s->rec.id, sizeof(s->rec.id), "%s", id);
    r = file_get_twins(k->snapshots->fd, id, room, sizeof(room), take, s, e);
    if (r < 0)
        return -1;
    if (r == 0 || s->rec.stack < 1 || s->rec.stack > SNAPSHOT_STACK_MAX) {
        s->damaged = true;
        s->rec.flags = SNAPSHOT_WANTED;
        str_fmt(note, sizeof(note), "snapshot-%s", id);
        quarantine_note(k, note, "both copies of its record are damaged or missing");
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
    all->fd = dir_open(k->dir_fd, "snapshots", 0700, e);
    if (all->fd < 0)
        return -1;
    d = dir_list(all->fd);
    if (d == NULL)
        return err_sys(e, "read DIR/snapshots");
    for (struct dirent *de; r == 0 && (de = readdir(d)) != NULL;) {
        const char *id = file_twin_name(all->fd, de->d_name);

        if (id != NULL && id_is_valid(id, ID_LEN))
            r = load(k, id, e);
    }
    closedir(d);
    return r;
}

/* ---- deleting ---- */

static void remove_snapshot(struct keeper *k, struct snapshot *s)
{
    struct map_node *n = map_get(&k->sandboxes, s->rec.source);
    struct sandbox *source = n == NULL ? NULL : CONTAINER_OF(n, struct sandbox, by_id);
    char under[sizeof(s->rec.under)], disk[64], note[64];
    bool bare = s->rec.flags & SNAPSHOT_BARE;
    struct err e;

    log_info("removing snapshot %s", s->rec.id);
    memcpy(under, s->rec.under, sizeof(under));
    snapshot_disk(s->rec.id, disk, sizeof(disk));
    if (file_remove_twins(k->snapshots->fd, s->rec.id, &e) < 0)
        log_warn("%s", e.msg);
    if (s->damaged) {
        str_fmt(note, sizeof(note), "snapshot-%s", s->rec.id);
        quarantine_forget(k, note);
    }
    list_del(&s->link);
    k->snapshots->n--;
    free(s);
    if (!bare)
        disk_remove(k, disk);
    if (source != NULL && source->rec.phase != PHASE_DYING && disk_limit(source, &e) < 0)
        log_warn("%s", e.msg);
    image_released(k, under);
}

static void delete_unused(struct keeper *k);

int snapshot_delete(struct keeper *k, const char *id, struct err *e)
{
    struct snapshot *s = snapshot_find(k, id);

    if (s == NULL)
        return err_set(e, ERR_NOT_FOUND, "no snapshot %s", id);
    s->rec.flags &= ~(uint32_t)SNAPSHOT_WANTED;
    if (!s->damaged && save(k, s, e) < 0) {
        s->rec.flags |= SNAPSHOT_WANTED;
        return -1;
    }
    delete_unused(k); /* a damaged one may have counted as a user of others */
    return 0;
}

void snapshot_released(struct keeper *k, const char *version)
{
    struct snapshot *s = version[0] == '\0' ? NULL : snapshot_find_any(k, version + 1);

    if (version[0] == '\0')
        delete_unused(k);
    else if (s != NULL && !is_used(k, s))
        remove_snapshot(k, s);
}

/* Removing one may release the one below it, and so change the list. */
static void delete_unused(struct keeper *k)
{
    struct snapshot *s;
    bool again = true;

    while (again) {
        again = false;
        LIST_EACH (&k->snapshots->all, s, struct snapshot, link)
            if (!is_used(k, s)) {
                remove_snapshot(k, s);
                again = true;
                break;
            }
    }
}

/* A disk without a record is damage, or left by a kill: the front knows whether a client was told
 * of it. Runs before anything is removed, since disks go later than their records. */
void snapshot_sweep(struct keeper *k)
{
    DIR *d = dir_list(k->disk.fd);
    struct err e;

    for (struct dirent *de; d != NULL && (de = readdir(d)) != NULL;) {
        const char *id = de->d_name + strlen(DISK_PREFIX);

        if (strncmp(de->d_name, DISK_PREFIX, strlen(DISK_PREFIX)) == 0 && id_is_valid(id, ID_LEN) &&
            snapshot_find_any(k, id) == NULL && load(k, id, &e) < 0)
            log_warn("snapshot %s has a disk and no record; not loaded: %s", id, e.msg);
    }
    if (d != NULL)
        closedir(d);
    delete_unused(k);
}

void snapshot_message(const struct snapshot *s, struct keeper_snap *ret)
{
    *ret = (struct keeper_snap){.id = s->rec.id,
                                .sandbox = s->rec.source,
                                .template = s->rec.template,
                                .bytes = s->rec.bytes,
                                .created_ms = s->rec.created_ms,
                                .damaged = s->damaged,
                                .told = (s->rec.flags & SNAPSHOT_TOLD) != 0};
}

/* record.c - the records of sandboxes: DIR/sandboxes, an array with a place per sandbox.
 *
 * A place is within one page and one pwrite replaces it, so a reader never sees half of a record;
 * the sum detects the rest. Places are made once, filled with zeros, and used again: making a
 * record durable then writes one block of data, and no directory, inode or journal of the file
 * system.
 *
 * A damaged record loses no data: its place stays as it is, and its sandbox is put into quarantine
 * (quarantine.c). A record of a newer release ends the start. */
#include "keeper/life/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "keeper/ops.h"
#include "keeper/quarantine.h"
#include "keeper/stages.h"
#include "loop/job.h"

#define ID_AT (SEALED_HEAD + sizeof(uint32_t)) /* the first field is the id */
#define COPY "record"                          /* in the directory of a sandbox's disk */

struct record_file {
    RECORD_FIELDS(WIRE_MEMBER, record_file)
};
static const struct wire_field fields[] = {RECORD_FIELDS(WIRE_FIELD, record_file)};
static const struct wire_msg message = {"record", 0, sizeof(struct record_file), fields,
                                        ARRAY_LEN(fields)};
static const struct sealed_kind kind = {RECORD_MAGIC, RECORD_VERSION, &message};

/* ---- one record ---- */

int record_stage(const char *name)
{
    for (uint32_t n = 0; n <= STAGE_COUNT; n++)
        if (strcmp(stage_name(n), name) == 0)
            return (int)n;
    return -1;
}

int record_encode(const struct record *r, struct buf *out, struct err *e)
{
    struct record_file f = {
        .id = r->id,
        .phase = phase_name((enum phase)r->phase),
        .stage = stage_name(r->stage),
        .boot_id = r->boot_id,
        .host_boot = r->host_boot,
        .template = r->template,
        .layer = r->layer,
        .reason = r->reason,
        .range = r->range,
        .network = r->network,
        .limits = {(const char *)&r->limits, sizeof(r->limits)},
        .created_ms = r->created_ms,
        .told = r->told,
        .relaxed = r->relaxed,
        .unsynced = r->unsynced,
        .lost_ms = r->lost_ms,
    };

    return sealed_put(out, &kind, &f, e);
}

#define TAKE(to, from) str_fmt(to, sizeof(to), "%s", from)

/* A phase or stage that this release does not know is one of a newer release. */
static enum sealed decode(const char *p, size_t n, struct record *ret)
{
    struct record_file f;
    enum sealed s = sealed_get(&kind, p, n, &f);
    int stage, phase = 0;

    if (s != SEALED_WHOLE)
        return s;
    stage = record_stage(f.stage);
    while (phase < PHASE_COUNT && strcmp(phase_name((enum phase)phase), f.phase) != 0)
        phase++;
    if (stage < 0 || phase == PHASE_COUNT)
        return SEALED_NEWER;
    if (!id_is_valid(f.id, sizeof(ret->id) - 1))
        return SEALED_DAMAGED;
    *ret = (struct record){
        .phase = (uint32_t)phase,
        .stage = (uint32_t)stage,
        .range = f.range,
        .network = f.network,
        .created_ms = f.created_ms,
        .told = f.told,
        .relaxed = f.relaxed,
        .lost_ms = f.lost_ms,
    };
    memcpy(&ret->limits, f.limits.p,
           f.limits.len < sizeof(ret->limits) ? f.limits.len : sizeof(ret->limits));
    TAKE(ret->id, f.id);
    TAKE(ret->boot_id, f.boot_id);
    TAKE(ret->host_boot, f.host_boot);
    TAKE(ret->template, f.template);
    TAKE(ret->layer, f.layer);
    TAKE(ret->reason, f.reason);
    TAKE(ret->unsynced, f.unsynced);
    return SEALED_WHOLE;
}

/* ---- places ---- */

static const char empty[RECORD_PLACE];

static off_t where(uint32_t place)
{
    return (off_t)place * RECORD_PLACE;
}

static int more_places(struct records *r, struct err *e)
{
    static const char zeros[RECORD_PLACE * RECORD_PLACES_MORE];
    uint32_t *free_places;

    if (r->n + RECORD_PLACES_MORE > RECORD_PLACES_MAX)
        return err_set(e, ERR_UNAVAILABLE, "there are %u records, the maximum", r->n);
    free_places = realloc(r->free, (r->n + RECORD_PLACES_MORE) * sizeof(r->free[0]));
    if (free_places == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    r->free = free_places;
    if (pwrite(r->fd, zeros, sizeof(zeros), where(r->n)) != (ssize_t)sizeof(zeros) ||
        fsync(r->fd) < 0)
        return err_sys(e, "extend DIR/" RECORD_STORE);
    for (uint32_t i = RECORD_PLACES_MORE; i > 0; i--)
        r->free[r->nfree++] = r->n + i - 1;
    r->n += RECORD_PLACES_MORE;
    return 0;
}

static int read_place(const struct records *r, uint32_t place, char out[RECORD_PLACE],
                      struct err *e)
{
    if (pread(r->fd, out, RECORD_PLACE, where(place)) != (ssize_t)RECORD_PLACE)
        return err_sys(e, "read record %u", place);
    return 0;
}

/* Extends a truncated file to whole places. */
int records_open(struct keeper *k, struct err *e)
{
    struct records *r = &k->records;
    off_t batch = where(RECORD_PLACES_MORE);
    char place[RECORD_PLACE];
    struct record rec;
    struct stat st;

    if (records_upgrade(k, e) < 0)
        return err_wrap(e, "upgrade %s", k->dir);
    r->fd = openat(k->dir_fd, RECORD_STORE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (r->fd < 0 || fstat(r->fd, &st) < 0)
        return err_sys(e, "open %s/" RECORD_STORE, k->dir);
    if (st.st_size > where(RECORD_PLACES_MAX))
        return err_set(e, ERR_UNSUPPORTED, "%s/" RECORD_STORE " has %lld bytes: not a file of Cove",
                       k->dir, (long long)st.st_size);
    r->n = (uint32_t)((st.st_size + batch - 1) / batch) * RECORD_PLACES_MORE;
    if (ftruncate(r->fd, where(r->n)) < 0)
        return err_sys(e, "extend DIR/" RECORD_STORE);
    r->free = calloc(r->n + 1, sizeof(r->free[0]));
    if (r->free == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    for (uint32_t i = 0; i < r->n; i++) {
        if (read_place(r, i, place, e) < 0)
            return -1;
        if (decode(place, sizeof(place), &rec) == SEALED_NEWER)
            return err_set(e, ERR_UNSUPPORTED,
                           "%s/" RECORD_STORE
                           " was written by a newer release of Cove (this one reads "
                           "records up to version %u); start that release",
                           k->dir, RECORD_VERSION);
    }
    return 0;
}

static void free_place(struct records *r, uint32_t place)
{
    if (pwrite(r->fd, empty, sizeof(empty), where(place)) != (ssize_t)sizeof(empty))
        log_warn("clear record %u: %s", place, strerror(errno));
    r->free[r->nfree++] = place;
}

int record_save(struct sandbox *sb, bool durable, struct err *e)
{
    autobuf struct buf out = BUF_INIT(RECORD_PLACE);
    struct records *r = &sb->k->records;

    if (sb->place == PLACE_NONE) {
        if (r->nfree == 0 && more_places(r, e) < 0)
            return -1;
        sb->place = r->free[--r->nfree];
    }
    if (record_encode(&sb->rec, &out, e) < 0)
        return -1;
    if (pwrite(r->fd, buf_data(&out), out.len, where(sb->place)) != (ssize_t)out.len)
        return err_sys(e, "write record %s", sb->rec.id);
    if (durable && fdatasync(r->fd) < 0)
        return err_sys(e, "sync record %s", sb->rec.id);
    return 0;
}

void record_remove(struct sandbox *sb)
{
    if (sb->place != PLACE_NONE)
        free_place(&sb->k->records, sb->place);
    sb->place = PLACE_NONE;
}

/* ---- flushing, before a front tells a client ---- */

struct flush {
    struct job job;
    struct keeper *k;
    uint32_t seq, front;
    struct err e;
    bool failed;
};

static void flush_run(struct job *w)
{
    struct flush *f = CONTAINER_OF(w, struct flush, job);

    f->failed = fdatasync(f->k->records.fd) < 0 && err_sys(&f->e, "flush records") < 0;
}

static void flush_done(struct job *w)
{
    struct flush *f = CONTAINER_OF(w, struct flush, job);

    if (f->front != f->k->nfronts)
        ; /* the front that asked is gone */
    else if (f->failed)
        link_fail(f->k, f->seq, &f->e);
    else
        link_send(f->k, KEEPER_OK, f->seq, &(struct keeper_ok){0});
    free(f);
}

int records_flush(struct keeper *k, uint32_t seq, struct err *e)
{
    struct flush *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    *f = (struct flush){{.lane = JOB_FLUSH}, k, seq, k->nfronts};
    job_start(k->loop, &f->job, flush_run, flush_done);
    return 0;
}

/* ---- at start ---- */

void records_drop(struct keeper *k, uint32_t place)
{
    char name[32], bytes[RECORD_PLACE];
    struct err e;

    str_fmt(name, sizeof(name), "record-%u", place);
    if (read_place(&k->records, place, bytes, &e) < 0 ||
        quarantine_keep(k, name, bytes, sizeof(bytes), &e) < 0)
        log_warn("move record %u to DIR/damaged: %s", place, e.msg);
    else
        free_place(&k->records, place);
}

/* A damaged record may still have its id. */
static bool has_id(const char *place, struct record *ret)
{
    *ret = (struct record){0};
    memcpy(ret->id, place + ID_AT, ID_LEN);
    return strlen(ret->id) == ID_LEN && id_is_valid(ret->id, ID_LEN);
}

int records_each(struct keeper *k, record_fn *fn, struct err *e)
{
    char bytes[RECORD_PLACE];
    struct record rec;

    for (uint32_t place = k->records.n; place-- > 0;) {
        int r = read_place(&k->records, place, bytes, e);

        if (r == 0 && memcmp(bytes, empty, sizeof(empty)) == 0) {
            k->records.free[k->records.nfree++] = place;
        } else if (r == 0 && decode(bytes, sizeof(bytes), &rec) == SEALED_WHOLE) {
            r = fn(k, &rec, place, true, e);
        } else if (r == 0 && has_id(bytes, &rec)) {
            r = fn(k, &rec, place, false, e);
        } else if (r == 0) {
            log_error("record %u is damaged and names no sandbox", place);
            records_drop(k, place);
        }
        if (r < 0)
            return -1;
    }
    return 0;
}

/* ---- the copy on the disk ---- */

static void copy_path(const char *id, char out[64])
{
    str_fmt(out, 64, "%.32s/" COPY, id);
}

void record_copy(struct sandbox *sb, bool only_if_missing)
{
    autobuf struct buf out = BUF_INIT(RECORD_PLACE);
    autofd int fd = -1;
    char path[64];
    struct err e;

    copy_path(sb->rec.id, path);
    if (only_if_missing && faccessat(sb->k->disk.fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return;
    fd = openat(sb->k->disk.fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && record_encode(&sb->rec, &out, &e) == 0 &&
        write(fd, buf_data(&out), out.len) == (ssize_t)out.len)
        return;
    log_warn("sandbox %s: write the copy of its record: %s", sb->rec.id, strerror(errno));
    unlinkat(sb->k->disk.fd, path, 0);
}

int record_copy_read(struct keeper *k, const char *id, struct record *ret)
{
    char path[64], bytes[RECORD_PLACE];
    autofd int fd = -1;
    ssize_t n;

    copy_path(id, path);
    fd = openat(k->disk.fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));
    if (n < 0 || decode(bytes, (size_t)n, ret) != SEALED_WHOLE || strcmp(ret->id, id) != 0)
        return -1;
    return 0;
}

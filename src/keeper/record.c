/* record.c - what exists, on disk: DIR/records, an array with a place per sandbox.
 *
 * A place lies within one page and one pwrite replaces it, so a reader never sees half
 * of a record; the sum catches the rest. Places are made once, written with zeros, and
 * used again: to make a record durable is then one block of data, and no directory, no
 * inode and no journal of the file system below has a part in it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/id.h"
#include "base/log.h"
#include "keeper/file.h"
#include "keeper/host.h"
#include "keeper/ops.h"
#include "keeper/worker.h"

#define PLACE 1024u     /* bytes of one */
#define PLACES_MORE 64u /* made at one time */
#define PLACES_MAX 65536u

_Static_assert(sizeof(struct record) <= PLACE, "a record fits its place");

static uint64_t record_sum(const struct record *r)
{
    return file_sum(r, offsetof(struct record, sum));
}

static off_t where(uint32_t place)
{
    return (off_t)place * PLACE;
}

static int more_places(struct records *r, struct err *e)
{
    static const char zeros[PLACE * PLACES_MORE];
    uint32_t *free_places;

    if (r->n + PLACES_MORE > PLACES_MAX)
        return err_set(e, ERR_UNAVAILABLE, "there are %u records, and no more places", r->n);
    free_places = realloc(r->free, (r->n + PLACES_MORE) * sizeof(r->free[0]));
    if (free_places == NULL)
        return err_set(e, ERR_INTERNAL, "out of memory");
    r->free = free_places;
    if (pwrite(r->fd, zeros, sizeof(zeros), where(r->n)) != (ssize_t)sizeof(zeros) ||
        fsync(r->fd) < 0)
        return err_sys(e, "make places for records");
    for (uint32_t i = PLACES_MORE; i > 0; i--)
        r->free[r->nfree++] = r->n + i - 1;
    r->n += PLACES_MORE;
    return 0;
}

/* A file that was cut is whole again after this, with an empty place at its end. */
int records_open(struct keeper *k, struct err *e)
{
    struct records *r = &k->records;
    struct stat st;

    r->fd = openat(k->dir_fd, "records", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (r->fd < 0 && errno == EISDIR)
        return err_set(e, ERR_UNSUPPORTED, "%s holds sandboxes of an older Cove", k->dir);
    if (r->fd < 0 || fstat(r->fd, &st) < 0)
        return err_sys(e, "open records");
    if (st.st_size > where(PLACES_MAX))
        return err_set(e, ERR_UNSUPPORTED, "%s/records has %lld bytes: not one of ours", k->dir,
                       (long long)st.st_size);
    r->n = (uint32_t)((st.st_size + where(PLACES_MORE) - 1) / where(PLACES_MORE)) * PLACES_MORE;
    if (ftruncate(r->fd, where(r->n)) < 0)
        return err_sys(e, "make records whole");
    r->free = calloc(r->n + 1, sizeof(r->free[0]));
    return r->free == NULL ? err_set(e, ERR_INTERNAL, "out of memory") : 0;
}

static int take_place(struct sandbox *sb, struct err *e)
{
    struct records *r = &sb->k->records;

    if (sb->place != PLACE_NONE)
        return 0;
    if (r->nfree == 0 && more_places(r, e) < 0)
        return -1;
    sb->place = r->free[--r->nfree];
    return 0;
}

int record_save(struct sandbox *sb, bool durable, struct err *e)
{
    int fd = sb->k->records.fd;

    if (take_place(sb, e) < 0)
        return -1;
    sb->rec.sum = record_sum(&sb->rec);
    if (pwrite(fd, &sb->rec, sizeof(sb->rec), where(sb->place)) != (ssize_t)sizeof(sb->rec))
        return err_sys(e, "write record %s", sb->rec.id);
    if (durable && fdatasync(fd) < 0)
        return err_sys(e, "sync record %s", sb->rec.id);
    return 0;
}

/* ---- for a front that is about to tell a client ---- */

struct flush {
    struct work work;
    struct keeper *k;
    uint32_t seq, front;
    struct err e;
    bool failed;
};

static void flush_run(struct work *w)
{
    struct flush *f = CONTAINER_OF(w, struct flush, work);

    f->failed = fdatasync(f->k->records.fd) < 0 && err_sys(&f->e, "flush records") < 0;
}

static void flush_done(struct work *w)
{
    struct flush *f = CONTAINER_OF(w, struct flush, work);

    if (f->front != f->k->nfronts)
        ; /* whoever asked is gone */
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
    *f = (struct flush){{.run = flush_run, .done = flush_done}, k, seq, k->nfronts};
    worker_give_short(&f->work);
    return 0;
}

/* ---- places again ---- */

static void free_place(struct records *r, uint32_t place)
{
    static const struct record nobody;

    if (pwrite(r->fd, &nobody, sizeof(nobody), where(place)) != (ssize_t)sizeof(nobody))
        log_warn("clear record %u: %s", place, strerror(errno));
    r->free[r->nfree++] = place;
}

void record_remove(struct sandbox *sb)
{
    if (sb->place != PLACE_NONE)
        free_place(&sb->k->records, sb->place);
    sb->place = PLACE_NONE;
}

static bool is_whole(const struct record *r)
{
    return r->magic == RECORD_MAGIC && r->version == RECORD_VERSION && r->sum == record_sum(r) &&
           r->phase < PHASE_COUNT && r->stage <= stage_count;
}

/* Of a damaged one the name may be left. */
static bool has_name(struct record *r)
{
    r->id[sizeof(r->id) - 1] = '\0';
    return id_is_valid(r->id, sizeof(r->id) - 1);
}

static int read_place(struct keeper *k, uint32_t place, record_fn *fn, struct err *e)
{
    static const struct record nobody;
    struct record rec;

    if (pread(k->records.fd, &rec, sizeof(rec), where(place)) != (ssize_t)sizeof(rec))
        return err_sys(e, "read record %u", place);
    if (memcmp(&rec, &nobody, sizeof(rec)) != 0 && has_name(&rec))
        return fn(k, &rec, place, is_whole(&rec), e);
    if (memcmp(&rec, &nobody, sizeof(rec)) != 0)
        log_error("record %u is damaged and names nobody", place);
    free_place(&k->records, place);
    return 0;
}

int records_each(struct keeper *k, record_fn *fn, struct err *e)
{
    for (uint32_t place = k->records.n; place > 0; place--)
        if (read_place(k, place - 1, fn, e) < 0)
            return -1;
    return 0;
}

void records_drop(struct keeper *k, uint32_t place)
{
    free_place(&k->records, place);
}

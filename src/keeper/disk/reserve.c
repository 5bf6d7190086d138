/* reserve.c - see disk_reserve.h. The loop decides, from counters that are read in microseconds.
 * Jobs that may block run one at a time in a thread of their own, so growing never meets shrinking.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/log.h"
#include "keeper/host.h"

#define MiB(n) ((unsigned long long)(n) >> 20)

#define LEAST_FS (256ull << 20) /* minimum of btrfs */
/* Low water: an eighth of the reserve, within these bounds. The rest is for running sandboxes and
 * for metadata: deleting writes too. */
#define LOW_MIN (16ull << 20)
#define LOW_MAX (512ull << 20)
#define META_LOW (4ull << 20)
#define META_WANT_MAX (256ull << 20)
#define META_NARROW (32ull << 20) /* mkfs makes 8 MiB, and data could take all the rest */
#define SHRINK_SLACK (64ull << 20)
#define MOVE_MORE (128ull << 20)

/* The next look comes before the fastest writer, 4 GB/s, could have used the free space. */
#define WRITER_PER_MS (4ull << 20)
#define LOOK_MIN_MS 20
#define LOOK_MAX_MS 1000
#define LOOK_FRESH_NS (20ull * 1000000) /* a create uses a look that is at most this old */
#define QUIET_LOOKS 8                   /* looks without a change: then one a second is enough... */
#define QUIET_FREE (2ull << 30)         /* ...if so much is free */
#define IDLE_LOOKS 60 /* looks without a change and a running sandbox: no more looks */
/* Moving chunks costs 0.12 s per 64 MiB of data, and a tenant's sync took 0.1 s instead of 0.05
 * meanwhile: so only after a while, one step a second, and ever more rarely after steps that gained
 * nothing. */
#define SHRINK_AFTER_NS 3000000000ull
#define SHRINK_WAIT_S 5
#define SHRINK_FAILS_MAX 7

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t clamp(uint64_t v, uint64_t low, uint64_t high)
{
    return v < low ? low : min64(v, high);
}

static uint64_t grains(uint64_t v)
{
    return (v + SPACE_GRAIN - 1) & ~(SPACE_GRAIN - 1);
}

uint64_t reserve_wanted(uint64_t setting, uint64_t pool)
{
    uint64_t want = setting != 0 ? setting : clamp(pool / 8, RESERVE_MIN, RESERVE_MAX);

    return min64(want < RESERVE_LEAST ? RESERVE_LEAST : want, pool);
}

static uint64_t meta_want(const struct reserve *r)
{
    return min64(r->want / 8, META_WANT_MAX);
}

int reserve_first_size(struct keeper *k, uint64_t pool, uint64_t *ret, struct err *e)
{
    uint64_t want = reserve_wanted(k->config.disk_reserve, pool);
    uint64_t room = space_host_room(k->dir_fd) & ~(SPACE_GRAIN - 1);
    uint64_t size = min64(clamp(grains(want + want / 4), LEAST_FS, pool), pool);

    *ret = min64(size, room);
    if (*ret >= min64(LEAST_FS, pool))
        return 0;
    return err_set(e, ERR_DISK_FULL,
                   "make the image of the disks: %s has %llu MiB to give and %llu are needed; "
                   "make room there, or choose another --state",
                   k->dir, MiB(room), MiB(LEAST_FS));
}

/* ---- deciding ---- */

static bool has_room_to_grow(const struct reserve *r)
{
    return r->seen.size < r->max &&
           space_host_room(r->at.image_fd) >= min64(SPACE_GRAIN, r->max - r->seen.size);
}

static bool is_low(const struct reserve *r)
{
    if (!r->backed && space_host_room(r->at.image_fd) == 0)
        return true;
    if (r->seen.free >= r->low && r->seen.meta_free >= META_LOW)
        return false;
    return r->stuck || !has_room_to_grow(r);
}

static bool wants_more(const struct reserve *r)
{
    return r->seen.size < r->max && (r->seen.free < r->want || r->seen.meta_free < meta_want(r));
}

/* A quarter more than the reserve, so that a steady writer costs few commits. */
static uint64_t size_to_grow_to(const struct reserve *r)
{
    const struct space *s = &r->seen;
    uint64_t goal = r->want + r->want / 4, more = s->free < goal ? goal - s->free : 0;
    uint64_t meta = s->meta_free < meta_want(r) ? 2 * meta_want(r) - s->meta_free : 0;

    return min64(s->size + grains(more > meta ? more : meta), r->max);
}

static uint64_t size_to_shrink_to(const struct reserve *r)
{
    const struct space *s = &r->seen;

    if (s->free <= 2 * r->want + SHRINK_SLACK || s->size <= LEAST_FS)
        return s->size;
    return clamp(s->size - (s->free - r->want - r->want / 2), LEAST_FS, s->size);
}

static void run_job(struct job *w)
{
    struct reserve_job *j = CONTAINER_OF(w, struct reserve_job, job);
    int r = -1;

    switch (j->task) {
    case RESERVE_GROW:
        r = space_grow(&j->at, j->from, j->to, &j->size);
        break;
    case RESERVE_SHRINK:
        r = space_shrink(&j->at, j->from, j->to, j->keep, 2 * j->keep + MOVE_MORE, &j->size);
        break;
    case RESERVE_BACK:
        r = space_back(&j->at, j->from);
        break;
    }
    j->sys = r < 0 ? errno : 0;
}

/* Logs the beginning and the end once, however often growing is tried. */
static void tell(struct reserve *r, bool stuck, int sys)
{
    if (stuck && !r->told)
        log_warn("disks: no room to grow from %llu of %llu MiB (%s): creates are refused once less "
                 "than %llu MiB are free; make room on the file system of the state directory",
                 MiB(r->seen.size), MiB(r->max), strerror(sys), MiB(r->low));
    if (!stuck && r->told)
        log_info("disks: the host has room again");
    r->told = stuck;
}

/* True if no job could back more of btrfs. */
static bool is_settled(const struct reserve *r)
{
    return r->backed || r->no_allocate;
}

static void look(struct loop_timer *t);

static void job_done(struct job *w)
{
    struct reserve *r = CONTAINER_OF(w, struct reserve, job.job);
    struct keeper *k = CONTAINER_OF(r, struct keeper, disk.reserve);
    const struct reserve_job *j = &r->job;
    bool failed = j->sys != 0 || j->size == j->from;
    uint64_t wait_ms = LOOK_MAX_MS;

    r->working = false;
    if (!r->on)
        return;
    switch (j->task) {
    case RESERVE_GROW:
        r->stuck = j->sys != 0;
        tell(r, r->stuck, j->sys);
        break;
    case RESERVE_SHRINK:
        r->shrink_fails = !failed ? 0 : r->shrink_fails + (r->shrink_fails < SHRINK_FAILS_MAX);
        if (failed)
            wait_ms = ((uint64_t)SHRINK_WAIT_S << r->shrink_fails) * 1000;
        r->shrink_ns = loop_now_ns(k->loop) + wait_ms * 1000000;
        log_debug("disks: %llu MiB given back to the host, %llu are left (%s)",
                  MiB(j->from - j->size), MiB(j->size), j->sys != 0 ? strerror(j->sys) : "fine");
        break;
    case RESERVE_BACK:
        r->backed = j->sys == 0;
        if (r->backed)
            log_info("disks: all promised space is allocated now");
        break;
    }
    loop_timer_set(k->loop, &r->timer, r->stuck || !is_settled(r) ? LOOK_MAX_MS : 0, look);
}

static void start_job(struct reserve *r, enum reserve_task task, uint64_t to)
{
    struct keeper *k = CONTAINER_OF(r, struct keeper, disk.reserve);

    r->working = true;
    r->job = (struct reserve_job){.job = {.lane = JOB_RESERVE},
                                  .task = task,
                                  .at = r->at,
                                  .from = r->seen.size,
                                  .to = to,
                                  .keep = 2 * meta_want(r)};
    job_start(k->loop, &r->job.job, run_job, job_done);
}

static void refresh(struct keeper *k, uint64_t age_ns)
{
    struct reserve *r = &k->disk.reserve;
    struct space now;

    if (r->seen_ns != 0 && loop_now_ns(k->loop) - r->seen_ns < age_ns)
        return;
    if (space_look(&r->at, &now) < 0)
        return; /* keep the last look */
    r->quiet = memcmp(&now, &r->seen, sizeof(now)) == 0 ? r->quiet + 1 : 0;
    r->seen = now;
    r->seen_ns = loop_now_ns(k->loop);
}

/* True when a job was started: its end looks again. Backing comes before growing. */
static bool act(struct keeper *k)
{
    struct reserve *r = &k->disk.reserve;
    uint64_t to = size_to_shrink_to(r), now = loop_now_ns(k->loop);
    bool more = wants_more(r), room = has_room_to_grow(r);

    r->above_ns = to == r->seen.size ? 0 : r->above_ns != 0 ? r->above_ns : now;
    if (!more || !room) {
        r->stuck = more;
        tell(r, more, ENOSPC);
    }
    if (!is_settled(r))
        start_job(r, RESERVE_BACK, 0);
    else if (more && room)
        start_job(r, RESERVE_GROW, size_to_grow_to(r));
    else if (to < r->seen.size && now >= r->above_ns + SHRINK_AFTER_NS && now >= r->shrink_ns)
        start_job(r, RESERVE_SHRINK, to);
    return r->working;
}

static void look(struct loop_timer *t)
{
    struct reserve *r = CONTAINER_OF(t, struct reserve, timer);
    struct keeper *k = CONTAINER_OF(r, struct keeper, disk.reserve);
    uint64_t ms;

    if (!r->on || r->working)
        return;
    refresh(k, 0);
    if (act(k))
        return;
    if (k->counts[COUNT_GIVEN] + k->counts[COUNT_STARTING] + k->counts[COUNT_IMPORTS] == 0 &&
        r->quiet >= IDLE_LOOKS && !r->stuck && is_settled(r) &&
        size_to_shrink_to(r) == r->seen.size)
        return; /* until reserve_kick() */
    ms = clamp(r->seen.free / WRITER_PER_MS, LOOK_MIN_MS, LOOK_MAX_MS);
    if (r->stuck || r->seen.size == r->max ||
        (r->quiet >= QUIET_LOOKS && r->seen.free >= QUIET_FREE))
        ms = LOOK_MAX_MS;
    loop_timer_set(k->loop, t, ms, look);
}

void reserve_kick(struct keeper *k)
{
    struct reserve *r = &k->disk.reserve;

    r->quiet = 0;
    if (r->on && !r->working && r->timer.slot == 0)
        loop_timer_set(k->loop, &r->timer, 0, look);
}

/* ---- for other parts ---- */

int reserve_check(struct keeper *k, struct err *e)
{
    struct reserve *r = &k->disk.reserve;
    bool low;

    if (r->on)
        refresh(k, LOOK_FRESH_NS);
    low = r->on ? is_low(r) : space_host_room(k->dir_fd) == 0;
    if (!low)
        return 0;
    return err_set(e, ERR_DISK_FULL,
                   "not enough space for another disk: the free space is kept for running "
                   "sandboxes; delete sandboxes, snapshots or templates, or make room on the host");
}

void reserve_show(struct keeper *k, struct reserve_view *ret)
{
    struct reserve *r = &k->disk.reserve;
    struct statvfs st;

    *ret = (struct reserve_view){0};
    if (r->on) {
        refresh(k, LOOK_FRESH_NS);
        *ret = (struct reserve_view){
            .total = r->max,
            .allocated = r->seen.size,
            .used = r->seen.used,
            .free = r->seen.free + min64(r->max - r->seen.size, space_host_room(r->at.image_fd)),
            .wanted = r->want,
            .now = r->seen.free,
            .low = is_low(r),
            .backed = r->backed};
    } else if (fstatvfs(k->disk.fd, &st) == 0) {
        ret->total = (uint64_t)st.f_blocks * st.f_frsize;
        ret->free = (uint64_t)st.f_bavail * st.f_frsize;
        ret->used = ret->total - (uint64_t)st.f_bfree * st.f_frsize;
        ret->low = space_host_room(k->dir_fd) == 0;
    }
}

/* ---- start ---- */

/* Release 0.1.0 made btrfs as large as the sparse image. The part after the last chunk is cut off
 * at once; the rest is backed while it runs. */
static void back_now(struct reserve *r)
{
    uint64_t to = size_to_shrink_to(r), size;

    if (to < r->seen.size && space_shrink(&r->at, r->seen.size, to, 2 * meta_want(r), 0, &size) < 0)
        log_warn("disks: shrink from %llu MiB: %s", MiB(r->seen.size), strerror(errno));
    space_look(&r->at, &r->seen);
    space_trim(&r->at, r->seen.size);
    r->backed = space_back(&r->at, r->seen.size) == 0;
    r->no_allocate = !r->backed && errno == EOPNOTSUPP;
    if (r->no_allocate)
        log_warn(
            "disks: this file system cannot allocate ahead (fallocate): if it fills up, the last "
            "writes of sandboxes can be lost; creates are refused before that");
    else if (!r->backed)
        log_warn("disks: the host has no room for all of the %llu MiB that are promised (%s): what "
                 "sandboxes write can be lost until there is; make room",
                 MiB(r->seen.size), strerror(errno));
}

int reserve_open(struct keeper *k, int image_fd, const char *sysfs, struct err *e)
{
    struct reserve *r = &k->disk.reserve;
    struct statvfs fs;
    struct stat st;
    uint64_t size;

    if (fstat(image_fd, &st) < 0 || fstatvfs(k->disk.fd, &fs) < 0)
        return err_sys(e, "stat the disk image");
    if (space_open(&r->at, k->disk.fd, image_fd, sysfs, e) < 0)
        return -1;
    r->max = (uint64_t)st.st_size;
    r->want = reserve_wanted(k->config.disk_reserve, r->max);
    r->low = clamp(r->want / 8, LOW_MIN, LOW_MAX);
    if (space_look(&r->at, &r->seen) < 0) {
        err_sys(e, "read the free space of the disks");
        r->at.image_fd = -1;
        space_close(&r->at);
        return -1;
    }
    r->on = true;
    if (fs.f_flag & ST_RDONLY)
        return 0; /* it is read-only: disk_check() tells */
    back_now(r);
    if (r->backed && wants_more(r) && has_room_to_grow(r) &&
        space_grow(&r->at, r->seen.size, size_to_grow_to(r), &size) < 0)
        log_warn("disks: grow: %s", strerror(errno));
    if (r->seen.meta_total < META_NARROW && space_widen_metadata(&r->at) < 0)
        log_debug("disks: widen the metadata: %s", strerror(errno));
    space_look(&r->at, &r->seen);
    log_info("disks: %llu of %llu MiB allocated, %llu free of a reserve of %llu", MiB(r->seen.size),
             MiB(r->max), MiB(r->seen.free), MiB(r->want));
    reserve_kick(k);
    return 0;
}

void reserve_close(struct keeper *k)
{
    struct reserve *r = &k->disk.reserve;

    if (!r->on)
        return;
    r->on = false;
    loop_timer_stop(k->loop, &r->timer);
    if (!r->working)
        space_close(&r->at);
}

/* disk_reserve.h - keeps space for tenants' disks allocated on the host before they write it, and
 * refuses creates before that space is used up.
 *
 * btrfs is as large as the allocated part of the image (disk_space.h). While btrfs has less free
 * than the reserve, a thread grows both; when it has far more, it shrinks them. So a full host
 * shows as a full disk inside (ENOSPC) and never as a disk that fails writes it has promised: all
 * acknowledged data stays, and writes work again when there is room. */
#ifndef KEEPER_DISK_RESERVE_H
#define KEEPER_DISK_RESERVE_H

#include "keeper/disk_space.h"
#include "loop/job.h"

struct keeper;

/* `auto`: an eighth of the pool, within these bounds, and no more than the pool. The reserve must
 * last from one check to the next (a second at most) while tenants write as fast as memory is
 * copied; so a small pool is allocated whole. */
#define RESERVE_MIN (2ull << 30)
#define RESERVE_MAX (4ull << 30)
#define RESERVE_LEAST (64ull << 20) /* minimum of the setting */

enum reserve_task { RESERVE_GROW, RESERVE_SHRINK, RESERVE_BACK };

struct reserve_job {
    struct job job;
    enum reserve_task task;
    struct space_at at; /* a copy of the reserve's; borrowed */
    uint64_t from, to, keep, size;
    int sys; /* errno; 0: done */
};

struct reserve {
    bool on;          /* there is an image to manage */
    bool no_allocate; /* the host's file system has no fallocate */
    bool backed;      /* all of btrfs is allocated on the host */
    bool stuck;       /* the host had no room for the last growth */
    bool told;        /* `stuck` is logged */
    bool working;     /* a job is running */
    struct space_at at;
    uint64_t max;      /* size of the image: the pool */
    uint64_t want;     /* bytes that should be free */
    uint64_t low;      /* with fewer free bytes, creates are refused */
    struct space seen; /* the last look, at seen_ns */
    uint64_t seen_ns;
    uint64_t above_ns;  /* when it became large enough to shrink; 0: it is not */
    uint64_t shrink_ns; /* no shrinking before that */
    unsigned quiet, shrink_fails;
    struct loop_timer timer;
    struct reserve_job job;
};

/* For operators (KEEPER_STATS). */
struct reserve_view {
    uint64_t total, allocated, used, free, wanted, now;
    bool low, backed;
};

/* The reserve for a pool of that size. */
uint64_t reserve_wanted(uint64_t setting, uint64_t pool);
/* The size of btrfs for a new image of `pool` bytes: as much of the reserve as the host can give
 * now. */
int reserve_first_size(struct keeper *k, uint64_t pool, uint64_t *ret, struct err *e);
/* Adopts the mounted disk: sets the size of btrfs and allocates it on the host. image_fd belongs to
 * the reserve on success. */
int reserve_open(struct keeper *k, int image_fd, const char *sysfs, struct err *e);
void reserve_close(struct keeper *k);
/* Space is about to be written, or was freed: look soon and keep looking. */
void reserve_kick(struct keeper *k);
/* Fails while no sandbox, snapshot or template should be made. */
int reserve_check(struct keeper *k, struct err *e);
void reserve_show(struct keeper *k, struct reserve_view *ret);

#endif

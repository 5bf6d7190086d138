/* disk_reserve.h - what tenants are promised is there: space for their disks is allocated on the
 * host ahead of what they write, and creates are refused before it is used up.
 *
 * btrfs has as many bytes as the image has blocks (disk_space.h). While it has less free than
 * the reserve, a thread of its own makes both larger; when it has far more, smaller. A host
 * without room thus shows as a full disk inside, and never as a disk that cannot be written:
 * everything acknowledged stays, and all goes on when there is room again. */
#ifndef KEEPER_DISK_RESERVE_H
#define KEEPER_DISK_RESERVE_H

#include "keeper/disk_space.h"
#include "keeper/worker.h"
#include "loop/loop.h"

struct keeper;

/* The auto setting: an eighth of the pool, within these, and no more than the pool. What the
 * reserve must outlast is one look (a second at most) of tenants that write as fast as memory is
 * copied; so a small pool is allocated whole. */
#define RESERVE_MIN (2ull << 30)
#define RESERVE_MAX (4ull << 30)
#define RESERVE_LEAST (64ull << 20) /* ...and what the setting may not go below */

enum reserve_task { RESERVE_GROW, RESERVE_SHRINK, RESERVE_BACK };

struct reserve_job {
    struct work work;
    enum reserve_task task;
    struct space_at at; /* borrowed: a copy of the reserve's */
    uint64_t from, to, keep, size;
    int sys; /* errno, 0 if it was done */
};

struct reserve {
    bool on;          /* there is an image to look after */
    bool no_allocate; /* the host's file system cannot allocate ahead */
    bool backed;      /* all that btrfs has is allocated */
    bool stuck;       /* the host had no room when it should have grown */
    bool told;        /* ...and the log says so */
    bool working;     /* a job is under way */
    struct space_at at;
    uint64_t max;      /* bytes of the image: the pool */
    uint64_t want;     /* that should be free */
    uint64_t low;      /* less than that: creates are refused */
    struct space seen; /* at seen_ns */
    uint64_t seen_ns;
    uint64_t above_ns;  /* since when so much is free that it should shrink; 0: it is not */
    uint64_t shrink_ns; /* not before */
    unsigned quiet, shrink_fails;
    struct loop_timer timer;
    struct reserve_job job;
};

/* What operators are shown. */
struct reserve_view {
    uint64_t total, allocated, used, free, wanted, now;
    bool low, backed;
};

/* The reserve that goes with a pool. */
uint64_t reserve_wanted(uint64_t setting, uint64_t pool);
/* How large to make btrfs in a new image of `pool` bytes in that directory: what the host can
 * give now of the reserve. */
int reserve_first_size(struct keeper *k, uint64_t pool, uint64_t *ret, struct err *e);
/* Adopts the mounted disk: makes btrfs as large as is right, and backs it. image_fd belongs to
 * the reserve on success. */
int reserve_open(struct keeper *k, int image_fd, const char *sysfs, struct err *e);
void reserve_close(struct keeper *k);
/* Something is about to write, or was deleted: look soon, and go on looking. */
void reserve_kick(struct keeper *k);
/* Fails when nothing new should be made. */
int reserve_check(struct keeper *k, struct err *e);
void reserve_show(struct keeper *k, struct reserve_view *ret);

#endif

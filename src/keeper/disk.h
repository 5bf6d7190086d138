/* disk.h - between disk.c and its ways. */
#ifndef KEEPER_DISK_H
#define KEEPER_DISK_H

#include <errno.h>
#include <fcntl.h>

#include "keeper/host.h"

extern const struct disk_way disk_btrfs;     /* a subvolume with a quota */
extern const struct disk_way disk_unbounded; /* a directory; only if the operator accepts it */

/* Removes everything in disk `id`, spending at most *budget entries; -1 if that is
 * not enough (what is left is then for the way to destroy as a whole). */
int disk_empty(int dfd, const char *id, int *budget);

/* What it may write. Simple quotas count an extent for whoever wrote it as long as
 * anybody has it: what only a snapshot still has must not be the sandbox's to pay. */
uint64_t disk_quota(const struct sandbox *sb);

/* The two directories an overlay needs, in disk `id` below dfd. */
int disk_make_dirs(int dfd, const char *id, struct err *e);

#endif

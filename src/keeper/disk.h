/* disk.h - shared by disk.c and the kinds of disk. */
#ifndef KEEPER_DISK_H
#define KEEPER_DISK_H

#include <errno.h>
#include <fcntl.h>

#include "keeper/host.h"

extern const struct disk_way disk_btrfs;     /* a subvolume with a quota */
extern const struct disk_way disk_unbounded; /* a directory; only if the operator accepts it */

/* Removes at most *budget entries of disk `id`; -1 if that is not all (the kind then destroys the
 * rest as a whole). */
int disk_empty(int dfd, const char *id, int *budget);

/* Bytes that it may write. Simple quotas count an extent for the subvolume that wrote it while any
 * reference to it is left: bytes that only a snapshot still references must not count for the
 * sandbox. */
uint64_t disk_quota(const struct sandbox *sb);

/* Runs a program of the host to its end and discards its output. 0: it succeeded. 1: it ran and
 * failed. -1 with errno: it could not be started. */
int disk_run(const char *path, const char *const argv[]);

/* Makes the two directories that an overlay needs in disk `id` below dfd. */
int disk_make_dirs(int dfd, const char *id, struct err *e);

#endif

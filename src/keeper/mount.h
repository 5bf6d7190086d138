/* mount.h - mounts directories into running sandboxes.
 *
 * The operator alone decides what can be mounted (the setting `mounts`): a volume kept next to the
 * disks, with their limit, or a directory of the host, which is always read-only and shows only
 * world-readable files. A request has a name of that list and a path on the sandbox's own root. */
#ifndef KEEPER_MOUNT_H
#define KEEPER_MOUNT_H

#include "keeper/host.h"

#define MOUNTS_MAX 64u     /* entries of the setting */
#define MOUNTS_EACH_MAX 16 /* in one sandbox, made by this keeper */

/* Reads the setting; if it is empty, drops the capability to enter another mount namespace. Called
 * before there are threads. */
int mount_read(struct keeper *k, struct err *e);
/* Opens the volumes and directories of the setting and makes missing volumes. After the disks. */
int mount_open(struct keeper *k, struct err *e);

int mount_up(struct keeper *k, const struct keeper_mount *m, struct err *e);
/* ERR_NOT_FOUND if no mount of ours is there. */
int mount_down(struct keeper *k, const struct keeper_unmount *m, struct err *e);

#endif

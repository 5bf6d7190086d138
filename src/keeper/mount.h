/* mount.h - directories that come into running sandboxes.
 *
 * What there is to mount is the operator's word alone (the setting `mounts`): a volume
 * that is kept beside the disks, with their limit, or a directory of the host, which is
 * always read-only and shows what anybody may read. Somebody who asks says a name of
 * that list, and a place on the sandbox's own root. */
#ifndef KEEPER_MOUNT_H
#define KEEPER_MOUNT_H

#include "keeper/host.h"

#define MOUNTS_MAX 64u     /* that the operator may name */
#define MOUNTS_EACH_MAX 16 /* in one sandbox at one time, as far as this keeper knows */

/* Reads the setting; without any, the power to enter another mount namespace is
 * given up. Before there are threads. */
int mount_read(struct keeper *k, struct err *e);
/* Opens what it names, making volumes that are not there yet. After the disks. */
int mount_open(struct keeper *k, struct err *e);

int mount_up(struct keeper *k, const struct keeper_mount *m, struct err *e);
/* ERR_NOT_FOUND if nothing of ours is mounted there. */
int mount_down(struct keeper *k, const struct keeper_unmount *m, struct err *e);

#endif

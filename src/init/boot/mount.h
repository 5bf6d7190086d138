/* mount.h - mounting file systems into the root of a sandbox, for the steps of boot.c. */
#ifndef INIT_BOOT_MOUNT_H
#define INIT_BOOT_MOUNT_H

#include "init/boot/boot.h"

/* A detached mount with the options, pairs of name and value that end with NULL. The value "" makes
 * it a flag. `attrs` are of MOUNT_ATTR_*. */
int boot_fs(const char *type, const char *const *opts, unsigned attrs, struct err *e);
/* Attaches a detached mount at a path below `dfd`. */
int boot_attach(int mnt, int dfd, const char *path, struct err *e);
/* Both, at a path of the new root. Only before step "pivot". */
int boot_mount(struct boot *b, const char *type, const char *path, const char *const *opts,
               unsigned attrs, struct err *e);

#endif

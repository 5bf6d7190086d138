/* file.h - the files that init itself stats, reads and writes: small ones, on its root mount.
 *
 * Nothing here waits for the tenant: no device, no pipe, no /proc is ever opened. It may wait
 * for the disk, as any open does, for INIT_FILE_MAX bytes at most. Larger files, and those on
 * other mounts, are cove-helper's work. */
#ifndef INIT_FILES_FILE_H
#define INIT_FILES_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "init/run/user.h"
#include "wire/init.h"

/* A path inside, and the user as whom init accesses it. While it is entered init has the
 * groups, the fsgid and the fsuid of its user and, unless that is root, no capability over
 * files. place_leave() restores both and keeps errno. */
struct place {
    int root; /* an fd of "/"; borrowed */
    struct user user;
    char path[FILE_PATH_MAX + 1]; /* absolute */
};

/* `path` is absolute or begins with ~. ERR_INVALID: no such user, or not such a path. */
int place_find(int root, const char *user, const char *path, struct place *ret, struct err *e);

/* as_root: with root's power; what is made then belongs to the user. */
int place_enter(const struct place *p, bool as_root, struct err *e);
void place_leave(void);

/* openat2 on the root mount; follows links, but never out of it; never waits. errno is EXDEV
 * where another mount begins. */
int place_open(const struct place *p, const char *path, uint64_t flags, uint64_t mode);
/* The error for something that is not a regular file. */
int place_not_regular(const struct place *p, mode_t mode, struct err *e);

/* An answer, and the memory that `file` points into. */
struct file_answer {
    struct init_file file;
    struct place place;
    char target[FILE_PATH_MAX + 1], owner[FILE_NAME_MAX + 1], group[FILE_NAME_MAX + 1];
    char data[INIT_FILE_MAX];
};

int file_look(int root, const struct init_look *m, struct file_answer *ret, struct err *e);
/* Whole or not at all: when the disk is full, the old content stays. */
int file_write(int root, const struct init_write *m, struct file_answer *ret, struct err *e);
/* An fd for reading a regular file; belongs to the caller. */
int file_open(int root, const struct init_open *m, struct err *e);

/* For write.c: fills the answer from `st`; `names`: also of owner and group. */
void file_describe(struct file_answer *a, const struct stat *st, bool names);

#endif

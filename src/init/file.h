/* file.h - the files that init itself looks at, reads and writes: small ones, of its
 * root mount.
 *
 * Nothing here waits for anybody inside: no device, no pipe, no /proc is ever opened. It
 * may wait for the disk, as any open does, for INIT_FILE_MAX bytes at most; what is more,
 * or elsewhere, is cove-helper's work. */
#ifndef INIT_FILE_H
#define INIT_FILE_H

#include "init/place.h"

/* An answer in the making; `file` points into the rest. */
struct file_answer {
    struct init_file file;
    struct place place;
    char target[FILE_PATH_MAX + 1], owner[FILE_NAME_MAX + 1], group[FILE_NAME_MAX + 1];
    char data[INIT_FILE_MAX];
};

int file_look(int root, const struct init_look *m, struct file_answer *ret, struct err *e);
/* Whole or not at all: when the disk is full, what was there is there. */
int file_write(int root, const struct init_write *m, struct file_answer *ret, struct err *e);
/* An fd to be read, of a regular file; belongs to the caller. */
int file_open(int root, const struct init_open *m, struct err *e);

/* file.c, for write.c: what `st` says, into the answer; with names of owner and group. */
void file_describe(struct file_answer *a, const struct stat *st, bool names);

#endif

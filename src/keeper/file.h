/* file.h - directories, and small files that are replaced as a whole. */
#ifndef KEEPER_FILE_H
#define KEEPER_FILE_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Opens a directory, which is made first if it does not exist. */
int dir_open(int at, const char *name, mode_t mode, struct err *e);
/* Lists a directory from its beginning; NULL with errno. */
DIR *dir_list(int dir);

/* A checksum against damage by the disk; not against an attacker. */
uint64_t file_sum(const void *p, size_t n);
/* Continues `sum` with these bytes. */
uint64_t file_sum_more(uint64_t sum, const void *p, size_t n);
/* Reads up to `room` bytes. 0: there is no such file, or the disk cannot read it. -1: no fds or
 * memory to look; that tells nothing about the file. */
ssize_t file_get(int dir, const char *name, void *to, size_t room, struct err *e);
/* Durable, and never half written. The name must not begin with a dot. */
int file_put(int dir, const char *name, const void *p, size_t n, struct err *e);

/* Twins: the same bytes in NAME and .copy-NAME, for records that data depends on. Only the first is
 * flushed: the second is against later damage of the first. */
int file_put_twins(int dir, const char *name, const void *p, size_t n, struct err *e);
/* The name of the twins that a directory entry belongs to; NULL: it is a copy whose first twin
 * exists, or not ours. Points into `entry`. */
const char *file_twin_name(int dir, const char *entry);
int file_remove_twins(int dir, const char *name, struct err *e); /* no error if they do not exist */
/* Calls `parse` with the bytes of NAME and, if that returns 0, with those of the copy; repairs the
 * other one. 1: one was good; 0: neither; -1: as file_get(), or `parse` returned below 0. */
int file_get_twins(int dir, const char *name, char *room, size_t n,
                   int (*parse)(void *arg, const char *p, size_t n, struct err *e), void *arg,
                   struct err *e);

#endif

/* file.h - small files of ours that are replaced as a whole. */
#ifndef KEEPER_FILE_H
#define KEEPER_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Of bytes in memory, against a disk that lies; not against anybody clever. */
uint64_t file_sum(const void *p, size_t n);
/* The sum of what `sum` is of, followed by these bytes. */
uint64_t file_sum_more(uint64_t sum, const void *p, size_t n);
/* Up to `room` bytes. 0: it is not there, or the disk has damaged it and does not give it. -1: nobody
 * can look for now, for want of fds or memory, which says nothing about the file. */
ssize_t file_get(int dir, const char *name, void *to, size_t room, struct err *e);
/* Durable, and there is never half of it. No name begins with a dot. */
int file_put(int dir, const char *name, const void *p, size_t n, struct err *e);

/* Twins: the same bytes as NAME and as .copy-NAME, for records without which data is lost. Only the
 * first is flushed: the second is for a byte that the disk damages later. */
int file_put_twins(int dir, const char *name, const void *p, size_t n, struct err *e);
/* The name that an entry of the directory stands for; NULL: it is a copy of one that is there, or
 * none of ours. Points into `entry`. */
const char *file_twin_name(int dir, const char *entry);
int file_remove_twins(int dir, const char *name, struct err *e); /* fine if they are not there */
/* Calls `parse` with the bytes of NAME and, if it says 0, with those of the copy. Mends the other one.
 * 1: one of them was good; 0: neither; -1: as file_get(), or what `parse` returned below 0. */
int file_get_twins(int dir, const char *name, char *room, size_t n,
                   int (*parse)(void *arg, const char *p, size_t n, struct err *e), void *arg,
                   struct err *e);

#endif

/* file.h - small files of ours that are replaced as a whole. */
#ifndef KEEPER_FILE_H
#define KEEPER_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Of bytes in memory, against a disk that lies; not against anybody clever. */
uint64_t file_sum(const void *p, size_t n);
/* Up to `room` bytes. 0: it is not there, or the disk has damaged it and does not give it. -1: nobody
 * can look for now, for want of fds or memory, which says nothing about the file. */
ssize_t file_get(int dir, const char *name, void *to, size_t room, struct err *e);
/* Durable, and there is never half of it. No name begins with a dot. */
int file_put(int dir, const char *name, const void *p, size_t n, struct err *e);

#endif

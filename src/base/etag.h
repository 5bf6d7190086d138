/* etag.h - one name for one state of a file, as HTTP compares them.
 *
 * Strong: inode, size, and both times to the nanosecond; a write that leaves all four is
 * one that no tool could see. Made on both sides of the wall, hence here. */
#ifndef BASE_ETAG_H
#define BASE_ETAG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define ETAG_MAX 96

struct etag_parts {
    uint64_t ino, size, mtime_ns, ctime_ns;
};

/* With its quotes. */
void etag_make(const struct etag_parts *p, char out[ETAG_MAX]);
void etag_of(const struct stat *st, char out[ETAG_MAX]);
/* Is `tag` in a list as If-Match and If-None-Match have it; "*" is any. A weak one
 * (W/"...") is none of ours and never equal. */
bool etag_listed(const char *list, const char *tag);

#endif

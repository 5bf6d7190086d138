/* etag.h - entity tags of files, as HTTP compares them.
 *
 * Strong: inode, size, and both times to the nanosecond; no tool can
 * see a write that changes none of the four. Both sides of the wall make them. */
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
/* True if `tag` is in the list of an If-Match or If-None-Match header; "*" matches any.
 * A weak tag (W/"...") never matches: we make none. */
bool etag_listed(const char *list, const char *tag);

#endif

/* upload.h - an archive on its way to the server: a file, stdin, or a directory that is
 * packed as it goes. */
#ifndef CLI_UPLOAD_H
#define CLI_UPLOAD_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct pack;

struct upload {
    struct pack *pack; /* a directory, or... */
    int fd;            /* ...a file */
    char piece[256 << 10];
    uint64_t sent, total, said; /* total 0: not known */
};

/* "-" is stdin. */
int upload_open(struct upload *u, const char *from, struct err *e);
/* For call.next; says on a terminal how far it is. */
ssize_t upload_next(void *arg, const char **ret, struct err *e);
void upload_close(struct upload *u);

#endif

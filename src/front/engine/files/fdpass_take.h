/* fdpass_take.h - the part of fdpass.h that may block, for threads. */
#ifndef FRONT_ENGINE_FILES_FDPASS_TAKE_H
#define FRONT_ENGINE_FILES_FDPASS_TAKE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "wire/init.h"

#define FD_ANSWER_MAX 2048u /* hello and the longest `fail` together */

struct fd_taking {
    int fd;                 /* the connection */
    enum init_fd_kind want; /* and what may come over it */
    int passed;             /* the first that came, or -1 */
    bool any_file;          /* of any file system: host mode */
    bool closed, overfull;
    const char *wrong; /* what is the matter with it, or NULL */
    struct stat st;    /* of a file */
    size_t got;
    char bytes[FD_ANSWER_MAX];
};

/* All that is there now, without waiting for more. */
void fd_take(struct fd_taking *t);
/* Closes one that was passed, not lingering if that can be helped. */
void fd_let_go(int *fd);

#endif

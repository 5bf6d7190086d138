/* kept.h - fds that stay open while commands run, unless a command has closed one, or put
 * something else there: so each is looked at before it is used. */
#ifndef SHELL_KEPT_H
#define SHELL_KEPT_H

#include <stdbool.h>
#include <sys/types.h>

struct kept {
    int fd;
    dev_t dev;
    ino_t ino;
};

/* What is open as k->fd now is what it should be from now on. */
bool kept_note(struct kept *k);
bool kept_is_there(const struct kept *k);
/* Takes `fd` over, to where scripts have none; false: it is no fd, or there is no room. */
bool kept_put(struct kept *k, int fd);

#endif

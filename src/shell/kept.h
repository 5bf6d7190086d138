/* kept.h - fds that stay open while commands run. A command may close one, or put another file
 * there: so each is checked (fstat) before it is used. */
#ifndef SHELL_KEPT_H
#define SHELL_KEPT_H

#include <stdbool.h>
#include <sys/types.h>

struct kept {
    int fd;
    dev_t dev;
    ino_t ino;
};

/* Remembers the file that is open as k->fd now. */
bool kept_note(struct kept *k);
bool kept_is_valid(const struct kept *k);
/* Takes `fd` over and moves it above the fds that scripts use; false: not an fd, or no room. */
bool kept_put(struct kept *k, int fd);

#endif

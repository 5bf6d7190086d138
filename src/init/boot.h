/* boot.h - from a process in empty namespaces to the first process of a computer.
 *
 * Takes the keeper's one message (wire/boot.h), builds the view of the world that
 * everything inside will have, and gives up every power that would let somebody
 * inside change it. After boot_run() nothing of the host can be reached any more. */
#ifndef INIT_BOOT_H
#define INIT_BOOT_H

#include "base/err.h"
#include "wire/boot.h"

struct boot {
    struct boot_message msg;
    int fds[BOOT_FD_COUNT];
    int listener; /* of the filter: who calls statfs waits for us (statfs.h) */
};

/* Waits for the message on BOOT_FD. */
int boot_receive(struct boot *b, struct err *e);
int boot_run(struct boot *b, struct err *e);
/* Tells the keeper how it went and closes BOOT_FD. `why` NULL: ready. */
void boot_answer(const struct err *why);

#endif

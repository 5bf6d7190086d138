/* harden.h - checks that the front makes before it reads any client's bytes. */
#ifndef FRONT_HARDEN_H
#define FRONT_HARDEN_H

#include <stdbool.h>

#include "base/err.h"

/* Refuses to go on as root, with any capability, or without the keeper that
 * started us at the other end of `keeper_fd`. Makes our memory unreadable to
 * other processes of our user, and lets us die with the keeper. any_user: as root, too. */
int harden(int keeper_fd, bool any_user, struct err *e);

/* As many open files as the hard limit allows. */
int harden_nofile(struct err *e);

#endif

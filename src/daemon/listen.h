/* listen.h - the socket at which a daemon takes its clients' connections. */
#ifndef DAEMON_LISTEN_H
#define DAEMON_LISTEN_H

#include "base/err.h"

#define LISTEN_URL_MAX 128u

/* Whether `text` is ADDRESS:PORT of this host. */
int listen_check(const char *text, struct err *e);
/* The socket; waits a little for the earlier owner of the port to end. -1 with `e`. */
int listen_open(const char *text, char url[LISTEN_URL_MAX], struct err *e);

#endif

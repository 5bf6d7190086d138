/* listen.h - the socket at which a daemon takes its clients' connections. */
#ifndef DAEMON_LISTEN_H
#define DAEMON_LISTEN_H

#include <stdbool.h>

#include "base/err.h"

#define LISTEN_URL_MAX 128u

/* Whether `text` is ADDRESS:PORT of this host. A port in use is an error only of the `first` start of
 * a daemon: later the front of a killed keeper may still have it. */
int listen_check(const char *text, bool first, struct err *e);
/* The socket; waits a little for the earlier owner of the port to end. -1 with `e`. */
int listen_open(const char *text, char url[LISTEN_URL_MAX], struct err *e);

#endif

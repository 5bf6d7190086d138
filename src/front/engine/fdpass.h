/* fdpass.h - fds that come out of a sandbox: an open file, a connected socket.
 *
 * Whoever passed one still shares it, and may be hostile: it can clear O_NONBLOCK at
 * any time, set SO_LINGER so that a close waits, pass something else than it says or
 * much more of it. So fds come on connections of their own (every other refuses
 * them), are received and looked at by a thread, and are closed by one, always:
 * fd_close(). A file is taken only if it is a regular one of the sandbox's root
 * filesystem, open for reading: reading procfs can block for ever. A socket only if it
 * is TCP; use it with MSG_DONTWAIT whatever its flags say. */
#ifndef FRONT_ENGINE_FDPASS_H
#define FRONT_ENGINE_FDPASS_H

#include <sys/stat.h>

#include "front/engine/engine.h"
#include "front/engine/file.h"

#define FD_DEADLINE_MS 10000 /* for an answer that does not depend on the tenant */

struct fd_call; /* one question */

/* The fd belongs to the callee; -1 if `e` is not NULL. `st` is of a file, NULL for a
 * socket. Comes from the loop. */
typedef void fd_cb(void *arg, int fd, const struct stat *st, const struct err *e);

/* A regular file, to be read. */
struct fd_call *fd_open(const struct file_at *at, fd_cb *cb, void *arg);
/* A connection to a port of the sandbox's loopback. ERR_GONE: nobody listens.
 * ERR_TIMEOUT: whoever does has not taken it in time. */
struct fd_call *fd_connect(struct ref ref, unsigned port, uint64_t timeout_ms, fd_cb *cb,
                           void *arg);
/* No callback follows. NULL is fine; after the callback it must not be used. */
void fd_cancel(struct fd_call *c);
/* What came by fd_cb is closed with this. -1 is fine. `key`: whose sandbox it came out of, as
 * given to fd_open() or fd_connect(): those of one key wait for each other. */
void fd_close(struct engine *g, int fd, const char *key);

#endif

/* fdpass.h - fds that an init passes out of its sandbox: open files and connected sockets.
 *
 * The sender still shares the fd, and may be hostile: it can clear O_NONBLOCK at any time, set
 * SO_LINGER so that a close waits, or pass other or more fds than it says. So fds come on separate
 * connections (all others refuse them), and a thread receives, checks and closes them: fd_close().
 * A file is accepted only if it is a regular file of the sandbox's root filesystem, open for
 * reading: reading procfs can block without end. A socket is accepted only if it is TCP; use it
 * with MSG_DONTWAIT, whatever its flags are. */
#ifndef FRONT_ENGINE_FDPASS_H
#define FRONT_ENGINE_FDPASS_H

#include <sys/stat.h>

#include "front/engine/engine.h"
#include "front/engine/file.h"

#define FD_DEADLINE_MS 10000 /* for an answer that does not depend on the tenant */

struct fd_call; /* one call */

/* The fd belongs to the callee; -1 if `e` is not NULL. `st` is of a file, NULL for a
 * socket. Comes from the loop. */
typedef void fd_cb(void *arg, int fd, const struct stat *st, const struct err *e);

/* A regular file, to be read. */
struct fd_call *fd_open(const struct file_at *at, fd_cb *cb, void *arg);
/* A connection to a port of the sandbox's loopback. ERR_GONE: the port is closed. ERR_TIMEOUT: the
 * server did not accept in time. */
struct fd_call *fd_connect(struct ref ref, unsigned port, uint64_t timeout_ms, fd_cb *cb,
                           void *arg);
/* No callback follows. NULL is fine; after the callback it must not be used. */
void fd_cancel(struct fd_call *c);
/* Closes an fd that came by fd_cb. -1 is allowed. `key`: the owner of its sandbox, as given to
 * fd_open() or fd_connect(): closes of one key wait for each other. */
void fd_close(struct engine *g, int fd, const char *key);

#endif

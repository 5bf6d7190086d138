/* fds.h - one message with fds attached, over a SOCK_SEQPACKET pair between two of our
 * own programs. Fds of a tenant are received elsewhere (front/engine/files/fdpass_take.c). */
#ifndef WIRE_FDS_H
#define WIRE_FDS_H

#include <stddef.h>
#include <sys/types.h>

#define FDS_MAX 9

/* 0, or -1 with errno. */
int fds_send(int sock, const void *msg, size_t len, const int *fds, size_t nfds, int flags);

/* The length of the message, 0 at the end, -1 with errno. EPROTO if the message was cut
 * or came with a number of fds other than `nfds` or 0. All are close-on-exec; without any
 * fds[0] is -1. */
ssize_t fds_receive(int sock, void *msg, size_t room, int *fds, size_t nfds);

#endif

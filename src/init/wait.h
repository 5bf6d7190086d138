/* wait.h - conversations that end when something happens: a process ends, a port
 * listens, a text is printed; or when their time is over. */
#ifndef INIT_WAIT_H
#define INIT_WAIT_H

#include "init/conn.h"

#define WAIT_PORT_RETRY_MS 25u
#define WAIT_HTTP_MS 5000u /* a server that has not answered by then is asked again */

/* From now on; then the conversation fails with ERR_TIMEOUT. 0: never. */
void wait_deadline(struct conn *c, uint64_t timeout_ms);

/* Each begins the conversation; its answers come by themselves. timeout_ms 0
 * waits for ever. */
void wait_exit(struct conn *c, struct proc *p, uint64_t timeout_ms);
/* p may be NULL: no process whose end would make waiting pointless. */
void wait_port(struct conn *c, struct proc *p, const struct init_wait_port *m);
void wait_log(struct conn *c, struct proc *p, const struct init_wait_log *m);
/* connect.c: ends with a connection to the port, passed out. */
void dial_port(struct conn *c, const struct init_connect *m);
/* Connecting to a port on which nobody listens can succeed: the kernel may choose that very
 * port for our end, and TCP then connects the socket to itself. True for such a one; closing
 * it leaves nothing behind that would keep a server from the port. */
bool dial_is_self(int fd);

#endif

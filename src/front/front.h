/* front.h - the unprivileged half of the daemon: HTTP, JSON, SQLite, tokens.
 *
 * Started by the keeper and by nobody else, as user cove with no capabilities,
 * with three fds: the listener, the socket to the keeper, the directory of the
 * inits' sockets. It exits when the keeper is gone. */
#ifndef FRONT_FRONT_H
#define FRONT_FRONT_H

#define FRONT_ARG "--front" /* argv[1] when the keeper starts us */

#define FRONT_FD_LISTEN 3 /* listening socket, non-blocking */
#define FRONT_FD_KEEPER 4 /* SOCK_STREAM; see wire/keeper.h */
#define FRONT_FD_RUN 5    /* DIR/run: one socket per sandbox, named by its id */
#define FRONT_FD_STATE 6  /* DIR/front: ours, 0700; SQLite and logs live here */

/* argv: the settings, as config_argv() writes them. Environment: nothing. The
 * hash of the first API key arrives as COVE_KEY_SHA256 (64 hex digits). */
int front_main(int argc, char **argv);

#endif

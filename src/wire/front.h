/* front.h - what the front is born with: the keeper starts it, it finds these. */
#ifndef WIRE_FRONT_H
#define WIRE_FRONT_H

#define FRONT_ARG "--front" /* argv[1]; behind it the settings as config_argv() writes them */

#define FRONT_NAME "cove-front" /* of its process, once it has begun (PR_SET_NAME) */
#define FRONT_FD_LISTEN 3       /* listening socket, non-blocking */
#define FRONT_FD_KEEPER 4       /* SOCK_STREAM; see wire/keeper.h */
#define FRONT_FD_RUN 5          /* DIR/run: one socket per sandbox, named by its id */
#define FRONT_FD_STATE 6        /* DIR/front: ours, 0700; SQLite and logs live here */

/* The environment holds only COVE_KEY_SHA256: the hash of the first API key, 64
 * hex digits. The key itself is root's. */

#endif

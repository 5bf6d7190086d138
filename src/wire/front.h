/* front.h - what the keeper passes to the front at its start. */
#ifndef WIRE_FRONT_H
#define WIRE_FRONT_H

#define FRONT_ARG "--front" /* argv[1]; after it the settings as config_argv() writes them */

#define FRONT_NAME "cove-front" /* name of its process (PR_SET_NAME) */
#define FRONT_FD_LISTEN 3       /* listening socket, non-blocking */
#define FRONT_FD_KEEPER 4       /* SOCK_STREAM; see wire/keeper.h */
#define FRONT_FD_RUN 5          /* DIR/run: one socket per sandbox, named by its id */
#define FRONT_FD_STATE 6        /* DIR/front: ours, 0700; SQLite and logs live here */

/* In host mode (`cove host`) the environment also has this, and the front runs as the user of its
 * keeper. */
#define FRONT_MODE_ENV "COVE_FRONT_MODE"
#define FRONT_MODE_HOST "host"
#define FRONT_MODE_CONTAINER "container" /* the same, and it answers the container API */

/* Else the environment holds only COVE_KEY_SHA256: the hash of the first API key, 64
 * hex digits. Only root can read the key itself. */

#endif

/* remote.h - runs a command in a sandbox and follows it until it ends.
 *
 * Its output is written to our stdout and stderr byte for byte, our stdin is sent to it
 * unless that is a terminal, Ctrl-C interrupts it (a second one kills it), and its exit
 * status becomes ours. If the daemon restarts meanwhile, we reconnect with the cursor of the
 * last byte written: no output is lost or repeated. */
#ifndef CLI_RUN_REMOTE_H
#define CLI_RUN_REMOTE_H

#include "cli/client/client.h"

#define REMOTE_RETRY_MS 60000 /* how long to try to reconnect */

/* Call once before the functions below: from here on SIGINT, SIGTERM and SIGHUP are passed on
 * instead of killing this program, and SIGPIPE is ignored. Signals that were ignored stay
 * ignored. */
int remote_catch_signals(struct err *e);
/* True if one of them came; each is reported once. */
bool remote_is_interrupted(void);

/* Starts a process and waits until it ends. `request` is the body of POST .../processes, to
 * which an id is added. `interactive`: stdin is sent although it is a terminal. Returns the exit status, or -1 and `e`. */
int remote_run(const struct server *s, const char *sandbox, json_t *request, bool interactive,
               struct err *e);

/* The same for a command of a session; `request` is the body of POST .../exec. Ctrl-C
 * interrupts the command, not the session. */
int remote_exec(const struct server *s, const char *sandbox, const char *session, json_t *request,
                struct err *e);

/* The same, but returns the whole result instead of printing output. *ret belongs to the
 * caller. */
int remote_result(const struct server *s, const char *sandbox, const char *session, json_t *request,
                  json_t **ret, struct err *e);

struct remote_look {
    const char *sandbox, *process;
    const char *since; /* a cursor, or NULL: from the first byte that is kept */
    bool follow;
};
/* Prints the output of a process; with `follow` until it ends. 0, or -1 and `e`. */
int remote_logs(const struct server *s, const struct remote_look *look, struct err *e);

#endif

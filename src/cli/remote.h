/* remote.h - a command in a sandbox, watched from here until it ends.
 *
 * Its output comes out of our stdout and stderr byte for byte, our stdin goes in
 * when it is not a terminal, Ctrl-C interrupts it (a second one kills it), and
 * its exit status becomes ours. When the daemon is restarted in the middle we
 * come back with the cursor of the last byte written and go on: nothing is
 * missed and nothing repeated. */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "cli/client.h"

#define REMOTE_RETRY_MS 60000 /* how long a daemon may be away */

/* Called once at the start of a command that uses the functions below: from here
 * on SIGINT, SIGTERM, SIGHUP and SIGPIPE no longer end this program by themselves. Those that
 * are ignored stay so. */
int remote_catch_signals(struct err *e);
/* True if one came and nobody has acted on it. */
bool remote_is_interrupted(void);

/* Starts what `request` says (the body of POST .../processes; an id is added
 * to it) and stays until it ends. Returns its exit status, or -1 and `e`. */
int remote_run(const struct server *s, const char *sandbox, json_t *request, struct err *e);

/* The same with a command of a session: the body of POST .../exec. Ctrl-C interrupts it,
 * and the session goes on. */
int remote_exec(const struct server *s, const char *sandbox, const char *session, json_t *request,
                struct err *e);

/* The same, with its result in one piece instead of its output. *ret belongs to the caller. */
int remote_result(const struct server *s, const char *sandbox, const char *session, json_t *request,
                  json_t **ret, struct err *e);

struct remote_look {
    const char *sandbox, *process;
    const char *since; /* a cursor, or NULL: from the first byte kept */
    bool follow;
};
/* Prints the log of a process, with follow until it ends. 0, or -1 and `e`. */
int remote_logs(const struct server *s, const struct remote_look *look, struct err *e);

#endif

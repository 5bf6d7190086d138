/* internal.h - what the files of serve/ share: the server, and how each talk begins. */
#ifndef INIT_SERVE_INTERNAL_H
#define INIT_SERVE_INTERNAL_H

#include "init/run/proc.h"
#include "init/session/session.h"
#include "init/talk/conn.h"

#define VIEWERS_MAX 32u      /* of one terminal; then ERR_LIMIT */
#define VIEWERS_ALL_MAX 256u /* of all terminals together: each has a connection */

/* Any request, decoded: a member for each, named like its struct. */
#define X(kind, s, number, fields) struct s s;
union request {
    INIT_REQUESTS(X)
};
#undef X
#define X(kind, s, number, fields)                                                                 \
    _Static_assert(sizeof(struct s) <= sizeof(union request), #s " is decoded into this union");
INIT_REQUESTS(X)
#undef X

struct serve {
    struct loop *loop;
    struct procs procs;
    struct sessions sessions;
    struct conns conns;
    struct loop_later reap_later;
    struct loop_io listen;
    int listen_fd;
    int spare_fd; /* closed for a moment when fds run out, to refuse a connection */
};

static inline struct serve *serve_of(const struct conn *c)
{
    return CONTAINER_OF(c->conns, struct serve, conns);
}

/* requests.c: the two tables of the protocol. */
extern const struct talk_row serve_talks[TALK_COUNT];
void serve_request(struct conn *c, const struct wire_head *h, const char *body);
/* True if there is a row for this message in this talk. */
bool serve_takes(uint16_t type, enum talk in);

/* reap.c: pid 1's duty, to reap every process that dies in this sandbox. */
int reap_start(struct serve *s, struct err *e);

/* stream.c: a process's output. */
void stream_pump(struct conn *c);
/* ERR_INVALID for a position that no output has reached. */
int stream_check(const struct proc *p, uint64_t cursor, struct err *e);
void view_start(struct conn *c, struct proc *p, const struct init_view *m);
void view_pump(struct conn *c);
unsigned view_count(const struct serve *s, const struct proc *p); /* p NULL: of all */

/* wait.c: until a process ends, or prints a text. timeout_ms 0: no deadline. */
void wait_exit(struct conn *c, struct proc *p, uint64_t timeout_ms);
void wait_pump(struct conn *c);
void kill_pump(struct conn *c);
void wait_log(struct conn *c, struct proc *p, const struct init_wait_log *m);
void log_pump(struct conn *c);

/* port.c: TCP ports inside. `p` may be NULL; else its end makes waiting pointless. */
void port_wait(struct conn *c, struct proc *p, const struct init_wait_port *m);
void port_wait_pump(struct conn *c);
void port_wait_free(void *detail);
/* Its HTTP request, and of the answer only the status. True: `path` can be sent in a request
 * line: begins with '/', no blanks, no controls, no '#'. */
#define PROBE_PATH_MAX INIT_PATH_MAX
#define PROBE_ANSWER_MAX 13u /* "HTTP/1.1 200 " */
bool probe_path_is_valid(const char *path);
void probe_request(struct buf *out, const char *path, unsigned port);
/* The status in the first bytes of an answer; 0: more are needed; -1: not HTTP/1. */
int probe_status(const char *p, size_t n);
void port_connect(struct conn *c, const struct init_connect *m);
void port_connect_free(void *detail);

/* sessions.c: requests about sessions. */
void on_session_create(struct conn *c, const union request *r);
void on_session_list(struct conn *c, const union request *r);
void on_session_get(struct conn *c, const union request *r);
void on_session_delete(struct conn *c, const union request *r);
void on_session_exec(struct conn *c, const union request *r);
void on_session_more(struct conn *c, const union request *r);
void on_session_interrupt(struct conn *c, const union request *r);
void on_session_commands(struct conn *c, const union request *r);
void on_session_start(struct conn *c, const union request *r);
void session_list_pump(struct conn *c);
void upload_free(void *detail);

#endif

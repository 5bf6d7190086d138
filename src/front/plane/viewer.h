/* viewer.h - viewers of a terminal over a WebSocket.
 *
 * Binary messages are bytes in both directions; text messages are JSON: first `ready`, then
 * `resize`, `truncated` and `error`, finally `exit`, after which the socket is closed. A client
 * that counts the bytes since `ready` knows its cursor and can reconnect with it. For a client that
 * offers the subprotocol `tty`, messages are ttyd's.
 *
 * A viewer that takes nothing for VIEWER_STALL_MS is closed with VIEWER_CLOSE_SLOW and may
 * reconnect; the terminal and its other viewers are not delayed. */
#ifndef FRONT_PLANE_VIEWER_H
#define FRONT_PLANE_VIEWER_H

#include "front/engine/terminal.h"
#include "front/plane/call.h"
#include "front/plane/frame.h"
#include "json/write.h"

#define VIEWER_STALL_MS 5000
#define VIEWER_CLOSE_SLOW 4408

/* The messages of one kind of client. All but `read`, `ready` and `output` may be NULL: such a
 * message is not sent. */
struct viewer;
struct viewer_dialect {
    int (*read)(const struct viewer *v, bool binary, const char *p, size_t n, struct frame *ret,
                struct err *e);
    void (*ready)(struct viewer *v, const struct process_screen *m);
    void (*resized)(struct viewer *v, const struct process_screen *m);
    void (*output)(struct viewer *v, const char *p, size_t n);
    void (*truncated)(struct viewer *v, const struct process_truncated *m);
    void (*exited)(struct viewer *v, const struct process_exit *m);
    void (*error)(struct viewer *v, const struct err *e);
};
extern const struct viewer_dialect viewer_own;   /* as described above */
extern const struct viewer_dialect viewer_plain; /* only `ready`, `error` and `exit` of it */

/* For dialects: a message {"type":...}, to which more may be added before it is sent. */
void viewer_open_text(struct viewer *v, struct json_w *w, const char *type);
void viewer_send_text(struct viewer *v, struct json_w *w);
void viewer_send_bytes(struct viewer *v, const char *p, size_t n);
/* Position after the last byte that was sent or lost. */
uint64_t viewer_cursor(const struct viewer *v);

struct viewer_opts {
    const char *id; /* of the terminal, in the sandbox of the call; borrowed for the call */
    struct terminal_from from;
    bool read_only;                       /* neither types nor resizes */
    unsigned cols, rows;                  /* resize at once; 0: do not */
    const struct viewer_dialect *dialect; /* NULL: our own, or ttyd's if the client offers it */
};

/* Answers the call: 101 when the terminal was found, else the error. */
void viewer_open(struct call *c, const struct viewer_opts *o);

#endif

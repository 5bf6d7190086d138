/* viewer.h - somebody looks at a terminal over a WebSocket, and may type.
 *
 * Binary messages are bytes, both ways; text messages are JSON: `ready` first, then
 * `resize`, `truncated`, `error`, at last `exit`, after which it is closed. A client
 * that counts the bytes it got since `ready` knows its cursor, and comes back with
 * it. One that offers the subprotocol `tty` is spoken to as ttyd does.
 *
 * A viewer is a guest: one that takes nothing for VIEWER_STALL_MS is closed with
 * VIEWER_CLOSE_SLOW and may come back; the terminal and the others notice nothing. */
#ifndef FRONT_PLANE_VIEWER_H
#define FRONT_PLANE_VIEWER_H

#include "front/engine/terminal.h"
#include "front/plane/call.h"
#include "front/plane/frame.h"
#include "json/write.h"

#define VIEWER_STALL_MS 5000
#define VIEWER_CLOSE_SLOW 4408

/* How the same things are said to different clients. All but `read`, `ready` and `output`
 * may be NULL: it is not said at all. */
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
extern const struct viewer_dialect viewer_own;   /* what is said above */
extern const struct viewer_dialect viewer_plain; /* only `ready`, `error` and `exit` of it */

/* For dialects: a message {"type":...}, to which more may be added before it is sent. */
void viewer_open_text(struct viewer *v, struct json_w *w, const char *type);
void viewer_send_text(struct viewer *v, struct json_w *w);
void viewer_send_bytes(struct viewer *v, const char *p, size_t n);
/* Position of the byte behind the last that was said or lost. */
uint64_t viewer_cursor(const struct viewer *v);

struct viewer_opts {
    const char *id; /* of the terminal, in the sandbox of the call; borrowed for the call */
    struct terminal_from from;
    bool read_only;                       /* neither types nor resizes */
    unsigned cols, rows;                  /* resizes it at once; 0: no */
    const struct viewer_dialect *dialect; /* NULL: our own, or ttyd's if it is offered */
};

/* Answers the call: 101 once the terminal was found, else why not. */
void viewer_open(struct call *c, const struct viewer_opts *o);

#endif

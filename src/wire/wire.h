/* wire.h - framed messages across a wall, described by a table.
 *
 * A frame is a fixed head and then the fields of one message in the order of its
 * row: u32 and u64 as the host stores them (both ends are one machine), str and
 * bytes as u32 length and bytes, strv as u32 count, u32 length and that many
 * NUL-terminated strings. The decoder trusts nothing: every length is checked
 * against the field's max and the frame, strings hold no NUL but the last byte.
 *
 * Evolution: fields are only ever appended to a row. A decoder reads missing
 * fields at the end as zero or empty and skips bytes after the last field it knows; the
 * caller skips or refuses unknown types. */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define WIRE_HEAD 12u
#define WIRE_FRAME_MAX (4u << 20) /* bytes after the head */

struct wire_head {
    uint32_t len; /* bytes after the head */
    uint16_t type;
    uint16_t zero;
    uint32_t seq; /* chosen by the requester; repeated in every answer */
};

struct wire_bytes {
    const char *p;
    uint32_t len;
};

/* `count` strings, each with its NUL, one after the other. */
struct wire_strv {
    const char *p;
    uint32_t len, count;
};

enum wire_type { WIRE_U32, WIRE_U64, WIRE_STR, WIRE_BYTES, WIRE_STRV };

#define WIRE_C_U32 uint32_t
#define WIRE_C_U64 uint64_t
#define WIRE_C_STR const char * /* never NULL after decoding; NULL encodes as "" */
#define WIRE_C_BYTES struct wire_bytes
#define WIRE_C_STRV struct wire_strv

struct wire_field {
    const char *name;
    enum wire_type type;
    size_t offset;
    uint32_t max; /* str, bytes, strv: bytes; u32: the largest value; u64: 0 */
};

struct wire_msg {
    const char *name;
    uint16_t type;
    size_t size; /* of the C struct */
    const struct wire_field *fields;
    size_t nfields;
};

/* From one X-macro row to a struct, and to its description. */
#define WIRE_MEMBER(s, type, name, max) WIRE_C_##type name;
#define WIRE_FIELD(s, type, name, max) {#name, WIRE_##type, offsetof(struct s, name), (max)},

/* Appends one whole frame. ERR_INVALID if a field is over its max: a check of
 * the sender's input is missing, and the peer would refuse it anyway. */
int wire_put(struct buf *out, const struct wire_msg *m, uint32_t seq, const void *msg,
             struct err *e);

/* 1: a whole frame is at the front of `in`: *head is filled, *body points into
 * `in`; consume WIRE_HEAD + head->len when done. 0: not yet. -1: too long or not
 * a frame; the connection cannot go on. */
int wire_peek(const struct buf *in, struct wire_head *head, const char **body, struct err *e);

/* What the handler of a frame says. */
enum wire_next {
    WIRE_NEXT,   /* the next frame may come */
    WIRE_STOP,   /* the frames after this one stay in the buffer */
    WIRE_GONE,   /* the buffer was freed meanwhile: it is not touched again */
    WIRE_BROKEN, /* the err says why; the connection cannot go on */
};
typedef enum wire_next wire_frame_cb(void *arg, const struct wire_head *head, const char *body,
                                     struct err *e);

/* Hands every whole frame at the front of `in` to `each`, then consumes it. Both ends of every
 * wall read with this. 0: what is left is no whole frame; 1: `each` said STOP or GONE. -1: not a
 * frame, one with more than `max` bytes after the head, or BROKEN. */
int wire_pump(struct buf *in, uint32_t max, wire_frame_cb *each, void *arg, struct err *e);

/* One read from a socket: 1: there are more bytes in `in`; 0: none now. -1: the socket is closed
 * (ERR_GONE) or failed, or `in` is full. */
int wire_receive(int fd, struct buf *in, size_t most, struct err *e);
/* Sends as much of `out` as the socket takes: the rest must wait for EPOLLOUT. -1: it failed. */
int wire_flush(int fd, struct buf *out, struct err *e);

/* Fills `msg` (pointing into body). ERR_INVALID names the field. */
int wire_get(const struct wire_msg *m, const char *body, size_t len, void *msg, struct err *e);

/* The next string of a strv, or NULL. Start with *at = 0. */
const char *wire_strv_next(const struct wire_strv *v, uint32_t *at);
/* Appends one string to a buf that becomes a strv. */
int wire_strv_add(struct buf *b, const char *s);
/* The strv over what was added; points into the buf. */
struct wire_strv wire_strv_of(const struct buf *b);

#endif

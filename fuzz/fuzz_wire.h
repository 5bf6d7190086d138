/* fuzz_wire.h - a stream of frames of one protocol: a decoded message must encode and
 * decode to the same message, and no pointer may leave its frame. */
#ifndef FUZZ_WIRE_H
#define FUZZ_WIRE_H

#include "fuzz.h"
#include "wire/wire.h"

#define FUZZ_WIRE_ROOM 512 /* bytes of the largest struct of either table */

static inline void fuzz_inside(const char *p, size_t n, const char *body, size_t len)
{
    FUZZ_MUST(n == 0 || (p >= body && p + n <= body + len));
}

static inline void fuzz_fields(const struct wire_msg *m, const char *msg, const char *body,
                               size_t len)
{
    for (size_t i = 0; i < m->nfields; i++) {
        const void *at = msg + m->fields[i].offset;
        const struct wire_bytes *b = at;
        const struct wire_strv *v = at;
        const char *s;
        uint32_t pos = 0, n = 0;

        if (m->fields[i].type == WIRE_BYTES)
            fuzz_inside(b->p, b->len, body, len);
        if (m->fields[i].type == WIRE_STR) {
            s = *(const char *const *)at;
            FUZZ_MUST(strlen(s) <= m->fields[i].max);
        }
        if (m->fields[i].type == WIRE_STRV) {
            fuzz_inside(v->p, v->len, body, len);
            while (v->len > 0 && wire_strv_next(v, &pos) != NULL)
                n++;
            FUZZ_MUST(n == v->count);
        }
    }
}

static inline void fuzz_again(const struct wire_msg *m, uint32_t seq, const void *msg)
{
    autobuf struct buf one = BUF_INIT(8u << 20), two = BUF_INIT(8u << 20);
    char copy[FUZZ_WIRE_ROOM] = {0};
    struct wire_head head;
    const char *body;
    struct err e;

    FUZZ_MUST(wire_put(&one, m, seq, msg, &e) == 0);
    FUZZ_MUST(wire_peek(&one, &head, &body, &e) == 1 && head.seq == seq);
    FUZZ_MUST(wire_get(m, body, head.len, copy, &e) == 0);
    FUZZ_MUST(wire_put(&two, m, seq, copy, &e) == 0);
    FUZZ_MUST(one.len == two.len && memcmp(buf_data(&one), buf_data(&two), one.len) == 0);
}

static inline void fuzz_frames(const uint8_t *data, size_t n,
                               const struct wire_msg *(*msg_of)(uint16_t type))
{
    char *bytes = fuzz_copy(data, n);
    struct buf in = {.mem = bytes, .len = n, .cap = n, .max = n};
    struct wire_head head;
    const char *body;
    struct err e;

    while (wire_peek(&in, &head, &body, &e) == 1) {
        /* A copy, so that the sanitizer sees a read of one byte too many. */
        char *own = fuzz_copy((const uint8_t *)body, head.len), msg[FUZZ_WIRE_ROOM] = {0};
        const struct wire_msg *m = msg_of(head.type);

        FUZZ_MUST(m == NULL || m->size <= sizeof(msg));
        if (m != NULL && wire_get(m, own, head.len, msg, &e) == 0) {
            fuzz_fields(m, msg, own, head.len);
            fuzz_again(m, head.seq, msg);
        }
        free(own);
        buf_consume(&in, WIRE_HEAD + head.len);
    }
    free(bytes);
}

#endif

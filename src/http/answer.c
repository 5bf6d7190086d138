/* answer.c - see answer.h. */
#include "http/answer.h"

#include <string.h>

enum state { HEAD, BODY, END, NO };

void answer_init(struct answer *a)
{
    memset(a, 0, sizeof(*a));
    buf_init(&a->head, HTTP_HEAD_MAX);
}

void answer_free(struct answer *a)
{
    buf_free(&a->head);
}

static enum answer_event refuse(struct answer *a, struct http_fault *f, const char *why)
{
    a->state = NO;
    return (enum answer_event)http_refuse(f, 502, why);
}

/* Bytes are kept until the head is complete; later bytes are not used yet. Interim answers (1xx)
 * are skipped. */
static enum answer_event take_head(struct answer *a, const char *p, size_t n, size_t *used,
                                   struct http_fault *f)
{
    size_t had = a->head.len, room = HTTP_HEAD_MAX - had, len;
    int r;

    *used = n < room ? n : room;
    if (buf_add(&a->head, p, *used) < 0)
        return refuse(a, f, "out of memory");
    r = http_head_end(buf_data(&a->head), a->head.len, &a->scanned, &len, f);
    if (r == 0)
        return ANSWER_MORE;
    if (r > 0) {
        *used = len - had;
        a->head.len = len;
        r = http_parse_response_head(buf_data(&a->head), len, &a->msg, f);
    }
    if (r < 0) {
        a->state = NO;
        f->status = 502;
        return ANSWER_BAD;
    }
    if (a->msg.status == 101 && !a->upgrade)
        return refuse(a, f, "it changes the protocol without being asked");
    if (a->msg.status >= 200 || a->msg.status == 101) {
        a->framing = http_response_framing(&a->msg, a->to_head);
        a->left = a->framing == HTTP_BODY_LENGTH ? (uint64_t)a->msg.content_length : 0;
        a->state = a->framing == HTTP_BODY_NONE ? END : BODY;
        return ANSWER_HEAD;
    }
    if (++a->interim > ANSWER_INTERIM_MAX)
        return refuse(a, f, "too many interim answers");
    buf_clear(&a->head);
    a->scanned = 0;
    return ANSWER_MORE;
}

static enum answer_event take_body(struct answer *a, const char *p, size_t n, size_t *used,
                                   struct http_str *ret, struct http_fault *f)
{
    if (a->framing == HTTP_BODY_CHUNKED) {
        switch (http_chunk_next(&a->chunk, p, n, used, ret, f)) {
        case HTTP_CHUNK_DATA:
            return ANSWER_DATA;
        case HTTP_CHUNK_END:
            a->state = END;
            return ANSWER_END;
        case HTTP_CHUNK_MORE:
            return ANSWER_MORE;
        default:
            a->state = NO;
            f->status = 502;
            return ANSWER_BAD;
        }
    }
    *used = 0;
    if (a->framing == HTTP_BODY_LENGTH && a->left == 0) {
        a->state = END;
        return ANSWER_END;
    }
    if (n == 0)
        return ANSWER_MORE;
    *used = a->framing == HTTP_BODY_LENGTH && a->left < n ? (size_t)a->left : n;
    if (a->framing == HTTP_BODY_LENGTH)
        a->left -= *used;
    *ret = (struct http_str){.p = p, .len = *used};
    return ANSWER_DATA;
}

enum answer_event answer_next(struct answer *a, const char *p, size_t n, size_t *used,
                              struct http_str *ret, struct http_fault *f)
{
    enum answer_event ev;
    size_t at = 0, took = 0;

    *used = 0;
    while (a->state == HEAD && at < n) {
        ev = take_head(a, p + at, n - at, &took, f);
        at += took;
        *used = at;
        if (ev != ANSWER_MORE)
            return ev;
    }
    if (a->state == HEAD)
        return ANSWER_MORE;
    if (a->state == END)
        return ANSWER_END;
    if (a->state == NO)
        return refuse(a, f, "it was refused before");
    ev = take_body(a, p + at, n - at, &took, ret, f);
    *used = at + took;
    return ev;
}

enum answer_event answer_eof(struct answer *a, struct http_fault *f)
{
    if (a->state == HEAD)
        return refuse(a, f,
                      a->head.len == 0 ? "it closed the connection without an answer"
                                       : "it closed the connection within the head");
    if (a->state == END || (a->state == BODY && a->framing == HTTP_BODY_LENGTH && a->left == 0) ||
        (a->state == BODY && a->framing == HTTP_BODY_UNTIL_CLOSE)) {
        a->state = END;
        return ANSWER_END;
    }
    return refuse(a, f, "it closed the connection within the body");
}

/* answer.h - parses a response piece by piece as it arrives, without any I/O.
 *
 * For clients of an untrusted server: heads are parsed as strictly as requests are,
 * every size has the bound that parse.h and chunk.h give it, and an incomplete answer
 * is reported as such. */
#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

#include "base/buf.h"
#include "http/chunk.h"
#include "http/parse.h"

#define ANSWER_INTERIM_MAX 16 /* heads of 1xx before the real one */

struct answer {
    /* Set before the first byte. */
    bool to_head; /* the request was a HEAD */
    bool upgrade; /* the request asked for an upgrade: 101 is a final answer */

    /* Valid from ANSWER_HEAD on. */
    struct http_msg msg;
    enum http_framing framing;
    struct buf head; /* what msg points into */

    unsigned state, interim;
    size_t scanned;
    struct http_chunk chunk;
    uint64_t left;
};

enum answer_event {
    ANSWER_BAD = -1, /* the fault says why; no more may be given */
    ANSWER_MORE,     /* everything was used, nothing to report yet */
    ANSWER_HEAD,     /* msg is valid; for 101 what follows is no longer HTTP */
    ANSWER_DATA,     /* *ret is a piece of the body and points into p */
    ANSWER_END,      /* the body is complete; later bytes are not part of it */
};

void answer_init(struct answer *a);
void answer_free(struct answer *a);

/* Takes bytes from p until there is something to report; *used says how many. */
enum answer_event answer_next(struct answer *a, const char *p, size_t n, size_t *used,
                              struct http_str *ret, struct http_fault *f);
/* The peer closed: ANSWER_END if the end of the connection ends this body (or the body has
 * ended already), else ANSWER_BAD. */
enum answer_event answer_eof(struct answer *a, struct http_fault *f);

#endif

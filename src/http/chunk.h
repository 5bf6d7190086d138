/* chunk.h - decodes the chunked coding piece by piece, without any I/O.
 *
 * Strict: hexadecimal digits only, CR LF after size, data and trailers; an
 * extension is skipped, a trailer is checked and dropped. */
#ifndef HTTP_CHUNK_H
#define HTTP_CHUNK_H

#include "http/parse.h"

struct http_chunk {
    unsigned state; /* zeroed memory is a decoder at its beginning */
    unsigned line;  /* bytes of this size line, or of all trailers */
    uint64_t left;  /* of this chunk's data */
};

enum http_chunk_event {
    HTTP_CHUNK_BAD = -1,
    HTTP_CHUNK_MORE, /* everything was used, nothing to report yet */
    HTTP_CHUNK_DATA, /* *ret is a piece of the body and points into p */
    HTTP_CHUNK_END,  /* the last chunk and its trailers have ended */
};

/* Takes bytes from p until there is something to report; *used says how many. */
enum http_chunk_event http_chunk_next(struct http_chunk *k, const char *p, size_t n, size_t *used,
                                      struct http_str *ret, struct http_fault *f);

#endif

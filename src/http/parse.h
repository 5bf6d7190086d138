/* parse.h - strict parsers of request and response heads, without any I/O.
 *
 * A head is parsed once, when it is complete: http_head_end() finds its end while bytes
 * arrive. Nothing is repaired. Forms that RFC 9112 lets a recipient tolerate (bare LF, folded lines, blanks before a colon, more than one
 * blank in the first line) are refused, because the next program may read them
 * differently. */
#ifndef HTTP_PARSE_H
#define HTTP_PARSE_H

#include "http/http.h"

/* Why a message is refused: `why` is our own text, free of the peer's bytes. */
struct http_fault {
    int status;
    const char *why;
};

/* Always -1, so that a failing function can end in it. */
int http_refuse(struct http_fault *f, int status, const char *why);

/* A piece of the head, by offset: the head may be copied after it was parsed. */
struct http_span {
    uint16_t at, len;
};

struct http_field {
    struct http_span name, value; /* value without the blanks around it */
};

struct http_msg {
    struct http_span method, target; /* of a request */
    struct http_span path, query;    /* parts of target; path.len 0 means "/" */
    struct http_span host;           /* Host, or the authority of an absolute target */
    int status;                      /* of a response */
    unsigned minor;                  /* HTTP/1.minor */
    bool chunked, close, keep_alive, upgrade, expect_continue;
    int64_t content_length; /* -1: not given */
    size_t nfields;
    struct http_field fields[HTTP_HEADERS_MAX];
};

/* Where the head at `p` ends. 1: *ret_len is its length with the empty line; 0:
 * not yet; -1: it is invalid already. `scanned`, 0 at first, counts the bytes
 * already scanned, so that a head sent byte by byte is read once. */
int http_head_end(const char *p, size_t n, size_t *scanned, size_t *ret_len, struct http_fault *f);

/* `p` is one whole head as http_head_end() delimited it. 0, or -1 and the fault. */
int http_parse_request_head(const char *p, size_t n, struct http_msg *ret, struct http_fault *f);
int http_parse_response_head(const char *p, size_t n, struct http_msg *ret, struct http_fault *f);

/* The only field of that name: 1; none: 0; several: -1 (*ret is the first). */
int http_field_find(const struct http_msg *m, const char *head, const char *name,
                    struct http_span *ret);

/* How the body of a response is delimited, given the request's method. */
enum http_framing { HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED, HTTP_BODY_UNTIL_CLOSE };
enum http_framing http_response_framing(const struct http_msg *m, bool head_request);

/* True if `list`, comma-separated, holds `token` (case-insensitive). */
bool http_list_has(const char *list, size_t len, const char *token);
/* True for the characters of method and field names (RFC 9110, 5.6.2). */
bool http_is_tchar(unsigned char c);

#endif

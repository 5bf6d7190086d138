/* multipart.h - parses multipart/form-data piece by piece, without any I/O.
 *
 * Memory is constant for parts of any size: data is passed on as it arrives. Strict where
 * parsers differ: CR LF everywhere, only blanks after a boundary, a Content-Disposition
 * in every part. */
#ifndef HTTP_MULTIPART_H
#define HTTP_MULTIPART_H

#include "http/parse.h"

#define MULTIPART_BOUNDARY_MAX 70u     /* RFC 2046 */
#define MULTIPART_HEAD_MAX (16u << 10) /* bytes of the head of one part */
#define MULTIPART_NAME_MAX 256u        /* bytes of the name of a part */
#define MULTIPART_FILENAME_MAX 4096u   /* bytes of a filename, which may be a path */

struct multipart {
    unsigned state;
    size_t matched; /* bytes of the delimiter that matched so far */
    size_t delimiter_len, head_len;
    bool has_filename;
    char name[MULTIPART_NAME_MAX + 1], filename[MULTIPART_FILENAME_MAX + 1]; /* of this part */
    char delimiter[4 + MULTIPART_BOUNDARY_MAX + 1];
    char head[MULTIPART_HEAD_MAX + 1];
};

enum multipart_event {
    MULTIPART_BAD = -1,
    MULTIPART_MORE,     /* everything was used, nothing to report yet */
    MULTIPART_PART,     /* a part begins: `name` and `filename` say what it is */
    MULTIPART_DATA,     /* *ret is a piece of it, and points into p or the multipart */
    MULTIPART_PART_END, /* the part has ended */
    MULTIPART_END,      /* the last part has ended; later bytes are ignored */
};

/* `type` is the value of Content-Type; 400 if it is not multipart/form-data. */
int multipart_init(struct multipart *m, const char *type, struct http_fault *f);

/* Takes bytes from p until there is something to report; *used says how many. */
enum multipart_event multipart_next(struct multipart *m, const char *p, size_t n, size_t *used,
                                    struct http_str *ret, struct http_fault *f);

#endif

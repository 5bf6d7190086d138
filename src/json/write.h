/* write.h - writes JSON into a buf, with commas and escapes. Depth is bounded by JSON_DEPTH_MAX; misuse (a value where a key
 * belongs) aborts, since it is our bug and never input. */
#ifndef JSON_WRITE_H
#define JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define JSON_DEPTH_MAX 32

struct json_w {
    struct buf *out; /* borrowed; check out->failed at the end */
    unsigned depth;
    bool comma[JSON_DEPTH_MAX], object[JSON_DEPTH_MAX]; /* [0]: the document itself */
    bool key;                                           /* written, its value is not */
};

void jw_init(struct json_w *w, struct buf *out);
void jw_open(struct json_w *w);  /* { */
void jw_close(struct json_w *w); /* } */
void jw_open_list(struct json_w *w);
void jw_close_list(struct json_w *w);
void jw_key(struct json_w *w, const char *key);
/* Bytes that are not UTF-8 are written as U+FFFD; see jw_bytes for verbatim. */
void jw_str(struct json_w *w, const char *s);
void jw_strn(struct json_w *w, const char *s, size_t n);
void jw_u64(struct json_w *w, uint64_t v);
void jw_i64(struct json_w *w, int64_t v);
void jw_num(struct json_w *w, double v); /* shortest that reads back the same */
void jw_bool(struct json_w *w, bool v);
void jw_null(struct json_w *w);
void jw_raw(struct json_w *w, const char *json, size_t n); /* already JSON */

/* key and value in one */
void jw_kstr(struct json_w *w, const char *key, const char *s); /* NULL: null */
void jw_ku64(struct json_w *w, const char *key, uint64_t v);
void jw_ki64(struct json_w *w, const char *key, int64_t v);
void jw_kbool(struct json_w *w, const char *key, bool v);
/* `key`: text, or, when the bytes are not UTF-8, base64 with `key`_encoding:
 * "base64" beside it. */
void jw_kbytes(struct json_w *w, const char *key, const void *p, size_t n);
/* The contents of a JSON string, escaped, without quotes; fast on plain text. Invalid
 * UTF-8 becomes U+FFFD, one for each maximal part of a character, as browsers and
 * Node decode it. */
int json_escape(struct buf *out, const char *s, size_t n);

#endif

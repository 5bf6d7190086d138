/* buf.h - a byte buffer that grows up to a bound chosen by its owner.
 *
 * Data enters at the end and leaves at the front. The first append that does not
 * fit sets `failed` and appends nothing, now and from then on: a writer may
 * append a whole answer and check `failed` once. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
    char *mem;  /* belongs to the buf */
    size_t off; /* first byte not yet consumed */
    size_t len; /* bytes from off on */
    size_t cap;
    size_t max; /* bound of len */
    bool failed;
};

#define autobuf __attribute__((cleanup(buf_free)))

#define BUF_INIT(limit)                                                                            \
    {                                                                                              \
        .max = (limit)                                                                             \
    }
void buf_init(struct buf *b, size_t max);
void buf_free(struct buf *b); /* may be used again afterwards, with the same max */

/* Forgets the contents, keeps the memory. */
void buf_clear(struct buf *b);

/* Where the contents begin; NULL if there never were any. */
static inline char *buf_data(const struct buf *b)
{
    return b->mem != NULL ? b->mem + b->off : NULL;
}

/* Room for `n` more bytes at the end, or NULL (and failed). buf_added() adds
 * the bytes written there to the contents. */
char *buf_room(struct buf *b, size_t n);
void buf_added(struct buf *b, size_t n);

int buf_add(struct buf *b, const void *p, size_t n);
int buf_adds(struct buf *b, const char *s);
int buf_addc(struct buf *b, char c);
int buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_vaddf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

/* A row of two columns, as in a help text: `right` begins at `column` and is wrapped between words so
 * that a row has at most BUF_ROW characters (if a word is no longer); a `left` that does not fit has a line
 * of its own. */
#define BUF_ROW 90u
int buf_add_columns(struct buf *b, const char *left, size_t column, const char *right);

void buf_consume(struct buf *b, size_t n);

/* The contents, NUL-terminated (the NUL is not counted); "" when empty or failed. */
const char *buf_cstr(struct buf *b);

#endif

/* buf.c - see buf.h. */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_FIRST 256u

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_free(struct buf *b)
{
    free(b->mem);
    buf_init(b, b->max);
}

void buf_clear(struct buf *b)
{
    b->off = b->len = 0;
    b->failed = false;
}

/* Always allocates one byte more than asked, for buf_cstr(). Moves the contents to the
 * front instead of growing only if that frees half the memory: otherwise a queue that
 * stays nearly full is copied whole for every few bytes added. */
static int grow(struct buf *b, size_t need)
{
    size_t want = b->len + need + 1, cap = b->cap ? b->cap : BUF_FIRST;
    char *mem;

    if (b->off > 0 && (want <= b->cap / 2 || (want <= b->cap && b->cap > b->max))) {
        memmove(b->mem, b->mem + b->off, b->len);
        b->off = 0;
        return 0;
    }
    if (b->off > 0)
        cap *= 2;
    while (cap < want)
        cap *= 2;
    if (cap - 1 > b->max)
        cap = b->max + 1;
    if (b->off == 0) { /* a large one is moved by the kernel, page by page */
        mem = realloc(b->mem, cap);
        if (mem == NULL)
            return -1;
        b->mem = mem;
        b->cap = cap;
        return 0;
    }
    mem = malloc(cap);
    if (mem == NULL)
        return -1;
    if (b->len > 0)
        memcpy(mem, b->mem + b->off, b->len);
    free(b->mem);
    b->mem = mem;
    b->off = 0;
    b->cap = cap;
    return 0;
}

char *buf_room(struct buf *b, size_t n)
{
    if (b->failed || n > b->max - b->len) {
        b->failed = true;
        return NULL;
    }
    if (b->off + b->len + n + 1 > b->cap && grow(b, n) < 0) {
        b->failed = true;
        return NULL;
    }
    return b->mem + b->off + b->len;
}

void buf_added(struct buf *b, size_t n)
{
    b->len += n;
}

int buf_add(struct buf *b, const void *p, size_t n)
{
    char *room = buf_room(b, n);

    if (room == NULL)
        return -1;
    if (n > 0)
        memcpy(room, p, n);
    b->len += n;
    return 0;
}

int buf_adds(struct buf *b, const char *s)
{
    return buf_add(b, s, strlen(s));
}

int buf_addc(struct buf *b, char c)
{
    return buf_add(b, &c, 1);
}

int buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    char *room;
    int n;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    room = n < 0 ? NULL : buf_room(b, (size_t)n);
    if (room == NULL)
        return -1;
    vsnprintf(room, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
    return 0;
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = buf_vaddf(b, fmt, ap);
    va_end(ap);
    return r;
}

int buf_add_columns(struct buf *b, const char *left, size_t column, const char *right)
{
    size_t at = strlen(left);

    buf_adds(b, left);
    if (at >= column) {
        buf_addc(b, '\n');
        at = 0;
    }
    for (const char *word = right; *word != '\0';) {
        size_t n = strcspn(word, " "), indent = at < column ? column - at : 1;

        if (at > column && at + 1 + n > BUF_ROW) {
            buf_addc(b, '\n');
            at = 0;
            indent = column;
        }
        buf_addf(b, "%*s%.*s", (int)indent, "", (int)n, word);
        at += indent + n;
        word += n;
        word += strspn(word, " ");
    }
    return buf_addc(b, '\n');
}

void buf_consume(struct buf *b, size_t n)
{
    b->off += n;
    b->len -= n;
    if (b->len == 0)
        b->off = 0;
}

const char *buf_cstr(struct buf *b)
{
    if (b->failed || b->mem == NULL)
        return "";
    b->mem[b->off + b->len] = '\0';
    return b->mem + b->off;
}

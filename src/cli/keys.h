/* keys.h - the keys that mean us and not the program: a short sequence, looked for
 * in what is typed.
 *
 * What may still become the sequence is held back until the next key decides. */
#ifndef CLI_KEYS_H
#define CLI_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define KEYS_MAX 8
#define KEYS_DEFAULT "ctrl-],d"
#define KEYS_NONE "none"

struct keys {
    char seq[KEYS_MAX];
    size_t n;    /* 0: there are none */
    size_t held; /* of seq, seen so far */
};

/* "ctrl-],d": characters and ctrl-CHARACTERs with commas between; "none". */
int keys_parse(struct keys *k, const char *text, struct err *e);
/* Adds to `out` what is the program's. True: the sequence was completed, and nothing
 * behind it was looked at. */
bool keys_filter(struct keys *k, const char *p, size_t n, struct buf *out);

#endif

/* keys.h - finds the detach keys, a short sequence, in what the user types.
 *
 * A beginning of the sequence is held back until the next key decides. */
#ifndef CLI_TERMINAL_KEYS_H
#define CLI_TERMINAL_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define KEYS_MAX 8
#define KEYS_DEFAULT "ctrl-],d"
#define KEYS_NONE "none"

struct keys {
    char seq[KEYS_MAX];
    size_t n;    /* 0: no detach keys */
    size_t held; /* how many keys of seq were typed so far */
};

/* "ctrl-],d": characters and ctrl-CHARACTERs, separated by commas; or "none". */
int keys_parse(struct keys *k, const char *text, struct err *e);
/* Appends to `out` the keys to send to the program. True: the sequence is complete, and the
 * keys after it are dropped. */
bool keys_filter(struct keys *k, const char *p, size_t n, struct buf *out);

#endif

/* screen.h - our own terminal, lent to a program elsewhere and always given back.
 *
 * Raw while it is lent. What the program switched on (the other screen, the mouse,
 * a hidden cursor) is remembered from what it prints, and switched off again when
 * we leave before it does. */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* ---- what was switched on ---- */

#define MODES_MAX 32        /* that are remembered at a time */
#define MODES_PARAMS_MAX 64 /* bytes of one sequence; a longer one is none of these */

struct modes {
    unsigned on[MODES_MAX]; /* private modes that are not as they were */
    size_t n;
    char seq[MODES_PARAMS_MAX]; /* a sequence whose end is still to come */
    size_t nseq;
};

/* Looks at what is about to be printed; a sequence may be cut anywhere. */
void modes_watch(struct modes *m, const char *p, size_t n);
/* What to print so that all is as it was; "" if it is. Forgets it. */
void modes_undo(struct modes *m, struct buf *out);

/* ---- the terminal ---- */

/* stdin and stdout are one. */
bool screen_is_there(void);
int screen_size(unsigned *cols, unsigned *rows);
/* Raw from here on, until screen_give_back(), whatever ends this program in between
 * (but SIGKILL). */
int screen_lend(struct err *e);
/* stdout once more: an fd that never waits. That of stdout is shared with whoever started
 * us and left as it is. The caller closes it; -1 if there can be none. */
int screen_open(void);
void screen_give_back(void);

#endif

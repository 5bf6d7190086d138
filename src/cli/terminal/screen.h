/* screen.h - the local terminal: raw while attached, and always restored.
 *
 * Modes that the program sets (alternate screen, mouse, hidden cursor) are tracked in its
 * output, and reset if we leave before the program resets them. */
#ifndef CLI_TERMINAL_SCREEN_H
#define CLI_TERMINAL_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* ---- terminal modes ---- */

#define MODES_MAX 32        /* modes tracked at once */
#define MODES_PARAMS_MAX 64 /* bytes of one escape sequence; a longer one sets no mode */

struct modes {
    unsigned on[MODES_MAX]; /* private modes that differ from their defaults */
    size_t n;
    char seq[MODES_PARAMS_MAX]; /* an incomplete escape sequence */
    size_t nseq;
};

/* Scans output before it is printed; a sequence may be split between calls. */
void modes_watch(struct modes *m, const char *p, size_t n);
/* The sequences that restore the defaults; "" if nothing differs. Clears `m`. */
void modes_undo(struct modes *m, struct buf *out);

/* ---- the terminal ---- */

/* Whether stdin and stdout are a terminal. */
bool screen_is_terminal(void);
int screen_size(unsigned *cols, unsigned *rows);
/* Raw mode until screen_restore(), or until this program ends, also by a fatal signal (but
 * not SIGKILL). */
int screen_make_raw(struct err *e);
void screen_restore(void);
/* A non-blocking fd of the terminal on stdout. The flags of stdout itself are shared
 * with the processes that we inherited it from, so they are not changed. The caller closes
 * it; -1 on failure. */
int screen_reopen(void);

#endif

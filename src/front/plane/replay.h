/* replay.h - old output of a terminal, without the questions in it.
 *
 * Programs ask their terminal things (which kind it is, where the cursor is, its colours), and the
 * terminal answers as if it was typed. Output that is replayed to a viewer holds questions that were
 * answered long ago: the viewer's terminal would answer once more, to whatever reads now. So questions
 * become NULs, which terminals ignore. Nothing is left out: positions in the output stay as they are. */
#ifndef FRONT_PLANE_REPLAY_H
#define FRONT_PLANE_REPLAY_H

#include <stddef.h>

#include "base/buf.h"

#define REPLAY_HELD_MAX 1024u /* bytes of one sequence; a longer one is no question, and passes */

struct replay {
    unsigned char held[REPLAY_HELD_MAX]; /* a sequence that has not ended yet */
    size_t n;
};

/* Appends to `out` what can be shown, which may be more or less than came in. */
void replay_add(struct replay *r, const char *p, size_t n, struct buf *out);
/* What is held, as it is: what follows is live. */
void replay_end(struct replay *r, struct buf *out);

#endif

/* process.h - what the two files of E2B's process service share.
 *
 *   process.c   Start and Connect: streams of output
 *   control.c   List, SendInput, CloseStdin, SendSignal, Update */
#ifndef FRONT_PLANES_E2B_PROCESS_H
#define FRONT_PLANES_E2B_PROCESS_H

#include "base/err.h"
#include "front/engine/process.h"
#include "json/read.h"

struct call;

/* A process as a message names it: {"pid": 7} or {"tag": "x"}. */
struct selector {
    char id[PROCESS_ID_MAX + 1];    /* for the engine */
    char text[PROCESS_ID_MAX + 16]; /* for people: "pid 7" */
};
int selector_read(json_t *process, struct selector *ret, struct err *e);
/* The call is answered: there is no such process. */
void selector_absent(struct call *c, const struct selector *s);
/* What the engine's error of a question about that process means here. */
void selector_fail(struct call *c, const struct selector *s, const struct err *e);

/* A terminal is shown with its size. */
static inline bool process_is_pty(const struct process_info *p)
{
    return p->cols != 0;
}

#define PTY_SIDE_DEFAULT_COLS 80u
#define PTY_SIDE_DEFAULT_ROWS 24u
/* {"size": {"cols": 80, "rows": 24}} */
int pty_size(json_t *pty, unsigned *cols, unsigned *rows, struct err *e);

#endif

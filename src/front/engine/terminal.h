/* terminal.h - processes on a terminal, and who looks at them.
 *
 * A terminal is a process (process.h): it is started with process_opts.term, has a
 * pid, a record and an exit, is listed, read, typed into and killed like any
 * other. Here is what only a terminal has. It runs on when nobody looks. */
#ifndef FRONT_ENGINE_TERMINAL_H
#define FRONT_ENGINE_TERMINAL_H

#include "front/engine/process.h"

/* Where a view begins; all zero: at the oldest byte that is kept. */
struct terminal_from {
    bool has_since, now;
    uint64_t since;
    bool looks; /* only: nothing will be typed, and a paused sandbox stays so */
};

/* A viewer. on_screen comes first (its cursor is the position of the first byte that
 * follows) and again whenever the size has changed; then output and gaps, at last
 * on_exit. It never holds the terminal back: while it is paused, bytes may be lost
 * to it, and on_truncated says which. process_feed() types, and process_pause() and
 * process_close() are as for any stream. */
struct process_stream *terminal_view(struct ref ref, const char *id,
                                     const struct terminal_from *from,
                                     const struct process_ops *ops, void *arg);
/* Behind what was typed before. */
void terminal_view_resize(struct process_stream *s, unsigned cols, unsigned rows);

void terminal_resize(struct ref ref, const char *id, unsigned cols, unsigned rows,
                     engine_done_cb *cb, void *arg);
/* To the process group in its foreground. */
void terminal_signal(struct ref ref, const char *id, int signo, engine_done_cb *cb, void *arg);
/* Kills the tree; when cb is told its exit, the id is free. */
struct process_call *terminal_delete(struct ref ref, const char *id, uint64_t grace_ms,
                                     process_exit_cb *cb, void *arg);

#endif

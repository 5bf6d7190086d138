/* terminal.h - processes on a terminal, and their viewers.
 *
 * A terminal is a process (process.h): it is started with process_opts.term, and listed, read,
 * written to and killed like any other. This header has what only a terminal has. It keeps running
 * without viewers. */
#ifndef FRONT_ENGINE_TERMINAL_H
#define FRONT_ENGINE_TERMINAL_H

#include "front/engine/process.h"

/* Where a view begins; all zero: at the oldest byte kept. */
struct terminal_from {
    bool has_since, now;
    uint64_t since;
    bool looks; /* read-only: nothing will be typed, and a paused sandbox stays paused */
};

/* A viewer. on_screen comes first (its cursor is the position of the first byte that follows) and
 * after each change of size; then output and gaps, finally on_exit. A viewer never delays the
 * terminal: while it is paused it may lose bytes, and on_truncated says which. process_feed()
 * types; process_pause() and process_close() work as for any stream. */
struct process_stream *terminal_view(struct ref ref, const char *id,
                                     const struct terminal_from *from,
                                     const struct process_ops *ops, void *arg);
/* After the input that was sent before. */
void terminal_view_resize(struct process_stream *s, unsigned cols, unsigned rows);

void terminal_resize(struct ref ref, const char *id, unsigned cols, unsigned rows,
                     engine_done_cb *cb, void *arg);
/* To the foreground process group. */
void terminal_signal(struct ref ref, const char *id, int signo, engine_done_cb *cb, void *arg);
/* Kills the terminal and its descendants; the id is free when cb is called. */
struct process_call *terminal_delete(struct ref ref, const char *id, uint64_t grace_ms,
                                     process_exit_cb *cb, void *arg);

#endif

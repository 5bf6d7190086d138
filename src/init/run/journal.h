/* journal.h - what commands print, line by line, for the log of the sandbox.
 *
 * Only of commands that were started with INIT_START_LOG. Lines of all of them are numbered
 * together and wait here, bounded, until the front reads the journal; also while no front
 * runs, and independently of the owner of the command. A number that the reader does not get
 * is a line that was dropped: lines came too fast, or were not read in time. */
#ifndef INIT_RUN_JOURNAL_H
#define INIT_RUN_JOURNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "loop/loop.h"
#include "wire/init.h"

/* In bytes; a line counts with JOURNAL_LINE_COST besides its own. */
#define JOURNAL_KEPT_MAX (1u << 20)
#define JOURNAL_BURST (512u << 10)
#define JOURNAL_RATE (64u << 10) /* per second, after the burst */
#define JOURNAL_LINE_COST 64u
#define JOURNAL_MUTE_MS 1000u /* after too much, no line is kept for so long */
#define JOURNAL_DELAY_MS 50u  /* lines are collected for so long before the reader is told */

struct proc;

struct journal {
    struct loop *loop;
    struct list lines; /* struct journal_line */
    size_t kept;
    uint64_t next; /* number of the next line */
    uint64_t left; /* bytes that may come now */
    uint64_t left_ms;
    bool muted;
    struct loop_timer mute, tell;
    void (*on_lines)(struct journal *j);
};

struct journal_line {
    struct list link;
    struct init_line m; /* its id and data point into text */
    char text[];
};

/* The unfinished line of one stream of a command. */
struct journal_part {
    struct buf text;
    bool skip; /* drop up to the next newline: the start of the line was dropped */
};

void journal_init(struct journal *j, struct loop *l, void (*on_lines)(struct journal *j));
/* Bytes of one stream of a command, as they come. */
void journal_take(struct journal *j, const struct proc *p, struct journal_part *part,
                  unsigned stream, const char *bytes, size_t n);
/* The stream has ended: its unfinished line is a line. */
void journal_end(struct journal *j, const struct proc *p, struct journal_part *part,
                 unsigned stream);
/* Tells the reader now: a message that follows must come after these lines. */
void journal_hurry(struct journal *j);
/* The first kept line from number `since` on; NULL: none yet. */
const struct journal_line *journal_from(const struct journal *j, uint64_t since);
const struct journal_line *journal_after(const struct journal *j, const struct journal_line *l);

#endif

/* journal.h - what commands print, line by line, for the log of the sandbox.
 *
 * Only of commands that were started with INIT_START_LOG. Lines of all of them are
 * numbered together and wait here, bounded, for whoever reads the journal: not for the
 * reader that started the command, and also while there is no front at all. A
 * number that a reader does not get is a line that was dropped, because it came too
 * fast or because nobody read it in time. */
#ifndef INIT_JOURNAL_H
#define INIT_JOURNAL_H

#include "base/buf.h"
#include "base/list.h"
#include "loop/loop.h"
#include "wire/init.h"

/* In bytes; a line counts with JOURNAL_LINE_COST besides its own. */
#define JOURNAL_KEPT_MAX (1u << 20)
#define JOURNAL_BURST (512u << 10)
#define JOURNAL_RATE (64u << 10) /* per second, behind the burst */
#define JOURNAL_LINE_COST 64u
#define JOURNAL_MUTE_MS 1000u /* nothing is taken for so long once it was too much */
#define JOURNAL_DELAY_MS 50u  /* lines of what goes on are told together */

struct proc;

struct journal {
    struct loop *loop;
    struct list lines; /* struct journal_line */
    size_t kept;
    uint64_t next; /* number of the next line */
    uint64_t left; /* of what may come now */
    uint64_t left_ms;
    bool muted;
    struct loop_timer mute, tell;
    void (*on_lines)(struct journal *j);
};

struct journal_line {
    struct list link;
    struct init_line m; /* its id and data are behind it */
    char text[];
};

/* What of a command's stream is not a line yet. */
struct journal_part {
    struct buf text;
    bool skip; /* up to the next end of a line: its beginning was dropped */
};

void journal_init(struct journal *j, struct loop *l, void (*on_lines)(struct journal *j));
/* Bytes of one stream of a command, as they come. */
void journal_take(struct journal *j, const struct proc *p, struct journal_part *part,
                  unsigned stream, const char *bytes, size_t n);
/* There is no more: what is left of it is a line. */
void journal_end(struct journal *j, const struct proc *p, struct journal_part *part,
                 unsigned stream);
/* Whoever reads is told now: what follows is to come behind it. */
void journal_hurry(struct journal *j);
/* The first that is kept from number `since` on; NULL: none yet. */
const struct journal_line *journal_from(const struct journal *j, uint64_t since);
const struct journal_line *journal_after(const struct journal *j, const struct journal_line *l);

#endif

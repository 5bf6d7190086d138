/* changes.h - what happened in a tree, put in order before it is told.
 *
 * Half a move waits a moment for its other half; the same thing happening again to
 * the same path within the window is told once, unless a directory above went in between:
 * then it is another one. One line each on stdout, with every
 * byte of a path that is not a plain character as %XX:
 *
 *   create|modify|delete|attrib f|d PATH
 *   move f|d PATH FROM
 *   overflow queue|watches       something was lost: list again
 */
#ifndef HELPER_CHANGES_H
#define HELPER_CHANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/list.h"
#include "base/map.h"

#define CHANGES_MAX 8192u   /* held; then they are told before their time */
#define CHANGES_MOVE_MS 50u /* that half a move waits */

enum change {
    CHANGE_CREATE,
    CHANGE_MODIFY,
    CHANGE_DELETE,
    CHANGE_ATTRIB,
    CHANGE_MOVE,
    CHANGE_COUNT
};

struct changes {
    FILE *to;           /* borrowed */
    unsigned window_ms; /* how long one waits for another like it */
    struct list held;   /* in order */
    struct map last;    /* of each path, the last that is held */
    unsigned n;
    uint64_t gone; /* counts directories that went from their path */
    /* Half a move did not find the other: whatever was `path` is gone from the tree. */
    void (*left)(void *arg, const char *path, bool dir);
    void *arg;
};

void changes_init(struct changes *c, FILE *to, unsigned window_ms);
/* False: it is held already, as the last of its path. */
bool changes_add(struct changes *c, enum change what, bool dir, const char *path, uint64_t now);
/* The first half of a move. `shown`: whether anybody wants to hear of that path. */
void changes_from(struct changes *c, uint32_t cookie, bool dir, bool shown, const char *path,
                  uint64_t now);
/* The second half. False: there was no first. `out`: as if it had left the tree. */
bool changes_to(struct changes *c, uint32_t cookie, bool dir, bool shown, bool out,
                const char *path, uint64_t now);
/* What the first half was of is not what the second is of: both are told for themselves. */
void changes_part(struct changes *c, uint32_t cookie);
/* All that is held, now: what follows is told behind it. */
void changes_flush(struct changes *c);
void changes_lost(struct changes *c, const char *why);
/* Tells what is due. Returns the ms until more is, or -1: nothing is held. */
int changes_tell(struct changes *c, uint64_t now);

#endif

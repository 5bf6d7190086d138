/* changes.h - orders the changes in a tree before they are reported.
 *
 * The first half of a move waits a moment for the second. The same change of the same path
 * within the window is reported once, unless a directory above was removed or moved in
 * between: then the path is another file. One line each on stdout, with every byte of a path
 * that is not printable ASCII as %XX:
 *
 *   create|modify|delete|attrib f|d PATH
 *   move f|d PATH FROM
 *   overflow queue|watches       changes were lost: list again
 */
#ifndef HELPER_WATCH_CHANGES_H
#define HELPER_WATCH_CHANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/list.h"
#include "base/map.h"

#define CHANGES_MAX 8192u   /* changes held; with more, the oldest are reported early */
#define CHANGES_MOVE_MS 50u /* how long half a move waits */

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
    unsigned window_ms; /* how long a change is held */
    struct list held;   /* in order */
    struct map last;    /* the last held change of each path */
    unsigned n;
    uint64_t gone; /* number of directories removed or moved so far */
    /* Called if a move has no second half: `path` left the tree. */
    void (*left)(void *arg, const char *path, bool dir);
    void *arg;
};

void changes_init(struct changes *c, FILE *to, unsigned window_ms);
/* False: the last held change of this path is the same. */
bool changes_add(struct changes *c, enum change what, bool dir, const char *path, uint64_t now);
/* The first half of a move. `shown`: whether that path is included. */
void changes_from(struct changes *c, uint32_t cookie, bool dir, bool shown, const char *path,
                  uint64_t now);
/* The second half. False: there was no first. `out`: handle it as if it left the tree. */
bool changes_to(struct changes *c, uint32_t cookie, bool dir, bool shown, bool out,
                const char *path, uint64_t now);
/* The two halves are of different files: report them separately. */
void changes_part(struct changes *c, uint32_t cookie);
/* Reports everything that is held. */
void changes_flush(struct changes *c);
void changes_lost(struct changes *c, const char *why);
/* Reports what is due. Returns the ms until the next is due, -1 if nothing is held. */
int changes_tell(struct changes *c, uint64_t now);

#endif

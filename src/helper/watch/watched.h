/* watched.h - the directories of a watch, by watch descriptor.
 *
 * Each has a pointer to its parent, so moving one moves everything below it; paths are built
 * when they are needed. */
#ifndef HELPER_WATCH_WATCHED_H
#define HELPER_WATCH_WATCHED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "helper/tree/path.h"

#define WATCHED_MAX 100000u /* directories of one watch */

struct watched {
    struct watched *next; /* in its slot */
    struct watched *parent;
    struct list children, link;
    int wd;
    bool out;     /* moved away, new path not known yet; perhaps out of the tree */
    bool partial; /* a directory in it could not be opened: one above was moved meanwhile */
    bool met;     /* found again after a queue overflow */
    char *name;
};

struct watches {
    struct watched *slots[4096];
    unsigned n;
    struct watched *root; /* its name is "" */
};

struct watched *watched_find(struct watches *ws, int wd);
/* Adds a directory, or moves a known one to this place. NULL if out of memory or more than
 * WATCHED_MAX. */
struct watched *watched_put(struct watches *ws, int wd, struct watched *parent, const char *name);
/* The child of that name whose `out` is as given, the last one if there are several: a removed
 * directory that is still open, or one that was moved away, may have the same name. */
struct watched *watched_child(const struct watched *w, const char *name, bool out);
/* Marks child `name` as `out`: nothing in it has a path until watched_put(). NULL: unknown. */
struct watched *watched_out(struct watched *w, const char *name);
/* Whether `w` is `of` or above it. */
bool watched_is_above(const struct watched *w, const struct watched *of);
/* Forgets it and everything below; `each` (or NULL) is called with every wd. */
void watched_drop(struct watches *ws, struct watched *w, void (*each)(void *arg, int wd),
                  void *arg);
/* Forgets all that are not `met`, except the root, and clears `met`. */
void watched_drop_unmet(struct watches *ws, void (*each)(void *arg, int wd), void *arg);
/* The path of `name` in `w` from the top; -1 if there is none or it is too long. */
int watched_path(const struct watched *w, const char *name, char out[PATH_ROOM]);

#endif

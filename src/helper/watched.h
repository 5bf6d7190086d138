/* watched.h - the directories a watch knows, by what the kernel calls them.
 *
 * Each knows the one it is in, so moving one moves all below it, and paths are put
 * together when they are needed. */
#ifndef HELPER_WATCHED_H
#define HELPER_WATCHED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "helper/path.h"

#define WATCHED_MAX 100000u /* directories of one watch */

struct watched {
    struct watched *next; /* in its slot */
    struct watched *parent;
    struct list children, link;
    int wd;
    bool out;     /* it was moved, and where to is not known yet: perhaps out of the tree */
    bool partial; /* a directory in it could not be reached: what is above was moved meanwhile */
    bool met;     /* when all of it was looked at again */
    char *name;
};

struct watches {
    struct watched *slots[4096];
    unsigned n;
    struct watched *root; /* its name is "" */
};

struct watched *watched_find(struct watches *ws, int wd);
/* Known under this place from now on, whether it is new or was elsewhere. NULL when
 * out of memory or too many. */
struct watched *watched_put(struct watches *ws, int wd, struct watched *parent, const char *name);
/* The last that was put there, of those that are out or are not: one that is removed and still
 * open somewhere, or moved away, may be known beside another of its name. NULL: none. */
struct watched *watched_child(const struct watched *w, const char *name, bool out);
/* Until it is put again, nothing in `name` has a path. NULL: it is not known. */
struct watched *watched_out(struct watched *w, const char *name);
/* Whether `w` is above `of`, or it. */
bool watched_is_above(const struct watched *w, const struct watched *of);
/* It and all below it; `each` (or NULL) is called with every wd. */
void watched_drop(struct watches *ws, struct watched *w, void (*each)(void *arg, int wd),
                  void *arg);
/* All that were not met, and for the next time none is; the root stays. */
void watched_drop_unmet(struct watches *ws, void (*each)(void *arg, int wd), void *arg);
/* The path of `name` in it, from the top; -1 if there is none or it is too long. */
int watched_path(const struct watched *w, const char *name, char out[PATH_ROOM]);

#endif

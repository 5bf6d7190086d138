/* mark.h - which processes belong together where there is no cgroup.
 *
 * The mark is a limit that every process inherits and only root can raise: the CPU time it may
 * use under real-time scheduling, set to a number of microseconds that is never reached. So a
 * process keeps its mark through fork, exec, setsid and the death of its parent, which a process
 * group or a session id would not survive. A program can lower the limit, and then it is known
 * only as long as its parents live: host mode does not claim to hold a process that hides.
 *
 * A mark is a home and a number in it. Marks fall, so that a process can be moved to a younger
 * one of the same home. */
#ifndef INIT_RUN_MARK_H
#define INIT_RUN_MARK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define MARK_NUMBERS_MAX (1u << 24) /* of one home */

/* Once, before the first: as far as the limit of our own process allows. */
int marks_begin(struct err *e);
/* A home of its own; its number 0. */
uint64_t mark_new(void);
uint64_t mark_any(void); /* for MARK_ANY */
/* The mark of number `n` in the home of `mark`. */
uint64_t mark_in(uint64_t mark, uint32_t n);

/* Of process `pid` (0: the caller); 0 or -1 with errno. */
int mark_set(pid_t pid, uint64_t mark);

enum mark_what { MARK_ONE, MARK_HOME, MARK_ANY }; /* that mark only; all of its home; all */

/* Calls fn for every process with the mark, until it returns false. `tree`: also for all
 * descendants of such processes, whatever their mark. False: some call returned false. */
bool mark_each(uint64_t mark, enum mark_what what, bool tree, bool (*fn)(void *arg, pid_t pid),
               void *arg);

#endif

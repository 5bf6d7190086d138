/* nursery.h - the process that forks all inits.
 *
 * cove-init starts as one process of the host's root: it waits for orders of the keeper
 * (wire/birth.h) and forks, for each, a child into new namespaces, which becomes the init of
 * a sandbox. The child is a copy of a small program that never held a secret or any memory of
 * the keeper; and no program has to be loaded, which would be a tenth of the cost of a
 * sandbox. */
#ifndef INIT_BOOT_NURSERY_H
#define INIT_BOOT_NURSERY_H

/* Calls `newborn` in each child, with no fds but 0, 1, 2 and BOOT_FD; the child exits with its
 * result. The nursery itself exits when the keeper has closed its end, with status 1 if it
 * could not start. `title` is argv[0]. */
void nursery_run(char *title, int (*newborn)(void)) __attribute__((noreturn));

#endif

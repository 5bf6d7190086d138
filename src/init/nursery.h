/* nursery.h - where inits are born.
 *
 * The program cove-init first is one process of the host's root: it waits for orders
 * (wire/birth.h) and forks, for each of them, a child into new namespaces. That child
 * goes on as the init of a sandbox. It is a copy of a small program that never held a
 * secret: nothing of the keeper's memory was ever in it, and no program has to be
 * loaded for it, which would be a tenth of what a sandbox costs. */
#ifndef INIT_NURSERY_H
#define INIT_NURSERY_H

/* In a newborn `newborn` is called, with nothing open but 0, 1, 2 and BOOT_FD, and is its
 * whole life. The nursery itself exits when the keeper has closed its end, or with status
 * 1 if it could not begin. `title` is the program's name in its arguments. */
void nursery_run(char *title, int (*newborn)(void)) __attribute__((noreturn));

#endif

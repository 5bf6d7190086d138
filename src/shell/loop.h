/* loop.h - the main loop of a session's bash: takes a call from init, runs it, replies how it
 * ended, and waits for the next.
 *
 * This folder is a builtin that bash loads (`enable -f`). So bash reads no text of ours: there
 * is no name that a command could redefine, nothing that set -x traces, no trap. The promise:
 * every way out of a command (exits.h) leads back to this loop, in the same process with its
 * state: set -e, set -u, errors, `exit`, an interrupt.
 *
 * It is freestanding and calls the kernel itself (kernel.h): the bash and the libc that load it
 * are the template's. It does not trust the command it ran, which may have closed or replaced
 * any fd of ours (kept.h). */
#ifndef SHELL_LOOP_H
#define SHELL_LOOP_H

#include <stdbool.h>

void loop(void) __attribute__((noreturn));

/* dump.c: prints the state of the shell on stdout; false: some of it could not be printed. */
bool dump(void);

#endif

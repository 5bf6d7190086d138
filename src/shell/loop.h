/* loop.h - the top of a session's bash: it takes a call, runs it, says how it went, and waits
 * for the next, for as long as there is one.
 *
 * All of this folder is a builtin that bash loads (`enable -f`), so nothing of ours is a text
 * that bash reads: there is no name in it that a command could take, nothing that is traced,
 * no trap. The promise is that every way out of a command (ways.h) leads back to here, in the
 * same process with all that it knows: set -e, set -u, errors, `exit`, a stop.
 *
 * It is freestanding, and speaks with the kernel itself (kernel.h), for it is loaded by whatever
 * bash and libc a template has. What it does not trust is the command it ran: that may have
 * closed or replaced any fd of ours (kept.h). */
#ifndef SHELL_LOOP_H
#define SHELL_LOOP_H

void loop(void) __attribute__((noreturn));

#endif

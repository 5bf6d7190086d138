/* fifos.h - the FIFOs between the shell of a session and init, see shell/call.h. If one cannot
 * be opened the shell exits: it could not reply. */
#ifndef SHELL_FIFOS_H
#define SHELL_FIFOS_H

#include <stdbool.h>
#include <stddef.h>

/* The directory they are in; false: its path is too long. */
bool fifos_begin(const char *dir);

/* Reads at least `least` bytes of calls, and at most `room`. */
size_t fifos_take(char *out, size_t least, size_t room);
void fifos_reply(char letter, int status);

/* Opens fds 1 and 2 of a call, and 0 if it has an input. */
void fifos_open_stdio(const char *input);
void fifos_close_output(void);
void fifos_open_null(void);

#endif

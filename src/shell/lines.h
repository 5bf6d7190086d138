/* lines.h - what leads from the shell of a session to init: the FIFOs of its directory, see
 * shell/call.h. Whoever cannot open them any more ends the shell: it could not be heard. */
#ifndef SHELL_LINES_H
#define SHELL_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* The directory; false: that cannot be one. */
bool lines_begin(const char *dir);

/* At least `least` bytes of calls, and what more there is. */
size_t lines_take(char *out, size_t least, size_t room);
void lines_reply(char letter, int status);

/* fds 1 and 2 of a call, and 0 if it was given an input; else that is /dev/null. */
void lines_open_stdio(const char *input);
void lines_close_output(void);
void lines_open_null(void);

#endif

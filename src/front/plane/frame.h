/* frame.h - messages from a viewer of a terminal, in two formats.
 *
 * Ours: a binary message is input, a text message is a JSON object. ttyd's (the subprotocol `tty`):
 * the first message is a JSON object; then the first byte of each message is its type. */
#ifndef FRONT_PLANE_FRAME_H
#define FRONT_PLANE_FRAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define FRAME_CONTROL_MAX 4096u /* bytes of a message that is not typed */

enum frame_act {
    FRAME_INPUT,  /* p, n */
    FRAME_RESIZE, /* cols, rows */
    FRAME_PAUSE,  /* send nothing more... */
    FRAME_RESUME, /* ...or go on */
    FRAME_HELLO,  /* ttyd's first; cols and rows may be 0: not given */
    FRAME_ACT_COUNT
};

struct frame {
    enum frame_act act;
    const char *p; /* points into the message */
    size_t n;
    unsigned cols, rows;
};

/* ERR_INVALID or ERR_TOO_LARGE say what is wrong with it. */
int frame_read(bool binary, const char *p, size_t n, struct frame *ret, struct err *e);
int frame_read_ttyd(bool first, const char *p, size_t n, struct frame *ret, struct err *e);

#endif

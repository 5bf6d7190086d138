/* script.h - the text that the bash of a session begins with, and words as bash reads them.
 * What it does behind that is no text (shell/loop.c). */
#ifndef INIT_SCRIPT_H
#define INIT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "wire/wire.h"

/* What it begins with. `dir` has no character that means something to bash. */
void script_begin(struct buf *out, const char *dir);

/* 'text' as one word. */
void script_quote(struct buf *out, const char *p, size_t n);
/* NAME=value with a NAME that the shell takes for one. */
bool script_is_variable(const char *s);
/* Each of them as bash reads it, NAME='value', with a NUL. */
void script_env(struct buf *out, const struct wire_strv *env);

#endif

/* script.h - the few texts that the bash of a session is given by us: how it begins, and how
 * it says what it knows. What it does in between is no text (shell/loop.c). */
#ifndef INIT_SCRIPT_H
#define INIT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "wire/wire.h"

/* What it begins with, in `cwd`. `dir` has no character that means something to bash. */
void script_begin(struct buf *out, const char *dir, const char *cwd);
/* Prints everything that another bash needs to be in the same state. */
void script_dump(struct buf *out);

/* 'text' as one word. */
void script_quote(struct buf *out, const char *p, size_t n);
/* NAME=value with a NAME that the shell takes for one. */
bool script_is_variable(const char *s);
/* Each of them as bash reads it, NAME='value', with a NUL. */
void script_env(struct buf *out, const struct wire_strv *env);

#endif

/* script.h - the script that the bash of a session starts with, and quoting for bash. The script
 * loads and calls the builtin of shell/, which never returns to it. */
#ifndef INIT_SESSION_SCRIPT_H
#define INIT_SESSION_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "wire/wire.h"

/* The script. `dir` has no character that is special to bash. */
void script_begin(struct buf *out, const char *dir);

/* 'text', quoted as one word. */
void script_quote(struct buf *out, const char *p, size_t n);
/* True for NAME=value with a name that bash accepts. */
bool script_is_variable(const char *s);
/* Each variable as NAME='value', quoted, with a NUL. */
void script_env(struct buf *out, const struct wire_strv *env);

#endif

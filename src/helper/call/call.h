/* call.h - the arguments of one call of cove-helper, and how it reports a failure. */
#ifndef HELPER_CALL_CALL_H
#define HELPER_CALL_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

/* Arguments NAME=VALUE; a NAME without a value is a flag. */
struct args {
    int n;
    char **v; /* borrowed */
};

/* The first value of that name; NULL if it was not given. */
const char *args_get(const struct args *a, const char *name);
bool args_has(const struct args *a, const char *name);
/* A number; `otherwise` if it was not given or is not a number. */
uint64_t args_u64(const struct args *a, const char *name, uint64_t otherwise);

/* Writes "E CODE TEXT" and a newline, with control characters replaced. Returns the exit
 * status of a failed call. */
int say_failed(FILE *to, const struct err *e);
/* Returns -1 with the kind that errno means about a path of the caller: not found, denied,
 * disk full. Other errors are internal. */
int say_sys(struct err *e, const char *what, const char *path);

#endif

/* args.h - what a kind of work is told: NAME=VALUE, each once, a bare NAME for yes. */
#ifndef HELPER_ARGS_H
#define HELPER_ARGS_H

#include <stdbool.h>
#include <stdint.h>

struct args {
    int n;
    char **v; /* borrowed */
};

/* NULL if it was not given. */
const char *args_get(const struct args *a, const char *name);
bool args_has(const struct args *a, const char *name);
/* A number; `otherwise` if it was not given or is none. */
uint64_t args_u64(const struct args *a, const char *name, uint64_t otherwise);

#endif

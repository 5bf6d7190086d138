/* fuzz.h - included by every harness. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define FUZZ_MUST(what)                                                                            \
    do {                                                                                           \
        if (!(what))                                                                               \
            abort();                                                                               \
    } while (0)

/* A heap copy of exactly n bytes, so that the sanitizer sees a read of one byte too many.
 * Belongs to the caller. */
static inline char *fuzz_copy(const uint8_t *data, size_t n)
{
    char *p = malloc(n > 0 ? n : 1);

    FUZZ_MUST(p != NULL);
    if (n > 0)
        memcpy(p, data, n);
    return p;
}

#endif

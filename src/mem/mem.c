/* mem.c - see mem.h. */
#include "mem/mem.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

/* Nothing here may allocate. */
static _Noreturn void end(void)
{
    static const char text[] = "cove: out of memory\n";

    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);

    (void)ignored;
    _exit(err_exit(ERR_INTERNAL));
}

static void *or_end(void *p)
{
    if (p == NULL)
        end();
    return p;
}

void *mem_zeroed(size_t n, size_t size)
{
    return or_end(calloc(n, size));
}

char *mem_text(const char *text)
{
    return or_end(strdup(text));
}

static void *bytes(size_t n)
{
    return or_end(malloc(n));
}

void mem_for_json(void)
{
    json_set_alloc_funcs(bytes, free);
}

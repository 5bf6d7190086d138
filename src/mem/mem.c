/* mem.c - see mem.h. */
#include "mem/mem.h"

#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

#define MEM_MAPPED (256 << 10)
#define MEM_TRIM (1 << 20)
#define MEM_ARENAS 4

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
    return text != NULL ? or_end(strdup(text)) : NULL;
}

void *mem_again(void *p, size_t n, size_t size)
{
    return or_end(reallocarray(p, n, size));
}

void mem_put(struct map *m, struct map_node *node, const char *key)
{
    if (map_put(m, node, key) < 0)
        end();
}

char *mem_vformat(const char *fmt, va_list ap)
{
    char *text = NULL;

    if (vasprintf(&text, fmt, ap) < 0)
        end();
    return text;
}

char *mem_format(const char *fmt, ...)
{
    va_list ap;
    char *text;

    va_start(ap, fmt);
    text = mem_vformat(fmt, ap);
    va_end(ap);
    return text;
}

static void *bytes(size_t n)
{
    return or_end(malloc(n));
}

void mem_for_json(void)
{
    json_set_alloc_funcs(bytes, free);
    json_object_seed(0); /* now: documents are made in threads, too */
}

/* Without this glibc raises the size from which a block is mapped to that of the largest block that
 * was freed (32 MiB at most): smaller ones then stay on the heap, below the next small one. And each
 * thread keeps what it freed in an arena of its own. */
void mem_give_back(void)
{
    mallopt(M_MMAP_THRESHOLD, MEM_MAPPED);
    mallopt(M_TRIM_THRESHOLD, MEM_TRIM);
    mallopt(M_ARENA_MAX, MEM_ARENAS);
}

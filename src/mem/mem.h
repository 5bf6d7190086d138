/* mem.h - memory that is never NULL: without memory the process ends.
 *
 * Only for programs that may end at any time without loss. Each decides in tools/layers.txt,
 * by the right to include this:
 *
 *   front    yes: the keeper starts it again, inits and their processes keep running
 *   cli      yes
 *   keeper   no: it would be started again only by the operator's service manager
 *   init     no: it is pid 1 of a sandbox, and a tenant can use up its memory
 *   helper   no: the caller gets an error that says why
 *
 * A struct buf is not covered: its bound may be large, and a buf that cannot grow is `failed`. */
#ifndef MEM_MEM_H
#define MEM_MEM_H

#include <stdarg.h>
#include <stddef.h>

#include "base/map.h"

/* `n` zeroed things of `size` bytes; belongs to the caller. */
void *mem_zeroed(size_t n, size_t size);
/* A copy of the text, NULL for NULL; belongs to the caller. */
char *mem_text(const char *text);
/* As realloc(): room for `n` things of `size` bytes, the new ones not zeroed. */
void *mem_again(void *p, size_t n, size_t size);
/* As map_put(). */
void mem_put(struct map *m, struct map_node *node, const char *key);
/* As asprintf() and vasprintf(). */
char *mem_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *mem_vformat(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
/* All memory of jansson comes from here from now on; called once, by main. */
void mem_for_json(void);
/* Large blocks go back to the system when they are freed, also after larger ones. Called once, by a
 * program that runs for long and whose clients choose how much it allocates. */
void mem_give_back(void);

#endif

/* fuzz_tree.c - untrusted output of helpers that work on trees: lines of a watch, the
 * answer of an unpack. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "front/engine/archive.h"
#include "front/engine/watch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct archive_result result;
    struct watch_event ev;
    struct err e;

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    archive_result(text, size, &result, &e);
    if (watch_line(text, &ev) == 0 && (ev.path < text || ev.path > text + size) &&
        strlen(ev.path) > 16)
        abort();
    free(text);
    return 0;
}

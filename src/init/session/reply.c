/* reply.c - see reply.h. */
#include "init/session/reply.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

#define LINE_MAX 4 /* a letter and three digits */

static bool read_line(const char *p, size_t n, struct reply *ret)
{
    static const char letters[REPLY_KINDS] = {'r', 'n', 'x', 'e', 'q'};
    const char *letter = n > 0 ? memchr(letters, *p, sizeof(letters)) : NULL;
    char digits[LINE_MAX] = "";
    uint64_t status;

    if (letter == NULL || n < 2 || n > LINE_MAX)
        return false;
    memcpy(digits, p + 1, n - 1);
    if (memchr(digits, '\0', n - 1) != NULL || str_u64(digits, 255, &status) < 0)
        return false;
    *ret = (struct reply){(enum reply_kind)(letter - letters), (unsigned)status};
    return true;
}

int reply_read(const char *p, size_t n, struct reply *ret, size_t *ret_used)
{
    const char *line, *end;

    for (line = p; (end = memchr(line, '\n', n - (size_t)(line - p))) != NULL; line = end + 1) {
        if (!read_line(line, (size_t)(end - line), ret))
            continue;
        *ret_used = (size_t)(end - p) + 1;
        return 1;
    }
    return n >= REPLY_MAX ? -1 : 0;
}

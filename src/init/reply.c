/* reply.c - see reply.h. */
#include "init/reply.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

#define PID_LIMIT (1u << 30)
#define DIGITS_MAX 10

/* Digits up to a dot; -1: there are none such. Moves *p behind the dot. */
static int number(const char **p, const char *end, uint64_t max, uint64_t *ret)
{
    char text[DIGITS_MAX + 1];
    const char *dot = memchr(*p, '.', (size_t)(end - *p));
    size_t n = dot != NULL ? (size_t)(dot - *p) : sizeof(text);

    if (n >= sizeof(text))
        return -1;
    memcpy(text, *p, n);
    text[n] = '\0';
    *p = dot + 1;
    *ret = 0;
    return n == 0 ? 0 : str_u64(text, max, ret);
}

static int read_name(const char *p, const char *end, struct reply *ret)
{
    static const char letters[] = "nxebdk";
    const char *letter = p < end ? memchr(letters, *p, sizeof(letters) - 1) : NULL;
    uint64_t status, pid;

    if (letter == NULL)
        return -1;
    p++;
    if (p == end || *p == '.' || number(&p, end, 255, &status) < 0 ||
        number(&p, end, PID_LIMIT, &pid) < 0)
        return -1;
    *ret = (struct reply){(enum reply_kind)(letter - letters), (unsigned)status, (pid_t)pid};
    return 1;
}

/* Not what bash says about it, but the text of our line itself, as a DEBUG trap shows it that
 * prints BASH_COMMAND: its status is still to be looked up. */
static bool is_text(const char *p, const char *end)
{
    return end - p > 1 && p[1] == '$';
}

int reply_read(const char *p, size_t n, const char *dir, struct reply *ret, size_t *ret_used)
{
    size_t dirlen = strlen(dir);
    const char *line, *end, *at = NULL;

    for (line = p; (end = memchr(line, '\n', n - (size_t)(line - p))) != NULL; line = end + 1) {
        at = memmem(line, (size_t)(end - line), dir, dirlen);
        if (at == NULL || (size_t)(end - at) < dirlen + 3 || memcmp(at + dirlen, "/-/", 3) != 0 ||
            is_text(at + dirlen + 3, end))
            continue;
        *ret_used = (size_t)(end - p) + 1;
        return read_name(at + dirlen + 3, end, ret);
    }
    return n >= REPLY_MAX ? -1 : 0;
}

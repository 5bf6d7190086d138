/* keys.c - see keys.h. */
#include "cli/terminal/keys.h"

#include <string.h>

#define CTRL 0x1f /* mask: the bits of a character that remain with the control key */

static int parse_key(const char *s, size_t n, char *ret)
{
    static const char keys[] = "abcdefghijklmnopqrstuvwxyz@[\\]^_";

    if (n == 1) {
        *ret = s[0];
        return 0;
    }
    if (n != 6 || strncmp(s, "ctrl-", 5) != 0 || memchr(keys, s[5], sizeof(keys) - 1) == NULL)
        return -1;
    *ret = s[5] & CTRL;
    return 0;
}

int keys_parse(struct keys *k, const char *text, struct err *e)
{
    *k = (struct keys){0};
    if (strcmp(text, KEYS_NONE) == 0)
        return 0;
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");

        if (k->n == KEYS_MAX || parse_key(at, n, &k->seq[k->n]) < 0)
            return err_set(e, ERR_INVALID,
                           "'%.60s' is not a list of at most %d keys such as " KEYS_DEFAULT
                           ", or none",
                           text, KEYS_MAX);
        k->n++;
        at += n;
        if (*at == '\0')
            return 0;
    }
}

/* Key `c` does not continue the sequence: keeps the longest end of the keys so far that is
 * a beginning of the sequence, and gives the rest to the program. */
static void give_back(struct keys *k, char c, struct buf *out)
{
    char seen[KEYS_MAX + 1];
    size_t n = k->held + 1, keep = n;

    memcpy(seen, k->seq, k->held);
    seen[k->held] = c;
    do
        keep--;
    while (keep > 0 && memcmp(seen + n - keep, k->seq, keep) != 0);
    buf_add(out, seen, n - keep);
    k->held = keep;
}

bool keys_filter(struct keys *k, const char *p, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        if (k->n == 0)
            buf_addc(out, p[i]);
        else if (p[i] != k->seq[k->held])
            give_back(k, p[i], out);
        else if (++k->held == k->n)
            return true;
    }
    return false;
}

/* glob.c - see glob.h. */
#include "helper/tree/glob.h"

#include <string.h>

/* A part of a path between slashes. */
struct part {
    const char *p;
    size_t n;
};

/* The part at `p`; *next is the start of the next part, NULL after the last. */
static struct part part_at(const char *p, const char **next)
{
    size_t n = strcspn(p, "/");

    *next = p[n] == '/' ? p + n + 1 : NULL;
    return (struct part){p, n};
}

/* Matches `c` against a set; `p` is after the "[". Returns the length of the set in bytes, 0
 * if it has no end: then the "[" is a plain character. */
static size_t set_match(const char *p, const char *end, unsigned char c, bool *ret)
{
    const char *at = p;
    bool not = at < end && (*at == '!' || *at == '^'), in = false, first = true;

    at += not ;
    for (; at < end && (*at != ']' || first); first = false) {
        unsigned char lo = (unsigned char)*at++, hi = lo;

        if (lo == '\\' && at < end)
            lo = hi = (unsigned char)*at++;
        if (end - at >= 2 && at[0] == '-' && at[1] != ']') {
            hi = (unsigned char)at[1];
            at += 2;
        }
        in = in || (c >= lo && c <= hi);
    }
    if (at >= end)
        return 0;
    *ret = in != not ;
    return (size_t)(at + 1 - p);
}

/* Matches one unit of the pattern (not '*') against one byte. Returns the length of the unit in
 * bytes, 0 if it does not match. */
static size_t unit_match(const char *p, const char *end, unsigned char c)
{
    bool in = false;
    size_t n;

    if (*p == '?')
        return 1;
    if (*p == '[' && (n = set_match(p + 1, end, c, &in)) > 0)
        return in ? n + 1 : 0;
    if (*p == '\\' && end - p > 1)
        return (unsigned char)p[1] == c ? 2 : 0;
    return (unsigned char)*p == c ? 1 : 0;
}

/* The length of the UTF-8 character at `s`: '?' matches a whole character. */
static size_t char_len(const char *s, size_t n)
{
    size_t len = 1;

    while (len < n && ((unsigned char)s[len] & 0xc0) == 0x80)
        len++;
    return (unsigned char)s[0] < 0x80 ? 1 : len;
}

/* After a mismatch the last '*' takes one more byte; earlier ones need no second try, so this
 * is not exponential. */
static bool part_match(struct part pattern, struct part name)
{
    const char *p = pattern.p, *pe = p + pattern.n, *s = name.p, *se = s + name.n;
    const char *star = NULL, *from = NULL;

    while (s < se) {
        size_t n = p < pe && *p != '*' ? unit_match(p, pe, (unsigned char)*s) : 0;

        if (n > 0) {
            s += *p == '?' ? char_len(s, (size_t)(se - s)) : 1;
            p += n;
        } else if (p < pe && *p == '*') {
            star = ++p;
            from = s;
        } else if (star != NULL) {
            p = star;
            s = ++from;
        } else {
            return false;
        }
    }
    while (p < pe && *p == '*')
        p++;
    return p == pe;
}

static bool is_deep(struct part p)
{
    return p.n == 2 && p.p[0] == '*' && p.p[1] == '*';
}

/* The same algorithm for '**' and parts of the path. */
static bool path_match(const char *pattern, const char *path)
{
    const char *p = pattern, *s = path, *deep = NULL, *from = NULL, *pn = NULL, *sn;

    while (s != NULL) {
        struct part name = part_at(s, &sn), want = {"", 0};

        if (p != NULL)
            want = part_at(p, &pn);
        if (p != NULL && is_deep(want)) {
            deep = p = pn;
            from = s;
            if (p == NULL)
                return true;
        } else if (p != NULL && part_match(want, name)) {
            p = pn;
            s = sn;
        } else if (deep != NULL) {
            p = deep;
            part_at(from, &from);
            s = from;
        } else {
            return false;
        }
    }
    while (p != NULL && is_deep(part_at(p, &pn)))
        p = pn;
    return p == NULL;
}

bool glob_match(const char *pattern, const char *path)
{
    char plain[GLOB_MAX + 1];
    size_t n = strlen(pattern);
    bool anchored;

    while (n > 1 && pattern[n - 1] == '/')
        n--;
    if (n > GLOB_MAX)
        return false;
    memcpy(plain, pattern, n);
    plain[n] = '\0';
    anchored = strchr(plain, '/') != NULL;
    pattern = plain;
    while (strncmp(pattern, "./", 2) == 0 || *pattern == '/')
        pattern += *pattern == '/' ? 1 : 2;
    if (!anchored && strrchr(path, '/') != NULL)
        path = strrchr(path, '/') + 1;
    return path_match(pattern, path);
}

bool globs_match(const struct globs *g, const char *path)
{
    for (size_t i = 0; i < g->n; i++)
        if (glob_match(g->list[i], path))
            return true;
    return false;
}

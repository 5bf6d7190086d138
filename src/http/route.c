/* route.c - see route.h. */
#include "http/route.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "http/http.h"

#define ANY_DEPTH SIZE_MAX

/* The byte at *p, decoded; moves *p past it; -1 for bad encoding or a NUL. */
static int next_byte(const char **p, const char *end, bool plus)
{
    const char *s = *p;
    int hi, lo;

    *p = s + 1;
    if (*s != '%')
        return plus && *s == '+' ? ' ' : (unsigned char)*s;
    hi = end - s > 2 ? str_hex_digit((unsigned char)s[1]) : -1;
    lo = hi >= 0 ? str_hex_digit((unsigned char)s[2]) : -1;
    *p = s + 3;
    return lo < 0 || (hi | lo) == 0 ? -1 : hi << 4 | lo;
}

static bool takes_rest(const char *pat, size_t len)
{
    return len > 4 && memcmp(pat + len - 4, "...}", 4) == 0;
}

/* 1: the path fits and the parameters are in m; 0: no; -1: a parameter is malformed. */
static int path_fits(const char *pat, const char *path, struct route_match *m, struct err *e)
{
    m->nparams = 0;
    m->rest = NULL;
    while (*pat == '/' && *path == '/') {
        const char *pat_end = strchrnul(++pat, '/'), *end = strchrnul(++path, '/');

        if (takes_rest(pat, (size_t)(pat_end - pat))) {
            m->rest = path;
            return 1;
        }
        if (*pat == '{' && path < end && m->nparams < ROUTE_PARAMS_MAX) {
            char *out = m->params[m->nparams++];
            size_t n = 0;

            while (path < end) {
                int c = next_byte(&path, end, false);

                if (c == '/')
                    return err_set(e, ERR_INVALID, "an encoded slash in the path");
                if (n + 1 == ROUTE_PARAM_MAX)
                    return err_set(e, ERR_INVALID, "a part of the path is too long");
                out[n++] = (char)c;
            }
            out[n] = '\0';
            pat = pat_end;
        } else {
            while (path < end && pat < pat_end)
                if (next_byte(&path, end, false) != (unsigned char)*pat++)
                    return 0;
            if (path < end || pat < pat_end)
                return 0;
        }
    }
    return *pat == '\0' && *path == '\0';
}

static const struct route *row_at(const void *rows, size_t i, size_t stride)
{
    return (const void *)((const char *)rows + i * stride);
}

static size_t count_slashes(const char *s)
{
    size_t n = 0;

    while (*(s = strchrnul(s, '/')) != '\0') {
        n++;
        s++;
    }
    return n;
}

void route_prepare(void *rows, size_t n, size_t stride)
{
    for (size_t i = 0; i < n; i++) {
        struct route *row = (void *)((char *)rows + i * stride);

        row->depth =
            takes_rest(row->path, strlen(row->path)) ? ANY_DEPTH : count_slashes(row->path);
    }
}

/* Most rows have the same beginning and a different number of segments. */
static int row_fits(const struct route *row, const char *path, size_t depth, struct route_match *m,
                    struct err *e)
{
    if (row->depth != depth && row->depth != ANY_DEPTH)
        return 0;
    return path_fits(row->path, path, m, e);
}

int route_find(const void *rows, size_t n, size_t stride, const char *method, const char *path,
               struct route_match *ret, char *allow, size_t allow_room, struct err *e)
{
    const char *at = strchrnul(path, '%'), *end = path + strlen(path);
    size_t depth = count_slashes(path);
    bool head = strcmp(method, "HEAD") == 0;

    allow[0] = '\0';
    if ((size_t)(end - path) > HTTP_TARGET_MAX)
        return err_set(e, ERR_INVALID, "the path is too long");
    while (at < end)
        if (next_byte(&at, end, false) < 0)
            return err_set(e, ERR_INVALID, "bad percent-encoding in the path");
    for (size_t i = 0; i < n; i++) {
        const struct route *row = row_at(rows, i, stride);
        int fits = 0;

        /* a row for GET serves HEAD too; http_reply() leaves the body out */
        if (strcmp(row->method, method) == 0 || (head && strcmp(row->method, "GET") == 0))
            fits = row_fits(row, path, depth, ret, e);
        ret->row = i;
        if (fits != 0)
            return fits > 0 ? 0 : -1;
    }
    /* The allowed methods are collected only on failure. */
    for (size_t i = 0; i < n; i++) {
        const struct route *row = row_at(rows, i, stride);
        int fits = row_fits(row, path, depth, ret, e);

        if (fits < 0)
            return -1;
        if (fits == 0 || strstr(allow, row->method) != NULL ||
            strlen(allow) + strlen(row->method) + 3 > allow_room)
            continue;
        if (allow[0] != '\0')
            strcat(allow, ", ");
        strcat(allow, row->method);
    }
    if (allow[0] != '\0')
        return err_set(e, ERR_METHOD, "%s is not supported on this path; use %s", method, allow);
    return err_set(e, ERR_NOT_FOUND, "no such path");
}

static int decode(const char *p, const char *end, bool plus, char *out, size_t room)
{
    size_t n = 0;

    while (p < end) {
        int c = next_byte(&p, end, plus);

        if (c < 0 || n + 1 >= room)
            return -1;
        out[n++] = (char)c;
    }
    out[n] = '\0';
    return 0;
}

int route_rest(const struct route_match *m, char *out, size_t room, struct err *e)
{
    if (m->rest == NULL || decode(m->rest, m->rest + strlen(m->rest), false, out, room) < 0)
        return err_set(e, ERR_INVALID, "the end of the path is malformed or too long");
    return 0;
}

/* ---- query ---- */

static bool name_is(const char *p, const char *end, const char *name)
{
    while (p < end && *name != '\0')
        if (next_byte(&p, end, true) != (unsigned char)*name++)
            return false;
    return p == end && *name == '\0';
}

int route_query(const char *query, const char *name, char *out, size_t room, struct err *e)
{
    int found = 0;

    while (*query != '\0') {
        size_t len = strcspn(query, "&");
        const char *eq = memchr(query, '=', len), *end = query + len;

        if (name_is(query, eq != NULL ? eq : end, name)) {
            if (found++ > 0)
                return err_set(e, ERR_INVALID, "%s: given twice", name);
            if (decode(eq != NULL ? eq + 1 : end, end, true, out, room) < 0)
                return err_set(e, ERR_INVALID, "%s: malformed or too long", name);
        }
        query = end + (*end == '&');
    }
    return found;
}

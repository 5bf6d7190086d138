/* route.h - finds the row of a table for a method and a path. */
#ifndef HTTP_ROUTE_H
#define HTTP_ROUTE_H

#include <stddef.h>

#include "base/err.h"

#define ROUTE_PARAMS_MAX 4
#define ROUTE_PARAM_MAX 512 /* bytes of one path parameter, decoded */

/* The part of a row that matching needs; tables embed it as their first member. */
struct route {
    const char *method;
    /* "/v1/sandboxes/{id}/exec"; {name} matches one segment, {name...} at the end
     * the rest, which may have slashes or be empty. */
    const char *path;
    size_t depth; /* set by route_prepare() */
};

struct route_match {
    size_t row;
    size_t nparams;
    char params[ROUTE_PARAMS_MAX][ROUTE_PARAM_MAX]; /* decoded, in the order of the path */
    const char *rest; /* of {name...}: points into the path, as sent; else NULL */
};

/* Once, before the first route_find(): `rows` has `n` rows of `stride` bytes, each beginning
 * with a struct route. */
void route_prepare(void *rows, size_t n, size_t stride);

/* On failure: ERR_NOT_FOUND, ERR_METHOD (and `allow`, "GET, POST", of at least 64 bytes, is
 * filled), ERR_INVALID for bad percent-encoding or an encoded NUL or slash. */
int route_find(const void *rows, size_t n, size_t stride, const char *method, const char *path,
               struct route_match *ret, char *allow, size_t allow_room, struct err *e);

/* The value of {name...}, decoded; a slash in it may be encoded. ERR_INVALID if it is
 * longer than `room`. */
int route_rest(const struct route_match *m, char *out, size_t room, struct err *e);

/* The value of `name` in a query string, percent-decoded ('+' is a blank):
 * 1 found, 0 absent, -1 malformed or too long or given twice. */
int route_query(const char *query, const char *name, char *out, size_t room, struct err *e);

#endif

/* query.h - the part behind '?', read with the same tables as a JSON body. */
#ifndef FRONT_PLANE_QUERY_H
#define FRONT_PLANE_QUERY_H

#include "json/read.h"

#define QUERY_PAIRS_MAX 64

/* %XX and '+' undone, in place. ERR_INVALID for bad encoding or a NUL. */
int query_unescape(char *s, struct err *e);

/* Makes the object that json_decode() takes. A parameter becomes what its field
 * wants: a number, true or false (1 and 0 too), text; a STRMAP `metadata` is
 * written metadata.NAME=VALUE, once for each name, a STRLIST once for each of its
 * strings. ERR_INVALID for bad percent
 * encoding, a NUL, a parameter given twice. */
int query_parse(const char *query, const struct json_field *fields, size_t n, json_t **ret,
                struct err *e);

#endif

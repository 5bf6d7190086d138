/* query.h - query parameters, decoded with the same tables as a JSON body. */
#ifndef FRONT_PLANE_QUERY_H
#define FRONT_PLANE_QUERY_H

#include "json/read.h"

#define QUERY_PAIRS_MAX 64

/* %XX and '+' undone, in place. ERR_INVALID for bad encoding or a NUL. */
int query_unescape(char *s, struct err *e);

/* Makes the object for json_decode(). A parameter is converted to the type of its field: a number,
 * true or false (or 1 and 0), text. A STRMAP `metadata` is written metadata.NAME=VALUE per name, a
 * STRLIST once per string. ERR_INVALID for bad percent-encoding, a NUL, or a repeated parameter. */
int query_parse(const char *query, const struct json_field *fields, size_t n, json_t **ret,
                struct err *e);

#endif

/* read.h - request bodies: jansson, strict, bounded, and a table of fields that
 * says what a body may hold, so every "bad input" has a precise message. */
#ifndef JSON_READ_H
#define JSON_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define JSON_READ_DEPTH_MAX 16
#define JSON_READ_NODES_MAX 200000u /* values and names; each takes memory that the text does not */

#define autojson __attribute__((cleanup(json_drop)))
void json_drop(json_t **j);

/* Rejects duplicate keys, trailing bytes, NUL in strings, depth or number of values above the bound:
 * before a value is made. May be called in any thread. */
int json_parse(const char *text, size_t len, json_t **ret, struct err *e);

enum json_type {
    JSON_FIELD_STR,     /* const char *, points into the document; max: bytes */
    JSON_FIELD_U64,     /* uint64_t; min, max */
    JSON_FIELD_I64,     /* int64_t, of any sign; no bounds */
    JSON_FIELD_DOUBLE,  /* double */
    JSON_FIELD_BOOL,    /* bool */
    JSON_FIELD_STRMAP,  /* json_t *, an object of strings; max: entries */
    JSON_FIELD_STRLIST, /* json_t *, an array of strings; max: entries */
    JSON_FIELD_ANY,     /* json_t * as it is */
    JSON_FIELD_PATH,    /* as STR; in a query any bytes but NUL, not only UTF-8 */
};

struct json_field {
    const char *name;
    enum json_type type;
    size_t offset;     /* offsetof() in the caller's struct */
    uint64_t min, max; /* 0, 0: unbounded (but the body is bounded) */
    bool required;
    const char *doc; /* one sentence, for OpenAPI */
};

/* Fills `out` (which holds the defaults) from the object. An unknown field, a
 * wrong type, a value out of bounds: ERR_INVALID, naming the field and what was
 * expected. null means absent. */
int json_decode(json_t *obj, const struct json_field *fields, size_t n, void *out, struct err *e);

/* Drops the fields that the table does not know: clients written for another vendor's
 * server send them. */
void json_only(json_t *obj, const struct json_field *fields, size_t n);

#endif
